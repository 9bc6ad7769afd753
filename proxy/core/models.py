"""What is known of a model, from our tables or from the list that its service gives an account."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeGuard

#: Most models of one list, and most characters of an id: answers repeat the name in each of their chunks.
MAX_MODELS = 1000
MAX_ID = 100
#: Most efforts or tiers of one model, and most characters of a word.
MAX_WORDS = 16
_MAX_WORD = 40


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known of a model; None where unknown.

    context   usual window in tokens
    largest   largest window in tokens, where it can be made larger
    output    longest answer in tokens
    efforts   reasoning efforts that it offers, from little to much
    effort    its default effort
    tiers     service tiers that it offers, besides the ordinary one
    thinks    whether it reasons: `only`, `both` or `no`
    lite      whether it runs on P1's lite lane
    sees      whether it takes pictures
    searches  whether it has a hosted web search
    title     its display name, "" for none
    listed    whether it is shown in lists; a hidden one is served all the same
    """

    context: int | None = None
    output: int | None = None
    largest: int | None = None
    efforts: tuple[str, ...] | None = None
    effort: str | None = None
    tiers: tuple[str, ...] | None = None
    thinks: str | None = None
    lite: bool | None = None
    sees: bool | None = None
    searches: bool | None = None
    title: str = ""
    listed: bool = True

    def over(self, table: ModelFacts) -> ModelFacts:
        """These facts, and those of our table where these say nothing."""
        if table is UNKNOWN:
            return self
        known = {one.name: getattr(self, one.name) for one in fields(self)}
        return replace(table, **{name: value for name, value in known.items() if value not in (None, "")})


UNKNOWN = ModelFacts()


@dataclass(frozen=True, slots=True, eq=False)
class ModelList:
    """The models that a service offers to an account. Lists are equal if they share one table of models, so that what
    is derived from it is kept when the service confirms it.

    models  id -> facts, in the order of the service
    asked   when the service gave it, epoch seconds
    tag     its entity tag, "" for none
    """

    models: Mapping[str, ModelFacts]
    asked: float = 0.0
    tag: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ModelList) and other.models is self.models

    def __hash__(self) -> int:
        return id(self.models)


def union(lists: Sequence[ModelList]) -> ModelList | None:
    """The models of several accounts as one list; None without any. Of two rows for one id the first counts."""
    if len(lists) < 2:
        return lists[0] if lists else None
    models = {name: facts for one in reversed(lists) for name, facts in one.models.items()}
    return ModelList(models, min(one.asked for one in lists))


# -- reading the rows of a service


def is_id(value: Any) -> bool:
    """Whether a value may be the id of a model, and be followed by a suffix or stand after a prefix."""
    return isinstance(value, str) and 0 < len(value) <= MAX_ID and value.isprintable() and " " not in value


def tokens_in(value: Any) -> int | None:
    """A number of tokens, None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**53 else None


def words_in(values: Any, member: str = "") -> tuple[str, ...] | None:
    """The words of a list, each once; None for anything else. `member` names the word where the elements are objects.

    >>> words_in(["low", 3, "high"]), words_in([{"effort": "low"}], "effort"), words_in("low")
    (('low', 'high'), ('low',), None)
    """
    if not isinstance(values, list):
        return None
    found = [value.get(member) if member and isinstance(value, Mapping) else value for value in values]
    return tuple(dict.fromkeys(filter(None, map(word_in, found))))[:MAX_WORDS]


def word_in(value: Any) -> str | None:
    """The value if it is a short printable text, else None."""
    return value if isinstance(value, str) and 0 < len(value) <= _MAX_WORD and value.isprintable() else None


def flag_in(value: Any) -> bool | None:
    """The value if it is a truth value, else None."""
    return value if isinstance(value, bool) else None


class NoModel(ValueError):
    """A list without a model."""


def model_list(rows: Iterable[tuple[str, ModelFacts]], asked: float, tag: str = "") -> ModelList:
    """The list of these rows: each id once, at most MAX_MODELS. Raises NoModel."""
    models: dict[str, ModelFacts] = {}
    for name, facts in rows:
        if is_id(name) and len(models) < MAX_MODELS:
            models.setdefault(name, facts)
    if not models:
        raise NoModel("the answer names no model")
    return ModelList(models, asked, tag[:MAX_ID] if tag.isprintable() else "")


# -- as JSON, for the state folder


@dataclass(frozen=True, slots=True)
class _Form:
    """How a fact is checked when it is read back."""

    check: Any
    names: tuple[str, ...] = field(default=())


_FORMS = (
    _Form(tokens_in, ("context", "output", "largest")),
    _Form(words_in, ("efforts", "tiers")),
    _Form(word_in, ("effort", "thinks", "title")),
    _Form(flag_in, ("lite", "sees", "searches", "listed")),
)
_CHECKS = {name: form.check for form in _FORMS for name in form.names}


def as_json(known: ModelList) -> dict[str, Any]:
    """The list as JSON: each model with what is known of it."""
    rows = {
        name: {one.name: getattr(facts, one.name) for one in fields(facts) if getattr(facts, one.name) != one.default}
        for name, facts in known.models.items()
    }
    return {"asked": known.asked, "tag": known.tag, "models": rows}


def from_json(value: Any) -> ModelList:
    """The list in JSON of ours, checked value by value. Raises ValueError for another form."""
    rows = value.get("models") if isinstance(value, Mapping) else None
    asked = value.get("asked") if isinstance(value, Mapping) else None
    if not isinstance(rows, Mapping) or not _is_moment(asked):
        raise ValueError("another program or version wrote it")
    tag = value.get("tag")
    return model_list(
        ((name, _facts(row)) for name, row in rows.items() if isinstance(row, Mapping)),
        float(asked),
        tag if isinstance(tag, str) else "",
    )


def _is_moment(value: Any) -> TypeGuard[float]:
    """Whether a value is a number of seconds of this era."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e11


def _facts(row: Mapping[str, Any]) -> ModelFacts:
    known = {name: check(row[name]) for name, check in _CHECKS.items() if name in row}
    return ModelFacts(**{name: value for name, value in known.items() if value is not None})
