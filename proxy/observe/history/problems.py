"""Why the file of the history cannot be used, and what to do about it."""

from __future__ import annotations

import sqlite3

from proxy.errors import PROGRAM


class NewerHistory(Exception):
    """The file is of a newer version of this program."""


def is_damaged(error: Exception) -> bool:
    """Whether the file is no database any more."""
    is_value = isinstance(error, UnicodeDecodeError)
    return is_value or (isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError))


def is_full(error: Exception) -> bool:
    """Whether the disk is full."""
    return isinstance(error, sqlite3.OperationalError) and "full" in str(error)


def problem_of(error: Exception) -> str:
    """Why the file cannot be used, and what to do."""
    return f"{reason_of(error)}. {_cure(error)}"


def reason_of(error: Exception) -> str:
    """Why the file cannot be used."""
    if isinstance(error, NewerHistory):
        return f"a newer version of this program wrote it: {error}"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return f"it is damaged ({error})" if is_damaged(error) else str(error)


def _cure(error: Exception) -> str:
    if isinstance(error, NewerHistory):
        return "Use that version, or put the file elsewhere; a new one is made"
    if is_damaged(error):
        return f"`{PROGRAM} history clear` removes it, and a new one is made; nothing can be read of it"
    if is_full(error):
        return f"Make room on its disk; `{PROGRAM} history clear` removes all of it"
    if "locked" in str(error) or "busy" in str(error):
        return "Another process writes it; try again"
    return "Its owner must be able to read and write it and its folder"
