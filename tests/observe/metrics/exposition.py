"""A strict reader of the Prometheus text format 0.0.4: what it takes, `promtool check metrics` takes without a word."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from itertools import pairwise

#: labels in their order -> value
Labels = tuple[tuple[str, str], ...]

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
_SAMPLE = re.compile(rf"({_NAME})(?:\{{({_LABEL}(?:,{_LABEL})*)\}})? (\+Inf|-Inf|NaN|-?[0-9.]+(?:e[+-]?[0-9]+)?)")
_ESCAPES = {r"\\": "\\", r"\n": "\n", r"\"": '"'}
_SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("", "_sum", "_count")}
#: Units that are no base units, of which promtool complains.
_NO_UNITS = {"milliseconds", "ms", "minutes", "hours", "kilobytes", "megabytes", "percent"}


@dataclass
class Family:
    """One metric: name of a sample -> labels -> value."""

    kind: str
    help: str
    samples: dict[str, dict[Labels, float]] = field(default_factory=dict)

    def value(self, name: str, **labels: str) -> float:
        """Of the one sample that has these labels."""
        [found] = [value for have, value in self.samples.get(name, {}).items() if labels.items() <= dict(have).items()]
        return found


def read(text: str) -> dict[str, Family]:
    """name -> its family. Raises AssertionError with the line that is wrong."""
    assert text.endswith("\n") and not text.endswith("\n\n")
    families: dict[str, Family] = {}
    name = ""
    lines = text[:-1].split("\n")
    for number, line in enumerate(lines):
        if line.startswith("# HELP "):
            name, _, words = line.removeprefix("# HELP ").partition(" ")
            assert re.fullmatch(_NAME, name) and name not in families and words, line
            kind = re.fullmatch(rf"# TYPE {name} (counter|gauge|histogram|summary)", lines[number + 1])
            assert kind, lines[number + 1]
            families[name] = Family(kind[1], words)
        elif not line.startswith("# TYPE "):
            _take(families[name], name, line)
    for name, family in families.items():
        _check(name, family)
    return families


def _take(family: Family, name: str, line: str) -> None:
    match = _SAMPLE.fullmatch(line)
    assert match, line
    sample = match[1]
    assert sample.removeprefix(name) in _SUFFIXES.get(family.kind, ("",)) and sample.startswith(name), line
    pairs = re.findall(_LABEL, match[2] or "")
    labels = tuple((key, re.sub(r"\\.", lambda found: _ESCAPES[found[0]], value)) for key, value in pairs)
    assert len(dict(labels)) == len(labels), line
    known = family.samples.setdefault(sample, {})
    assert labels not in known, f"twice: {line}"
    known[labels] = float(match[match.lastindex or 0].replace("Inf", "inf"))


def _check(name: str, family: Family) -> None:
    assert (family.kind == "counter") == name.endswith("_total"), f"the suffix of a counter: {name}"
    assert not _NO_UNITS & set(name.split("_")), f"no base unit: {name}"
    reserved = ("_bucket", "_sum", "_count")
    assert not name.endswith(reserved), name
    for samples in family.samples.values():
        assert len({tuple(key for key, _ in labels if key != "le") for labels in samples}) == 1, f"labels of {name}"
        if family.kind != "gauge":
            assert all(value >= 0 for value in samples.values()), name
    if family.kind == "histogram":
        _check_histogram(name, family)


def _check_histogram(name: str, family: Family) -> None:
    buckets: dict[Labels, list[tuple[float, float]]] = {}
    for labels, value in family.samples.get(f"{name}_bucket", {}).items():
        assert labels[-1][0] == "le", name
        buckets.setdefault(labels[:-1], []).append((float(labels[-1][1].replace("Inf", "inf")), value))
    for labels, rows in buckets.items():
        assert all(low < high and below <= up for (low, below), (high, up) in pairwise(rows)), f"{name}: {rows}"
        assert rows[-1] == (math.inf, family.samples[f"{name}_count"][labels]), f"{name}: {rows[-1]}"
        assert labels in family.samples[f"{name}_sum"], name
