"""P1's models as data: what each is called, on which lane it runs, and who stands behind the aliases."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.core.routing import Catalog, family_of

LABEL = "p1"
FAST = "-fast"
#: The one model that makes and edits images.
IMAGE_MODEL = "gpt-image-2"


@dataclass(frozen=True, slots=True)
class CodexModel:
    """A row. `lite`: runs on the lite lane; `full`: exists on the full lane; `search`: who stands in for what needs the
    full lane, a hosted web search above all."""

    id: str
    lite: bool = False
    full: bool = True
    search: str | None = None


MODELS: dict[str, CodexModel] = {
    model.id: model
    for model in (
        CodexModel("gpt-5.2"),
        CodexModel("gpt-5.3-codex"),
        CodexModel("gpt-5.3-codex-spark"),
        CodexModel("gpt-5.4"),
        CodexModel("gpt-5.4-mini"),
        CodexModel("gpt-5.5"),
        CodexModel("gpt-5.6-luna", lite=True, full=False, search="gpt-5.6-sol"),
        CodexModel("gpt-5.6-sol", lite=True),
        CodexModel("gpt-5.6-terra", lite=True),
        CodexModel("gpt-6-astra", lite=True),
        CodexModel("gpt-6-luna", lite=True, full=False, search="gpt-6-sol"),
        CodexModel("gpt-6-sol", lite=True),
        CodexModel("gpt-6.1-sol", lite=True),
    )
}

#: alias -> upstream model
ALIAS_TARGETS: dict[str, str] = {
    **dict.fromkeys(("haiku", "claude-haiku-4-5", "claude-haiku-4-5-20251001"), "gpt-5.6-luna"),
    **dict.fromkeys(("sonnet", "claude-sonnet-4-6", "claude-sonnet-5"), "gpt-5.6-terra"),
    **dict.fromkeys(("opus", "claude-opus-4-7", "claude-opus-4-8", "claude-opus-5"), "gpt-5.6-sol"),
    **dict.fromkeys(("fable", "claude-fable-5"), "gpt-5.6-sol"),
    "claude-opus-5-5": "gpt-6-sol",
}


def behind_alias(name: str) -> str:
    """The upstream model of an alias; for a version without a row that of the row it is a date of, or of its family;
    any other name as it is."""
    family = family_of(name)
    if name in ALIAS_TARGETS or family is None:
        return ALIAS_TARGETS.get(name, name)
    dated = [alias for alias in ALIAS_TARGETS if name.startswith((f"{alias}-", f"{alias}@"))]
    return ALIAS_TARGETS[max(dated, key=len, default=family)]


def without_fast(model: str) -> tuple[str, bool]:
    """A model's name without the suffix of the fast tier, and whether it had one."""
    base = model.removesuffix(FAST)
    return (base, True) if base != model and base in MODELS else (model, False)


#: how a tier is asked for -> how it is sent
TIERS = {"fast": "priority", "priority": "priority", "flex": "flex"}

CATALOG = Catalog(
    LABEL,
    "codex",
    tuple(name for model in MODELS for name in (model, model + FAST)),
    main="gpt-5.6-sol",
    small="gpt-5.6-luna",
)
