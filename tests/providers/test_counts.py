"""What is sent is counted: for every type of block and wire, the counts move when the text that goes upstream does."""

from __future__ import annotations

import base64
import functools
import itertools
import json
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import pytest
from harness import Live, ask
from samples import sampled, walk
from wires import BODY_WIRES, PICTURE, Wire

from proxy.core.blocks import BLOCKS

WIRES = (Wire("p1", "responses", "gpt-5.5"), Wire("p1", "lite", "gpt-5.6-sol"), *BODY_WIRES)
Json = dict[str, Any]
Messages = list[tuple[str, Any]]


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _call(value: Any = None, name: str = "Bash") -> Json:
    return {"type": "tool_use", "id": "c", "name": name, "input": value or {}}


def _said(block: Json) -> Messages:
    return [("user", [block])]


def _spoken(*blocks: Json) -> Messages:
    return [("user", "go"), ("assistant", [*blocks, _text("so")]), ("user", "on")]


def _result(*content: Json) -> Messages:
    result = {"type": "tool_result", "tool_use_id": "c", "content": [*content]}
    return [("user", "go"), ("assistant", [_call()]), ("user", [result])]


def _document(text: str, form: str = "text") -> Json:
    source: Json = {"type": "text", "media_type": "text/plain", "data": text}
    if form == "content":
        source = {"type": "content", "content": [_text(text)]}
    elif form == "pdf":
        data = base64.b64encode(b"%PDF-1.7 " + text.encode() * 50).decode()
        source = {"type": "base64", "media_type": "application/pdf", "data": data}
    return {"type": "document", "title": f"title {text}", "context": f"context {text}", "source": source}


def _found(text: str) -> Json:
    return {"type": "search_result", "source": f"http://a/ {text}", "title": text, "content": [_text(text)]}


def _searched(text: str, kind: str) -> Messages:
    hit = {"type": "web_search_result", "url": f"https://a/{text.split()[0]}", "title": text, "encrypted_content": "e"}
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": text}}
    return _spoken(call, {"type": kind, "tool_use_id": "srvtoolu_1", "content": [hit]})


def _image() -> Json:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}}


#: type of block, and where it stands -> a conversation with one that holds this text. `test_every_block_is_here` asks
#: for each type of the table of blocks.
HELD: dict[tuple[str, str], Callable[[str], Messages]] = {
    ("text", "user"): lambda text: _said(_text(text)),
    ("text", "bare"): lambda text: [("user", text)],
    ("text", "assistant"): lambda text: _spoken(_text(text)),
    ("text", "cited"): lambda text: _spoken(
        {**_text("a"), "citations": [{"type": "char_location", "cited_text": text, "document_index": 0}]}
    ),
    ("text", "system"): lambda text: [("user", "go"), ("system", [_text(text)]), ("user", "on")],
    ("text", "tools come"): lambda text: [
        ("user", "go"),
        ("system", [{"type": "tool_addition", "tools": [{"name": text}]}]),
        ("user", "on"),
    ],
    ("text", "result"): lambda text: _result(_text(text)),
    ("thinking", "assistant"): lambda text: _spoken({"type": "thinking", "thinking": text, "signature": "s"}),
    ("redacted_thinking", "assistant"): lambda text: _spoken({"type": "redacted_thinking", "data": text * 20}),
    ("tool_use", "assistant"): lambda text: [
        ("user", "go"),
        ("assistant", [_call({"command": text})]),
        ("user", [{"type": "tool_result", "tool_use_id": "c", "content": "done"}]),
    ],
    ("tool_result", "bare"): lambda text: [
        *_result()[:2],
        ("user", [{"type": "tool_result", "tool_use_id": "c", "content": text}]),
    ],
    ("tool_result", "orphan"): lambda text: _said({"type": "tool_result", "tool_use_id": "gone", "content": text}),
    ("tool_result", "reference"): lambda text: _result({"type": "tool_reference", "tool_name": text.replace(" ", "_")}),
    ("server_tool_use", "assistant"): lambda text: _searched(text, "web_search_tool_result"),
    ("web_search_tool_result", "assistant"): lambda text: _searched(text, "web_search_tool_result"),
    ("x_search_tool_result", "assistant"): lambda text: _searched(text, "x_search_tool_result"),
    ("image", "user"): lambda _text: _said(_image()),
    ("video", "user"): lambda _text: _said({**_image(), "type": "video"}),
    ("document", "text"): lambda text: _said(_document(text)),
    ("document", "content"): lambda text: _said(_document(text, "content")),
    ("document", "pdf"): lambda text: _said(_document(text, "pdf")),
    ("document", "result"): lambda text: _result(_document(text)),
    ("document", "pdf result"): lambda text: _result(_document(text, "pdf")),
    ("search_result", "user"): lambda text: _said(_found(text)),
    ("search_result", "result"): lambda text: _result(_found(text)),
}
#: Members beside the conversation.
BESIDE: dict[str, Callable[[str], Json]] = {
    "system": lambda text: {"system": text},
    "system blocks": lambda text: {"system": [_text("a"), _text(text)]},
    "description": lambda text: {"tools": [{"name": "t", "description": text, "input_schema": {"type": "object"}}]},
    "schema": lambda text: {
        "tools": [{"name": "t", "input_schema": {"type": "object", "properties": {"a": {"enum": [text]}}}}]
    },
    "form": lambda text: {
        "output_config": {
            "format": {"type": "json_schema", "schema": {"type": "object", "properties": {"a": {"const": text}}}}
        }
    },
}
SHORT, LONG = "apple pear", "apple pear " * 100


def test_every_block_is_here() -> None:
    assert {kind for kind, _ in HELD} == BLOCKS.keys()


async def counts(live: Live, wire: Wire, request: Json) -> tuple[int, int, int]:
    """What `count_tokens` says, what the stream says at first, and the characters that went upstream."""
    request = {**ask(model=wire.model), **request}
    counted = await live.post(request, "/v1/messages/count_tokens")
    streamed = await live.stream(request)
    assert streamed.status == 200, streamed.raw
    return (
        counted.json["input_tokens"],
        streamed.events[0]["message"]["usage"]["input_tokens"],
        len(json.dumps(wire.sent(live))),
    )


#: What holds a text, by its name: a conversation, or a member beside it.
WRITTEN: dict[str, Callable[[str], Json]] = {
    **{
        "-".join(place): lambda text, make=make: {
            "messages": [{"role": role, "content": said} for role, said in make(text)]
        }
        for place, make in HELD.items()
    },
    **BESIDE,
}


def differs(wire: Wire, name: str) -> Sequence[Hashable]:
    """What makes a difference: what is written to each reader of requests, and the wire."""
    return (wire.kind, name), wire.name


@functools.cache
def cases() -> list[tuple[Wire, str]]:
    return sampled(itertools.product(WIRES, WRITTEN), 1, differs)


@pytest.mark.parametrize("wire", WIRES, ids=str)
async def test_the_counts_move_with_what_is_sent(live: Live, wire: Wire) -> None:
    with walk() as row:
        for of, name in cases():
            if of == wire:
                with row(name):
                    await counts_move(live, wire, WRITTEN[name])


async def counts_move(live: Live, wire: Wire, written: Callable[[str], Json]) -> None:
    short, long = [await counts(live, wire, written(text)) for text in (SHORT, LONG)]
    grown = long[2] - short[2]
    for before, after in zip(short[:2], long[:2], strict=True):
        if grown > 200:  # a long name of a tool is cut
            assert after - before > grown // 100
        else:
            assert abs(after - before) <= grown
