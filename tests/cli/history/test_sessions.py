"""`report sessions`: conversations, and the turns of one."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from captured import Run
from observe.history.past import NOW, history, later
from samples import rows

from cli.history.week import DAY, HOSTILE, session, week
from proxy.cli.history.sessions import read_sessions, session_lines
from proxy.cli.history.spans import span_of
from proxy.cli.history.tables import written
from proxy.cli.history.turns import end_of, read_turns, turn_lines
from proxy.cli.history.used_table import short_names
from proxy.cli.usage import Terminal
from proxy.observe.history.conversations import MAX_TURNS
from proxy.observe.history.schema import reading
from proxy.observe.monitor.terminal.cells import width_of

SESSIONS = """\
Sat 2027-01-09 00:00 to now (the last 7 days), the newest first

session   project  model    turns  tokens  output  cache       last  lasted
5f3a91c0  shop     gpt-5.6      2    2.0M   20.0k    75%      08:59   2h00m
s1        shop     gtp-5        1       0       0      -      08:58      4s
5f3a91c1  search   gpt-5.6      2    4.0M   20.0k    38%  Thu 08:59   2h00m
5f3a91c2  -        kimi-k3      2    6.0M   20.0k      -  Wed 08:59   2h01m

The turns of one: model-proxy report sessions ID
"""
TURNS = """\
Session 5f3a91c1-0000-4000-8000-000000000000
project search, caller anna, 2 turns, 4.0M tokens
Thu 2027-01-14 06:58 to Thu 2027-01-14 08:59 (2h00m)

ended      model    account  input  cache  output  first s  total s  end
Thu 06:59  gpt-5.6  p1/work   2.0M    38%   10.0k      2.5       45  tool_use
    in place of gpt-5.6: overloaded
    cache 38%, 90% expected: the tools changed
    retries: 1
    searches: 2
Thu 08:59  gpt-5.6  p1/work   2.0M    38%   10.0k      1.5       27  tool_use
    in place of gpt-5.6: overloaded
    cache 38%, 90% expected: the tools changed
    retries: 1
    searches: 2
