"""Finds the provider of a model name. Catalogues are data; this module only compares strings."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any

from proxy.core.models import UNKNOWN, ModelFacts, ModelList

#: Names that Claude Code uses by itself (background requests, subagents, the /model picker). They belong to no
#: catalogue: `aliasProvider`, or the provider a session already works with, serves them. Exact, case-sensitive.
#: Only these are listed, but every other version of a family is served too.
ALIASES = frozenset(
    {
        "haiku",
        "claude-haiku-4-5",
        "claude-haiku-4-5-20251001",
        "sonnet",
        "claude-sonnet-4-6",
        "claude-sonnet-5",
        "opus",
        "claude-opus-4-7",
        "claude-opus-4-8",
        "claude-opus-5",
        "claude-opus-5-5",
        "fable",
        "claude-fable-5",
    }
)

#: The names of the families themselves.
FAMILIES = frozenset({"haiku", "sonnet", "opus", "fable"})

#: `claude-haiku-5-5`, and the older order, `claude-3-5-haiku-20241022`, in one cloud with `@` before the date. Each
#: release of the client brings new versions. Answers repeat the name in each of their chunks, so it has a bound.
_VERSION = re.compile(r"claude-(?:[0-9][0-9.-]{,20}-)?(haiku|sonnet|opus|fable)(?:[-@][\w.@:-]{1,80})?", re.ASCII)

#: Prefix of the models that Claude Code's picker shows of a gateway. A setting gives our names this prefix too.
CLAUDE = "claude-"

#: Models that the settings add to a provider: ids, each with the base model that it behaves like, or "".
Added = tuple[tuple[str, str], ...]

#: Catalogues and rows that a provider keeps: each account's list makes its own.
CACHED = 64

#: The words and numbers of a name.
_PARTS = re.compile(r"[0-9]+(?:\.[0-9]+)*|[a-z]+", re.ASCII)

#: Maximum number of names that an error proposes.
MAX_PROPOSED = 3

#: Beginning of the prompt by which Claude Code's auto mode asks a second model whether an action is safe.
AUTO_REVIEW_MARKER = "You are a security monitor for autonomous AI coding agents."


@dataclass(frozen=True, slots=True)
class Catalog:
    """The models of a provider.

    label     p1 … p5
    service   the public name of the service, a synonym of the label wherever a user types one
    models    every id that routes here and is listed
    prefixes  name prefixes that route here whatever follows, the plain one first
    families  the pattern of unlisted names that route here too: new models of the service, and hidden ones
    prefixed  names with one of the prefixes that are listed after the models; there may be hundreds
    blanks    whether blanks around a name are ignored
    main      the model that the aliases mean
    small     the model that the alias for small and quick work means; it judges the tool calls of answers, too
    reviewer  the model that serves the client's own safety classifier in place of the one it names; "" for that one
    aliases   alias -> model, for aliases that mean another model than `main` or `small`
    followed  whether aliases in a session that works with this provider go here, whatever the settings say
    facts     model -> what is known of it
    hidden    names that route here and are not listed
    lacking   listed names that the service does not list for any account
    qualifier  prefix of names that no other provider has, "" for none
    """

    label: str
    service: str
    models: tuple[str, ...]
    prefixes: tuple[str, ...] = ()
    families: re.Pattern[str] | None = None
    prefixed: tuple[str, ...] = ()
    blanks: bool = False
    main: str = ""
    small: str = ""
    reviewer: str = ""
    aliases: Mapping[str, str] = field(default_factory=dict, hash=False)
    facts: Mapping[str, ModelFacts] = field(default_factory=dict, hash=False)
    followed: bool = False
    hidden: frozenset[str] = frozenset()
    lacking: frozenset[str] = frozenset()
    qualifier: str = ""

    @property
    def shown(self) -> tuple[str, ...]:
        """The names to list: without what no account has."""
        return tuple(name for name in self.models if name not in self.lacking) if self.lacking else self.models

    def called(self, model: str) -> str:
        """A normalised name as this catalogue compares it. Blanks may have hidden the `[1m]` hint."""
        if not self.blanks or model == model.strip():
            return model
        return normalise_model(model.strip()).strip()

    def resolved(self, model: str) -> str:
        """The model that an alias means: by its own row, by the row of which it is a dated version, or by its family.
        Any other name is returned unchanged."""
        family = model if model in FAMILIES else family_of(model)
        if family is None or model in self.models:
            return model
        dated = [alias for alias in self.aliases if f"{model}-".startswith((f"{alias}-", f"{alias}@"))]
        other = self.small if family == "haiku" else self.main
        return self.aliases.get(max(dated, key=len, default=family), other)

    def extended(self, names: Iterable[tuple[str, str]], offered: ModelList | None = None) -> Catalog:
        """A catalogue that lists these names too.

        names    pairs of a name and a listed model that it resembles, or ""
        offered  what the service says of such a name wins
        """
        own = dict(names)
        facts = {name: self.facts[base] for name, base in own.items() if base in self.facts}
        rows = {} if offered is None else offered.models
        facts |= {name: replace(rows[name].over(facts.get(name, UNKNOWN)), listed=True) for name in own if name in rows}
        models = tuple(dict.fromkeys((*self.models, *own)))
        return replace(self, models=models, facts={**self.facts, **facts}, lacking=self.lacking - own.keys())

    def offering(
        self,
        offered: ModelList | None,
        names: Callable[[str, ModelFacts], Iterable[str]],
        id_of: Callable[[str], str],
        like: Callable[[str], str] = lambda _id: "",
    ) -> Catalog:
        """The catalogue with what the service lists for the accounts: its rows win over our table.

        names  all names for a listed id, with those of our table
        id_of  the service's id for a name of our table
        like   the name of our table that a new id resembles, whose facts it has where its row says none
        """
        if offered is None:
            return self
        rows, ids = offered.models, {name: id_of(name) for name in self.models}
        named = {name: one for one in rows for name in names(one, rows[one])}
        named |= {one: one for one in rows if one in named}  # its own row, not the tier of another
        ids |= {name: one for name, one in named.items() if name not in ids}
        facts = {**self.facts}
        new = {one: self.facts.get(like(one), UNKNOWN) for one in {*ids.values()} & rows.keys() - self.facts.keys()}
        facts |= {
            name: rows[one].over(self.facts.get(name) or new.get(one, UNKNOWN))
            for name, one in ids.items()
            if one in rows
        }
        models = tuple(name for name in ids if facts.get(name, UNKNOWN).listed)
        lacking = frozenset(name for name in self.models if name not in named)
        kept = [name for name in models if name not in lacking]
        whole = [name for name in kept if ids[name] == name] or kept

        hidden = self.hidden | (ids.keys() - set(models))
        now = replace(self, models=models, facts=facts, hidden=hidden, lacking=lacking)
        return now._with_targets(lacking, whole)

    def _with_targets(self, gone: Collection[str], whole: Sequence[str]) -> Catalog:
        """The catalogue whose aliases mean models that are there: instead of one that is gone the nearest."""

        def instead(model: str) -> str:
            return nearest(model, whole) if model in gone and whole else model

        aliases = {alias: instead(model) for alias, model in self.aliases.items()}
        main, small, reviewer = map(instead, (self.main, self.small, self.reviewer))
        return replace(self, main=main, small=small, reviewer=reviewer, aliases=aliases)

    def without(self, names: Collection[str]) -> Catalog:
        """The catalogue without these names."""
        if not names:
            return self
        models = tuple(name for name in self.models if name not in names)
        now = replace(self, models=models, hidden=self.hidden.difference(names))
        return now._with_targets(names, now.shown)

    def lists(self, model: str) -> bool:
        """Whether the service lists what a name means; an id with a prefix may have an ending that the name lacks."""
        called = self.called(self.resolved(model))
        for prefix in self.prefixes:
            if called.startswith(prefix):
                first = self.prefixes[0] + called.removeprefix(prefix)
                return any(name == first or name.startswith(f"{first}-") for name in self.prefixed)
        return called in self.shown or called in self.hidden

    def facts_of(self, model: str) -> ModelFacts:
        """What is known of a listed name or an alias."""
        return self.facts.get(self.resolved(model), UNKNOWN)


@dataclass(frozen=True, slots=True)
class Route:
    """A provider's label, and whether the name was an alias."""

    label: str
    alias: bool


