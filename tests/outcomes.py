"""What may become of a request, for the tables of faults, and whether it did."""

from __future__ import annotations

from dataclasses import dataclass, field

from checks import check_message_stream, is_json
from harness import Answer, kinds
from wires import message_of


@dataclass(frozen=True)
class Good:
    """A whole answer; `blocks` without thoughts."""

    attempts: int = 1
    stop: str = "end_turn"
    blocks: tuple[str, ...] = ("text",)
    waits: tuple[float, ...] = ()


@dataclass(frozen=True)
class Refused:
    """An HTTP error; `words` stand in its message."""

    status: int
    type: str
    attempts: int = 1
    headers: dict[str, str] = field(default_factory=dict)
    words: str = ""


@dataclass(frozen=True)
class Broken:
    """An error event behind a beginning; never another attempt once text or a call began. Without a stream nobody saw
    that, so there is one: `whole` is what comes of it, None for the status."""

    status: int = 502
    type: str = "api_error"
    open: str | None = None
    words: str = ""
    attempts: int = 1
    whole: Good | Refused | None = Good(2, waits=(1.5,))


@dataclass(frozen=True)
class CallCut:
    """A tool call that the token limit cut: stopped with a part of its arguments; without a stream the answer without
    it. Both say so."""

    attempts: int = 1


Outcome = Good | Refused | Broken | CallCut


def kind_of(outcome: Outcome) -> tuple[object, ...]:
    """What a sample of a table (`samples.each`) tells outcomes apart by: form, status and number of attempts."""
    return type(outcome), getattr(outcome, "status", None), outcome.attempts


def expected_of(outcome: Outcome, stream: bool) -> Outcome:
    """What a client gets of it, streamed or whole."""
    return outcome.whole or outcome if isinstance(outcome, Broken) and not stream else outcome


def is_good(answer: Answer, outcome: Good, stream: bool, *, thoughts: bool = True) -> None:
    """`thoughts`: whether the outcome lists them (those of several attempts as one); otherwise they may be there."""
    assert answer.status == 200, answer.raw
    if stream and "future_block" not in outcome.blocks:
        check_message_stream(answer.events)
    message = message_of(answer)
    assert message["stop_reason"] == outcome.stop
    shown: list[str] = []
    for kind in (block["type"] for block in message["content"]):
        if kind != "thinking" or (thoughts and shown[-1:] != [kind]):
            shown.append(kind)
    assert tuple(shown) == outcome.blocks
    calls = [block for block in message["content"] if block["type"] == "tool_use"]
    assert len({call["id"] for call in calls}) == len(calls) and all(call["id"] for call in calls)
    assert all(isinstance(call["input"], dict) for call in calls)


def is_refused(answer: Answer, outcome: Refused) -> None:
    assert (answer.status, answer.error["type"]) == (outcome.status, outcome.type), answer.raw
    hints = {name: answer.headers[name] for name in ("Retry-After", "x-should-retry") if name in answer.headers}
    assert hints == outcome.headers
    assert outcome.words in answer.error["message"] and "<" not in answer.error["message"]


def is_call_cut(answer: Answer, stream: bool) -> None:
    assert answer.status == 200
    if stream:
        check_message_stream(answer.events)
        arguments = [event["delta"].get("partial_json", "") for event in answer.events if "delta" in event]
        assert "".join(arguments) and not is_json("".join(arguments))
        assert kinds(answer.events)[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    message = message_of(answer)
    assert message["stop_reason"] == "max_tokens"
    assert [block["type"] for block in message["content"]].count("tool_use") == (1 if stream else 0)


def is_broken(answer: Answer, outcome: Broken, stream: bool) -> None:
    if not stream:
        assert (answer.status, answer.error["type"]) == (outcome.status, outcome.type)
        assert outcome.words in answer.error["message"]
        return
    events = answer.events
    check_message_stream(events)
    assert answer.status == 200 and kinds(events).count("message_start") == 1
    assert events[-1]["type"] == "error" and events[-1]["error"]["type"] == outcome.type
    assert outcome.words in events[-1]["error"]["message"]
    assert "message_stop" not in kinds(events)
    started = [event["content_block"]["type"] for event in events if event["type"] == "content_block_start"]
    assert len(started) - kinds(events).count("content_block_stop") == (1 if outcome.open else 0)
    assert outcome.open is None or started[-1] == outcome.open
