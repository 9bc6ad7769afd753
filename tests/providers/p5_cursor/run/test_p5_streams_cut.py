"""A stream of envelopes that is cut, split or damaged anywhere: what comes out is legal, and looks whole only when it
is."""

from __future__ import annotations

import asyncio
import gzip
import random
from dataclasses import dataclass, field
from typing import Any, cast

import aiohttp
import pytest
from checks import check_message_stream
from harness import tool
from samples import Extent, examples, rows

from proxy.core.messages import Event, Fold, MessageStream
from proxy.core.reducer import BadAnswer
from proxy.errors import ProxyError
from proxy.observe.capture.contract import AttemptCapture
from proxy.observe.lifecycle import NullLog
from proxy.providers.p5_cursor.answer import CursorToMessages
from proxy.providers.p5_cursor.run.calls import OpenCall
from proxy.providers.p5_cursor.run.channels import Channels
from proxy.providers.p5_cursor.run.run import Run
from proxy.providers.p5_cursor.run.watch import RunTimers
from proxy.providers.p5_cursor.wire.envelopes import envelope
from proxy.providers.p5_cursor.wire.protobuf import decode, encode

TOOLS = {"Read": tool("Read", "file_path")}


class Body:
    """What a stream holds, piece by piece; then it ends, or breaks."""

    def __init__(self, pieces: list[bytes], *, breaks: bool) -> None:
        self.content = self
        self.headers: dict[str, str] = {}
        self.closed = False
        self._pieces = list(reversed(pieces))
        self._breaks = breaks

    async def readany(self) -> bytes:
        for _ in range(30):  # what was asked is answered meanwhile
            await asyncio.sleep(0)
        if self._pieces:
            return self._pieces.pop()
        if self._breaks:
            raise aiohttp.ClientPayloadError
        return b""

    def close(self) -> None:
        self.closed = True


@dataclass
class Wire:
    """The channels of a run, without a network."""

    body: Body
    id: str = "req-1"
    appended: list[bytes] = field(default_factory=list)

    async def open(self, _told: AttemptCapture) -> Body:
        return self.body

    async def append(self, number: int, message: bytes) -> None:
        assert number == len(self.appended)
        self.appended.append(message)


@dataclass
class Heard:
    """What came of a stream. `failed`: why it is no answer."""

    events: list[Event]
    sent: list[dict[str, Any]]
    failed: Exception | None

    @property
    def message(self) -> dict[str, Any] | None:
        """None for one that is not whole."""
        check_message_stream(self.events, cut=True, hub=True)
        fold = Fold()
        fold.add(self.events)
        return fold.message if fold.complete else None


async def heard(*pieces: bytes, breaks: bool = False) -> Heard:
    body = Body([piece for piece in pieces if piece], breaks=breaks)
    wire = Wire(body)
    timers = RunTimers(first=0.5, silence=0.5, quiet_end=0.5, after_end=0.01, cancel=0.1)
    run = Run(
        cast(Channels, wire), timers, NullLog(), "r", context={}, workspace="/w", renamed=str, silent=lambda _: None
    )
    run.tools = TOOLS
    stream = MessageStream("msg_1", "cursor", input_tokens=1)
    stream.start()

    def offer(call: OpenCall, tool_use_id: str) -> dict[str, Any]:
        run.pause(call, tool_use_id, {})
        return {"file_path": call.request.args.get("path", "")}

    reducer = CursorToMessages(stream, TOOLS, offer, lambda: "0" * 32, run.output)
    events, failed = stream.take(), None
    run.start(encode("AgentClientMessage", {"run_request": {}}))
    try:
        while not reducer.finished:
            for event in await run.take():
                if not reducer.finished:
                    events += reducer.feed(event)
    except (ProxyError, BadAnswer) as error:
        failed = error
        events += reducer.interrupt()
    await run.close()
    assert body.closed and [task for task in asyncio.all_tasks() if "Run." in str(task.get_coro())] == []
    return Heard(events, [decode("AgentClientMessage", data) for data in wire.appended], failed)


def update(**members: Any) -> bytes:
    return encode("AgentServerMessage", {"interaction_update": members})


def asks(**members: Any) -> bytes:
    return encode("AgentServerMessage", {"exec_server_message": members})


SET_BLOB = {"blob_id": b"a", "blob_data": b"b"}
BLOB = encode("AgentServerMessage", {"kv_server_message": {"id": 1, "set_blob_args": SET_BLOB}})
QUERY = encode("AgentServerMessage", {"interaction_query": {"id": 2, "web_search_request_query": {}}})

