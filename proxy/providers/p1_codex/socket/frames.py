"""The data on a socket: the request as a frame, frames as events, and their faults. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proxy.core.long_json import object_json, remembered_json
from proxy.core.sse import dump_json
from proxy.errors import PROTOCOL_ERROR, UpstreamError
from proxy.providers.p1_codex.catalog import LABEL
from proxy.providers.upstream.adapter import RequestBody

#: Most texts in a row that are not events.
MAX_GARBAGE = 16
#: Size limit of a frame; the last event can repeat the whole answer.
MAX_FRAME_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Fault:
    """The failure of a socket: in words, and whether the request may be sent again. It may not when the model may still
    be at work on it, nor when the fault would only recur. `unreadable`: the answer broke the rules."""

    words: str
    repeatable: bool
    unreadable: bool = False


#: Code of a request for which the upstream closed the socket (1009); it has not accepted it.
SIZE = "ws_size"

FAULTS: dict[str, Fault] = {
    "ws_send": Fault("the connection broke while the request was sent", True),
    "ws_keepalive": Fault("the connection is dead: pings are not answered", True),
    "ws_start_timeout": Fault("no answer within {ms} ms", False),
    "ws_idle_timeout": Fault("the answer paused for {ms} ms", False),
    SIZE: Fault("the upstream takes no request of this size over a WebSocket", False),
    "ws_cut": Fault("the upstream cut the answer: it ended inside an event", True, unreadable=True),
    "ws_binary": Fault("unreadable answer: a binary frame", False, unreadable=True),
    "ws_too_large": Fault(
        f"unreadable answer: a frame passed the limit of {MAX_FRAME_BYTES} bytes", False, unreadable=True
    ),
    "ws_protocol": Fault("unreadable answer: the frames break the protocol", False, unreadable=True),
    "ws_last": Fault("unreadable answer: its last event is not JSON", True, unreadable=True),
    "ws_garbage": Fault(f"unreadable answer: {MAX_GARBAGE} frames in a row are not JSON", False, unreadable=True),
}


def fault_error(code: str, *, seconds: float = 0.0, continued: bool = False, hint: str = "") -> UpstreamError:
    """The error of a fault.

    seconds    the limit that was passed
    continued  the request continues an earlier response, which the upstream may have lost: then silence is worth one
               more request, with the whole conversation
    hint       what the user may do about it
    """
    fault = FAULTS[code]
    repeatable = fault.repeatable or (continued and code == "ws_start_timeout")
    words = fault.words.format(ms=round(seconds * 1000)) + hint
    code = PROTOCOL_ERROR if fault.unreadable else code
    return UpstreamError(f"{LABEL}: {words}", kind="transport", provider=LABEL, code=code, repeatable=repeatable)


#: Members that differ between the transports: HTTP names the lane in a header.
_NOT_SHARED = frozenset({"stream", "client_metadata"})


class SharedBody(RequestBody):
    """A body for both transports. Its items are written once for all uses: the digests of the conversation, a POST, a
    frame with the whole conversation, and one with its new part."""

    _items: list[bytes] | None = None

    @property
    def items(self) -> list[bytes]:
        """The input, one text for each item."""
        if self._items is None:
            self._items = [remembered_json(item, large=self.large) for item in self.members["input"]]
        return self._items

    def replace(self, members: dict[str, Any]) -> None:
        super().replace(members)
        self._items = None

    def _write(self) -> bytes:
        """The body of a POST."""
        return b'{"stream":true,' + self._shared(self.members) + b"}"

    def frame(self, previous_response_id: str = "", start: int = 0) -> bytes:
        """The conversation as a frame. With `previous_response_id`: what was added since that response, from input item
        `start` on."""
        body = self.members
        own = {"type": "response.create", **{key: body[key] for key in ("client_metadata",) if key in body}}
        if previous_response_id:
            body = {**body, "previous_response_id": previous_response_id}
        return dump_json(own).encode()[:-1] + b"," + self._shared(body, start) + b"}"

    def _shared(self, members: Mapping[str, Any], start: int = 0) -> bytes:
        """The members common to both transports, in their order."""
        before: dict[str, Any] = {}
        after: dict[str, Any] = {}
        part = before
        for key, value in members.items():
            if key == "input":
                part = after
            elif key not in _NOT_SHARED:
                part[key] = value
        parts = [b'"input":[' + b",".join(self.items[start:]) + b"]"]
        if before:
            parts.insert(0, object_json(before, (), large=self.large))
        if after:
            parts.append(object_json(after, (), large=self.large))
        return b",".join(parts)


def is_progress(event: Mapping[str, Any]) -> bool:
    """Whether an event belongs to the answer."""
    kind = event.get("type")
    return isinstance(kind, str) and (kind == "error" or kind.startswith("response."))
