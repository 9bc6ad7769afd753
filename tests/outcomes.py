"""What may become of a request, for the tables of faults, and whether it did."""

from __future__ import annotations

from dataclasses import dataclass, field

from checks import check_message_stream
from harness import Answer, kinds

from proxy.core.messages import Fold


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
    """An error event behind a beginning; without a stream a status. Never another attempt once text or a call began."""

    status: int = 502
    type: str = "api_error"
    open: str | None = None
    words: str = ""
    attempts: int = 1


@dataclass(frozen=True)
class CallCut:
    """A tool call that the token limit cut: an error event behind the open call; without a stream the answer without
    it, which says so itself."""

    words: str = "(max_tokens) inside the arguments"
    attempts: int = 1


Outcome = Good | Refused | Broken | CallCut


def is_good(answer: Answer, outcome: Good, stream: bool) -> None:
    assert answer.status == 200
    if not stream:
        message = answer.json
    else:
        check_message_stream(answer.events)
        assert kinds(answer.events)[-1] == "message_stop"
        fold = Fold()
        fold.add(answer.events)
        message = fold.message
    assert message["stop_reason"] == outcome.stop
    blocks = [block["type"] for block in message["content"]]
    assert tuple(dict.fromkeys(blocks)) == tuple(dict.fromkeys(outcome.blocks))
    assert blocks.count("tool_use") == outcome.blocks.count("tool_use")
    ids = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
    assert len(set(ids)) == len(ids)


def is_broken(answer: Answer, outcome: Broken, stream: bool) -> None:
    if not stream:
        assert (answer.status, answer.error["type"]) == (outcome.status, outcome.type)
        return
    events = answer.events
    check_message_stream(events)
    assert answer.status == 200 and kinds(events).count("message_start") == 1
    assert events[-1]["type"] == "error" and events[-1]["error"]["type"] == outcome.type
    assert "message_stop" not in kinds(events)
    started = [event["content_block"]["type"] for event in events if event["type"] == "content_block_start"]
    stopped = kinds(events).count("content_block_stop")
    assert len(started) - stopped == (1 if outcome.open else 0)
    assert outcome.open is None or started[-1] == outcome.open
