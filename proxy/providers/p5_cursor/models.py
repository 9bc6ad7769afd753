"""Turns a requested name into the model of a run: id, parameters, mode. Pure.

An id may end with an effort and `-fast`. Which of these exist differs by model, and is known only from the service's
lists: the snapshot, and its own answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from proxy.core.effort import effort_asked
from proxy.core.invalid import cut
from proxy.core.routing import Added
from proxy.errors import RequestError
from proxy.providers.p5_cursor.catalog import AUTOMATIC, CATALOG, COMPOSER, LABEL, MAX_ID, NAMES, PREFIXES, RunMode
from proxy.providers.p5_cursor.snapshot import LATER, SNAPSHOT

_SNAPSHOT = frozenset(SNAPSHOT)
_FAST = "-fast"
_ANY = "cursor:"

Parameters = tuple[tuple[str, str], ...]
_NOT_FAST: Parameters = (("fast", "false"),)
_IS_FAST: Parameters = (("fast", "true"),)

#: requested effort -> endings of an id, the best first
_SUFFIXES: Mapping[str | None, tuple[str, ...]] = {
    "low": ("-low",),
    "medium": ("-medium",),
    "high": ("-high", "-extra-high", "-xhigh"),
    "xhigh": ("-xhigh", "-extra-high", "-high"),
    "max": ("-max", "-xhigh", "-extra-high", "-high"),
}
#: An id with such an ending has its effort, or a name that looks like it (`gpt-5.1-codex-max`).
_ENDINGS = ("-extra-high", "-medium", "-xhigh", "-high", "-low", "-max", "-none")
#: Endings to try when the service refuses a bare id: the usual efforts, then the highest that exists.
_STRONGER = ("-high", "-medium", "-max", "-xhigh", "-extra-high", "-low", "-none")

_MODES: Mapping[str, RunMode] = {
    **{mode.name.lower(): mode for mode in RunMode},
    **{f"AGENT_MODE_{mode.name}": mode for mode in RunMode},
}
_MODE_MEMBERS = ("cursor_mode", "cursorMode")


@dataclass(frozen=True, slots=True)
class ModelSelection:
    """The model of a run.

    model_id    id of the service
    parameters  (name, value) pairs, in the order of the wire
    mode        a number of `RunMode`
    """

    model_id: str
    parameters: Parameters
    mode: int


def select(name: str, request: Mapping[str, Any], known: Collection[str], added: Added = ()) -> ModelSelection:
    """Resolves a normalised name. Raises RequestError for one that is not P5's.

    request  the hub request: its effort, and the mode in its metadata, apply when the name does not set them
    known    ids that the service named, besides those of the snapshot
    added    ids of the settings, which need no prefix
    """
    bare = CATALOG.resolved(CATALOG.called(name))
    if bare in dict(added):
        bare = _ANY + bare
    own = NAMES.get(bare)
    if own is not None:
        parameters = () if own.fast is None else _IS_FAST if own.fast else _NOT_FAST
        return ModelSelection(own.model, parameters, own.mode or _mode_asked(request))
    prefix, colon, model = bare.partition(":")
    prefix, model = prefix + colon, model.strip()
    if prefix not in PREFIXES or not 0 < len(model) <= MAX_ID:
        raise RequestError(f'Unknown model "{cut(name)}" for {LABEL}. {forms()}', provider=LABEL, param="model")
    effort = effort_asked(request, none=True)
    return _selection(_with_effort(model, effort, known), PREFIXES[prefix] or _mode_asked(request), known)


def forms() -> str:
    """The sentence about accepted names."""
    return f"Accepted: {', '.join(NAMES)}, and {', '.join(f'{prefix}<model-id>' for prefix in PREFIXES)}."


def stronger(selection: ModelSelection, known: Collection[str]) -> ModelSelection | None:
    """Another id for one that the service refused because it exists only with an effort; None when there is none."""
    base, fast = _without_fast(selection.model_id)
    if selection.parameters == _IS_FAST:
        fast = _FAST
    if base.endswith(_ENDINGS):
        return None
    found = (base + suffix for suffix in _STRONGER if _exists(base + suffix, known) or base + suffix in LATER)
    return next((_selection(model + fast, selection.mode, known) for model in found), None)


def _with_effort(model: str, effort: str | None, known: Collection[str]) -> str:
    base, fast = _without_fast(model)
    if base.endswith(_ENDINGS):
        return model
    found = (base + suffix for suffix in _SUFFIXES.get(effort, ()) if _exists(base + suffix, known))
    return next((with_effort + fast for with_effort in found), model)


def _selection(model: str, mode: int, known: Collection[str]) -> ModelSelection:
    """The id for the service, and parameters for what it does not say."""
    if model == COMPOSER:  # without the parameter it runs fast, at a higher price
        return ModelSelection(model, _NOT_FAST, mode)
    base, fast = _without_fast(model)
    if not fast or _is_known(model, known):
        return ModelSelection(_sent(model), (), mode)
    return ModelSelection(_sent(base), _IS_FAST, mode)


def _sent(model: str) -> str:
    """The id in a run, which does not use the lists' name `auto`."""
    return AUTOMATIC if model == "auto" else model


def _without_fast(model: str) -> tuple[str, str]:
    """
    >>> _without_fast("gpt-5.5-fast"), _without_fast("-fast")
    (('gpt-5.5', '-fast'), ('-fast', ''))
    """
    base = model.removesuffix(_FAST)
    return (base, _FAST) if base and base != model else (model, "")


def _is_known(model: str, known: Collection[str]) -> bool:
    return model in _SNAPSHOT or model in known


def _exists(model: str, known: Collection[str]) -> bool:
    """Whether a model is listed at any speed."""
    return _is_known(model, known) or _is_known(model + _FAST, known)


def _mode_asked(request: Mapping[str, Any]) -> RunMode:
    return next(_modes(request.get("metadata")), RunMode.AGENT)


def _modes(metadata: Any) -> Iterator[RunMode]:
    """The modes that the metadata names; unknown words are ignored."""
    for member in _MODE_MEMBERS if isinstance(metadata, Mapping) else ():
        word = metadata.get(member)
        if isinstance(word, str) and word in _MODES:
            yield _MODES[word]
