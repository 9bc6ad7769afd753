"""Reports for programs: JSON, and CSV for spreadsheets."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from proxy.cli.history.prices import Cost
from proxy.cli.history.spans import TimeSpan, iso_text
from proxy.cli.history.used import UsedReport, UsedRow
from proxy.observe.history.overview import usage_json

#: Version of the form.
VERSION = 1
#: What makes a spreadsheet take a cell for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def span_json(span: TimeSpan) -> dict[str, Any]:
    return {"since": iso_text(span.since), "until": iso_text(span.until)}


def used_json(report: UsedReport, limit: int | None) -> dict[str, Any]:
    """
    {"version": 1, "report": "usage", "by": "model", "since": "2026-11-23T00:00:00+01:00", "until": "…",
     "kept_since": "…", "rows": [{"provider": "p1", "model": "gpt-5.6", "requests": 12, …}], "total": {…}}

    Counts are as in `usage_json`. Names that are not known are null; periods have `since` and `until`. The total is of
    all rows, also of those beyond the limit.
    """
    return {
        "version": VERSION,
        "report": "usage",
        "by": report.by,
        **span_json(report.span),
        "kept_since": None if report.kept_since is None else iso_text(report.kept_since),
        "rows": [used_row(row, report) for row in report.parted(limit)[0]],
        "total": _counts(report.total),
    }


def used_csv(report: UsedReport, limit: int | None) -> str:
    """The rows alone: a spreadsheet adds them up itself."""
    place = [report.by, "since", "until"] if report.by in ("day", "hour") else [*report.heads]
    rows = [used_row(row, report) for row in report.parted(limit)[0]]
    return csv_text(rows, [*place, *_counts(report.total)])


def used_row(row: UsedRow, report: UsedReport) -> dict[str, Any]:
    """A row by its names, or its time."""
    place: dict[str, Any] = {head: name or None for head, name in zip(report.heads, row.names, strict=False)}
    if row.span is not None:
        place = {report.by: iso_text(row.span.since)[: len("2026-11-23" if report.by == "day" else "2026-11-23T14:00")]}
        place |= span_json(row.span)
    return place | _counts(row)


def _counts(row: UsedRow) -> dict[str, Any]:
    return usage_json(row.usage) | ({} if row.cost is None else cost_json(row.cost))


def cost_json(cost: Cost) -> dict[str, Any]:
    """`cost`: null if it is not known; `unpriced`: models that it lacks."""
    return {"cost": cost.amount, "unpriced": sorted(cost.unpriced)}


def json_text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2)


def csv_text(rows: Sequence[Mapping[str, Any]], heads: Iterable[str]) -> str:
    """Rows as in RFC 4180, with a line of names. A name that a spreadsheet would take for a formula begins with an
    apostrophe: names come from clients."""
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\r\n")
    names = [*heads]
    writer.writerow(names)
    writer.writerows([_cell(row.get(name)) for name in names] for row in rows)
    return file.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    if isinstance(value, float):
        return round(value, 6)
    return value
