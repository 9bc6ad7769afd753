"""What each level hides, key by key, and what a log shows of other values."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

import pytest
from samples import rows

from proxy.core.hiding.keys import TABLE, Hides, Level, Row, is_secret_key
from proxy.core.hiding.secret import Secret
from proxy.core.hiding.texts import cut_text, redacted_error, redacted_text, without_parameters
from proxy.core.hiding.walk import BOUNDS, redact, redacted, redacted_headers, reported
from proxy.core.sse import dump_printable

MAX_VALUES = BOUNDS[Level.LOG].values

#: What shows a value at each level.
SHOW: dict[Level, Callable[[Any], Any]] = {
    Level.LOG: redact,
    Level.CAPTURE: redacted,
    Level.REPORT: reported,
    Level.RECORD: lambda value: reported(value, Level.RECORD),
}
NAMES = [(row, name) for row in TABLE for name in row.names]


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
def test_values(value: Any, shown: Any) -> None:
    assert redact(value) == shown


class TestKeys:
    @pytest.mark.parametrize("level", Level)
    @pytest.mark.parametrize("row, name", NAMES, ids=[name for _, name in NAMES])
    def test_every_key_of_the_table_is_hidden_from_its_level_on(self, row: Row, name: str, level: Level) -> None:
        for key in spellings(name):
            value: Any = ["words"] if row.rule is Hides.LIST else "words"
            shown = SHOW[level]({"in": [{"type": "image", key: value, "beside": "seen"}]})
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
                assert (
                    redacted_text(f"see {quoted}") == f"see {quoted.replace('words', '[redacted len=5]')}"
                ) is row.prose
            if row.level is Level.LOG:
                assert without_parameters(f"{key}=words") == f"{key}=[redacted len=5]"
                assert redact([(key, "words"), ("a", "b")]) == [[key, "[redacted len=5]"], ["a", "b"]]

    @pytest.mark.parametrize("key", ["status_code", "encode", "accesses", "input_tokens", "message"])
    def test_names_that_merely_look_alike_stay(self, key: str) -> None:
        assert not is_secret_key(key)

    @pytest.mark.parametrize("level", Level)
    def test_secrets_wherever_they_are(self, level: Level) -> None:
        secret = Secret("hunter2")
        value = {"a": secret, "b": [secret], "c": {"access": secret}, "d": (1, {secret}), secret: 1, "email": secret}
        shown = SHOW[level](value)
        assert "hunter2" not in repr(shown)
        assert shown["a"] == shown["b"][0] == shown["c"]["access"] == "[redacted len=7]"
        assert shown["[redacted len=7]"] == 1

    def test_the_input_stays_as_it_was(self) -> None:
        value = {"code": "abc", "list": [1, {"cookie": "x"}]}
        redact(value)
        assert value == {"code": "abc", "list": [1, {"cookie": "x"}]}


class TestBounds:
    def test_everything_fits_into_json(self) -> None:
        values = [float("nan"), float("inf"), 1 << 20_000, 1.5, True, None, object(), {1: 2}, "\ud800"]
        assert json.loads(dump_printable(redact(values)))[:3] == ["nan", "inf", "[int bits=20001]"]

    def test_many_values(self) -> None:
        shown = redact([0] * (MAX_VALUES * 2))
        assert len(shown) == MAX_VALUES + 1 and shown[-1] == "[size-limit]"
        assert redact([[0] * MAX_VALUES, "words"]) == [[*[0] * (MAX_VALUES - 2), "[size-limit]"], "words"]
        assert redact(dict.fromkeys(range(MAX_VALUES * 2), 0))["…"] == "[size-limit]"

    def test_a_lone_surrogate_is_cut_without_error(self) -> None:
        assert cut_text("\ud800" * 3, 2) == "??… [+1 bytes]"


class TestQueries:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("code=abc&state=1", "code=[redacted len=3]&state=1"),
            ("?a=1&Access_Token=abc", "?a=1&Access_Token=[redacted len=3]"),
            ("https://host/x?api_key=abc#top", "https://host/x?api_key=[redacted len=3]#top"),
            ("https://host/x#id_token=abc", "https://host/x#id_token=[redacted len=3]"),
            ("/x?c%6Fde=abc", "/x?c%6Fde=[redacted len=3]"),
            ("/x?next=/y?code=abc&x=1", "/x?next=/y?code=[redacted len=3]&x=1"),
            ("/x?code=a?b;c=d", "/x?code=[redacted len=7]"),
            ("GET /x?code=abc HTTP/1.1", "GET /x?code=[redacted len=3] HTTP/1.1"),
            ("/x?code=", "/x?code=[redacted len=0]"),
            ("status_code=200&encode=1", "status_code=200&encode=1"),
            ("the code is abc", "the code is abc"),
            ("http://me:pass@proxy:8080/", "http://[redacted]@proxy:8080/"),
        ],
    )
    def test_values_of_secret_parameters(self, text: str, shown: str) -> None:
        assert without_parameters(text) == shown
        assert redact({"query": text}) == {"query": shown}

    def test_a_cut_text_keeps_no_start_of_a_secret(self) -> None:
        assert "sss" not in redact("/x?" + "a" * 3_980 + "&code=" + "s" * 100)

    @pytest.mark.parametrize("text", ["?" * 200_000, "&a=" * 70_000, "?" + "a" * 200_000, "://" * 70_000 + "@="])
    def test_time_grows_with_the_length_alone(self, text: str) -> None:
        start = time.process_time()
        without_parameters(text)
        assert time.process_time() - start < 1.0  # quadratic would be minutes
