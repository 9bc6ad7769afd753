"""Reading content: texts, images, documents."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from core.strategies import json_values, leaf_blocks
from proxy.core.content import (
    NO_PICTURE,
    PictureCheck,
    clean_base64,
    document_blocks,
    image_data_url,
    image_url,
    omitted,
    pdf_data,
    reference_text,
    system_text,
    texts_of,
)


@given(st.binary(min_size=1), st.booleans(), st.data())
def test_real_base64_is_cleaned(raw: bytes, padded: bool, data: st.DataObject) -> None:
    text = base64.b64encode(raw).decode()
    broken = text if padded else text.rstrip("=")
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(broken)))
        broken = broken[:at] + data.draw(st.sampled_from([" ", "\n", "\r\n", "\t"])) + broken[at:]
    assert clean_base64(broken) == text
    assert base64.b64decode(text) == raw


@given(st.text(alphabet="aZ09+/=-_ \né*", max_size=12))
def test_it_agrees_with_the_real_decoder(text: str) -> None:
    bare = "".join(text.split())
    try:
        raw = base64.b64decode(bare.rstrip("=") + "=" * (-len(bare.rstrip("=")) % 4), validate=True)
        good = len(bare) - len(bare.rstrip("=")) <= 2 and bool(raw)
    except (binascii.Error, ValueError):
        good = False
    cleaned = clean_base64(text)
    assert (cleaned is not None) == good
    if cleaned is not None:
        assert base64.b64decode(cleaned, validate=True) == raw


@given(json_values)
def test_any_value_is_survived(value: Any) -> None:
    clean_base64(value)
    image_data_url(value)
    list(texts_of(value))
    system_text(value)
    omitted(value)
    reference_text({"type": "tool_reference", "tool_name": value})
    image_url({"type": "url", "url": value})
    image_data_url({"type": "base64", "media_type": value, "data": "aGk="})
    image_data_url({"type": "base64", "media_type": "image/png", "data": value})


@given(leaf_blocks)
def test_any_document_is_survived(block: dict[str, Any]) -> None:
    assert all(part["type"] == "image" or part["text"] for part in document_blocks(block))
    pdf_data(block)
    assert omitted(block).startswith("[")


@rows(
    "system, expected",
    [
        (None, ""),
        (3, ""),
        ({}, ""),
        ([], ""),
        ("", ""),
        ("x-anthropic-billing-header: as it is", "x-anthropic-billing-header: as it is"),
        ([{"text": "x-anthropic-billing-header: v"}], ""),
        ([{"text": "a"}, {"type": "image"}, {"text": 3}, "b", {"type": "other", "text": "c"}], "a\n\nc"),
        ([{"text": " x-anthropic-billing-header: v"}], " x-anthropic-billing-header: v"),
    ],
)
def test_the_system_prompt_is_one_text(system: Any, expected: str) -> None:
    assert system_text(system) == expected


@rows(
    "source, expected",
    [
        ({"type": "base64", "media_type": "image/png", "data": "aGk"}, "data:image/png;base64,aGk="),
        ({"type": "base64", "media_type": "IMAGE/PNG", "data": "aGk="}, "data:image/png;base64,aGk="),
        ({"type": "base64", "media_type": "image/jpg", "data": "aGk="}, "data:image/jpeg;base64,aGk="),
        ({"type": "base64", "media_type": " Image/JPG; q=1", "data": "aGk="}, "data:image/jpeg;base64,aGk="),
        ({"media_type": "image/webp", "data": "aGk="}, "data:image/webp;base64,aGk="),
        ({"type": "base64", "data": "aGk="}, None),
        ({"type": "base64", "media_type": "image/svg+xml", "data": "aGk="}, None),
        ({"type": "base64", "media_type": ["image/png"], "data": "aGk="}, None),
        ({"type": "base64", "media_type": "image/png", "data": ""}, None),
        ({"type": "url", "media_type": "image/png", "data": "aGk="}, None),
        ("aGk=", None),
    ],
)
def test_only_sound_images_become_data_urls(source: Any, expected: str | None) -> None:
    assert image_data_url(source) == expected


def test_a_missing_type_may_have_a_default() -> None:
    source = {"type": "base64", "data": "aGk="}
    assert image_data_url(source, default_type="image/png") == "data:image/png;base64,aGk="


@rows(
    "url, expected",
    [
        ("https://e.example/a", "https://e.example/a"),
        ("HTTP://e.example/a", "HTTP://e.example/a"),
        ("data:image/jpg;base64,aGk", "data:image/jpeg;base64,aGk="),
        ("data:image/png,aGk=", None),
        ("data:text/plain;base64,aGk=", None),
        ("file:///etc/passwd", None),
        ("https:", None),
        ("", None),
        (None, None),
    ],
)
def test_only_addresses_that_can_be_fetched_are_sent(url: Any, expected: str | None) -> None:
    assert image_url({"type": "url", "url": url}) == expected


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
A = {"type": "text", "text": "a"}


@rows(
    "block, expected",
    [
        ({"type": "document", "source": {"type": "text", "data": "words"}}, ["words"]),
        ({"type": "document", "title": "T", "context": "C", "source": {"type": "text", "data": "w"}}, ["T\nC\nw"]),
        ({"type": "document", "source": {"type": "content", "content": [A, {"type": "x"}, A]}}, ["a\na"]),
        ({"type": "document", "source": {"type": "content", "content": "a"}}, ["a"]),
        (
            {"type": "document", "title": "T", "source": {"type": "content", "content": [IMAGE, A, IMAGE]}},
            ["T", "image", "a", "image"],
        ),
        ({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}}, []),
        ({"type": "document", "source": {"type": "text", "data": ""}}, []),
        ({"type": "document"}, []),
        ({"type": "search_result", "source": "s", "title": "T", "content": [A]}, ["T\ns\na"]),
        ({"type": "search_result"}, []),
    ],
)
def test_what_a_document_consists_of(block: dict[str, Any], expected: list[str]) -> None:
    assert [part.get("text", part["type"]) for part in document_blocks(block)] == expected


PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()
TEXT = base64.b64encode(b"no picture at all").decode()


def shown(media_type: Any, data: Any) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def in_url(media_type: str, data: str) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "url", "url": f"data:{media_type};base64,{data}"}}


@rows(
    "block, expected",
    [
        (shown("image/png", PNG), None),
        (shown("IMAGE/PNG", " " + PNG[:6] + "\n" + PNG[6:]), None),
        (shown("image/jpeg", PNG), shown("image/png", PNG)),
        (shown("image/bmp", PNG), shown("image/png", PNG)),
        (shown(5, PNG), shown("image/png", PNG)),
        ({"type": "image", "source": {"data": PNG}}, None),
        (in_url("image/png", PNG), None),
        (in_url("image/gif", PNG), shown("image/png", PNG)),
        (in_url("image/png", TEXT), NO_PICTURE),
        ({"type": "image", "source": {"type": "url", "url": "https://a.example/b.png"}}, None),
        ({"type": "image", "source": {"type": "file", "file_id": "f"}}, None),
        (shown("image/png", TEXT), NO_PICTURE),
        (shown("image/png", "é" * 20), NO_PICTURE),
        (shown(None, "a"), NO_PICTURE),
        (shown("image/heic", TEXT), None),
        (shown("image/png", ""), None),
        ({"type": "image"}, None),
    ],
)
@rows(
    "around",
    [
        lambda block: [block],
        lambda block: [5, {"type": ["image"]}, {"type": "tool_result", "content": ["x", block]}],
        lambda block: [{"type": "document", "source": {"type": "content", "content": [block]}}],
        lambda block: [{"type": "tool_result", "content": [{"type": "search_result", "content": [block]}]}],
    ],
)
def test_a_picture_is_what_its_first_bytes_say(block: dict[str, Any], expected: Any, around: Any) -> None:
    marked = {"cache_control": {"type": "ephemeral"}}
    messages = [{"role": "user", "content": "x"}, {"role": "user", "content": around({**block, **marked})}]
    pictures = PictureCheck()
    told = pictures.in_messages(messages)
    if expected is None:
        assert told is messages and pictures == PictureCheck(seen=pictures.seen)
        return
    left_out = expected == NO_PICTURE
    assert pictures == PictureCheck(seen=1, corrected=not left_out, left_out=left_out)
    wanted = {"type": "text", "text": NO_PICTURE} if left_out else expected
    assert told == [messages[0], {"role": "user", "content": around({**wanted, **marked})}]
    assert messages[1]["content"] == around({**block, **marked})
