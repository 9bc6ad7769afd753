"""What a replay puts where redaction took something away."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from samples import rows

from proxy.cli.captures.restoring import SIDE, STAND_IN, Restorer, restored_headers, sample
from proxy.core.convert.responses.signatures import decode_signature, encode_signature
from proxy.core.hiding.walk import redacted, redacted_headers
from proxy.sandbox.p3.input_checks import size_of

PNG = "iVBORw0KGgo" + "A" * 200
URL = f"data:image/png;base64,{PNG}"
SIGNED = encode_signature("p1", "rs_1", "of-another-account") or ""


def restored(value: Any, label: str = "p1") -> tuple[Any, int]:
    """What becomes of a value that was redacted."""
    restorer = Restorer(label, lambda item: f"sealed {item}")
    return restorer.value(json.loads(json.dumps(redacted(value)))), restorer.restored


def image(media_type: str) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": PNG}}


def is_picture(url: str) -> bool:
    head, _, data = url.partition(",")
    return head == "data:image/png;base64" and size_of(base64.b64decode(data)) == (SIDE, SIDE)


CASES: list[tuple[Any, Callable[[Any], Any], Any]] = [
    # value, what is looked at, what it must be
    (image("image/png"), lambda it: it["source"]["data"], sample("image/png")),
    (image("image/webp"), lambda it: it["source"]["data"], sample("image/webp")),
    ({"source": {"type": "base64", "data": PNG}}, lambda it: it["source"]["data"], sample("image/png")),
    ({"type": "image", "data": PNG, "mimeType": "image/gif"}, lambda it: it["data"], sample("image/gif")),
    ({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}},
     lambda it: it["source"]["data"], sample("application/pdf")),
    ({"type": "input_image", "image_url": URL}, lambda it: is_picture(it["image_url"]), True),
    ({"type": "image_url", "image_url": {"url": URL}}, lambda it: is_picture(it["image_url"]["url"]), True),
    ({"source": {"type": "url", "url": URL}}, lambda it: is_picture(it["source"]["url"]), True),
    ({"file_data": "data:application/pdf;base64,JVBERi0="}, lambda it: it["file_data"].split(",")[0],
     "data:application/pdf;base64"),
    ({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
     lambda it: it["input_audio"]["data"], sample("audio/wav")),
    ({"type": "image_generation_call", "result": PNG}, lambda it: it["result"], sample("image/png")),
    ({"type": "reasoning", "id": "rs_7", "encrypted_content": "x"}, lambda it: it["encrypted_content"], "sealed rs_7"),
    ({"type": "reasoning", "encrypted_content": "x"}, lambda it: it["encrypted_content"], f"sealed rs_{STAND_IN}"),
    ({"type": "compaction", "encrypted_content": "x"}, lambda it: it["encrypted_content"], f"sealed cmp_{STAND_IN}"),
    ({"type": "thinking", "thinking": "", "signature": SIGNED},
     lambda it: decode_signature("p1", it["signature"]), (f"rs_{STAND_IN}", f"sealed rs_{STAND_IN}")),
    # a property may be called like a secret
    ({"input_schema": {"properties": {"email": {"type": "string"}}}},
     lambda it: it["input_schema"]["properties"]["email"], {"type": "string"}),
]  # fmt: skip


@rows("value, look, expected", CASES)
def test_a_stand_in_is_of_the_same_kind(value: Any, look: Callable[[Any], Any], expected: Any) -> None:
    found, count = restored(value)
    assert look(found) == expected and PNG not in json.dumps(found)
    assert count == (0 if "input_schema" in value else 1)


#: (a schema under a key like a secret, as it was redacted; what becomes of it)
SCHEMAS = [
    ({"type": "[redacted len=6]", "title": "[redacted len=3]"}, {"type": "string", "title": "[redacted len=3]"}),
    ({"type": "[redacted len=7]", "enum": ["[redacted len=1]"]}, {"type": "integer"}),
    ({"type": "[redacted len=6]", "properties": {}, "required": ["[redacted]"]}, {"type": "object", "properties": {}}),
    ({"type": "[redacted len=5]", "items": {}}, {"type": "array", "items": {}}),
    ({"type": "[redacted]"}, {"type": "string"}),
]  # fmt: skip


@rows("schema, expected", SCHEMAS)
def test_a_schema_is_one_again(schema: Any, expected: Any) -> None:
    assert Restorer("p1", str).value({"token": schema}) == {"token": expected}


@rows(
    "value",
    [
        {"type": "text", "text": "[redacted len=9]"},
        {"pattern": "[redacted]|x", "format": "date", "required": ["a"], "data": "plain", "url": "https://example.com"},
        {"type": "tool_use", "input": {"code": "[redacted len=9]", "email": "[redacted len=9]"}},
        {"type": "redacted_thinking", "data": "[redacted len=9]"},
        {"signature": "of somebody else"},
        [1, None, True, 1.5],
    ],
)
def test_what_is_valid_as_it_is_stays(value: Any) -> None:
    restorer = Restorer("p1", str)
    assert restorer.value(value) == value and restorer.restored == 0


def test_a_signature_keeps_its_item() -> None:
    """Also one that was not redacted: the account is another one."""
    found = Restorer("p1", lambda item: f"sealed {item}").value({"signature": SIGNED})
    assert decode_signature("p1", found["signature"]) == ("rs_1", "sealed rs_1")


def test_headers_of_a_connection_and_of_a_caller_are_not_sent_again() -> None:
    headers = [
        *(("Host", "127.0.0.1:18765"), ("Content-Length", "7"), ("Content-Encoding", "gzip"), ("Accept", "*/*")),
        *(("Authorization", "Bearer abc"), ("x-api-key", "abc"), ("Cookie", "a=b"), ("Origin", "http://evil.example")),
        *(("X-Claude-Code-Session-Id", "s"), ("X-Claude-Code-Agent-Id", "a"), ("anthropic-beta", "x")),
        *(("x-twice", "1"), ("x-twice", "2"), ("x-device-id", "d")),
    ]  # fmt: skip
    assert restored_headers(redacted_headers(headers)) == [
        *(("Accept", "*/*"), ("X-Claude-Code-Session-Id", "s"), ("X-Claude-Code-Agent-Id", STAND_IN)),
        *(("anthropic-beta", "x"), ("x-twice", "1"), ("x-twice", "2")),
    ]


def test_headers_that_http_cannot_carry_are_left_out() -> None:
    """No request had them, but a capture is a file, and one may get it from somebody else."""
    headers = {"x-a": "b\r\nc: d", "x b": "1", "": "1", "x-ü": "1", "x-nul": "\0", "x-good": "grün\tok"}
    assert restored_headers(headers) == [("x-good", "grün\tok")]


@rows("kind", ["png", "jpeg", "gif", "webp"])
def test_samples_are_large_enough_for_every_service(kind: str) -> None:
    assert size_of(base64.b64decode(sample(f"image/{kind}"))) == (SIDE, SIDE)
