"""Where upstreams put the words of their errors."""

from __future__ import annotations

import json
import time
from typing import Any

from hypothesis import given
from samples import rows

from core.strategies import json_values
from proxy.core.error_bodies import MAX_PLAIN, MAX_WORDS, error_event, error_of_body, error_of_value, with_code
from proxy.core.hiding.texts import shown

BOOM = {"message": "boom"}


@rows(
    "body, expected",
    [
        ({"error": {"message": "boom", "code": 5}}, {"message": "boom", "code": 5}),
        ({"error": "boom"}, BOOM),
        ({"message": "boom", "code": "x"}, {"message": "boom", "code": "x"}),
        ({"code": "x", "error": "boom"}, {"message": "boom", "code": "x"}),
        ({"code": 429, "error": "boom", "param": "p"}, {"message": "boom", "code": 429, "param": "p"}),
        ({"code": None, "error": "boom"}, BOOM),
        *(({"error": json.dumps(packed)}, BOOM) for packed in ({"type": "error", "error": BOOM}, BOOM, "boom")),
        (json.dumps({"error": json.dumps({"error": BOOM})}), BOOM),
        *(({"error": text}, {"message": text}) for text in ("{boom", "{curly} words", "[1]")),
        ({"error": '{"error": "<html>x"}'}, {}),
        ([{"error": BOOM}], BOOM),
        ("boom", BOOM),
        ({"detail": "boom"}, BOOM),
        ({"detail": {"message": "boom", "code": "x"}}, {"message": "boom", "code": "x"}),
        ({"detail": {"code": "gone"}}, {"code": "gone", "message": "the upstream refused: gone"}),
        *(({"detail": detail}, BOOM) for detail in ({"error": "boom"}, {"error": BOOM}, {"msg": "boom", "code": "x"})),
        ({"detail": ["boom", {"msg": "bang"}]}, {"message": "boom; bang"}),
        *(({name: [BOOM]}, BOOM) for name in ("errors", "error")),
        (
            {"detail": [{"loc": ["body", "tools", 3, "name"], "msg": "boom"}, {"loc": ["query", "q"], "msg": "bang"}]},
            {"message": "tools[3].name: boom; query.q: bang", "param": "tools[3].name"},
        ),
        ({"detail": [{"loc": 3, "msg": "boom"}, {"loc": []}, 7]}, BOOM),
        *((nothing, {}) for nothing in ({}, [], 5, None, True, "", {"detail": []}, {"detail": {}}, {"error": None})),
        *((page, {}) for page in ({"error": {"message": "<html>x"}}, {"detail": " <!DOCTYPE html>"})),
        ({"error": {"message": "<tool> is no tool"}}, {"message": "<tool> is no tool"}),
        *((nothing, {}) for nothing in ({"message": " "}, {"detail": {"code": 5}}, [{}, {}], "<p>x</p>")),
    ],
)
def test_what_a_json_body_says(body: Any, expected: dict[str, Any]) -> None:
    assert error_of_body(json.dumps(body).encode()) == expected


@rows(
    "body, expected",
    [
        (b"no healthy upstream", {"message": "no healthy upstream"}),
        (b" upstream connect error\n or timeout ", {"message": "upstream connect error or timeout"}),
        (b"3 < 4", {"message": "3 < 4"}),
        (b"x" * MAX_PLAIN, {"message": "x" * MAX_PLAIN}),
        (b"x" * (MAX_PLAIN + 1), {}),
        *((nothing, {}) for nothing in (b"", b" \n", b"<html>", b"<!doctype html>", b"a </p> b", b"\xff", b"a\x00b")),
        (b"[" * 100_000, {}),
    ],
)
def test_what_a_plain_body_says(body: bytes, expected: dict[str, Any]) -> None:
    assert error_of_body(body) == expected


@rows(
    "data, expected",
    [
        ({"error": BOOM, "status": 429}, {"status": 429, "type": "error", "error": BOOM}),
        ({"type": "error", "error": BOOM}, {"type": "error", "error": BOOM}),
        ({"type": "error", "code": "x", "message": "m"}, {"type": "error", "error": {"code": "x", "message": "m"}}),
        ({"type": "busy", "message": "m"}, {"type": "error", "error": {"type": "busy", "message": "m"}}),
        ({"code": "x", "error": "m"}, {"type": "error", "error": {"code": "x", "message": "m"}}),
        ({"error": BOOM, "retry_after": 7}, {"retry_after": 7, "type": "error", "error": BOOM}),
        ({"type": "response.failed", "response": {}}, {"type": "response.failed", "response": {}}),
        ({}, {"type": "error", "error": {}}),
        ([1], {"type": "error", "error": {}}),
    ],
)
def test_an_event_that_is_called_an_error_is_one(data: Any, expected: dict[str, Any]) -> None:
    assert error_event(json.dumps(data).encode()) == expected


@rows(
    "error, expected",
    [
        ({"code": 429, "message": "boom [WKE=a-b:c-d]"}, {"code": "a-b:c-d", "message": "boom"}),
        ({"message": "[WKE=a] boom"}, {"code": "a", "message": "boom"}),
        ({"code": "x", "message": "[WKE=a]"}, {"code": "a", "message": ""}),
        ({"code": "Too bad.", "message": "boom"}, {"code": None, "message": "Too bad: boom"}),
        ({"code": "Too bad", "message": "Too bad, boom"}, {"code": None, "message": "Too bad, boom"}),
        ({"code": "Too bad"}, {"code": None, "message": "Too bad"}),
        *((same, same) for same in ({"code": "x:y", **BOOM}, {"code": 5, "message": 5}, {}, {"message": "[WKE=]"})),
    ],
)
def test_the_code_is_what_a_machine_can_read(error: dict[str, Any], expected: dict[str, Any]) -> None:
    assert with_code(error) == expected


@given(json_values)
def test_any_body_is_survived(value: Any) -> None:
    body = json.dumps({"detail": value}).encode()
    assert error_event(body)["type"] == "error"
    assert isinstance(error_of_body(body).get("message", ""), str)
    with_code({"code": value, "message": value})


@rows("piece", ["=" + "A" * 60, "%" + "Ab1" * 20, "data:;base64", "data:%3b", "Ab1" * 20 + "%"])
def test_words_of_an_error_are_read_once(piece: str) -> None:
    """Data is looked for in time that grows with the length: these took seconds."""
    words = piece * (128 * 1024 // len(piece))
    start = time.process_time()
    shown(words)
    assert time.process_time() - start < 0.5


def test_an_error_that_is_packed_and_long_is_not_unpacked() -> None:
    assert error_of_value('{"error":{"message":"boom"},"a":"' + "x" * MAX_WORDS + '"}') is None
