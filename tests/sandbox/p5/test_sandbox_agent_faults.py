"""Every named fault of the simulated P5, and scripts, seen by a raw client."""

import asyncio
import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from p5_sandbox_client import P5Client, Talk, rendered, run_request
from samples import rows

from proxy.sandbox import FAULTS, Place, ScriptError
from proxy.sandbox.wires.connect.protobuf import Message, write

AGENT = Place("p5", "agent")

Check = Callable[[Talk], object]


async def played(cursor: P5Client, fault: str, prompt: str = "hello", **params: Any) -> Talk:
    """What the fault makes of a run."""
    cursor.p5.options.heartbeat_s = 0.01
    cursor.p5.script.replace([{"fault": fault, **params}])
    async with asyncio.timeout(5):
        talk = await cursor.run(prompt, until="eof")
    assert cursor.p5.script.left == 0, "the step was used"
    return talk


def ending(talk: Talk) -> str:
    """How the stream ended: good, an error's code, broken, or eof (without an end)."""
    if talk.broken is not None:
        return "broken"
    if not talk.ends:
        return "eof"
    try:
        end = json.loads(talk.ends[0])
    except ValueError:
        return "odd"
    return str(end["error"].get("code", "no code")) if "error" in end else "good"


def args_of(talk: Talk) -> dict[int, Any]:
    """The arguments of the first exec, without the id of its call."""
    number = next(place for place in talk.execs[0].fields if place not in (1, 15))
    return {place: one for place, one in talk.execs[0].all(number)[0].fields.items() if not _is_call_id(one[0])}


def _is_call_id(value: int | bytes) -> bool:
    return isinstance(value, bytes) and value.startswith(b"toolu_")


def aborted(talk: Talk) -> list[int]:
    """The ids of the withdrawn execs."""
    return [one.number(5, 1, 1) for one in talk.messages if one.has(5, 1)]


#: Arguments of a search, and their fields.
GREP = {"pattern": "P", "path": "/x", "glob": "*.py", "output_mode": "count", "context": 0, "case_insensitive": True}
GREP_FIELDS = {1: "P", 2: "/x", 3: "*.py", 4: "count", 7: 0, 8: 1}

BEAT = 13
LS = "use Bash: ls"

