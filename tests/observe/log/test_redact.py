from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

import pytest
from samples import rows

from proxy.core.secret import Secret
from proxy.core.sse import dump_printable
from proxy.observe.log.redact import (
    MAX_VALUES,
    SECRET_KEYS,
    cut_text,
    is_secret_key,
    redact,
    redact_text,
    safe_name,
)

KEYS = [
    *("authorization", "proxy-authorization", "access", "access_token", "refresh", "refresh_token", "id_token", "code"),
    *("code_verifier", "chatgpt-account-id", "cookie", "set-cookie", "x-api-key", "apikey", "api_key"),
]


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
    "depth past the limit": (nested(7, "x"), nested(7, "[depth-limit]")),
    "a structure that holds itself": (loop(), nested(7, "[depth-limit]")),
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
    @pytest.mark.parametrize("key", KEYS)
    @pytest.mark.parametrize("spell", [str.lower, str.upper, str.title, lambda key: key.replace("-", "_")])
    def test_every_listed_name_in_any_spelling(self, key: str, spell: Any) -> None:
        assert redact({spell(key): "Bearer abc"}) == {spell(key): "[redacted len=10]"}

    def test_the_list_is_exactly_that(self) -> None:
        assert {key.replace("-", "_") for key in KEYS} == SECRET_KEYS

    @pytest.mark.parametrize("key", ["status_code", "encode", "accesses", "input_tokens", "message"])
    def test_names_that_merely_look_alike_stay(self, key: str) -> None:
        assert not is_secret_key(key)

    def test_secrets_wherever_they_are(self) -> None:
        secret = Secret("hunter2")
        value = {"a": secret, "b": [secret], "c": {"access": secret}, "d": (1, {secret}), secret: 1}
        shown = redact(value)
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
        assert len(shown) == MAX_VALUES
        assert shown[-1] == "[size-limit]"
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
        assert redact_text(text) == shown
        assert redact({"query": text}) == {"query": shown}

    def test_a_cut_text_keeps_no_start_of_a_secret(self) -> None:
        assert "sss" not in redact("/x?" + "a" * 3_980 + "&code=" + "s" * 100)

    @pytest.mark.parametrize("text", ["?" * 200_000, "&a=" * 70_000, "?" + "a" * 200_000, "://" * 70_000 + "@="])
    def test_time_grows_with_the_length_alone(self, text: str) -> None:
        start = time.process_time()
        redact_text(text)
        assert time.process_time() - start < 1.0  # quadratic would be minutes


class TestSafeName:
    @pytest.mark.parametrize(
        ("part", "name"),
        [
            ("req_1-A.b", "req_1-A.b"),
            *((".", "_."), ("..", "_.."), ("../../etc", ".._.._etc"), ("a/b", "a_b"), ("é\n\0", "___")),
            ("", "unknown"),
            ("x" * 200, "x" * 160),
            ("." * 200, "_" + "." * 159),
        ],
    )
    def test_parts(self, part: str, name: str) -> None:
        assert safe_name(part) == name
