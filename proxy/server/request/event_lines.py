"""The log's lines for what the proxy does beside an answer: what was decided or found, and what it cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from proxy.observe.lifecycle import Judged, PicturesDescribed, Searched

#: Level, message and fields of a line.
Line = tuple[str, str, Mapping[str, Any]]


def _judged(event: Judged) -> Line:
    cost = {"inputTokens": event.input_tokens, "outputTokens": event.output_tokens} if event.model else {}
    said = {"reviewer": event.model or "rules", "outcomes": event.outcomes, "ms": event.ms}
    return "info", "auto_mode_judged", {**said, **cost}


def _searched(event: Searched) -> Line:
    said = {"by": event.provider, "outcome": event.outcome, "results": event.results, "ms": event.ms}
    cost = {"inputTokens": event.input_tokens or None, "outputTokens": event.output_tokens or None}
    return "info" if event.outcome == "ok" else "warn", "searched", {**said, **cost}


def _described(event: PicturesDescribed) -> Line:
    said = {"by": event.provider, "describer": event.model, "outcomes": dict(event.outcomes), "ms": event.ms}
    cost = {"inputTokens": event.input_tokens, "outputTokens": event.output_tokens}
    return "info" if event.outcomes.keys() <= {"ok"} else "warn", "pictures_described", {**said, **cost}


#: type of an event -> makes its line
EVENT_LINES: Mapping[type[Any], Callable[[Any], Line]] = {
    Judged: _judged,
    Searched: _searched,
    PicturesDescribed: _described,
}
