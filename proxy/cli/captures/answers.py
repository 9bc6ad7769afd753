"""What an answer of any of the three APIs says, for a reader: its text, its calls, its end. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from proxy.core.sse import SSEDecoder


@dataclass(slots=True)
class Told:
    """What was said. `end` is "" as long as the answer is not whole, `error` as long as it is none."""

    text: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    end: str = ""
    error: str = ""
    events: int = 0


def told_by(body: bytes, *, stream: bool) -> Told:
    """Reads a whole answer."""
    told = Told()
    values = _events(body) if stream else _whole(body)
    for value in values:
        told.events += 1
        _read(value, told)
    return told


def _events(body: bytes) -> Iterator[Mapping[str, Any]]:
    decoder = SSEDecoder()
    for _, data in [*decoder.feed(body), *decoder.end()]:
        if data.strip() != b"[DONE]":
            yield from _whole(data)


def _whole(body: bytes) -> Iterator[Mapping[str, Any]]:
    try:
        value = json.loads(body)
    except ValueError:
        return
    if isinstance(value, dict):
        yield value


def _read(value: Mapping[str, Any], told: Told) -> None:
    if value.get("error"):
        error = value["error"]
        told.error = str(error.get("message") if isinstance(error, Mapping) else error)
    for choice in _dicts(value.get("choices")):
        _message(_dict(choice.get("delta") or choice.get("message")), told)
        told.end = str(choice.get("finish_reason") or told.end)
    for block in _dicts(value.get("content")):
        _block(block, told)
    for item in _dicts(value.get("output")):
        _item(item, told)
    read = _EVENTS.get(str(value.get("type")))
    if read:
        read(value, told)
    elif value.get("object") == "response":
        _ended(value, told)
    elif "input_tokens" in value:
        told.text.append(f"{value['input_tokens']} tokens")
        told.end = "counted"


def _message(message: Mapping[str, Any], told: Told) -> None:
    """A message or a delta of a chat."""
    told.text.append(_text(message.get("content")))
    told.calls += (
        name for call in _dicts(message.get("tool_calls")) if (name := _text(_dict(call.get("function")).get("name")))
    )


def _block(block: Mapping[str, Any], told: Told) -> None:
    told.text.append(_text(block.get("text")))
    if block.get("type") == "tool_use":
        told.calls.append(_text(block.get("name")))


def _item(item: Mapping[str, Any], told: Told) -> None:
    told.text += (_text(part.get("text")) for part in _dicts(item.get("content")) if item.get("type") == "message")
    if str(item.get("type")).endswith("_call"):
        told.calls.append(_text(item.get("name") or item.get("type")))


def _ended(response: Mapping[str, Any], told: Told) -> None:
    told.end = _text(response.get("status"))
    if response.get("error"):
        told.error = _text(_dict(response["error"]).get("message"))


def _delta(event: Mapping[str, Any], told: Told) -> None:
    told.text.append(_text(_dict(event.get("delta")).get("text")))


def _stopped(event: Mapping[str, Any], told: Told) -> None:
    told.end = _text(_dict(event.get("delta")).get("stop_reason"))


def _last(event: Mapping[str, Any], told: Told) -> None:
    _ended(_dict(event.get("response")), told)


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _dicts(value: Any) -> Iterable[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


#: type of an event, or of a whole message -> how it is read
_EVENTS = {
    "message": lambda event, told: setattr(told, "end", _text(event.get("stop_reason"))),
    "content_block_start": lambda event, told: _block(_dict(event.get("content_block")), told),
    "content_block_delta": _delta,
    "message_delta": _stopped,
    "response.output_text.delta": lambda event, told: told.text.append(_text(event.get("delta"))),
    "response.output_item.added": lambda event, told: _item({**_dict(event.get("item")), "content": []}, told),
    "response.completed": _last,
    "response.incomplete": _last,
    "response.failed": _last,
}
