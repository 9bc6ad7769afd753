"""The models of the simulated P1 account, as the vendor's own client lists them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

#: Efforts that every model supports. `minimal` belongs to an older family and is refused here.
EFFORTS = ("none", "low", "medium", "high", "xhigh", "max")


class P1Model(NamedTuple):
    """A model of the backend. `full` and `lite`: whether it exists on that lane."""

    full: bool
    lite: bool
    ultra: bool = False  # takes the additional effort `ultra`
    tiers: tuple[str, ...] = ("priority", "flex")
    context: int = 272_000
    hidden: bool = False  # the vendor's client uses it without offering it

    @property
    def efforts(self) -> tuple[str, ...]:
        return (*EFFORTS, "ultra") if self.ultra else EFFORTS


#: The smallest model of a family exists on the lite lane only: elsewhere it is "not found".
MODELS = {
    "gpt-5.2": P1Model(full=True, lite=False),
    "gpt-5.3-codex": P1Model(full=True, lite=False),
    "gpt-5.3-codex-spark": P1Model(full=True, lite=False),
    "gpt-5.4": P1Model(full=True, lite=False),
    "gpt-5.4-mini": P1Model(full=True, lite=False),
    "gpt-5.5": P1Model(full=True, lite=False),
    "gpt-5.6-luna": P1Model(full=False, lite=True),
    "gpt-5.6-sol": P1Model(full=True, lite=True, ultra=True),
    "gpt-5.6-terra": P1Model(full=True, lite=True, ultra=True),
    "gpt-6-astra": P1Model(full=True, lite=True, ultra=True, tiers=("priority", "flex", "ultrafast")),
    "gpt-6-luna": P1Model(full=False, lite=True),
    "gpt-6-sol": P1Model(full=True, lite=True, ultra=True),
    "gpt-6.1-sol": P1Model(full=True, lite=True, ultra=True),
    "gpt-6.1-terra": P1Model(full=True, lite=True, ultra=True, context=500_000),
    "codex-auto-review": P1Model(full=False, lite=True, hidden=True),
}

#: Effort -> its description in the vendor's client, which rejects a list without descriptions.
_DESCRIPTIONS = {
    "low": "Fast responses with lighter reasoning",
    "medium": "Balances speed and reasoning depth for everyday tasks",
    "high": "Greater reasoning depth for complex problems",
    "xhigh": "Extra high reasoning depth for complex problems",
    "max": "Maximum reasoning depth for the hardest problems",
    "ultra": "Maximum reasoning with automatic task delegation",
}


def listed(models: Mapping[str, P1Model]) -> list[dict[str, Any]]:
    """The models in the form for the vendor's client, which accepts all of them or none."""
    return [_listed(slug, model, priority) for priority, (slug, model) in enumerate(models.items())]


def _listed(slug: str, model: P1Model, priority: int) -> dict[str, Any]:
    efforts = [effort for effort in _DESCRIPTIONS if effort in model.efforts]
    return {
        "slug": slug,
        "display_name": slug.upper(),
        "description": f"The simulated {slug}.",
        "priority": priority,
        "visibility": "hide" if model.hidden else "list",
        "supported_in_api": True,
        "use_responses_lite": model.lite,
        "tool_mode": "code_mode_only" if model.lite else None,
        "shell_type": "unified_exec",
        "apply_patch_tool_type": "freeform",
        "web_search_tool_type": "text_and_image",
        "experimental_supported_tools": [],
        "input_modalities": ["text", "image"],
        "context_window": model.context,
        "max_context_window": 872_000 if model.lite else model.context,
        "truncation_policy": {"mode": "tokens", "limit": 10_000},
        "default_reasoning_level": "medium",
        "supports_reasoning_effort_updates": model.lite,
        "supported_reasoning_levels": [{"effort": effort, "description": _DESCRIPTIONS[effort]} for effort in efforts],
        "default_reasoning_summary": "none",
        "support_verbosity": True,
        "default_verbosity": "low",
        "service_tiers": [{"id": "priority", "name": "Fast", "description": "1.5x speed, increased usage"}],
        "base_instructions": "You are a coding agent.",
    }