#: Fault, its parameters, the prompt -> how the stream ends, and what else is so.
PLAYED: list[tuple[str, dict[str, Any], str, str, Check]] = [
    ("silence_before_head", {"seconds": 0.02}, "hello", "good", lambda t: t.text),
    ("silence_before_head", {"seconds": 0.02, "match": {"prompt": "hello"}}, "hello", "good", lambda t: t.text),
    ("cut_before_head", {}, "hello", "broken", lambda t: t.status == 0),
    ("cut_before_head", {"reset": True}, "hello", "broken", lambda t: t.status == 0),
    # envelopes
    ("tiny_writes", {}, "hello", "good", lambda t: t.text),
    ("in_pairs", {}, "hello", "good", lambda t: t.text.endswith("call it.")),
    ("gzip", {}, "hello", "good", lambda t: {*t.flags} == {1, 3} and t.text),
    ("gzip_end", {}, "hello", "good", lambda t: t.flags[-2:] == [0, 3]),
    ("grpc_trailer", {"status": 8, "message": "x"}, "hello", "odd", lambda t: b"grpc-status: 8\r\n" in t.ends[0]),
    ("cut_frame", {}, "hello", "broken", lambda t: t.rest.startswith(b"\0") and t.text == "You"),
    ("end_in_frame", {}, "hello", "eof", lambda t: t.rest),
    ("huge_length", {}, "hello", "eof", lambda t: t.rest == b"\x00\xff\xff\xff\xff"),
    ("huge_frame", {"size": 1 << 20}, "hello", "good", lambda t: len(t.text) > 1 << 20),
    ("gzip_bomb", {"size": 1 << 21}, "hello", "good", lambda t: 1 in t.flags),
    ("bad_gzip", {}, "hello", "good", lambda t: t.flags.count(1) == 1),
    ("bad_end", {}, "hello", "odd", lambda t: t.flags[-1] == 3),
    ("strange_flags", {}, "hello", "good", lambda t: 0x40 in t.flags),
    ("malformed", {}, "hello", "good", lambda t: t.text),
    ("malformed_inside", {}, "hello", "good", lambda t: any(99 in one for one in t.messages)),
    ("invalid_utf8", {}, "hello", "good", lambda t: "\ufffd" in t.text),
    ("garbage", {}, "hello", "eof", lambda t: b"<html>" in t.rest),
    (
        "huge_checkpoint",
        {"size": 4096},
        "hello",
        "good",
        lambda t: any(len(one.bytes(3)) > 4096 for one in t.messages),
    ),
    # members
    ("several_members", {}, "hello", "good", lambda t: [1, 14] in [list(one.fields) for one in t.updates]),
    ("several_members", {"which": "exec_heartbeat"}, "hello", "good", lambda t: [2, 1] in orders(t)),
    ("several_members", {"which": "text_exec"}, "hello", "good", lambda t: [1, 2] in orders(t)),
    ("several_members", {"which": "exec_text"}, "hello", "good", lambda t: [2, 1] in orders(t)),
    ("display_records", {}, "hello", "good", lambda t: {6, 2, 7, 15, 12, 3, 10, 9, 11, 18} <= {*t.kinds}),
    ("unknown_events", {}, "hello", "good", lambda t: 99 in t.kinds and any(99 in one for one in t.messages)),
    ("keepalives", {}, "hello", "good", lambda t: t.kinds.count(BEAT) >= t.kinds.count(1)),
    ("thoughts_between", {}, "hello", "good", lambda t: [n for n in t.kinds if n in (1, 4)][:3] == [1, 4, 1]),
    ("empty_deltas", {}, "hello", "good", lambda t: 4 in t.kinds and not t.thought),
    # endings
    ("cut_before_output", {}, "hello", "broken", lambda t: not t.text),
    ("cut_thinking", {}, "hello", "broken", lambda t: t.thought and not t.text),
    ("cut_text", {"reset": True}, "hello", "broken", lambda t: t.text == "You"),
    ("cut_after_terminal", {}, "hello", "broken", lambda t: t.ends == [b"{}"]),
    ("end_before_output", {}, "hello", "eof", lambda t: not t.text),
    ("end_without_terminal", {}, "hello", "eof", lambda t: t.text == "You"),
    ("silence_mid_text", {"seconds": 0.02}, "hello", "good", lambda t: t.text),
    ("no_turn_ended", {}, "hello", "good", lambda t: 14 not in t.kinds),
    ("no_end", {}, "hello", "eof", lambda t: t.kinds[-1] == 14),
    ("no_usage", {}, "hello", "good", lambda t: 8 in t.kinds and turn(t) == {}),
    ("no_usage", {"tokens": False}, "hello", "good", lambda t: 8 not in t.kinds and turn(t) == {}),
    ("turn_held_open", {"seconds": 0.02}, "hello", "good", lambda t: 14 in t.kinds),
    ("late_events", {}, "hello", "good", lambda t: t.text.endswith("too late")),
    ("late_events", {"error": True}, "hello", "good", lambda t: len(t.ends) == 2),
    ("text_after_turn", {}, "hello", "good", lambda t: t.text.endswith("too late")),
    ("empty", {}, "hello", "good", lambda t: not t.text and not t.thought),
    ("empty", {"thoughts": True}, "hello", "good", lambda t: not t.text and t.thought),
    ("parked", {}, "hello", "good", lambda t: not t.text and isinstance(parked(t)["content"], list)),
    ("parked", {"plain": True}, "hello", "good", lambda t: parked(t)["content"].startswith("You asked")),
    (
        "say",
        {"text": "<tool_use>", "size": 3},
        "hello",
        "good",
        lambda t: deltas(t) == ["<to", "ol_", "use", ">"],
    ),
    ("say", {"text": "First. ", "then": True}, "hello", "good", lambda t: t.text.startswith("First. You asked")),
    ("end_error", {}, "hello", "internal", lambda t: not t.text),
    ("end_error", {"code": None, "message": None}, "hello", "no code", lambda t: t.error == {}),
    ("end_error", {"after": "text", "gzip": True}, "hello", "internal", lambda t: t.flags[-1] == 3 and t.text),
    ("end_error", {"after": "nothing"}, "hello", "internal", lambda t: {*t.kinds} <= {BEAT}),
    (
        "end_error",
        {"code": "resource_exhausted", "error": "ERROR_RATE_LIMITED", "title": "T", "chat_message": "C"},
        "hello",
        "resource_exhausted",
        lambda t: detail(t) == {"title": "T", "isRetryable": False, "additionalInfo": {"chatMessage": "C"}},
    ),
    ("end_body", {}, "hello", "odd", lambda t: t.ends == [b""] and t.text),
    ("end_body", {"body": '{"metadata":{}}'}, "hello", "good", lambda t: 14 not in t.kinds),
    # questions
    ("exec", {}, "hello", "good", lambda t: t.text.startswith('grep failed: "no grep here"')),
    ("exec", {"kind": "fetch"}, "hello", "good", lambda t: t.text.startswith('fetch failed: "unsupported"')),
    ("exec", {"number": 45}, "hello", "good", lambda t: t.text.startswith('45 failed: "unsupported"')),
    ("exec", {"number": 0, "id": 8}, "hello", "good", lambda t: t.execs[0].number(1) == 8),
    ("exec", {"kind": "read", "id": 0, "repeat": 2}, "hello", "good", lambda t: len(t.execs) == 2),
    (
        "exec",
        {"kind": "read", "args": {"path": "/x", "offset": 3}},
        "hello",
        "good",
        lambda t: t.execs[0].number(7, 4) == 3,
    ),
    (
        "exec",
        {"kind": "grep", "args": GREP},
        "hello",
        "good",
        lambda t: args_of(t) == Message(write(GREP_FIELDS)).fields,
    ),
    ("exec", {"kind": "ls", "args": {"path": "/x", "ignore": ["a", "b"]}}, "hello", "good", lambda t: args_of(t)[2]),
    ("exec", {"kind": "delete", "args": {"path": "/x"}}, "hello", "good", lambda t: args_of(t)[1] == [b"/x"]),
    ("exec", {"kind": "diagnostics", "abort": 0.0}, "hello", "good", lambda t: aborted(t) == [1]),
    (
        "exec",
        {"kind": "redacted_read", "id": 5, "exec_id": "same", "repeat": 2},
        "hello",
        "good",
        lambda t: [(one.number(1), one.text(15)) for one in t.execs] == [(5, "same")] * 2,
    ),
    (
        "exec",
        {"kind": "background_shell", "args": {"enable_stdin": True, "description": "D"}},
        "hello",
        "good",
        lambda t: (args_of(t)[6], args_of(t)[7]) == ([1], [b"D"]),
    ),
    (
        "exec",
        {"kind": "shell", "args": {"simple_commands": ["a", "b"], "timeout_behavior": 2, "close_stdin": True}},
        "hello",
        "good",
        lambda t: [args_of(t)[place] for place in (5, 13, 17)] == [[b"a", b"b"], [2], [1]],
    ),
    ("query", {}, "hello", "good", lambda t: t.text.startswith("web_search was answered with approved")),
    ("query", {"kind": "ask_question"}, "hello", "good", lambda t: 'rejected: "no"' in t.text),
    ("query", {"kind": "switch_mode"}, "hello", "good", lambda t: 'rejected: "no"' in t.text),
    ("query", {"kind": "create_plan", "text": "P"}, "hello", "good", lambda t: "approved" in t.text),
    ("query", {"kind": "unknown"}, "hello", "good", lambda t: "nothing" in t.text),
    (
        "get_blob",
        {},
        "hello",
        "good",
        lambda t: "The blob has 0 bytes" not in t.text and "The blob has" in t.text,
    ),
    ("get_blob", {"known": False}, "hello", "good", lambda t: "The blob has 0 bytes" in t.text),
    ("get_blob", {"known": False, "blob_id": "0a026869"}, "hello", "good", lambda t: "has 4 bytes" in t.text),
    ("get_blob", {"known": False, "then_error": "internal"}, "hello", "internal", lambda t: not t.text),
    ("set_blobs", {"count": 5, "size": 8}, "hello", "good", lambda t: "5 blobs were kept, 0 refused" in t.text),
    ("execs_together", {}, "hello", "good", lambda t: "Exec 1 said" in t.text and "Exec 2 said" in t.text),
    (
        "execs_together",
        {"kinds": "grep ls read", "args": [{"pattern": "P"}, {"path": "/l"}], "abort": 0.0},
        "hello",
        "good",
        lambda t: (
            [(one.text(5, 1), one.text(8, 1), one.text(7, 1)) for one in t.execs]
            == [("P", "", ""), ("", "/l", ""), ("", "", "/sandbox/3")]
            and aborted(t) == [1]
        ),
    ),
    (
        "rewrite",
        {"path": "/w/a", "append": "!"},
        "hello",
        "good",
        lambda t: (
            [(one.text(7, 1), one.text(3, 1), one.text(3, 2)) for one in t.execs]
            == [("/w/a", "", ""), ("", "/w/a", "one\ntwo!")]
        ),
    ),
    ("context_again", {}, "hello", "good", lambda t: sum(one.has(2, 10) for one in t.messages) == 2),
    (
        "notes_session_id",
        {"notes_session_id": "Z"},
        "hello",
        "good",
        lambda t: t.messages[0].text(2, 10, 2) == "Z",
    ),
    ("no_prelude", {}, "hello", "good", lambda t: not any(2 in one or 4 in one for one in t.messages)),
    ("append_fails", {}, "hello", "good", lambda t: t.appended[0] == 502 and t.appended[1] == 200),
    ("append_fails", {"number": 2, "status": 401}, "hello", "good", lambda t: t.appended[2] == 401),
    ("append_waits", {"number": 1, "seconds": 0.02}, "hello", "good", lambda t: t.text),
    ("append_cut", {"number": 1}, "hello", "good", lambda t: t.appended[:2] == [200, 0]),
    # calls
    ("abort", {"seconds": 0.0}, "hello", "good", lambda t: any(one.has(5, 1) for one in t.messages)),
    ("busy_call", {}, LS, "good", lambda t: "0 " in t.text and "a.txt" in t.text and len(t.execs) == 2),
    ("turn_ends_in_call", {"seconds": 0.05}, "hello", "good", lambda t: t.execs and 14 in t.kinds),
    ("turn_ends_in_call", {}, LS, "good", lambda t: 14 in t.kinds and "returned" not in t.text),
    ("silence_mid_call", {"seconds": 0.02}, LS, "good", lambda t: "a.txt" in t.text),
    ("cut_call", {}, LS, "broken", lambda t: t.execs),
    ("end_call", {}, "hello", "eof", lambda t: t.execs),
    ("error_call", {"code": "unavailable"}, LS, "unavailable", lambda t: t.execs),
]


