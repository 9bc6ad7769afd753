"""The message that opens a run."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.providers.p5_cursor.models import Selection
from proxy.providers.p5_cursor.run.opening import run_request

HELLO = {"uuid": "u1", "path": "claude-image-1.png", "mime_type": "image/png", "data": b"hello"}


@pytest.mark.parametrize(
    ("opened", "context", "model", "mode"),
    [
        (
            run_request("hi", [], Selection("composer-2.5", (("fast", "false"),), 1), "c1", "m1"),
            {},
            {"model_id": "composer-2.5", "parameters": [{"id": "fast", "value": "false"}]},
            1,
        ),
        (
            run_request("hi", [HELLO], Selection("default", (), 3), "c1", "m1"),
            {"selected_images": [HELLO]},
            {"model_id": "default"},
            3,
        ),
    ],
)
def test_the_opening_message(opened: dict[str, Any], context: dict[str, Any], model: dict[str, Any], mode: int) -> None:
    """The examples of the wire document, with the models that helpers of the run may use. `Conversation state is
    required`, and the run that only ever gets heartbeats, come of what is left out because it is empty."""
    message = {"text": "hi", "message_id": "m1", "selected_context": context, "mode": mode}
    assert opened == {
        "run_request": {
            "conversation_state": {},
            "action": {"user_message_action": {"user_message": message}},
            "mcp_tools": {},
            "conversation_id": "c1",
            "requested_model": model,
            "selected_subagent_models": [{"model_id": "default"}, model],
            "conversation_group_id": "c1",
            "client_supports_inline_images": True,
        }
    }
