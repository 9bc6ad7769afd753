"""Every fault of an answer on a socket of the simulated P1, seen by a raw client."""

import asyncio
import itertools
import json
import time
from typing import Any

import aiohttp
import pytest
from p1_sandbox_client import BASH, READ, THINKING, Line, SocketClient, frame_of, full, user
from raw_client import Reply
from samples import rows

from proxy.sandbox import FAULTS, Place

NEWS = ["codex.rate_limits", "codex.response.metadata"]
CREATED = [*NEWS, "response.created", "response.in_progress"]
ADDED, DONE = "response.output_item.added", "response.output_item.done"
TEXT = "response.output_text.delta"
THOUGHT = "response.reasoning_summary_text.delta"
ARGUMENTS = "response.function_call_arguments.delta"
BODY = full(**THINKING)


async def play(sockets: SocketClient, line: Line, fault: str, body: dict[str, Any] = BODY, **params: Any) -> Reply:
    sockets.sandbox.p1.script.replace([{"fault": fault, **params}])
    return await line.ask(body)


#: Where a socket may end -> the last event, and what does not come any more.
POINTS: dict[str, tuple[str | None, tuple[str, ...]]] = {
    "at_once": (None, ()),
    "after_control": ("codex.response.metadata", ("response.created",)),
    "before_output": ("response.in_progress", (ADDED,)),
    "thinking": (THOUGHT, (TEXT, DONE)),
    "text": (TEXT, ("response.output_text.done",)),
    "arguments": (ARGUMENTS, ("response.function_call_arguments.done",)),
    "after_call": (DONE, ("response.completed",)),
    "after_limit": ("codex.rate_limits", ("response.created",)),
    "after_terminal": ("response.completed", ()),
}


def check_point(point: str, reply: Reply) -> None:
    last, missing = POINTS[point]
    assert (reply.types[-1] if reply.types else None) == last
    assert not set(missing) & set(reply.types)
    if point == "after_call":
        assert json.loads(reply.items[-1]["arguments"]) == {"command": "echo 0"}
    if point == "after_limit":
        assert reply.events[0]["rate_limits"]["limit_reached"]


@rows("point, reset", itertools.product(POINTS, [False, True]))
async def test_cuts(sockets: SocketClient, point: str, reset: bool) -> None:
    async with sockets.open() as line:
        reply = await play(sockets, line, f"cut_{point}", reset=reset)
        if point == "after_terminal":
            assert reply.broken is None
            reply.broken = (await line.listen()).broken
        check_point(point, reply)
        assert reply.broken is not None
        assert line.socket.close_code == aiohttp.WSCloseCode.ABNORMAL_CLOSURE
    await sockets.sandbox.p1.idle()
    assert sockets.sandbox.p1.sockets.seen[-1].close_code == 1006


@rows("point", POINTS)
async def test_closes(sockets: SocketClient, point: str) -> None:
    async with sockets.open() as line:
        reply = await play(sockets, line, f"close_{point}", code=1012, reason="restart")
        if point == "after_terminal":
            assert reply.broken is None
            reply.status = (await line.listen()).status
        check_point(point, reply)
        assert reply.status == 1012
    await sockets.sandbox.p1.idle()
    assert sockets.sandbox.p1.sockets.seen[-1].close_code == 1012


#: Told in one event: fault, parameters -> status, words of the error.
ERRORS: list[tuple[str, dict[str, Any], int, str]] = [
    ("rate_limit", {"seconds": 2}, 429, "rate_limit_exceeded"),
    ("huge_retry_after", {}, 429, "rate_limit_exceeded"),
    ("usage_limit", {"seconds": 60}, 429, '"resets_in_seconds": 60'),
    ("overloaded", {"status": 529, "retry_after": 1}, 529, "server_is_overloaded"),
    ("server_error", {}, 500, "server_error"),
    ("unauthorized", {}, 401, "token_expired"),
    ("forbidden", {}, 403, "Access denied"),
    ("context_http", {}, 400, "context_length_exceeded"),
    ("unsealable", {}, 400, "could not be verified"),
    ("error_event", {"code": "slow_down", "status": 503}, 503, "slow_down"),
]