def orders(talk: Talk) -> list[list[int]]:
    """The members of each payload."""
    return [[number for number, _ in message.numbers] for message in talk.messages]


def turn(talk: Talk) -> dict[int, Any]:
    """The counters at the end."""
    return next(one.all(14)[0].fields for one in talk.updates if 14 in one)


def deltas(talk: Talk) -> list[str]:
    return [one.text(1, 1) for one in talk.updates if 1 in one]


def parked(talk: Talk) -> dict[str, Any]:
    """The last blob."""
    given = [json.loads(message.bytes(4, 3, 2)) for message in talk.messages if message.has(4, 3)]
    found: dict[str, Any] = given[-1]
    return found


def detail(talk: Talk) -> Any:
    return talk.error["details"][0]["debug"]["details"]


#: Fault, its parameters, the prompt -> what is so after a while of a stream that stays open.
HELD: list[tuple[str, dict[str, Any], str, Check]] = [
    ("silence_after_created", {"seconds": None}, "hello", lambda t: 16 in t.kinds and BEAT not in t.kinds),
    ("silence_mid_text", {"seconds": None}, "hello", lambda t: t.text and BEAT not in t.kinds),
    ("silence_mid_call", {"seconds": None}, LS, lambda t: t.execs and BEAT not in t.kinds),
    ("heartbeat_only", {}, "hello", lambda t: t.kinds.count(BEAT) > 2 and not t.text),
    ("heartbeat_only", {"after": "text"}, "hello", lambda t: t.kinds.count(BEAT) > 2 and t.text == "You"),
    ("held_open", {}, "hello", lambda t: t.ends == [b"{}"]),
    ("turn_held_open", {}, "hello", lambda t: t.kinds[-3:] == [14, BEAT, BEAT]),
    ("stalled_resume", {}, LS, lambda t: t.kinds.count(BEAT) > 2 and t.execs and "returned" not in t.text),
]


