"""Which artifacts a request leaves, and what is in them."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from proxy.observe.capture.layout import capture_path
from proxy.observe.capture.reading.folder import captures_in
from proxy.observe.capture.writing.files import BLOCK_BYTES, TIDY_EVERY_S, CaptureLimits
from proxy.observe.capture.writing.streams import MAX_COMMAS

from .written import PLENTY, Written, attempt, files, sse

DAY_S = 24 * 3600

SSE = {"content-type": "text/event-stream"}


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path)


def test_a_streamed_request_leaves_every_station(written: Written) -> None:
    capture = written.begin()
    sent = attempt(capture)
    sent.answered(200, SSE, pooled=False)
    for event in ({"type": "a", "n": 1}, {"type": "b"}):
        sent.data(sse(event))
        capture.streamed(sse({"type": "down", **event}))
    capture.ended("completed", 200)
    assert [*files(capture)] == [
        "001-000-metadata.json",
        "002-010-anthropic-request.json",
        "003-016-model-resolution.json",
        "004-020-upstream-request.json",
        "005-021-upstream-request-metadata.json",
        "006-022-upstream-attempt.json",
        "007-030-upstream-response-headers.json",
        "008-032-upstream-response-body.sse",
        "009-033-upstream-response-capture.json",
        "010-061-request-summary.json",
        "events/000001-040-upstream-event.json",
        "events/000002-050-downstream-event.json",
        "events/000003-040-upstream-event.json",
        "events/000004-050-downstream-event.json",
    ]


def ends(capture: Any, outcome: str = "completed", status: int = 200) -> list[str]:
    """Names without their numbers, after those that every request has."""
    capture.ended(outcome, status)
    return [name[4:] if name[3] == "-" else name for name in files(capture)][3:]


ATTEMPTED = ["020-upstream-request.json", "021-upstream-request-metadata.json", "022-upstream-attempt.json"]
ANSWERED = [*ATTEMPTED, "030-upstream-response-headers.json"]
KEPT, SUMMARY = "033-upstream-response-capture.json", "061-request-summary.json"


def test_an_answer_in_one_piece(written: Written) -> None:
    capture = written.begin()
    sent = attempt(capture)
    sent.answered(200, {"Content-Type": "application/json; charset=utf-8"})
    sent.data(b'{"a":')
    sent.data(b"1}")
    capture.replied(b'{"type":"message"}')
    # 051 is told before the attempt is known to be over
    assert ends(capture) == [
        *ANSWERED,
        "051-downstream-response.json",
        "032-upstream-response-body.json",
        KEPT,
        SUMMARY,
    ]


@pytest.mark.parametrize(("body", "extension"), [(b'{"error":"no"}', "json"), (b"no", "txt"), (b"\xff\xd8\xff", "bin")])
def test_an_error_of_the_upstream(written: Written, body: bytes, extension: str) -> None:
    capture = written.begin()
    sent = attempt(capture)
    sent.answered(500, {"content-type": "text/html"})
    sent.refused(body)
    sent.failed("it said no")
    assert ends(capture, "failed", 502) == [*ANSWERED, f"031-upstream-error-body.{extension}", KEPT, SUMMARY]


def test_an_attempt_without_an_answer_and_one_more(written: Written) -> None:
    capture = written.begin()
    attempt(capture).failed("no connection")
    again = attempt(capture)
    again.answered(200, SSE)
    again.data(sse({"type": "a"}))
    assert ends(capture) == [
        *ATTEMPTED,
        KEPT,
        *ANSWERED,
        "032-upstream-response-body.sse",
        KEPT,
        SUMMARY,
        "events/000001-040-upstream-event.json",
    ]
    found = files(capture)
    assert found["007-033-upstream-response-capture.json"]["error"] == "no connection"
    assert found["006-022-upstream-attempt.json"] == {
        "status": None,
        "elapsed_ms": None,
        "attempt": 1,
        "transport": "http",
    }
    assert found["014-061-request-summary.json"]["attempts"] == 2


def test_nothing_upstream(written: Written) -> None:
    assert ends(written.begin(kind="count_tokens")) == [SUMMARY]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("messages", "002-010-anthropic-request.json"),
        ("count_tokens", "002-010-anthropic-request.json"),
        ("responses", "002-010-openai-responses-request.json"),
        ("chat_completions", "002-010-openai-chat-completions-request.json"),
    ],
)
def test_the_body_as_received(written: Written, kind: str, name: str) -> None:
    capture = written.begin(kind=kind, body=b'{"b":1,"a":"\xc3\xa9"}')
    folder = Path(capture.place or "")
    assert (folder / name).read_bytes() == b'{\n  "b": 1,\n  "a": "\xc3\xa9"\n}'


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b'\xef\xbb\xbf{"password":"abc"}', {"password": "[redacted len=3]"}),
        (b'{"n":NaN,"password":"abc"}', {"n": "nan", "password": "[redacted len=3]"}),
        (
            b'{"n":%s,"password":"abc"}' % (b"1" * 5000),
            {"n": "[number of 5000 digits]", "password": "[redacted len=3]"},
        ),
    ],
)
def test_what_only_some_take_for_json(written: Written, body: bytes, shown: Any) -> None:
    capture = written.begin()
    attempt(capture).refused(body)
    assert files(capture)["006-031-upstream-error-body.json"] == shown


def test_a_body_of_millions_of_values_is_not_taken_apart(written: Written) -> None:
    body = b"[" + b"0," * (MAX_COMMAS + 1) + b"0]"
    found = files(written.begin(body=body))
    assert found["002-010-anthropic-request.txt"] == b"[left out: %d bytes of too many values]" % len(body)


def test_the_first_artifacts(written: Written) -> None:
    capture = written.begin(
        kind="responses",
        requested="codex",
        query="a=1&access_token=abc",
        headers={"Authorization": "Bearer abc", "session_id": "s", "X-Claude-Code-Agent-Id": "agent"},
        converted={"messages": []},
    )
    found = files(capture)
    assert found["001-000-metadata.json"] == {
        "reqId": "req-1",
        "sessionId": "s",
        "sessionSeq": 1,
        "kind": "responses",
        "provider": "p1",
        "model": "gpt-5.5",
        "requestedModel": "codex",
        "effort": "high",
        "method": "POST",
        "path": "/v1/messages",
        "query": "a=1&access_token=[redacted len=3]",
        "headers": {
            "Authorization": "[redacted len=10]",
            "session_id": "s",
            "X-Claude-Code-Agent-Id": "[redacted len=5]",
        },
    }
    assert found["003-015-anthropic-request.json"] == {"messages": []}
    assert found["004-016-model-resolution.json"] == {"requestedModel": "codex", "resolvedModel": "gpt-5.5"}


def test_what_is_told_of_an_attempt(written: Written) -> None:
    capture = written.begin()
    sent = attempt(capture, b'{"input": []}', url="https://user:pass@upstream.test/x?api_key=abc", attempt=3)
    sent.answered(200, {"x-request-id": "u", "set-cookie": "a=b"}, pooled=True)
    found = files(capture)
    assert found["005-021-upstream-request-metadata.json"] == {
        "method": "POST",
        "provider": "p1",
        "transport": "http",
        "url": "https://[redacted]@upstream.test/x?api_key=[redacted len=3]",
        "headers": {"authorization": "[redacted len=15]"},
        "size": 13,
    }
    assert found["006-022-upstream-attempt.json"] == {
        "status": 200,
        "elapsed_ms": 100,
        "attempt": 3,
        "transport": "http",
        "pooled": True,
    }
    assert found["007-030-upstream-response-headers.json"] == {
        "status": 200,
        "headers": {"x-request-id": "u", "set-cookie": "[redacted len=3]"},
    }


def test_a_key_that_is_quoted(written: Written) -> None:
    capture = written.begin(headers={"X-Api-Key": "key-of-caller"}, body=b'{"messages":"key-of-caller"}')
    sent = attempt(capture, headers={"authorization": "Bearer key-of-account"})
    quoted = {"type": "error", "message": "no such key: key-of-account"}
    sent.data(sse(quoted))
    sent.refused(b"unknown: key-of-account")
    sent.failed("it said key-of-account")
    capture.streamed(sse(quoted))
    capture.replied(b"unknown: key-of-account")
    capture.ended("failed", 401, "it said key-of-account")
    found = [path.read_bytes() for path in Path(capture.place or "").rglob("*") if path.is_file()]
    assert not [data for data in found if b"key-of-" in data]
    assert sum(b"[redacted len=14]" in data for data in found) == 7


def test_a_wire_that_is_no_text(written: Written) -> None:
    capture = written.begin(provider="p5")
    sent = attempt(capture, {"run": {"blob": b"1234"}}, transport="connect")
    sent.sent({"kv_client_message": {"id": 1}})
    sent.events([{"text_delta": {"text": "hi"}}])
    capture.ended("completed", 200)
    found = files(capture)
    assert found["004-020-upstream-request.json"] == {"run": {"blob": "[bytes len=4]"}}
    assert found["events/000001-025-upstream-message.json"] == {"kv_client_message": {"id": 1}}
    assert found["events/000002-040-upstream-event.json"] == {"text_delta": {"text": "hi"}}
    kept = next(value for name, value in found.items() if "033" in name)
    assert (kept["captured_events"], kept["sent"]["captured_events"]) == (1, 1)


def test_the_summary(written: Written) -> None:
    capture = written.begin()
    capture.streamed(sse({"type": "a"}) + b"data: no json\n\ndata: [DONE]\n\n")
    capture.ended("failed", 200, "Bearer abcdefgh12 was refused")
    capture.ended("completed", 200)
    summary = files(capture)["004-061-request-summary.json"]
    assert summary == {
        "outcome": "failed",
        "status": 200,
        "error": "Bearer [redacted len=10] was refused",
        "elapsed_ms": 100,
        "attempts": 0,
        "downstream": summary["downstream"],
        "artifacts_left_out": 0,
        "messages_lost": 0,
    }
    assert (summary["downstream"]["captured_events"], summary["downstream"]["malformed"]) == (1, 1)


@pytest.mark.parametrize(
    ("session", "folder"),
    [
        ("..", "_.."),
        (".", "_."),
        ("a/b", "a_b"),
        ("%2e%2e", "_2e_2e"),
        ("../../x", ".._.._x"),
        ("a" * 300, "a" * 160),
        (" ", "no-session"),
        ("", "no-session"),
        (None, "no-session"),
    ],
)
def test_the_folder_of_a_session(tmp_path: Path, session: str | None, folder: str) -> None:
    path = capture_path(tmp_path, session, 5, "p1", "id")
    number = "000000" if folder == "no-session" else "000005"
    assert path == tmp_path / "traffic" / folder / f"{number}-p1-id"
    assert path.resolve().is_relative_to(tmp_path / "traffic")


def test_only_the_owner_may_look(written: Written) -> None:
    loose = written.root / "traffic"
    loose.mkdir(mode=0o755)
    capture = written.begin()
    capture.streamed(sse({"type": "a"}))
    attempt(capture).data(sse({"type": "a"}))
    capture.ended("completed", 200)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in [loose, *loose.rglob("*")] if path.is_dir()}
    assert modes == {0o700}
    assert {stat.S_IMODE(path.stat().st_mode) for path in loose.rglob("*") if path.is_file()} == {0o600}


@pytest.mark.parametrize("place", ["traffic", "traffic/s"])
def test_a_link_is_not_followed(tmp_path: Path, place: str) -> None:
    written, elsewhere = Written(tmp_path / "state"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (written.root / place).parent.mkdir(parents=True)
    (written.root / place).symlink_to(elsewhere, target_is_directory=True)
    written.begin().ended("completed", 200)
    assert [*elsewhere.iterdir()] == []
    assert [what for what, _ in written.reports] == ["capture_not_written"]


def test_a_folder_that_was_cleared_meanwhile(written: Written) -> None:
    capture = written.begin()
    folder = Path(capture.place or "")
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    capture.streamed(sse({"type": "a"}))
    capture.ended("completed", 200)
    assert not folder.exists()
    later = written.begin(request_id="req-2")
    later.ended("completed", 200)
    assert len(files(later)) == 4 and len(written.reports) == 1


@pytest.mark.parametrize(
    ("limits", "kept", "left_out"),
    [
        (PLENTY, 9, 0),
        (CaptureLimits(2**40, 2**30, 2**40, 6), 6, 3),
        (CaptureLimits(2**40, 2**30, 6 * BLOCK_BYTES, 2**30), 6, 3),
        (CaptureLimits(2**40, 6, 2**40, 2**30), 6, 3),
        (CaptureLimits(6 * BLOCK_BYTES, 2**30, 2**40, 2**30), 6, 3),
        (CaptureLimits(BLOCK_BYTES - 1, 2**30, 2**40, 2**30), 0, 0),
    ],
)
def test_quotas(tmp_path: Path, limits: CaptureLimits, kept: int, left_out: int) -> None:
    written = Written(tmp_path, limits)
    capture = written.begin()
    capture.streamed(sse(*({"type": "a", "n": n} for n in range(5))))
    capture.ended("completed", 200)
    found = files(capture)
    assert len(found) == kept
    if kept:
        summary = next(value for name, value in found.items() if "061" in name)
        assert summary["artifacts_left_out"] == left_out
    of_all = limits.total_files < 2**30 or limits.total_bytes < 2**40
    assert [what for what, _ in written.reports] == (["captures_full"] if of_all else [])


def test_what_others_write_meanwhile_counts(tmp_path: Path) -> None:
    limits = CaptureLimits(2**40, 300, 2**40, 2**30)
    all_of_them = [Written(tmp_path, limits) for _ in range(3)]
    for number in range(60):
        for who, written in enumerate(all_of_them):
            written.begin(request_id=f"{who}-{number}").ended("completed", 200)
    kept = sum(path.is_file() for path in tmp_path.rglob("*"))
    assert 300 <= kept <= 300 + 2 * 64


def test_captures_go_when_they_are_too_old(tmp_path: Path) -> None:
    """Looked for with the first capture and every hour; what is not ours stays."""
    wall = [1_000_000.0]
    written = Written(tmp_path, CaptureLimits(2**40, 2**30, 2**40, 2**30, age_s=DAY_S), wall=lambda: wall[0])
    written.begin(request_id="old", session="a").ended("completed", 200)
    written.begin(request_id="new", session="b").ended("completed", 200)
    for path in tmp_path.rglob("*-old/*"):
        os.utime(path, (wall[0], wall[0]))
    for path in tmp_path.rglob("*-new/*"):
        os.utime(path, (wall[0] + TIDY_EVERY_S, wall[0] + TIDY_EVERY_S))
    notes = tmp_path / "traffic" / "notes.txt"
    notes.write_text("mine")
    os.utime(notes, (0, 0))
    wall[0] += DAY_S + TIDY_EVERY_S
    written.begin(request_id="newest", session="c").ended("completed", 200)
    assert {one.request_id for one in captures_in(tmp_path / "traffic")} == {"new", "newest"}
    assert notes.exists() and not (tmp_path / "traffic" / "a").exists()
    wall[0] += TIDY_EVERY_S - 1
    written.begin(request_id="last", session="c").ended("completed", 200)
    assert "new" in {one.request_id for one in captures_in(tmp_path / "traffic")}


def test_a_capture_that_cannot_be_removed_keeps_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = CaptureLimits(2**40, 2**30, 2**40, 2**30, age_s=DAY_S)
    written = Written(tmp_path, limits, wall=lambda: 1_000_000.0)
    for name in ("a-of-root", "b-old"):
        written.begin(request_id=name).ended("completed", 200)
    for path in tmp_path.rglob("*.json"):
        os.utime(path, (0, 0))
    real = Path.unlink

    def unlink(path: Path, missing_ok: bool = False) -> None:
        if "a-of-root" in str(path):
            raise PermissionError(13, "Permission denied")
        real(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)
    later = Written(tmp_path, limits, wall=lambda: 1_000_000.0)
    later.begin(request_id="new").ended("completed", 200)
    assert {one.request_id for one in captures_in(tmp_path / "traffic")} == {"a-of-root", "new"}


def test_room_for_summaries_is_kept_when_files_are_counted_again(tmp_path: Path) -> None:
    written = Written(tmp_path, CaptureLimits(2**40, 300, 2**40, 2**30))
    opened = [written.begin(request_id=str(number)) for number in range(50)]
    for capture in opened:
        for number in range(10):
            capture.streamed(sse({"type": "a", "n": number}))
    for capture in opened:
        capture.ended("completed", 200)
    assert sum(path.is_file() for path in tmp_path.rglob("*")) == 300
    assert len([*tmp_path.rglob("*-061-*")]) == 50


def test_what_is_there_counts_and_room_that_was_made(tmp_path: Path) -> None:
    old = tmp_path / "traffic" / "old" / "000001-p1-x"
    old.mkdir(parents=True)
    (old / "001-000-metadata.json").write_bytes(b"x" * 5000)
    (old / "link").symlink_to("/usr", target_is_directory=True)
    written = Written(tmp_path, CaptureLimits(2**40, 5, 2**40, 2**30))
    first = written.begin()  # two are there
    first.ended("completed", 200)
    assert len(files(first)) == 3
    for path in old.iterdir():
        path.unlink()
    written.begin(request_id="req-2").ended("completed", 200)
    assert len([*(tmp_path / "traffic" / "s").iterdir()]) == 1
    written.time.now += 60
    third = written.begin(request_id="req-3")
    third.ended("completed", 200)
    assert len(files(third)) == 2 and [what for what, _ in written.reports] == ["captures_full"]