@rows("fault, params, status, words", ERRORS)
async def test_errors(sockets: SocketClient, fault: str, params: dict[str, Any], status: int, words: str) -> None:
    async with sockets.open() as line:
        (event,) = (await play(sockets, line, fault, **params)).events
        assert (event["type"], event["status"], words in json.dumps(event["error"])) == ("error", status, True)
        if status != 503 and (fault.endswith("limit") or "retry_after" in params):
            assert event["headers"]
        assert (await line.ask()).types[-1] == "response.completed", "the socket lives on"


async def test_errors_of_sockets(sockets: SocketClient) -> None:
    async with sockets.open() as line:
        (event,) = (await play(sockets, line, "previous_response_not_found")).events
        assert (event["status_code"], event["error"]["code"]) == (400, "previous_response_not_found")
        late = await play(sockets, line, "previous_response_not_found", after="text")
        assert late.types[-2:] == [TEXT, "error"]
        (event,) = (await play(sockets, line, "connection_limit")).events
        assert (event["status"], event["error"]["code"]) == (400, "websocket_connection_limit_reached")
        assert (await line.listen()).status == 1000


#: Fault -> the last event of an answer that ends somehow; without a terminal event the socket is closed.
ENDINGS: list[tuple[str, dict[str, Any], str, bool]] = [
    ("end_without_terminal", {}, DONE, True),
    ("end_before_output", {}, "response.in_progress", True),
    ("rate_limits", {"then_end": True}, "codex.rate_limits", True),
    ("completed_with_error", {}, "response.completed", False),
    ("failed", {"code": "server_error"}, "response.failed", False),
    ("incomplete", {}, "response.incomplete", False),
    ("incomplete", {"event": "response.completed", "reason": "content_filter"}, "response.completed", False),
]


@rows("fault, params, last, closed", ENDINGS)
async def test_endings(sockets: SocketClient, fault: str, params: dict[str, Any], last: str, closed: bool) -> None:
    async with sockets.open() as line:
        reply = await play(sockets, line, fault, **params)
        assert (reply.types[-1], reply.status) == (last, 1000 if closed else 0)
        if not closed:
            assert (await line.ask()).types[-1] == "response.completed"


#: Faults whose answer is still a whole, good one for a patient reader.
HARMLESS = [
    "keepalives", "unknown_events", "rate_limits", "tiny_writes", "fragments", "pings", "bare_terminal", "no_deltas",
    "arguments_in_done", "arguments_in_item", "no_arguments", "interleaved", "sealed_only_added", "sealed_only_done",
    "sealed_differs", "fixed_call_ids", "read_pages_empty", "read_huge_offset", "read_spaces", "empty", "refusal",
]  # fmt: skip


@rows("fault", HARMLESS)
async def test_whole_answers(sockets: SocketClient, fault: str) -> None:
    body = full(user("use Bash: ls"), tools=[BASH, READ], **THINKING)
    async with sockets.open() as line:
        reply = await play(sockets, line, fault, body)
        assert (reply.broken, reply.data, reply.types[-1]) == (None, b"", "response.completed")
        numbers = [event["sequence_number"] for event in reply.events if "sequence_number" in event]
        assert numbers == list(range(len(numbers))) and len(numbers) >= 3
        assert bool(line.pings) is (fault in ("pings", "fragments"))
        assert (await line.ask()).types[-1] == "response.completed"


async def test_frames_that_no_reader_likes(sockets: SocketClient) -> None:
    async with sockets.open() as line:
        reply = await play(sockets, line, "malformed_json", count=3)
        assert (reply.data, reply.types[-1]) == (b'{"type":"resp' * 3, "response.completed")
        reply = await play(sockets, line, "binary_frame")
        assert json.loads(reply.data)["type"] == TEXT
    async with sockets.open() as line:
        assert isinstance((await play(sockets, line, "invalid_utf8")).broken, aiohttp.WebSocketError)
    async with sockets.open() as line:
        reply = await play(sockets, line, "cut_frame")
        assert (reply.types[-1], reply.broken is not None) == (TEXT, True)


@rows("fault, size, most", [("huge_frame", 9, 10), ("oversized_frame", 65, 66)])
async def test_large_frames(sockets: SocketClient, fault: str, size: int, most: int) -> None:
    async with sockets.open() as line:
        reply = await play(sockets, line, fault)
        deltas = [len(event["delta"]) >> 20 for event in reply.of(TEXT)]
        assert max(deltas) == size < most
        assert reply.types[-1] == "response.completed"
        assert max(map(len, (event["delta"] for event in (await play(sockets, line, fault, size=70)).of(TEXT)))) == 70


