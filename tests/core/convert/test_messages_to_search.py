"""The standalone web search."""

from __future__ import annotations

from typing import Any

import pytest
from checks import check_message_stream
from hypothesis import given
from samples import rows

from core.strategies import json_objects, json_values
from proxy.core.convert.messages_to_search import (
    ASSISTANT_BUDGET,
    count_search_input,
    count_search_output,
    forced_query,
    forced_search,
    found_in,
    search_body,
    search_query,
)
from proxy.core.invalid import InvalidRequest
from proxy.core.messages import Fold, MessageStream
from proxy.core.reducer import BadAnswer
from proxy.core.search.blocks import search_events
from proxy.core.search.results import Result

TOOL = {"type": "web_search_20250305", "name": "web_search", "allowed_domains": ["rust-lang.org"], "max_uses": 8}
FORCED = {"type": "tool", "name": "web_search"}


def said(role: str, text: Any) -> dict[str, Any]:
    return {"role": role, "content": text}


def body(messages: list[Any], tool: dict[str, Any] = TOOL) -> dict[str, Any]:
    query = forced_query({"messages": messages}, tool)
    return search_body(query, model="m", search_id="s", length=len, truncate=lambda text, limit: text[:limit])


@rows(
    "tools, choice, expected",
    [
        ([TOOL], FORCED, True),
        ([{"name": "Bash"}, TOOL], FORCED, True),
        ([TOOL], {"type": "auto"}, False),
        ([TOOL], {"type": "any"}, False),
        ([TOOL], "web_search", False),
        ([TOOL], {"type": "tool", "name": "other"}, False),
        ([{"name": "web_search"}], FORCED, False),
        ([], FORCED, False),
        (None, FORCED, False),
    ],
)
def test_a_forced_search_is_recognised(tools: Any, choice: Any, expected: bool) -> None:
    assert (forced_search({"tools": tools, "tool_choice": choice}) is not None) is expected


def test_the_body_has_the_query_and_what_was_said_before() -> None:
    messages = [
        said("user", "old"),
        said("assistant", "old a"),
        said("user", "prev"),
        said("system", "reminder"),
        said("assistant", [{"type": "text", "text": "prev a"}]),
        said("user", "Perform a web search for the query: current"),
        said("assistant", "late"),
    ]
    assert body(messages) == {
        "id": "s",
        "model": "m",
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "prev"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "prev a"}]},
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "Perform a web search for the query: current"}],
            },
        ],
        "commands": {"search_query": [{"q": "current"}]},
        "settings": {
            "filters": {"allowed_domains": ["rust-lang.org"]},
            "allowed_callers": ["direct"],
            "external_web_access": True,
        },
        "max_output_tokens": 2500,
    }


def test_earlier_answers_share_a_budget() -> None:
    messages = [
        said("user", "a"),
        said("assistant", "x" * (ASSISTANT_BUDGET - 1)),
        said("assistant", "yyy"),
        said("assistant", "zzz"),
        said("user", "b"),
    ]
    texts = [item["content"][0]["text"] for item in body(messages)["input"]]
    assert texts == ["a", "x" * (ASSISTANT_BUDGET - 1), "y", "b"]


@rows(
    "messages, expected",
    [
        ([said("user", "rust news")], "rust news"),
        ([said("user", "Perform a web search for the query:  rust ")], "rust"),
        ([said("user", "Perform a web search for the query: ")], "Perform a web search for the query:"),
        ([said("user", "first"), said("user", "  ")], "first"),
        ([said("user", [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}])], "a\nb"),
    ],
)
def test_the_query_is_the_newest_text(messages: list[Any], expected: str) -> None:
    assert search_query({"messages": messages}) == expected


@rows("messages", [[], [said("assistant", "a")], [said("user", "")], [said("user", [{"type": "image"}])]])
def test_without_a_text_there_is_no_query(messages: list[Any]) -> None:
    with pytest.raises(InvalidRequest):
        search_query({"messages": messages})


def test_links_come_from_the_results_once_each() -> None:
    results = [
        {"url": "https://a.example", "title": "A"},
        {"url": "https://a.example", "title": "again"},
        {"url": "https://b.example", "ref_id": "turn0"},
        {"url": "https://c.example", "title": ""},
        {"title": "no address"},
        {"url": 3},
        "x",
    ]
    assert found_in({"output": "https://not-scraped.example", "results": results}).results == (
        Result("A", "https://a.example"),
        Result("turn0", "https://b.example"),
        Result("https://c.example", "https://c.example"),
    )


def test_the_reply_is_a_call_its_result_and_the_prose() -> None:
    stream = MessageStream("msg_1", "m", input_tokens=5)
    answer = {"output": "Prose.", "results": [{"url": "https://a.example", "title": "A"}]}
    found = found_in(answer)
    events = search_events(stream, found, query="q", block_id="srvtoolu_ws_1", text=found.answer)
    check_message_stream(events)
    fold = Fold()
    fold.add(events)
    link = {
        "type": "web_search_result",
        "title": "A",
        "url": "https://a.example",
        "encrypted_content": "",
        "page_age": None,
    }
    assert fold.message["content"] == [
        {"type": "server_tool_use", "id": "srvtoolu_ws_1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_ws_1", "content": [link]},
        {"type": "text", "text": "Prose."},
    ]
    assert fold.message["usage"]["server_tool_use"] == {"web_search_requests": 1, "web_fetch_requests": 0}


@given(json_objects, json_values, json_values)
def test_any_answer_is_a_reply_or_a_complaint(answer: dict[str, Any], output: Any, results: Any) -> None:
    for candidate in (answer, {**answer, "output": output, "results": results}):
        assert count_search_output(candidate, len) >= 1
        try:
            found = found_in(candidate)
            check_message_stream(search_events(MessageStream("m", "m"), found, query="q", block_id="b", text=""))
        except BadAnswer:
            assert not isinstance(candidate.get("output"), str)


def test_a_deep_answer_is_counted() -> None:
    results: Any = "x"
    for _ in range(5000):
        results = [results]
    assert count_search_output({"output": "ab", "results": results}, len) == 3


def test_input_tokens_count_every_text() -> None:
    counted = count_search_input(body([said("user", "abc")]), len)
    assert counted == len("m") + len("abc") + len("message" + "user" + "input_text" + "abc") + len("rust-lang.org")
