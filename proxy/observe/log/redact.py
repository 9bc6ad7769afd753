"""Makes nested values fit for a log: no credentials, no endless texts, nothing JSON cannot hold.

Pure functions: no I/O, no clock. Values are judged by type (a `Secret`, bytes, an exception), by the name of the key
they stand under, and texts by the query parameters and sign-ins of the URLs inside them. Prose is not searched for
things that look like credentials: code that holds one keeps it in a `Secret`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from functools import lru_cache
from pathlib import PurePath
from typing import Any
from urllib.parse import unquote_plus
from uuid import UUID

from proxy.core.secret import Secret, blanked_beginning

#: Keys whose values never reach a file, at any depth. Compared in lower case with `-` as `_`: log fields are keyword
#: arguments, so a `set-cookie` header arrives as `set_cookie`.
SECRET_KEYS = frozenset(
    {
        "authorization",
        "proxy_authorization",
        "access",
        "access_token",
        "refresh",
        "refresh_token",
        "id_token",
        "code",
        "code_verifier",
        "chatgpt_account_id",
        "cookie",
        "set_cookie",
        "x_api_key",
        "apikey",
        "api_key",
    }
)

#: The value handed in is depth 0, what it holds is depth 1, and so on; also the end of a structure that holds itself.
MAX_DEPTH = 6

#: Longer texts are cut, in bytes of UTF-8.
MAX_TEXT_BYTES = 4_000
#: No character of UTF-8 takes more.
_CHAR_BYTES = 4

#: Values in one record. An accidental list of a million entries must not keep the interpreter busy.
MAX_VALUES = 10_000

#: A whole number above this many bits is a mistake, and past 4,300 digits Python refuses to print it.
MAX_INT_BITS = 256

#: One file-name part: half of what common file systems allow, so a prefix and a suffix always fit.
MAX_NAME = 160

#: Types whose text is harmless and tells more than their type name would.
TEXTUAL = (PurePath, UUID, date)

#: What is looked at of a caller's query, in characters, and in parameters; those whose values are shown.
MAX_QUERY, MAX_PARAMETERS = 1_000, 20
SHOWN_PARAMETERS = frozenset({"beta", "limit", "after_id", "before_id", "provider", "client_version"})
_PLAIN_VALUE, _PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]{0,40}"), re.compile(r"[a-z_]{1,24}")

_PARAMETER = re.compile(r"(?:^|[?&#;])([^\s?&#;=\"'<>]{1,64})=")
_PARAMETER_VALUE = re.compile(r"[^&#\s\"'<>]*")
_URL_SIGN_IN = re.compile(r"(?<=://)[^/\s?#@]+@")
_UNSAFE_IN_NAME = re.compile(r"[^A-Za-z0-9._-]")


def is_secret_key(name: str) -> bool:
    """Whether a value under this name must not be shown."""
    return _is_secret_name(name) if len(name) <= MAX_NAME else _is_secret(name)


def _is_secret(name: str) -> bool:
    return name.strip().lower().replace("-", "_") in SECRET_KEYS


#: The names of fields are always the same.
_is_secret_name = lru_cache(maxsize=1024)(_is_secret)


def redact(value: Any, *, max_text: int | None = MAX_TEXT_BYTES) -> Any:
    """A copy made of dicts, lists, texts, numbers, booleans and None only. `max_text=None` keeps texts whole.

    >>> redact({"Authorization": "Bearer abc", "bytes": b"1234", "sizes": (1, 2)})
    {'Authorization': '[redacted len=10]', 'bytes': '[bytes len=4]', 'sizes': [1, 2]}
    """
    return _Redaction(max_text).value(value, 0)


def redact_text(text: str, is_secret: Callable[[str], bool] = is_secret_key) -> str:
    """The text without the values of secret query parameters and without `user:password@` of URLs.

    is_secret  judges the name of a parameter

    >>> redact_text("GET /callback?state=1&code=abc")
    'GET /callback?state=1&code=[redacted len=3]'
    """
    if "@" in text and "://" in text:
        text = _URL_SIGN_IN.sub("[redacted]@", text)
    return _redact_parameters(text, is_secret) if "=" in text else text


def _redact_parameters(text: str, is_secret: Callable[[str], bool]) -> str:
    """A text may also be a bare query, so its very beginning counts like the place after a `?`."""
    parts: list[str] = []
    done = 0
    for found in _PARAMETER.finditer(text):
        if found.start() < done or not is_secret(unquote_plus(found[1])):
            continue
        value = _PARAMETER_VALUE.match(text, found.end())
        end = value.end() if value else found.end()
        parts += text[done : found.end()], f"[redacted len={end - found.end()}]"
        done = end
    return "".join(parts) + text[done:]


def shown_query(query: str) -> str:
    """The query of a caller, of which only parameters that are known are shown: clients put keys into it under many
    names, or none.

    >>> shown_query("beta=true&key=abc&sk-abc")
    'beta=true&key=[redacted len=3]&[redacted len=6]'
    """
    parts = query[:MAX_QUERY].split("&", MAX_PARAMETERS)
    return "&".join(_shown_parameter(part) for part in parts[:MAX_PARAMETERS] if part)


def _shown_parameter(part: str) -> str:
    name, separator, value = part.partition("=")
    if name in SHOWN_PARAMETERS and _PLAIN_VALUE.fullmatch(value):
        return part
    return (
        f"{name}=[redacted len={len(value)}]"
        if separator and _PLAIN_NAME.fullmatch(name)
        else f"[redacted len={len(part)}]"
    )


def cut_text(text: str, max_bytes: int) -> str:
    """The text, or as many whole characters as fit into `max_bytes` and a note of how many bytes are missing."""
    if len(text) * _CHAR_BYTES <= max_bytes:
        return text
    data = text.encode("utf-8", "replace")
    if len(data) <= max_bytes:
        return text
    # blanked before it is cut: half a secret is found no more
    kept = blanked_beginning(text, max_bytes).encode("utf-8", "replace")[:max_bytes].decode("utf-8", "ignore")
    return f"{kept}… [+{len(data) - len(kept.encode())} bytes]"


def safe_name(part: str) -> str:
    """A file-name part from any text, such as a session id a client made up.

    Never empty, never `.` or `..`, so it cannot lead out of its directory.

    >>> safe_name("a/b"), safe_name(".."), safe_name("")
    ('a_b', '_..', 'unknown')
    """
    name = _UNSAFE_IN_NAME.sub("_", part[:MAX_NAME])
    if not name:
        return "unknown"
    return f"_{name}"[:MAX_NAME] if not name.strip(".") else name


_NUMBERS = frozenset({int, float, bool, type(None)})


class _Redaction:
    """One pass over one record; knows how many values it may still look at."""

    def __init__(self, max_text: int | None) -> None:
        self._max_text = max_text
        self._short = (MAX_TEXT_BYTES if max_text is None else max_text) // _CHAR_BYTES
        self._left = MAX_VALUES

    def value(self, value: Any, depth: int) -> Any:
        if depth > MAX_DEPTH:
            return "[depth-limit]"
        self._left -= 1
        kind = type(value)
        if kind is str:  # most values; the checks below cost more
            return self._text(value)
        if kind in _NUMBERS:
            return _number(value)
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return self._mapping(value.items(), depth)
        if isinstance(value, list | tuple | set | frozenset):
            return self._sequence(value, depth)
        if is_dataclass(value) and not isinstance(value, type | BaseException):
            return self._mapping([(f.name, getattr(value, f.name, None)) for f in fields(value)], depth)
        return self._leaf(value)

    def _mapping(self, items: Iterable[tuple[Any, Any]], depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in list(items):  # a copy in one step: the owner may still add to its dict meanwhile
            if self._left <= 0:
                result["…"] = "[size-limit]"
                break
            name = self._text(key) if type(key) is str else str(self._leaf(key))
            result[name] = self._hidden(value) if is_secret_key(name) else self.value(value, depth + 1)
        return result

    def _sequence(self, values: Iterable[Any], depth: int) -> list[Any]:
        items = list(values)
        if len(items) == 2 and isinstance(items[0], str) and is_secret_key(items[0]):
            return [items[0], self._hidden(items[1])]  # a header as a pair
        result: list[Any] = []
        for item in items:
            if self._left <= 0:
                result.append("[size-limit]")
                break
            result.append(self.value(item, depth + 1))
        return result

    def _hidden(self, value: Any) -> str:
        self._left -= 1
        if isinstance(value, Secret):
            return repr(value)
        return f"[redacted len={len(value)}]" if isinstance(value, str) else "[redacted]"

    def _leaf(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if value is None or isinstance(value, bool | int | float):
            return _number(value)
        if isinstance(value, Secret):
            return repr(value)
        if isinstance(value, bytes | bytearray | memoryview):
            return f"[bytes len={memoryview(value).nbytes}]"
        if isinstance(value, BaseException):
            return self._text(_exception(value))
        if isinstance(value, TEXTUAL):
            return self._text(str(value))
        return f"[{type(value).__name__}]"  # the repr of a response or a request shows its headers

    def _text(self, text: str) -> str:
        if len(text) <= self._short and "=" not in text and "@" not in text:  # nothing to cut, nothing to hide
            return text
        # Cut first: what is thrown away needs no search. What remains of a secret is still found by its name.
        return redact_text(text if self._max_text is None else cut_text(text, self._max_text))


def _number(value: int | float | None) -> int | float | str | None:
    """JSON has neither infinities nor NaN; they become texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and value.bit_length() > MAX_INT_BITS:
        return f"[int bits={value.bit_length()}]"
    return value


def _exception(error: BaseException) -> str:
    """Type and first line: the rest of a message is often a whole answer."""
    name = type(error).__name__
    try:
        lines = str(error).strip().splitlines()
    except Exception:  # a broken __str__ is no reason to lose the record
        return name
    return f"{name}: {lines[0]}" if lines else name
