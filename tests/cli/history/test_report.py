"""`report` by model, project, day and all else: as a table, as JSON and as CSV."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections import defaultdict
from itertools import product
from pathlib import Path

import pytest
from captured import Run
from observe.history.past import NOW, history, later
from samples import rows

from cli.history.week import DAY, HOSTILE, week
from proxy.cli.history import command
from proxy.cli.history.spans import span_of
from proxy.cli.history.tables import written
from proxy.cli.history.used import read_report
from proxy.cli.history.used_table import report_lines
from proxy.cli.usage import Terminal
from proxy.observe.history.schema import reading
from proxy.observe.history.usage import BY
from proxy.observe.monitor.terminal.cells import width_of

MODELS = """\
Sat 2027-01-09 00:00 to now (the last 7 days), by model

                                              first s  total s
model       reqs  fail  input  cache  output  p50 p95  p50 p95  tokens
p1/gpt-5.6     4     0   6.0M    50%   40.0k  1.5 2.5   27  44  ████████████████
p2/kimi-k3     2     0   6.0M      -   20.0k  2.5 3.4   44  63  ████████████████
gtp-5          1     1      0      -       0    -   -    -   -
──────────────────────────────────────────────────────────────
total          7     1  12.0M    50%   60.0k  1.5 3.4   27  63

thinking 24.0k, retries 7, fallbacks 7, searches 14,
tokens of other models (judge, pictures) 105
"""
HOURS = """\
Fri 2027-01-15 06:00 to now, by hour

                                         first s  total s
hour   reqs  fail  input  cache  output  p50 p95  p50 p95  tokens
06:00     1     0   1.0M    75%   10.0k  1.5 1.5   27  27  #####################
07:00     0     0      0      -       0    -   -    -   -
08:00     2     1   1.0M    75%   10.0k  0.5 0.5  8.9 8.9  #####################
09:00     0     0      0      -       0    -   -    -   -
---------------------------------------------------------
total     3     1   2.0M    75%   20.0k  0.5 1.5  8.9  27

