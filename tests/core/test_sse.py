"""Frames out of bytes in any split, and bytes out of events."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.strategies import cut_places, pieces
from proxy.core.sse import FrameTooLarge, SSEDecoder, dump_json, encode_events, encode_json, load_json

Frames = list[tuple[bytes, bytes]]

lines = st.sampled_from(
    [
        "data: a",
        "data:b",
        "data:  c",
        "data",
        "event: e",
        "event:",
        ": comment",
        "id: 1",
        "retry: 5",
        "",
        "",
        "dat",
        "x: y",
    ]
)
line_ends = st.sampled_from(["\n", "\r\n", "\r"])
bodies = st.lists(st.tuples(lines, line_ends), max_size=20).map(
    lambda parts: "".join(line + end for line, end in parts).encode()
)


def decoded(chunks: list[bytes]) -> Frames:
    decoder = SSEDecoder()
    return [frame for chunk in chunks for frame in decoder.feed(chunk)]


def by_the_book(body: bytes) -> Frames:
    """The parsing algorithm of the specification, written line by line."""
    body = body.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    frames, event, data = [], b"", None
    for line in body.split(b"\n")[:-1]:
        name, _, value = line.partition(b":")
        value = value[1:] if value[:1] == b" " else value
        if not line:
            if data is not None:
                frames.append((event, b"\n".join(data)))
            event, data = b"", None
        elif name == b"event":
            event = value
        elif name == b"data":
            data = [*(data or []), value]
    return frames


@given(bodies, st.booleans())
def test_frames_are_those_of_the_specification(body: bytes, mark: bool) -> None:
    body = b"\xef\xbb\xbf" * mark + body
    assert decoded([body]) == by_the_book(body)


@given(bodies, cut_places, st.booleans())
def test_the_split_does_not_matter(body: bytes, cuts: list[int], mark: bool) -> None:
    body = b"\xef\xbb\xbf" * mark + body
    whole = decoded([body])
    assert decoded(pieces(body, cuts)) == whole
    assert decoded([body[at : at + 1] for at in range(len(body))]) == whole


@given(st.binary(max_size=60), cut_places)
def test_arbitrary_bytes_do_no_harm(body: bytes, cuts: list[int]) -> None:
    assert decoded(pieces(body, cuts)) == decoded([body])


def test_line_ends_may_be_split_and_mixed() -> None:
    first, second, third = (
        b'data: {"type":"keepalive"}\r',
        b'\n\r\ndata: {"ty',
        b'pe":"response.completed","response":{"id":"r"}}\n\n: x',
    )
    decoder = SSEDecoder()
    assert decoder.feed(first) == []
    assert decoder.feed(second) == [(b"", b'{"type":"keepalive"}')]
    assert decoder.feed(third) == [(b"", b'{"type":"response.completed","response":{"id":"r"}}')]


def test_a_blank_line_after_a_split_crlf_is_seen() -> None:
    assert decoded([b"data: x\r", b"\n", b"\n"]) == [(b"", b"x")]


def test_a_byte_order_mark_may_be_split() -> None:
    assert decoded([b"\xef", b"\xbb", b"\xbfdata: x\n\n"]) == [(b"", b"x")]


def test_what_only_looks_like_a_byte_order_mark_is_kept() -> None:
    assert decoded([b"\xef", b"\xbb", b"x\ndata: y\n\n"]) == [(b"", b"y")]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_frame_may_not_pass_the_limit(size: int) -> None:
    frame = b"data: " + b"x" * 94
    for body, passes in ((frame + b"\n\n", True), (frame + b"y\n\n", False)):
        decoder = SSEDecoder(max_frame=100)
        chunks = [body[at : at + size] for at in range(0, len(body), size)]
        if passes:
            assert [frame for chunk in chunks for frame in decoder.feed(chunk)] == [(b"", b"x" * 94)]
        else:
            with pytest.raises(FrameTooLarge):
                for chunk in chunks:
                    decoder.feed(chunk)


def test_many_frames_may_pass_it_together() -> None:
    assert len(decoded([b"data: x\n\n" * 1000])) == 1000


EVENTS: list[dict[str, Any]] = [
    {"type": "ping"},
    {"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta", "text": 'a"\\\n\r\u2028é😀\x00\x7f'}},
    {"type": "content_block_delta", "index": 3, "delta": {"type": "thinking_delta", "thinking": "x"}},
    {"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": '{"a":'}},
    {"type": "content_block_delta", "index": 3, "delta": {"type": "signature_delta", "signature": "s"}},
    {"type": "content_block_delta", "index": 3, "delta": {"type": "citations_delta", "citation": {"a": [1]}}},
    {"type": "message_stop"},
]


def test_events_come_back_as_they_were() -> None:
    frames = decoded([encode_events(EVENTS)])
    assert [json.loads(data) for _, data in frames] == EVENTS
    assert [name.decode() for name, _ in frames] == [event["type"] for event in EVENTS]


@given(st.text())
def test_every_text_comes_back(text: str) -> None:
    event = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    [(_, data)] = decoded([encode_events([event])])
    assert data == dump_json(event).encode()
    assert json.loads(data) == event


def test_half_a_surrogate_pair_is_escaped_and_the_halves_join_again() -> None:
    halves = ["\ud83d", "\ude00"]
    events = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": half}} for half in halves
    ]
    frames = decoded([encode_events([{"type": "ping"}, *events])])
    assert "".join(json.loads(data)["delta"]["text"] for _, data in frames[1:]) == "\ud83d\ude00"
    assert json.loads(encode_json({"text": "é" + "".join(halves)})) == {"text": "é😀"}


@given(st.text(alphabet=st.characters(codec=None)))
def test_json_of_any_text_is_utf8(text: str) -> None:
    assert json.loads(encode_json([text])) == json.loads(json.dumps([text]))


@pytest.mark.parametrize(
    "text", ["NaN", "[Infinity]", "-Infinity", "1e999", "-1e999", "", " ", "{} {}", "[1]x", "\u00a0{}"]
)
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        load_json(text)


@pytest.mark.parametrize("text", [' {"a":1}', "\r\n\t[1.5]\n ", '"x"', "1e3", "null"])
def test_what_is_json_is_read(text: str) -> None:
    assert load_json(text) == json.loads(text)
