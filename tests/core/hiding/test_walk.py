"""What each level hides, key by key, and what logs and captures show of other values."""

from __future__ import annotations

import base64
import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

import pytest
from samples import rows

from proxy.core.hiding.keys import COMMON_WORDS, TABLE, Hides, Level, Row, is_secret_key
from proxy.core.hiding.secret import Secret, length_note
from proxy.core.hiding.texts import log_text, redacted_error, redacted_text, without_parameters
from proxy.core.hiding.walk import MAX_CAPTURE_DEPTH, MAX_VALUES, redacted, redacted_headers
from proxy.core.sse import dump_printable

DATA = base64.b64encode(random.Random(1).randbytes(3000)).decode()
URL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwC"
JWT = "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"

#: What hides secrets in texts at each level.
TEXTS: dict[Level, Callable[[str], str]] = {
    Level.LOG: log_text,
    Level.CAPTURE: redacted_text,
    Level.REPORT: redacted_error,
    Level.RECORD: redacted_error,
}
NAMES = [(row, name) for row in TABLE for name in row.names.split()]


def shown_at(level: Level, value: Any) -> Any:
    return redacted(value, level, TEXTS[level])


def logged(value: Any) -> Any:
    return shown_at(Level.LOG, value)


def spellings(name: str) -> list[str]:
    words = re.split("[-_]", name)
    camel = words[0] + "".join(map(str.title, words[1:]))
    return [name, name.upper(), name.title(), camel, "".join(words), name.replace("_", "-"), f" {name} "]


def nested(depth: int, value: Any) -> Any:
    """The value at this depth below the outermost dict."""
    for _ in range(depth):
        value = {"in": value}
    return value


