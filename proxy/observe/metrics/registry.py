"""Metrics and their values, and how they are written: the text format of Prometheus, version 0.0.4."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

#: Media type of the text.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

COUNTER, GAUGE, HISTOGRAM, SUMMARY = "counter", "gauge", "histogram", "summary"

#: Most combinations of labels of one metric; later ones are counted in one where every label is OTHER.
MAX_SERIES = 500
OTHER = "other"

#: The values of a metric's labels, in their order.
Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric. Its name says the unit, and ends with `_total` if it is a counter.

    labels   names of the labels of its series
    buckets  upper bounds of a histogram, without the last, which is infinite
    """

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


@dataclass(slots=True)
class _Distribution:
    """A histogram or summary. `counts`: the number in each bucket, the infinite one last."""

    counts: list[int]
    count: int = 0
    sum: float = 0.0

    def add(self, value: float, buckets: Sequence[float]) -> None:
        self.count += 1
        self.sum += value
        if buckets:
            self.counts[bisect_left(buckets, value)] += 1


@dataclass(slots=True)
class _Samples:
    """The samples of one metric: labels -> value."""

    numbers: dict[Labels, float] = field(default_factory=dict)
    distributions: dict[Labels, _Distribution] = field(default_factory=dict)


class Registry:
    """The values of these metrics. Those without labels are there from the beginning."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._series = {metric: _Samples() for metric in metrics}
        for metric in self._series:
            if metric.labels:
                continue
            if metric.kind in (HISTOGRAM, SUMMARY):
                self._distribution(metric, ())
            elif metric.kind == COUNTER:
                self.add(metric, 0)

    def add(self, metric: Metric, amount: float, *labels: str) -> None:
        """Adds to a counter."""
        numbers = self._series[metric].numbers
        labels = _room(numbers, metric, labels)
        numbers[labels] = numbers.get(labels, 0) + amount

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        """Adds a value to a histogram or summary."""
        self._distribution(metric, labels).add(value, metric.buckets)

    def replace(self, metric: Metric, values: Mapping[Labels, float]) -> None:
        """Replaces all samples of a gauge, or of a counter kept elsewhere."""
        self._series[metric].numbers = dict(list(values.items())[:MAX_SERIES])

    def text(self) -> str:
        """All metrics in the text format."""
        return "".join(line + "\n" for metric, series in self._series.items() for line in _lines(metric, series))

    def _distribution(self, metric: Metric, labels: Labels) -> _Distribution:
        known = self._series[metric].distributions
        labels = _room(known, metric, labels)
        found = known.get(labels)
        if found is None:
            found = known[labels] = _Distribution([0] * (len(metric.buckets) + 1))
        return found


def _room(known: Mapping[Labels, object], metric: Metric, labels: Labels) -> Labels:
    if len(labels) != len(metric.labels):
        raise ValueError(f"{metric.name} has the labels {metric.labels}")
    return labels if labels in known or len(known) < MAX_SERIES else (OTHER,) * len(labels)


def _lines(metric: Metric, series: _Samples) -> Iterator[str]:
    yield f"# HELP {metric.name} {_escaped(metric.help)}"
    yield f"# TYPE {metric.name} {metric.kind}"
    for labels, number in sorted(series.numbers.items()):
        yield _sample(metric.name, _pairs(metric, labels), number)
    for labels, distribution in sorted(series.distributions.items(), key=lambda item: item[0]):
        yield from _distribution_lines(metric, _pairs(metric, labels), distribution)


def _distribution_lines(metric: Metric, pairs: list[str], distribution: _Distribution) -> Iterator[str]:
    if metric.kind == HISTOGRAM:
        below = 0
        for bound, count in zip((*metric.buckets, math.inf), distribution.counts, strict=True):
            below += count
            yield _sample(f"{metric.name}_bucket", [*pairs, f'le="{_number(bound)}"'], below)
    yield _sample(f"{metric.name}_sum", pairs, distribution.sum)
    yield _sample(f"{metric.name}_count", pairs, distribution.count)


def _pairs(metric: Metric, labels: Labels) -> list[str]:
    return [f'{name}="{_escaped(value, quotes=True)}"' for name, value in zip(metric.labels, labels, strict=True)]


def _sample(name: str, pairs: Sequence[str], value: float) -> str:
    return f"{name}{{{','.join(pairs)}}} {_number(value)}" if pairs else f"{name} {_number(value)}"


def _number(value: float) -> str:
    """
    >>> _number(3), _number(2.5), _number(math.inf), _number(1e20), _number(0.1 + 0.2)
    ('3', '2.5', '+Inf', '1e+20', '0.30000000000000004')
    """
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def _escaped(text: str, *, quotes: bool = False) -> str:
    r"""
    >>> _escaped('a\\b\n"c"'), _escaped('"c"', quotes=True)
    ('a\\\\b\\n"c"', '\\"c\\"')
    """
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text
