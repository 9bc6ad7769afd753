"""P3's models as data: their names, context windows and efforts."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from proxy.core.routing import Added, Catalog, ModelLimits, nearest

LABEL = "p3"


@dataclass(frozen=True, slots=True)
class GrokModel:
    """A model.

    id       here and upstream
    context  window in tokens
    hardest  the effort for requests beyond `high`
    """

    id: str
    context: int
    hardest: str = "high"

    def effort(self, asked: str | None) -> str | None:
        """The effort to send for the requested one; None when none is requested."""
        return self.hardest if asked in ("xhigh", "max") else asked


NEWEST = GrokModel("grok-4.6", 500_000, hardest="xhigh")

MODELS: dict[str, GrokModel] = {
    model.id: model for model in (GrokModel("grok-composer-2.5-fast", 200_000), GrokModel("grok-4.5", 500_000), NEWEST)
}

#: New models of the service.
FAMILIES = re.compile(r"grok-[\w.:@-]{1,80}", re.ASCII)

CATALOG = Catalog(
    LABEL,
    "grok",
    tuple(MODELS),
    families=FAMILIES,
    main="grok-4.6",
    small="grok-4.5",
    limits={name: ModelLimits(model.context) for name, model in MODELS.items()},
)


@lru_cache(maxsize=8)
def catalog_of(added: Added) -> Catalog:
    """The catalogue with these ids added."""
    return CATALOG.extended(added)


def model_for(name: str, added: Added = ()) -> GrokModel:
    """The model of a normalised name. One that the settings add resembles its base, or the nearest model; an unlisted
    one resembles the newest."""
    own = dict(added)
    if name in own:
        return replace(MODELS[own[name] or nearest(name, MODELS)], id=name)
    name = CATALOG.resolved(name)
    return MODELS.get(name) or replace(NEWEST, id=name)