class Broken(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@dataclass
class Token:
    access_token: str
    seconds: int


class Response:
    def __repr__(self) -> str:
        return "<Authorization: Bearer abc>"


def loop() -> dict[str, Any]:
    """A structure that holds itself."""
    value: dict[str, Any] = {}
    value["in"] = value
    return value


#: value -> what a log shows of it
SHOWN: dict[str, tuple[Any, Any]] = {
    "at any depth and in lists": ({"a": [{"b": {"Cookie": "xyz"}}]}, {"a": [{"b": {"Cookie": "[redacted len=3]"}}]}),
    "a header given as a pair": (
        [("X-Api-Key", "abc"), ("Accept", "text/plain")],
        [["X-Api-Key", "[redacted len=3]"], ["Accept", "text/plain"]],
    ),
    **{kind.__name__: (kind(b"1234"), "[bytes len=4]") for kind in (bytes, bytearray, memoryview)},
    "an exception is its type and first line": (ValueError("first\nsecond"), "ValueError: first"),
    "an exception without words": (KeyError(), "KeyError"),
    "an exception with a long message is cut": (ValueError("x" * 5_000), f"ValueError: {'x' * 3_988}… [+1012 bytes]"),
    "an exception that cannot be printed": (Broken(), "Broken"),
    "a dataclass is its fields": (Token("abc", 3), {"access_token": "[redacted len=3]", "seconds": 3}),
    "an unknown object is its type": ({"r": Response()}, {"r": "[Response]"}),
    "harmless objects are their text": (
        [PurePosixPath("/a"), datetime(2026, 8, 19, 12, tzinfo=UTC)],
        ["/a", "2026-08-19 12:00:00+00:00"],
    ),
    "depth up to the limit": (nested(6, "x"), nested(6, "x")),
    "depth past the limit": (nested(7, "x"), nested(6, "[depth-limit]")),
    "a structure that holds itself": (loop(), nested(6, "[depth-limit]")),
    "a text at the limit": ("é" * 2_000, "é" * 2_000),
    "a cut between characters": ("a" * 3_999 + "é", "a" * 3_999 + "… [+2 bytes]"),
    "a cut between larger characters": ("a" * 3_998 + "😀b", "a" * 3_998 + "… [+5 bytes]"),
    "keys are cut as well": ({"k" * 9_000: 1}, {"k" * 4_000 + "… [+5000 bytes]": 1}),
    **{
        f"{type(value).__name__} under a secret name, not even a length": ({"code": value}, {"code": "[redacted]"})
        for value in (7, None, True, b"abc", ["a"], {"a": "b"})
    },
}


@rows("value, shown", SHOWN.values())
def test_values_in_a_log(value: Any, shown: Any) -> None:
    assert logged(value) == shown


@rows(
    "value",
    [
        {"db_password": "QUJD", "page_token": "QUJD"},
        {"properties": {"email": "QUJD"}},  # no schema
        {"code": "QUJD"},
        {"code": "QUJD", "message": "m"},  # no code of an error
        {"image_url": "QUJD"},
        # pictures, in the shapes of the wires
        {"source": {"type": "BASE64", "data": "QUJD"}},
        {"type": "base64", "media_type": "image/png", "data": "QUJD"},
        {"type": "base64", "media_type": "application/pdf", "data": "QUJD"},
        {"inlineData": {"mimeType": "image/png", "data": "QUJD"}},
        {"inline_data": {"data": "QUJD"}},
        {"type": "image", "data": "QUJD", "mimeType": "image/png"},
        {"type": "image", "data": "QUJD"},
        {"type": "image_generation_call", "result": "QUJD"},
        {"input_audio": {"data": "QUJD", "format": "wav"}},
        {"audio": {"id": "a", "data": "QUJD"}},
        {"mimeType": "image/png", "blob": "QUJD"},
        {"content_type": "image/png", "data": "QUJD"},
        # what only the service can read
        {"type": "thinking", "thinking": "words", "signature": "QUJD"},
        {"type": "redacted_thinking", "data": "QUJD"},
        {"type": "signature_delta", "signature": "QUJD"},
    ],
)
def test_texts_that_a_capture_hides_for_their_place(value: Any) -> None:
    shown = json.dumps(redacted(value))
    assert shown == json.dumps(value).replace("QUJD", length_note("QUJD"))


@rows(
    "value",
    [
        {"data": "plain"},
        {"max_tokens": 5, "input_tokens": 6, "tokens": "a"},
        # a schema keeps its form: it is sent back to the sandbox
        {"properties": {"email": {"type": "string"}, "image_url": {"type": "string"}}},
        {"$defs": {"identity": {"type": "object"}}},
        {"properties": {"safeguards": {"type": "string"}}},
        {"code": "not_found", "message": "m"},  # of an error, not of a sign-in
        {"arguments": '{"path":  "abc"}'},
        {"arguments": '{"path'},
        {"type": "text", "media_type": "text/plain", "data": "words"},
        {"type": "web_search_call", "result": "words"},
        {"name": "sign", "input": {"signature": "abc"}},
        {"a": [1, 2.5, True, None, "words"]},
    ],
)
def test_values_that_a_capture_shows(value: Any) -> None:
    assert redacted(value) == value


@rows(
    "value, shown",
    [
        ({"image_url": {"url": "DATA:IMAGE/PNG;base64,AAAA"}}, {"image_url": {"url": "[redacted data-url len=26]"}}),
        ({"output": "data:image/png;base64,AAAA"}, {"output": "[redacted data-url len=26]"}),
        ({"file_data": "data:application/pdf;base64,QUJD"}, {"file_data": "[redacted len=32]"}),
        ({"image": b"1234", "more": [bytearray(2)]}, {"image": "[bytes len=4]", "more": ["[bytes len=2]"]}),
        # the policy of a user in auto mode
        ({"safeguards": [{"type": "a", "classifier_context": {"/home/me": 1}}]}, {"safeguards": "[redacted]"}),
        # secrets that are no texts
        ({"password": 1234, "secret": None, "token": True}, {"password": "[redacted]", "secret": None, "token": True}),
        ({"identity": {"a": ["b", 1], "c": {}}}, {"identity": {"a": ["[redacted len=1]", "[redacted]"], "c": {}}}),
        # the input of a tool as text is its input
        ({"arguments": '{"password": "abc"}'}, {"arguments": '{"password":"[redacted len=3]"}'}),
        # keys are texts as well
        ({f"see {URL}": 1}, {f"see [redacted data-url len={len(URL)}]": 1}),
        ({"token": {f"x {JWT}": 1}}, {"token": {f"x [redacted token len={len(JWT)}]": "[redacted]"}}),
        ({DATA: {DATA: 1}}, {f"[redacted base64 len={len(DATA)}]": {f"[redacted base64 len={len(DATA)}]": 1}}),
        ({"b": float("inf")}, {"b": "inf"}),
    ],
)
def test_values_in_a_capture(value: Any, shown: Any) -> None:
    assert redacted(value) == shown


class TestKeys:
    @pytest.mark.parametrize("level", Level)
    @pytest.mark.parametrize("row, name", NAMES, ids=[name for _, name in NAMES])
    def test_every_key_of_the_table_is_hidden_from_its_level_on(self, row: Row, name: str, level: Level) -> None:
        for key in spellings(name):
            value: Any = ["words"] if row.rule is Hides.LIST else "words"
            shown = shown_at(level, {"in": [{"type": "image", key: value, "beside": "seen"}]})
            hidden = "words" not in json.dumps(shown)
            assert "seen" in json.dumps(shown)
            if row.rule is not Hides.MEMBER or key.strip().lower() == "data":  # others have other neighbours
                assert hidden == (level >= row.level), key

    @pytest.mark.parametrize("row, name", NAMES, ids=[name for _, name in NAMES])
    def test_a_credential_of_the_table_is_hidden_wherever_it_is_named(self, row: Row, name: str) -> None:
        if row.rule is not Hides.SECRET:
            return
        for key in spellings(name)[:-1]:
            assert redacted_error(f"/x?{key}=words&a=b") == f"/x?{key}=[redacted len=5]&a=b"
            assert redacted_headers([(key, "words")]) == {key: "[redacted len=5]"}
            for write in (json.dumps, lambda value: json.dumps(json.dumps(value)), str):
                quoted = write({"a": "b", key: "words"})
                assert (redacted_text(f"see {quoted}") == f"see {quoted.replace('words', '[redacted len=5]')}") is (
                    name not in COMMON_WORDS
                )
            if row.level is Level.LOG:
                assert without_parameters(f"{key}=words") == f"{key}=[redacted len=5]"
                assert logged([(key, "words"), ("a", "b")]) == [[key, "[redacted len=5]"], ["a", "b"]]

    @pytest.mark.parametrize("key", ["status_code", "encode", "accesses", "input_tokens", "message"])
    def test_names_that_merely_look_alike_stay(self, key: str) -> None:
        assert not is_secret_key(key)

    @pytest.mark.parametrize("level", Level)
    def test_secrets_wherever_they_are(self, level: Level) -> None:
        secret = Secret("hunter2")
        value = {"a": secret, "b": [secret], "c": {"access": secret}, "d": (1, {secret}), secret: 1, "email": secret}
        shown = shown_at(level, value)
        assert "hunter2" not in repr(shown)
        assert shown["a"] == shown["b"][0] == shown["c"]["access"] == "[redacted len=7]"
        assert shown["[redacted len=7]"] == 1

    def test_the_input_stays_as_it_was(self) -> None:
        value = {"code": "abc", "list": [1, {"cookie": "x"}]}
        logged(value)
        assert value == {"code": "abc", "list": [1, {"cookie": "x"}]}


class TestBounds:
    def test_everything_fits_into_json(self) -> None:
        values = [float("nan"), float("inf"), 1 << 20_000, 1.5, True, None, object(), {1: 2}, "\ud800"]
        assert json.loads(dump_printable(logged(values)))[:3] == ["nan", "inf", "[int bits=20001]"]

    def test_many_values(self) -> None:
        shown = logged([0] * (MAX_VALUES * 2))
        assert len(shown) == MAX_VALUES + 1 and shown[-1] == "[size-limit]"
        assert logged([[0] * MAX_VALUES, "words"]) == [[*[0] * (MAX_VALUES - 2), "[size-limit]"], "words"]
        assert logged(dict.fromkeys(range(MAX_VALUES * 2), 0))["…"] == "[size-limit]"

    def test_no_keys_take_long(self) -> None:
        names = ["_" * (n % 100) + "data" + "-" * (n // 100) for n in range(5_000)]
        assert len(redacted(dict.fromkeys(names, "x"))) == len(names)  # all are the same key

    def test_depth_of_a_capture(self) -> None:
        deep: Any = "end"
        for _ in range(MAX_CAPTURE_DEPTH + 20):
            deep = {"a": [deep]}
        text = json.dumps(redacted(deep))
        assert text.count("[depth-limit]") == 1 and text.count("{") == MAX_CAPTURE_DEPTH / 2
        assert json.dumps(redacted({"token": deep})).count("[redacted]") == 1