@rows("fault, params, prompt, holds", HELD)
async def test_faults_that_end_when_the_client_leaves(
    cursor: P5Client, fault: str, params: dict[str, Any], prompt: str, holds: Check
) -> None:
    cursor.p5.options.heartbeat_s = 10.0 if "silence" in fault else 0.005
    cursor.p5.script.replace([{"fault": fault, **params}])
    async with cursor.held(lambda: holds(cursor.last), prompt):
        assert cursor.p5.active == 1 and cursor.p5.script.left == 0
    await cursor.p5.idle()
    assert cursor.p5.violations == []


@rows("fault, params, prompt, ends, holds", PLAYED)
async def test_faults_of_a_run(
    cursor: P5Client, fault: str, params: dict[str, Any], prompt: str, ends: str, holds: Check
) -> None:
    talk = await played(cursor, fault, prompt, **params)
    assert ending(talk) == ends
    assert holds(talk)
    await cursor.p5.idle()
    assert cursor.p5.violations == []


#: Fault -> status, and what the body says.
STATUSES: dict[str, tuple[int, str]] = {
    "unauthorized": (401, "unauthenticated"),
    "forbidden": (403, "permission_denied"),
    "unsupported_region": (403, "not yet available"),
    "rate_limit": (429, "ERROR_RATE_LIMITED"),
    "usage_limit": (429, "ERROR_PRO_USER_USAGE_LIMIT"),
    "outdated": (429, "Update Required"),
    "server_error": (500, "internal"),
    "overloaded": (503, "unavailable"),
    "http2_only": (464, ""),
    "misdirected": (421, "Misdirected"),
    "wrong_media_type": (415, ""),
    "empty_body": (200, ""),
    "json_document": (200, "internal"),
    "json_error": (200, "boom"),
    "html_error": (502, "<h1>"),
    "redirect": (302, ""),
}


