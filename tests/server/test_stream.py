"""The writer of event streams: what is held back, what fills a silence, and how a stream may end."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from checks import check_message_stream
from events import closed, delta, opened
from harness import (
    Fake,
    Live,
    ask,
    configured,
    kinds,
    parse_events,
    played,
    raw_request,
    texts,
    until,
    use,
    watch_often,
    whole_message,
    with_live,
)
from samples import each

from proxy.errors import UpstreamError
from proxy.observe.lifecycle import Abandoned, CacheChecked, Completed, Failed, InputEstimated, Progress, Timed
from proxy.providers.upstream.event_reader import Batches
from proxy.sandbox import Sandbox
from proxy.server.request.renderers import MessagesRenderer
from proxy.server.serving.stream import EventWriter

Batch = list[dict[str, Any]]


START, *_, REASON, STOP = whole_message("gpt-5.5", "fine")
END: Batch = [REASON, STOP]
PART: Batch = [START, opened(), delta("partial")]
BLOCK: Batch = [*PART, closed()]


@pytest.fixture
def live_options() -> dict[str, Any]:
    return {"tuning": (watch_often(),)}


def serve(live: Live, *steps: Any) -> Fake:
    """A provider's answer, batch by batch; an exception among the steps is raised, a number is slept, an event waited
    for."""
    return use(live, Fake("p1", played(*steps)))


async def events_of(response: Any) -> AsyncIterator[dict[str, Any]]:
    """Events as they arrive."""
    buffer = b""
    async for chunk in response.content.iter_any():
        buffer += chunk
        *frames, buffer = buffer.split(b"\n\n")
        for event in parse_events(b"".join(frame + b"\n\n" for frame in frames)):
            yield event


BROKEN = UpstreamError("it broke", kind="transient", retry_after=2)


# -- before the first content


@pytest.mark.parametrize(("grace_ms", "steps"), [(4000, ([START], [{"type": "ping"}], 0.02)), (0, (0.1,))])
async def test_framing_waits_for_content_so_that_a_failure_keeps_its_status(
    live: Live, grace_ms: int, steps: tuple[Any, ...]
) -> None:
    """After the grace it waits for the provider to begin."""
    live.config = configured(live.config, stream_grace_ms=grace_ms)
    serve(live, *steps, BROKEN)
    answer = await live.stream(ask())
    assert answer.status == 503 and answer.error == {"type": "api_error", "message": "it broke"}
    assert answer.headers["Retry-After"] == "2"


@with_live(stream_grace_ms=30, tuning=(watch_often(),))
async def test_after_the_grace_the_stream_begins_with_a_ping(live: Live) -> None:
    more = asyncio.Event()
    serve(live, [START], more, [opened()], [delta("fine"), closed(), *END])
    async with live.open(ask(stream=True)) as response:
        stream = events_of(response)
        assert kinds([await anext(stream), await anext(stream)]) == ["message_start", "ping"]
        more.set()
        rest = [event async for event in stream]
    check_message_stream([START, *rest])
    assert texts(rest) == "fine"
    assert [event for event in live.watcher.last if isinstance(event, InputEstimated)] == [InputEstimated(3)]


@with_live(stream_grace_ms=10, tuning=(watch_often(),))
async def test_after_the_grace_a_failure_is_an_event(live: Live) -> None:
    serve(live, [START], 0.1, BROKEN)
    answer = await live.stream(ask())
    assert answer.status == 200
    assert kinds(answer.events) == ["message_start", "ping", "error"]
    check_message_stream(answer.events)
    assert isinstance(live.watcher.last[-1], Failed) and live.watcher.last[-1].status == 200


async def test_a_call_that_the_token_limit_cut_is_stopped_or_left_out(live: Live) -> None:
    """What a client runs is a call that is whole; told that one is not, its model tries again."""
    call = [opened("tool_use", 1), delta('{"command":"l', "input_json_delta", 1)]
    begun = [START, opened(), delta("so"), closed(), *call]
    last = [{**REASON, "delta": {"stop_reason": "max_tokens", "stop_sequence": None}}, STOP]
    serve(live, begun, last)
    events = (await live.stream(ask())).events
    check_message_stream(events)
    assert events[-2:] == last and events[-3] == closed(1)
    whole = (await live.post(ask())).json
    assert (whole["stop_reason"], [block["type"] for block in whole["content"]]) == ("max_tokens", ["text"])


# -- what is written at a time


async def test_head_and_first_data_go_out_in_one_write_and_so_do_last_data_and_end(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each write wakes the client."""
    written: list[bytes] = []
    write = asyncio.selector_events._SelectorSocketTransport.write  # type: ignore[attr-defined]

    def noted(transport: Any, data: bytes) -> None:
        if transport.get_extra_info("sockname")[1] == live.port:
            written.append(bytes(data))
        write(transport, data)

    monkeypatch.setattr(asyncio.selector_events._SelectorSocketTransport, "write", noted)  # type: ignore[attr-defined]
    serve(live, PART, [closed(), *END])
    assert (await live.stream(ask())).status == 200
    first, last = written
    assert first.startswith(b"HTTP/1.1 200 OK\r\n") and b"partial" in first
    assert b"message_stop" in last and last.endswith(b"\r\n0\r\n\r\n")


