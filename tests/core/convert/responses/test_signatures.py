"""Encrypted reasoning inside a signature."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from proxy.core.convert.responses.signatures import (
    MAX_CONTENT_BYTES,
    MAX_ID_BYTES,
    decode_signature,
    encode_signature,
    prefix_of,
)

PREFIX = prefix_of("p1")

whole_texts = st.text(alphabet=st.characters(codec="utf-8"), min_size=1)


@given(whole_texts, whole_texts)
def test_what_is_put_in_comes_out(reasoning_id: str, encrypted: str) -> None:
    signature = encode_signature("p1", reasoning_id, encrypted)
    assert signature is not None and signature.startswith(PREFIX)
    assert decode_signature("p1", signature) == (reasoning_id, encrypted)


def test_the_earlier_prefix_is_known() -> None:
    assert decode_signature("p1", "ccp:codex:v1:cnNfMQ:gAAAAAopaque") == ("rs_1", "gAAAAAopaque")


def test_only_the_first_colon_divides() -> None:
    assert decode_signature("p1", PREFIX + "cnNfMQ:a:b:") == ("rs_1", "a:b:")


@given(st.text())
def test_foreign_text_is_nothing(text: str) -> None:
    assert decode_signature("p1", text) is None


@given(st.text(alphabet="cnNfMQ:=-_+/ é\ud800", max_size=20))
def test_broken_text_of_ours_is_nothing_or_whole(text: str) -> None:
    decoded = decode_signature("p1", PREFIX + text)
    assert decoded is None or (decoded[0] and decoded[1])


@rows(
    "value",
    [
        None,
        3,
        [],
        b"x",
        "",
        PREFIX + "cnNfMQ",
        PREFIX + "cnNfMQ:",
        PREFIX + ":x",
        PREFIX + "_w:x",
        PREFIX + "c:x",
        PREFIX + "A" * 5465 + ":x",
        PREFIX + "cnNfMQ:" + "x" * (MAX_CONTENT_BYTES + 1),
        "model-proxy:p1:v2:cnNfMQ:x",
    ],
)
def test_what_is_not_ours_is_nothing(value: Any) -> None:
    assert decode_signature("p1", value) is None


@rows(
    "reasoning_id, encrypted",
    [
        ("", "x"),
        ("rs", ""),
        ("r" * (MAX_ID_BYTES + 1), "x"),
        ("é" * MAX_ID_BYTES, "x"),
        ("rs", "x" * (MAX_CONTENT_BYTES + 1)),
        ("\ud800", "x"),
    ],
)
def test_what_cannot_be_carried_is_not(reasoning_id: str, encrypted: str) -> None:
    assert encode_signature("p1", reasoning_id, encrypted) is None


def test_the_limits_themselves_are_carried() -> None:
    signature = encode_signature("p1", "r" * MAX_ID_BYTES, "x")
    assert decode_signature("p1", signature) == ("r" * MAX_ID_BYTES, "x")


def test_a_provider_reads_its_own_only() -> None:
    signatures = {label: encode_signature(label, "rs", "x") for label in ("p1", "p3", "p4")}
    assert len(set(signatures.values())) == 3
    for label in signatures:
        read = {other for other, signature in signatures.items() if decode_signature(label, signature)}
        assert read == {label}
    assert decode_signature("p3", "ccp:codex:v1:cnNfMQ:gAAAAAopaque") is None
