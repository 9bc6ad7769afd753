"""The paths of files, on each platform."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from proxy.cli.command import APP

#: Names the folder of settings and credentials.
FOLDER_VARIABLE = "PROXY_CONFIG_DIR"


def config_root(environment: Mapping[str, str], platform: str = sys.platform) -> Path:
    """The folder of `config.json` and the credentials."""
    if environment.get(FOLDER_VARIABLE):
        return Path(environment[FOLDER_VARIABLE])
    if platform == "win32":
        return Path(environment.get("APPDATA") or _home(environment) / "AppData" / "Roaming") / APP
    base = environment.get("XDG_CONFIG_HOME") if platform != "darwin" else None
    return Path(base or _home(environment) / ".config") / APP


def state_root(environment: Mapping[str, str], platform: str = sys.platform) -> Path:
    """The folder of the log and of error captures."""
    if platform == "win32":
        return Path(environment.get("LOCALAPPDATA") or _home(environment) / "AppData" / "Local") / APP
    return Path(environment.get("XDG_STATE_HOME") or _home(environment) / ".local" / "state") / APP


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HOME") or environment.get("USERPROFILE") or "/")