# -- silence


@with_live(tuning=(watch_often(keepalive=0.03),))
@pytest.mark.parametrize(
    ("kind", "filler"),
    [("text", "text_delta"), ("thinking", "thinking_delta"), ("tool_use", "input_json_delta")],
)
async def test_a_silence_inside_a_block_is_filled_with_empty_deltas(live: Live, kind: str, filler: str) -> None:
    serve(live, [START, opened(kind)], 0.2, [closed(), *END])
    events = (await live.stream(ask())).events
    check_message_stream(events)
    assert events[2:-3] == [delta("", filler)] * (len(events) - 5) and len(events) >= 7


@with_live(tuning=(watch_often(keepalive=0.03, no_pings=0.12),))
async def test_a_silence_between_blocks_is_filled_with_pings_and_later_with_what_old_clients_count(live: Live) -> None:
    serve(live, BLOCK, 0.4, [*END])
    events = (await live.stream(ask())).events
    check_message_stream(events)
    quiet = events[4:-2]
    assert quiet[0] == {"type": "ping"}
    alive = [event for event in quiet if event["type"] == "message_delta"]
    assert alive and all(event["delta"] == {"stop_reason": None, "stop_sequence": None} for event in alive)
    assert all(event["usage"] == {"output_tokens": 0} for event in alive)


@with_live(tuning=(watch_often(keepalive=0.1),))
async def test_words_that_come_fast_need_no_pings(live: Live) -> None:
    serve(live, [START, opened()], *[[delta("a")], 0.02] * 10, [closed(), *END])
    assert "ping" not in kinds((await live.stream(ask())).events)


async def test_nothing_is_written_behind_the_end_while_a_slow_reader_takes_it(sandbox: Sandbox, tmp_path: Path) -> None:
    """The end of the body waits for a reader too; a sign of life would then stand behind the last chunk."""
    moved = asyncio.Event()

    async def answer(call: Any) -> Batches:
        yield [START, opened(), delta("x" * 100_000)]  # waits until most of it is taken
        moved.set()
        yield [delta("y" * 60_000), closed(), *END]  # does not wait, but fills the buffer

    async def little_room(request: web.Request, response: web.StreamResponse) -> None:
        transport = request.transport
        assert transport is not None
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2048)

    live = Live(sandbox, tmp_path, tuning=(watch_often(keepalive=0.02),))
    live.app.on_response_prepare.append(little_room)
    async with live:
        use(live, Fake("p1", answer))
        reader, writer = await slow_client(live)
        received = b""
        async with asyncio.timeout(5):
            while not moved.is_set():
                received += await reader.read(1024)
            await asyncio.sleep(0.3)
            while not received.endswith(b"0\r\n\r\n"):
                received += await reader.read(65536)
        assert b'"type":"ping"' not in received
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        async with asyncio.timeout(5):
            assert (await reader.read()).startswith(b"HTTP/1.1 200 OK\r\n")
        writer.close()
        assert isinstance(live.watcher.last[-1], Completed)


