"""Every fault that the sandbox knows for P5, and what becomes of it: for a client that has tools and answers their
calls, streamed and whole."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from cursor_talk import Talk, all_over, calls, result, said
from fault_rows import BUSY, FINAL
from harness import Answer, Live
from outcomes import Broken, Good, Outcome, Refused, is_broken, is_good, is_refused
from samples import sampled, walk

from proxy.providers.p5_cursor.run.watch import RunTimers
from proxy.sandbox import FAULTS, Place, Sandbox
from proxy.sandbox.p5.execs import EXECS, QUERIES


@dataclass(frozen=True)
class Called:
    """So many calls of the client's tools, one after the other; then an answer in which `says` stands. `runs`: how
    many runs all of it took."""

    count: int = 1
    runs: int = 1
    says: str = "result 0"


Streamed = Outcome | Called
#: Fault, its members, what becomes of a streamed answer, and of a whole one.
Row = tuple[str, dict[str, Any], Streamed, Streamed]


def rows(streamed: Streamed, faults: str, *members: dict[str, Any], whole: Streamed | None = None) -> list[Row]:
    """Each of these faults with each of these members. A whole answer fares alike; where a stream breaks it is
    refused, because a run that was accepted is not begun again."""
    if whole is None:
        whole = streamed
        if isinstance(streamed, Broken):
            whole = Refused(streamed.status, streamed.type, words=streamed.words)
    return [(fault, one, streamed, whole) for fault in faults.split() for one in members or ({},)]


GOOD = Good()
#: Kinds of requests that the client serves; searches, folders and deletions with its shell.
CLIENT = ("read", "redacted_read", "write", "shell", "shell_stream", "grep", "ls", "delete")
LATE = {"after": "text"}
CUT = Refused(502, "api_error", words="cut the answer")
CUT_TEXT = Broken(words="cut the answer", whole=None)
UNREADABLE = Refused(502, "api_error", words="unreadable answer")
UNREADABLE_TEXT = Broken(words="unreadable answer", whole=None)
GATEWAY = Refused(502, "api_error")
LATE_504 = Refused(504, "timeout_error", headers=BUSY)
UPDATE = Refused(429, "rate_limit_error", headers=FINAL, words="p5.clientVersion")
REGION = Refused(403, "permission_error", headers=FINAL, words="p5.baseUrl")
EMPTY = Refused(502, "api_error", words="empty answer")
LIMIT = {"Retry-After": "5"}


def failed(words: str, status: int = 502, kind: str = "api_error", headers: dict[str, str] | None = None) -> Refused:
    return Refused(status, kind, words=f"Cursor Run failed: {words}", headers=headers or {})


def end(code: str | None, **members: Any) -> dict[str, Any]:
    return {"code": code, **members}


#: How the stream is framed, and what its payloads hold.
FRAMES: list[Row] = [
    *rows(GOOD, "tiny_writes in_pairs gzip gzip_end grpc_trailer keepalives unknown_events display_records"),
    *rows(GOOD, "empty_deltas malformed_inside invalid_utf8 huge_checkpoint context_again no_prelude"),
    *rows(GOOD, "tiny_writes", {"size": 3}),
    *rows(GOOD, "several_members", {}, *({"which": which} for which in ("exec_heartbeat", "text_exec", "exec_text"))),
    *rows(GOOD, "invalid_utf8", {"after": "nothing"}),
    *rows(Good(blocks=("text", "thinking", "text")), "thoughts_between"),
    *rows(UNREADABLE_TEXT, "huge_length huge_frame gzip_bomb bad_gzip bad_end strange_flags malformed"),
    *rows(UNREADABLE, "huge_length huge_frame bad_gzip malformed", {"after": "nothing"}, {"after": "created"}),
    *rows(Refused(502, "api_error", words="not a stream"), "garbage"),
    *rows(UNREADABLE_TEXT, "garbage", LATE),
    *rows(GOOD, "grpc_trailer", {"status": 8, "message": "behind the end of the turn"}),
]

#: Errors at the end of a stream, one of each course; what each code comes to, is in test_p5_failures.
ENDS: list[Row] = [
    *rows(failed("internal: Error"), "end_error", {}, {"gzip": True}),
    *rows(failed("unknown: "), "end_error", end(None), end("internal", message=None), end(None, message=None)),
    *rows(failed("deadline_exceeded", 504, "timeout_error", BUSY), "end_error", end("deadline_exceeded")),
    *rows(Good(2), "end_error", end("unauthenticated")),
    *rows(
        Refused(401, "authentication_error", 2, FINAL, "auth login p5"), "end_error", end("unauthenticated", times=2)
    ),
    *rows(failed("not_found: Error", 404, "not_found_error", FINAL), "end_error", end("not_found")),
    *rows(failed("resource_exhausted: Error", 429, "rate_limit_error", LIMIT), "end_error", end("resource_exhausted")),
    *rows(Good(2, waits=(1.5,)), "end_error", end("resource_exhausted", message="Network Error")),
    *rows(UPDATE, "end_error", end("resource_exhausted", error="ERROR_OUTDATED_CLIENT", title="Update Required")),
    *rows(REGION, "end_error", end("permission_denied", error="ERROR_UNSUPPORTED_REGION", title="T")),
    *rows(Broken(words="internal: Error", whole=None), "end_error", LATE),
    *rows(
        Broken(429, "rate_limit_error", words="Network"),
        "end_error",
        end("resource_exhausted", message="Network Error", **LATE),
        whole=Good(2, waits=(1.5,)),
    ),
    *rows(GOOD, "end_body", *({"body": body} for body in ("", "{}", '{"metadata":{}}', "no JSON", "[]"))),
    *rows(Broken(words="unknown", whole=None), "end_body", {"body": '{"error":{}}'}, {"body": "grpc-status: 2"}),
]

#: How an answer goes and ends.
COURSE: list[Row] = [
    *rows(
        GOOD, "cut_after_terminal held_open late_events text_after_turn no_turn_ended no_end no_usage turn_held_open"
    ),
    *rows(GOOD, "cut_after_terminal", {"reset": True}),
    *rows(GOOD, "held_open turn_held_open", {"seconds": 0.05}),
    *rows(GOOD, "late_events", {"error": True}),
    *rows(GOOD, "no_usage", {"tokens": False}),
    *rows(GOOD, "parked", {}, {"plain": True}),
    *rows(GOOD, "say", {"text": "Hello."}, {"text": "<tool_user>x</tool_user>"}),
    *rows(EMPTY, "empty say"),
    *rows(Good(blocks=()), "empty", {"thoughts": True}),
    *rows(CUT, "cut_before_output end_before_output", {}),
    *rows(CUT, "cut_before_output", {"reset": True}),
    *rows(CUT_TEXT, "cut_thinking cut_text cut_frame", {}, {"reset": True}),
    *rows(CUT_TEXT, "end_in_frame"),
    *rows(CUT, "end_in_frame cut_frame", {"after": "created"}),
    *rows(CUT_TEXT, "end_without_terminal", {"after": "thinking"}),
    *rows(GOOD, "end_without_terminal"),
    *rows(replace(LATE_504, words="proxy on the way"), "silence_before_head"),
    *rows(replace(LATE_504, words="signs of life"), "silence_after_created heartbeat_only"),
    *rows(GOOD, "silence_before_head silence_after_created silence_mid_text", {"seconds": 0.02}),
    *rows(GOOD, "silence_mid_text"),
    *rows(Broken(504, "timeout_error", words="signs of life"), "heartbeat_only", LATE, whole=LATE_504),
]

#: Answers that are no stream.
HTTP: list[Row] = [
    *rows(Good(2), "unauthorized"),
    *rows(Refused(401, "authentication_error", 2, FINAL, "auth login p5"), "unauthorized", {"times": 2}),
    *rows(Refused(403, "permission_error", headers=FINAL, words="plan"), "forbidden"),
    *rows(REGION, "unsupported_region"),
    *rows(Refused(429, "rate_limit_error", headers=FINAL, words="hit your usage limit"), "usage_limit"),
    *rows(Refused(502, "api_error", words="p5.baseUrl"), "empty_body"),
    *rows(Refused(502, "api_error", words="not a stream of the service (internal)"), "json_document"),
    *rows(Good(2), "json_document", {"code": "unauthenticated"}),
    *rows(Good(2, waits=(1.0,)), "rate_limit"),
    *rows(Refused(429, "rate_limit_error", 4, {"Retry-After": "1"}), "rate_limit", {"times": 4}),
    *rows(Refused(429, "rate_limit_error", 4, LIMIT), "rate_limit", {"times": 4, "seconds": None}),
    *rows(Refused(429, "rate_limit_error", headers={"Retry-After": "31"}), "rate_limit", {"seconds": 31}),
    *rows(UPDATE, "outdated"),
    *rows(GATEWAY, "server_error", *({"status": status} for status in (500, 502, 504))),
    *rows(GATEWAY, "overloaded redirect html_error cut_before_head"),
    *rows(GATEWAY, "cut_before_head", {"reset": True}),
    *rows(Refused(502, "api_error", words="HTTP/2"), "http2_only misdirected"),
    *rows(Refused(502, "api_error", words="application/connect+proto"), "wrong_media_type"),
    *rows(Refused(502, "api_error", words="boom"), "json_error"),
]

#: What is asked on the way. Everything is answered; only what a tool of the client does is left to that.
ASKED: list[Row] = [
    *rows(
        GOOD,
        "exec",
        *({"kind": kind} for kind in EXECS if kind not in CLIENT),
    ),
    *rows(GOOD, "exec", *({"number": number} for number in (0, 28, 39, 45, 55, 57))),
    *rows(GOOD, "exec", {"kind": "diagnostics", "id": 0}, {"kind": "diagnostics", "exec_id": ""}),
    *rows(Called(says="failed"), "exec", {}, {"kind": "grep"}, {"kind": "ls"}, {"kind": "delete"}),
    *rows(Called(), "exec", *({"kind": kind} for kind in ("read", "redacted_read", "shell", "shell_stream"))),
    *rows(Called(says="write succeeded"), "exec", {"kind": "write", "args": {"text": "x"}}),
    *rows(Called(), "exec", {"kind": "read", "id": 0}, {"kind": "shell", "exec_id": ""}),
    *rows(GOOD, "query", *({"kind": kind} for kind in QUERIES)),
    *rows(GOOD, "get_blob", {}, {"known": False}, {"known": False, "blob_id": "0a026869"}),
    *rows(Good(2), "get_blob", {"known": False, "then_error": "internal"}),
    *rows(Good(2), "get_blob", {"known": False, "then_error": "failed_precondition"}),
    *rows(replace(GATEWAY, attempts=2), "get_blob", {"known": False, "then_error": "internal", "times": 2}),
    *rows(GATEWAY, "get_blob", {"then_error": "internal"}),
    *rows(GOOD, "set_blobs", {}, {"count": 40, "size": 20_000}),
    *rows(GOOD, "notes_session_id"),
    *rows(Called(2, says="result 1"), "execs_together"),
    *rows(Called(2, says="hello"), "rewrite", {"path": "/sandbox/file.txt"}),
    *rows(Called(3), "execs_together", {"kinds": "read grep shell"}),
    *rows(GATEWAY, "append_fails append_cut", *({"number": number} for number in (0, 1, 2))),
    *rows(GATEWAY, "append_cut", {"reset": True}),
    *rows(
        Refused(429, "rate_limit_error", headers=LIMIT),
        "append_fails",
        *({"status": 429, "number": number, "body": {"message": "slow down"}} for number in (0, 2)),
    ),
    *rows(Good(2), "append_fails", {"status": 401, "body": {"code": "unauthenticated", "message": "Error"}}),
    *rows(LATE_504, "append_waits"),
    *rows(GOOD, "append_waits", {"seconds": 0.02}),
]

#: While a call is open.
PAUSES: list[Row] = [
    *rows(Called(), "busy_call", {}, {"deltas": 300, "size": 20_000}),
    *rows(Called(says=""), "abort"),
    *rows(Called(runs=2), "stalled_resume"),
    *rows(Called(), "silence_mid_call", {"seconds": 0.02}),
    *rows(Called(runs=2), "silence_mid_call"),
    *rows(Called(runs=2), "cut_call end_call", {"seconds": 0.05}),
    *rows(Called(runs=2), "error_call", {"seconds": 0.05}),
    *rows(Called(runs=2), "turn_ends_in_call", {}, {"seconds": 0.05}),
]

TABLE = [*FRAMES, *ENDS, *COURSE, *HTTP, *ASKED, *PAUSES]

#: For the faults that are about time; the others must not hang on how busy the machine is, nor a second run on how soon
#: the first byte of it comes.
SHORT = RunTimers(
    after_end=0.05,
    append=0.5,
    heartbeat=0.1,
    exec_heartbeat=0.05,
    early=0.1,
    first=1.0,
    silence=1.0,
    quiet_end=0.5,  # far above the time between two signs of life, also on a busy machine
    progress=0.6,
    stalled=0.2,
    cancel=0.2,
)
TIMED = {"silence_after_created", "silence_before_head", "silence_mid_text", "silence_mid_call", "heartbeat_only",
         "append_waits", "stalled_resume"}  # fmt: skip


def test_every_fault_of_the_sandbox_has_an_outcome() -> None:
    assert {row[0] for row in TABLE} == set(FAULTS[Place("p5", "agent")])


def check(answer: Answer, outcome: Outcome, *, stream: bool) -> None:
    if isinstance(outcome, Good):
        is_good(answer, outcome, stream, thoughts="thinking" in outcome.blocks)
    elif isinstance(outcome, Refused):
        is_refused(answer, outcome)
    else:
        assert isinstance(outcome, Broken)
        is_broken(answer, outcome, stream)


async def talks(talk: Talk, expected: Called) -> None:
    """Answers each call of the conversation."""
    message = await talk.turn()
    for number in range(expected.count):
        [call] = calls(message)
        message = await talk.turn(result(call, f"result {number}"))
    assert message["stop_reason"] == "end_turn" and expected.says in said(message)


def differs(fault: str, members: dict[str, Any], streamed: Streamed, whole: Streamed, stream: bool) -> Any:
    """What makes a difference: each row, and each outcome in either form."""
    return (fault, repr(members)), (repr(streamed if stream else whole), stream)


def is_timed(fault: str, members: dict[str, Any]) -> bool:
    return fault in TIMED and members.get("seconds") != 0.02


@functools.cache
def cases() -> list[tuple[str, dict[str, Any], Streamed, Streamed, bool]]:
    return sampled(((*row, stream) for stream in (True, False) for row in TABLE), 1, differs)


@pytest.mark.parametrize("timers", [SHORT, RunTimers(after_end=0.05)], ids=["timed", "others"])
async def test_a_fault_comes_out_as_the_table_says(sandbox: Sandbox, tmp_path: Path, timers: RunTimers) -> None:
    async with Live(sandbox, tmp_path, tuning=(timers,)) as live:
        with walk() as row:
            for number, (fault, members, streamed, whole, stream) in enumerate(cases()):
                if is_timed(fault, members) == (timers is SHORT):
                    with row((fault, members, stream)):
                        live.forget()
                        sandbox.p5.options.heartbeat_s = 0.02 if timers is SHORT and "silence" not in fault else 5.0
                        sandbox.p5.script.replace([{"provider": "p5", "fault": fault, **members}])
                        talk = Talk(live, "hello", session=f"session-{number}", stream=stream)
                        await comes_out(talk, streamed if stream else whole, stream=stream)


async def comes_out(talk: Talk, expected: Streamed, *, stream: bool) -> None:
    live, p5 = talk.live, talk.live.sandbox.p5
    if isinstance(expected, Called):
        await talks(talk, expected)
        assert p5.total_requests == expected.runs
    else:
        answer = await talk.ask(stream=stream)
        check(answer, expected, stream=stream)
        assert p5.total_requests == getattr(expected, "attempts", 1)
        assert tuple(live.sleeps) == getattr(expected, "waits", tuple(live.sleeps))
        assert "shown-not-said" not in answer.raw.decode()
    await all_over(live)
    assert max(max(run.appends.values(), default=1) for run in p5.runs) == 1
    assert not live.notes.all("internal_error")
