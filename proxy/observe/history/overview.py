"""The history of a time as plain data, for the page and the terminal monitor, and for programs."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from proxy.observe.history.limits import PACE_S, curve, pace, spent_at, thinned, windows
from proxy.observe.history.sums import SUMMED, percentile
from proxy.observe.history.usage import BY, TIMES, Usage, kept_since, read_usage, whole

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
#: An overview has the times to the first token alone: it is half as slow.
_TIMES = TIMES[:1]


def usage_json(usage: Usage, times: Sequence[str] = TIMES) -> dict[str, Any]:
    """The counts of `Counts`, `cached_share` (0 to 1), and `first_p50`, `first_p95`, `total_p50`, `total_p95` in
    milliseconds, of those `times` that were read. None: not known."""
    steps = {name: getattr(usage, name) for name in times}
    found = {f"{name}_{word}": percentile(steps[name], share) for name in times for word, share in _SHARES.items()}
    counts = {name: getattr(usage, name) for name in SUMMED}
    return counts | {"cached_share": usage.cached_share} | {name: ms and round(ms) for name, ms in found.items()}


def overview(db: sqlite3.Connection, edges: Sequence[float], now: float) -> dict[str, Any]:
    """What was used between the edges, n + 1 of which make n periods, in seconds since 1970.

    kept_since  when the oldest request that is kept ended, None without any
    whole       everything together, as in `usage_json`, without `total_…`; `periods`: each of them
    models      those with the most tokens first: `provider`, `model`, `whole`, and `tokens` of each period, in and out;
                one with `others`, their number, has the rest
    windows     of the allowances: `account`, `window`, `limit`, `samples` (time, per cent, which stays until the next
                one), `resets_at`, the `pace` of the last hours in per cent a second, None if it is not known, and
                `spent_at`, None if that is later than the reset, or not known
    """
    by_model = BY["model"]
    found = read_usage(db, by_model.dimension, edges, lambda at, *place: (at, by_model.key(at, *place)), times=_TIMES)
    periods: list[list[Usage]] = [[] for _ in edges[1:]]
    models: dict[tuple[str, ...], dict[int, Usage]] = {}
    for (at, model), usage in found.items():
        periods[at].append(usage)
        models.setdefault(model, {})[at] = usage
    totals = {model: whole(list(by_period.values())) for model, by_period in models.items()}
    ranked = sorted(models, key=lambda model: -_tokens(totals[model]))
    groups = [(model, [model]) for model in ranked[:MAX_MODELS]]
    if rest := ranked[MAX_MODELS:]:
        groups.append((("", ""), rest))
    return {
        "version": VERSION,
        "kept_since": kept_since(db),
        "edges": list(edges),
        "whole": _usage(totals.values()),
        "periods": [_usage(each) for each in periods],
        "models": [
            {"provider": provider, "model": name}
            | {"tokens": _tokens_of([models[one] for one in group], len(periods))}
            | {"whole": _usage(totals[one] for one in group)}
            | ({"others": len(group)} if group is rest else {})
            for (provider, name), group in groups
        ],
        "windows": _windows(db, edges[0], max(edges[-1], now), now),
    }


def _usage(parts: Iterable[Usage]) -> dict[str, Any]:
    return usage_json(whole(list(parts)), _TIMES)


def _tokens(usage: Usage) -> int:
    return usage.input + usage.output


def _tokens_of(parts: Iterable[Mapping[int, Usage]], periods: int) -> list[int]:
    tokens = [0] * periods
    for part in parts:
        for at, usage in part.items():
            tokens[at] += _tokens(usage)
    return tokens


def _windows(db: sqlite3.Connection, since: float, until: float, now: float) -> list[dict[str, Any]]:
    newest = {one.place: one.samples for one in windows(db, now - PACE_S, until)}
    return [
        {"account": one.account, "window": one.window, "limit": one.limit}
        | {"samples": [(round(point.at), point.used) for point in thinned(curve(one.samples, now), MAX_SAMPLES)]}
        | {"resets_at": one.samples[-1].resets_at}
        | {"pace": pace(recent, now), "spent_at": spent_at(recent, now)}
        for one in windows(db, since, until, MAX_SAMPLES)
        for recent in [newest.get(one.place, ())]
    ]
