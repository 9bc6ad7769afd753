"""P1's models as data: their names, their lanes, and the models behind the aliases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from proxy.core.models import ModelFacts, ModelList, flag_in, tokens_in, word_in, words_in
from proxy.core.routing import CACHED, Added, Catalog, nearest

LABEL = "p1"
FAST = "-fast"
#: suffix of a name -> the tier that it asks for
SUFFIXES = {FAST: "priority", "-ultrafast": "ultrafast"}
#: The one model that makes and edits images.
IMAGE_MODEL = "gpt-image-2"


@dataclass(frozen=True, slots=True)
class CodexModel:
    """A model.

    lite     runs on the lite lane
    full     exists on the full lane
    search   the model that replaces it for what needs the full lane, a hosted web search above all
    context  window in tokens, None when unknown
    listed   whether it is shown; the vendor's own client hides some that it uses itself
    """

    id: str
    lite: bool = False
    full: bool = True
    search: str | None = None
    context: int | None = None
    listed: bool = True

    def as_offered(self, facts: ModelFacts) -> CodexModel:
        """The row with what the service says of its lane and window."""
        lite = self.lite if facts.lite is None else facts.lite
        return replace(self, lite=lite, full=self.full or not lite, context=facts.context or self.context)


_WINDOW = 272_000

#: In each version the first model is the one that a new model most likely resembles.
MODELS: dict[str, CodexModel] = {
    model.id: model
    for model in (
        CodexModel("gpt-5.2"),
        CodexModel("gpt-5.3-codex"),
        CodexModel("gpt-5.3-codex-spark"),
        CodexModel("gpt-5.4"),
        CodexModel("gpt-5.4-mini"),
        CodexModel("gpt-5.5", context=_WINDOW),
        CodexModel("gpt-5.6-sol", lite=True, context=_WINDOW),
        CodexModel("gpt-5.6-terra", lite=True, context=_WINDOW),
        CodexModel("gpt-5.6-luna", lite=True, full=False, search="gpt-5.6-sol", context=_WINDOW),
        CodexModel("gpt-6-sol", lite=True, context=_WINDOW),
        CodexModel("gpt-6-astra", lite=True, context=_WINDOW),
        CodexModel("gpt-6-luna", lite=True, full=False, search="gpt-6-sol", context=_WINDOW),
        CodexModel("gpt-6.1-sol", lite=True, context=_WINDOW),
        CodexModel("gpt-6.1-terra", lite=True, context=500_000),
        CodexModel("gpt-daybreak-blue-latest", lite=True, context=_WINDOW, listed=False),
        CodexModel("gpt-daybreak-red-latest", lite=True, context=372_000, listed=False),
        # Judges what Codex CLI is about to do, and is given nothing to do itself.
        CodexModel("codex-auto-review", lite=True, full=False, search="gpt-5.6-sol", context=_WINDOW, listed=False),
    )
}

_DAYBREAK_NAME = "gpt-daybreak-"
_DAYBREAK = tuple(name for name in MODELS if name.startswith(_DAYBREAK_NAME))
_LISTED = tuple(model.id for model in MODELS.values() if model.listed)

#: alias -> upstream model
ALIAS_TARGETS: dict[str, str] = {
    **dict.fromkeys(("haiku", "claude-haiku-4-5", "claude-haiku-4-5-20251001"), "gpt-5.6-luna"),
    **dict.fromkeys(("sonnet", "claude-sonnet-4-6", "claude-sonnet-5"), "gpt-5.6-terra"),
    **dict.fromkeys(("opus", "claude-opus-4-7", "claude-opus-4-8", "claude-opus-5"), "gpt-5.6-sol"),
    **dict.fromkeys(("fable", "claude-fable-5"), "gpt-5.6-sol"),
    "claude-opus-5-5": "gpt-6-sol",
}


#: tier in a request -> tier that is sent
TIERS = {"fast": "priority", "priority": "priority", "flex": "flex"}

#: New models of the service, and unlisted ones.
FAMILIES = re.compile(r"(?:gpt-[0-9]|gpt-daybreak-|codex-[a-z0-9])[\w.:@-]{0,80}", re.ASCII)

CATALOG = Catalog(
    LABEL,
    "codex",
    tuple(name for model in MODELS.values() if model.listed for name in (model.id, model.id + FAST)),
    families=FAMILIES,
    main="gpt-5.6-sol",
    small="gpt-5.6-luna",
    reviewer="gpt-5.6-luna",
    aliases=ALIAS_TARGETS,
    followed=True,
    facts={
        name: ModelFacts(row.context, lite=row.lite, listed=row.listed)
        for row in MODELS.values()
        for name in (row.id, row.id + FAST)
    },
)


@lru_cache(maxsize=CACHED)
def catalog_of(added: Added, offered: ModelList | None = None) -> Catalog:
    """The catalogue with what the service offers, and these ids added."""
    now = CATALOG.offering(offered, _names, lambda name: without_tier(name, added, offered)[0], like)
    return now.extended(((name + fast, base or like(name)) for name, base in added for fast in ("", FAST)), offered)


def _names(model: str, facts: ModelFacts) -> Iterator[str]:
    """The names of an id: its own, and one for each tier that it offers."""
    yield model
    for suffix, tier in SUFFIXES.items():
        if tier in (("priority",) if facts.tiers is None else facts.tiers):
            yield model + suffix


def offered_model(row: Mapping[str, Any]) -> tuple[Any, ModelFacts]:
    """A row of the service's list: id and facts. `visibility` is `list`, `hide` or `none`."""
    speeds = words_in(row.get("additional_speed_tiers")) or ()
    tiers = words_in(row.get("service_tiers"), "id")
    if tiers is not None:
        tiers = tuple(dict.fromkeys((*tiers, *(TIERS[one] for one in speeds if one in TIERS))))
    kinds = words_in(row.get("input_modalities"))
    facts = ModelFacts(
        context=tokens_in(row.get("context_window")),
        largest=tokens_in(row.get("max_context_window")),
        efforts=words_in(row.get("supported_reasoning_levels"), "effort"),
        effort=word_in(row.get("default_reasoning_level")),
        tiers=tiers,
        lite=flag_in(row.get("use_responses_lite")),
        sees=None if kinds is None else "image" in kinds,
        title=word_in(row.get("display_name")) or "",
        listed=row.get("visibility", "list") == "list",
    )
    return row.get("slug"), facts


def without_tier(model: str, added: Added = (), offered: ModelList | None = None) -> tuple[str, str | None]:
    """A model's name without the suffix of a tier, and that tier. An id of the settings or the service may end so."""
    for suffix, tier in SUFFIXES.items():
        if model.endswith(suffix) and model not in dict(added):
            own = offered is not None and model in offered.models
            return (model, None) if own else (model.removesuffix(suffix), tier)
    return model, None


def like(name: str) -> str:
    """The listed model that a new one resembles most. An unlisted line has its own."""
    return nearest(name, _DAYBREAK if name.startswith(_DAYBREAK_NAME) else _LISTED)


@lru_cache(maxsize=CACHED)
def model_for(name: str, added: Added = (), offered: ModelList | None = None) -> CodexModel:
    """The row of an upstream model. A new one gets the row that the settings name for it, or that of the model it
    resembles most. What the service says of it wins."""
    base = dict(added).get(name)
    row = MODELS[name] if base is None and name in MODELS else replace(MODELS[base or like(name)], id=name)
    facts = None if offered is None else offered.models.get(name)
    return row if facts is None else row.as_offered(facts)
