"""Frames out of bytes in any split, and bytes out of events."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from core.strategies import cut_places, json_objects, pieces
from proxy.core.blocks import CITATIONS_DELTA, DELTAS
from proxy.core.messages import block_delta
from proxy.core.sse import (
    MAX_FRAME_LINES,
    FrameTooLarge,
    SSEDecoder,
    dump_json,
    dump_printable,
    encode_data,
    encode_events,
    encode_json,
    load_json,
    mended_text,
)

Frames = list[tuple[bytes, bytes]]

LINES = ["data: a", "data:b", "data:  c", "data", "event: e", "event:", ": comment", "id: 1", "retry: 5", "dat", "x: y"]
lines = st.sampled_from([*LINES, "", ""])
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


@rows(
    "chunks, expected",
    [
        ([b"data: x\r", b"\n", b"\n"], [b"x"]),
        ([b"\xef", b"\xbb", b"\xbfdata: x\n\n"], [b"x"]),
        ([b"\xef", b"\xbb", b"x\ndata: y\n\n"], [b"y"]),
        ([b'data: {"a":1}\r', b'\n\r\ndata: {"ty', b'pe":"b"}\n\n: x'], [b'{"a":1}', b'{"type":"b"}']),
        ([b"data: x\n\n" * 1000], [b"x"] * 1000),
    ],
)
def test_frames_may_be_split_anywhere(chunks: list[bytes], expected: list[bytes]) -> None:
    assert decoded(chunks) == [(b"", data) for data in expected]


def test_a_frame_comes_with_the_chunk_that_completes_it() -> None:
    decoder = SSEDecoder()
    assert [decoder.feed(chunk) for chunk in (b"data: x\r", b"\n\r\nda", b"ta: y\n\n: x")] == [
        [],
        [(b"", b"x")],
        [(b"", b"y")],
    ]


NOTED = b": note\r\nevent: x\r\ndata: first\r\ndata: second\r\n\r\n"
LIVELY = b": keepalive\n\nid: 42\n\nevent: e\n\nretry: 5\n\ndata: complete\n\n"


@pytest.mark.parametrize(("body", "expected"), [(NOTED, (b"x", b"first\nsecond")), (LIVELY, (b"", b"complete"))])
def test_one_event_at_every_split_point(body: bytes, expected: tuple[bytes, bytes]) -> None:
    for at in range(len(body) + 1):
        assert decoded([body[:at], body[at:]]) == [expected]


@rows(
    "body, expected",
    [
        (b"data: x\n\ndata: y", [(b"", b"y")]),
        (b"event: e\ndata: y\n", [(b"e", b"y")]),
        (b"data: x\n\n", []),
        (b"data: x\n\n: bye\n", []),
        (b"", []),
    ],
)
def test_the_end_of_the_body_ends_the_last_frame(body: bytes, expected: Frames) -> None:
    decoder = SSEDecoder()
    decoder.feed(body)
    assert decoder.end() == expected
    assert decoder.end() == []


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_comments_without_end_are_not_kept(size: int) -> None:
    body = b"event: e\n" + b": still here\n" * 200 + b":" + b"x" * 300 + b"\ndata: y\n: z\n\n"
    decoder = SSEDecoder(max_frame=100)
    chunks = [body[at : at + size] for at in range(0, len(body), size)]
    assert [frame for chunk in chunks for frame in decoder.feed(chunk)] == [(b"e", b"y")]


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


# -- bytes out of events: by hand or not, they are those of plain JSON

CHUNK = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": 'm"ö'}
EVENT = {"sequence_number": 3, "item_id": "x_1", "output_index": 2}


def chunk(delta: dict[str, Any], finish: str | None = None, **members: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    return {**CHUNK, "choices": [choice], **members}


def texts_of(text: str) -> tuple[list[Any], list[Any]]:
    """All events and all chunks that are one piece of text."""
    part = {"content_index": 0, "delta": text, "logprobs": []}
    events = [
        *(block_delta(3, delta.of(text)) for delta in DELTAS.values() if delta.is_text),
        {"type": "response.output_text.delta", **EVENT, **part},
        {"type": "response.reasoning_summary_text.delta", **EVENT, "summary_index": 0, "delta": text},
        {"type": "response.function_call_arguments.delta", **EVENT, "delta": text},
    ]
    return events, [chunk({"content": text}), chunk({"reasoning_content": text}, usage=None)]


def check_plain(events: list[Any], chunks: list[Any]) -> None:
    assert decoded([encode_events(events)]) == [(one["type"].encode(), dump_json(one).encode()) for one in events]
    assert encode_data(chunks) == b"".join(b"data: %s\n\n" % dump_json(one).encode() for one in chunks)


@given(st.text() | st.just('a"\\\n\r\u2028é😀\x00\x7f'))
def test_every_text_comes_back(text: str) -> None:
    check_plain(*texts_of(text))


@rows(
    "value",
    [
        {},
        {"error": {"message": "m", "type": "t"}},
        {"choices": []},
        {**CHUNK, "choices": [], "usage": {"total_tokens": 1}},
        chunk({}, "stop"),
        chunk({"content": "a"}, "stop"),
        chunk({"content": None}),
        chunk({"role": "assistant", "content": ""}, usage=None),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"a'}}]}),
        chunk({"annotations": []}),
    ],
)
def test_a_chunk_of_any_shape_comes_back(value: dict[str, Any]) -> None:
    check_plain([], [value])


@pytest.mark.parametrize(
    "event", [{"type": "ping"}, block_delta(3, CITATIONS_DELTA.of({"a": [1]})), {"type": "message_stop"}]
)
def test_an_event_of_any_shape_comes_back(event: dict[str, Any]) -> None:
    check_plain([event], [])


@given(st.lists(json_objects, max_size=3).map(lambda values: [{"x": value} for value in values]))
def test_values_come_back_in_their_order(values: list[dict[str, Any]]) -> None:
    frames = decoded([encode_data(values)])
    assert [(name, json.loads(data)) for name, data in frames] == [(b"", value) for value in values]


def test_half_a_surrogate_pair_is_escaped_and_the_halves_join_again() -> None:
    """Also in what stands beside it in one write."""
    halves = ["é", "\ud83d", "\ude00"]
    events = [event for half in halves for event in texts_of(half)[0]]
    chunks = [chunk for half in halves for chunk in texts_of(half)[1]]
    assert [json.loads(data) for _, data in decoded([encode_events(events)])] == events
    assert [json.loads(data) for _, data in decoded([encode_data(chunks)])] == chunks
    assert json.loads(encode_json({"text": "".join(halves)})) == {"text": "é😀"}


@given(st.text(alphabet=st.characters(codec=None)))
def test_json_of_any_text_is_utf8(text: str) -> None:
    assert json.loads(encode_json([text])) == json.loads(json.dumps([text]))


@rows(
    "data, expected",
    [
        (b'{"a": "b\xffc"}', "b\ufffdc"),
        (b'{"a": "\xed\xa0\xbd"}', "\ufffd" * 3),
        (b'{"a": "\\ud83d"}', "\ufffd"),
        (b'{"a": "\\uDE00x"}', "\ufffdx"),
        (b'{"a": "\\ud83d\\ude00"}', "😀"),
        (b'{"a": "\\ud83d\\ud83d\\ude00"}', "\ufffd😀"),
        (b'{"a": "\\\\ud83d"}', "\\ud83d"),
        (b'{"a": "\\\\\\ud83d"}', "\\\ufffd"),
        (b'{"a": "\\u00e9"}', "é"),
    ],
)
def test_what_is_no_text_is_mended(data: bytes, expected: str) -> None:
    assert load_json(mended_text(data)) == {"a": expected}


@rows("text", ["NaN", "[Infinity]", "-Infinity", "1e999", "-1e999", "", " ", "{} {}", "[1]x", "\u00a0{}"])
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        load_json(text)


@rows("text", [' {"a":1}', "\r\n\t[1.5]\n ", '"x"', "1e3", "null"])
def test_what_is_json_is_read(text: str) -> None:
    assert load_json(text) == json.loads(text)


def test_json_for_people_is_one_readable_line() -> None:
    assert dump_printable({"a": "größe\n"}) == '{"a":"größe\\n"}'


def test_json_for_people_has_nothing_that_a_terminal_obeys() -> None:
    text = "\x1b[2J\x9b\x7f\u2028\u202e\ud800"
    shown = dump_printable(text)
    assert shown == r'"\u001b[2J\u009b\u007f\u2028\u202e\ud800"'
    assert json.loads(shown) == text


def test_a_line_with_a_broken_field_is_not_left_out() -> None:
    assert SSEDecoder().feed(b'\xffata: {"x":1}\n\n') == [(b"", b'\xffata: {"x":1}')]


@rows("number", ["1" + "0" * 308, "-1" + "0" * 400, "1" + "0" * 5000, "1e999"])
def test_a_number_that_no_float_holds_is_no_json(number: str) -> None:
    with pytest.raises(ValueError):
        load_json(f'{{"a":[{number}]}}')
    assert load_json("9" * 308) == int("9" * 308)


@pytest.mark.parametrize("line", [b"data:\n", b"x\n"])
def test_a_frame_of_very_many_lines_is_none(line: bytes) -> None:
    decoder = SSEDecoder()
    with pytest.raises(FrameTooLarge, match=f"{MAX_FRAME_LINES} lines"):
        for _ in range(3):
            decoder.feed(line * (MAX_FRAME_LINES // 2))


def test_comments_are_no_lines_of_a_frame() -> None:
    decoder = SSEDecoder()
    for _ in range(5):
        assert decoder.feed(b": still here\n" * (MAX_FRAME_LINES // 2)) == []
    assert decoder.feed(b"data: {}\n\n") == [(b"", b"{}")]
