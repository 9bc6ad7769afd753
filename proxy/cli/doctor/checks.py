"""The user's set-up as far as it can be read, the table of checks, and the one loop over it."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Sequence

from proxy.cli.account import SignIn, sign_ins
from proxy.cli.command import Context
from proxy.cli.config_file import ConfigFile
from proxy.cli.doctor.clients import CLIENTS
from proxy.cli.doctor.data import DATA
from proxy.cli.doctor.files import FILES
from proxy.cli.doctor.finding import Check, Finding, Group, Section, Setup, note, warn
from proxy.cli.doctor.listener import LISTENER
from proxy.cli.doctor.network import CLOCK, NETWORK
from proxy.cli.doctor.settings import SETTINGS
from proxy.cli.doctor.sign_ins import SIGN_INS
from proxy.config import Config, ConfigError


def setup_of(context: Context, *, offline: bool = False) -> Setup:
    """The set-up, with defaults and without sign-ins where the settings cannot be used: findings say so."""
    file = _file(context)
    known: Sequence[SignIn] = sign_ins(context, file) if file is not None else ()
    return Setup(context, file, file.config if file is not None else Config(), known, offline)


def _file(context: Context) -> ConfigFile | None:
    try:
        return ConfigFile(context, new=True)
    except ConfigError:
        return None


#: In the order of printing: later ones depend on earlier ones.
GROUPS: tuple[Group, ...] = (SETTINGS, FILES, LISTENER, SIGN_INS, NETWORK, CLOCK, CLIENTS, DATA)


async def examine(setup: Setup, begin: Callable[[Group], None]) -> AsyncIterator[Section]:
    """Yields the findings of each group as soon as they are known; calls `begin` before each group."""
    for group in GROUPS:
        begin(group)
        found: list[Finding] = []
        for check in (*group.checks, *(group.settled if setup.file is not None else ())):
            found += await _found(check, setup)
        if group.settled and setup.file is None:
            found.append(note("not looked at", "the settings cannot be used"))
        yield Section(group, tuple(found))


async def _found(check: Check, setup: Setup) -> list[Finding]:
    """The findings of one check. An exception becomes a finding, so that the other checks still run."""
    try:
        found = check(setup)
        return [*(await found if inspect.isawaitable(found) else found)]
    except Exception as error:
        name = check.__name__.removeprefix("check_").replace("_", " ")
        why = f"{type(error).__name__}: {error}"
        return [warn(f"{name} could not be looked at", why, f"report it with {setup.program} doctor --bundle")]
