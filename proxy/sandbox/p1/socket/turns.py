"""What a frame of a client asks for on a socket of P1: the body that HTTP would get, and what frames add to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from proxy.sandbox.p1.headers import LITE_MARKER, is_lite
from proxy.sandbox.p1.socket.memory import Item, Memory
from proxy.sandbox.wires.field_checks import check, members
from proxy.sandbox.wires.refusal import detail, invalid

_MEMBERS = members("previous_response_id: text, generate: boolean")

#: What a frame has and a body has not.
_FRAME_ONLY = ("type", *(row.path for row in _MEMBERS))

#: Stands for the input of a warm-up that has none, so that the checks of a body have something to look at.
_NO_INPUT: Item = {"type": "message", "role": "user", "content": ""}


class Turn(NamedTuple):
    """`body` has the whole input, `conversation` is that input; a `warm_up` wants no output."""

    body: dict[str, Any]
    conversation: list[Item]
    lite: bool
    warm_up: bool
    previous: str | None


def read_turn(frame: Any, headers: Mapping[str, str], memory: Memory) -> Turn:
    """Raises Refused. The body is not checked yet; `headers` are those of the upgrade."""
    if not isinstance(frame, dict):
        raise detail("Invalid JSON frame")
    if frame.get("type") != "response.create":
        raise invalid(f"Unknown event type: {frame.get('type')}", code="invalid_value", param="type")
    check(frame, _MEMBERS)
    # who keeps the member of HTTP may do so
    body = {"stream": True, **{name: value for name, value in frame.items() if name not in _FRAME_ONLY}}
    previous = frame.get("previous_response_id")
    history = memory.recall(previous)
    delta = body.get("input")
    conversation = [*history, *delta] if isinstance(delta, list) else history
    warm_up = frame.get("generate") is False
    if isinstance(delta, list):
        body["input"] = conversation or ([_NO_INPUT] if warm_up else [])
    return Turn(body, conversation, _is_lite(body, headers), warm_up, previous)


def _is_lite(body: Mapping[str, Any], headers: Mapping[str, str]) -> bool:
    """The marker in a frame decides for this frame, else the header decides for the socket."""
    metadata = body.get("client_metadata")
    marked = isinstance(metadata, dict) and metadata.get(LITE_MARKER) is not None
    return marked or is_lite(headers)
