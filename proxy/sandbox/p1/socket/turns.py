"""What a frame of a client asks for on a socket of P1, and what the socket remembers of the turns before.

A frame has the body that HTTP would get, and more. Nothing is stored outside of the socket, so no other socket and no
HTTP request can go on from its answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from proxy.sandbox.p1.headers import LITE_MARKER, is_lite
from proxy.sandbox.wires.field_checks import check, members
from proxy.sandbox.wires.refusal import Refused, detail, invalid

Item = dict[str, Any]


class Memory:
    """As long as a context window at most, since every request that adds to it is checked against that."""

    def __init__(self) -> None:
        self.last: str | None = None  # the id of the answer
        self._items: list[Item] = []

    def recall(self, previous: str | None) -> list[Item]:
        """The items to go on from; none for None. Raises Refused for what is not the last answer of this socket.

        What was recalled is forgotten: only a turn that completes leaves something to go on from.
        """
        if previous is None:
            return []
        if previous != self.last:
            raise not_found(previous)
        items, self.last, self._items = self._items, None, []
        return items

    def remember(self, response_id: str, items: Iterable[Item]) -> None:
        self.last = response_id
        self._items = [item for item in items if _is_kept(item)]


def _is_kept(item: Item) -> bool:
    """A trigger has done its work; a thought that went out without its encrypted content cannot be sent in again."""
    kind = item.get("type")
    return kind != "compaction_trigger" and not (kind == "reasoning" and "encrypted_content" not in item)


def not_found(previous: str) -> Refused:
    return invalid(
        f"Previous response with id '{previous}' not found.",
        code="previous_response_not_found",
        param="previous_response_id",
    )


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
