"""Texts without credentials, persons and data, as logs, captures and headers show them."""

from __future__ import annotations

import base64
import json
import random
import time

import pytest
from samples import rows

from proxy.core.hiding.secret import BLANK, Secret, blanked, length_note
from proxy.core.hiding.texts import cut_text, log_text, masked, redacted_error, redacted_text, without_parameters
from proxy.core.hiding.walk import redacted_headers

DATA = base64.b64encode(random.Random(1).randbytes(3000)).decode()
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + random.Random(2).randbytes(90)).decode()
JPEG = base64.b64encode(b"\xff\xd8\xff\xe0" + random.Random(3).randbytes(90)).decode()
WEBP = base64.b64encode(b"RIFF\x14\0\0\0WEBPVP8L" + random.Random(4).randbytes(12)).decode()
PDF = base64.b64encode(b"%PDF-1.4\n" + random.Random(5).randbytes(90)).decode()
URL = f"data:image/png;base64,{PNG}"
JWT = "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"


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


#: Headers beyond those of the table of keys.
HIDDEN_HEADERS = (
    *("X-Goog-Api-Key", "x-xai-token-auth", "x-claude-code-agent-id", "x-claude-code-parent-agent-id"),
    *("X-Msh-Device-Id", "x-some-secret", "Ocp-Apim-Subscription-Key", "x-client-key", "x-jwt-assertion"),
)
SHOWN_HEADERS = (
    *("Idempotency-Key", "x-claude-code-session-id", "session_id", "x-codex-window-id", "user-agent"),
    *("anthropic-ratelimit-tokens-limit", "www-authenticate", "x-request-id", ":authority"),
)


def test_headers() -> None:
    shown = redacted_headers((name, "value") for name in HIDDEN_HEADERS + SHOWN_HEADERS)
    assert shown == {**dict.fromkeys(HIDDEN_HEADERS, length_note("value")), **dict.fromkeys(SHOWN_HEADERS, "value")}


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
        assert log_text(text) == shown

    def test_a_cut_text_keeps_no_start_of_a_secret(self) -> None:
        assert "sss" not in log_text("/x?" + "a" * 3_980 + "&code=" + "s" * 100)

    @pytest.mark.parametrize("text", ["?" * 200_000, "&a=" * 70_000, "?" + "a" * 200_000, "://" * 70_000 + "@="])
    def test_time_grows_with_the_length_alone(self, text: str) -> None:
        start = time.process_time()
        without_parameters(text)
        assert time.process_time() - start < 1.0  # quadratic would be minutes

    def test_a_lone_surrogate_is_cut_without_error(self) -> None:
        assert cut_text("\ud800" * 3, 2) == "??… [+1 bytes]"


def test_a_secret_of_any_length_is_found_without_holding_the_loop() -> None:
    token, other = Secret("a1-b" * 60_000), Secret("a1-b" * 3)
    begun = time.thread_time()
    assert blanked(f"{token.reveal()} and {other.reveal()}.") == f"{BLANK} and {BLANK}."
    assert time.thread_time() - begun < 0.2


@rows(
    "words",
    [
        "key=Bearer s3cr3topaque",
        "https://h/p?auth=Basic s3cr3topaque=",
        "?token=data:;base64, s3cr3topaque=",
        '{"cookie": "a=1;token=\\"abc\\";sid=s3cr3topaque"}',
        "Bearer sk-abcdefghijklmnop/s3cr3topaque",
        "Bearer gsk-abcdefghijklmnopqrstu/s3cr3topaque",
        "Basic sk-abcdefghijklmnop/s3cr3topaque",
        "\u5bc6eyJ" + "a" * 501 + ".s3cr3topaque.signature",
    ],
)
def test_a_secret_within_another_is_hidden_with_it(words: str) -> None:
    assert "s3cr3topaque" not in redacted_error(words)
    if words.startswith("Bearer"):
        assert "s3cr3topaque" not in masked(words)


@rows(
    "words",
    [
        "var(--mp-color-primary-background)",
        "docs/cs-sk-translation-guide.md",
        "sku SK-2024-0001-ABCD-EF",
        "eyJohnson.smith",
    ],
)
def test_words_of_a_prompt_are_no_tokens(words: str) -> None:
    assert redacted_text(words) == words
