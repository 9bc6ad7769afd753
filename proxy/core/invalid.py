"""Errors of the core for requests that cannot be served, and the form in which errors repeat a caller's text."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping
from typing import Any

from proxy.core.hiding.secret import blanked_beginning

#: Characters of a caller's own text (names of members and tools, ids, values) that an error repeats. A name may have a
#: megabyte.
MAX_SHOWN = 200

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = MAX_SHOWN
_REPR.maxlevel = 3


def cut(text: str, most: int = MAX_SHOWN) -> str:
    """The text as an error repeats it: at most `most` characters.

    >>> cut("temperature"), len(cut("x" * 1000)), cut("temperature", 5)
    ('temperature', 200, 'temp…')
    """
    return text if len(text) <= most else f"{blanked_beginning(text, most - 1)}…"


def shown(value: Any) -> str:
    """A value as an error repeats it. Only the beginning of a large one is read.

    >>> shown("custom"), shown(["a", 1]), shown(True)
    ("'custom'", "['a', 1]", 'true')
    """
    return json.dumps(value) if value is None or isinstance(value, bool) else cut(_REPR.repr(value))


def visible(text: str) -> str:
    """The text as a terminal can show it: what moves the cursor or cannot be encoded is escaped as in JSON.

    >>> visible("a\\x1b[31m"), visible("\\ud800"), visible("é")
    ('a\\\\u001b[31m', '\\\\ud800', 'é')
    """
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


class InvalidRequest(ValueError):
    """The request is wrong. The server answers 400 in the caller's own format.

    param    the offending member, as OpenAI names it: `messages[0].content`
    code     a machine-readable word of the OpenAI family, e.g. unsupported_parameter
    details  what the Messages family adds for programs, e.g. {"error_code": "thread_unsupported_request"}
    """

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code
        self.details = details


class TooLarge(InvalidRequest):
    """The request is too large. The server answers 413."""
