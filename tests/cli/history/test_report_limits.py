"""`report limits`: the windows of the allowances over time."""

from __future__ import annotations

import json
from pathlib import Path

from captured import Run
from observe.history.past import NOW, history
from samples import rows

from cli.history.week import DAY, HOSTILE, HOUR
from proxy.cli.history.graph import axis, graph_lines
from proxy.cli.history.limits import limit_lines, read_limits, used_in
from proxy.cli.history.spans import span_of
from proxy.cli.history.tables import written
from proxy.cli.usage import Terminal
from proxy.observe.history.allowance_samples import Sample
from proxy.observe.history.limits import UsedAt
from proxy.observe.history.schema import Names, connect, reading, transaction
from proxy.observe.history.writer import write_samples
from proxy.observe.monitor.terminal.cells import width_of
from proxy.observe.monitor.terminal.times import midnight

GRAPH = """\
Fri 2027-01-15 00:00 to now

p1: 5 hours
100%                                                                   ▃▃▃▃▃▃▃▃▃
                                                               ▃▃▃▃▃▃▃▃█████████
                                                       ▅▅▅▅▅▅▅▅█████████████████
  0%                                                   █████████████████████████
     Fri 15                   03:00                    06:00
85% used as of 1 h ago, resets 13:00 (in 4 h 0 min)
at the pace of the last 3 hours it will be spent 10:00 (in 1 h 0 min)
"""


def keep(folder: Path, *samples: tuple[str, float, float, float | None]) -> Path:
    """A file with samples of windows of p1: window, hours before now, per cent, hours until its reset."""
    path = history(folder)
    found = [
        Sample(
            "p1",
            window,
            "",
            round(1000 * (NOW - ago * HOUR)),
            used,
            None if ends is None else round(1000 * (NOW + ends * HOUR)),
        )
        for window, ago, used, ends in samples
    ]
    db = connect(path)
    with transaction(db):
        write_samples(db, found, Names(db))
    db.close()
    return path


def shown(folder: Path, since: str = "week", **terminal: int) -> str:
    with reading(folder / "history.db") as db:
        report = read_limits(db, span_of("week", None if since == "week" else since, None, NOW), NOW)
    return "\n".join(limit_lines(report, Terminal(**terminal)))


def test_a_graph_and_when_it_will_be_spent(run: Run, state: Path) -> None:
    keep(state, ("5 hours", 3, 40, 4), ("5 hours", 2, 60, 4), ("5 hours", 1, 85, 4))
    assert run("report", "limits", "--since", "today") == (0, GRAPH, "")


