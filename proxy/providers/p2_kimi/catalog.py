"""P2's models as data: their upstream names, longest answers, and efforts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from proxy.core.routing import Added, Catalog, ModelLimits, nearest

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
    context         window in tokens
    default_output  longest answer when the client does not say
    output_cap      largest limit that is sent; None: the upstream cuts it to what is left of the window
    efforts         requested -> sent
    """

    id: str
    bears_required: bool
    always_thinks: bool
    context: int
    default_output: int
    output_cap: int | None
    efforts: Mapping[str | None, str]

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
        if effort is None and not self.always_thinks:
            return {"type": "disabled"}
        return {"type": "enabled", "effort": effort or self.efforts["low"], "keep": "all"}


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
    limits={name: ModelLimits(model.context, model.output_cap) for name, model in MODELS.items()},
)


@lru_cache(maxsize=8)
def catalog_of(added: Added) -> Catalog:
    """The catalogue with these ids added."""
    return CATALOG.extended(added)


def model_for(name: str, added: Added = ()) -> KimiModel:
    """The model of a normalised name; one that the settings add resembles its base, or the nearest model.

    >>> model_for("opus").id, model_for("kimi-k3").id, model_for("kimi-k4", (("kimi-k4", ""),)).always_thinks
    ('kimi-for-coding', 'k3', True)
    """
    own = dict(added)
    if name in own:
        return replace(MODELS[own[name] or nearest(name, MODELS)], id=name)
    return MODELS[CATALOG.resolved(name)]
