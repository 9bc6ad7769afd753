"""The Read tool: guidance before, repair after."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from core.strategies import json_values, texts
from proxy.core.identity import Owner
from proxy.core.tools.read_tool import (
    MAX_OFFSET,
    RULES_HEAD,
    STALL_BLANKS,
    OffsetStore,
    ReadOffsets,
    guided_definition,
    repair_arguments,
    result_notes,
    stalled_arguments,
)


def repaired(arguments: Any, offsets: ReadOffsets | None = None) -> Any:
    return json.loads(repair_arguments(json.dumps(arguments), "c", offsets or ReadOffsets()))


@rows("pages", ["", " ", "\t\n", None])
def test_an_empty_page_range_goes(pages: Any) -> None:
    assert repaired({"file_path": "/a", "pages": pages}) == {"file_path": "/a"}


@rows("pages", ["1-3", 3, [], False])
def test_a_page_range_stays(pages: Any) -> None:
    assert repaired({"file_path": "/a", "pages": pages})["pages"] == pages


@rows(
    "offset, kept",
    [(MAX_OFFSET, False), (10**40, False), (MAX_OFFSET - 1, True), (True, True), (1e7, True), (-5, True)],
)
def test_an_offset_that_is_no_line_goes_and_is_remembered(offset: Any, kept: bool) -> None:
    offsets = ReadOffsets()
    assert ("offset" in repaired({"file_path": "/a", "offset": offset}, offsets)) is kept
    note = offsets.note("c")
    assert (note is None) is kept
    if note is not None:
        assert str(offset) in note and "/a" in note


@given(st.dictionaries(st.sampled_from(["file_path", "pages", "offset", "limit"]), json_values))
def test_what_is_right_stays_byte_for_byte(arguments: dict[str, Any]) -> None:
    text = json.dumps(arguments, indent=1)
    result = repair_arguments(text, "c", ReadOffsets())
    assert result == text or set(arguments) - set(json.loads(result)) <= {"pages", "offset"}


@rows("text", ["", "{", "[]", "3", "[" * 100_000])
def test_what_is_no_object_is_left_alone(text: str) -> None:
    assert repair_arguments(text, "c", ReadOffsets()) == text


def first(text: str | list[dict[str, Any]] = "hi", *more: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}, *more]}


ME = Owner("s")


@rows(
    "owner, request_, known",
    [
        (ME, first(), True),
        (ME, first("hi", {"role": "assistant", "content": "x"}), True),
        (ME, first([{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]), True),
        (ME, first("another conversation"), False),
        (ME, {}, False),
        (Owner("s", "agent"), first(), False),
        (Owner("other"), first(), False),
        (None, first(), False),
    ],
)
def test_an_offset_is_known_in_its_own_conversation_only(owner: Owner | None, request_: Any, known: bool) -> None:
    """Ids of calls are unique in a conversation only: `c` is a call of each of these."""
    store = OffsetStore()
    store.of(ME, first()).remember("c", MAX_OFFSET, "/home/me/secret")
    note = store.of(owner, request_).note("c")
    assert (note is not None and "/home/me/secret" in note) is known


@rows("content", [None, 5, "", [5], ["hi"], [{"type": "text", "text": 5}], [{"type": "image"}], {}])
def test_a_first_message_of_any_form_tells_a_conversation(content: Any) -> None:
    store = OffsetStore()
    store.of(ME, first(content)).remember("c", MAX_OFFSET, "/x")
    assert store.of(ME, first(content)).note("c")


def test_without_an_owner_nothing_outlives_the_request() -> None:
    store = OffsetStore()
    offsets = store.of(None, first())
    offsets.remember("c", MAX_OFFSET, "/x")
    assert offsets.note("c") and store.of(None, first()).note("c") is None and len(store) == 0


def test_memory_is_bounded_and_forgets_the_oldest() -> None:
    offsets = OffsetStore(limit=2).of(ME, first())
    for call_id in ("a", "b", "", "a", "c"):
        offsets.remember(call_id, MAX_OFFSET, "/x")
    assert [offsets.note(call_id) is not None for call_id in ("a", "b", "c", "")] == [True, False, True, False]


BLANKS = " " * STALL_BLANKS


@rows(
    "text, expected",
    [
        ('{"file_path":"/a"}' + BLANKS, '{"file_path":"/a"}'),
        ('{"file_path":"/a","pages":""' + BLANKS, '{"file_path":"/a","pages":""}'),
        ('{"file_path":"/a","offset":1,"limit":2' + BLANKS, '{"file_path":"/a","offset":1,"limit":2}'),
        ('{"file_path":"/a"' + "\n\t" * STALL_BLANKS, '{"file_path":"/a"}'),
        ('{"file_path":"/a"' + BLANKS[1:], None),
        ('{"file_path":"/a' + BLANKS, None),
        ('{"file_path":""' + BLANKS, None),
        ('{"file_path":"/a","offset":-1' + BLANKS, None),
        ('{"file_path":"/a","limit":0' + BLANKS, None),
        ('{"file_path":"/a","offset":true' + BLANKS, None),
        ('{"file_path":"/a","other":1' + BLANKS, None),
        ('{"limit":1' + BLANKS, None),
        ('{"file_path":"/a",' + BLANKS, None),
        (BLANKS + BLANKS, None),
        ("[" * 3000 + BLANKS, None),
    ],
)
def test_a_stalled_call_is_taken_when_it_is_complete(text: str, expected: str | None) -> None:
    assert stalled_arguments(text) == expected


def test_the_definition_is_guided_and_the_callers_stays() -> None:
    tool = {
        "name": "Read",
        "parameters": {
            "properties": {"offset": {"type": "integer"}, "limit": 3, "file_path": {}},
            "required": ["file_path"],
        },
    }
    before = json.dumps(tool)
    guided = guided_definition(tool)
    assert RULES_HEAD in guided["description"]
    assert guided["parameters"]["properties"]["offset"]["type"] == "integer"
    assert "description" in guided["parameters"]["properties"]["offset"]
    assert guided["parameters"]["properties"]["limit"] == 3
    assert guided["parameters"]["required"] == ["file_path"]
    assert json.dumps(tool) == before


@rows("parameters", [None, [], {}, {"properties": []}, {"properties": {}}])
def test_a_definition_without_properties_is_survived(parameters: Any) -> None:
    assert guided_definition({"name": "Read", "parameters": parameters})["parameters"] == parameters


CALL = {"name": "Read", "input": {"file_path": "/a", "offset": 900}}
COMPLAINT = "Warning: the file has 12 lines, offset 900"


@rows(
    "call, text, is_error, expected",
    [
        (CALL, COMPLAINT, False, 1),
        (CALL, "offset out of range", True, 1),
        (CALL, "offset out of range", False, 0),
        (CALL, "line 900 requested, offset too large <system-reminder>", False, 1),
        (CALL, COMPLAINT + RULES_HEAD, False, 0),
        ({"name": "Read", "input": {"file_path": "/a"}}, COMPLAINT, True, 0),
        ({"name": "Bash", "input": {"offset": 1}}, COMPLAINT, True, 0),
        ({"name": "Read", "input": "x"}, COMPLAINT, True, 0),
        (None, COMPLAINT, True, 0),
    ],
)
def test_the_rules_are_repeated_where_the_client_complains(call: Any, text: str, is_error: bool, expected: int) -> None:
    assert len(result_notes("c", call, text, is_error=is_error, offsets=ReadOffsets())) == expected


def test_a_note_is_said_once() -> None:
    offsets = ReadOffsets()
    offsets.remember("c", 1_300_000, "/a")
    [note] = result_notes("c", CALL, "1\tx", is_error=False, offsets=offsets)
    assert note.startswith("\n")
    assert result_notes("c", CALL, "1\tx\n" + note, is_error=False, offsets=offsets) == []


@given(texts, json_values, st.booleans())
def test_any_result_is_survived(text: str, value: Any, is_error: bool) -> None:
    result_notes("c", {"name": "Read", "input": value}, text, is_error=is_error, offsets=ReadOffsets())
