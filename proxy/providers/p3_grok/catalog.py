"""P3's models as data: what each is called, how much fits into it, and how hard it can think."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from proxy.core.routing import Added, Catalog, Limits, nearest

LABEL = "p3"


@dataclass(frozen=True, slots=True)
class GrokModel:
    """A row.

    id       here and upstream
    context  window in tokens
    hardest  the effort that stands for the words beyond `high`
    """

    id: str
    context: int
    hardest: str = "high"

    def effort(self, asked: str | None) -> str | None:
        """The effort to send for the one that a client asks for; None when it asks for none."""
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
    limits={name: Limits(model.context) for name, model in MODELS.items()},
)


@lru_cache(maxsize=8)
def catalog_of(added: Added) -> Catalog:
    """The catalogue with these ids in its list."""
    return CATALOG.extended(added)


def model_for(name: str, added: Added = ()) -> GrokModel:
    """The model behind a normalised name. One that the settings add has the ways of its base, or of the nearest; one
    that is in no list those of the newest."""
    own = dict(added)
    if name in own:
        return replace(MODELS[own[name] or nearest(name, MODELS)], id=name)
    name = CATALOG.behind(name)
    return MODELS.get(name) or replace(NEWEST, id=name)