def normalise_model(model: str) -> str:
    """The name without one trailing `[1m]` (any case): a client-side hint that no upstream knows."""
    return model[:-4] if model[-4:].lower() == "[1m]" else model


def family_of(model: str) -> str | None:
    """The family of Claude models that a name is a version of, or None.

    >>> family_of("claude-opus-9"), family_of("claude-3-5-haiku-20241022"), family_of("claude-foo-1"), family_of("opus")
    ('opus', 'haiku', None, None)
    """
    found = _VERSION.fullmatch(model)
    return found[1] if found else None


def route(model: str, catalogs: Sequence[Catalog], *, alias_provider: str, affinity: str | None = None) -> Route | None:
    """The provider of a normalised name; None for an unknown name.

    Prefixes are checked first, then the lists in order of label: so `grok-4.5` is P3's and `opencode-go/grok-4.5` P4's.
    A name in no list may be a new model of a service, or an alias: a listed one or a version of a known family. An
    alias goes to `affinity`, the provider that its session already works with, else to `alias_provider`.
    """
    for catalog in catalogs:
        called = catalog.called(model) if catalog.blanks else model
        for prefix in catalog.prefixes:
            if called.startswith(prefix) and called != prefix:
                return Route(catalog.label, False)
    for catalog in sorted(catalogs, key=attrgetter("label")):
        if (catalog.called(model) if catalog.blanks else model) in catalog.models:
            return Route(catalog.label, False)
    for catalog in catalogs:
        if model in catalog.hidden or (catalog.families is not None and catalog.families.fullmatch(model)):
            return Route(catalog.label, False)
    known = model in ALIASES or family_of(model) is not None
    return _alias(affinity or alias_provider, catalogs) if known else None


