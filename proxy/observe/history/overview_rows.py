"""An overview as the terminal draws it, read from the plain data that `overview.py` makes here or in another proxy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from proxy.observe.from_json import made
from proxy.observe.history.allowance_samples import MAX_WINDOWS
from proxy.observe.history.overview import MAX_MODELS, MAX_PERIODS, VERSION


@dataclass(frozen=True, slots=True)
class UsageRow:
    """What was used, as in `overview.usage_json`: shares are 0 to 1, times are milliseconds, None is unknown."""

    requests: int = 0
    failed: int = 0
    abandoned: int = 0
    retries: int = 0
    fallbacks: int = 0
    input: int = 0
    output: int = 0
    thinking: int = 0
    cached_share: float | None = None
    first_p50: float | None = None
    first_p95: float | None = None

    @property
    def tokens(self) -> int:
        return self.input + self.output


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model. `tokens`: of each period, in and out; `others`: the number of models in a row of the rest."""

    provider: str = ""
    model: str = ""
    tokens: tuple[int, ...] = ()
    whole: UsageRow = field(default_factory=UsageRow)
    others: int = 0


@dataclass(frozen=True, slots=True)
class WindowRow:
    """A window of an allowance. `samples`: time and per cent, at least one, the oldest first."""

    account: str
    window: str
    samples: tuple[tuple[float, ...], ...]
    limit: str = ""
    resets_at: float | None = None
    spent_at: float | None = None
    pace: float | None = None


@dataclass(frozen=True, slots=True)
class OverviewRows:
    """An overview. `edges`: one more than there are periods, in seconds since 1970."""

    edges: tuple[float, ...]
    whole: UsageRow
    periods: tuple[UsageRow, ...]
    models: tuple[ModelRow, ...] = ()
    windows: tuple[WindowRow, ...] = ()
    kept_since: float | None = None


#: Rows of an overview that are read: more would only keep the reader busy.
_MOST = {"edges": MAX_PERIODS + 1, "periods": MAX_PERIODS, "models": MAX_MODELS + 1, "windows": MAX_WINDOWS}


def overview_rows(value: Any) -> OverviewRows:
    """Reads an overview. Raises ValueError for what is none, and for another version."""
    if not isinstance(value, Mapping) or "periods" not in value:
        raise ValueError("that is no history")
    if value.get("version") != VERSION:
        raise ValueError(f"that is version {value.get('version')!r} of the history, this program reads {VERSION}")
    for name, most in _MOST.items():
        if isinstance(value.get(name), list) and len(value[name]) > most:
            raise ValueError(f"that history has more than {most} {name}")
    found = made(OverviewRows, value)
    if not found.periods or len(found.edges) != len(found.periods) + 1:
        raise ValueError("the periods of a history do not fit their edges")
    if any(len(model.tokens) != len(found.periods) for model in found.models):
        raise ValueError("the periods of a model do not fit their edges")
    if any(not _is_curve(window.samples) for window in found.windows):
        raise ValueError("the samples of an allowance are no curve")
    return found


def _is_curve(samples: tuple[tuple[float, ...], ...]) -> bool:
    """Whether there are samples, pairs in the order of their times."""
    pairs = all(len(one) == 2 for one in samples)
    return bool(samples) and pairs and all(one[0] <= then[0] for one, then in pairwise(samples))
