"""Makes nested values fit to be shown at a level: without secrets, within bounds, and nothing that JSON cannot hold.

Values are judged by type (a `Secret`, bytes, an exception), by the key they stand under and by what stands beside
them; texts by what they look like. In captures prompts, tool results and the words of a model stay.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from proxy.core.hiding.keys import (
    KNOWN_RULES,
    MAX_NAME,
    Hides,
    Level,
    encoded_members,
    folded,
    is_secret_header,
    is_sign_in_header,
    rule_of,
)
from proxy.core.hiding.secret import BLANK, Secret, length_note
from proxy.core.hiding.texts import redacted_error, redacted_text
from proxy.core.sse import dump_json, load_json

#: Objects and lists this deep are left out, which also ends a structure that holds itself.
MAX_DEPTH, MAX_CAPTURE_DEPTH = 6, 100
#: Values that a log or a report looks at: an accidental list of a million entries must not keep the interpreter busy.
MAX_VALUES = 10_000
#: A longer whole number is a mistake, and past 4,300 digits Python refuses to print it.
MAX_INT_BITS = 4_000

#: Modules of types whose text is harmless and says more than their type name would: paths, UUIDs, dates.
_TEXTUAL = frozenset({"pathlib", "uuid", "datetime"})
#: What holds schemas by name: one called `email` is no address.
_SCHEMAS = frozenset({"properties", "patternproperties", "$defs", "definitions"})
#: The code of an error, which is no authorization code.
_ERROR_CODE = re.compile(r"[a-z][a-z0-9_.-]{0,63}\Z")
#: A member whose text is JSON: the input of a tool on the wires of OpenAI.
_JSON_TEXT = "arguments"
#: Shorter values of headers that sign in are not looked for: `unused` is a word.
MIN_SECRET = 12

_NUMBERS = frozenset({int, float, bool, type(None)})


def redacted(value: Any, level: Level = Level.CAPTURE, text: Callable[[str], str] = redacted_text) -> Any:
    """A copy of dicts, lists, texts, numbers, booleans and None only. `text` hides what is secret in a text.

    >>> redacted({"image_url": {"url": "DATA:IMAGE/PNG;base64,AAAA"}})
    {'image_url': {'url': '[redacted data-url len=26]'}}
    >>> redacted({"source": {"type": "BASE64", "data": "QUJD"}, "data": "plain"})
    {'source': {'type': 'BASE64', 'data': '[redacted len=4]'}, 'data': 'plain'}
    >>> redacted({"Authorization": "Bearer abc", "bytes": b"1234", "sizes": (1, 2)}, Level.LOG)
    {'Authorization': '[redacted len=10]', 'bytes': '[bytes len=4]', 'sizes': [1, 2]}
    """
    return _Pass(level, text).value(value, 0, "")


def redacted_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str | list[str]]:
    """Headers by name for a capture; a list where one came more than once.

    >>> redacted_headers([("X-Api-Key", "abc"), ("x-claude-code-session-id", "s")])
    {'X-Api-Key': '[redacted len=3]', 'x-claude-code-session-id': 's'}
    """
    result: dict[str, str | list[str]] = {}
    for name, value in headers:
        shown = length_note(value) if is_secret_header(name) else redacted_error(value)
        known = result.get(name)
        if known is None:
            result[name] = shown
        else:
            result[name] = [*(known if isinstance(known, list) else [known]), shown]
    return result


def secrets_of(headers: Iterable[tuple[str, str]]) -> list[str]:
    """The credentials in headers by which a caller or we ourselves sign in, without the word before them.

    >>> secrets_of([("Authorization", "Bearer abcdefghijkl"), ("x-api-key", "unused"), ("a", "b")])
    ['abcdefghijkl']
    """
    values = (value.split()[-1:] for name, value in headers if is_sign_in_header(name))
    return [secret for found in values for secret in found if len(secret) >= MIN_SECRET]


class _Pass:
    """One pass over one value; knows how many values it may still look at."""

    def __init__(self, level: Level, text: Callable[[str], str]) -> None:
        self._level = level
        self._text = text
        self._json_text = None if level is Level.LOG else _JSON_TEXT
        is_capture = level is Level.CAPTURE
        self._depth = MAX_CAPTURE_DEPTH if is_capture else MAX_DEPTH
        self._left = sys.maxsize if is_capture else MAX_VALUES

    def value(self, value: Any, depth: int, key: str) -> Any:
        """The value as it is shown. `key` is what it stands under, folded."""
        kind = type(value)
        if kind is str:  # most values; the checks below cost more
            return self._text(value) if key != self._json_text else self._json(value, depth)
        if kind in _NUMBERS:
            return _number(value)
        if kind is dict or isinstance(value, Mapping):
            return self._mapping(value, depth, key)
        if isinstance(value, list | tuple):
            return self._sequence(value, depth, key)
        if self._level is not Level.CAPTURE:  # which has plain data
            if isinstance(value, set | frozenset):
                return self._sequence(value, depth, key)
            if is_dataclass(value) and not isinstance(value, type | BaseException):
                members = {field.name: getattr(value, field.name, None) for field in fields(value)}
                return self._mapping(members, depth, key)
        return self._leaf(value)

    def _mapping(self, value: Mapping[Any, Any], depth: int, key: str) -> Any:
        if depth >= self._depth:
            return "[depth-limit]"
        result: dict[str, Any] = {}
        encoded: frozenset[str] | None = None
        items = self._within(value.items())
        text, known, value_of = self._text, KNOWN_RULES[self._level], self.value
        for member, inner in items:
            name = member if type(member) is str else str(self._leaf(member))
            shown = text(name)
            short, rule = known(name) if len(name) <= MAX_NAME else rule_of(name, self._level)
            if rule is None:  # most keys
                result[shown] = value_of(inner, depth + 1, short)
                continue
            if rule is Hides.MEMBER and encoded is None:
                encoded = encoded_members({folded(str(other)): one for other, one in items}, key)
            hides = _is_hidden(rule, short, inner, key, encoded, value)
            result[shown] = self._hidden(rule, inner, depth + 1) if hides else value_of(inner, depth + 1, short)
        if self._left < 0 and len(items) < len(value):
            result["…"] = "[size-limit]"
        return result

    def _sequence(self, value: Collection[Any], depth: int, key: str) -> Any:
        if depth >= self._depth:
            return "[depth-limit]"
        items = self._within(value)
        if len(items) == 2 and isinstance(items[0], str) and rule_of(items[0], self._level)[1] is Hides.GONE:
            return [items[0], self._hidden(Hides.GONE, items[1], depth)]  # a header as a pair
        result = [self.value(item, depth + 1, key) for item in items]
        return [*result, "[size-limit]"] if self._left < 0 and len(items) < len(value) else result

    def _within(self, values: Collection[Any]) -> list[Any]:
        """Those that may be shown; a copy in one step, since the owner may still add to them meanwhile."""
        items = list(values)
        self._left -= len(items)
        return items if self._left >= 0 else items[: self._left]

    def _hidden(self, rule: Hides, value: Any, depth: int) -> Any:
        if rule is Hides.CONTENT:
            length = len(value) if isinstance(value, str) else len(dump_json(self.value(value, depth, "")))
            return f"[left out, len={length}]"
        if isinstance(value, str):
            return length_note(value)
        if isinstance(value, Secret):
            return repr(value)
        return BLANK if rule in (Hides.GONE, Hides.LIST) else self._shape(rule, value, depth)

    def _shape(self, rule: Hides, value: Any, depth: int) -> Any:
        """The shape of a hidden value. What reads it again needs it."""
        if value is None or isinstance(value, bool):
            return value
        if depth < self._depth:
            if isinstance(value, Mapping):
                items = self._within(value.items())
                return {self._text(str(name)): self._hidden(rule, inner, depth + 1) for name, inner in items}
            if isinstance(value, list | tuple):
                return [self._hidden(rule, inner, depth + 1) for inner in self._within(value)]
        return BLANK

    def _json(self, text: str, depth: int) -> str:
        """A text that is JSON: as it was, where there is nothing to hide in what it says."""
        try:
            said = load_json(text)
        except (ValueError, RecursionError):
            return self._text(text)  # a part of it, or none
        shown = self.value(said, depth, "")
        text = text if shown == said else dump_json(shown)
        return text if self._level is Level.CAPTURE else self._text(text)

    def _leaf(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if value is None or isinstance(value, bool | int | float):
            return _number(value)
        if isinstance(value, Secret):
            return repr(value)
        if isinstance(value, bytes | bytearray | memoryview):
            return f"[bytes len={memoryview(value).nbytes}]"
        if self._level is not Level.CAPTURE:
            if isinstance(value, BaseException):
                return self._text(_exception(value))
            if str(type(value).__module__).partition(".")[0] in _TEXTUAL:
                return self._text(str(value))
        return f"[{type(value).__name__}]"  # the repr of a response or a request shows its headers


def _is_hidden(
    rule: Hides, name: str, value: Any, key: str, encoded: frozenset[str] | None, beside: Mapping[Any, Any]
) -> bool:
    match rule:
        case Hides.GONE:
            return True
        case Hides.SECRET:
            is_schema = key in _SCHEMAS and isinstance(value, Mapping)
            return not is_schema and not (name == "code" and _is_error_code(value, beside))
        case Hides.ENDING:
            return isinstance(value, str | list | tuple)
        case Hides.LIST:
            return isinstance(value, list | tuple)
        case Hides.DATA:
            return isinstance(value, str)
        case Hides.MEMBER:
            return isinstance(value, str) and name in (encoded or ())
        case Hides.CONTENT:
            return value is not None and not isinstance(value, int | float)


def _is_error_code(value: Any, beside: Mapping[Any, Any]) -> bool:
    return isinstance(value, str) and isinstance(beside.get("message"), str) and bool(_ERROR_CODE.match(value))


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
