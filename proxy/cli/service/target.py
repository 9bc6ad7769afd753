"""Which program a service starts, and with which folders."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import proxy
from proxy.cli.command import Context
from proxy.cli.paths import FOLDER_VARIABLE, config_root, state_root
from proxy.config import ConfigError
from proxy.loading import settings_of

#: Our variables for folders. All others are left to config.json, or to a file of variables.
FOLDERS = (FOLDER_VARIABLE, "XDG_CONFIG_HOME", "XDG_STATE_HOME")
#: System variables that decide how requests go out.
OUTGOING = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")


@dataclass(frozen=True, slots=True)
class ServiceTarget:
    """The program to run.

    python       the interpreter
    code         the folder that `proxy` is imported from, None when the interpreter finds it by itself
    environment  of the user who installs
    uid          his number; 0 where there are none
    unsaid       names of variables that apply here, and would not for the service
    """

    program: str
    python: Path
    code: Path | None
    environment: Mapping[str, str]
    home: Path
    config: Path
    state: Path
    uid: int
    unsaid: tuple[str, ...]

    @property
    def command(self) -> tuple[str, ...]:
        """The command, without the current directory on its path: a folder `proxy` there is not this program."""
        return (str(self.python), "-P", "-m", "proxy", "serve", "--no-monitor")

    @property
    def variables(self) -> dict[str, str]:
        """The variables that the service needs."""
        folders = {name: self.environment[name] for name in FOLDERS if self.environment.get(name)}
        return folders | ({"PYTHONPATH": str(self.code)} if self.code else {})


def target_of(context: Context, platform: str = sys.platform) -> ServiceTarget:
    """The running program, and the folders of this user. Raises ConfigError for what no service can start."""
    environment = context.environment
    code = Path(proxy.__file__).parents[1]
    target = ServiceTarget(
        context.program,
        Path(sys.executable),
        None if code in map(Path, sysconfig.get_paths().values()) else code,
        environment,
        Path(environment.get("HOME") or environment.get("USERPROFILE") or "/"),
        config_root(environment, platform),
        state_root(environment, platform),
        os.getuid() if hasattr(os, "getuid") else 0,
        _unsaid(context),
    )
    _check(target)
    return target


def _unsaid(context: Context) -> tuple[str, ...]:
    """Variables of this shell that apply here and would not in a service. Some hold keys, and a service's description
    can be read by all users."""
    ours = {name for setting in settings_of(context.providers) for name in setting.variables}
    known = {*ours, *OUTGOING, *map(str.lower, OUTGOING)}
    return tuple(sorted(name for name in known if context.environment.get(name)))


def _check(target: ServiceTarget) -> None:
    texts = (*target.command, *target.variables.values(), str(target.config), str(target.state))
    if any(not text.isprintable() for text in texts):
        raise ConfigError("a service cannot use a path with unprintable characters")
    for name in FOLDERS:
        value = target.environment.get(name)
        if value and not Path(value).is_absolute():
            raise ConfigError(f"{name}: expected an absolute path, since a service starts in another folder")
