"""P4's models as data: wire, images, context window.

This table is the part of P4 that ages fastest; a new model is one row. The upstream's own list does not name the wire.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

from proxy.core.models import ModelFacts, ModelList
from proxy.core.routing import CACHED, Added, Catalog, nearest

LABEL = "p4"
PREFIX = "opencode-go/"

#: `WIRE_PATHS[wire]` is a wire's part of the path.
Wire = Literal["chat", "messages", "responses"]
WIRE_PATHS: dict[Wire, str] = {"chat": "/chat/completions", "messages": "/messages", "responses": "/responses"}


@dataclass(frozen=True, slots=True)
class OpenCodeModel:
    """A model. `sees`: takes images. `context` and `output` are tokens, None when unknown; they are not enforced."""

    id: str
    wire: Wire
    sees: bool = False
    context: int | None = None
    output: int | None = None


MODELS: dict[str, OpenCodeModel] = {
    model.id: model
    for model in (
        OpenCodeModel("glm-5.3-flash", "chat", True, 1_000_000, 131_072),
        OpenCodeModel("glm-5.3", "chat", False, 1_000_000, 131_072),
        OpenCodeModel("glm-5.2", "chat", False, 1_000_000, 131_072),
        OpenCodeModel("glm-5.1", "chat", False, 202_752, 32_768),
        OpenCodeModel("glm-5", "chat", False, 202_752, 32_768),
        OpenCodeModel("kimi-k3", "chat", True, 1_048_576, 131_072),
        OpenCodeModel("kimi-k2.7-code", "chat", True, 262_144, 262_144),
        OpenCodeModel("kimi-k2.6", "chat", True, 262_144, 65_536),
        OpenCodeModel("kimi-k2.5", "chat", True, 262_144, 65_536),
        OpenCodeModel("deepseek-v4-pro", "chat", False, 1_000_000, 384_000),
        OpenCodeModel("deepseek-v4-flash", "chat", False, 1_000_000, 384_000),
        OpenCodeModel("deepseek-v4-flash-vision-exp", "chat", True, 1_000_000, 384_000),
        OpenCodeModel("deepseek-flash", "chat"),  # in no catalogue of the vendor
        OpenCodeModel("mimo-v2.5", "chat", True, 1_000_000, 128_000),
        OpenCodeModel("mimo-v2.5-pro", "chat", False, 1_048_576, 128_000),
        OpenCodeModel("mimo-v2-pro", "chat", False, 1_048_576, 128_000),
        OpenCodeModel("mimo-v2-omni", "chat", True, 262_144, 128_000),
        OpenCodeModel("hy3", "chat", False, 256_000, 128_000),
        OpenCodeModel("hy3-preview", "chat"),
        OpenCodeModel("hy4-preview", "chat", False, 1_024_000, 64_000),
        OpenCodeModel("longcat-2.0", "chat", False, 1_000_000, 131_072),
        OpenCodeModel("omen-alpha", "chat", True, 500_000, 128_000),
        # The vendor lists it under /responses; chat is what works, and the gateway converts.
        OpenCodeModel("grok-4.5", "chat", True, 500_000, 500_000),
        OpenCodeModel("grok-4.6", "responses", True, 500_000, 500_000),
        OpenCodeModel("gpt-5.6-luna", "responses", True, 1_050_000, 128_000),
        OpenCodeModel("muse-spark-1.3-contributor", "responses", True, 1_048_576, 131_072),
        OpenCodeModel("muse-spark-1.2-contributor", "responses", True, 1_048_576, 131_072),
        OpenCodeModel("minimax-m3", "messages", True, 1_000_000, 131_072),
        OpenCodeModel("minimax-m2.7", "messages", False, 204_800, 131_072),
        OpenCodeModel("minimax-m2.5", "messages", False, 204_800, 65_536),
        # The vendor's own client calls these over chat, whatever its list of endpoints says.
        OpenCodeModel("qwen3.8-max", "chat", True, 1_000_000, 131_072),
        OpenCodeModel("qwen3.8-flash", "messages", True, 1_000_000, 131_072),
        OpenCodeModel("qwen3.7-max", "chat", False, 1_000_000, 65_536),
        OpenCodeModel("qwen3.7-plus", "chat", True, 1_000_000, 65_536),
        OpenCodeModel("qwen3.6-plus", "chat", True, 1_000_000, 65_536),
        OpenCodeModel("qwen3.5-plus", "messages", True, 262_144, 65_536),
    )
}

#: These bare names belong to p1, p2 and p3; p4 serves only their qualified form.
RESERVED = frozenset({"gpt-5.6-luna", "grok-4.5", "grok-4.6", "kimi-k2.6", "kimi-k3"})
#: Names of new models that are bare in another provider's list.
_OTHERS = re.compile(r"gpt-|codex-|grok-|kimi-|k[0-9]")


def bare(name: str) -> str:
    """The upstream's form of a name."""
    return name.removeprefix(PREFIX)


def _names(ids: Iterable[str]) -> tuple[str, ...]:
    """The listed names for ids of the upstream: each qualified, then the bare ones that no other provider has."""
    known = tuple(ids)
    return (*(PREFIX + name for name in known), *(name for name in known if name not in RESERVED))


_FACTS = {
    name: ModelFacts(row.context, row.output, sees=row.sees) for row in MODELS.values() for name in _names((row.id,))
}

#: The coder takes images, as Claude Code's own models do.
CATALOG = Catalog(
    LABEL, "opencode", _names(MODELS), main="kimi-k2.7-code", small="glm-5.3-flash", facts=_FACTS, qualifier=PREFIX
)


@lru_cache(maxsize=CACHED)
def catalog_of(added: Added, offered: ModelList | None = None) -> Catalog:
    """The catalogue with what the service offers, and these ids added."""
    own, now = dict(added), CATALOG.offering(offered, _names_offered, bare, _like)
    return now.extended(
        (name, PREFIX + own[bare(name)] if own[bare(name)] else _like(bare(name))) for name in _names(own)
    )


def _like(model: str) -> str:
    """The name of our table that a new id resembles."""
    return PREFIX + nearest(model, MODELS)


def _names_offered(model: str, _facts: ModelFacts) -> Iterator[str]:
    """The names of an id that the service lists: bare only where no other provider may have it."""
    yield PREFIX + model
    if model not in RESERVED and (model in MODELS or not _OTHERS.match(model)):
        yield model


def offered_model(row: Mapping[str, Any]) -> tuple[Any, ModelFacts]:
    """A row of the service's list, which has ids only: not even the wire."""
    return row.get("id"), ModelFacts()


def model_for(name: str, added: Added = (), offered: ModelList | None = None) -> OpenCodeModel | None:
    """The model of a normalised name, qualified or bare; exact and case-sensitive. One that the settings add, or the
    service offers, resembles its base, or the nearest model.

    >>> model_for("opencode-go/grok-4.6").wire, model_for("haiku").id, model_for("GLM-5.2")
    ('responses', 'glm-5.3-flash', None)
    >>> model_for("minimax-m4", (("minimax-m4", ""),)).wire
    'messages'
    """
    own, plain = dict(added), bare(name)
    if plain in own:
        return replace(MODELS[own[plain] or nearest(plain, MODELS)], id=plain)
    plain = bare(catalog_of((), offered).resolved(name))
    if plain not in MODELS and offered is not None and plain in offered.models:
        return replace(MODELS[nearest(plain, MODELS)], id=plain)
    return MODELS.get(plain)
