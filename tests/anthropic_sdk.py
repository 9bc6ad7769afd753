"""What the official Anthropic SDK makes of an event stream: its own helper adds the events up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import httpx2
from anthropic.lib.streaming._beta_messages import accumulate_event


def read_message(events: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The message that the SDK's stream helper has at the end."""
    message: Any = None
    buffers: dict[int, bytes] = {}
    for event in events:
        message = accumulate_event(
            event=event,  # type: ignore[arg-type]
            current_snapshot=message,
            json_bufs=buffers,
            request_headers=httpx2.Headers(),
        )
    members: dict[str, Any] = message.to_dict(warnings=False)
    return members
