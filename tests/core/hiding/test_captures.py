"""What no capture may hold, shape by shape."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

from samples import rows

from proxy.core.hiding.keys import Level
from proxy.core.hiding.texts import redacted_error, redacted_text
from proxy.core.hiding.walk import BOUNDS, redacted, redacted_headers

MAX_DEPTH = BOUNDS[Level.CAPTURE].depth
DATA = base64.b64encode(random.Random(1).randbytes(3000)).decode()
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + random.Random(2).randbytes(90)).decode()
JPEG = base64.b64encode(b"\xff\xd8\xff\xe0" + random.Random(3).randbytes(90)).decode()
WEBP = base64.b64encode(b"RIFF\x14\0\0\0WEBPVP8L" + random.Random(4).randbytes(12)).decode()
PDF = base64.b64encode(b"%PDF-1.4\n" + random.Random(5).randbytes(90)).decode()
URL = f"data:image/png;base64,{PNG}"
JWT = "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"


def hidden(text: str) -> str:
    return f"[redacted len={len(text)}]"


@rows(
    "value, shown",
    [
        # the wire document's examples
        (
            {"image_url": {"url": "DATA:IMAGE/PNG;base64,AAAA"}},
            {"image_url": {"url": "[redacted data-url len=26]"}},
        ),
        (
            {"source": {"type": "BASE64", "data": "QUJD"}},
            {"source": {"type": "BASE64", "data": "[redacted len=4]"}},
        ),
        ({"data": "plain"}, {"data": "plain"}),
        # the policy of a user in auto mode
        ({"safeguards": [{"type": "a", "classifier_context": {"/home/me": 1}}]}, {"safeguards": "[redacted]"}),
        ({"properties": {"safeguards": {"type": "string"}}}, {"properties": {"safeguards": {"type": "string"}}}),
        ({"output": "data:image/png;base64,AAAA"}, {"output": "[redacted data-url len=26]"}),
        # credentials and persons, by key
        ({"Authorization": "Bearer a"}, {"Authorization": "[redacted len=8]"}),
        ({"accessToken": "abc", "ACCESS-TOKEN": "abc"}, {"accessToken": hidden("abc"), "ACCESS-TOKEN": hidden("abc")}),
        (
            {"user_id": "u", "sub": "s", "email": "e"},
            {"user_id": hidden("u"), "sub": hidden("s"), "email": hidden("e")},
        ),
        ({"password": 1234, "secret": None, "token": True}, {"password": "[redacted]", "secret": None, "token": True}),
        ({"identity": {"a": ["b", 1], "c": {}}}, {"identity": {"a": ["[redacted len=1]", "[redacted]"], "c": {}}}),
        ({"db_password": "x", "page_token": "y"}, {"db_password": hidden("x"), "page_token": hidden("y")}),
        ({"authorization_token": "abc"}, {"authorization_token": hidden("abc")}),
        ({"max_tokens": 5, "input_tokens": 6, "tokens": "a"}, {"max_tokens": 5, "input_tokens": 6, "tokens": "a"}),
        # a schema keeps its form: it is sent back to the sandbox
        (
            {"properties": {"email": {"type": "string"}, "image_url": {"type": "string"}}},
            {"properties": {"email": {"type": "string"}, "image_url": {"type": "string"}}},
        ),
        ({"properties": {"email": "a@b.c"}}, {"properties": {"email": hidden("a@b.c")}}),
        ({"$defs": {"identity": {"type": "object"}}}, {"$defs": {"identity": {"type": "object"}}}),
        # of an error, not of a sign-in
        ({"code": "not_found", "message": "m"}, {"code": "not_found", "message": "m"}),
        ({"code": "4/0AbCd", "message": "m"}, {"code": hidden("4/0AbCd"), "message": "m"}),
        ({"code": "not_found"}, {"code": hidden("not_found")}),
        # the input of a tool as text is its input
        ({"arguments": '{"password": "abc"}'}, {"arguments": '{"password":"[redacted len=3]"}'}),
        ({"arguments": '{"path":  "abc"}'}, {"arguments": '{"path":  "abc"}'}),
        ({"arguments": '{"path'}, {"arguments": '{"path'}),
        # keys are texts as well
        ({f"see {URL}": 1}, {f"see [redacted data-url len={len(URL)}]": 1}),
        ({"token": {f"x {JWT}": 1}}, {"token": {f"x [redacted token len={len(JWT)}]": "[redacted]"}}),
        ({DATA: {DATA: 1}}, {f"[redacted base64 len={len(DATA)}]": {f"[redacted base64 len={len(DATA)}]": 1}}),
        # pictures, in the shapes of the wires
        ({"image_url": "https://a.test/b.png"}, {"image_url": "[redacted len=20]"}),
        (
            {"type": "base64", "media_type": "image/png", "data": "QUJD"},
            {"type": "base64", "media_type": "image/png", "data": hidden("QUJD")},
        ),
        (
            {"type": "base64", "media_type": "application/pdf", "data": "QUJD"},
            {"type": "base64", "media_type": "application/pdf", "data": hidden("QUJD")},
        ),
        (
            {"type": "text", "media_type": "text/plain", "data": "words"},
            {"type": "text", "media_type": "text/plain", "data": "words"},
        ),
        (
            {"inlineData": {"mimeType": "image/png", "data": "QUJD"}},
            {"inlineData": {"mimeType": "image/png", "data": hidden("QUJD")}},
        ),
        ({"inline_data": {"data": "QUJD"}}, {"inline_data": {"data": hidden("QUJD")}}),
        (
            {"type": "image", "data": "QUJD", "mimeType": "image/png"},
            {"type": "image", "data": hidden("QUJD"), "mimeType": "image/png"},
        ),
        ({"type": "image", "data": "QUJD"}, {"type": "image", "data": hidden("QUJD")}),
        ({"file_data": "data:application/pdf;base64,QUJD"}, {"file_data": "[redacted len=32]"}),
        ({"b64_json": "QUJD"}, {"b64_json": hidden("QUJD")}),
        ({"partial_image_b64": "QUJD"}, {"partial_image_b64": hidden("QUJD")}),
        (
            {"type": "image_generation_call", "result": "QUJD"},
            {"type": "image_generation_call", "result": hidden("QUJD")},
        ),
        ({"type": "web_search_call", "result": "words"}, {"type": "web_search_call", "result": "words"}),
        (
            {"input_audio": {"data": "QUJD", "format": "wav"}},
            {"input_audio": {"data": hidden("QUJD"), "format": "wav"}},
        ),
        ({"audio": {"id": "a", "data": "QUJD"}}, {"audio": {"id": "a", "data": hidden("QUJD")}}),
        ({"mimeType": "image/png", "blob": "QUJD"}, {"mimeType": "image/png", "blob": hidden("QUJD")}),
        ({"content_type": "image/png", "data": "QUJD"}, {"content_type": "image/png", "data": hidden("QUJD")}),
        ({"image": b"1234", "more": [bytearray(2)]}, {"image": "[bytes len=4]", "more": ["[bytes len=2]"]}),
        # what only the service can read
        ({"encrypted_content": "abc"}, {"encrypted_content": hidden("abc")}),
        (
            {"type": "thinking", "thinking": "words", "signature": "abc"},
            {"type": "thinking", "thinking": "words", "signature": hidden("abc")},
        ),
        ({"type": "redacted_thinking", "data": "abc"}, {"type": "redacted_thinking", "data": hidden("abc")}),
        ({"type": "signature_delta", "signature": "abc"}, {"type": "signature_delta", "signature": hidden("abc")}),
        ({"name": "sign", "input": {"signature": "abc"}}, {"name": "sign", "input": {"signature": "abc"}}),
        # the rest stays
        (
            {"a": [1, 2.5, True, None, "words"], "b": float("inf")},
            {"a": [1, 2.5, True, None, "words"], "b": "inf"},
        ),
    ],
)
def test_values(value: Any, shown: Any) -> None:
    assert redacted(value) == shown


@rows(
    "text, shown",
    [
        ("short", "short"),
        (f"see {URL} there", f"see [redacted data-url len={len(URL)}] there"),
        (f"![a]({URL})", f"![a]([redacted data-url len={len(URL)}])"),
        ("a DATA:application/pdf;name=a.pdf;base64,AAAA b", "a [redacted data-url len=43] b"),
        ('x data:image/png;name="a b.png";base64,QUJD!', "x [redacted data-url len=41]!"),
        ("data:image/png; base64, QUJD", "[redacted data-url len=28]"),
        ("data:image%2Fpng%3Bbase64%2CQUJD!", "[redacted data-url len=32]!"),
        ("data:text/html,<b>hello</b>", "data:text/html,<b>hello</b>"),
        ("the base64, and data: more", "the base64, and data: more"),
        # JSON in a text, once and twice
        (json.dumps({"url": URL}), json.dumps({"url": f"[redacted data-url len={len(URL)}]"})),
        ('"data:image\\/png;base64,AA\\/A"', '"[redacted data-url len=28]"'),
        (f'{{"data":"{PNG}"}}', f'{{"data":"[redacted base64 len={len(PNG)}]"}}'),
        (json.dumps(json.dumps({"data": JPEG})), None),
        (f"picture:\\n{PNG}", None),
        (JPEG.replace("/", "\\/"), None),
        (f"/a/{PNG}", None),
        ('{"type":"image/png","data":"QUJDREVG"}', '{"type":"image/png","data":"[redacted len=8]"}'),
        ('{"data":"QUJDREVG"}', '{"data":"QUJDREVG"}'),
        (WEBP, f"[redacted base64 len={len(WEBP)}]"),
        (PDF, f"[redacted base64 len={len(PDF)}]"),
        # data of unknown kind, and what only looks like it
        (f"dump: {DATA} end", f"dump: [redacted base64 len={len(DATA)}] end"),
        ("a" * 5000, "a" * 5000),
        ("0123456789abcdef" * 100, "0123456789abcdef" * 100),
        (
            "/usr/lib/python3/dist_packages/some/module/of/mine/" * 3,
            "/usr/lib/python3/dist_packages/some/module/of/mine/" * 3,
        ),
        # in lines, as programs print it
        ("$ base64 a\n" + "\n".join(DATA[at : at + 76] for at in range(0, len(DATA), 76)) + "\n$ ", None),
        (f"x data:image/gif;base64,{DATA[:76]}\n{DATA[76:152]}\nAA==\nwords", "x [redacted data-url len=180]\nwords"),
        # credentials
        (f"token {JWT}!", f"token [redacted token len={len(JWT)}]!"),
        ("Authorization: Bearer abcdefgh.12", "Authorization: Bearer [redacted len=11]"),
        ("the bearer of news", "the bearer of news"),
        ("key sk-abcdefghijklmnopqrstuvwx", "key [redacted token len=27]"),
        ('{"access_token": "abcd"}', '{"access_token": "[redacted len=4]"}'),
        ('{\\"refreshToken\\":\\"abcd\\"}', '{\\"refreshToken\\":\\"[redacted len=4]\\"}'),
        ('{"password": "ab\\"cd", "x": "y"}', '{"password": "[redacted len=6]", "x": "y"}'),
        ('{"user_id":"abcdefgh', '{"user_id":"[redacted len=8]'),
    ],
)
def test_texts(text: str, shown: str | None) -> None:
    found = redacted_text(text)
    if shown is not None:
        assert found == shown
    else:
        assert "[redacted base64 len=" in found
    for secret in (PNG, JPEG, DATA, JWT):
        assert secret[8:40] not in found and secret[40:72] not in found.replace("\n", "")


def test_a_text_that_is_a_picture_is_left_out_whole() -> None:
    text = "data:image/png;base64,AAAA\n\nand more"
    assert redacted_text(text) == f"[redacted data-url len={len(text)}]"


@rows(
    "text",
    [
        "\\" * 400_000,
        "data:" * 80_000,
        "data:image/png;base64," + "\\" * 400_000,
        '"access_token"' * 30_000,
        "bearer " * 60_000,
        "eyJ" * 130_000,
        "eyJaaaaaaa." * 40_000,
        ("A" * 70 + "\n") * 6_000 + "!",
        "/9j/" * 100_000,
        '"token":"' * 50_000,
        '"token":\\"' + "\\" * 400_000,
        "data:" + ";a" * 200_000,
        "data:" + "%3b" * 130_000,
    ],
)
def test_no_text_takes_long(text: str) -> None:
    redacted_text(text)


def test_no_keys_take_long() -> None:
    names = ["_" * (n % 100) + "data" + "-" * (n // 100) for n in range(5_000)]
    assert len(redacted(dict.fromkeys(names, "x"))) == len(names)  # all are the same key


def test_depth() -> None:
    deep: Any = "end"
    for _ in range(MAX_DEPTH + 20):
        deep = {"a": [deep]}
    text = json.dumps(redacted(deep))
    assert text.count("[depth-limit]") == 1 and text.count("{") == MAX_DEPTH / 2
    assert json.dumps(redacted({"token": deep})).count("[redacted]") == 1


@rows(
    "name, shown",
    [
        ("Authorization", False),
        ("Proxy-Authorization", False),
        ("x-api-key", False),
        ("X-Goog-Api-Key", False),
        ("cookie", False),
        ("set-cookie", False),
        ("x-xai-token-auth", False),
        ("ChatGPT-Account-Id", False),
        ("x-claude-code-agent-id", False),
        ("x-claude-code-parent-agent-id", False),
        ("X-Msh-Device-Id", False),
        ("x-some-secret", False),
        ("Ocp-Apim-Subscription-Key", False),
        ("x-client-key", False),
        ("x-jwt-assertion", False),
        ("Idempotency-Key", True),
        ("x-claude-code-session-id", True),
        ("session_id", True),
        ("x-codex-window-id", True),
        ("user-agent", True),
        ("anthropic-ratelimit-tokens-limit", True),
        ("www-authenticate", True),
        ("x-request-id", True),
        (":authority", True),
    ],
)
def test_headers(name: str, shown: bool) -> None:
    assert redacted_headers([(name, "value")]) == {name: "value" if shown else hidden("value")}


def test_headers_that_come_twice_and_values() -> None:
    pairs = [("a", "1"), ("b", f"x {JWT}"), ("a", "2"), ("a", "3"), ("location", "https://u:p@a.test/?code=abc")]
    assert redacted_headers(pairs) == {
        "a": ["1", "2", "3"],
        "b": f"x [redacted token len={len(JWT)}]",
        "location": "https://[redacted]@a.test/?code=[redacted len=3]",
    }


def test_error_texts() -> None:
    text = "GET https://a.test/x?access_token=abc&token=abc&key=abc&n=1 with Basic dXNlcjpwYXNz failed"
    assert redacted_error(text) == (
        "GET https://a.test/x?access_token=[redacted len=3]&token=[redacted len=3]&key=[redacted len=3]&n=1"
        " with Basic [redacted len=12] failed"
    )
