"""What the service stores with us and reads back, and answers that come only so."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from samples import rows

from proxy.providers.p5_cursor.run.requests import (
    MAX_BLOB_BYTES,
    MAX_BLOBS,
    MAX_PARKED,
    MAX_PARKED_BYTES,
    MAX_RUN_BYTES,
    Blobs,
)

DIGEST = sha256(b"x").digest()


def put(blobs: Blobs, blob_id: bytes, data: bytes) -> Any:
    answer = blobs.answer({"id": 2, "set_blob_args": {"blob_id": blob_id, "blob_data": data}})
    assert answer["kv_client_message"].pop("id") == 2
    return answer["kv_client_message"]["set_blob_result"]


def get(blobs: Blobs, blob_id: bytes) -> Any:
    return blobs.answer({"get_blob_args": {"blob_id": blob_id}})["kv_client_message"]["get_blob_result"]


@rows(
    "message, answer",
    [
        ({"set_blob_args": {"blob_id": b"\1\2", "blob_data": b"{}"}}, {"set_blob_result": {}}),
        ({"id": 1, "set_blob_args": {"blob_id": b"\1\2", "blob_data": b"{}"}}, {"id": 1, "set_blob_result": {}}),
        ({"id": 1, "set_blob_args": {"blob_id": b"\1\2"}}, {"id": 1, "set_blob_result": {}}),
        ({"set_blob_args": {}}, {"set_blob_result": {}}),
        ({"id": 4, "get_blob_args": {"blob_id": b"k"}}, {"id": 4, "get_blob_result": {"blob_data": b"known"}}),
        ({"get_blob_args": {"blob_id": b"\x0a\2hi"}}, {"get_blob_result": {"blob_data": b"\x0a\2hi"}}),
        ({"get_blob_args": {"blob_id": b"x" * 31}}, {"get_blob_result": {"blob_data": b"x" * 31}}),
        ({"get_blob_args": {"blob_id": b"x" * 33}}, {"get_blob_result": {"blob_data": b"x" * 33}}),
        ({"get_blob_args": {}}, {"get_blob_result": {"blob_data": b""}}),
        ({"id": 4, "get_blob_args": {"blob_id": DIGEST}}, {"id": 4, "get_blob_result": {}}),
        ({"id": 5}, {"id": 5}),
        ({"span_context": {}}, {}),
    ],
)
def test_every_request_is_answered(message: dict[str, Any], answer: dict[str, Any]) -> None:
    blobs = Blobs()
    put(blobs, b"k", b"known")
    assert blobs.answer(message) == {"kv_client_message": answer}
    assert blobs.missed is (answer == {"id": 4, "get_blob_result": {}})


def test_internal_error_on_a_later_turn() -> None:
    """The service takes a hole for history: a run that ends so after a miss may be started once more."""
    blobs = Blobs()
    put(blobs, DIGEST, b"held")
    assert get(blobs, DIGEST) == {"blob_data": b"held"}
    assert not blobs.missed
    assert get(blobs, sha256(b"y").digest()) == {}
    assert blobs.missed


def test_an_empty_blob_is_not_a_hole() -> None:
    blobs = Blobs()
    put(blobs, DIGEST, b"")
    assert get(blobs, DIGEST) == {"blob_data": b""}


def test_a_blob_over_the_bound_is_refused() -> None:
    blobs = Blobs()
    assert put(blobs, b"a", bytes(MAX_BLOB_BYTES)) == {}
    assert put(blobs, b"b", bytes(MAX_BLOB_BYTES + 1))["error"]["message"]
    assert get(blobs, b"b") == {"blob_data": b"b"}
    # what there is may be replaced, and makes room
    assert put(blobs, b"c", bytes(MAX_RUN_BYTES - MAX_BLOB_BYTES)) == {}
    assert put(blobs, b"d", b"x")["error"]["message"]
    assert put(blobs, b"a", b"x") == {}
    assert put(blobs, b"d", b"x") == {}
    assert get(blobs, b"a") == {"blob_data": b"x"}


def test_only_so_many_blobs_are_held() -> None:
    blobs = Blobs()
    for number in range(MAX_BLOBS):
        assert put(blobs, b"%d" % number, b"x") == {}
    assert put(blobs, b"more", b"x")["error"]["message"]
    assert put(blobs, b"1", b"y") == {}


def said(content: Any, role: str = "assistant") -> bytes:
    return json.dumps({"role": role, "content": content}, separators=(",", ":")).encode()


@rows(
    "stored, text",
    [
        ([said("Hi")], "Hi"),
        ([said([{"type": "text", "text": "Hi "}, {"type": "text", "text": "you"}])], "Hi you"),
        ([said([{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "Hi"}, {"type": "tool-call"}])], "Hi"),
        ([b'{ "content": "Hi", "id": 1, "role": "assistant" }'], "Hi"),
        ([said("Be brief", "system"), said("Q", "user"), said("Hi")], "Hi"),
        ([said("I look."), said("Found.")], "I look.\n\nFound."),
        # states of one answer
        ([said("H"), said("Hi"), said("Hi you")], "Hi you"),
        ([said("Hi you"), said("Hi")], "Hi you"),
        ([said("Hi"), said("Hi")], "Hi"),
        ([said(""), said([]), said(None), said(3)], ""),
        ([said('"assistant"', "user")], ""),
        ([b'{"role":"assistant","content":"Hi"', b'{"role":"assistant","content":"\xff"}', b'["assistant"]'], ""),
        ([b'{"assistant":' + b"[" * 100_000], ""),
        ([b"\x0a\x02Hi", b"", b"{}"], ""),
        ([], ""),
    ],
)
def test_answer_missing_although_the_turn_ended(stored: list[bytes], text: str) -> None:
    blobs = Blobs()
    for data in stored:
        put(blobs, sha256(data).digest(), data)
    assert blobs.parked_text() == text


def test_only_so_much_is_read_for_an_answer() -> None:
    blobs = Blobs()
    put(blobs, b"long", said("x" * MAX_PARKED_BYTES))
    assert blobs.parked_text() == ""
    put(blobs, b"half", said("y" * (MAX_PARKED_BYTES // 2)))
    put(blobs, b"more", said("z" * (MAX_PARKED_BYTES // 2)))
    assert set(blobs.parked_text()) == {"z"}
    for number in range(MAX_PARKED + 1):
        put(blobs, b"%d" % number, said(f"part {number}."))
    parts = blobs.parked_text().split("\n\n")
    assert (parts[0], parts[-1], len(parts)) == ("part 1.", f"part {MAX_PARKED}.", MAX_PARKED)
