"""P1's models as data: their names, their lanes, and the models behind the aliases."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from proxy.core.routing import Added, Catalog, ModelLimits, nearest

LABEL = "p1"
FAST = "-fast"
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
    limits={name: ModelLimits(row.context) for row in MODELS.values() for name in (row.id, row.id + FAST)},
)


@lru_cache(maxsize=8)
def catalog_of(added: Added) -> Catalog:
    """The catalogue with these ids added."""
    return CATALOG.extended((name + fast, base) for name, base in added for fast in ("", FAST))


def without_fast(model: str, added: Added = ()) -> tuple[str, bool]:
    """A model's name without the suffix of the fast tier, and whether it had one. An id in the settings may end like
    it."""
    base = model.removesuffix(FAST)
    return (model, False) if base == model or model in dict(added) else (base, True)


def like(name: str) -> str:
    """The listed model that a new one resembles most. An unlisted line has its own."""
    return nearest(name, _DAYBREAK if name.startswith(_DAYBREAK_NAME) else _LISTED)


@lru_cache(maxsize=256)
def model_for(name: str, added: Added = ()) -> CodexModel:
    """The row of an upstream model. A new one gets the row that the settings name for it, or that of the model it
    resembles most."""
    base = dict(added).get(name)
    if base is None and name in MODELS:
        return MODELS[name]
    return replace(MODELS[base or like(name)], id=name)
