"""What is kept of a stream, and what is only counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proxy.observe.capture.writing import streams
from proxy.observe.capture.writing.files import BLOCK_BYTES, CaptureLimits
from proxy.observe.capture.writing.streams import MAX_KEPT_FRAME_BYTES

from .written import PLENTY, Written, attempt, files, sse

BODY = "008-032-upstream-response-body.sse"


def streamed(written: Written, *chunks: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a stream leaves that goes both ways, and what is said of both."""
    capture = written.begin()
    sent = attempt(capture)
    sent.answered(200, {"content-type": "text/event-stream"})
    for chunk in chunks:
        sent.data(chunk)
        capture.streamed(chunk)
    capture.ended("completed", 200)
    found = files(capture)
    kept = next(value for name, value in found.items() if "-033-" in name)
    summary = next(value for name, value in found.items() if "-061-" in name)
    return found, {"up": kept, "down": summary["downstream"]}


def events(found: dict[str, Any], station: str) -> list[Any]:
    return [value for name, value in found.items() if station in name and name.startswith("events/")]


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_frames_in_any_split(tmp_path: Path, size: int) -> None:
    data = b": hello\n\n" + sse({"type": "a", "text": "\u00e9"}, {"type": "b"}) + b"event: c\ndata: [1]\n\ndata: [DONE]"
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    found, counts = streamed(Written(tmp_path), *chunks)
    assert events(found, "-040-") == events(found, "-050-") == [{"type": "a", "text": "\u00e9"}, {"type": "b"}, [1]]
    assert found[BODY].decode() == (
        'event: a\ndata: {"type":"a","text":"\u00e9"}\n\nevent: b\ndata: {"type":"b"}\n\nevent: c\ndata: [1]\n\n'
        "data: [DONE]\n\n"
    )
    assert counts["up"] == {
        "attempt": 1,
        "error": None,
        "captured_bytes": len(found[BODY]),
        "captured_frames": 4,
        "captured_events": 3,
        "truncated": False,
        "truncated_frames": 0,
        "truncated_events": 0,
        "oversized_frames": 0,
        "malformed": 0,
    }


def test_the_name_of_a_frame_whose_data_has_none(tmp_path: Path) -> None:
    found, _ = streamed(Written(tmp_path), b'event: error\ndata: {"message":"no"}\n\n')
    assert events(found, "-040-") == [{"_sse_event": "error", "message": "no"}]


def test_many_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert streams.MAX_EVENTS == 1024
    monkeypatch.setattr(streams, "MAX_EVENTS", 100)
    found, counts = streamed(Written(tmp_path), sse(*({"type": "a", "n": n} for n in range(150))))
    for station, side in (("-040-", "up"), ("-050-", "down")):
        assert [event["n"] for event in events(found, station)] == [*range(100)]
        assert (counts[side]["captured_events"], counts[side]["truncated_events"]) == (100, 50)
        assert counts[side]["truncated"]
    assert found[BODY].count(b"event: a") == 150


def test_a_large_frame_is_counted(tmp_path: Path) -> None:
    large = {"type": "large", "text": "word " * 14_000}
    found, counts = streamed(Written(tmp_path), sse({"type": "a"}, large, {"type": "b"}))
    assert [event["type"] for event in events(found, "-040-")] == ["a", "b"]
    assert b"word" not in found[BODY] and b": a frame of 70" in found[BODY]
    assert counts["up"]["oversized_frames"] == counts["down"]["oversized_frames"] == 1
    assert counts["up"]["truncated"] and counts["up"]["captured_frames"] == 2


def test_a_large_name_of_a_frame_is_counted(tmp_path: Path) -> None:
    found, counts = streamed(Written(tmp_path), b"event: %s\ndata: {}\n\n" % (b"x" * 70_000))
    assert events(found, "-040-") == [] and counts["up"]["oversized_frames"] == 1


def test_a_large_event_of_a_wire_that_is_no_text(tmp_path: Path) -> None:
    capture = Written(tmp_path).begin()
    attempt(capture).events([{"a": "x" * MAX_KEPT_FRAME_BYTES}, {"b": 1}])
    capture.ended("completed", 200)
    assert events(files(capture), "-040-") == [{"b": 1}]


def test_bytes_of_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_EVENT_BYTES", 100)
    found, counts = streamed(Written(tmp_path), sse(*({"type": "a", "text": "x" * 20} for _ in range(5))))
    assert len(events(found, "-040-")) == len(events(found, "-050-")) == 2
    assert counts["up"]["truncated_events"] == 3


def test_bytes_of_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_RAW_BYTES", 100)
    found, counts = streamed(Written(tmp_path), sse(*({"type": "a", "n": n} for n in range(5))))
    assert found[BODY].count(b"event: a") == 2 and len(found[BODY]) == counts["up"]["captured_bytes"] <= 100
    assert (counts["up"]["truncated_frames"], counts["up"]["captured_events"]) == (3, 5)


def test_the_text_counts_in_the_quota_as_it_grows(tmp_path: Path) -> None:
    limits = CaptureLimits(2**40, 2**30, 10 * BLOCK_BYTES, 2**30)
    capture = Written(tmp_path, limits).begin()
    sent = attempt(capture)  # five blocks, and one for the summary
    for _ in range(20):
        sent.data(b'data: no json "%s"\n\n' % (b"word " * 200))
    capture.ended("completed", 200)
    size = len(next(value for name, value in files(capture).items() if "-032-" in name))
    assert 4 * BLOCK_BYTES - 1100 < size <= 4 * BLOCK_BYTES


def test_pictures_in_frames(tmp_path: Path) -> None:
    url = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUg"
    nested = {"type": "b", "arguments": json.dumps({"image": url})}
    broken = f'data: {{"no json": "{url}"\n\n'.encode()
    found, counts = streamed(Written(tmp_path), sse({"type": "a", "image_url": url}, nested) + broken)
    assert b"iVBOR" not in json.dumps({**found, BODY: found[BODY].decode()}).encode()
    assert counts["up"]["malformed"] == 1 and found[BODY].count(b"[redacted") == 3


def test_a_frame_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from proxy.core.sse import SSEDecoder

    monkeypatch.setattr(streams, "SSEDecoder", lambda: SSEDecoder(1000))
    found, counts = streamed(Written(tmp_path), sse({"type": "a"}), *[b"data: " + b"x" * 600] * 3, sse({"type": "b"}))
    assert [event["type"] for event in events(found, "-040-")] == ["a"]
    assert (counts["up"]["oversized_frames"], counts["up"]["truncated"]) == (1, True)


def test_an_answer_in_one_piece_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.observe.capture.writing.writer.MAX_RAW_BYTES", 10)
    capture = Written(tmp_path, PLENTY).begin()
    sent = attempt(capture)
    sent.answered(200, {"content-type": "application/json"})
    for piece in (b'{"a":"', b"bcdefgh", b'"}'):
        sent.data(piece)
    capture.ended("completed", 200)
    found = files(capture)
    assert found["008-032-upstream-response-body.txt"] == b'{"a":"'
    kept = found["009-033-upstream-response-capture.json"]
    assert (kept["captured_bytes"], kept["truncated"], kept["truncated_bytes"]) == (6, True, 9)