@rows("fault", STATUSES)
async def test_answers_instead_of_a_stream(cursor: P5Client, fault: str) -> None:
    status, words = STATUSES[fault]
    async with cursor.open(str(uuid.uuid4())):
        pass  # a run that never says what it wants uses no step of the script
    cursor.p5.script.replace([{"fault": fault}])
    talk = await cursor.run("hello")
    assert talk.status == status and words in talk.body.decode()
    assert fault == "empty_body" or not talk.appended
    assert cursor.p5.requests[-1].status == status
    assert (await cursor.run("hello")).end == {}


async def test_a_status_that_looks_at_the_request_is_that_of_the_append(cursor: P5Client) -> None:
    cursor.p5.script.replace([{"fault": "rate_limit", "match": {"prompt": "second"}}, {"status": 418, "times": 1}])
    async with cursor.held(lambda: cursor.last.appended, "first") as talk:
        assert (talk.status, talk.appended[0]) == (200, 418), "the first step might have been for it"
    async with cursor.held(lambda: cursor.last.appended, "second") as talk:
        assert talk.appended[0] == 429 and cursor.p5.script.left == 0
    assert (await cursor.run("second")).end == {}


async def test_an_early_status_waits_for_its_turn(cursor: P5Client) -> None:
    cursor.p5.script.replace([{"fault": "cut_text"}, {"status": 503, "match": {"wire": "agent"}}])
    assert (await cursor.run("hello")).broken
    assert (await cursor.run("hello")).status == 503


def test_every_fault_is_tried() -> None:
    tried = {fault for fault, *_ in (*PLAYED, *HELD)} | set(STATUSES)
    assert tried == set(FAULTS[AGENT])


def test_every_fault_is_documented() -> None:
    manual = (Path(__file__).parents[3] / "docs" / "sandbox.md").read_text()
    assert [fault for fault in FAULTS[AGENT] if f"`{fault}`" not in manual] == []


async def test_scripted_events(cursor: P5Client) -> None:
    events = [
        {"type": "text_delta", "text": "Hi"},
        {"type": "payload", "hex": "0a0622040a02686d"},
        {"type": "exec", "kind": "read", "id": 1, "exec_id": "e1", "path": "/w/a.txt", "call_id": "t1"},
        {"type": "wait", "for": "exec", "id": 1},
        {"raw_base64": "AAAAAAQKAmoA"},
        {"type": "end"},
    ]
    cursor.p5.script.replace([{"events": events, "provider": "p5"}])
    talk = await cursor.run("hello")
    assert (talk.text, talk.thought, talk.end) == ("Hi", "hm", {})
    assert talk.messages[2].data.hex() == "121608013a0e0a082f772f612e747874120274317a026531"
    assert talk.kinds == [1, 4, 13] and cursor.p5.violations == []
    assert "exec_client_message" in cursor.p5.runs[-1].received, "the end waited"


