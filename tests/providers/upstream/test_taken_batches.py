"""When the runner of an answer has its batches taken where they arrive, and what it does with one that is not taken."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from harness import kinds, texts
from samples import rows

from proxy.core.convert.chat_to_messages import ChatToMessages
from proxy.core.messages import Event, MessageStream
from proxy.core.reducer import DONE, AnswerPolicy
from proxy.core.visible import Visible
from proxy.errors import UpstreamError
from proxy.providers.upstream.adapter import AnswerReducer
from proxy.providers.upstream.attempts import AttemptRunner
from proxy.providers.upstream.event_reader import Batch, Batches, TakeBatch, next_batch

PROFILE: Any = SimpleNamespace(
    label="p9",
    service="toy",
    empty_is_failure=True,
    error=lambda message, **members: UpstreamError(message, **{"kind": "transport", **members}),
)


def chunk(finish: str | None = None, **delta: Any) -> Event:
    return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


HI, MORE, THOUGHT = chunk(content="hi"), chunk(content="more"), chunk(reasoning_content="hm")
STOP: Batch = [chunk("stop"), DONE]
FAILURE = {"error": "boom"}


@dataclass
class Toy:
    """An upstream that says these batches. `sent` are the functions that came back for each but the last; batches that
    are taken are not yielded."""

    batches: list[Batch]
    sent: list[TakeBatch | None] = field(default_factory=list)
    taken: list[bool] = field(default_factory=list)
    let_go_at: list[int] = field(default_factory=list)
    profile: Any = field(default_factory=lambda: PROFILE)
    estimates_at_once: bool = True
    after_tool_result: bool = False

    @property
    def wire(self) -> Any:
        return self

    async def sign_in(self) -> None: ...

    async def estimate(self) -> int:
        return 3

    def reducer(self, stream: MessageStream) -> AnswerReducer:
        return ChatToMessages(stream, AnswerPolicy({}), mark="m")

    def raise_for_event(self, event: Event) -> None:
        if "error" in event:
            raise UpstreamError("boom", kind="invalid_request")

    def let_go(self) -> None:
        self.let_go_at.append(len(self.sent))

    async def recover(self, error: UpstreamError) -> bool:
        return False

    def contextualise(self, error: UpstreamError, visible: Visible) -> UpstreamError:
        return error

    def client_error(self, error: UpstreamError) -> UpstreamError:
        return error

    async def contact(self, number: int) -> Batches:
        to = None
        for batch in self.batches:
            if to is not None:
                self.taken.append(to(batch))
            if to is None or not self.taken[-1]:
                to = yield batch
                self.sent.append(to)


@dataclass
class Answered:
    yielded: list[Batch] = field(default_factory=list)
    took: list[Batch] = field(default_factory=list)
    error: Exception | None = None


async def answered(toy: Toy, take: TakeBatch | None, **members: Any) -> Answered:
    """What comes of the toy. `members` of the call; `take` is told to the runner once content was sent."""
    found = Answered()
    call: Any = SimpleNamespace(
        **{"request": {}, "shown": "m", "folded": False, "converted": False, "request_id": "r", **members},
        timings=SimpleNamespace(generating=lambda: None),
        record=lambda _event: None,
    )
    services: Any = SimpleNamespace(
        new_id=lambda: "1", random=lambda: 0.5, log=SimpleNamespace(write=lambda *_, **__: None)
    )
    async with aclosing(AttemptRunner(call, services, toy).run()) as batches:  # type: ignore[arg-type]
        try:
            batch = await anext(batches, None)
            while batch is not None:
                found.yielded.append(batch)
                batch = await next_batch(batches, None if take is None else taking(take, found))
        except UpstreamError as error:
            found.error = error
    return found


def taking(take: TakeBatch, found: Answered) -> TakeBatch:
    def taken(batch: Batch) -> bool:
        if take(batch):
            found.took.append(batch)
            return True
        return False

    return taken


def yes(_batch: Batch) -> bool:
    return True


def no(_batch: Batch) -> bool:
    return False


async def test_what_follows_content_is_taken() -> None:
    toy = Toy([[HI], [MORE], [chunk()], [MORE, MORE], STOP])
    found = await answered(toy, yes)
    assert toy.taken == [True, True, True, False]  # what says nothing needs nobody
    assert [texts(batch) for batch in found.took] == ["more", "moremore"]
    assert [kinds(batch) for batch in found.yielded] == [
        ["message_start"],
        ["content_block_start", "content_block_delta"],
        ["content_block_stop", "message_delta", "message_stop"],
    ]
    assert toy.let_go_at == [0]


async def test_a_batch_that_is_refused_is_yielded_as_it_was_read() -> None:
    """It is not read again, and the next is offered again."""
    toy = Toy([[HI], [MORE], [MORE], STOP])
    found = await answered(toy, no)
    assert toy.taken == [False] * 3 and not found.took
    assert texts([event for batch in found.yielded for event in batch]) == "himoremore"
    plain = await answered(Toy(toy.batches), None)
    assert found.yielded == plain.yielded


NOT_TAKEN: dict[str, tuple[list[Batch], dict[str, Any], TakeBatch | None]] = {
    "nobody takes": ([[HI], [MORE], STOP], {}, None),
    "stop words": ([[HI], [MORE], STOP], {"request": {"stop_sequences": ["x"]}}, yes),
    "an answer that is sent whole": ([[HI], [MORE], STOP], {"folded": True}, yes),
    "thoughts, which may be thought again": ([[THOUGHT], [THOUGHT], [THOUGHT]], {}, yes),
}


@rows("name", NOT_TAKEN)
async def test_what_may_be_held_or_asked_for_again_is_not_taken(name: str) -> None:
    batches, members, take = NOT_TAKEN[name]
    toy = Toy(batches)
    await answered(toy, take, **members)
    assert toy.sent and not any(toy.sent) and not toy.taken


NO_DELTA: Event = {"id": "c", "choices": [{"index": 0, "delta": 5}]}


@rows("last", [[MORE, FAILURE, MORE], [FAILURE], [MORE, NO_DELTA]])
async def test_what_stood_before_a_failure_comes_out_and_the_failure_after_it(last: Batch) -> None:
    batches = [[HI], last, STOP]
    found, plain = await answered(Toy(batches), yes), await answered(Toy(batches), None)
    assert isinstance(found.error, UpstreamError) and str(found.error) == str(plain.error)
    assert [*found.yielded, found.took] == [*plain.yielded, []]