@rows(
    "samples, words",
    [
        ([(2, 40, 4), (1, 100, 4)], ["100% used as of 1 h ago, resets 13:00 (in 4 h 0 min)"]),
        (
            [(2, 40, 30), (1, 50, 30)],
            [
                "50% used as of 1 h ago, resets Sat 15:00 (in 1 d 6 h)",
                "at the pace of the last 3 hours it will be spent 19:00 (in 10 h",
            ],
        ),
        ([(2, 40, 4), (1, 41, 4)], ["at the pace of the last 3 hours it lasts until its reset"]),
        ([(20, 40, 90), (9, 41, 90)], ["41% used as of 9 h ago", "nothing was used in the last 3 hours"]),
        ([(1, 12.5, 4)], ["12.5% used", "no pace is known yet"]),
        ([(9, 40, -1)], ["began again 08:00; 40% was used before"]),
        ([(1, 12.5, None)], ["12.5% used as of 1 h ago\n"]),
        ([(999, 30, 2000)], ["30% used as of 41 d ago, resets 2027-04-08"]),
    ],
)
def test_what_is_said_of_a_window(
    samples: list[tuple[float, float, float | None]], words: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / str(len([*tmp_path.iterdir()]))
    keep(folder, *(("5 hours", *one) for one in samples))
    text = shown(folder) + "\n"
    assert all(each in text for each in words)


def test_a_time_that_is_over_has_no_outlook(run: Run, state: Path) -> None:
    keep(state, ("5 hours", 30, 40, -26), ("5 hours", 29, 60, -26))
    out = run("report", "limits", "--since", "2d", "--until", "today")[1]
    assert "60% used at the end of this time" in out and "pace" not in out
    assert "no allowance was reported" in run("report", "limits", "--since", "1h")[1]


END = NOW + HOUR


@rows(
    "samples, uses",
    [
        ([(0.5, 10), (2.5, 30)], [10, 10, 30, 30]),
        ([(-1, 10), (2.1, 30), (2.9, 5)], [10, 10, 30, 5]),  # the highest of a part; its last one goes on
        ([(1.5, 20, 1.8)], [None, 20, 0, 0]),  # it was reset, and nothing was heard since
        ([(0, 20, 2)], [20, 20, 0, 0]),
        ([], [None] * 4),
    ],
)
def test_the_use_in_each_part_of_a_time(samples: list[tuple[float, ...]], uses: list[float | None]) -> None:
    found = [UsedAt(NOW + at, used, NOW + ends[0] if ends else None) for at, used, *ends in samples]
    assert used_in(found, NOW, NOW + 4, 4) == uses


def test_a_graph_has_a_column_for_each_use() -> None:
    uses = [None, 0, 0.1, 12.5, 25, 50, 100, 130]
    lines = list(graph_lines(uses, (NOW, NOW + 1), 2, blocks=True))
    assert lines[:2] == ["100%       ██"[:5] + "      ██", "  0%  ▁▁▂▄███"]
    lines = list(graph_lines(uses, (NOW, NOW + 1), 2, blocks=False))
    assert lines[:2] == ["100%       ##", "  0%  ...:###"]


@rows(
    "since, until, columns, text",
    [
        (0, 3 * DAY, 60, "Fri 15              Sat 16              Sun 17"),
        (-HOUR, 2 * DAY + HOUR, 12, "Fri 15"),
        (0, 6 * HOUR, 60, "Fri 15    01:00     02:00     03:00     04:00     05:00"),
        (0, 30 * DAY, 60, "Fri 15  Tue 19  Sat 23  Wed 27  Sun 31  Thu 04  Mon 08"),
        (900, 2700, 60, ""),
        (0, 0, 60, ""),
    ],
)
def test_an_axis_names_days_or_hours(since: float, until: float, columns: int, text: str) -> None:
    begin = midnight(NOW)
    assert axis((begin + since, begin + until), columns) == text


def test_limits_as_data(run: Run, state: Path) -> None:
    keep(state, ("5 hours", 3, 40, 4), ("5 hours", 1, 85, 4), ("Weekly", 1, 3, None))
    first, second = json.loads(run("report", "limits", "--json")[1])["windows"]
    assert first["samples"] == [["2027-01-15T06:00:00+01:00", 40.0], ["2027-01-15T08:00:00+01:00", 85.0]]
    assert (first["used"], first["resets_at"], first["spent_at"]) == (
        85,
        "2027-01-15T13:00:00+01:00",
        "2027-01-15T10:00:00+01:00",
    )
    assert (second["window"], second["resets_at"], second["spent_at"]) == ("Weekly", None, None)
    lines = run("report", "limits", "--csv")[1].splitlines()
    assert lines[:2] == [
        "account,window,limit,at,used,resets_at",
        "p1,5 hours,,2027-01-15T06:00:00+01:00,40.0,2027-01-15T13:00:00+01:00",
    ]


@rows("columns", [20, 40, 80, 300])
def test_no_line_is_wider_than_the_terminal(columns: int, tmp_path: Path) -> None:
    if not (tmp_path / "history.db").exists():
        keep(tmp_path, *((HOSTILE, hours, 50 - hours, 4.0) for hours in range(50)))
    lines = written(shown(tmp_path, columns=columns).splitlines(), Terminal(columns)).splitlines()
    assert max(map(width_of, lines)) <= columns and all(line.isprintable() for line in lines)
