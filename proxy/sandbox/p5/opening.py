"""The first message of a run: its requests, and its refusals."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from proxy.sandbox.p5.failures import debug
from proxy.sandbox.wires.connect.envelopes import FailedCall
from proxy.sandbox.wires.connect.protobuf import Message

#: Path of the user's message in the run request.
_SAID = (2, 1, 1)

MODES = {1: "agent", 2: "ask", 3: "plan"}

#: Fields of a run request that clients are known to send.
_KNOWN = {1, 2, 3, 4, 5, 8, 9, 10, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22}


@dataclass(frozen=True, slots=True)
class Opening:
    """A run request. `silent`: the service accepts it and answers with heartbeats only."""

    body: dict[str, Any]
    silent: bool = False

    @property
    def prompt(self) -> str:
        return str(self.body["prompt"])

    @property
    def mode(self) -> int:
        return int(self.body["mode"])

    @property
    def thinks(self) -> bool:
        """Whether the chosen model has an effort."""
        model, parameters = self.body["model"], self.body["parameters"]
        chosen = parameters.get("thinking") == "true" or {"effort", "reasoning"} & parameters.keys()
        return bool(chosen) or model.removesuffix("-fast").endswith(_THINKING)


_THINKING = ("-thinking", "-low", "-medium", "-high", "-xhigh", "-max")


def read_opening(message: Message, blame: Callable[[str], None], suffixed: Collection[str]) -> Opening:
    """Reads append 0. Raises Failed, and Malformed."""
    request = message.sub(1)
    if request is None or 1 not in request or 4 not in request:
        raise FailedCall("invalid_argument", "Conversation state is required")
    if request.has(2, 2):
        blame("resume_action")
    said = request.sub(*_SAID)
    if said is None:
        raise FailedCall("invalid_argument", "A user message is required")
    for problem in _odd(request, said):
        blame(problem)
    body = _body(request, said)
    _refuse(request, body, suffixed)
    return Opening(body, silent=not said.has(2) or not said.has(3))


def _body(request: Message, said: Message) -> dict[str, Any]:
    """The request in the form that tests look at."""
    model = request.sub(9) or request.sub(3) or Message(b"")
    images = said.all(3, 1)
    return {
        "model": model.text(1),
        "parameters": {one.text(1): one.text(2) for one in model.all(3)} if 9 in request else {},
        "mode": said.number(4),
        "prompt": said.text(1),
        "images": len(images),
        "selected_images": [_image(one) for one in images],
        "conversation_id": request.text(5),
        "conversation_group_id": request.text(16),
        "message_id": said.text(2),
        "subagent_models": [one.text(1) for one in request.all(14)],
        "billed_fast": model.text(1).startswith("composer-") and _fast(model) != "false",
    }


def _fast(model: Message) -> str | None:
    return next((one.text(2) for one in model.all(3) if one.text(1) == "fast"), None)


def _image(image: Message) -> dict[str, Any]:
    return {
        "uuid": image.text(2),
        "path": image.text(3),
        "mime_type": image.text(7),
        "data": base64.b64encode(image.bytes(8)).decode(),
        "blob_id": image.bytes(1).hex(),
    }


def _odd(request: Message, said: Message) -> list[str]:
    """Faults that the service accepts and no client makes."""
    mode = said.number(4)
    rows = {
        f"run request with the fields {sorted(set(request.fields) - _KNOWN)}": set(request.fields) - _KNOWN,
        "no message_id, or one that is no uuid": not _is_uuid(said.text(2)),
        "no selected_context": not said.has(3),
        f"mode {mode}": mode not in MODES,
        "no conversation_id": not request.text(5),
        "conversation_group_id is not the conversation_id": request.text(16) != request.text(5),
        "a conversation state": request.bytes(1),
        "requested_model and model_details": 9 in request and 3 in request,
        "an image without uuid, path or mime type": not all(
            one.text(2) and one.text(3) and one.text(7) for one in said.all(3, 1)
        ),
    }
    return [words for words, present in rows.items() if present]


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def _refuse(request: Message, body: dict[str, Any], suffixed: Collection[str]) -> None:
    model = body["model"]
    if not model:
        raise FailedCall("invalid_argument", "A model is required")
    if model == "auto":
        words = f"Unknown model ID: {model}"
        raise FailedCall("invalid_argument", words, debug("ERROR_BAD_MODEL_NAME", words))
    if model in suffixed:
        words = f"The model {model} is not available"
        raise FailedCall("not_found", "Error", debug("ERROR_BAD_MODEL_NAME", "Bad model name", detail=words))
    if request.number(12):
        words = "Workspace context exclusion is not allowed for this user, team, or selected model"
        raise FailedCall("invalid_argument", words)
    if any(image["blob_id"] or not image["data"] for image in body["selected_images"]):
        raise FailedCall("internal", "Image not found")
