"""What a body costs grows with its size, whatever stands in it; and a schema costs no more than its budget."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from samples import rows, sampled

from core.convert.costly_bodies import HISTORIES, SCHEMAS, Made, asked, said, tool
from core.convert.test_messages_to_chat import DIALECTS
from core.convert.test_messages_to_responses import OPTIONS
from proxy.config import Config
from proxy.core.convert import chat_calls
from proxy.core.convert.chat_to_messages import ChatToMessages
from proxy.core.convert.messages_to_chat import ChatOptions, messages_to_chat
from proxy.core.convert.messages_to_messages import MessagesToMessages, messages_to_messages
from proxy.core.convert.messages_to_responses import messages_to_responses
from proxy.core.invalid import InvalidRequest
from proxy.core.messages import MessageStream
from proxy.core.reducer import AnswerPolicy, BadAnswer
from proxy.core.tokens.heuristic import heuristic_count
from proxy.core.tools.schema import restore_text
from proxy.core.tools.step_budget import MAX_STEPS
from proxy.errors import RequestError
from proxy.providers.contract import Call, Target
from proxy.providers.p1_codex.request import prepare, resolve
from proxy.providers.p3_grok.request import responses_body
from proxy.providers.p3_grok.settings import GrokSettings
from proxy.providers.p5_cursor.prompt import prompt_tools, render
from proxy.providers.upstream.responses_wire import text_restorer

pytestmark = pytest.mark.slow
Translation = Callable[[dict[str, Any]], object]

#: A body five times as large may cost eleven times as much, in all that takes longer than this.
TIMES, GROWTH, FLOOR_S = 5, 11, 0.03
#: No schema costs more, on a slow machine.
SCHEMA_S = 0.4


def _p1(body: dict[str, Any]) -> None:
    target = resolve("gpt-5.6-sol", body, Config(), auto_review=False)
    prepare(Call(request=body, model="gpt-5.6-sol", target=target, request_id="r"), Config(), OPTIONS[0].offsets)


def _p3(body: dict[str, Any]) -> None:
    responses_body(Call(request=body, model="m", target=Target("m"), request_id="r"), GrokSettings(), "tool")


def _policy(body: dict[str, Any]) -> None:
    policy = AnswerPolicy(body)
    for _ in range(len(body["messages"])):
        policy.unique_id("a")
        policy.optional("t1")


TRANSLATIONS: dict[str, Translation] = {
    **{
        f"chat {name}": lambda body, dialect=dialect: messages_to_chat(body, ChatOptions("m", dialect, 5, {}))
        for name, dialect in DIALECTS.items()
    },
    "responses": lambda body: messages_to_responses(body, OPTIONS[0]),
    "responses lite": lambda body: messages_to_responses(body, OPTIONS[1]),
    "messages": lambda body: messages_to_messages(body, model="m", max_tokens=5),
    "p1": _p1,
    "p3": _p3,
    "p5": lambda body: (render(body), prompt_tools(body)),
    "policy": _policy,
    "estimate": heuristic_count,
    "form of the answer": text_restorer,
}


@pytest.fixture(autouse=True)
def _undisturbed() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def cost(work: Callable[[], object]) -> float:
    """Seconds of this thread, the least of a few."""
    found: list[float] = []
    for _ in range(3):
        started = time.thread_time()
        try:
            work()
        except (InvalidRequest, RequestError):
            pass
        found.append(time.thread_time() - started)
        if found[-1] < FLOOR_S:
            break
    return min(found)


def growth(made: Callable[[int], Any], work: Callable[[Any], object], size: int) -> float:
    """How many times as much as a small body one costs that is `TIMES` as large; 0 when that is nothing to speak of."""
    small, large = made(size), made(size * TIMES)
    large_cost = cost(lambda: work(large))
    return 0 if large_cost < FLOOR_S else large_cost / max(cost(lambda: work(small)), 1e-6)


@rows("made", HISTORIES.values())
def test_a_long_conversation_costs_what_its_length_says(made: Made) -> None:
    for (name,) in sampled(
        [(name,) for name in TRANSLATIONS], 1, lambda name: ["chat" if name.startswith("chat") else name]
    ):
        assert growth(made, TRANSLATIONS[name], 300) < GROWTH, name


@rows("made", SCHEMAS.values())
def test_a_schema_costs_no_more_than_its_budget(made: Made) -> None:
    schema = made(MAX_STEPS // 5)
    form = {"format": {"type": "json_schema", "schema": schema}}
    given = asked([said("user")], tools=[tool("t", input_schema=schema)])
    wanted = asked([said("user")], output_config=form)
    for name in ("chat p2", "messages", "p3"):
        assert cost(partial(TRANSLATIONS[name], given)) < SCHEMA_S, name
    for name in ("responses", "form of the answer", "p5"):
        assert cost(partial(TRANSLATIONS[name], wanted)) < SCHEMA_S, name


@rows("made", SCHEMAS.values())
def test_an_answer_and_its_schema_cost_no_more_than_their_budget(made: Made) -> None:
    schema = {"type": "object", "properties": {"list": {"type": "array", "items": made(2000)}}}
    answer = json.dumps({"list": [{"a": {"a": None, "b": None}, "a1": None}] * 2000})
    assert cost(lambda: restore_text(answer, schema)) < SCHEMA_S


def _fragment(arguments: str, **members: Any) -> dict[str, Any]:
    call = {"index": 0, "function": {"arguments": arguments, **members}}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]}


def _blanks(n: int) -> list[dict[str, Any]]:
    """Arguments that never begin."""
    return [_fragment(" ", name="t1")] * n


def _open(n: int) -> list[dict[str, Any]]:
    """Blocks of which none is closed."""
    starts = [
        {"type": "content_block_start", "index": k, "content_block": {"type": "text", "text": ""}} for k in range(n)
    ]
    return [{"type": "message_start", "message": {"usage": {}}}, *starts]


def _chat() -> ChatToMessages:
    return ChatToMessages(MessageStream("m", "m"), AnswerPolicy(asked([])), mark="")


def _native() -> MessagesToMessages:
    return MessagesToMessages(MessageStream("m", "m"), AnswerPolicy(asked([])))


@pytest.mark.parametrize(("made", "reducer"), [(_blanks, _chat), (_open, _native)])
def test_an_answer_costs_what_its_length_says(
    made: Callable[[int], list[dict[str, Any]]], reducer: Callable[[], ChatToMessages | MessagesToMessages]
) -> None:
    def work(events: list[dict[str, Any]]) -> None:
        fresh = reducer()
        for event in events:
            fresh.feed(event)

    assert growth(made, work, 1500) < GROWTH


def test_a_call_that_is_named_in_every_piece_is_not_read_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_calls, "MAX_READ", 1000)
    fresh = _chat()
    fresh.feed(_fragment('{"a":"', name="t1"))
    with pytest.raises(BadAnswer, match="in too many pieces"):
        for _ in range(100):
            fresh.feed(_fragment("}", name="t1"))
