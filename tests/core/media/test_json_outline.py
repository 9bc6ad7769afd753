"""JSON whose long strings are set aside says what it says when it is parsed as a whole."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import each, rows

from core.strategies import cut_places, json_objects, json_values, pieces
from proxy.core.invalid import InvalidRequest
from proxy.core.media.json_outline import MAX_LONG_STRINGS, MAX_OUTLINE, MAX_SHORT, JsonOutline, LongString

REFUSED = "refused"


def outlined(chunks: list[bytes]) -> Any:
    """The value of a text in chunks, with its long strings put back; REFUSED for what is no JSON."""
    outline = JsonOutline()
    try:
        for chunk in chunks:
            outline.feed(chunk)
        return whole(outline.end())
    except InvalidRequest as error:
        assert (error.code, error.param) == ("invalid_request", None)
        return REFUSED


def whole(value: Any) -> Any:
    if isinstance(value, LongString):
        return value.text()
    if isinstance(value, dict):
        return {name: whole(member) for name, member in value.items()}
    return [whole(member) for member in value] if isinstance(value, list) else value


def refuse(constant: str) -> None:
    raise ValueError(constant)


def once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(members)) < len(members):
        raise ValueError
    return dict(members)


def by_the_library(text: bytes) -> Any:
    try:
        value = json.loads(text.decode(), parse_constant=refuse, object_pairs_hook=once)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return REFUSED
    return REFUSED if has_long_name(value) else value


def has_long_name(value: Any) -> bool:
    if isinstance(value, dict):
        return any(len(name) > MAX_SHORT // 12 or has_long_name(member) for name, member in value.items())
    return isinstance(value, list) and any(map(has_long_name, value))


RUNS = ["QUJD" * 200, " " * 100, "x" * 1010]
bits = st.sampled_from([*RUNS, "=", '"', "\\", "/", "\n", "\0", "é", "狐", "😀", "NaN", "u00e9"])
long_texts = st.lists(bits, max_size=9).map("".join)
bodies = st.dictionaries(st.sampled_from(["a", "b", "NaN", "c  d"]), long_texts | json_values, max_size=4)
indents = st.sampled_from([None, 1, 70])


@given(bodies | json_objects, cut_places, st.booleans(), indents)
def test_it_says_what_the_whole_says(body: Any, cuts: list[int], ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(body, ensure_ascii=ascii_only, indent=indent).replace("/", r"\/").encode()
    assert outlined(pieces(text, cuts)) == body


wrong = st.sampled_from(
    [
        *(b'"', b"\\", b"{", b"}", b"[", b",", b":", b"NaN", b"Infinity", b"1", b" ", b'"a":1,'),
        *(b"\n", b"\0", b"\x0b", b"\xa0", b"\xff", b"\xe9", b"\xef\xbb\xbf"),
        *(b"\\u", b"\\ud83d", b"\\ude00", b"\\x"),
    ]
)


@given(bodies, cut_places, st.booleans(), st.integers(0, 5000), wrong, st.integers(0, 3))
def test_what_is_wrong_is_refused(
    body: Any, cuts: list[int], ascii_only: bool, place: int, instead: bytes, length: int
) -> None:
    text = json.dumps(body, ensure_ascii=ascii_only).encode()
    place %= len(text) + 1
    text = text[:place] + instead + text[place + length :]
    assert outlined(pieces(text, cuts)) == by_the_library(text)


def test_byte_by_byte() -> None:
    body = {"a": 'é😀"\\\n' * 300, "b": [" " * 200, "QUJD" * 300], "c": {}}
    for ascii_only in (True, False):
        text = json.dumps(body, ensure_ascii=ascii_only, indent=80).encode()
        assert outlined([text[place : place + 1] for place in range(len(text))]) == body


TEXTS = {
    "plain": '{"a": "%s"}',
    "array": '["%s", 1]',
    "alone": '"%s"',
}


@each(2)
@pytest.mark.parametrize("length", [0, 1, 8, 9, 479, 480, 481, 512, MAX_SHORT - 1, MAX_SHORT, MAX_SHORT + 1, 100_000])
@pytest.mark.parametrize("outer", TEXTS.values())
@pytest.mark.parametrize("unit", ["x", r"\n", r"\u00e9", "é", r"\ud83d\ude00"])
def test_any_length(length: int, outer: str, unit: str) -> None:
    text = (outer % (unit * length)).encode()
    assert outlined([text]) == json.loads(text)
    assert outlined(pieces(text, [length, length + 7, 100])) == json.loads(text)


#: What takes the place of a long string in the outline cannot be written by anybody else.
@rows(
    "text",
    ['["%s",NaN]', '[NaN,"%s"]', '[Na"%s"]', '["%s"N]', '[-"%s"]', '["%s""%s"]', '[1"%s"]', '{"%s":1}', '{NaN:"%s"}'],
)
def test_a_mark_is_no_value(text: str) -> None:
    assert outlined([text.replace("%s", "x" * 2000).encode()]) == REFUSED


def test_a_repeated_name_is_cut() -> None:
    outline = JsonOutline()
    outline.feed(json.dumps({"y" * 900: 1}).replace("}", ', "%s": 2}' % ("y" * 900)).encode())
    with pytest.raises(InvalidRequest, match="occurs twice") as raised:
        outline.end()
    assert raised.value.message.count("y") <= 110


def test_the_one_name_of_many_that_is_repeated() -> None:
    """Takes a minute where each name is compared with each other."""
    names = [*range(9000), 8999]
    assert outlined([b"{" + b",".join(b'"%d":1' % name for name in names) + b"}"]) == REFUSED


def test_what_is_held() -> None:
    outline = JsonOutline()
    outline.feed(b'{"a":"' + b"x" * 500)
    assert outline.held == 505
    outline.feed(b"x" * 100_000)
    assert outline.held == 5 + 100_500
    outline.feed(rb"\u00e9" * 1000)
    assert outline.held == 5 + 100_500 + 2000
    outline.feed(b'"' + b" " * 100_000 + b"}")
    assert outline.held < 102_600


def test_long_strings_that_nobody_asked_for_are_not_kept() -> None:
    outline = JsonOutline()
    outline.feed(json.dumps(["x" * 10_000] * 1000).encode())
    assert outline.held < MAX_LONG_STRINGS * 10_000 + 10_000
    value = outline.end()
    assert len(value) == 1000
    assert all(isinstance(each, LongString) for each in value)


@rows("unit", [b"[],", b'"a",', b'"x": 1,', b"1 ", b'"%b",' % (b"x" * 1000)])
def test_many_members_are_refused_before_they_end(unit: bytes) -> None:
    outline = JsonOutline()
    with pytest.raises(InvalidRequest):
        for _ in range(MAX_OUTLINE // 1000 + 2):
            outline.feed(unit * (1000 // len(unit) + 1))
    assert outline.held < MAX_OUTLINE + 3000