SILENCES = {
    "silence_before_head": [],
    "silence_after_created": CREATED,
    "silence_mid_text": [TEXT],
    "silence_mid_arguments": [ARGUMENTS],
}


@rows("fault", SILENCES)
async def test_silence(sockets: SocketClient, fault: str) -> None:
    async with sockets.open() as line:
        start = time.monotonic()
        assert (await play(sockets, line, fault, seconds=0.02)).types[-1] == "response.completed"
        assert time.monotonic() - start >= 0.02
        sockets.sandbox.p1.script.replace([{"fault": fault, "seconds": None}])
        await line.send(frame_of(full()))
        if SILENCES[fault]:
            await line.listen((SILENCES[fault][-1],))
        await nothing_more(line)
        await line.socket.ping(b"?")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(line.listen(), 0.02)
        assert line.pongs == [b"?"], "silent, but not dead"
        assert sockets.sandbox.p1.active == 1
    await sockets.sandbox.p1.idle()


async def nothing_more(line: Line) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(line.socket.receive(), 0.02)


async def test_pings_and_nothing_else(sockets: SocketClient) -> None:
    async with sockets.open() as line:
        reply = await play(sockets, line, "pings_only", count=3, every_s=0.001)
        assert (line.pings, reply.types[-1]) == (3, "response.completed")
        sockets.sandbox.p1.script.replace([{"fault": "pings_only", "after": "nothing", "every_s": 0.005}])
        await line.send(frame_of(full()))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(line.listen(), 0.03)
    (seen,) = sockets.sandbox.p1.sockets.seen
    assert line.pings > 3 and seen.pongs >= 3


async def test_control_frames_and_nothing_else(sockets: SocketClient) -> None:
    async with sockets.open() as line:
        reply = await play(sockets, line, "control_only", count=3, every_s=0.001)
        assert reply.types[:7] == [*NEWS * 3, "response.created"]


async def test_pongs_withheld(sockets: SocketClient) -> None:
    async with sockets.open() as line:
        sockets.sandbox.p1.script.replace([{"fault": "pongs_withheld", "after": "text"}])
        await line.send(frame_of(full()))
        await line.listen((TEXT,))
        await line.socket.ping(b"?")
        await nothing_more(line)
    assert sockets.sandbox.p1.sockets.seen[-1].pings == 1
    await sockets.sandbox.p1.idle()


async def test_late_events(sockets: SocketClient) -> None:
    async with sockets.open() as line:
        await play(sockets, line, "late_events")
        assert (await line.listen()).types == [TEXT, "response.failed"]


async def test_events_of_a_script(sockets: SocketClient) -> None:
    events = [
        {"type": "response.created", "response": {"id": "r"}},
        {"raw_base64": "iQA="},
        {"pause_s": 0.001},
        {
            "type": "response.completed",
            "response": {"id": "r", "status": "completed", "output": [user("stream 2 words")]},
        },
    ]
    script = sockets.sandbox.p1.script
    async with sockets.open() as line:
        script.extend([{"match": {"wire": "websocket"}, "events": events}])
        assert (await line.ask()).events == [events[0], events[3]]
        assert line.pings == 1
        assert (await line.ask({**full(), "input": []}, previous_response_id="r")).text == "word1 word2"
        script.extend([{"events": events[:1], "then": "end"}])
        assert (await line.ask()).status == 1000
    for end in ("cut", "reset"):
        async with sockets.open() as line:
            script.extend([{"events": events[:1], "then": end}])
            assert (await line.ask()).broken is not None


async def test_pace(sockets: SocketClient) -> None:
    async with sockets.open() as line:
        sockets.sandbox.p1.script.extend([{"word_delay_s": 0.002}])
        start = time.monotonic()
        await line.ask(full(user("stream 10 words")))
        assert time.monotonic() - start >= 0.02


def test_every_fault_has_a_test() -> None:
    seen = {f"{kind}_{point}" for kind in ("cut", "close") for point in POINTS}
    seen |= {row[0] for row in ERRORS} | {row[0] for row in ENDINGS} | set(HARMLESS) | set(SILENCES)
    others = {
        "previous_response_not_found", "connection_limit", "malformed_json", "binary_frame", "invalid_utf8",
        "cut_frame", "huge_frame", "oversized_frame", "pings_only", "control_only", "pongs_withheld", "late_events",
    }  # fmt: skip
    assert set(FAULTS[Place("p1", "websocket")]) == seen | others
