"""The models of the simulated P2, as its own list has them, and their rules for requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from proxy.sandbox.wires.chat.checks import ChatRules

_ALL_MEDIA = ("image_url", "video_url")


class P2Model(NamedTuple):
    """A model. `always_thinks`: a request cannot switch thinking off. `third`: of the third generation, which accepts
    `required`."""

    title: str
    context: int
    efforts: tuple[str, ...]
    default_effort: str
    always_thinks: bool = False
    third: bool = False
    media: tuple[str, ...] = _ALL_MEDIA


_CODE_EFFORTS = ("low", "medium", "high")
_K3_EFFORTS = ("low", "high", "max")

MODELS = {
    "kimi-for-coding": P2Model("Kimi For Coding", 262_144, _CODE_EFFORTS, "medium"),
    "kimi-for-coding-highspeed": P2Model("Kimi For Coding Highspeed", 262_144, _CODE_EFFORTS, "medium"),
    "k3": P2Model("Kimi K3", 1_048_576, _K3_EFFORTS, "high", always_thinks=True, third=True),
    "k3-256k": P2Model(
        "Kimi K3 256K", 262_144, _K3_EFFORTS, "high", always_thinks=True, third=True, media=("image_url",)
    ),
}


def thinks(model: P2Model, body: Mapping[str, Any]) -> bool:
    """Whether the model thinks: unless it is switched off, where that is possible, even when the request does not
    mention it."""
    return model.always_thinks or (body.get("thinking") or {}).get("type") != "disabled"


def rules_for(model: P2Model, *, thinking: bool, one_effort: bool) -> ChatRules:
    """The model's rules for a request with or without thinking."""
    forced = ("specified",) if model.third else ("specified", "required")
    return ChatRules(
        recalls_of_calls=thinking,
        unforcible=forced if thinking else (),
        no_developer_role=model.third,
        typed_schemas=True,
        filled_texts=True,
        filled_content=True,
        efforts=model.efforts,
        one_effort=one_effort,
        temperatures=(1.0,) if thinking else (0.6,),
        media=model.media,
    )


def listed_models() -> dict[str, Any]:
    """The body of the model list."""
    return {"object": "list", "data": [_entry(name, model) for name, model in MODELS.items()]}


def _entry(name: str, model: P2Model) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "context_length": model.context,
        "supports_reasoning": True,
        "supports_image_in": "image_url" in model.media,
        "supports_video_in": "video_url" in model.media,
        "display_name": model.title,
        "supports_thinking_type": "only" if model.always_thinks else "both",
        "think_efforts": {
            "support": True,
            "valid_efforts": list(model.efforts),
            "default_effort": model.default_effort,
        },
    }
