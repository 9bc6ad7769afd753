"""The output format that OpenAI-style bodies ask for: `response_format` of the chat form, `text.format` of the other,
which does not wrap the schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from proxy.core.convert.openai_fields import needed_text, optional_flag
from proxy.core.convert.openai_mode import Mode, invalid, unsupported
from proxy.core.invalid import InvalidRequest, shown

Format = dict[str, Any]

#: The field of the chat form, and the name of both in the rules of providers.
FIELD = "response_format"


def answer_format(value: Any, path: str, *, wrapped: bool) -> Format | None:
    """The hub's output format, None for plain text. Raises InvalidRequest.

    wrapped  whether the schema is in a member of its own
    """
    if not isinstance(value, Mapping):
        raise invalid(path, "must be an object")
    kind = value.get("type")
    if not isinstance(kind, str):
        raise invalid(f"{path}.type", "must be a string")
    if kind not in _KINDS:
        rule = f"must be {' or '.join(_KINDS)} for this model, not {shown(kind)}"
        raise InvalidRequest(f"`{path}.type` {rule}", param=f"{path}.type", code="unsupported_value")
    return _KINDS[kind](value, path, wrapped)


def _schema(value: Mapping[str, Any], path: str, wrapped: bool) -> Format:
    if wrapped:
        path, value = f"{path}.json_schema", value.get("json_schema")  # type: ignore[assignment]
    if not isinstance(value, Mapping):
        raise invalid(path, "must be an object")
    schema = value.get("schema")
    if not isinstance(schema, dict):
        raise invalid(f"{path}.schema", "must be an object")
    strict = optional_flag(value.get("strict"), f"{path}.strict")
    # `strict` is always set, even to null: the caller decides, so the schema is not changed
    return {"type": "json_schema", "name": needed_text(value, "name", path), "schema": schema, "strict": strict}


_KINDS: dict[str, Callable[[Mapping[str, Any], str, bool], Format | None]] = {
    "text": lambda _value, _path, _wrapped: None,
    "json_object": lambda _value, _path, _wrapped: {"type": "json_object"},
    "json_schema": _schema,
}


def ask_for_format(mode: Mode, value: Any, path: str, *, wrapped: bool) -> None:
    """Passes the format on. It becomes a part of the prompt, and is noted, if the upstream cannot enforce it."""
    form = answer_format(value, path, wrapped=wrapped)
    if form is None:
        return
    mode.config["format"] = form
    if form["type"] not in mode.rules.formats:
        mode.leave_out(path)


def chat_format(mode: Mode, value: Any) -> None:
    """Reads `response_format` of a chat body. Raises InvalidRequest."""
    if not mode.lenient and FIELD not in mode.rules.always:
        raise unsupported(FIELD)
    ask_for_format(mode, value, FIELD, wrapped=True)


def text_member(mode: Mode, value: Any) -> None:
    """Reads `text` of a Responses body: the format of the answer, and its verbosity. Raises InvalidRequest."""
    if not mode.lenient and not _is_plain(value) and not (isinstance(value, dict) and FIELD in mode.rules.always):
        raise unsupported("text", value)
    if not isinstance(value, dict):
        raise invalid("text", "must be an object")
    mode.check_keys(value, frozenset({"format", "verbosity"}), "text")
    if value.get("format") is not None:
        ask_for_format(mode, value["format"], "text.format", wrapped=False)
    if value.get("verbosity") is not None:
        mode.hint("verbosity", value["verbosity"], "text.verbosity")


def _is_plain(value: Any) -> bool:
    """Whether `text` asks only for prose; verbosity is a wish that only some models know."""
    if not isinstance(value, dict) or any(value[key] is not None for key in value.keys() - {"format", "verbosity"}):
        return False
    form = value.get("format")
    return form is None or (isinstance(form, dict) and form.get("type") == "text")
