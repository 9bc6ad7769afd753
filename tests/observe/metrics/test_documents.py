"""The page about metrics and the dashboard name what there is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from proxy.observe.metrics.registry import HISTOGRAM, SUMMARY
from proxy.observe.metrics.table import ALL

DOCS = Path(__file__).parents[3] / "docs"
BOARD: dict[str, Any] = json.loads((DOCS / "grafana-dashboard.json").read_text())
EXPRESSIONS = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]

#: name of a sample -> labels that it has
SAMPLES = {
    metric.name + suffix: {*metric.labels, *(("le",) if suffix == "_bucket" else ()), "job", "instance"}
    for metric in ALL
    for suffix in {HISTOGRAM: ("_bucket", "_sum", "_count"), SUMMARY: ("_sum", "_count")}.get(metric.kind, ("",))
}
NAME = re.compile(r"\b(?:model_proxy|process)_[a-z0-9_]+")
GROUPED = re.compile(r"by \(([a-z_, ]+)\)")


def table() -> str:
    rows = [f"| `{metric.name}` | {metric.kind} | {_labels(metric.labels)} | {metric.help} |" for metric in ALL]
    return "\n".join(["| metric | kind | labels | what |", "|---|---|---|---|", *rows])


def _labels(labels: tuple[str, ...]) -> str:
    return ", ".join(f"`{label}`" for label in labels)


def test_the_page_has_every_metric() -> None:
    page = (DOCS / "metrics.md").read_text()
    told = page.partition("<!-- metrics -->\n")[2].partition("\n<!-- end of metrics -->")[0]
    assert told == table(), f"put this between the two marks:\n{table()}"
    questions = page.partition("<!-- end of metrics -->")[2]
    assert set(NAME.findall(questions)) <= SAMPLES.keys()


def test_every_expression_of_the_dashboard_names_what_there_is() -> None:
    assert len(EXPRESSIONS) >= len(BOARD["panels"]) > 10
    for expression in EXPRESSIONS:
        names = NAME.findall(expression)
        assert names and set(names) <= SAMPLES.keys(), expression
        for labels in GROUPED.findall(expression):
            known = set.union(*(SAMPLES[name] for name in names))
            assert set(labels.split(", ")) <= known, expression
    for variable in BOARD["templating"]["list"]:
        assert set(NAME.findall(json.dumps(variable))) <= SAMPLES.keys()


def test_no_panel_lies_over_another() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken and max(x for x, _ in cells) < 24, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