def foreign_names(catalog: Catalog, table: Catalog, others: Sequence[Catalog]) -> frozenset[str]:
    """The names that a list of the service must not give a model: those of another provider, and of aliases.

    catalog  with the list of the service
    table    the same one without it
    others   the tables of the other providers
    """
    new = {*catalog.models, *catalog.hidden} - {*table.models, *table.hidden}
    foreign = {name for name in new if _is_foreign(name, catalog.qualifier, others)}
    return frozenset(name for name in new if name in foreign or name.rpartition("-")[0] in foreign)  # a tier of one


def _is_foreign(name: str, qualifier: str, others: Sequence[Catalog]) -> bool:
    if qualifier and name.startswith(qualifier):
        return False
    alias = name in ALIASES or name in FAMILIES or family_of(name) is not None or normalise_model(name) != name
    return alias or "/" in name or ":" in name or route(name, others, alias_provider="") is not None


def without_claude(model: str, catalogs: Sequence[Catalog]) -> str:
    """The model name after `claude-` in a name made for Claude Code's picker; any other name unchanged.

    >>> catalogs = [Catalog("p1", "codex", ("gpt-5.5",), main="gpt-5.5")]
    >>> [without_claude(name, catalogs) for name in ("claude-gpt-5.5", "claude-opus-5", "claude-x")]
    ['gpt-5.5', 'claude-opus-5', 'claude-x']
    """
    plain = model.removeprefix(CLAUDE)
    if plain == model or any(catalog.called(model) in catalog.models for catalog in catalogs):
        return model
    found = route(plain, catalogs, alias_provider="")
    return plain if found is not None else model


def _alias(label: str, catalogs: Sequence[Catalog]) -> Route | None:
    return Route(label, True) if any(catalog.label == label for catalog in catalogs) else None


def nearest(model: str, known: Iterable[str]) -> str:
    """The known id that a new one most likely behaves like: of the same family, with the same words, in the nearest
    version, an older one before a newer one. Of two equally near ones the first counts.

    >>> known = ("gpt-5.5", "gpt-5.4-mini", "gpt-5.6-luna", "gpt-5.6-sol", "gpt-6-luna", "gpt-6.1-sol")
    >>> [nearest(model, known) for model in ("gpt-6.2-sol", "gpt-7-luna", "gpt-5.6", "gpt-6.1-nova", "codex-mini")]
    ['gpt-6.1-sol', 'gpt-6-luna', 'gpt-5.5', 'gpt-6.1-sol', 'gpt-5.4-mini']
    """
    family, version, words = _parts(model)

    def distance(other: str) -> Any:
        its_family, its_version, its_words = _known_parts(other)
        strange = len(words ^ its_words) / max(1, len(words | its_words))
        newer = its_version > version
        return its_family != family, strange, newer, tuple(part if newer else -part for part in its_version)

    return min(known, key=distance)


