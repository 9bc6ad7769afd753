"""The file of the history, as commands use it, and what to do when it cannot be."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from proxy.cli.command import Context
from proxy.cli.config_file import ConfigFile
from proxy.cli.paths import state_root
from proxy.config import ConfigError
from proxy.errors import ProxyError
from proxy.observe.history.problems import NewerHistory, problem_of
from proxy.observe.history.schema import FILE_NAME, reading

Found = TypeVar("Found")


def path_of(context: Context) -> Path:
    return state_root(context.environment) / FILE_NAME


def read(context: Context, query: Callable[[sqlite3.Connection], Found]) -> Found:
    """The answer of a query, of one state of the file. Raises ConfigError where there is no file, or none that can be
    used."""
    path = path_of(context)
    try:
        with reading(path) as db:
            return query(db)
    except FileNotFoundError:
        raise ConfigError(_missing(path, context)) from None
    except (sqlite3.Error, OSError, NewerHistory) as error:
        raise ConfigError(unusable(path, error)) from None


def unusable(path: Path, error: Exception) -> str:
    """Why the file cannot be used, and what to do."""
    return f"the history {path} cannot be used: {problem_of(error)}"


def _missing(path: Path, context: Context) -> str:
    return f"no history in {path} yet. {why_empty(context)}"


def why_empty(context: Context) -> str:
    """Why there may be no requests in the history."""
    try:
        kept = ConfigFile(context, new=True).config.history
    except ProxyError:
        kept = True  # other commands say what is wrong with the settings
    if kept:
        return "A proxy writes each request that it serves"
    return "It is off: set history.enabled to true (or PROXY_HISTORY=1), and start the proxy again"
