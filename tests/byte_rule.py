"""The one rule for an answer whose upstream was damaged: an error in the caller's form, or the good answer. Never both,
never neither, and nothing twice."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from byte_tapes import Row
from checks import check_message_stream
from harness import Answer, parse_events
from openai_live import CHAT, RESPONSES, chunks_of, error_of
from openai_streams import check_chat_chunks, check_response_events
from wires import message_of

from proxy.core.responses_events import ENDS

MESSAGES = "/v1/messages"

#: An answer without what is new each time: its text, and its calls with their arguments.
Content = tuple[str, list[tuple[str, Any]]]

#: A row is tried this often at most.
MOST_ATTEMPTS = 4


def content_of(path: str, answer: Answer, stream: bool) -> Content | None:
    """None for an error, whose form is checked, as is that of a stream in front of it."""
    if answer.status != 200:
        assert not stream or answer.headers["content-type"].startswith("application/json"), answer.headers
        _ = answer.error if path == MESSAGES else error_of(answer)
        return None
    return _READERS[path](answer, stream)


def _messages(answer: Answer, stream: bool) -> Content | None:
    if stream:
        check_message_stream(answer.events)
        if answer.events[-1]["type"] == "error":
            return None
    blocks = message_of(answer)["content"]
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    return text, [(block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"]


def _chat(answer: Answer, stream: bool) -> Content | None:
    if stream:
        *chunks, last = chunks_of(answer)
        if "error" in last:
            check_chat_chunks(chunks, cut=True)
            assert not any(chunk["choices"] and chunk["choices"][0]["finish_reason"] for chunk in chunks)
            return None
        completion = check_chat_chunks([*chunks, last])
    else:
        completion = answer.json
    message = completion["choices"][0]["message"]
    called = [call["function"] for call in message.get("tool_calls") or ()]
    return message.get("content") or "", [(one["name"], json.loads(one["arguments"])) for one in called]


def _responses(answer: Answer, stream: bool) -> Content | None:
    if stream:
        response = check_response_events(parse_events(answer.raw))
        assert response is not None
    else:
        response = answer.json
    if response["status"] == "failed":
        assert response["error"]["message"]
        return None
    parts = [part for item in response["output"] if item["type"] == "message" for part in item["content"]]
    called = [item for item in response["output"] if item["type"] == "function_call"]
    return "".join(part["text"] for part in parts), [(one["name"], json.loads(one["arguments"])) for one in called]


def passed_on(answer: Answer) -> Content | None:
    """The same for an event stream that is passed on as it is. One whose transfer ends well has a last event."""
    if answer.status != 200:
        return content_of(RESPONSES, answer, True)
    last = {"error", *ENDS}
    assert any(event.get("type") in last for event in _readable(answer.raw)), f"no end: {answer.raw[-200:]!r}"
    return answer.raw.decode("utf-8", "replace"), []


def _readable(raw: bytes) -> Iterator[dict[str, Any]]:
    for line in raw.splitlines():
        with contextlib.suppress(ValueError):
            yield json.loads(line.removeprefix(b"data:"))


_READERS = {MESSAGES: _messages, CHAT: _chat, RESPONSES: _responses}


def judge(row: Row, complete: int, good: Content, found: Content | None, *, runs: bool = False) -> None:
    """
    complete  from which place on the upstream had said that it is done
    runs      of a service that may leave out the end of a turn: when it falls silent behind visible text, that is it
    """
    assert 1 <= row.attempts <= MOST_ATTEMPTS, f"{row.attempts} attempts"
    if found is None:
        return
    if runs and row.damage == "stall" and row.at < complete:
        assert found[0] and good[0].startswith(found[0]), found
        return
    if row.attempts == 1 and row.damage not in ("garble", "insert"):
        assert row.at >= complete, "a whole answer of an upstream that had not said its end"
    mended = (
        row.attempts == 1 and row.damage in ("garble", "insert") and "\ufffd" in json.dumps(found, ensure_ascii=False)
    )
    assert mended or found == good, f"a whole answer with other content: {found}"
