"""Messages events to the replies of both OpenAI-style routes: one family of rules. Whole answers stand on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai_sdk import read_chunks, read_response, read_response_events
from openai_streams import check_chat_chunks, check_response_events
from samples import rows

from core.hub_events import CALL, SEARCH, TEXT, begun, cited, ended, said, signed, text, thought, typed
from core.reply_cases import ID, answer, answers, batches, chat_reply, responses_reply, responses_result
from core.strategies import cut_places, members, mostly, texts
from proxy.core.convert.openai_replies import AnswerReader
from proxy.core.ingress import Ingress
from proxy.core.messages import PING, Event
from proxy.core.reducer import BadAnswer
from proxy.core.tokens.usage import usage_of

START: Event = {"type": "message_start", "message": {"usage": {}}}
END: Event = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
STOP: Event = {"type": "message_stop"}
WITH_USAGE = Ingress({}, include_usage=True)
WITH_NAMESPACE = Ingress({}, namespaces={"ns__g": ("ns", "g")}, customs=frozenset({"patch"}))
ALL_CUSTOM = Ingress({}, customs=frozenset({"f", "ns__g", "n" * 70}), encrypted_reasoning=True)
CITATION = {"type": "web_search_result_location", "url": "https://a.example", "title": "A"}
ANNOTATION = {"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 0, "end_index": 0}

both = pytest.mark.parametrize("reply_of", [chat_reply, responses_reply])


def deltas(events: list[Event], ingress: Ingress | None = None) -> list[Any]:
    """What the chat chunks between the role and the end say."""
    chunks = chat_reply(ingress).feed(events)
    return [choice["delta"] for chunk in chunks for choice in chunk["choices"]][1:-1]


def message_of(events: list[Event]) -> dict[str, Any]:
    reply = chat_reply()
    reply.feed(events)
    message: dict[str, Any] = reply.completion["choices"][0]["message"]
    return message


def response_of(events: list[Event], ingress: Ingress | None = None) -> dict[str, Any]:
    reply = responses_reply(ingress)
    assert check_response_events(reply.feed(events)) == reply.response
    assert reply.finished
    return reply.response


@rows(
    "stop, finish, incomplete",
    [
        ("end_turn", "stop", None),
        ("stop_sequence", "stop", None),
        ("pause_turn", "stop", None),
        (None, "stop", None),
        ("of tomorrow", "stop", None),
        ("tool_use", "tool_calls", None),
        ("max_tokens", "length", "max_output_tokens"),
        ("model_context_window_exceeded", "length", "max_output_tokens"),
        ("refusal", "content_filter", "content_filter"),
    ],
)
def test_how_an_answer_ends(stop: Any, finish: str, incomplete: str | None) -> None:
    events = answer(("text", "a"), stop=stop)
    chat, responses = chat_reply(), responses_reply()
    [*_, chunk] = chat.feed(events)
    assert chunk["choices"] == [{"index": 0, "delta": {}, "finish_reason": finish, "logprobs": None}]
    assert chat.completion["choices"][0]["finish_reason"] == finish
    [*_, last] = responses.feed(events)
    status = "incomplete" if incomplete else "completed"
    assert (last["type"], responses.response["status"]) == (f"response.{status}", status)
    assert responses.response["incomplete_details"] == ({"reason": incomplete} if incomplete else None)


def call_delta(index: int, **members: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, **members}]}


def begin_call(name: str) -> dict[str, Any]:
    return call_delta(0, id="c", type="function", function={"name": name, "arguments": ""})


def message_item(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": [ANNOTATION], "logprobs": []}]
    return {"type": "message", "role": "assistant", "content": content}


def call_item(**names: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": "c", **names}


def search_item(query: str) -> dict[str, Any]:
    return {"type": "web_search_call", "action": {"type": "search", "query": query}}


_PLACED = {name: value for name, value in ANNOTATION.items() if name != "type"}
CITED = {"annotations": [{"index": 0, "type": "url_citation", "url_citation": _PLACED}]}


@rows(
    "block, chunks, prefix, item",
    [
        (("text", "a", CITATION, "b"), [{"content": "a"}, CITED, {"content": "b"}], "msg", message_item("ab")),
        (("text", CITATION), [CITED], "msg", message_item("")),
        (
            ("thinking", "a", "", "b"),
            [{"reasoning_content": "a"}, {"reasoning_content": "b"}],
            "rs",
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "ab"}]},
        ),
        (
            ("call", "c", "f", '{"a":', "1}"),
            [
                begin_call("f"),
                call_delta(0, function={"arguments": '{"a":'}),
                call_delta(0, function={"arguments": "1}"}),
            ],
            "fc",
            {**call_item(name="f"), "arguments": '{"a":1}'},
        ),
        (
            ("call", "c", "ns__g"),
            [begin_call("ns__g"), call_delta(0, function={"arguments": "{}"})],
            "fc",
            {**call_item(namespace="ns", name="g"), "arguments": "{}"},
        ),
        (
            ("call", "c", "patch", '{"input":"', 'a"}'),
            [
                begin_call("patch"),
                call_delta(0, function={"arguments": '{"input":"'}),
                call_delta(0, function={"arguments": 'a"}'}),
            ],
            "ctc",
            {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "a"},
        ),
        (("search", "rust"), [], "ws", search_item("rust")),
        (("search", None), [], "ws", search_item("")),
    ],
)
def test_what_a_block_becomes(block: tuple[Any, ...], chunks: list[Any], prefix: str, item: dict[str, Any]) -> None:
    assert deltas(answer(block)) == chunks
    [_, found] = response_of(answer(("text", "first"), block), WITH_NAMESPACE)["output"]
    assert found == {"id": f"{prefix}_{ID}_1", "status": "completed", **item}


@rows("block", [("text",), ("text", ""), ("thinking",), ("thinking", ""), ("links",)])
def test_what_stays_empty_or_hidden_is_not_shown(block: tuple[Any, ...]) -> None:
    assert deltas(answer(block, ("text", "a"))) == [{"content": "a"}]
    [item] = response_of(answer(block, ("text", "a")))["output"]
    assert item["id"] == f"msg_{ID}_1"


def test_calls_are_counted_and_blocks_are_not() -> None:
    found = deltas(answer(("text", "a"), ("call", "c1", "f", "{}"), ("thinking", "b"), ("call", "c2", "g", "{}")))
    assert [delta["tool_calls"][0]["index"] for delta in found if "tool_calls" in delta] == [0, 0, 1, 1]


def test_who_asks_with_functions_gets_the_first_call_in_that_form() -> None:
    events = answer(("text", "a"), ("call", "c1", "f", '{"a":', "1}"), ("call", "c2", "g", "{}"), stop="tool_use")
    reply = chat_reply(Ingress({}, functions=True))
    chunks = reply.feed(events)
    pieces = [{"name": "f", "arguments": ""}, {"arguments": '{"a":'}, {"arguments": "1}"}]
    told = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert told[2:] == [*({"function_call": piece} for piece in pieces), {}]
    [choice] = reply.completion["choices"]
    assert chunks[-1]["choices"][0]["finish_reason"] == choice["finish_reason"] == "function_call"
    assert choice["message"]["function_call"] == {"name": "f", "arguments": '{"a":1}'}
    assert "tool_calls" not in choice["message"]


def test_arguments_of_blanks_alone_are_an_object_too() -> None:
    call = message_of(answer(("call", "c", "f", " ", "\n"), stop="tool_use"))["tool_calls"][0]
    assert call["function"]["arguments"] == " \n{}"


@rows(
    "citation, expected",
    [
        ({**CITATION, "start_index": 1, "end_index": 2}, ("https://a.example", "A", 6, 7)),
        ({**CITATION, "start_index": 0, "end_index": 2}, ("https://a.example", "A", 5, 7)),
        (CITATION, ("https://a.example", "A", 0, 0)),
        ({"url": None, "title": 7, "start_index": "1", "end_index": True}, ("", "", 0, 0)),
        ({}, ("", "", 0, 0)),
    ],
)
def test_citations_have_their_place_in_the_whole_content(citation: dict[str, Any], expected: tuple[Any, ...]) -> None:
    """The places that a provider names are those in one block; `content` is all of them together."""
    events = answer(("text", "one"), ("text", "two", citation))
    [annotation] = message_of(events)["annotations"]
    assert tuple(annotation["url_citation"].values()) == expected
    [delta] = [delta for delta in deltas(events) if "annotations" in delta]
    assert delta["annotations"] == [{"index": 0, **annotation}]


def test_the_completion_has_only_members_with_something_to_say() -> None:
    message = {"role": "assistant", "content": None, "refusal": None}
    assert message_of(answer()) == message
    assert set(message_of(answer(("thinking", "a"), ("call", "c", "f")))) == {
        *message,
        "reasoning_content",
        "tool_calls",
    }


#: What a kind of block says on the Responses route, without `response.`, in this order; the item is added and done.
SEQUENCES = [
    (
        ("text", "a", CITATION, "b"),
        [
            "content_part.added",
            "output_text.delta",
            "output_text.annotation.added",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
        ],
    ),
    (
        ("thinking", "a"),
        [
            "reasoning_summary_part.added",
            "reasoning_summary_text.delta",
            "reasoning_summary_text.done",
            "reasoning_summary_part.done",
        ],
    ),
    (("call", "c", "f", "{}"), ["function_call_arguments.delta", "function_call_arguments.done"]),
    (("search", "a"), ["web_search_call.in_progress", "web_search_call.searching", "web_search_call.completed"]),
]


@rows("block, expected", SEQUENCES)
def test_the_order_of_events(block: tuple[Any, ...], expected: list[str]) -> None:
    kinds = [event["type"].removeprefix("response.") for event in responses_reply().feed(answer(block))]
    item = ["output_item.added", *expected, "output_item.done"]
    assert kinds == ["created", "in_progress", *item, "completed"]


@rows(
    "start, end, expected",
    [
        ({"input_tokens": 5, "cache_read_input_tokens": 20}, {"output_tokens": 7}, (25, 20, 0, 7, 32, None)),
        (
            {"input_tokens": 5},
            {"output_tokens": 7, "output_tokens_details": {"thinking_tokens": 6}},
            (5, 0, 0, 7, 12, 6),
        ),
        (
            {"input_tokens": 5},
            {"output_tokens": 7, "output_tokens_details": {"thinking_tokens": 8}},
            (5, 0, 0, 7, 12, 7),
        ),
        ({"output_tokens_details": []}, {"output_tokens_details": {"thinking_tokens": -1}}, (0, 0, 0, 0, 0, None)),
        ({"output_tokens_details": {"thinking_tokens": 0}}, {"output_tokens": 1}, (0, 0, 0, 1, 1, 0)),
        ({"input_tokens": 9}, usage_of(3, 7, cache_read=20, cache_creation=4), (27, 20, 4, 7, 34, None)),
        ({"input_tokens": 9, "output_tokens": 1}, {"input_tokens": None, "output_tokens": -3}, (9, 0, 0, 1, 10, None)),
        (None, None, (0, 0, 0, 0, 0, None)),
    ],
)
def test_usage(start: Any, end: Any, expected: tuple[Any, ...]) -> None:
    """Reasoning that nobody tells is absent on chat; the type of the other route has to have a number."""
    events = answer(("text", "a"))
    events[0]["message"]["usage"], events[-2]["usage"] = start, end
    total, cached, written, output, whole, thought = expected
    reply = chat_reply(WITH_USAGE)
    [*_, finish, last] = reply.feed(events)
    assert (
        last["usage"]
        == reply.completion["usage"]
        == {
            "prompt_tokens": total,
            "completion_tokens": output,
            "total_tokens": whole,
            "prompt_tokens_details": {"cached_tokens": cached},
            **({} if thought is None else {"completion_tokens_details": {"reasoning_tokens": thought}}),
        }
    )
    assert last["choices"] == [] and finish["usage"] is None
    assert response_of(events)["usage"] == {
        "input_tokens": total,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": thought or 0},
        "total_tokens": whole,
    }


def test_without_being_asked_no_chunk_has_a_usage() -> None:
    assert not any("usage" in chunk for chunk in chat_reply().feed(answer(("text", "a"))))


def test_the_request_is_repeated_in_every_response_object() -> None:
    echo = {"tools": [{"type": "web_search"}], "tool_choice": "required", "parallel_tool_calls": False}
    out = responses_reply(Ingress({}, echo=echo)).feed(answer())
    objects = [event["response"] for event in out]
    assert len(objects) == 3
    assert all(echo.items() <= response.items() for response in objects)
    for response in objects:
        read_response(response)


def test_what_the_request_left_out_has_its_default() -> None:
    defaults = {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True, "store": False}
    assert (defaults | {"truncation": "disabled", "metadata": {}}).items() <= response_of(answer()).items()


def test_the_beginning_comes_once_whatever_the_first_batch_holds() -> None:
    reply = responses_reply()
    first = reply.feed([PING])
    assert [event["type"] for event in first] == ["response.created", "response.in_progress"]
    assert reply.feed([PING]) == []
    rest = reply.feed(answer(("text", "a")))
    assert [*first, *rest] == responses_reply().feed(answer(("text", "a")))


def test_a_silence_is_numbered_like_everything() -> None:
    reply, events = responses_reply(), answer(("text", "a"))
    out = [*reply.feed([PING]), reply.keepalive(), *reply.feed(events[:3]), reply.keepalive(), *reply.feed(events[3:])]
    assert out[2] == {"type": "keepalive", "sequence_number": 2}
    check_response_events(out)


# -- the end


@both
def test_nothing_is_said_behind_the_end(reply_of: Callable[..., AnswerReader]) -> None:
    reply, events = reply_of(), answer(("text", "a"))
    reply.feed(events)
    assert reply.finished and reply.feed(events) == []


@pytest.mark.parametrize("arguments", [[], ['{"a":'], ['{"a":', '"b']])
def test_a_cut_call_keeps_what_came_of_it(arguments: list[str]) -> None:
    events = answer(("text", "a"), ("cut", "c", "f", *arguments), stop="max_tokens")
    reply = chat_reply()
    reply.feed(events)
    [choice] = reply.completion["choices"]
    assert choice["finish_reason"] == "length"
    assert choice["message"]["tool_calls"][0]["function"]["arguments"] == "".join(arguments)
    response = response_of(events)
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert (response["output"][1]["status"], response["output"][1]["arguments"]) == ("incomplete", "".join(arguments))


@both
def test_an_open_call_at_a_good_end_is_a_broken_answer(reply_of: Callable[..., AnswerReader]) -> None:
    with pytest.raises(BadAnswer):
        reply_of().feed(answer(("cut", "c1", "f", "{}"), stop="end_turn"))


def test_a_failure_ends_the_stream_with_what_was_whole() -> None:
    reply = responses_reply()
    out = reply.feed(answer(("text", "a"), ("text", "b"))[:6])
    out += reply.fail("rate_limit_exceeded", "try again in 3s")
    response = check_response_events(out)
    assert response is not None and response is not reply.response and response == reply.response
    assert response["error"] == {"code": "rate_limit_exceeded", "message": "try again in 3s"}
    assert [item["content"][0]["text"] for item in response["output"]] == ["a"]
    assert reply.finished and reply.fail("server_error", "again") == []


def test_a_failure_before_everything_has_a_beginning() -> None:
    out = responses_reply().fail("server_error", "m")
    assert [event["type"] for event in out] == ["response.created", "response.in_progress", "response.failed"]
    check_response_events(out)


def test_a_failure_cannot_follow_the_end() -> None:
    reply = responses_reply()
    reply.feed(answer())
    assert reply.fail("server_error", "m") == [] and reply.response["status"] == "completed"


def test_what_stood_before_a_fault_in_its_batch_comes_with_the_failure() -> None:
    reply = responses_reply()
    events = answer(("text", "a"))
    with pytest.raises(BadAnswer, match="unknown event"):
        reply.feed([*events[:3], {"type": "surprise"}])
    out = reply.fail("server_error", "m")
    assert "response.output_text.delta" in [event["type"] for event in out]
    check_response_events(out)


@given(answers, cut_places, st.booleans(), st.sampled_from([WITH_NAMESPACE, ALL_CUSTOM]))
def test_any_answer_in_any_batches(events: list[Event], cuts: list[int], silent: bool, ingress: Ingress) -> None:
    reply = chat_reply(WITH_USAGE)
    chunks = reply.feed(events)
    assert check_chat_chunks(chunks, include_usage=True) == reply.completion
    read_chunks(chunks)
    again = chat_reply(WITH_USAGE)
    assert [chunk for piece in batches(events, cuts) for chunk in again.feed(piece)] == chunks
    out, response = responses_result([events], ingress)
    assert check_response_events(out) == response
    completed = read_response_events(out)
    assert (completed is not None) == (response["status"] == "completed")
    assert responses_result(batches(events, cuts), ingress) == (out, response)
    if silent:
        quiet = responses_reply(ingress)
        noisy = quiet.feed([PING])
        for piece in batches(events, cuts):
            noisy += [quiet.keepalive(), *quiet.feed(piece)] if not quiet.finished else []
        check_response_events(noisy)


# -- what is refused


A = said(text("a"))
CUT: Event = {**END, "delta": {"stop_reason": "max_tokens"}}


@rows(
    "events, words",
    [
        ([{"type": "message_start"}], "without its message"),
        ([{"type": "surprise"}], "unknown event"),
        ([{"type": "error", "error": {"type": "overloaded_error", "message": "too busy"}}], "too busy"),
        ([{"type": "error"}], "reported an error"),
        ([START, begun({})], "no type"),
        ([START, begun(None)], "no type"),
        ([START, begun(TEXT, -1)], "index -1"),
        ([START, begun(TEXT, "0")], "index '0'"),
        ([START, begun(TEXT, True)], "index True"),
        ([START, begun(TEXT, None)], "index None"),
        ([START, begun(TEXT), ended(), begun(TEXT)], "index 0 after 0"),
        ([START, begun(TEXT), begun(TEXT, 1)], "inside another"),
        ([begun(TEXT)], "before its answer"),
        ([START, begun({**CALL, "id": ""})], "without an id or a name"),
        ([START, begun({**CALL, "name": None})], "without an id or a name"),
        ([START, A], "no open block"),
        ([START, begun(TEXT), said(text("a"), 1)], "no open block"),
        ([START, begun(TEXT), ended(), A], "no open block"),
        ([START, begun(TEXT), said(thought("a"))], "thinking_delta in a text block"),
        ([START, begun(TEXT), said(typed("a"))], "input_json_delta in a text block"),
        ([START, begun(TEXT), said(signed("a"))], "signature_delta in a text block"),
        ([START, begun(CALL), said(cited({}))], "citations_delta in a tool_use block"),
        ([START, begun({"type": "redacted_thinking"}), A], "text_delta in a redacted_thinking block"),
        ([START, begun({"type": "x_search_tool_result"}), A], "text_delta in a x_search_tool_result block"),
        ([START, begun(TEXT), ended(1)], "not open"),
        ([START, begun(CALL), said(typed("[1")), ended()], "not JSON"),
        ([START, begun(SEARCH), said(typed("{")), ended()], "not JSON"),
        ([START, begun(TEXT), END], "inside a block"),
        ([START, begun(CALL), END], "inside a block"),
        ([START, begun(TEXT), CUT], "inside a block"),
        ([START, begun(SEARCH), CUT], "inside a block"),
        ([START, begun(CALL), {**END, "delta": {"stop_reason": None}}, STOP], "inside a block"),
        ([END], "before it began"),
        ([STOP], "before it began"),
        ([START, {"type": "message_delta"}], "out of order"),
        ([START, begun(TEXT), said({})], "out of order"),
        ([START, begun(TEXT), said(text(7))], "out of order"),
    ],
)
def test_what_is_no_messages_stream_is_refused(events: list[Event], words: str) -> None:
    for reply in (chat_reply(), responses_reply()):
        with pytest.raises(BadAnswer, match=words):
            reply.feed(events)
        assert not reply.finished


@rows(
    "events",
    [
        [START, begun({"type": "redacted_thinking"}), ended(), END, STOP],
        [START, begun({"type": "code_execution_tool_result"}, 3), ended(3), END, STOP],
        [START, begun({"type": "of_tomorrow", "x": 1}), A, said({"type": "new_delta"}), ended(), END, STOP],
        [START, begun({"type": "image"}), ended(), END, STOP],
        [{"type": "ping"}, START, {"type": "ping"}, END, {"type": "ping"}, STOP],
        [START, {"type": "message_delta", "delta": {}}, STOP],
    ],
)
def test_what_says_nothing_is_read_over(events: list[Event]) -> None:
    chat, responses = chat_reply(), responses_reply()
    assert len(chat.feed(events)) == 2  # the role, and the end
    assert len(responses.feed(events)) == 3
    assert chat.completion["choices"][0]["message"]["content"] is None and responses.response["output"] == []


@rows(
    "blocks",
    [
        [("text", "x" * 3000)],
        [("text", *["x"] * 3000)],
        [("text", *[{"url": "", "title": ""}] * 12)],
        [("text", {"url": "x" * 3000})],
        [("thinking", "x" * 3000)],
        [("call", "c", "f" * 3000)],
        [("call", "c", "f", "{" + " " * 3000 + "}")],
        [("search", "x" * 3000)],
        [("search", None)] * 12,
    ],
)
@rows("reply_of", [chat_reply, responses_reply])
def test_what_is_kept_is_bounded(blocks: list[tuple[Any, ...]], reply_of: Callable[..., AnswerReader]) -> None:
    with pytest.raises(BadAnswer, match="3000 characters"):
        reply_of(max_chars=3000).feed(answer(*blocks))


def test_repeated_ids_become_different_ones() -> None:
    """The SDK refuses two calls with one id."""
    events = answer(*[("call", "c", "f", "{}")] * 3, stop="tool_use")
    chat, responses = chat_reply(), responses_reply()
    chat.feed(events)
    responses.feed(events)
    calls = chat.completion["choices"][0]["message"]["tool_calls"]
    assert [call["id"] for call in calls] == ["c", "c__u2", "c__u3"]
    assert [item["call_id"] for item in responses.response["output"]] == ["c", "c__u2", "c__u3"]


_blocks = members(
    type=st.sampled_from(["text", "thinking", "tool_use", "server_tool_use", "web_search_tool_result", "image"]),
    id=st.sampled_from(["c", ""]),
    name=texts,
    input=st.sampled_from([{}, {"a": 1}]),
)
_deltas = members(
    type=st.sampled_from(["text_delta", "thinking_delta", "input_json_delta", "citations_delta", "signature_delta"]),
    text=texts,
    thinking=texts,
    partial_json=st.sampled_from(["{", "}", "{}", ""]),
    citation=members(url=texts, title=texts, start_index=st.integers()),
    stop_reason=st.sampled_from(["end_turn", "max_tokens", None]),
)
_events = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            [
                "content_block_start",
                "content_block_delta",
                "content_block_delta",
                "content_block_stop",
                "message_delta",
                "message_stop",
                "ping",
            ]
        )
    },
    optional={
        "index": mostly(st.sampled_from([0, 0, 1, 2])),
        "content_block": mostly(_blocks),
        "delta": mostly(_deltas),
        "usage": mostly(members(input_tokens=st.integers(), output_tokens=st.integers())),
    },
)


@given(st.lists(_events, max_size=12))
def test_of_any_events_nothing_illegal_comes(events: list[Event]) -> None:
    """Whatever is read, an answer is refused, unfinished or legal."""
    chat, responses = chat_reply(), responses_reply()
    out: list[Event] = []
    for event in [START, *events]:
        try:
            chat.feed([event])
            out += responses.feed([event])
        except BadAnswer:
            break
    check_response_events(out + responses.fail("server_error", "m"))