BEFORE = [
    envelope(asks(request_context_args={}, exec_id="e0")),
    envelope(BLOB),
    envelope(update(thinking_delta={"text": "hm"})),
    envelope(asks(id=1, grep_args={"pattern": "x"}, exec_id="e1")),
    envelope(update(text_delta={"text": "Hé"})),
    envelope(gzip.compress(update(text_delta={"text": "llo"}), mtime=0), 1),
    envelope(QUERY),
    envelope(update(token_delta={"tokens": 3})),
]
AFTER = [envelope(update(turn_ended={"output_tokens": 3})), envelope(b"{}", 2)]
ANSWER = b"".join([*BEFORE, *AFTER])
TURN_ENDS = len(b"".join(BEFORE + AFTER[:1]))
BORDERS = {len(b"".join([*BEFORE, *AFTER][:count])) for count in range(11)}
TEXT_BEGINS = len(b"".join(BEFORE[:5]))
CALL = b"".join([*BEFORE, envelope(asks(id=3, read_args={"path": "/a"}, exec_id="e3"))])


async def test_the_whole_of_it() -> None:
    found = await heard(*BEFORE, *AFTER)
    assert found.failed is None and found.message is not None
    assert [block.get("text") or block["thinking"] for block in found.message["content"]] == ["hm", "Héllo"]
    kinds = [name for message in found.sent for name in message]
    assert kinds[:2] == ["run_request", "client_heartbeat"]
    assert kinds.count("exec_client_message") == 2 and kinds.count("interaction_response") == 1


@pytest.mark.parametrize("breaks", [True, False], ids=["broken", "ended"])
async def test_a_cut_at_any_byte(breaks: bool) -> None:
    """Whole is what holds the end of the turn; or some text, when the stream itself ends well between envelopes. In a
    sample a byte is cut in one of both ways."""
    every = range(len(ANSWER) + 1)
    in_turn = every if Extent.everything else every[breaks::2]
    for place in sorted({*in_turn, *BORDERS, TEXT_BEGINS, TURN_ENDS}):
        found = await heard(ANSWER[:place], breaks=breaks)
        whole = place >= TURN_ENDS or (not breaks and place >= TEXT_BEGINS and place in BORDERS)
        assert (found.message is not None) is whole is (found.failed is None), place


@pytest.mark.parametrize("answer", [ANSWER, CALL], ids=["text", "call"])
async def test_a_split_at_any_byte(answer: bytes) -> None:
    once = await heard(answer)
    for place in range(1, len(answer), 1 if Extent.everything else 3):
        found = await heard(answer[:place], answer[place:])
        assert (found.message, found.failed) == (once.message, None)


async def test_pieces_of_any_size() -> None:
    once, chance = await heard(ANSWER), random.Random(5)
    for _ in range(examples(400)):
        places = sorted(chance.sample(range(len(ANSWER)), 12))
        found = await heard(*(ANSWER[start:stop] for start, stop in zip([0, *places], [*places, None], strict=True)))
        assert found.message == once.message


def damaged(data: bytes, chance: random.Random) -> bytes:
    """A few bytes are others, missing, or there twice."""
    found = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        if not found:
            break
        place = chance.randrange(len(found))
        match chance.randrange(5):
            case 0:
                found[place] = chance.randrange(256)
            case 1:
                found[place] ^= 1 << chance.randrange(8)
            case 2:
                del found[place : place + chance.randint(1, 9)]
            case 3:
                found[place:place] = found[place : place + chance.randint(1, 30)]
            case _:
                found[place:place] = chance.randbytes(chance.randint(1, 5))
    return bytes(found)


@rows("seed", range(6))
async def test_whatever_is_damaged_comes_out_legal_or_as_an_error(seed: int) -> None:
    """Nothing fails but as an error for the client, and what is answered is what was asked."""
    chance = random.Random(seed)
    for _ in range(examples(600)):
        found = await heard(damaged(chance.choice((ANSWER, CALL)), chance), breaks=chance.random() < 0.5)
        assert (found.message is None) is (found.failed is not None)
        said = [(kind, name) for message in found.sent for kind, arms in message.items() for name in arms]
        closes = said.count(("exec_client_control_message", "stream_close"))
        results = [name for kind, name in said if kind == "exec_client_message" and name.endswith("_result")]
        assert len(said) < 80 and len(results) <= closes + 1


@pytest.mark.parametrize("seed", range(3))
async def test_damaged_payloads_in_good_envelopes(seed: int) -> None:
    chance = random.Random(seed)
    payloads = [piece[5:] for piece in [*BEFORE[:5], *BEFORE[6:], AFTER[0]]]
    for _ in range(examples(600)):
        pieces = [envelope(damaged(one, chance) if chance.random() < 0.2 else one) for one in payloads]
        found = await heard(*pieces, envelope(b"{}", 2), breaks=chance.random() < 0.5)
        assert (found.message is None) is (found.failed is not None)
