"""The history of a time as plain data, for the page and the terminal monitor, and for programs."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from proxy.observe.history.limits import WindowPast, spent_at, thinned, windows
from proxy.observe.history.sums import SUMMED
from proxy.observe.history.usage import BY, Usage, kept_since, read_usage, whole

#: Version of the form.
VERSION = 1
#: Periods of an overview; a year of days has fewer.
MAX_PERIODS = 400
#: Models that are told apart, those with the most tokens; the rest is one row.
MAX_MODELS = 20
#: Samples of a window of an allowance.
MAX_SAMPLES = 300
#: Shares of the requests whose times are told: `first_p50`, …
_SHARES = {"p50": 0.5, "p95": 0.95}


def usage_json(usage: Usage) -> dict[str, Any]:
    """The counts of `Counts`, `cached_share` (0 to 1), and `first_p50`, `first_p95`, `total_p50`, `total_p95` in
    milliseconds. None: not known."""
    times = {f"first_{name}": usage.first_ms(share) for name, share in _SHARES.items()}
    times |= {f"total_{name}": usage.total_ms(share) for name, share in _SHARES.items()}
    counts = {name: getattr(usage, name) for name in SUMMED}
    return counts | {"cached_share": usage.cached_share} | {name: ms and round(ms) for name, ms in times.items()}


def overview(db: sqlite3.Connection, edges: Sequence[float], now: float) -> dict[str, Any]:
    """What was used between the edges, n + 1 of which make n periods, in seconds since 1970.

    kept_since  when the oldest request that is kept ended, None without any
    whole       everything together, as in `usage_json`; `periods`: each of them
    models      those with the most tokens first: `provider`, `model`, `whole`, and `tokens` of each period, in and out;
                one without names has the rest
    windows     of the allowances: `account`, `window`, `limit`, `samples` (time, per cent), `resets_at`, and `spent_at`
                at the pace of the last hours, None if that is later than the reset, or not known
    """
    count = len(edges) - 1
    by_model = BY["model"]
    found = read_usage(db, by_model.kind, edges, lambda at, *place: (at, by_model.key(at, *place)))
    periods: list[list[Usage]] = [[] for _ in range(count)]
    models: dict[tuple[str, ...], dict[int, Usage]] = {}
    for (at, model), usage in found.items():
        periods[at].append(usage)
        models.setdefault(model, {})[at] = usage
    ranked = sorted(models.items(), key=lambda item: -sum(map(_tokens, item[1].values())))
    named = [_model(provider, model, [by_period], count) for (provider, model), by_period in ranked[:MAX_MODELS]]
    rest = [by_period for _, by_period in ranked[MAX_MODELS:]]
    return {
        "version": VERSION,
        "kept_since": kept_since(db),
        "edges": list(edges),
        "whole": usage_json(whole(list(found.values()))),
        "periods": [usage_json(whole(each)) for each in periods],
        "models": [*named, *([_model("", "", rest, count)] if rest else [])],
        "windows": [_window(one, now) for one in windows(db, edges[0], max(edges[-1], now))],
    }


def _tokens(usage: Usage) -> int:
    return usage.input + usage.output


def _model(provider: str, model: str, parts: Sequence[dict[int, Usage]], count: int) -> dict[str, Any]:
    tokens = [0] * count
    for part in parts:
        for at, usage in part.items():
            tokens[at] += _tokens(usage)
    total = whole([usage for part in parts for usage in part.values()])
    return {"provider": provider, "model": model, "tokens": tokens, "whole": usage_json(total)}


def _window(past: WindowPast, now: float) -> dict[str, Any]:
    shown = asdict(past) | {"samples": [(one.at, one.used) for one in thinned(past.samples, MAX_SAMPLES)]}
    return shown | {"resets_at": past.samples[-1].resets_at, "spent_at": spent_at(past.samples, now)}
