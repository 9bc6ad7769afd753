"""The message that opens a run."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.providers.p5_cursor.models import Selection
from proxy.providers.p5_cursor.run.opening import run_request
from proxy.providers.p5_cursor.wire.protobuf import encode

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


SLOW = Selection("composer-2.5", (("fast", "false"),), 1)
HI = (
    "0a410a0012100a0e0a0c0a02686912026d311a00200122002a0263314a1d0a0c636f6d706f7365722d322e351a0d0a0466617374120566616c"
    "73658201026331980101"
)
SEE = (
    "0a5a0a00123d0a3b0a390a0373656512026d321a2c0a2a120275311a12636c617564652d696d6167652d312e706e673a09696d6167652f706e"
    "67420568656c6c6f200322002a0263314a090a0764656661756c748201026331980101"
)


@pytest.mark.parametrize(
    ("opened", "expected"),
    [
        (run_request("hi", [], SLOW, "c1", "m1"), HI),
        (run_request("see", [HELLO], Selection("default", (), 3), "c1", "m2"), SEE),
    ],
)
def test_its_bytes_are_those_of_the_wire_document(opened: dict[str, Any], expected: str) -> None:
    """Which has them without the models of helpers."""
    del opened["run_request"]["selected_subagent_models"]
    assert encode("AgentClientMessage", opened).hex() == expected
