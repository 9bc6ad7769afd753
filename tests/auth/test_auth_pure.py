"""PKCE, JWT claims, printable text: functions without I/O."""

from __future__ import annotations

import base64
import json

from samples import rows

from proxy.auth.jwt import claims
from proxy.auth.pkce import base64url, challenge_of, new_pkce
from proxy.auth.text import printable


def test_challenge_of_rfc_7636_appendix_b() -> None:
    verifier = base64url(
        bytes([116, 24, 223, 180, 151, 153, 224, 37, 79, 250, 96, 125, 216, 173, 187, 186])
        + bytes([22, 212, 37, 77, 105, 214, 191, 240, 91, 88, 5, 88, 83, 132, 141, 121])
    )
    assert verifier == "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    assert challenge_of(verifier) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


def test_new_values_differ_and_have_the_right_form() -> None:
    one, two = new_pkce(), new_pkce()
    assert one.challenge == challenge_of(one.verifier)
    assert len({one.verifier, one.state, two.verifier, two.state}) == 4
    for value in (one.verifier, one.challenge, one.state):
        assert len(value) == 43 and not set(value) & set("+/=")
    assert one.verifier not in repr(one) and one.state not in repr(one)


def test_random_bytes_are_an_argument() -> None:
    drawn = iter([b"\0" * 32, b"\1" * 32])
    pkce = new_pkce(lambda count: next(drawn)[:count])
    assert pkce.verifier == "A" * 43
    assert pkce.state == base64url(b"\1" * 32)


def _token(payload: bytes, padded: bool = False) -> str:
    part = base64.urlsafe_b64encode(payload).decode()
    return f"h.{part if padded else part.rstrip('=')}.s"


@rows("padded", [False, True])
@rows("name", ["a", "ab", "abc", "ü>?~"])
def test_claims_with_and_without_padding(name: str, padded: bool) -> None:
    assert claims(_token(json.dumps({"sub": name}, ensure_ascii=False).encode(), padded)) == {"sub": name}


@rows(
    "token",
    [
        *("invalid", "", "a.b", "a.b.c.d", "..", "h.*.s", "h.YQ.s", "h.é.s", None, 7, b"x"),
        _token(b"[1]"),
        _token(b"\xff\xff"),
        _token(b"[" * 100_000),
        "h." + "A" * 300_000 + ".s",
    ],
)
def test_anything_else_has_no_claims(token: object) -> None:
    assert claims(token) == {}


@rows(
    "text, shown",
    [(" a\r\n\tb\x1b[31m c\0 ", "a b [31m c"), ("\u202eabc\x9b", "abc"), ("x" * 1000, "x" * 399 + "…"), ("", "")],
)
def test_printable(text: str, shown: str) -> None:
    assert printable(text) == shown
