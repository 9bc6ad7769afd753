"""Catalogues of the providers that are not served yet. Each moves into its provider's folder when that lands."""

from __future__ import annotations

from proxy.core.routing import Catalog

P2 = Catalog("p2", "kimi", ("kimi-for-coding", "kimi-k2.6", "kimi-k3", "k2.6", "k3"))

P3 = Catalog("p3", "grok", ("grok-composer-2.5-fast", "grok-4.5", "grok-4.6"))

_P4_IDS = (
    *("glm-5.3-flash", "glm-5.3", "glm-5.2", "glm-5.1", "glm-5"),
    *("kimi-k3", "kimi-k2.7-code", "kimi-k2.6", "kimi-k2.5"),
    *("deepseek-v4-pro", "deepseek-v4-flash", "deepseek-v4-flash-vision-exp", "deepseek-flash"),
    *("mimo-v2.5", "mimo-v2.5-pro", "mimo-v2-pro", "mimo-v2-omni"),
    *("hy3", "hy3-preview", "hy4-preview", "longcat-2.0", "omen-alpha"),
    *("grok-4.5", "grok-4.6", "gpt-5.6-luna", "muse-spark-1.3-contributor", "muse-spark-1.2-contributor"),
    *("minimax-m3", "minimax-m2.7", "minimax-m2.5"),
    *("qwen3.8-max", "qwen3.8-flash", "qwen3.7-max", "qwen3.7-plus", "qwen3.6-plus", "qwen3.5-plus"),
)
#: These bare names belong to p1, p2 and p3; p4 serves them in the qualified form only.
_P4_RESERVED = frozenset({"gpt-5.6-luna", "grok-4.5", "grok-4.6", "kimi-k3", "kimi-k2.6"})

P4 = Catalog(
    "p4",
    "opencode",
    tuple(f"opencode-go/{model}" for model in _P4_IDS) + tuple(model for model in _P4_IDS if model not in _P4_RESERVED),
)

P5 = Catalog(
    "p5",
    "cursor",
    (
        *("cursor", "cursor-agent", "cursor-plan", "cursor-ask"),
        *("cursor-composer", "cursor-composer-fast", "composer-2.5", "composer-2.5-fast"),
    ),
    prefixes=("cursor:", "cursor-agent:", "cursor-plan:", "cursor-ask:"),
)