"""


@pytest.fixture
def kept(state: Path) -> Path:
    return history(state, week())


def test_conversations_and_the_turns_of_one(run: Run, kept: Path) -> None:
    assert run("report", "sessions") == (0, SESSIONS, "")
    assert run("report", "sessions", "5f3a91c1") == (0, TURNS, "")


def test_the_newest_are_kept_of_many(run: Run, state: Path) -> None:
    history(state, [later(-number, session=f"s{number:02}") for number in reversed(range(30))])
    out = run("report", "sessions")[1]
    assert [line[:3] for line in out.splitlines()[3:23]] == [f"s{number:02}" for number in range(20)]
    assert "There are older ones: model-proxy report sessions --limit N" in out
    (one,) = json.loads(run("report", "sessions", "--limit", "1", "--json")[1])["sessions"]
    assert one["session"] == "s00"
    found = json.loads(run("report", "sessions", "--json")[1])
    assert len(found["sessions"]) == 30 and not found["more"]
    assert run("report", "sessions", "--since", "2027-01-15", "--until", "2027-01-15T09:00")[1].count(" gpt-5.5 ") == 20


def test_a_time_without_conversations(run: Run, kept: Path) -> None:
    assert "no conversations" in run("report", "sessions", "--since", "5d", "--until", "4d")[1]
    assert "no turns in this time" in run("report", "sessions", "5f3a91c1", "--since", "4h")[1]
    assert run("report", "sessions", "5f3a91c1", "--since", "2027-01-14T08:00")[1].count("tool_use") == 1


def test_sessions_as_data(run: Run, kept: Path) -> None:
    one = json.loads(run("report", "sessions", "--json")[1])["sessions"][2]
    assert one["session"] == session(1) and one["model"] == "gpt-5.6" and one["caller"] == "anna"
    assert (one["requests"], one["input"], one["ended"]) == (2, 4_000_000, "2027-01-14T08:59:00+01:00")
    assert "first_p50" not in one  # which is not read
    table = list(csv.DictReader(io.StringIO(run("report", "sessions", "--csv")[1])))
    assert [row["session"] for row in table] == [session(0), "s1", session(1), session(2)]
    turns = json.loads(run("report", "sessions", session(1), "--json")[1])
    assert turns["session"] == session(1) and len(turns["turns"]) == 2
    assert turns["turns"][1] | {"total_ms": 27000, "lost": "the tools changed", "stop": "tool_use"} == turns["turns"][1]
    assert run("report", "sessions", "5f3a91c1", "--csv")[1].startswith("request,ended,first_ms,total_ms,")
    assert run("report", "sessions", "--since", "5d", "--until", "4d", "--csv")[1].startswith("session,began,ended")


def test_ids_are_as_short_as_they_can_be() -> None:
    ids = [
        "019ab123-4000-7000-8000-0123456789ab",
        "019ab123-4567-7000-8000-0123456789ab",
        "5f3a91c2-0000-4000-8000-000000000000",
    ]
    assert short_names([*ids, "mine", ids[0]]) == ["019ab123-40", "019ab123-45", "5f3a91c2", "mine", "019ab123-40"]


@rows(
    "start, words",
    [
        ("5f3a", "'5f3a' fits several sessions: 5f3a91c0-0000"),
        ("x\x1b[2J", "no session in the history begins with"),
        ("", "no session in the history begins with"),
    ],
)
def test_what_is_no_one_session(start: str, words: str, run: Run, state: Path) -> None:
    if not (state / "history.db").exists():
        history(state, week())
    status, out, err = run("report", "sessions", start)
    assert (status, out) == (1, "") and words in err and "\x1b" not in err


def test_a_whole_id_is_that_session_though_others_begin_with_it(run: Run, state: Path) -> None:
    history(state, [later(-60, session="s1"), later(-50, session="s12")])
    assert run("report", "sessions", "s1")[1].startswith("Session s1\n")


@rows(
    "changes, text",
    [
        ({}, "tool_use"),
        ({"stop": None}, "completed"),
        ({"outcome": "failed", "http": 529, "kind": "overloaded"}, "failed 529 overloaded"),
        ({"outcome": "failed", "http": None}, "failed"),
        ({"http": 404}, "failed 404"),
        ({"outcome": "abandoned"}, "client left"),
    ],
)
def test_how_a_turn_ended(changes: dict[str, object], text: str) -> None:
    assert end_of(later(0, **changes)) == text


def test_long_conversations_are_cut(tmp_path: Path) -> None:
    path = history(tmp_path, [later(number - 9999) for number in range(MAX_TURNS + 5)])
    with reading(path) as db:
        found = read_turns(db, "s1", None, None)
        assert (len(found.turns), found.more, found.turns[-1].ended) == (MAX_TURNS, True, later(-9999 + 1004).ended)
        few = read_turns(db, "s1", None, 3)
    assert few.turns == found.turns[-3:]
    assert "There are older turns; these are the newest 3." in turn_lines(few, Terminal(), NOW)


@rows("columns, blocks", [(columns, blocks) for columns in (70, 80, 120, 200) for blocks in (True, False)])
def test_no_line_is_wider_than_the_terminal(columns: int, blocks: bool, tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    if not path.exists():
        names = dict.fromkeys(("project", "caller", "account", "served", "agent", "stop", "lost", "fallback"), HOSTILE)
        history(tmp_path, [later(-60, session=HOSTILE, **names), later(-DAY, session="s")])
    terminal = Terminal(columns, blocks=blocks, encoding="utf-8" if blocks else "ascii")
    with reading(path) as db:
        sessions, turns = read_sessions(db, span_of("week", None, None, NOW), 9), read_turns(db, HOSTILE, None, None)
    for report in (session_lines(sessions, terminal, NOW, "model-proxy"), turn_lines(turns, terminal, NOW)):
        lines = written(report, terminal).splitlines()
        assert max(map(width_of, lines)) <= columns
        assert all(line.isprintable() and (blocks or line.isascii()) for line in lines)
