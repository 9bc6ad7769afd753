"""P3's models as data: their names, context windows and efforts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from proxy.core.effort import offered_effort
from proxy.core.models import ModelFacts, ModelList, flag_in, tokens_in, word_in, words_in
from proxy.core.routing import CACHED, Added, Catalog, nearest

LABEL = "p3"


@dataclass(frozen=True, slots=True)
class GrokModel:
    """A model.

    id       here and upstream
    context  window in tokens
    hardest  the effort for requests beyond `high`
    efforts  those that the service lists, None if it lists none of the model
    """

    id: str
    context: int
    hardest: str = "high"
    efforts: tuple[str, ...] | None = None

    def effort(self, asked: str | None) -> str | None:
        """The effort to send for the requested one; None when none is requested."""
        ours = self.hardest if asked in ("xhigh", "max") else asked
        return ours if self.efforts is None else offered_effort(asked, ours, self.efforts)


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
    facts={name: ModelFacts(model.context, sees=True, searches=True) for name, model in MODELS.items()},
)


@lru_cache(maxsize=CACHED)
def catalog_of(added: Added, offered: ModelList | None = None) -> Catalog:
    """The catalogue with what the service offers, and these ids added."""
    return CATALOG.offering(offered, lambda name, _facts: (name,), lambda name: name).extended(added, offered)


def offered_model(row: Mapping[str, Any]) -> tuple[Any, ModelFacts]:
    """A row of the service's list: id and facts."""
    reasons = row.get("supportsReasoningEffort")
    facts = ModelFacts(
        context=tokens_in(row.get("contextWindow")),
        efforts=() if reasons is False else words_in(row.get("reasoningEfforts")),
        effort=word_in(row.get("reasoningEffort")),
        searches=flag_in(row.get("supportsBackendSearch")),
    )
    return row.get("id"), facts


@lru_cache(maxsize=CACHED)
def model_for(name: str, added: Added = (), offered: ModelList | None = None) -> GrokModel:
    """The model of a normalised name. One that the settings add resembles its base, or the nearest model; an unlisted
    one resembles the newest. What the service says of it wins."""
    own = dict(added)
    if name in own:
        row = replace(MODELS[own[name] or nearest(name, MODELS)], id=name)
    else:
        name = catalog_of((), offered).resolved(name)
        row = MODELS.get(name) or replace(NEWEST, id=name)
    facts = None if offered is None else offered.models.get(name)
    return row if facts is None else replace(row, context=facts.context or row.context, efforts=facts.efforts)
