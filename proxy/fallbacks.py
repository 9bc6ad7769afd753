"""Parsers and checks of the settings of declared fallbacks: the substitutes of a model, and the errors that use
them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from proxy.core.invalid import cut
from proxy.core.routing import Catalog, normalise_model
from proxy.errors import KINDS
from proxy.settings import UnfitValue, check_model, trimmed

_FALLBACK = (
    'expected models with those in place of them: {"gpt-5.6-sol": ["kimi-k3"]}, or `gpt-5.6-sol=kimi-k3 grok-4.5`'
)
#: Maximum number of substitutes of one model.
MAX_FALLBACKS = 8


def fallbacks(value: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """a table of models, each with a list of those in place of it; as text `a=b c, d=e`."""
    if isinstance(value, str) and value.strip().startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise UnfitValue(_FALLBACK) from None
    members = trimmed(value).split(",") if isinstance(value, str) else value
    members = members.items() if isinstance(members, Mapping) else members
    if not isinstance(members, Iterable):
        raise UnfitValue(_FALLBACK)
    pairs = [_pair(member) for member in members if not isinstance(member, str) or member.strip()]
    found = dict(pairs)
    if len({normalise_model(name) for name in found}) < len(pairs):
        raise UnfitValue(f"{_FALLBACK}; a model is listed twice")
    for name, others in found.items():
        different = set(map(normalise_model, (name, *others)))
        if not name or not others or len(others) > MAX_FALLBACKS or len(different) <= len(others):
            raise UnfitValue(f"{_FALLBACK}; up to {MAX_FALLBACKS} others, none of them twice: not {cut(name)!r}")
    return tuple(found.items())


def _pair(member: Any) -> tuple[str, tuple[str, ...]]:
    """A model and its substitutes, from `model=a b` or a pair already."""
    if isinstance(member, str):
        name, _, others = member.partition("=")
        return name.strip(), _models(others.split())
    match member:
        case (str(name), others):
            return name.strip(), _models(others)
    raise UnfitValue(_FALLBACK)


def _models(value: Any) -> tuple[str, ...]:
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list | tuple) or not all(isinstance(one, str) and one.strip() for one in found):
        raise UnfitValue(_FALLBACK)
    return tuple(one.strip() for one in found)


def check_fallbacks(found: Sequence[tuple[str, Sequence[str]]], catalogs: Sequence[Catalog]) -> None:
    """Raises UnfitValue for a model that no provider has."""
    for name, others in found:
        for one in (name, *others):
            try:
                check_model(one, catalogs)
            except UnfitValue as error:
                raise UnfitValue(f"{cut(one)!r}: {error}") from None


#: Kinds of errors that no other model cures: the request is wrong or refused, or the fault is this proxy's.
_NEVER = frozenset(
    {"invalid_request", "refused", "no_route", "wrong_method", "slow_request", "media_type", "no_upgrade", "stopping"}
)


def error_kinds(value: Any) -> tuple[str, ...]:
    """kinds of errors with commas between, or a list."""
    fit = sorted(KINDS.keys() - _NEVER)
    members = trimmed(value).split(",") if isinstance(value, str) else value
    names = (
        [str(member).strip() for member in members if str(member).strip()] if isinstance(members, list | tuple) else []
    )
    if not names or not set(names) <= set(fit):
        raise UnfitValue(f"expected kinds of errors: {', '.join(fit)}")
    return tuple(dict.fromkeys(names))
