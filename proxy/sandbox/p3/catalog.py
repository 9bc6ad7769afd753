"""The models of the simulated P3, their abilities, and the encrypted reasoning that each family can read.

Encrypted reasoning is standard base64 without padding here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from proxy.sandbox.wires.encrypted_content import encrypt, is_from_account


class P3Model(NamedTuple):
    """A model. `family` can read the encrypted reasoning of each of its models. `more_tools`: also runs code and
    paints."""

    family: str
    context: int
    most_output: int
    efforts: tuple[str, ...]  # as listed
    searches: bool = False  # the vendor's client offers hosted search
    more_tools: bool = False


_HIGH = ("low", "medium", "high")

MODELS = {
    "grok-4.6": P3Model("grok-4", 500_000, 65_536, (*_HIGH, "xhigh"), searches=True, more_tools=True),
    "grok-4.5": P3Model("grok-4", 500_000, 65_536, _HIGH),
    "grok-composer-2.5-fast": P3Model("composer", 200_000, 32_768, ()),
}

#: Accepted by every model, even if not listed.
_ALWAYS = ("none", *_HIGH)


def efforts_of(model: P3Model) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*_ALWAYS, *model.efforts)))


def reader_of(user_id: str, model: str) -> str:
    """The reader of encrypted reasoning: an account and a family of models."""
    return f"{user_id}/{MODELS[model].family}"


def listed_models(created: int) -> dict[str, Any]:
    """The body of the model list, in the form that the vendor's client reads."""
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


#: The beginning of another vendor's content, which none here has.
_FOREIGN = "gAAAAA"

_STANDARD = str.maketrans("-_", "+/")
_URL_SAFE = str.maketrans("+/", "-_")


def encrypt_for(reader: str, item_id: str, nonce: str) -> str:
    """Content that this reader (an account and a family) can decrypt."""
    return encrypt(reader, item_id, nonce).removeprefix(_FOREIGN).translate(_STANDARD)


def is_readable(content: Any, reader: str) -> bool:
    """Whether this reader can decrypt it, in any item."""
    return isinstance(content, str) and is_from_account(_FOREIGN + content.translate(_URL_SAFE), reader)
