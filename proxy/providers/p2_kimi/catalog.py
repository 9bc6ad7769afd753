"""P2's models as data: their upstream names, longest answers, and efforts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from proxy.core.effort import EFFORTS, offered_effort
from proxy.core.models import ModelFacts, ModelList, flag_in, tokens_in, word_in, words_in
from proxy.core.routing import CACHED, Added, Catalog, nearest

LABEL = "p2"

#: requested effort -> effort sent; None is no request, or an unknown word.
_CODING_EFFORTS: Mapping[str | None, str] = MappingProxyType(
    {None: "medium", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}
)
_K3_EFFORTS: Mapping[str | None, str] = MappingProxyType(
    {None: "high", "low": "low", "medium": "high", "high": "high", "xhigh": "high", "max": "max"}
)


@dataclass(frozen=True, slots=True)
class KimiModel:
    """A model.

    id              upstream
    bears_required  whether a call may be forced while it thinks, though not of which tool
    always_thinks   whether thinking cannot be switched off
    never_thinks    whether it has no reasoning at all
    context         window in tokens
    default_output  longest answer when the client does not say
    output_cap      largest limit that is sent; None: the upstream cuts it to what is left of the window
    efforts         requested -> sent
    sees            whether it takes images
    """

    id: str
    bears_required: bool
    always_thinks: bool
    context: int
    default_output: int
    output_cap: int | None
    efforts: Mapping[str | None, str]
    never_thinks: bool = False
    sees: bool = True

    def max_tokens(self, requested: int | None) -> int:
        """The longest answer to allow."""
        wanted = requested if requested and requested > 0 else self.default_output
        return wanted if self.output_cap is None else min(wanted, self.output_cap)

    def effort(self, asked: str | None) -> str:
        """The effort to send for a requested one; None when none is requested."""
        return self.efforts[asked]

    def thinking(self, effort: str | None) -> dict[str, Any]:
        """The member `thinking` with its effort; None switches it off where that is possible. The reasoning of earlier
        turns is kept."""
        if self.never_thinks or (effort is None and not self.always_thinks):
            return {"type": "disabled"}
        return {"type": "enabled", "effort": effort or self.efforts["low"], "keep": "all"}

    def as_offered(self, facts: ModelFacts) -> KimiModel:
        """The row with what the service says of its window, thinking, efforts and pictures."""
        context = facts.context or self.context
        efforts: Mapping[str | None, str] = self.efforts
        if facts.efforts:
            sent: dict[str | None, str] = {
                one: offered_effort(one, self.efforts[one], facts.efforts) or one for one in EFFORTS
            }
            default = facts.effort if facts.effort in facts.efforts else sent[self.efforts[None]]
            efforts = {None: default, **sent}
        return replace(
            self,
            context=context,
            default_output=min(self.default_output, context),
            always_thinks=self.always_thinks if facts.thinks is None else facts.thinks == "only",
            never_thinks=facts.thinks == "no",
            efforts=efforts,
            sees=facts.sees is not False,
        )


CODING = KimiModel("kimi-for-coding", False, False, 262_144, 32_000, 32_000, _CODING_EFFORTS)
K3 = KimiModel("k3", True, True, 1_048_576, 1_048_576, None, _K3_EFFORTS)

#: requested name -> model
MODELS: dict[str, KimiModel] = {
    "k2.6": CODING,
    "k3": K3,
    "kimi-for-coding": CODING,
    "kimi-k2.6": CODING,
    "kimi-k3": K3,
}

CATALOG = Catalog(
    LABEL,
    "kimi",
    tuple(MODELS),
    main="kimi-for-coding",
    small="kimi-for-coding",
    followed=True,
    facts={
        name: ModelFacts(
            model.context,
            model.output_cap,
            efforts=tuple(dict.fromkeys(model.efforts[one] for one in EFFORTS)),
            effort=model.efforts[None],
            sees=True,
        )
        for name, model in MODELS.items()
    },
)


@lru_cache(maxsize=CACHED)
def catalog_of(added: Added, offered: ModelList | None = None) -> Catalog:
    """The catalogue with what the service offers, and these ids added."""
    return CATALOG.offering(offered, _names, lambda name: _row(name, offered).id).extended(added, offered)


def _names(model: str, _facts: ModelFacts) -> tuple[str, ...]:
    """The names of an id: its own, and those of our table that mean it."""
    return model, *(name for name, row in MODELS.items() if row.id == model)


def _row(name: str, offered: ModelList | None) -> KimiModel:
    """The row of our table, or the nearest one for an id of the service."""
    if name in MODELS and (offered is None or name not in offered.models):
        return MODELS[name]
    return replace(MODELS.get(name) or MODELS[nearest(name, MODELS)], id=name)


def offered_model(row: Mapping[str, Any]) -> tuple[Any, ModelFacts]:
    """A row of the service's list: id and facts."""
    thinking = row.get("think_efforts")
    levels = thinking if isinstance(thinking, Mapping) and thinking.get("support") is True else {}
    thinks = row.get("supports_thinking_type")
    if thinks not in ("only", "both", "no"):
        thinks = "no" if row.get("supports_reasoning") is False else None
    facts = ModelFacts(
        context=tokens_in(row.get("context_length")),
        efforts=words_in(levels.get("valid_efforts")),
        effort=word_in(levels.get("default_effort")),
        thinks=thinks,
        sees=flag_in(row.get("supports_image_in")),
        title=word_in(row.get("display_name")) or "",
    )
    return row.get("id"), facts


@lru_cache(maxsize=CACHED)
def model_for(name: str, added: Added = (), offered: ModelList | None = None) -> KimiModel:
    """The model of a normalised name; one that the settings add resembles its base, or the nearest model. What the
    service says of it wins.

    >>> model_for("opus").id, model_for("kimi-k3").id, model_for("kimi-k4", (("kimi-k4", ""),)).always_thinks
    ('kimi-for-coding', 'k3', True)
    """
    own = dict(added)
    if name in own:
        row = replace(MODELS[own[name] or nearest(name, MODELS)], id=name)
    else:
        row = _row(catalog_of((), offered).resolved(name), offered)
    facts = None if offered is None else offered.models.get(row.id)
    return row if facts is None else row.as_offered(facts)
