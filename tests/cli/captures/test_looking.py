"""`captures list`, `show` and `clear`: what they say, and that no text of a stranger acts on the terminal."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from captured import NOON, Run, write_capture
from harness import ask

from proxy.cli.printable import amount, printable

TRICKS = "a\x1b[2J\x07\x9b1m\r\u202eb\u2028\x7f"


@pytest.mark.parametrize("line", ["", "frobnicate", "list --last 0", "list --last x", "clear --older-than 7"])
def test_what_is_no_action_gets_the_usage(line: str, captures: Run) -> None:
    status, out, err = captures(*line.split())
    assert (status, out) == (2, "") and err.startswith("usage: model-proxy captures")


@pytest.mark.parametrize("line", ["list", "show", "show abc", "diff", "replay"])
def test_without_captures_it_is_said_how_they_are_made(line: str, captures: Run, state: Path) -> None:
    status, out, err = captures(*line.split())
    assert (status, out) == (1, "") and "PROXY_TRAFFIC_LOG=1" in err and str(state / "traffic") in err


def fill(state: Path) -> None:
    """Five requests."""
    write_capture(state, number=1, received=ask("x" * 3000))
    write_capture(state, number=2, provider="p2", model="kimi-k2.6", begun_s=NOON + 1, outcome="failed", status=429)
    write_capture(state, session="t", number=1, kind="chat_completions", begun_s=NOON + 2, request_id="abc-1")
    write_capture(state, session=None, request_id="abd-2", begun_s=NOON + 3, outcome=None)
    write_capture(state, session="t", number=2, kind="count_tokens", begun_s=time.time(), request_id="zz")


FILTERS = [
    ("", "00000001-id 00000002-id abc-1 abd-2 zz"),
    ("--session t", "abc-1 zz"),
    ("--session no-session", "abd-2"),
    ("--provider p2", "00000002-id"),
    ("--model kimi", "00000002-id"),
    ("--kind count_tokens", "zz"),
    ("--failed", "00000002-id abd-2"),
    ("--last 2", "abd-2 zz"),
    ("--newer-than 1h", "zz"),
    ("--session t --last 1", "zz"),
    ("--provider p5", ""),
]


@pytest.mark.parametrize(("options", "expected"), FILTERS)
def test_the_list_is_filtered_and_the_newest_is_last(options: str, expected: str, captures: Run, state: Path) -> None:
    fill(state)
    status, out, err = captures("list", *options.split())
    head, *lines = [" ".join(line.split()) for line in out.splitlines()]
    assert (status, err, [line.split()[-1] for line in lines]) == (0, "", expected.split())
    assert head == "begun session no. kind provider model outcome size request"
    found = [json.loads(line) for line in captures("list", "--json", *options.split())[1].splitlines()]
    assert [one["request"] for one in found] == expected.split()


def test_a_line_of_the_list_says_what_one_looks_for(captures: Run, state: Path) -> None:
    fill(state)
    lines = captures("list")[1].splitlines()
    assert " ".join(lines[1].split()[2:]) == "s 1 messages p1 gpt-5.5 200 completed 3.4 kB 00000001-id"
    assert "429 failed" in lines[2] and "unfinished" in lines[4]


def test_a_capture_is_shown_with_its_artifacts(captures: Run, state: Path) -> None:
    folder = write_capture(state, received=ask("hi"), events=3)
    status, out, _ = captures("show", "0000")
    assert status == 0 and str(folder) in out and captures("show")[1] == captures("show", str(folder))[1] == out
    assert "001-000-metadata.json" in out and "002-010-anthropic-request.json" in out
    assert "  050-downstream-event  3 files below events/, 6 B\n" in out
    assert captures("show", "0000", "050-downstream-event")[0] == 0  # as the list says


@pytest.mark.parametrize(
    "name", ["010", "anthropic-request", "010-anthropic-request", "002-010-anthropic-request.json"]
)
def test_an_artifact_is_printed_as_it_is(name: str, captures: Run, state: Path) -> None:
    write_capture(state, received=ask("hi"))
    status, out, _ = captures("show", "0000", name)
    assert status == 0 and json.loads(out) == ask("hi")


def test_several_artifacts_have_headings(captures: Run, state: Path) -> None:
    write_capture(state, received=ask("hi"), events=2)
    out = captures("show", "0000", "050")[1]
    assert out.splitlines()[::2] == [f"--- events/00000{n}-050-downstream-event.json" for n in (1, 2)]
    assert captures("show", "0000", "010", "050")[1].endswith(out)


def test_an_artifact_that_is_not_there_names_those_that_are(captures: Run, state: Path) -> None:
    write_capture(state, received=ask("hi"))
    status, out, err = captures("show", "0000", "020")
    assert (status, out) == (1, "") and "000-metadata, 010-anthropic-request, 061-request-summary" in err


NAMES = [
    ("0000000", "several captures: s/000001-p1-00000001-id, s/000002-p1-00000002-id"),
    ("x", "no capture begins"),
    ("", "no capture begins"),
    ("/tmp", "not the folder of a capture"),
    (TRICKS, "no capture begins"),
]


@pytest.mark.parametrize(("name", "expected"), NAMES)
def test_a_name_must_fit_one_capture(name: str, expected: str, captures: Run, state: Path) -> None:
    write_capture(state, number=1)
    write_capture(state, number=2)
    status, out, err = captures("show", name)
    assert (status, out) == (1, "") and expected in err and "\x1b" not in err


def test_a_whole_id_wins_over_longer_ones(captures: Run, state: Path) -> None:
    write_capture(state, number=1, request_id="abc")
    write_capture(state, number=2, request_id="abcd")
    assert "number 1" in captures("show", "abc")[1] and "number 2" in captures("show", "000002-p1")[1]


@pytest.mark.parametrize(
    "line", ["list", "list --json", "show 0000", "show 0000 000", "show 0000 032", "diff 0000 0000"]
)
def test_nothing_of_a_stranger_acts_on_the_terminal(line: str, captures: Run, state: Path) -> None:
    folder = write_capture(state, model=TRICKS, kind="messages", received=ask(TRICKS, **{TRICKS: 1}))
    (folder / "001-000-metadata.json").write_text(
        json.dumps({"model": TRICKS, "requestedModel": "b" + TRICKS, "kind": TRICKS}, ensure_ascii=False), "utf-8"
    )
    (folder / "009-032-upstream-response-body.sse").write_bytes(TRICKS.encode() + b"\xff\xfe")
    status, out, err = captures(*line.split())
    assert status == 0 and err == ""
    assert not set(out) & set(TRICKS.replace("a", "").replace("b", "")) - set("[21mJ")


def test_text_for_a_terminal() -> None:
    assert printable("a\tb\nc") == "a\tb\nc"
    assert printable("\x1b\r\x9b\u202e\ud800") == "\\x1b\\x0d\\x9b\\u202e\\ud800"
    assert [amount(size) for size in (0, 999, 1000, 999_949, 999_950, 10**9)] == [
        *("0 B", "999 B", "1.0 kB", "999.9 kB", "1.0 MB", "1.0 GB")
    ]


CLEARED = [
    ("", "00000001-id 00000002-id abc-1 abd-2 zz"),
    ("--older-than 1d", "00000001-id 00000002-id abc-1 abd-2"),
    ("--session t", "abc-1 zz"),
    ("--session t --older-than 1h", "abc-1"),
    ("abd 00000002", "00000002-id abd-2"),
    ("zz --older-than 30m", ""),
]


@pytest.mark.parametrize(("options", "gone"), CLEARED)
def test_clear_removes_what_was_asked(options: str, gone: str, captures: Run, state: Path) -> None:
    fill(state)
    (state / "proxy.log").write_text("")

    def left() -> set[str]:
        return {path.name[10:] for path in (state / "traffic").glob("*/*")}

    before = left()
    planned = captures("clear", "--dry-run", *options.split())
    assert left() == before
    status, out, _ = captures("clear", *options.split())
    assert before - left() == set(gone.split()) and (state / "proxy.log").exists()
    count = len(gone.split())
    assert status == 0 and out.startswith(f"removed {count} capture{'s' * (count != 1)}, ")
    assert planned == (0, out.replace("removed", "would remove"), "")


def test_clear_says_what_stayed(captures: Run, state: Path) -> None:
    folder = write_capture(state)
    (folder / "notes").write_text("mine")
    assert "kept 1 folder" in captures("clear")[1] and (folder / "notes").exists()
    assert captures("clear")[0] == 0


@pytest.mark.parametrize("place", ["elsewhere/s", "state/model-proxy/traffic/link"])
def test_clear_removes_nothing_outside(place: str, tmp_path: Path, captures: Run, state: Path) -> None:
    kept = write_capture(tmp_path / "elsewhere", number=7)
    write_capture(state)
    (state / "traffic" / "link").symlink_to(kept.parent)
    (tmp_path / "elsewhere" / "s").symlink_to(kept.parent)
    status, out, err = captures("clear", str(tmp_path / place / kept.name))
    assert (status, out) == (1, "") and "nothing was removed" in err and (kept / "001-000-metadata.json").exists()


def test_clear_by_path(captures: Run, state: Path) -> None:
    folders = [write_capture(state, number=number) for number in (1, 2)]
    assert captures("clear", str(folders[0]))[1].startswith("removed 1 capture, ")
    assert [folder.exists() for folder in folders] == [False, True]


def test_clear_of_old_ones_leaves_one_that_just_begins(captures: Run, state: Path) -> None:
    write_capture(state)
    (state / "traffic" / "s" / "000002-p1-new").mkdir()
    captures("clear", "--older-than", "1d")
    assert [path.name for path in (state / "traffic" / "s").iterdir()] == ["000002-p1-new"]


@pytest.mark.parametrize("depth", [200, 100_000])
@pytest.mark.parametrize("line", ["show 00000001 010", "diff 00000001 00000002", "replay 00000001"])
def test_what_nobody_captured_is_no_traceback(line: str, depth: int, captures: Run, state: Path) -> None:
    for number in (1, 2):
        folder = write_capture(state, number=number, received={})
        (folder / "002-010-anthropic-request.json").write_text(
            '{"messages":' + '[{"a":' * depth + "1" + "}]" * depth + "}"
        )
    status, out, err = captures(*line.split())  # an error that is not ours would be raised here
    assert out or (status == 1 and ("nested too deeply" in err or "request that can be read" in err))


def test_captures_elsewhere(tmp_path: Path, captures: Run) -> None:
    write_capture(tmp_path / "copy", request_id="there")
    assert "there" in captures("list", "--folder", str(tmp_path / "copy" / "traffic"))[1]
