"""When the writer of a stream takes a batch where it arrives, each reason to refuse one, and that refusing does
nothing."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from checks import check_message_stream
from events import closed, delta, opened
from harness import Fake, Live, ask, texts, use, whole_message, with_live
from openai_live import CHAT, RESPONSES, body_for
from samples import rows

from proxy.observe.lifecycle import Progress
from proxy.providers.contract import Call
from proxy.providers.upstream.event_reader import Batch, Batches, TakeBatch
from proxy.server.serving.stream import EventWriter

START, *_, REASON, STOP = whole_message("gpt-5.5", "fine")
BEGUN: Batch = [START, opened(), delta("a")]
END: Batch = [closed(), REASON, STOP]


class Direct(Fake):
    """Gets the functions that the server sends down."""

    def stream(self, call: Call) -> Batches:
        return self._stream(call)  # type: ignore[return-value]


#: Ids and times.
_NEW = re.compile(rb"[0-9a-f]{32}|\d{10}")


def writer_of(take: TakeBatch) -> EventWriter:
    writer = getattr(take, "__self__", None)
    assert isinstance(writer, EventWriter)
    return writer


def transport_of(writer: EventWriter) -> Any:
    return writer._ledger.inquiry.request.transport


@with_live(openai_routes=True)
@rows("path", ["/v1/messages", CHAT, RESPONSES])
async def test_a_batch_of_a_flowing_answer_is_written_at_once(live: Live, path: str) -> None:
    """With the same bytes as one that is sent, and the monitor is told the same."""
    use(live, Direct("p2", answer_of(lambda take: take([delta("b")]))))
    taken = await live.post(body_of(path), path)
    progress = told(live)
    live.forget()
    use(live, Direct("p2", answer_of(lambda _take: False)))
    sent = await live.post(body_of(path), path)
    assert _NEW.sub(b"", taken.raw) == _NEW.sub(b"", sent.raw) and b'"b"' in taken.raw
    assert told(live) == progress and len(progress) == 3


def body_of(path: str) -> dict[str, Any]:
    members = {"model": "kimi-for-coding", "stream": True}
    return ask(**members) if path == "/v1/messages" else body_for(path, **members)


def told(live: Live) -> list[tuple[int, int]]:
    return [
        (event.bytes, event.chunks)
        for all in live.watcher.told.values()
        for event in all
        if isinstance(event, Progress)
    ]


def answer_of(offer: Callable[[TakeBatch], bool]) -> Callable[[Call], Batches]:
    """An answer whose second batch is offered, and yielded if it was not taken."""

    async def answer(_call: Call) -> Batches:
        take = yield BEGUN
        assert take is not None
        if not offer(take):
            yield [delta("b")]
        yield END

    return answer


def locked(take: TakeBatch) -> bool:
    with patch.object(asyncio.Lock, "locked", lambda _lock: True):
        return take([delta("b")])


def behind(take: TakeBatch) -> bool:
    """The client has not read what was written."""
    transport = transport_of(writer_of(take))
    with patch.object(type(transport), "get_write_buffer_size", lambda _transport: 1):
        return take([delta("b")])


def closing(take: TakeBatch) -> bool:
    with patch.object(type(transport_of(writer_of(take))), "is_closing", lambda _transport: True):
        return take([delta("b")])


def gone(take: TakeBatch) -> bool:
    with patch.object(type(writer_of(take)._ledger.inquiry.request), "transport", None):
        return take([delta("b")])


@rows("offer", [locked, behind, closing, gone])
async def test_what_would_wait_is_refused_and_then_sent_once(live: Live, offer: Callable[[TakeBatch], bool]) -> None:
    found = []
    use(live, Direct("p1", answer_of(lambda take: found.append(offer(take)) or found[-1])))  # type: ignore[func-returns-value]
    events = (await live.stream(ask())).events
    assert found == [False]
    check_message_stream(events)
    assert texts(events) == "ab"


@pytest.mark.parametrize("first", [[START], [START, opened("thinking"), delta("h", "thinking_delta")]])
async def test_nothing_is_taken_before_content(live: Live, first: Batch) -> None:
    """Framing may be held, and what only thought may be asked for again."""
    found = []

    async def answer(_call: Call) -> Batches:
        take = yield first
        assert take is not None
        found.append(take([{"type": "ping"}]))
        index = len(first) // 2
        yield [*([closed()] if index else []), opened(index=index), delta("a", index=index)]
        yield [closed(index), REASON, STOP]

    use(live, Direct("p1", answer))
    check_message_stream((await live.stream(ask())).events)
    assert found == [False]


async def test_the_end_is_not_taken(live: Live) -> None:
    """It goes out with the end of the body, and completes the request."""
    found = []

    async def answer(_call: Call) -> Batches:
        take = yield BEGUN
        assert take is not None
        found.append(take(END))
        yield END

    use(live, Direct("p1", answer))
    events = (await live.stream(ask())).events
    check_message_stream(events)
    assert found == [False] and live.watcher.names[-1] == "Completed"


async def test_an_answer_that_is_sent_whole_takes_nothing(live: Live) -> None:
    found: list[TakeBatch | None] = []

    async def answer(_call: Call) -> Batches:
        found.append((yield BEGUN))
        yield END

    use(live, Direct("p1", answer))
    assert (await live.post(ask())).status == 200
    assert found == [None]