@pytest.mark.parametrize(
    "step",
    [
        {"fault": "exec", "kind": "grep", "path": "/x"},
        {"fault": "tool_calls", "provider": "p5"},
        {"events": [{"type": "exec"}], "provider": "p5", "then": "later"},
    ],
)
def test_steps_that_cannot_be_played(cursor: P5Client, step: dict[str, Any]) -> None:
    with pytest.raises(ScriptError):
        cursor.p5.script.replace([step])


X = {"type": "text_delta", "text": "X"}
WRITE = {"path": "/w/b.txt", "text": "x\ny", "call_id": "t2", "return_content": True}
SHELL = {"command": "ls", "working_directory": "/w", "timeout": 30000, "call_id": "t3"}


@rows(
    "event, data",
    [
        ({"type": "thinking_delta", "text": "hm"}, "0a0622040a02686d"),
        ({"type": "heartbeat"}, "0a026a00"),
        ({"type": "token_delta", "tokens": 3}, "0a0442020803"),
        ({"type": "turn_ended"}, "0a027200"),
        (
            {"type": "exec", "kind": "context", "exec_id": "e0", "notes_session_id": "c1"},
            "120a5204120263317a026530",
        ),
        (
            {
                "type": "exec",
                "kind": "write",
                "id": 2,
                "exec_id": "e2",
                "path": "/w/b.txt",
                "text": "x\ny",
                "call_id": "t2",
                "return_content": True,
            },
            "121d08021a150a082f772f622e7478741203780a791a02743220017a026532",
        ),
        (
            {
                "type": "exec",
                "kind": "shell_stream",
                "id": 3,
                "exec_id": "e3",
                "command": "ls",
                "working_directory": "/w",
                "timeout": 30000,
                "call_id": "t3",
            },
            "1218080372100a026c7312022f7718b0ea01220274337a026533",
        ),
        (
            {"type": "exec", "kind": "shell", "id": 4, "exec_id": "e4", "command": "ls", "working_directory": "/w"},
            "1210080412080a026c7312022f777a026534",
        ),
        ({"type": "exec", "number": None, "id": 8, "exec_id": "e8"}, "120608087a026538"),
        ({"type": "exec", "kind": "write", "id": 2, "path": "/b", "file_hex": "ff00"}, "120c08021a080a022f622a02ff00"),
        ({"type": "abort", "id": 3}, "2a040a020803"),
        ({"type": "set_blob", "id": 0, "blob_id": "0102", "data": "7b7d"}, "220a1a080a02010212027b7d"),
        ({"type": "get_blob", "id": 4, "blob_id": "0102"}, "2208080412040a020102"),
        ({"type": "checkpoint", "used_tokens": 120, "max_tokens": 200000}, "1a082a06087810c09a0c"),
        (
            {
                "type": "updates",
                "events": [{"type": "text_delta", "text": "X"}, {"type": "turn_ended", "output_tokens": 4}],
            },
            "0a090a030a015872021004",
        ),
        (
            {
                "type": "several",
                "events": [{"type": "text_delta", "text": "X"}, {"type": "exec", "kind": "context", "exec_id": "e0"}],
            },
            "0a050a030a0158120652007a026530",
        ),
    ],
)
async def test_events_are_written_as_the_vectors_say(cursor: P5Client, event: dict[str, Any], data: str) -> None:
    cursor.p5.script.replace([{"events": [event, {"type": "end"}], "provider": "p5"}])
    talk = await cursor.run(run_request(rendered("hello")))
    assert talk.messages[0].data.hex() == data


async def test_a_blob_too_large_may_be_refused(cursor: P5Client) -> None:
    cursor.kv_answer = lambda asked: {3: {1: asked.number(1) or None, 3: {1: {1: "too large"}}}}  # type: ignore[method-assign]
    talk = await played(cursor, "set_blobs", count=2)
    assert "0 blobs were kept, 2 refused" in talk.text