def model_family(model: str) -> str:
    """The word that the names of a model's family begin with.

    >>> model_family("opencode-go/kimi-k2.6"), model_family("cursor:gpt-5.5"), model_family("grok-4.6")
    ('kimi', 'gpt', 'grok')
    """
    return _parts(re.split("[/:]", model)[-1])[0]


def _parts(model: str) -> tuple[str, tuple[int, ...], frozenset[str]]:
    """The family, the version and the other words of a name.

    >>> _parts("gpt-5.3-codex")
    ('gpt', (5, 3, 0), frozenset({'codex'}))
    """
    family, *words = _PARTS.findall(model) or [""]
    version = next((word for word in words if word[0].isdigit()), "0")
    numbers = [int(number[:9]) for number in version.split(".")]
    return family, (*numbers, 0, 0)[:3], frozenset(words) - {version}


#: Each of many new ids is compared with the same known ones.
_known_parts = lru_cache(maxsize=1024)(_parts)


def _grouped(catalogs: Sequence[Catalog], alias_provider: str) -> list[tuple[Catalog, list[str]]]:
    """The catalogues by label, each with its sorted models. A name in several lists belongs to the first, an unlisted
    alias to the provider that serves it."""
    ordered = sorted(catalogs, key=lambda catalog: catalog.label)
    owners = {model: catalog.label for catalog in reversed(ordered) for model in catalog.shown}
    owners = dict.fromkeys(ALIASES, alias_provider) | owners
    return [
        (catalog, sorted(model for model, label in owners.items() if label == catalog.label)) for catalog in ordered
    ]


def listing(catalogs: Sequence[Catalog], alias_provider: str) -> list[tuple[str, str]]:
    """All `(id, label)` pairs for display: by label, then by id, names with a prefix last."""
    groups = _grouped(catalogs, alias_provider)
    return [(model, catalog.label) for catalog, models in groups for model in (*models, *catalog.prefixed)]


def proposal(model: str, catalogs: Sequence[Catalog], alias_provider: str) -> str:
    """A question with the names that are most like an unknown one, nearest first; "" if none is similar.

    >>> proposal("GPT5.5", [Catalog("p1", "codex", ("gpt-5.5", "gpt-5.4", "other"))], "p1")
    'Did you mean gpt-5.5 or gpt-5.4? '
    """
    known = {name.lower(): name for _, models in _grouped(catalogs, alias_provider) for name in models}
    import difflib  # 150 kB, for errors only

    near = [known[name] for name in difflib.get_close_matches(model.lower(), known, MAX_PROPOSED)]
    if not near:
        return ""
    *others, last = near
    return f"Did you mean {', '.join(others) + ' or ' if others else ''}{last}? "


def catalog_text(catalogs: Sequence[Catalog], alias_provider: str) -> str:
    """The sentence that ends every unknown-model error: `Supported: p1: a, b; p2: c.` Names with a prefix, of which
    there may be hundreds, appear as `prefix<model-id>`."""
    groups = [
        f"{catalog.label}: {', '.join((*models, *_forms(catalog)))}"
        for catalog, models in _grouped(catalogs, alias_provider)
    ]
    return f"Supported: {'; '.join(groups)}."


def _forms(catalog: Catalog) -> Sequence[str]:
    return [f"{prefix}<model-id>" for prefix in catalog.prefixes] if catalog.prefixed else ()


def is_auto_review(request: Mapping[str, Any]) -> bool:
    """Whether a Messages request is Claude Code's safety classifier: not streamed, no tools, and the marker in a block
    of an array `system`."""
    system = request.get("system")
    tools = request.get("tools")
    if request.get("stream") or (isinstance(tools, list) and tools) or not isinstance(system, list):
        return False
    return any(
        isinstance(block, Mapping)
        and isinstance(block.get("text"), str)
        and block["text"].startswith(AUTO_REVIEW_MARKER)
        for block in system
    )
