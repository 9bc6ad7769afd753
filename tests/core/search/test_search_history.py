"""Searches of earlier turns, as a model without search of its own reads them."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from core.strategies import json_objects, json_values
from proxy.core.search.blocks import outcome_of, result_content
from proxy.core.search.history import as_calls, is_search, search_text, with_remembered
from proxy.core.search.results import Found, Result, SearchFailure, in_words

FOUND = Found((Result("A", "https://a.example", "text of A"),), "written")
THOUGHT = {"type": "thinking", "thinking": "t", "signature": "s"}
LINE = {"type": "text", "text": "line"}
BASH = {"type": "tool_use", "id": "b", "name": "Bash", "input": {}}
BASH_RESULT = {"type": "tool_result", "tool_use_id": "b", "content": "ok"}


def pair(number: int) -> list[dict[str, Any]]:
    call = {"type": "server_tool_use", "id": f"s{number}", "name": "web_search", "input": {"query": f"q{number}"}}
    content = result_content(FOUND, carried=True)
    return [call, {"type": "web_search_tool_result", "tool_use_id": f"s{number}", "content": content}]


def call(number: int) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"s{number}", "name": "find", "input": {"query": f"q{number}"}}


def result(number: int) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": f"s{number}", "content": in_words(FOUND)}


def says(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


@rows(
    "messages, expected",
    [
        (  # a search, then the answer
            [user(LINE), says(THOUGHT, *pair(1), LINE), user(LINE)],
            [user(LINE), says(THOUGHT, call(1)), user(result(1)), says(LINE), user(LINE)],
        ),
        (  # two searches of one step, then another
            [user(LINE), says(*pair(1), *pair(2), THOUGHT, *pair(3), LINE)],
            [
                user(LINE),
                says(call(1), call(2)),
                user(result(1), result(2)),
                says(THOUGHT, call(3)),
                user(result(3)),
                says(LINE),
            ],
        ),
        (  # beside a call of the client: both results come together
            [user(LINE), says(LINE, BASH, *pair(1)), user(BASH_RESULT, LINE)],
            [user(LINE), says(LINE, BASH, call(1)), user(result(1), BASH_RESULT, LINE)],
        ),
        (  # a call of the client before more words: its result still follows it
            [user(LINE), says(BASH, *pair(1), LINE), user(BASH_RESULT)],
            [user(LINE), says(BASH, call(1), LINE), user(result(1), BASH_RESULT)],
        ),
        (  # a search at the end of what is known
            [user(LINE), says(*pair(1))],
            [user(LINE), says(call(1)), user(result(1))],
        ),
        (
            [user(LINE), says(*pair(1)), {"role": "user", "content": "go on"}],
            [user(LINE), says(call(1)), user(result(1), {"type": "text", "text": "go on"})],
        ),
        ([user(LINE), says(pair(1)[0], LINE)], [user(LINE), says(pair(1)[0], LINE)]),  # nothing to tell
    ],
)
def test_searches_become_calls_with_their_results(messages: Any, expected: Any) -> None:
    before = copy.deepcopy(messages)
    assert as_calls(messages, "find") == expected
    assert messages == before


@rows("found", [FOUND, Found(), Found((Result("A", "https://a.example"),)), SearchFailure("unavailable", "x")])
def test_a_result_carries_its_texts_to_the_next_turn(found: Any) -> None:
    again = outcome_of(result_content(found, carried=True))
    assert again == (found if isinstance(found, Found) else SearchFailure("unavailable", again.reason))


@rows("content", ["mp1.", "mp1.x", "mp1.W10=", "other", 7, "mp1." + "A" * 10**6])
def test_what_others_encrypted_is_not_read(content: Any) -> None:
    link = {"type": "web_search_result", "title": "A", "url": "https://a.example", "encrypted_content": content}
    assert outcome_of([link]) == Found((Result("A", "https://a.example"),))


MEMBERS = ("type", "id", "tool_use_id", "content", "name", "input")


@given(st.sampled_from(MEMBERS), json_values, st.integers(0, 3))
def test_a_member_of_another_kind_is_no_error(member: str, value: Any, place: int) -> None:
    blocks = [*pair(1), BASH, *pair(2), LINE]
    blocks[place] = {**blocks[place], member: value}
    messages = with_remembered([{"role": "assistant", "content": blocks}, user(BASH_RESULT)], lambda _id: pair(3))
    as_calls(messages, "find")
    assert all(isinstance(search_text(block), str) for block in blocks if is_search(block))


@given(json_values, json_objects)
def test_any_history_is_read(content: Any, block: dict[str, Any]) -> None:
    for one in (
        content,
        [block, *pair(1)],
        [{**pair(1)[0], **block}, pair(1)[1]],
        [pair(1)[0], {**pair(1)[1], **block}],
    ):
        as_calls([says(LINE) | {"content": one}, user(LINE)], "find")
