"""P1's own chat request parser, for strict mode: text-only conversations with a fixed list of fields. Lenient mode
reads chat bodies as for any provider, by the rules here. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from proxy.core.convert.chat_request_to_messages import ANSWER_KEYS
from proxy.core.convert.openai_fields import needed_text, objects_of, optional_flag
from proxy.core.convert.openai_formats import FIELD, answer_format
from proxy.core.convert.openai_mode import invalid
from proxy.core.ingress import PLAIN_SEARCH, Ingress, IngressRules
from proxy.core.invalid import InvalidRequest, cut, shown
from proxy.core.messages import MAX_MESSAGES

Members = Mapping[str, Any]

#: The reasoning effort of a chat request that names none.
DEFAULT_EFFORT = "medium"
EFFORTS = ("none", "low", "medium", "high", "xhigh", "max")
MAX_USER_BYTES = 64

#: The effort `none` is requested by sending none.
RULES = IngressRules(
    efforts=EFFORTS,
    effort=DEFAULT_EFFORT,
    unsent="none",
    hosted={"web_search": PLAIN_SEARCH},
    honours=frozenset({"stop", "verbosity", "service_tier"}),
    formats=frozenset({"json_schema", "json_object"}),
)

_FIELDS = frozenset(
    {
        "model",
        "messages",
        "stream",
        "stream_options",
        "reasoning_effort",
        "response_format",
        "temperature",
        "top_p",
        "user",
    }
)
_MESSAGE_FIELDS = frozenset({"role", "content", "name"})
#: An earlier answer comes back with all its fields; only its text is read.
_ANSWER_FIELDS = _MESSAGE_FIELDS | ANSWER_KEYS
#: role -> the hub's; instructions keep their place in the conversation
_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
#: field -> its highest value. Checked but not sent: the backend refuses them.
_SAMPLING = {"temperature": 2.0, "top_p": 1.0}


def chat_request(body: Members, *, lite: bool) -> Ingress:
    """A chat body as a hub request. Raises InvalidRequest.

    lite  the model runs on the lite lane, which has no sampling
    """
    _known_only(body, _FIELDS, "")
    messages = _messages(body.get("messages"))
    stream = optional_flag(body.get("stream"), "stream") is True
    include_usage = _include_usage(body.get("stream_options"), stream=stream)
    config: dict[str, Any] = {}
    effort = _effort(body.get("reasoning_effort"))
    if effort != "none":
        config["effort"] = effort
    form = None if body.get(FIELD) is None else answer_format(body[FIELD], FIELD, wrapped=True)
    if form is not None:
        config["format"] = form
    for name, highest in _SAMPLING.items():
        _sampling(body.get(name), name, highest, lite=lite)
    _user(body.get("user"))
    request: dict[str, Any] = {"model": body["model"], "stream": stream, "messages": messages}
    if config:
        request["output_config"] = config
    return Ingress(request, stream=stream, include_usage=include_usage)


def _coded(param: str, rule: str, code: str) -> InvalidRequest:
    return InvalidRequest(f"`{param}` {rule}", param=param, code=code)


def _unknown_word(param: str, known: Iterable[str], value: Any) -> InvalidRequest:
    return _coded(param, f"must be {' or '.join(known)} for this model, not {shown(value)}", "unsupported_value")


def _known_only(members: Members, known: frozenset[str], path: str) -> None:
    strangers = [name for name in members.keys() - known if members[name] is not None]
    if strangers:
        name = cut(path + min(strangers))
        raise InvalidRequest(f"Unsupported parameter: {name}", param=name, code="unsupported_parameter")


def _messages(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not value:
        raise invalid("messages", "must be a list with at least one message")
    if len(value) > MAX_MESSAGES:
        raise invalid("messages", f"has {len(value)} entries; the limit is {MAX_MESSAGES}")
    messages = [_message(message, path) for path, message in objects_of(value, "messages")]
    if not any(messages):
        raise invalid("messages", "must say something")
    return [message for message in messages if message is not None]


def _message(message: Members, path: str) -> dict[str, Any] | None:
    """The hub's message; None for an empty earlier answer."""
    role = message.get("role")
    _known_only(message, _ANSWER_FIELDS if role == "assistant" else _MESSAGE_FIELDS, f"{path}.")
    if not isinstance(role, str):
        raise invalid(f"{path}.role", "must be a string")
    if role not in _ROLES:
        raise _unknown_word(f"{path}.role", _ROLES, role)
    content = message.get("content")
    if role == "assistant" and not content and isinstance(content, str | list | None):
        content = message.get("refusal")
        if not content:
            return None
    return {"role": _ROLES[role], "content": _content(content, f"{path}.content")}


def _content(content: Any, path: str) -> list[dict[str, Any]]:
    if isinstance(content, str) and content:
        return [{"type": "text", "text": content}]
    if not isinstance(content, list) or not content:
        raise invalid(path, "must be a non-empty string or list of text parts")
    return [_part(part, where) for where, part in objects_of(content, path)]


def _part(part: Members, path: str) -> dict[str, Any]:
    if part.get("type") != "text":
        raise _unknown_word(f"{path}.type", ("text",), part.get("type"))
    return {"type": "text", "text": needed_text(part, "text", path)}


def _include_usage(options: Any, *, stream: bool) -> bool:
    if options is None:
        return False
    if not isinstance(options, Mapping):
        raise invalid("stream_options", "must be an object")
    _known_only(options, frozenset({"include_usage"}), "stream_options.")
    wanted = optional_flag(options.get("include_usage"), "stream_options.include_usage") is True
    if wanted and not stream:
        raise invalid("stream_options", "goes with `stream: true` only")
    return wanted


def _effort(effort: Any) -> str:
    if effort is None:
        return DEFAULT_EFFORT
    if not isinstance(effort, str):
        raise invalid("reasoning_effort", "must be a string")
    if effort not in EFFORTS:
        raise _unknown_word("reasoning_effort", EFFORTS, effort)
    return effort


def _sampling(value: Any, name: str, highest: float, *, lite: bool) -> None:
    if value is None:
        return
    if lite:
        raise _coded(name, "is not supported by this model", "unsupported_parameter")
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise invalid(name, "must be a number")
    if not 0 <= value <= highest:
        raise _coded(name, f"must be from 0 to {highest:g}", "invalid_value")


def _user(value: Any) -> None:
    if value is not None and not (isinstance(value, str) and 0 < len(value.encode()) <= MAX_USER_BYTES):
        raise invalid("user", f"must be a non-empty string of at most {MAX_USER_BYTES} bytes")