thinking 8.0k, retries 3, fallbacks 3, searches 6,
tokens of other models (judge, pictures) 45
"""


@pytest.fixture
def kept(state: Path) -> Path:
    return history(state, week())


def test_a_week_by_model_on_a_terminal_and_hours_where_there_is_only_ascii(
    run: Run, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("report") == run("report", "week", "--by", "model") == (0, MODELS, "")
    output = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(output, encoding="ascii"))
    run("report", "--since", "2027-01-15T06:10", "--by", "hour")
    assert output.getvalue().decode("ascii") == HOURS


@rows("by", list(BY))
def test_every_grouping_has_every_request_once(by: str, run: Run, state: Path) -> None:
    past = week()[:-1]
    if not (state / "history.db").exists():
        history(state, past)
    _status, out, _err = run("report", "--by", by, "--json")
    found = json.loads(out)
    total = {name: sum(row[name] or 0 for row in found["rows"]) for name in ("requests", "failed", "input", "thinking")}
    assert total == {"requests": 7, "failed": 1, "input": 12_000_000, "thinking": 24_000}
    assert {name: found["total"][name] for name in total} == total
    members = {"project": "project", "session": "session", "caller": "caller", "account": "account"}
    if by in members:
        counts: dict[str | None, int] = defaultdict(int)
        for one in past:
            counts[getattr(one, members[by])] += 1
        assert {row[by]: row["requests"] for row in found["rows"]} == counts


def test_the_json_says_what_it_is_of(run: Run, kept: Path) -> None:
    found = json.loads(run("report", "today", "--by", "day", "--json")[1])
    assert {name: found[name] for name in ("version", "report", "by", "since", "until", "kept_since")} == {
        "version": 1,
        "report": "usage",
        "by": "day",
        "since": "2027-01-15T00:00:00+01:00",
        "until": "2027-01-15T09:15:00+01:00",
        "kept_since": "2026-10-07T10:00:00+02:00",
    }
    (row,) = found["rows"]
    assert (row["day"], row["requests"], row["cached_share"], row["first_p50"]) == ("2027-01-15", 3, 0.75, 507)
    model = json.loads(run("report", "--by", "model", "--json")[1])["rows"][-1]
    assert (model["provider"], model["model"], model["total_p95"]) == (None, "gtp-5", None)
    hour = json.loads(run("report", "--since", "3h", "--by", "hour", "--json")[1])["rows"][0]
    assert (hour["hour"], hour["until"]) == ("2027-01-15T06:00", "2027-01-15T07:00:00+01:00")


def test_the_csv_is_for_spreadsheets(run: Run, state: Path) -> None:
    names = ["=1+1", "+cmd", "-2", "@x", 'a "b", c', "two\nlines", "plain", "naïve"]
    history(state, [later(-60, project=name) for name in names])
    _status, out, _err = run("report", "--by", "project", "--csv")
    assert out.count("\r\n") == len(names) + 1
    found = list(csv.DictReader(io.StringIO(out, newline="")))
    assert sorted(row["project"] for row in found) == sorted(
        f"'{name}" if name[0] in "=+-@" else name for name in names
    )
    assert {row["input"] for row in found} == {"1000"} and {row["cached_share"] for row in found} == {"0.75"}


@rows("blocks", [True, False])
def test_no_line_is_wider_than_the_terminal_whatever_the_names(blocks: bool, tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    if not path.exists():
        history(tmp_path, [later(-60, served=HOSTILE, project=name) for name in (HOSTILE, "x", "e\u0301" * 40, "")])
    with reading(path) as db:
        reports = [read_report(db, by, span_of("week", None, None, NOW), None) for by in BY]
    for report, columns in product(reports, (40, 50, 66, 80, 81, 100, 160)):
        terminal = Terminal(columns, blocks=blocks, encoding="utf-8" if blocks else "ascii")
        lines = written(report_lines(report, terminal), terminal).splitlines()
        assert max(map(width_of, lines)) <= columns
        assert all(line.isprintable() and (blocks or line.isascii()) for line in lines)
        places = {width_of(line[: line.index(" 75%")]) for line in lines if " 75%" in line}
        assert len(places) == 1 or columns < 66  # of the column of the cache, for which there is no room


def test_what_is_left_is_one_row(run: Run, state: Path) -> None:
    history(state, [later(-60, project=f"p{number}", input=1000 * number) for number in range(60)])
    lines = run("report", "--by", "project")[1].splitlines()[1:]
    assert [line.split()[0] for line in lines[4:7]] == ["p59", "p58", "p57"]
    assert lines[54].startswith("(10 more)") and "45.0k" in lines[54] and lines[56].startswith("total")
    assert len(json.loads(run("report", "--by", "project", "--json")[1])["rows"]) == 60
    few = json.loads(run("report", "--by", "project", "--json", "--limit", "2")[1])
    assert [row["project"] for row in few["rows"]] == ["p59", "p58"] and few["total"]["requests"] == 60
    assert len(run("report", "--by", "project", "--csv", "--limit", "2")[1].splitlines()) == 3


def test_of_many_periods_the_newest_are_shown(run: Run, kept: Path) -> None:
    lines = run("report", "--by", "day", "--since", "7d", "--limit", "1")[1].splitlines()
    assert lines[4].split()[:3] == ["(7", "more)", "4"] and lines[5].startswith("Fri 2027-01-15     3")


def test_days_before_the_history_began_are_not_shown(run: Run, state: Path) -> None:
    history(state, [later(-2 * DAY), later(-60)])
    out = run("report", "month", "--by", "day")[1]
    assert "The history begins Wed 2027-01-13 09:00." in out
    assert [line[:14] for line in out.splitlines()[5:8]] == ["Wed 2027-01-13", "Thu 2027-01-14", "Fri 2027-01-15"]


@rows(
    "line, status, words",
    [
        ("report today --since 1d", 1, "choose one of them"),
        ("report model", 2, "invalid choice"),
        ("report --by stars", 2, "invalid choice"),
        ("report --since soon", 1, "expected a date or time"),
        ("report --limit 0", 2, "expected a number from 1"),
        ("report week 5f3a", 1, "only `model-proxy report sessions` takes an id"),
        ("report sessions --by day", 1, "are of the other reports"),
        ("report limits --prices x.json", 1, "are of the other reports"),
        ("report limits --limit 1", 1, "report limits` shows all windows"),
        ("report --json --csv", 2, "not allowed with"),
    ],
)
def test_arguments_that_do_not_go_together(line: str, status: int, words: str, run: Run) -> None:
    found, out, err = run(*line.split())
    assert (found, out) == (status, "") and words in err


def test_what_is_grouped_by_is_what_the_history_can() -> None:
    assert list(command._BY) == list(BY)


def test_a_history_that_is_missing_or_empty(run: Run, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, _out, err = run("report")
    assert status == 1 and f"no history in {state / 'history.db'} yet. A proxy writes" in err
    assert not (state / "history.db").exists()
    history(state)
    status, out, _err = run("report")
    assert status == 0 and out.endswith(
        "no requests\nThe history is empty. A proxy writes each request that it serves.\n"
    )
    assert json.loads(run("report", "--json")[1])["rows"] == []


def test_a_history_that_is_off(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"history": {"enabled": false}}')
    assert "It is off: set history.enabled to true" in run("report")[2]


def test_a_file_that_cannot_be_used_says_what_to_do(run: Run, state: Path) -> None:
    path = state / "history.db"
    path.write_bytes(b"this is no database " * 500)
    status, out, err = run("report")
    assert (status, out) == (1, "") and "it is damaged" in err and "`model-proxy history clear` removes it" in err
    path.unlink()
    history(state)
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    assert "a newer version of this program wrote it" in run("report")[2]
    path.unlink()
    path.mkdir()
    assert "cannot be used" in run("report")[2]
