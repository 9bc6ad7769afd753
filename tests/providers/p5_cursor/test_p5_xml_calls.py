"""Calls that the model writes into its text, fed in any split."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from samples import rows

from proxy.providers.p5_cursor.xml_calls import MAX_ELEMENT, XmlCall, XmlCalls

TOOLS = {"Read", "Bash"}


def read_of(chunks: Iterable[str], tools: Iterable[str] = TOOLS) -> tuple[str, XmlCall | None, str]:
    """The text, the call, and what the end brings."""
    calls = XmlCalls(list(tools))
    pieces = [piece for chunk in chunks for piece in calls.feed(chunk)]
    found = [piece for piece in pieces if isinstance(piece, XmlCall)]
    assert all(pieces), "an empty piece"
    assert len(found) <= 1
    assert found == pieces[len(pieces) - len(found) :], "something came behind the call"
    return "".join(piece for piece in pieces if isinstance(piece, str)), found[0] if found else None, calls.flush()


def whole(text: str) -> tuple[str, XmlCall | None]:
    said, call, held = read_of([text])
    return said + held, call


#: chunks -> text, call, text at the end
VECTORS: list[tuple[list[str], str, tuple[str, dict[str, Any]] | None, str]] = [
    (
        ["before <to", 'ol_use name="Read" id=\'x\'>{"file_path":"/a"}</tool', "_use>"],
        "before ",
        ("Read", {"file_path": "/a"}),
        "",
    ),
    (["a < b <too", "l"], "a < b ", None, "<tool"),
    (['<tool_use name="Grep">{}</tool_use>'], '<tool_use name="Grep">{}</tool_use>', None, ""),
    (['<tool_use name="Bash">not json</tool_use>'], '<tool_use name="Bash">not json</tool_use>', None, ""),
    (['<tool_use name="Bash">[1]</tool_use>'], '<tool_use name="Bash">[1]</tool_use>', None, ""),
    (['<tool_use name="Read"></tool_use>'], "", ("Read", {}), ""),
    (['<tool_use id="a&quot;b" name="Read">{}</tool_use>\n</tool_use>\n'], "", ("Read", {}), ""),
    (['<tool_use name="Read">{"file_path":'], "", None, '<tool_use name="Read">{"file_path":'),
    (["<tool_user>x</tool_user>"], "<tool_user>x</tool_user>", None, ""),
    (
        ['<tool_use name="Bash">{"command":"echo \'</tool_use>\'"}</tool_use>'],
        '<tool_use name="Bash">{"command":"echo \'</tool_use>\'"}</tool_use>',
        None,
        "",
    ),
    (['<tool_use name="a>b">{}</tool_use>'], '<tool_use name="a>b">{}</tool_use>', None, ""),
    (['<tool_use name = \'Read\' name="Bash">{"command":"x"}</tool_use>'], "", ("Bash", {"command": "x"}), ""),
    (['<tool_use name="Read"/>'], "", None, '<tool_use name="Read"/>'),
    (["x<tool_use"], "x", None, "<tool_use"),
]


@rows("chunks, text, call, held", VECTORS)
def test_the_vectors_of_20_6(chunks: list[str], text: str, call: tuple[str, dict[str, Any]] | None, held: str) -> None:
    assert read_of(chunks) == (text, XmlCall(*call) if call else None, held)


@rows(
    "element, call",
    [
        ("<tool_use name='Read'>{}</tool_use>", ("Read", {})),
        ("<tool_use\nname='Read'\n>\n {}\n</tool_use>", ("Read", {})),
        ("<tool_use name='R&#101;ad'>{}</tool_use>", None),
        ("<tool_use name='read'>{}</tool_use>", None),
        ("<tool_use name=Read>{}</tool_use>", None),
        ("<tool_use>{}</tool_use>", None),
        ("<tool_use data-name='Read'>{}</tool_use>", None),
        ("<tool_use name='Read' data-name='Bash'>{}</tool_use>", ("Read", {})),
        ("<tool_use id=\"name='Read'\">{}</tool_use>", None),
        ("<tool_use name='Read\">{}</tool_use>", None),
        ("<tool_use name='Read'/>{}</tool_use>", ("Read", {})),
        ("<tool_use name='Read'>null</tool_use>", None),
        ("<tool_use name='Read'>{\"a\":NaN}</tool_use>", None),
        ("<tool_use name='Read'>" + "[" * 100_000 + "</tool_use>", None),
        ("<tool_useé name='Read'>{}</tool_use>", ("Read", {})),
        ("<Tool_use name='Read'>{}</Tool_use>", None),
        ("<tool_use <tool_use name='Read'>{}</tool_use>", ("Read", {})),
    ],
)
def test_an_element_is_a_call_when_it_names_a_tool_and_holds_an_object(
    element: str, call: tuple[str, dict[str, Any]] | None
) -> None:
    assert whole(f"a{element}") == (("a", XmlCall(*call)) if call else (f"a{element}", None))


def test_entities_are_decoded_once() -> None:
    tools = {"<\"'>", "&lt;"}
    assert read_of(["<tool_use name='&lt;&quot;&apos;&gt;'>{}</tool_use>"], tools)[1] == XmlCall("<\"'>", {})
    assert read_of(["<tool_use name='&amp;lt;'>{}</tool_use>"], tools)[1] == XmlCall("&lt;", {})


def test_invented_tool_result_after_a_recovered_call() -> None:
    calls = XmlCalls(TOOLS)
    call = '<tool_use name="Read">{}</tool_use>'
    assert calls.feed(f"{call}\n<tool_result>made up</tool_result>{call}") == [XmlCall("Read", {})]
    assert calls.feed("more") == []
    assert calls.flush() == ""


def test_raw_tool_use_text_in_the_answer() -> None:
    call = '<tool_use name="Read">{"file_path":"/a"}</tool_use>'
    assert whole(f"Now: {call}") == ("Now: ", XmlCall("Read", {"file_path": "/a"}))


def test_without_tools_nothing_is_held_back() -> None:
    calls = XmlCalls([])
    assert [calls.feed(text) for text in ("a <tool_use", "", ' name="Read">{}</tool_use>')] == [
        ["a <tool_use"],
        [],
        [' name="Read">{}</tool_use>'],
    ]
    assert calls.flush() == ""


def test_after_a_flush_the_text_is_read_anew() -> None:
    calls = XmlCalls(TOOLS)
    assert calls.feed('a<tool_use name="Read">{') == ["a"]
    assert calls.flush() == '<tool_use name="Read">{'
    assert calls.feed('}</tool_use><tool_use name="Bash">{}</tool_use>') == ["}</tool_use>", XmlCall("Bash", {})]


PIECES = st.sampled_from(
    (
        *("<tool_use", "</tool_use>", "</tool_", "<tool_user>", "<tool_use name='Read'>", "<tool_use name='Grep'>"),
        *(" name=", '"Read"', "'Bash'", "/>", "<", ">", "'", '"', "{", "}", "{}", "[", '"a":1', "&amp;"),
        *(" ", "\n", "x", "_", "é"),
    )
)


@given(pieces=st.lists(PIECES, max_size=30), cuts=st.lists(st.integers(0, 200), max_size=12))
@example(pieces=["<tool_use name='Read'>", "{}", "</tool_", "</tool_use>"], cuts=[1, 2, 3])
def test_the_split_does_not_matter(pieces: list[str], cuts: list[int]) -> None:
    text = "".join(pieces)
    at = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    said, call, held = read_of([text[start:end] for start, end in pairwise(at)])
    one_by_one, one_call, one_held = read_of(text)
    assert (said + held, call) == (one_by_one + one_held, one_call) == whole(text)
    assert held == one_held == read_of([text])[2]
    if call is None:
        assert said + held == text
    else:
        assert text.startswith(said + "<tool_use")


def padded(size: int) -> str:
    """An element of a call, of so many characters."""
    head, tail = '<tool_use name="Read">{"a":"', '"}</tool_use>'
    return head + "x" * (size - len(head) - len(tail)) + tail


@rows("step", [4096, MAX_ELEMENT * 3])
@rows("size, is_call", [(MAX_ELEMENT, True), (MAX_ELEMENT + 1, False)])
def test_an_element_over_the_bound_is_text(size: int, is_call: bool, step: int) -> None:
    text = padded(size) + '.<tool_use name="Bash">{}</tool_use>'
    said, call, held = read_of(text[start : start + step] for start in range(0, len(text), step))
    assert call is not None
    assert (said, call.name, held) == (("", "Read", "") if is_call else (padded(size) + ".", "Bash", ""))


def test_what_is_over_the_bound_is_not_held() -> None:
    calls = XmlCalls(TOOLS)
    start = '<tool_use name="Read">'
    assert calls.feed(start + "x" * (MAX_ELEMENT - len(start))) == []
    assert sum(map(len, map(str, calls.feed("y")))) == MAX_ELEMENT + 1
    # the rest of it is text as well, a call that is quoted in it too
    assert calls.feed('<tool_use name="Bash">{}') == ['<tool_use name="Bash">{}']
    assert calls.feed('</tool_use><tool_use name="Bash">{}</tool_use>') == ["</tool_use>", XmlCall("Bash", {})]


@rows(
    "start, repeated, end",
    [
        ("<tool_use", " a=", ""),
        ("<tool_use ", "a", "></tool_use>"),
        ("<tool_use ", "a=' ", "></tool_use>"),
        ("<tool_use name='Read'>", "</tool_us", ""),
        ("", "<tool_use>{}</tool_use>", ""),
        ("", "<tool_us", ""),
        ("", "<", ""),
    ],
)
def test_time_is_linear_in_the_text(start: str, repeated: str, end: str) -> None:
    """A mebibyte at once, and a part of it character by character: quadratic work would take minutes."""
    began = time.process_time()
    for size, is_split in ((MAX_ELEMENT, False), (MAX_ELEMENT // 8, True)):
        text = start + repeated * (size // len(repeated)) + end
        said, call, held = read_of(text if is_split else [text])
        assert (said + held, call) == (text, None)
    assert time.process_time() - began < 10
