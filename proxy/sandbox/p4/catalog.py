"""The models of the simulated P4: their wires, and their rules for chat requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from proxy.sandbox.wires.chat.checks import ChatRules


class P4Model(NamedTuple):
    """A model: the `wires` it is served on, the `inputs` it accepts besides text, the `vendor` whose errors it
    returns."""

    vendor: str
    wires: tuple[str, ...]
    context: int
    inputs: tuple[str, ...] = ()


_VISUAL = ("image", "video")

MODELS = {
    "glm-5.3-flash": P4Model("Z.AI", ("chat",), 1_000_000, (*_VISUAL, "pdf")),
    "glm-5.3": P4Model("Z.AI", ("chat",), 1_000_000),
    "glm-5.2": P4Model("Z.AI", ("chat",), 1_000_000),
    "glm-5.1": P4Model("Z.AI", ("chat",), 202_752),
    "glm-5": P4Model("Z.AI", ("chat",), 202_752),
    "kimi-k3": P4Model("Moonshot AI", ("chat",), 1_048_576, _VISUAL),
    "kimi-k2.7-code": P4Model("Moonshot AI", ("chat",), 262_144, _VISUAL),
    "kimi-k2.6": P4Model("Moonshot AI", ("chat",), 262_144, _VISUAL),
    "kimi-k2.5": P4Model("Moonshot AI", ("chat",), 262_144, _VISUAL),
    "deepseek-v4-pro": P4Model("DeepSeek", ("chat",), 1_000_000),
    "deepseek-v4-flash": P4Model("DeepSeek", ("chat",), 1_000_000),
    "deepseek-v4-flash-vision-exp": P4Model("DeepSeek", ("chat",), 1_000_000, ("image",)),
    "deepseek-v4.1-flash": P4Model("DeepSeek", ("chat",), 1_000_000, ("image",)),
    "deepseek-flash": P4Model("DeepSeek", ("chat",), 1_000_000),
    "mimo-v2.5": P4Model("Xiaomi", ("chat",), 1_000_000, ("audio", *_VISUAL)),
    "mimo-v2.5-pro": P4Model("Xiaomi", ("chat",), 1_048_576),
    "mimo-v2.6-pro": P4Model("Xiaomi", ("chat",), 1_048_576, _VISUAL),
    "mimo-v2.6-flash": P4Model("Xiaomi", ("chat",), 1_048_576, _VISUAL),
    "mimo-v2-pro": P4Model("Xiaomi", ("chat",), 1_048_576),
    "mimo-v2-omni": P4Model("Xiaomi", ("chat",), 262_144, ("image", "audio", "pdf")),
    "hy3": P4Model("Tencent", ("chat",), 256_000),
    "hy3-preview": P4Model("Tencent", ("chat",), 256_000),
    "hy4-preview": P4Model("Tencent", ("chat",), 1_024_000),
    "longcat-2.0": P4Model("Meituan", ("chat",), 1_000_000),
    "longcat-2.5-preview-free": P4Model("Meituan", ("chat",), 1_000_000, ("image",)),
    "space-bunny-free": P4Model("Console Go", ("chat",), 1_048_576, ("image",)),
    "omen-alpha": P4Model("Console Go", ("chat",), 500_000, ("image",)),
    "grok-4.5": P4Model("xAI", ("chat", "responses"), 500_000, ("image",)),
    "grok-4.6": P4Model("xAI", ("responses",), 500_000, ("image",)),
    "grok-4.7": P4Model("xAI", ("responses",), 500_000, ("image",)),
    "gpt-6-luna": P4Model("OpenAI", ("responses",), 1_050_000, ("image", "pdf")),
    "gpt-5.6-luna": P4Model("OpenAI", ("responses",), 1_050_000, ("image", "pdf")),
    "muse-spark-1.3-contributor": P4Model("Meta", ("responses",), 1_048_576, ("audio", "pdf", *_VISUAL)),
    "muse-spark-1.2-contributor": P4Model("Meta", ("responses",), 1_048_576, ("audio", "pdf", *_VISUAL)),
    "minimax-m3": P4Model("MiniMax", ("messages",), 1_000_000, _VISUAL),
    "minimax-m2.7": P4Model("MiniMax", ("messages",), 204_800),
    "minimax-m2.5": P4Model("MiniMax", ("messages",), 204_800),
    # the gateway converts one wire into the other for these; the vendor's own client asks over chat
    "qwen3.8-max": P4Model("Alibaba", ("chat", "messages"), 1_000_000, _VISUAL),
    "qwen3.8-flash": P4Model("Alibaba", ("messages",), 1_000_000, _VISUAL),
    "qwen3.7-max": P4Model("Alibaba", ("chat", "messages"), 1_000_000),
    "qwen3.7-plus": P4Model("Alibaba", ("chat", "messages"), 1_000_000, _VISUAL),
    "qwen3.6-plus": P4Model("Alibaba", ("chat", "messages"), 1_000_000, _VISUAL),
    "qwen3.5-plus": P4Model("Alibaba", ("messages",), 262_144, _VISUAL),
}

#: Part of a model's name -> the efforts that it accepts; other chat models ignore the member.
_EFFORTS = {
    "glm-5.2": ("high", "max"),
    "deepseek-v4": ("low", "medium", "high", "max"),
    "mimo": ("low", "medium", "high"),
    "qwen3.8": ("low", "medium", "xhigh"),
}


#: Models with a single temperature; the others accept any.
_ONE_TEMPERATURE = ("kimi-k3", "kimi-k2.7-code")


def efforts_of(name: str) -> tuple[str, ...] | None:
    """The efforts that a chat model accepts; None: it ignores them."""
    return next((efforts for part, efforts in _EFFORTS.items() if part in name), None)


def thinks_unasked(name: str) -> bool:
    """Whether the model reasons without being asked."""
    return name.startswith("kimi-") or "deepseek" in name


def thinks(name: str, body: Mapping[str, Any]) -> bool:
    """Whether this chat request makes the model think."""
    mode = (body.get("thinking") or {}).get("type")
    if mode is not None:
        return bool(mode == "enabled")
    return thinks_unasked(name) or (efforts_of(name) is not None and body.get("reasoning_effort") is not None)


def chat_rules(name: str, *, thinking: bool, refuse_images: bool) -> ChatRules:
    """The model's rules for a chat request with or without thinking."""
    inputs = MODELS[name].inputs
    media = tuple(f"{kind}_url" for kind in _VISUAL if kind in inputs) if refuse_images else None
    if name.startswith("kimi-"):
        forced = ("specified",) if name == "kimi-k3" else ("specified", "required")
        return ChatRules(
            recalls_of_calls=thinking,
            unforcible=forced if thinking else (),
            typed_schemas=True,
            filled_texts=True,
            one_effort=True,
            temperatures=((1.0,) if thinking else (0.6,)) if name in _ONE_TEMPERATURE else None,
            media=media,
        )
    return ChatRules(recalls_of_all=thinking and "deepseek" in name, efforts=efforts_of(name), media=media)


def listed_models(now: float) -> dict[str, Any]:
    """The body of the model list, which does not name the wires."""
    data = [{"id": name, "object": "model", "created": int(now), "owned_by": "opencode"} for name in MODELS]
    return {"object": "list", "data": data}
