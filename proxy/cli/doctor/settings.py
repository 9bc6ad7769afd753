"""The settings: whether a start would accept them, and which source wins."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from pathlib import Path

from proxy.auth.store import CredentialFile
from proxy.cli.command import APP
from proxy.cli.config_command import examined
from proxy.cli.config_file import FILE_NAME
from proxy.cli.doctor.files import usable_again
from proxy.cli.doctor.finding import Finding, Group, Setup, fail, note, ok, warn
from proxy.cli.paths import FOLDER_VARIABLE, config_root
from proxy.config import ConfigError
from proxy.loading import read_file, settings_of, source_of
from proxy.version import __version__

#: Beginnings of messages about a faulty variable, and about an unknown one.
_VARIABLE = re.compile(r"(?:unknown variable )?([A-Z][A-Z0-9_]+)\b(?=:| is |; )")
#: Variables that name the folder, the strongest first; and those of its parent otherwise.
_FOLDERS = (FOLDER_VARIABLE, "XDG_CONFIG_HOME")
_HOMES = ("HOME", "USERPROFILE")
_MEANT = re.compile(r"did you mean ([\w.]+)\?")


def check_program(_setup: Setup) -> Sequence[Finding]:
    return [ok(f"{APP} {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}")]


def check_settings(setup: Setup) -> Sequence[Finding]:
    """Checks for all that would stop a start, and all that it would warn of."""
    path = setup.config_root / FILE_NAME
    try:
        wrong, warnings = examined(setup.context)
    except ConfigError as error:  # the folder is unreadable, or the file is none
        no_folder = error.message.startswith(FOLDER_VARIABLE)
        cure = f"{setup.program} config init" if no_folder else _readable(path, setup)
        return [fail("the settings cannot be read", error.message, cure)]
    found = [fail("a setting would stop a start", line, _cure(line, setup)) for line in wrong]
    found += [warn("a setting has an unexpected effect", line, _cure(line, setup)) for line in warnings]
    if found:
        return found
    return [ok(f"{path} is good") if path.exists() else ok(f"no {path}: defaults and variables count")]


def _readable(path: Path, setup: Setup) -> str:
    barred = next((one for one in (path.parent, path) if not os.access(one, os.R_OK)), None)
    return f"edit {path}" if barred is None else usable_again(barred, setup)


def _cure(message: str, setup: Setup) -> str:
    """The edit that mends a setting, from its message."""
    meant, path = _MEANT.search(message), setup.config_root / FILE_NAME
    variable = None if message.startswith(str(path)) else _VARIABLE.match(message)
    if variable:
        renamed = f", then {setup.export(meant[1], '…')}" if meant else ", or give it a value that fits"
        return setup.unset(variable[1]) + renamed
    return f"edit {path}" + (f": write {meant[1]}" if meant else f", then {setup.program} config check")


def check_folder(setup: Setup) -> Sequence[Finding]:
    """Checks whether the folder is the intended one: without HOME there is none, and a variable may lead to another."""
    if not any(setup.environment.get(name) for name in _HOMES):
        why = f"folders that belong below your home are looked for below {setup.home}"
        return [warn("HOME is not set", why, 'export HOME="$(getent passwd "$(id -u)" | cut -d: -f6)"')]
    variable = next((name for name in _FOLDERS if setup.environment.get(name)), None)
    usual = config_root({name: value for name, value in setup.environment.items() if name != variable})
    if (
        variable is None
        or usual == setup.config_root
        or not _is_used(usual, setup)
        or _is_used(setup.config_root, setup)
    ):
        return []
    why = f"{setup.config_root} has neither settings nor sign-ins, and {variable} leads there"
    return [warn(f"{usual} has settings or sign-ins that do not count", why, setup.unset(variable))]


def _is_used(root: Path, setup: Setup) -> bool:
    credentials = (CredentialFile(root, entry.label).path for entry in setup.context.providers)
    return any(path.exists() for path in (root / FILE_NAME, *credentials))


def check_overridden(setup: Setup) -> Sequence[Finding]:
    """Checks for settings of the file that a variable overrides."""
    if setup.file is None:
        return []
    settings, content = settings_of(setup.context.providers), read_file(setup.file.path)
    in_the_file = [one.name for one in settings if source_of(one.name, {}, content, settings)]
    return [
        note(f"{variable} replaces {name} of {FILE_NAME}", "variables win over the file", setup.unset(variable))
        for name in in_the_file
        if (variable := setup.file.source(name)) not in (None, FILE_NAME)
    ]


SETTINGS = Group("settings", "Settings", (check_program, check_folder, check_settings, check_overridden))
