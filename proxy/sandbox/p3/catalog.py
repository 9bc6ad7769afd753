"""The models of the simulated P3, and what each can do."""

from __future__ import annotations

from typing import Any, NamedTuple


class P3Model(NamedTuple):
    """`family` can read the encrypted reasoning of each of its models. `more_tools`: runs code and paints as well."""

    family: str
    context: int
    most_output: int
    efforts: tuple[str, ...]  # that the list of models names
    searches: bool = False  # the vendor's client offers hosted search
    more_tools: bool = False


_HIGH = ("low", "medium", "high")

MODELS = {
    "grok-4.6": P3Model("grok-4", 500_000, 65_536, (*_HIGH, "xhigh"), searches=True, more_tools=True),
    "grok-4.5": P3Model("grok-4", 500_000, 65_536, _HIGH),
    "grok-composer-2.5-fast": P3Model("composer", 200_000, 32_768, ()),
}

#: Taken of every model, whatever the list says of it.
_ALWAYS = ("none", *_HIGH)


def efforts_of(model: P3Model) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*_ALWAYS, *model.efforts)))


def reader_of(user_id: str, model: str) -> str:
    """Who encrypted reasoning is made for: an account and a family of models."""
    return f"{user_id}/{MODELS[model].family}"


def listed_models(created: int) -> dict[str, Any]:
    """The body of the model list, as the vendor's client reads it."""
    return {"object": "list", "data": [_listed(name, model, created) for name, model in MODELS.items()]}


def _listed(name: str, model: P3Model, created: int) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": created,
        "owned_by": "xai",
        "apiBackend": "responses",
        "contextWindow": model.context,
        "supportsReasoningEffort": bool(model.efforts),
        "reasoningEffort": "high" if model.efforts else None,
        "reasoningEfforts": list(model.efforts),
        "supportsBackendSearch": model.searches,
    }