@with_live(tuning=(watch_often(keepalive=0.02),))
async def test_a_sign_of_life_that_the_end_overtakes_is_left_out(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is written by a task of its own, which begins when the loop gets to it."""
    asked, ended, filled = asyncio.Event(), asyncio.Event(), asyncio.Event()
    fill = EventWriter.fill

    async def late(writer: EventWriter) -> None:
        asked.set()
        await ended.wait()
        try:
            await fill(writer)
        finally:
            filled.set()

    async def answer(call: Any) -> Batches:
        yield BLOCK
        await asked.wait()
        yield END
        ended.set()
        await filled.wait()

    monkeypatch.setattr(EventWriter, "fill", late)
    use(live, Fake("p1", answer))
    answered = await live.stream(ask())
    assert answered.events == [*BLOCK, *END]
    await until(lambda: filled.is_set())
    assert (await live.get("/healthz")).status == 200
    assert not live.notes.all("internal_error")


async def slow_client(live: Live) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A streamed request of which nothing is read that is not asked for."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", live.port))
    reader, writer = await asyncio.open_connection(sock=sock, limit=1024)
    writer.write(raw_request("POST /v1/messages", body=json.dumps(ask(stream=True)).encode()))
    return reader, writer


@with_live(tuning=(watch_often(stall=0.1),))
async def test_a_reader_that_takes_nothing_for_long_is_gone(live: Live) -> None:
    provider = serve(live, [START, opened()], *[[delta("x" * 100_000)]] * 200, [closed(), *END])
    _, writer = await slow_client(live)
    await until(lambda: provider.closed, 3)
    await until(lambda: isinstance(live.watcher.last[-1], Abandoned))
    writer.close()


def breaks(error: Exception) -> Callable[..., bytes]:
    def method(*_: Any) -> bytes:
        raise error

    return method


@with_live(stream_grace_ms=10, tuning=(watch_often(keepalive=0.03),))
@pytest.mark.parametrize("kind", [RuntimeError, FileNotFoundError, ConnectionResetError, TimeoutError, KeyError])
@pytest.mark.parametrize("begun", [True, False])
async def test_a_bug_while_a_silence_is_filled_is_an_error_and_no_client_that_left(
    live: Live, monkeypatch: pytest.MonkeyPatch, kind: type[Exception], begun: bool
) -> None:
    monkeypatch.setattr(MessagesRenderer, "keepalive" if begun else "encode", breaks(kind("the secret prompt")))
    provider = serve(live, PART if begun else [START], asyncio.Event())
    answer = await live.stream(ask())
    error = answer.events[-1]["error"] if begun else answer.error
    assert answer.status == (200 if begun else 500) and error["type"] == "api_error"
    assert kind.__name__ in error["message"] and b"secret" not in answer.raw
    (note,) = live.notes.all("internal_error")
    assert note["error"] == kind.__name__ and any("server/serving/stream.py" in place for place in note["places"])
    assert provider.closed == 1
    assert isinstance(live.watcher.last[-1], Failed) and "Abandoned" not in live.watcher.names


@with_live(tuning=(watch_often(keepalive=0.03),))
async def test_a_bug_in_the_error_event_too_breaks_the_stream_off(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MessagesRenderer, "keepalive", breaks(KeyError("keepalive")))
    monkeypatch.setattr(MessagesRenderer, "failure", breaks(ValueError("failure")))
    serve(live, PART, asyncio.Event())
    with pytest.raises(aiohttp.ClientPayloadError):
        await live.stream(ask())
    assert [note["error"] for note in live.notes.all("internal_error")] == ["KeyError", "ValueError"]
    assert isinstance(live.watcher.last[-1], Failed)


# -- ends


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (BROKEN, ("api_error", "it broke")),
        (UpstreamError("too much", kind="context"), ("invalid_request_error", "prompt is too long: too much")),
    ],
    ids=["broken", "context"],
)
async def test_a_failure_after_content_is_the_last_event(live: Live, error: Exception, told: tuple[str, str]) -> None:
    serve(live, PART, [closed()], error)
    answer = await live.stream(ask())
    assert answer.status == 200
    check_message_stream(answer.events)
    assert answer.events[-1] == {"type": "error", "error": dict(zip(("type", "message"), told, strict=True))}
    assert kinds(answer.events).count("message_stop") == 0
    fields = live.notes.all("request_failed")[0]
    assert (fields["status"], fields["phase"], fields["inBandSse"]) == (200, "response_body", True)
    assert "errorFile" not in fields


@each(2)
@pytest.mark.parametrize("kind", [KeyError, ConnectionResetError, TimeoutError, FileNotFoundError])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("batches", [[], [BLOCK]], ids=["at once", "after content"])
async def test_a_bug_is_told_without_its_text_and_is_no_client_that_left(
    live: Live, kind: type[Exception], stream: bool, batches: list[Batch]
) -> None:
    serve(live, *batches, kind("the secret prompt"))
    answer = await live.post(ask(stream=stream))
    in_band = stream and bool(batches)
    error = answer.events[-1]["error"] if in_band else answer.error
    assert answer.status == (200 if in_band else 500) and error["type"] == "api_error"
    assert b"secret" not in answer.raw and kind.__name__ in error["message"]
    assert "secret" not in str(live.notes.records) and live.notes.all("internal_error")[0]["error"] == kind.__name__
    assert isinstance(live.watcher.last[-1], Failed)


@pytest.mark.parametrize("steps", [(), ([],), ([START],), (BLOCK,)])
async def test_an_answer_without_an_end_is_never_passed_on_as_whole(live: Live, steps: Any) -> None:
    serve(live, *steps)
    answer = await live.stream(ask())
    if steps == (BLOCK,):
        assert answer.events[-1]["type"] == "error" and "message_stop" not in kinds(answer.events)
    else:
        assert answer.status == 502 and answer.error["type"] == "api_error"
    assert (await live.post(ask())).status == 502


async def test_an_error_behind_the_end_changes_nothing(live: Live) -> None:
    serve(live, [*BLOCK, *END], BROKEN)
    answer = await live.stream(ask())
    check_message_stream(answer.events)
    assert kinds(answer.events)[-1] == "message_stop"
    assert live.watcher.names.count("Completed") == 1 and "Failed" not in live.watcher.names


async def test_each_batch_is_one_write(live: Live) -> None:
    batches = [[START, opened()], [delta("a"), delta("b")], [closed(), *END]]
    serve(live, *[step for batch in batches for step in (batch, 0.01)])
    async with live.open(ask(stream=True)) as response:
        chunks = [chunk async for chunk, _ in response.content.iter_chunks() if chunk]
    assert [len(parse_events(chunk)) for chunk in chunks] == [2, 2, 3]
    progress = [event for event in live.watcher.told[response.headers["request-id"]] if isinstance(event, Progress)]
    assert [(event.bytes, event.chunks) for event in progress] == [
        (len(chunk), n) for chunk, n in zip(chunks, (2, 2, 3), strict=True)
    ]


# -- clients that leave


async def test_a_client_that_leaves_behind_the_last_event_got_its_answer(live: Live) -> None:
    provider = serve(live, [*BLOCK, *END], asyncio.Event())
    async with live.open(ask(stream=True)) as response:
        stream = events_of(response)
        assert [await anext(stream) for _ in range(6)][-1]["type"] == "message_stop"
    await until(lambda: provider.closed == 1, 1.0)
    assert isinstance(live.watcher.last[-1], Completed) and "Abandoned" not in live.watcher.names


async def test_who_goes_on_behind_the_last_event_is_ended_and_the_connection_serves_on(live: Live) -> None:
    """The client has its whole answer and sends the next request at once."""
    provider = serve(live, [*BLOCK, *END], asyncio.Event())
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
    for _ in range(2):
        writer.write(raw_request("POST /v1/messages", body=json.dumps(ask(stream=True)).encode()))
        async with asyncio.timeout(5):
            received = await reader.readuntil(b"0\r\n\r\n")
        assert received.startswith(b"HTTP/1.1 200 OK\r\n") and b"message_stop" in received
    await until(lambda: provider.closed == 2)
    writer.close()
    assert isinstance(live.watcher.last[-1], Completed) and "Abandoned" not in live.watcher.names


async def test_a_client_that_leaves_while_its_body_is_read_is_no_error(live: Live) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", live.port)
    writer.write(raw_request("POST /v1/messages", "Content-Length: 1000", body=b"{"))
    await until(lambda: live.watcher.told)
    writer.transport.abort()
    await until(lambda: isinstance(live.watcher.last[-1], Abandoned))
    assert not live.notes.all("internal_error")


# -- what is recorded


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_is_told_from_start_to_end(live: Live, stream: bool) -> None:
    await live.post(ask(stream=stream), headers={"x-claude-code-session-id": "s"})
    assert live.watcher.names == [
        *("Started", "Sequenced", "ProviderSelected", "ModelResolved", "UpstreamStarted"),
        *("InputEstimated", "GenerationStarted", "UsageUpdated", "Completed"),
    ]
    (events,) = live.watcher.told.values()
    assert [type(event) for event in events[-3:]] == [Timed, CacheChecked, Completed]
    assert isinstance(events[-4], Progress) is stream


async def test_every_kind_of_failure_is_told(live: Live) -> None:
    await live.post(b"{")
    assert live.watcher.names == ["Started", "Failed"]
    live.sandbox.p1.script.extend([{"fault": "forbidden"}, {"fault": "cut_text"}])
    live.sandbox.p1.script.extend([{"fault": "silence_mid_text", "seconds": None}])
    for before, end in (("UpstreamStarted", Failed(403, "Access denied", "permission")), ("GenerationStarted", None)):
        await live.stream(ask())
        assert live.watcher.names[-2:] == [before, "Failed"] and live.watcher.last[-1] == (end or live.watcher.last[-1])
    assert live.watcher.last[-1].status == 200
    async with live.open(ask(stream=True)) as response:
        await response.content.readany()
    await until(lambda: isinstance(live.watcher.last[-1], Abandoned))
    assert "GenerationStarted" in live.watcher.names


async def test_every_attempt_is_told(live: Live) -> None:
    live.sandbox.p1.script.extend([{"fault": "server_error", "times": 2}])
    await live.stream(ask())
    attempts = [event.attempt for event in live.watcher.last if type(event).__name__ == "UpstreamStarted"]
    assert attempts == [1, 2, 3]


async def test_a_compaction_is_told(live: Live) -> None:
    await live.post(ask(system="You are a helpful AI assistant tasked with summarizing conversations."))
    assert "CompactionStarted" in live.watcher.names
