"""How much of a prompt came from the cache, as the answer of a capture told its client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from proxy.observe.capture.layout import DOWNSTREAM_EVENT, REPLY
from proxy.observe.capture.reading.folder import NUMBER, Artifact, CaptureFolder, Unreadable

#: The usage stands in one of the last events.
LAST_EVENTS = 4


@dataclass(frozen=True, slots=True)
class CachedInput:
    """Tokens of the input, and how many of them were read from the cache."""

    tokens: int
    cached: int


def cached_input(capture: CaptureFolder) -> CachedInput | None:
    """None when the answer does not say: it failed, or its end was not kept."""
    return next((found for artifact in _ends(capture) if (found := _read(artifact)) is not None), None)


def _ends(capture: CaptureFolder) -> Iterator[Artifact]:
    stations = (REPLY[:NUMBER], DOWNSTREAM_EVENT[:NUMBER])
    yield from [one for one in capture.artifacts() if one.station in stations][: -LAST_EVENTS - 1 : -1]


def _read(artifact: Artifact) -> CachedInput | None:
    try:
        value = artifact.object()
    except Unreadable:
        return None
    for holder in (value, value.get("response"), value.get("message")):
        usage = holder.get("usage") if isinstance(holder, Mapping) else None
        if isinstance(usage, Mapping):
            return _cached(usage)
    return None


def _cached(usage: Mapping[str, Any]) -> CachedInput | None:
    """Of the Messages API, where cached tokens are counted apart, or of the others, where they are among the rest."""
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    tokens = _number(usage, "prompt_tokens") or _number(usage, "input_tokens")
    cached = _number(details, "cached_tokens") if isinstance(details, Mapping) else 0
    apart = _number(usage, "cache_read_input_tokens")
    tokens += apart + _number(usage, "cache_creation_input_tokens")
    return CachedInput(tokens, cached + apart) if tokens else None


def _number(values: Mapping[str, Any], name: str) -> int:
    value = values.get(name)
    return value if isinstance(value, int) else 0
