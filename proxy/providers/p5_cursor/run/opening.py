"""The message that opens a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from proxy.providers.p5_cursor.catalog import AUTOMATIC
from proxy.providers.p5_cursor.models import Selection


def run_request(
    prompt: str, images: Sequence[Mapping[str, Any]], selection: Selection, conversation_id: str, message_id: str
) -> dict[str, Any]:
    """An AgentClientMessage. What is empty in it must be there all the same: without the state the service refuses the
    run, without the context it never answers.

    images  SelectedImage dicts
    """
    model: dict[str, Any] = {"model_id": selection.model_id}
    if selection.parameters:
        model["parameters"] = [{"id": name, "value": value} for name, value in selection.parameters]
    message = {
        "text": prompt,
        "message_id": message_id,
        "selected_context": {"selected_images": list(images)} if images else {},
        "mode": int(selection.mode),
    }
    return {
        "run_request": {
            "conversation_state": {},
            "action": {"user_message_action": {"user_message": message}},
            "mcp_tools": {},
            "conversation_id": conversation_id,
            "requested_model": model,
            "selected_subagent_models": [{"model_id": AUTOMATIC}, model],
            "conversation_group_id": conversation_id,
            "client_supports_inline_images": True,
        }
    }
