"""The shapes of error bodies in use, as one error object.

An error object has some of `message`, `type`, `code`, `param` and `status`. Foreign markup is never among its words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from proxy.core.hiding.texts import MAX_WORDS

#: A plain text that is longer is no explanation.
MAX_PLAIN = 500
_MARKUP = re.compile(r"<[A-Za-z!/?]")
_PAGE = re.compile(r"\s*<(?:!doctype|html|head|body|\?xml)\b", re.IGNORECASE)

ErrorObject = Mapping[str, Any]

#: What an error event may have beside its error object.
_BESIDE = ("status", "status_code", "http_status", "headers", "retry_after", "retry_after_seconds")
#: A machine's word among the words for people.
_MARKER = re.compile(r" ?\[WKE=([\w:./-]{1,200})\]")


def error_of_body(body: bytes) -> ErrorObject:
    """The error object of a body: JSON in any of the shapes, or a short plain text; {} for anything else (an HTML page
    of some box on the way).

    >>> error_of_body(b'{"detail": [{"loc": ["body", "input", 0], "msg": "Field required"}]}')
    {'message': 'input[0]: Field required', 'param': 'input[0]'}
    >>> error_of_body(b'no healthy upstream'), error_of_body(b'<html>'), error_of_body(b'{}')
    ({'message': 'no healthy upstream'}, {}, {})
    """
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return _plain(text)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return error_of_value(value) or {}


def error_event(data: bytes, load: Callable[[bytes], Any] = json.loads) -> dict[str, Any]:
    """An event that only its name in the stream calls an error, as one that says so itself. `load` reads it.

    >>> error_event(b'{"type": "overloaded_error", "message": "busy"}')
    {'type': 'error', 'error': {'type': 'overloaded_error', 'message': 'busy'}}
    """
    try:
        value = load(data)
    except (ValueError, RecursionError):
        value = None
    return error_event_of(value) if isinstance(value, dict) else _event({}, error_of_body(data[:MAX_WORDS]))


def error_event_of(event: dict[str, Any]) -> dict[str, Any]:
    """The same for JSON that was read."""
    return event if str(event.get("type")).startswith("response.") else _event(event, error_of_value(event) or {})


def _event(event: Mapping[str, Any], error: ErrorObject) -> dict[str, Any]:
    words = {name: member for name, member in error.items() if (name, member) != ("type", "error")}
    return {**{name: event[name] for name in _BESIDE if name in event}, "type": "error", "error": words}


def error_of_value(value: Any) -> ErrorObject | None:
    """The error object of a JSON value, None when it has none, or a page in place of words."""
    if isinstance(value, str):
        packed = _packed(value)
        return (_plain(value) if packed is None else packed) or None
    if not isinstance(value, Mapping):
        return None
    error = error_object(value)
    if error is None and _says(value.get("message")):
        error = value
    for name in ("detail", "errors", "error"):
        error = _detail(value.get(name)) if error is None else error
    return None if error is None or is_page(error.get("message")) else error


def error_object(holder: Mapping[str, Any]) -> ErrorObject | None:
    """The `error` member as an object. An error that is only a text is its message, or JSON that was packed once too
    often; its code stands beside it.

    >>> error_object({"code": "permission-denied", "error": "no access"})
    {'code': 'permission-denied', 'message': 'no access'}
    """
    error = holder.get("error")
    if isinstance(error, str) and error:
        beside = {name: holder[name] for name in ("code", "param") if holder.get(name) is not None}
        packed = _packed(error)
        return {**beside, "message": error} if packed is None else packed
    return error if isinstance(error, dict) else None


def with_code(error: ErrorObject) -> ErrorObject:
    """The error with the code that a machine can read: a marker among its words is one, a sentence is none.

    >>> with_code({"code": 429, "message": "No credits. [WKE=personal-team-blocked:spending-limit]"})
    {'code': 'personal-team-blocked:spending-limit', 'message': 'No credits.'}
    >>> with_code({"code": "Not now", "message": "Try later."})
    {'code': None, 'message': 'Not now: Try later.'}
    """
    message, code = error.get("message"), error.get("code")
    words = message if isinstance(message, str) else ""
    marker = _MARKER.search(words)
    if marker is not None:
        return {**error, "code": marker[1], "message": _MARKER.sub("", words).strip()}
    if not isinstance(code, str) or " " not in code.strip():
        return error
    sentence = code.strip()
    if sentence not in words:
        words = f"{sentence.rstrip('.:')}: {words}" if words.strip() else sentence
    return {**error, "code": None, "message": words}


def is_page(words: Any) -> bool:
    """Whether the words are markup of some box on the way."""
    return _PAGE.match(str(words)) is not None


def _packed(text: str) -> ErrorObject | None:
    """The error in a text that is JSON itself, {} when it has none; None for any other text."""
    if len(text) > MAX_WORDS or text.lstrip()[:1] not in ("{", '"'):
        return None
    try:
        return error_of_value(json.loads(text)) or {}
    except (ValueError, RecursionError):
        return None


def _detail(detail: Any) -> ErrorObject | None:
    """The words of `{"detail": …}`: a text, an object with an error or a code, or a list of what is wrong where."""
    if isinstance(detail, str):
        return {"message": detail} if detail.strip() else None
    if isinstance(detail, list):
        return _faults(detail)
    if not isinstance(detail, Mapping) or _says(detail.get("message")):
        return detail if isinstance(detail, Mapping) else None
    code = detail.get("code")
    named = {**detail, "message": f"the upstream refused: {code}"} if _says(code) else None
    return error_object(detail) or _faults([detail]) or named


def _faults(entries: list[Any]) -> ErrorObject | None:
    found = [fault for entry in entries if (fault := _fault(entry))]
    if not found:
        return None
    message = "; ".join(f"{place}: {words}" if place else words for place, words in found)
    return {"message": message, **({"param": found[0][0]} if found[0][0] else {})}


def _fault(entry: Any) -> tuple[str, str] | None:
    """Place and words of one entry of such a list."""
    if _says(entry):
        return "", entry
    if not isinstance(entry, Mapping):
        return None
    words = entry.get("msg", entry.get("message"))
    place = entry.get("loc")
    steps = place if isinstance(place, list) else []
    steps = steps[1:] if steps[:1] == ["body"] else steps
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")
    return (where, words) if isinstance(words, str) and words else None


def _says(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _plain(text: str) -> dict[str, str]:
    words = " ".join(text[:MAX_WORDS].split())
    shown = 0 < len(words) <= MAX_PLAIN and words.isprintable() and not _MARKUP.search(words)
    return {"message": words} if shown else {}
