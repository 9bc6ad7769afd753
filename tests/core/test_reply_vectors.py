"""The answers on disk, as the OpenAI-style routes give them. The case list is the folder."""

from __future__ import annotations

import random
from typing import Any

from openai_sdk import read_chunks, read_completion, read_response, read_response_events
from openai_streams import check_chat_chunks, check_response_events
from samples import rows

from core.reply_cases import (
    CHAT,
    RESPONSES,
    batches,
    case_of,
    chat_result,
    files_of,
    reply_cases,
    responses_result,
    stale,
)
from proxy.core.sse import SSEDecoder, dump_json, encode_data, encode_events, load_json


@rows("name", reply_cases())
def test_reply(name: str) -> None:
    expected = files_of(name)
    assert expected == {path: path.read_text("utf-8") for path in expected}


@rows("name", reply_cases())
def test_chat_stream_is_legal_and_adds_up(name: str) -> None:
    events, ingress = case_of(name)
    chunks, completion = chat_result([events], ingress)
    if completion is None:
        return
    folded = check_chat_chunks(chunks, include_usage=ingress.include_usage)
    assert {"usage": completion["usage"], **folded} == completion
    assert said(read_chunks(chunks).choices[0]) == said(read_completion(completion).choices[0])


def said(choice: Any) -> tuple[Any, ...]:
    """What a client of the SDK reads in a choice; its stream helper keeps the indexes of what it strings together."""
    message = choice.message
    calls = [(call.id, call.type, call.function.name, call.function.arguments) for call in message.tool_calls or []]
    cited = [(note.type, note.url_citation.to_dict()) for note in message.annotations or []]
    return choice.finish_reason, message.content or None, message.to_dict().get("reasoning_content"), calls, cited


@rows("name", reply_cases())
def test_responses_stream_is_legal_and_adds_up(name: str) -> None:
    events, ingress = case_of(name)
    out, response = responses_result([events], ingress)
    assert check_response_events(out) == response
    read_response(response)
    completed = read_response_events(out)
    assert (completed is None) == (response["status"] != "completed")
    if completed is not None:
        assert [unparsed(item.to_dict()) for item in completed.output] == response["output"]


def unparsed(value: Any) -> Any:
    """Without what the SDK's helper adds."""
    if isinstance(value, list):
        return [unparsed(member) for member in value]
    if isinstance(value, dict):
        return {name: unparsed(member) for name, member in value.items() if not name.startswith("parsed")}
    return value


@rows("name", reply_cases())
def test_the_split_does_not_matter(name: str) -> None:
    """Except for a broken answer on chat, where what stood before the fault in its batch is lost."""
    events, ingress = case_of(name)
    if any(event["type"] == "ping" for event in events):
        return  # silences lie between batches
    chat, responses = chat_result([events], ingress), responses_result([events], ingress)
    chance = random.Random(name)
    for _ in range(5):
        pieces = batches(events, [chance.randrange(1000) for _ in range(chance.randrange(8))])
        assert responses_result(pieces, ingress) == responses
        assert chat[1] is None or chat_result(pieces, ingress) == chat


@rows("name", reply_cases())
def test_bytes_are_those_of_plain_json(name: str) -> None:
    events, ingress = case_of(name)
    chunks, _ = chat_result([events], ingress)
    out, _ = responses_result([events], ingress)
    decoder = SSEDecoder()
    frames = decoder.feed(encode_data(chunks))
    assert frames == [(b"", dump_json(chunk).encode()) for chunk in chunks]
    frames = decoder.feed(encode_events(out))
    assert frames == [(event["type"].encode(), dump_json(event).encode()) for event in out]
    assert [load_json(data.decode()) for _, data in frames] == out


def test_no_expected_file_is_left_over() -> None:
    assert stale() == []
    assert all(any(folder.iterdir()) for folder in (CHAT, RESPONSES))
