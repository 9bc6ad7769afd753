"""The set-up of this user, as far as it can be read."""

from __future__ import annotations

from collections.abc import Sequence

from proxy.cli.account import SignIn, sign_ins
from proxy.cli.command import Context
from proxy.cli.config_file import ConfigFile
from proxy.cli.doctor.finding import Setup
from proxy.config import Config, ConfigError


def setup_of(context: Context, *, offline: bool = False) -> Setup:
    """With defaults and without sign-ins where the settings cannot be used: the findings tell why."""
    file = _file(context)
    known: Sequence[SignIn] = sign_ins(context, file) if file is not None else ()
    return Setup(context, file, file.config if file is not None else Config(), known, offline)


def _file(context: Context) -> ConfigFile | None:
    try:
        return ConfigFile(context, new=True)
    except ConfigError:
        return None
