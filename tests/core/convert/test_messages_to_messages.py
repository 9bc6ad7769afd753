"""Messages to Messages: what is mended on the way up, and how a native stream comes back."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
from samples import rows

from core.hub_events import CALL, TEXT, THINKING, answer, begun, ended, folded, said, signed, text, thought, typed
from proxy.core.bodies.decode import decode_body
from proxy.core.convert.messages_to_messages import MessagesToMessages, messages_to_messages, without_foreign_thoughts
from proxy.core.invalid import InvalidRequest
from proxy.core.messages import Event, MessageStream, check_request
from proxy.core.reducer import AnswerPolicy, BadAnswer
from proxy.core.tools.calls import short_name

USER = {"role": "user", "content": "hi"}
TURN = [("user", "a"), ("assistant", "b")]
SAYS = {"role": "assistant", "content": "b"}
TEXT_X = {"type": "text", "text": "x"}


def sent(messages: list[dict[str, Any]], **members: Any) -> dict[str, Any]:
    return messages_to_messages({"messages": messages, **members}, model="m", max_tokens=7)


# -- up


def test_what_is_known_passes_and_what_needs_a_beta_header_does_not() -> None:
    betas = ("context_management", "container", "betas", "safeguards", "mcp_servers", "speed", "fallbacks", "new")
    body = sent([USER], temperature=0.5, metadata={"user_id": "u"}, **{name: [] for name in betas})
    assert body == {
        "messages": [USER],
        "model": "m",
        "max_tokens": 7,
        "stream": True,
        "temperature": 0.5,
        "metadata": {"user_id": "u"},
    }


LONG = "mcp__" + "n" * 80
SHORT = short_name(LONG)


def test_names_are_short_wherever_they_stand() -> None:
    called = {"type": "tool_use", "id": "c", "name": LONG, "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "tool_reference", "tool_name": LONG}]}
    history = [USER, {"role": "assistant", "content": [called]}, {"role": "user", "content": [result]}]
    body = sent(history, tools=[{"name": LONG, "description": "d"}], tool_choice={"type": "tool", "name": LONG})
    schema = {"type": "object", "properties": {}}
    assert body["tools"] == [{"name": SHORT, "description": "d", "input_schema": schema}]
    assert body["tool_choice"] == {"type": "tool", "name": SHORT}
    assert body["messages"][1]["content"] == [{**called, "name": SHORT}]
    [answered] = body["messages"][2]["content"]
    assert answered["content"] == [{"type": "text", "text": f"[tool reference: {SHORT}]"}]


def test_a_short_name_comes_back_long() -> None:
    policy = AnswerPolicy({"messages": [], "tools": [{"name": LONG}]})
    reducer = MessagesToMessages(MessageStream("m", "m"), policy)
    events = [event for given in answer(begun({**CALL, "name": SHORT}), ended()) for event in reducer.feed(given)]
    assert [event["content_block"]["name"] for event in events if event["type"] == "content_block_start"] == [LONG]


def test_types_of_images_have_their_one_name() -> None:
    def image(kind: str) -> dict[str, Any]:
        return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": "aGk="}}

    result = {"type": "tool_result", "tool_use_id": "c", "content": [image("IMAGE/PNG")]}
    *_, message = sent([calls("c"), {"role": "user", "content": [result, image("image/jpg")]}])["messages"]
    assert message["content"] == [{**result, "content": [image("image/png")]}, image("image/jpeg")]


@pytest.mark.parametrize("member", ["output_format", "output_config"])
def test_a_form_of_the_answer_is_told_in_the_system_prompt(member: str) -> None:
    form = {"type": "json_schema", "schema": {"type": "array"}}
    members = {member: form if member == "output_format" else {"format": form}}
    for system, before in ((None, []), ("Be brief.", ["Be brief."]), ([{"type": "text", "text": "S"}], ["S"])):
        body = sent([USER], system=system, **members)
        assert member not in body
        told = [block["text"] for block in body["system"]]
        assert told[:-1] == before and told[-1].endswith('{"type":"array"}')


def test_the_effort_is_one_that_is_known() -> None:
    def config(asked: Any, effort: str | None) -> Any:
        body = messages_to_messages(
            {"messages": [USER], "output_config": asked}, model="m", max_tokens=7, effort=effort
        )
        return body.get("output_config")

    assert config({"effort": "ultra", "task_budget": 1}, "max") == {"effort": "max"}  # the other is of a beta
    assert config({"effort": "purple"}, None) is None
    assert config({"effort": "high", "format": {"type": "text"}}, "high") == {"effort": "high"}


def test_unknown_members_of_messages_vanish_and_blocks_stay() -> None:
    block = {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}
    assert sent([{"role": "user", "content": [block], "id": "x"}])["messages"] == [{"role": "user", "content": [block]}]


@rows(
    "messages, expected, system",
    [
        (["user a", "system s"], [("user", ["a", "s"])], None),
        (["system s", "user a"], [("user", ["s", "a"])], None),
        (
            ["user a", "assistant b", "system s", "user c"],
            [("user", "a"), ("assistant", "b"), ("user", ["s", "c"])],
            None,
        ),
        (["user a", "assistant b", "system s"], TURN, ["s"]),
        (["user a", "system "], [("user", "a")], None),
    ],
)
def test_system_messages_find_a_place(messages: list[str], expected: list[Any], system: list[str] | None) -> None:
    given = [dict(zip(("role", "content"), message.split(" ", 1), strict=True)) for message in messages]
    body = sent(given)

    def plain(content: Any) -> Any:
        return content if isinstance(content, str) else [block["text"] for block in content]

    assert [(one["role"], plain(one["content"])) for one in body["messages"]] == expected
    assert (plain(body["system"]) if "system" in body else None) == system


PAGE_FOUND = {"type": "web_search_result", "title": "A", "url": "https://a.example", "encrypted_content": "mp1.eyJ9"}
FOUND = {"type": "web_search_result_location", "url": "https://a.example", "title": "A", "cited_text": ""}
QUOTED = {"type": "char_location", "cited_text": "a", "document_index": 0, "start_char_index": 0, "end_char_index": 1}
LATER = {"type": "ephemeral", "ttl": "1h"}
MARK = {"cache_control": LATER}
LINE = {"type": "text", "text": "a"}


@rows(
    "members, expected",
    [
        ({"thinking": {"type": "adaptive", "display": "omitted"}}, {"thinking": {"type": "adaptive"}}),
        ({"thinking": {"type": "enabled", "budget_tokens": 5}}, {"thinking": {"type": "enabled", "budget_tokens": 5}}),
        ({"system": [LINE, {"type": "text", "text": "", **MARK}]}, {"system": [{**LINE, **MARK}]}),
        ({"system": [{"text": "a"}, 5, {"type": "image"}]}, {"system": [LINE]}),
        ({"system": [{**LINE, "cache_control": {**LATER, "scope": "global"}}]}, {"system": [{**LINE, **MARK}]}),
        ({"system": "x-anthropic-billing-header: a\n\na"}, {"system": "a"}),
        ({"system": {}, "temperature": None, "tools": None, "tool_choice": {"type": "auto"}}, {}),
    ],
)
def test_members_are_what_everybody_knows(members: dict[str, Any], expected: dict[str, Any]) -> None:
    body = sent([USER], **members)
    assert {key: value for key, value in body.items() if key not in ("messages", "model", "stream", "max_tokens")} == (
        expected
    )


OWN = {"name": "B", "description": "d", "input_schema": {"type": "object", "properties": {}}}
LONG = "mcp__" + "x" * 80
SHORT = short_name(LONG)


def test_tools_have_what_everybody_knows() -> None:
    beta = {**OWN, "type": "custom", "defer_loading": True, "eager_input_streaming": True, "strict": True}
    placeholder = {**OWN, "name": "DeferredToolPlaceholder", **MARK}
    bare = {"name": LONG, "input_schema": None}
    body = sent([USER], tools=[beta, placeholder, bare, 5], tool_choice={"type": "tool", "name": LONG})
    assert body["tools"] == [{**OWN, **MARK}, {"name": SHORT, "input_schema": {"type": "object", "properties": {}}}]
    assert body["tool_choice"] == {"type": "tool", "name": SHORT}
    (shell,) = sent([USER], tools=[{"type": "bash_20250124", "name": "bash"}])["tools"]
    assert "type" not in shell and shell["input_schema"]["properties"]["command"] and shell["description"]


PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
BLIND = {"type": "text", "text": "[image omitted: model has no image input]"}


def unknown(kind: str) -> dict[str, Any]:
    return {"type": "text", "text": f"[unsupported content block omitted: {kind}]"}


BROKEN = unknown("image")
EMPTY = {"type": "text", "text": ""}
PAGE = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}


def said_by(role: str, *content: Any) -> dict[str, Any]:
    return {"role": role, "content": content[0] if isinstance(content[0], str) else list(content)}


def use(call_id: str, **members: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "f", "input": {}, **members}


def back(call_id: str, content: Any = "x", **members: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **members}


def earlier(call_id: str) -> dict[str, Any]:
    return {"type": "text", "text": f"[result of an earlier tool call {call_id}]\n"}


#: What the client sends, and what is sent of it.
MENDED: dict[str, tuple[list[Any], list[Any]]] = {
    "text before results": (
        [said_by("assistant", use("a")), said_by("user", LINE, back("a"))],
        [said_by("assistant", use("a")), said_by("user", back("a"), LINE)],
    ),
    "a result of no call": ([said_by("user", back("z"), LINE)], [said_by("user", earlier("z"), TEXT_X, LINE)]),
    "a second result": (
        [said_by("assistant", use("a")), said_by("user", back("a"), back("a", [LINE]))],
        [said_by("assistant", use("a")), said_by("user", back("a"), earlier("a"), LINE)],
    ),
    "repeated ids": (
        [said_by("assistant", use("a"), use("a")), said_by("user", back("a"), back("a", "y"))],
        [said_by("assistant", use("a"), use("a__u2")), said_by("user", back("a"), back("a__u2", "y"))],
    ),
    "empty texts": (
        [said_by("user", EMPTY, LINE), said_by("assistant", EMPTY), said_by("user", ""), said_by("user", EMPTY, LINE)],
        [said_by("user", LINE, LINE)],
    ),
    "results in odd forms": (
        [
            said_by("assistant", use("a"), use("b"), use("c"), use("d")),
            said_by("user", back("a", None), back("b", {"k": 1}), back("c", [EMPTY]), back("d", is_error=None)),
        ],
        [
            said_by("assistant", use("a"), use("b"), use("c"), use("d")),
            said_by("user", back("a", ""), back("b", '{"k":1}'), back("c", ""), back("d")),
        ],
    ),
    "blocks of results": (
        [
            said_by("assistant", use("a")),
            said_by("user", back("a", [LINE, {"type": "tool_reference", "tool_name": LONG}, PAGE, {"type": "new"}, 5])),
        ],
        [
            said_by("assistant", use("a")),
            said_by(
                "user",
                back(
                    "a",
                    [
                        LINE,
                        {"type": "text", "text": f"[tool reference: {SHORT}]"},
                        PAGE,
                        unknown("new"),
                        unknown("unknown"),
                    ],
                ),
            ),
        ],
    ),
    "calls in odd forms": (
        [said_by("assistant", use("a", input="echo"), use("b", input=None, caller={"type": "direct"}, name=LONG))],
        [
            said_by("assistant", use("a", input={"input": "echo"}), use("b", name=SHORT)),
            said_by("user", back("a", "[no tool result]"), back("b", "[no tool result]")),
        ],
    ),
    "thoughts nobody signed": (
        [said_by("assistant", {"type": "thinking", "thinking": "t"}, LINE)],
        [said_by("assistant", {"type": "thinking", "thinking": "t", "signature": ""}, LINE)],
    ),
    "tools of a server": (
        [
            said_by("user", LINE),
            said_by(
                "assistant",
                {"type": "server_tool_use", "id": "c", "name": "code_execution", "input": {}},
                {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "rust"}},
                {"type": "web_search_tool_result", "tool_use_id": "s", "content": [PAGE_FOUND]},
                LINE,
            ),
        ],
        [
            said_by("user", LINE),
            said_by(
                "assistant",
                {"type": "text", "text": "[web search: rust]"},
                {"type": "text", "text": "[web search results]\n- A: https://a.example"},
                LINE,
            ),
        ],
    ),
    "links of a search that is left out": (
        [
            said_by("user", LINE),
            said_by("assistant", {**LINE, "citations": [FOUND], **MARK}, {**LINE, "citations": [QUOTED]}),
        ],
        [said_by("user", LINE), said_by("assistant", {**LINE, **MARK}, {**LINE, "citations": [QUOTED]})],
    ),
    "blocks of the other role": (
        [
            said_by("user", LINE, use("a"), {"type": "thinking", "thinking": "t", "signature": "s"}),
            said_by("assistant", LINE, back("a"), PAGE, PICTURE),
        ],
        [said_by("user", LINE), said_by("assistant", LINE)],
    ),
    "a broken image": ([said_by("user", {"type": "image"}, PICTURE)], [said_by("user", BROKEN, PICTURE)]),
    "an image by another name": (
        [said_by("user", {**PICTURE, "source": {"media_type": "IMAGE/PNG", "data": "aGk="}})],
        [said_by("user", PICTURE)],
    ),
    "what nobody knows": (
        [
            said_by("user", {"type": "future_block", "x": 1}, PAGE, {"type": "document", "source": {"type": "file"}}),
            said_by("assistant", LINE, {"type": "mcp_tool_use", "id": "m"}, {"type": "mcp_tool_result"}),
        ],
        [
            said_by("user", unknown("future_block"), PAGE, unknown("document")),
            said_by("assistant", LINE),
        ],
    ),
    "the breakpoint of an empty text": (
        [said_by("user", LINE), said_by("assistant", {**EMPTY, **MARK}), said_by("user", "b")],
        [said_by("user", {**LINE, **MARK}, {"type": "text", "text": "b"})],
    ),
    "the breakpoint of a system text": (
        [said_by("user", "a"), {"role": "system", "content": [{"type": "text", "text": "s", **MARK}]}],
        [said_by("user", LINE, {"type": "text", "text": "s", **MARK})],
    ),
    "the breakpoint of an empty system text": (
        [said_by("user", "a"), said_by("assistant", LINE), {"role": "system", "content": [{**EMPTY, **MARK}]}],
        [said_by("user", "a"), said_by("assistant", {**LINE, **MARK})],
    ),
    "the breakpoint of a result without a call": (
        [said_by("user", back("z", **MARK))],
        [said_by("user", earlier("z"), {**TEXT_X, **MARK})],
    ),
    "a block of no type": ([said_by("user", LINE, {"type": []})], [said_by("user", LINE)]),
    "a breakpoint stands on no thought": (
        [said_by("assistant", LINE, {"type": "thinking", "thinking": "t", "signature": "s"}, {**EMPTY, **MARK})],
        [said_by("assistant", {**LINE, **MARK}, {"type": "thinking", "thinking": "t", "signature": "s"})],
    ),
}


@rows("name", MENDED)
def test_what_such_servers_refuse_is_mended(name: str) -> None:
    given, expected = MENDED[name]
    before = copy.deepcopy(given)
    assert sent([USER, SAYS, *given])["messages"] == _after(expected)
    assert given == before


def _after(expected: list[Any]) -> list[Any]:
    """With what stands before; neighbours of the assistant are one message."""
    first, *rest = expected
    if first["role"] == "user":
        return [USER, SAYS, *expected]
    return [USER, {"role": "assistant", "content": [{"type": "text", "text": "b"}, *first["content"]]}, *rest]


def everything(request: Any) -> None:
    """Any request becomes one that such a server takes, or raises InvalidRequest."""
    body = decode_body(json.dumps(request).encode())
    check_request(body)
    calls: list[str] = []
    role = ""
    for message in messages_to_messages(body, model="m", max_tokens=1, images=False)["messages"]:
        assert message.keys() == {"role", "content"} and message["role"] != role and message["content"]
        role, blocks = message["role"], message["content"]
        blocks = blocks if isinstance(blocks, list) else [{"type": "text", "text": blocks}]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert sorted(results) == sorted(calls) and [block["type"] for block in blocks[: len(calls)]] == (
            ["tool_result"] * len(calls)
        )
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert len(set(calls)) == len(calls)
        assert all(block["text"] for block in blocks if block["type"] == "text")
    assert not calls


@pytest.mark.parametrize("content", [[PICTURE], [back("a", [PICTURE])]], ids=["said", "result"])
def test_a_model_without_eyes_is_told_of_images(content: list[Any]) -> None:
    body = {"messages": [said_by("assistant", use("a")), said_by("user", *content)]}
    blind = messages_to_messages(body, model="m", max_tokens=1, images=False)["messages"][-1]["content"]
    assert (blind[-1] if content == [PICTURE] else blind[0]["content"][0]) == BLIND


@rows(
    "messages, words",
    [
        ([], "any content"),
        ([{"role": "system", "content": "s"}], "any content"),
        ([said_by("user", EMPTY)], "any content"),
        ([said_by("tool", "x")], "unknown role 'tool'"),
        ([said_by("assistant", {"type": "tool_use", "name": "f"})], "`id` and `name`"),
    ],
)
def test_what_nobody_can_mend_is_the_callers_fault(messages: list[Any], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        sent(messages)


def test_the_billing_line_is_not_sent() -> None:
    billing = {"type": "text", "text": "x-anthropic-billing-header: cc_version=2"}
    kept = {"type": "text", "text": "You are."}
    assert sent([USER], system=[billing, kept])["system"] == [kept]
    assert "system" not in sent([USER], system=[billing])


def test_ids_that_were_made_unique_go_back() -> None:
    calls = [{"type": "tool_use", "id": "call_1__u2", "name": "a", "input": {}}]
    results = [{"type": "tool_result", "tool_use_id": "call_1__u2", "content": "x"}]
    body = sent([USER, {"role": "assistant", "content": calls}, {"role": "user", "content": results}])
    assert body["messages"][1]["content"][0]["id"] == body["messages"][2]["content"][0]["tool_use_id"] == "call_1"
    assert calls[0]["id"] == "call_1__u2"


def calls(*ids: str) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": name, "name": "f", "input": {}} for name in ids],
    }


def results(*ids: str, content: str = "x", then: str = "") -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [{"type": "tool_result", "tool_use_id": name, "content": content} for name in ids]
    return {"role": "user", "content": [*blocks, *([{"type": "text", "text": then}] if then else [])]}


MISSING = {"content": "[no tool result]"}


@rows(
    "given, expected",
    [
        ([USER, calls("a", "b")], [USER, calls("a", "b"), results("a", "b", **MISSING)]),
        ([USER, calls("a"), USER], [USER, calls("a"), results("a", then="hi", **MISSING)]),
        (
            [USER, calls("a"), SAYS, USER],
            [
                USER,
                {"role": "assistant", "content": [*calls("a")["content"], {"type": "text", "text": "b"}]},
                results("a", then="hi", **MISSING),
            ],
        ),
        (
            [USER, calls("a", "b"), results("b", then="c"), SAYS],
            [
                USER,
                calls("a", "b"),
                {
                    "role": "user",
                    "content": [
                        *results("b")["content"],
                        *results("a", **MISSING)["content"],
                        {"type": "text", "text": "c"},
                    ],
                },
                SAYS,
            ],
        ),
        ([USER, calls("a", "b"), results("a"), results("b")], [USER, calls("a", "b"), results("a", "b")]),
        ([USER, calls("a"), USER, results("a")], [USER, calls("a"), results("a", then="hi")]),
        ([USER, calls("a"), results("a"), calls("a"), results("a")], None),
        ([USER, SAYS, USER], None),
    ],
)
def test_calls_without_results_get_some(given: list[Any], expected: list[Any] | None) -> None:
    before = copy.deepcopy(given)
    assert sent(given)["messages"] == (given if expected is None else expected)
    assert given == before


def test_a_call_without_a_result_is_told_from_one_of_the_same_name_later() -> None:
    body = sent([USER, calls("a"), USER, calls("a"), results("a")])
    assert body["messages"][2:] == [results("a", then="hi", **MISSING), calls("a"), results("a")]


def test_only_foreign_thoughts_are_left_out() -> None:
    own = {"type": "thinking", "thinking": "", "signature": "abc"}
    foreign = [{**own, "signature": mark} for mark in ("ccp:codex:v1:x", "model-proxy:p1:v1:x", "Y2NwOmtpbWk6djE6")]
    body = sent([USER, {"role": "assistant", "content": [*foreign, own]}, {"role": "assistant", "content": foreign}])
    assert without_foreign_thoughts(body)["messages"] == [USER, {"role": "assistant", "content": [own]}]
    assert without_foreign_thoughts(sent([USER])) == sent([USER])


# -- back


def run(events: list[Event], **request: Any) -> list[Event]:
    reducer = MessagesToMessages(MessageStream("msg_1", "asked"), AnswerPolicy({"messages": [], **request}))
    return [out for event in events for out in reducer.feed(event)]


SPOKEN = [begun(TEXT), said(text("Hi")), ended()]
HI = [{"type": "text", "text": "Hi"}]


def calling(index: int) -> list[Event]:
    return [begun(CALL, index), said(typed('{"a":'), index), said(typed("1}"), index), ended(index)]


def test_id_and_model_are_ours_and_the_rest_is_theirs() -> None:
    found = folded(run(answer(*SPOKEN, *calling(1), reason="tool_use", cache_read_input_tokens=2)))
    assert (found["id"], found["model"], found["stop_reason"]) == ("msg_1", "asked", "tool_use")
    assert found["content"] == [*HI, {**CALL, "input": {"a": 1}}]
    usage = found["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["cache_read_input_tokens"]) == (5, 3, 2)


@rows("told, shown", [({"thinking_tokens": 2}, 2), ({"thinking_tokens": 9}, 3), (None, None), ({}, None)])
def test_thinking_tokens_are_told_where_the_upstream_tells_them(told: Any, shown: int | None) -> None:
    usage = folded(run(answer(*SPOKEN, output_tokens_details=told)))["usage"]
    assert usage.get("output_tokens_details") == (None if shown is None else {"thinking_tokens": shown})


def test_blocks_that_grow_together_come_one_after_another() -> None:
    call = calling(1)
    events = [SPOKEN[0], call[0], call[1], SPOKEN[1], call[2], SPOKEN[2], call[3]]
    assert folded(run(answer(*events))) == folded(run(answer(*SPOKEN, *call)))


@rows("seed", range(20))
def test_any_order_between_blocks_is_made_legal(seed: int) -> None:
    rows = [list(SPOKEN), calling(1), [begun({**THINKING, "thinking": "Hm"}, 2), ended(2)]]
    chance, mixed = random.Random(seed), []
    while any(rows):
        row = chance.choice([row for row in rows if row])
        mixed.append(row.pop(0))
    found = folded(run(answer(*mixed)))
    assert sorted(block["type"] for block in found["content"]) == ["text", "thinking", "tool_use"]


def test_ids_that_were_used_before_become_unique() -> None:
    history = [{"role": "assistant", "content": [CALL]}]
    (call,) = folded(run(answer(*calling(0)), messages=history))["content"]
    assert call["id"] != "c" and call["id"].startswith("c")


def test_what_no_client_knows_is_left_out_or_translated() -> None:
    strange = [{"type": "future"}, said({"type": "future_delta"}, 7), said({"type": "future_delta"})]
    found = folded(run(answer(SPOKEN[0], *strange, *SPOKEN[1:], *strange, reason="length")))
    assert found["stop_reason"] == "max_tokens" and found["content"] == HI


#: A call at the end of an answer at the token limit -> the arguments so far; None when the call is whole.
CUTS: list[tuple[list[Event], str | None]] = [
    ([*calling(1)[:2], ended(1)], '{"a":'),
    (calling(1)[:2], '{"a":'),
    ([begun(CALL, 1)], "{"),
    ([begun(CALL, 1), said(typed(" "), 1)], " {"),
    ([begun(CALL, 1), ended(1)], "{"),
    ([begun(CALL, 1), said(typed(" "), 1), ended(1)], " {"),
    ([begun(CALL, 1), ended(1), begun({"type": "text", "text": ""}, 2), ended(2)], None),
    (calling(1), None),
    (calling(1)[:3], None),
    ([begun(CALL, 1), said(typed("[1]"), 1), ended(1)], None),
]


@rows("reason", ["max_tokens", "model_context_window_exceeded"])
@rows("call, arguments", CUTS)
def test_a_call_that_a_limit_cut_stays_open(call: list[Event], arguments: str | None, reason: str) -> None:
    out = run(answer(*SPOKEN, *call, reason=reason))
    blocks = [block["type"] for block in folded(out)["content"]]
    assert blocks == (["text"] if arguments else ["text", "tool_use"])
    if arguments:
        pieces = [event["delta"].get("partial_json", "") for event in out if event["type"] == "content_block_delta"]
        assert "".join(pieces) == arguments


@rows(
    "events, ends",
    [
        (answer(*SPOKEN)[:-1], True),
        (answer(*calling(0), reason="tool_use")[:-1], True),
        (answer(begun(CALL), ended(), reason="tool_use")[:-1], True),
        (answer(begun(CALL), said(typed("{")), reason="max_tokens")[:-1], True),
        (answer(*SPOKEN)[:-2], False),
        (answer(SPOKEN[0], reason="end_turn")[:-1], False),
        ([], False),
    ],
)
def test_behind_a_stop_reason_nothing_is_missing(events: list[Event], ends: bool) -> None:
    reducer = MessagesToMessages(MessageStream("m", "m"), AnswerPolicy({"messages": []}))
    for event in events:
        reducer.feed(event)
    assert ([event["type"] for event in reducer.end()][-1:] == ["message_stop"]) is ends is reducer.finished


@rows(
    "events, said_as, told",
    [
        (calling(0), "end_turn", "tool_use"),
        (calling(0), "stop", "tool_use"),
        (calling(0), "max_tokens", "max_tokens"),
        (SPOKEN, "tool_use", "end_turn"),
        (SPOKEN, "pause_turn", "pause_turn"),
    ],
)
def test_a_call_and_its_word_go_together(events: list[Event], said_as: str, told: str) -> None:
    assert folded(run(answer(*events, reason=said_as)))["stop_reason"] == told


def test_names_that_were_shortened_go_back() -> None:
    call = begun({**CALL, "name": SHORT})
    (found,) = folded(run(answer(call, said(typed("{}")), ended()), tools=[{**OWN, "name": LONG}]))["content"]
    assert found["name"] == LONG


@pytest.mark.parametrize("pieces", [['{"a":1}'], ['{"a"', ":1}"], []])
def test_an_input_at_the_start_counts_once(pieces: list[str]) -> None:
    deltas = [said(typed(piece)) for piece in pieces]
    events = run(answer(begun({**CALL, "input": {"a": 1}}), *deltas, ended(), reason="tool_use"))
    assert folded(events)["content"] == [{**CALL, "input": {"a": 1}}]
    typed_text = "".join(event["delta"]["partial_json"] for event in events if event["type"] == "content_block_delta")
    assert typed_text == '{"a":1}'


@pytest.mark.parametrize("thought", ["", "Hm"])
def test_a_signature_at_the_start_is_kept(thought: str) -> None:
    block = {**THINKING, "thinking": thought, "signature": "sealed"}
    events = run(answer(begun(block), ended(), *SPOKEN))
    signatures = [event["delta"].get("signature") for event in events if event["type"] == "content_block_delta"]
    assert [one for one in signatures if one] == ["sealed"]
    assert folded(events)["content"][0] == {"type": "thinking", "thinking": thought, "signature": "sealed"}


def test_nothing_follows_the_end() -> None:
    events = run([*answer(*SPOKEN), {"type": "ping", "cost": "0"}, *calling(1), {"type": "error", "error": {}}])
    assert events[-1]["type"] == "message_stop"


@rows(
    "events, words",
    [
        ([said(text("x"))], "delta of no block"),
        ([begun({**CALL, "name": ""})], "without a name"),
        ([begun({"kind": "text"})], "block of no kind"),
        ([{"type": "content_block_start"}], "out of order"),
        ([ended(3)], "out of order"),
        ([SPOKEN[0], SPOKEN[0]], "began a block twice"),
        ([begun(TEXT, [])], "no kind"),
        ([said(text("Hi"), [])], "out of order"),
        ([SPOKEN[0], said(text(5))], "text_delta of another form"),
        ([begun({**TEXT, "text": 5})], "text_delta of another form"),
        ([begun(TEXT), said(typed("{}"))], "does not fit its block"),
        ([begun(CALL), said(text("x"))], "does not fit its block"),
        ([begun(TEXT), said({"type": "signature_delta", "signature": "x"}), ended()], "does not fit its block"),
        ([begun({"type": "redacted_thinking", "data": "x"}), said(text("x"))], "does not fit its block"),
        ([begun({"type": "of_tomorrow"}), said({"text": "x"})], "out of order"),
        ([begun({"type": "of_tomorrow"}), said({"type": {}})], "does not fit its block"),
        ([begun(TEXT), said({"type": "citations_delta", "citation": 5})], "citations_delta of another form"),
        (answer(*calling(0)[:2], ended()), "not JSON"),
        (answer(SPOKEN[0]), "inside a block"),
        ([begun(CALL), said(typed("x" * 6_000_000))], "passed"),
    ],
)
def test_a_stream_that_cannot_be_passed_on_is_an_error(events: list[Event], words: str) -> None:
    with pytest.raises(BadAnswer, match=words):
        run(events)


def test_without_tools_there_is_no_choice() -> None:
    body = {"messages": [USER], "tools": None, "tool_choice": {"type": "auto"}}
    assert "tool_choice" not in messages_to_messages(body, model="m", max_tokens=1)


def test_the_last_of_several_signatures_is_told() -> None:
    events = run(answer(begun(THINKING), said(signed("a")), said(thought("Hm")), said(signed("b")), ended()))
    assert folded(events)["content"][0] == {"type": "thinking", "thinking": "Hm", "signature": "b"}
