"""What is the same on both OpenAI-style routes: refused fields, the order of checks, the way there and back, and bodies
of any shape. Whole bodies stand on disk."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples, rows

from core.openai_bodies import MINIMAL, PARSERS, RENDERERS, RULES, SURFACES, check_hub, parse, refusal
from core.strategies import OPEN_BODIES, hub_requests, json_objects
from proxy.core.content import blocks_of
from proxy.core.convert.openai_fields import MAX_ARGUMENTS, MAX_ENTRIES, MAX_IMAGE, merged
from proxy.core.invalid import MAX_SHOWN, InvalidRequest
from proxy.core.messages import MAX_MESSAGES, MAX_U32

# -- fields by name

#: What would change the answer, on both routes; values of no effect are no excuse.
_REFUSED = """
    audio conversation context_management frequency_penalty function_call functions logit_bias logprobs max_tool_calls
    metadata modalities moderation prediction presence_penalty previous_response_id prompt response_format
    safety_identifier seed stop temperature top_k top_logprobs top_p user verbosity web_search_options x-unheard-of
"""
#: What only the other route knows, or what a chat caller cannot mean as a hint.
_REFUSED_ON = {
    "chat": """
        background client_metadata include input instructions max_output_tokens reasoning service_tier store text
        truncation
    """,
    "responses": "max_completion_tokens max_tokens messages n reasoning_effort",
}
REFUSED = [(surface, name) for surface in SURFACES for name in (_REFUSED + _REFUSED_ON[surface]).split()]


@rows("rules", RULES)
@rows("surface, name", REFUSED)
def test_a_field_that_cannot_be_honoured_is_refused_by_name(surface: str, name: str, rules: str) -> None:
    assert parse(surface, rules, **{name: None}) == parse(surface, rules)
    if surface == "chat" and name in RULES[rules].always:
        return
    for value in (False, True, 0, 1, 0.5, "", "x", [], {}, {"type": "json_object"}):
        assert refusal(surface, rules, **{name: value}) == (name, "unsupported_parameter")


@pytest.mark.parametrize("surface", SURFACES)
def test_the_alphabetically_first_of_several_is_named(surface: str) -> None:
    assert refusal(surface, user="u", top_p=1, temperature=0)[0] == "temperature"


def refused_with(surface: str, **members: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        parse(surface, **members)
    return caught.value


#: What is refused, and how the message shows it. `hosted` is a value that stands at each place in turn.
NAMED: list[tuple[str, dict[str, Any]]] = [
    *((surface, {"tools": [{"type": "hosted"}]}) for surface in SURFACES),
    *((surface, {"tool_choice": "hosted"}) for surface in SURFACES),
    *((surface, {"tool_choice": {"type": "hosted"}}) for surface in SURFACES),
    ("chat", {"tool_choice": {"type": "function", "function": {"name": "hosted"}}}),
    ("chat", {"reasoning_effort": "hosted"}),
    ("chat", {"messages": [{"role": "hosted", "content": "x"}]}),
    ("chat", {"messages": [{"role": "user", "content": [{"type": "hosted"}]}]}),
    ("chat", {"messages": [{"role": "tool", "tool_call_id": "hosted"}]}),
    ("chat", {"messages": [{"role": "assistant", "tool_calls": [{"type": "hosted"}]}]}),
    ("responses", {"tool_choice": {"type": "function", "name": "hosted"}}),
    ("responses", {"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "hosted"}]}]}),
    ("responses", {"include": ["reasoning.encrypted_content", "hosted"]}),
    ("responses", {"service_tier": "hosted"}),
    ("responses", {"reasoning": {"effort": "hosted"}}),
    ("responses", {"reasoning": {"summary": "hosted"}}),
    ("responses", {"input": [{"role": "hosted", "content": "x"}]}),
    ("responses", {"input": [{"type": "hosted"}]}),
    ("responses", {"input": [{"role": "user", "content": [{"type": "hosted"}]}]}),
    ("responses", {"input": [{"type": "function_call_output", "call_id": "hosted", "output": "x"}]}),
]


@rows("surface, members", NAMED)
def test_a_refusal_names_the_refused_value(surface: str, members: dict[str, Any]) -> None:
    assert "'hosted'" in refused_with(surface, **members).message
    long = json.loads(json.dumps(members).replace("hosted", "h" * 1_000_000))
    assert len(refused_with(surface, **long).message) < 3 * MAX_SHOWN


@pytest.mark.parametrize("surface", SURFACES)
def test_a_refusal_repeats_little_of_the_callers_names(surface: str) -> None:
    name = "n" * 1_000_000
    tool = {"name": name, "function": {"name": name}, "type": "function"}
    tools: list[Any] = [
        {key: tool[key] for key in (("type", "function") if surface == "chat" else ("type", "name"))}
    ] * 2
    turns = [{"role": "user", "content": "x", name: 1}]
    for members in ({name: 1}, {"tools": tools}, {"messages" if surface == "chat" else "input": turns}):
        refused = refused_with(surface, **members)
        assert len(refused.message) < 3 * MAX_SHOWN and 0 < len(refused.param or "") <= MAX_SHOWN
    assert refusal(surface, **{"n" * MAX_SHOWN: 1})[0] == "n" * MAX_SHOWN


def test_who_the_caller_is_is_never_repeated() -> None:
    assert "me@home" not in refused_with("responses", client_metadata="me@home").message


@pytest.mark.parametrize(
    ("surface", "member", "entry"),
    [
        ("chat", "messages", {"role": "user", "content": "x"}),
        ("responses", "input", {"role": "user", "content": "x"}),
        ("responses", "input", {"type": "reasoning"}),
    ],
)
def test_too_many_entries_are_refused_before_they_are_read(surface: str, member: str, entry: dict[str, Any]) -> None:
    """Each of them holds the event loop; one that would be refused shows that none was looked at."""
    body = {**MINIMAL[surface], member: [entry] * (MAX_ENTRIES + 1)}
    body[member][0] = "no object"
    with pytest.raises(InvalidRequest, match=f"limit is {MAX_ENTRIES}") as caught:
        PARSERS[surface](body, RULES["p2"])
    assert caught.value.param == member


@pytest.mark.parametrize("surface", SURFACES)
def test_hints_about_the_prompt_cache_change_nothing(surface: str) -> None:
    hints = {"prompt_cache_key": "k", "prompt_cache_options": {"ttl": "1h"}, "prompt_cache_retention": "24h"}
    assert parse(surface, **hints) == parse(surface)
    assert refusal(surface, prompt_cache_key=5) == ("prompt_cache_key", "unsupported_parameter")


LIMITS = {"chat": ["max_tokens", "max_completion_tokens"], "responses": ["max_output_tokens"]}


@pytest.mark.parametrize(("surface", "name"), [(surface, name) for surface in SURFACES for name in LIMITS[surface]])
def test_a_token_limit_is_a_positive_whole_number(surface: str, name: str) -> None:
    for value in (0, -1, 5.0, "5", True, [], {}, MAX_U32 + 1):
        assert refusal(surface, **{name: value}) == (name, None)
    for value in (1, MAX_U32):
        assert parse(surface, **{name: value}).request["max_tokens"] == value
    assert "max_tokens" not in parse(surface, **{name: None}).request


def effort_members(surface: str, value: Any) -> dict[str, Any]:
    return {"reasoning_effort": value} if surface == "chat" else {"reasoning": {"effort": value}}


@pytest.mark.parametrize("surface", SURFACES)
def test_efforts_are_those_of_the_provider(surface: str) -> None:
    path = "reasoning_effort" if surface == "chat" else "reasoning.effort"
    for rules in ("p2", "p3", "p5"):
        for effort in ("low", "medium", "high", "xhigh", "max"):
            request = parse(surface, rules, **effort_members(surface, effort)).request
            assert request["output_config"] == {"effort": effort}
        for effort in ("minimal", "", "HIGH", 1, {}, [], True):
            assert refusal(surface, rules, **effort_members(surface, effort)) == (path, None)
        assert "output_config" not in parse(surface, rules, **effort_members(surface, None)).request
    assert refusal(surface, **effort_members(surface, "none")) == (path, None)
    assert parse(surface, "p3", **effort_members(surface, "none")).request["output_config"] == {"effort": "none"}


@pytest.mark.parametrize("surface", SURFACES)
def test_flags_are_true_false_or_absent(surface: str) -> None:
    for name in ("stream", "parallel_tool_calls"):
        for value in ("true", 0, 1, [], {}):
            assert refusal(surface, **{name: value}) == (name, None)
    assert parse(surface, stream=True).stream
    assert not parse(surface, stream=False).stream
    assert not parse(surface).stream


# -- order

#: route -> faults in the order in which they are looked for, with the param of each
ORDER: dict[str, list[tuple[dict[str, Any], str]]] = {
    "chat": [
        ({"temperature": 1}, "temperature"),
        ({"stream": "yes"}, "stream"),
        ({"stream_options": {"x": 1}, "stream": True}, "stream_options.x"),
        ({"messages": [{"role": "user", "content": ""}]}, "messages[0].content"),
        ({"n": 2}, "n"),
        ({"parallel_tool_calls": "no"}, "parallel_tool_calls"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"tools": [{"type": "custom"}]}, "tools[0].type"),
        ({"tool_choice": "x"}, "tool_choice"),
        ({"reasoning_effort": "x"}, "reasoning_effort"),
    ],
    "responses": [
        ({"temperature": 1}, "temperature"),
        ({"stream": "yes"}, "stream"),
        ({"input": [{"role": "x"}]}, "input[0].role"),
        ({"parallel_tool_calls": "no"}, "parallel_tool_calls"),
        ({"store": True}, "store"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"tools": [{"type": "mcp"}]}, "tools[0].type"),
        ({"tool_choice": "x"}, "tool_choice"),
        ({"reasoning": {"effort": "x"}}, "reasoning.effort"),
    ],
}


@pytest.mark.parametrize("surface", SURFACES)
def test_the_first_fault_is_named(surface: str) -> None:
    for at, (_, param) in enumerate(ORDER[surface]):
        members: dict[str, Any] = {}
        for fault, _ in reversed(ORDER[surface][at:]):
            members |= fault
        assert refusal(surface, **members)[0] == param


def test_what_only_some_providers_lack_is_looked_at_last() -> None:
    """Pictures, stream, session, names; see the vectors bridge-*."""
    picture = {"type": "input_image", "image_url": "https://pictures.example/a.png"}
    members: dict[str, Any] = {
        "input": [{"role": "user", "content": [picture]}],
        "tools": [{"type": "function", "name": "Grep"}],
    }
    assert refusal("responses", "p5", **members, reasoning={"effort": "x"})[0] == "reasoning.effort"
    assert refusal("responses", "p5", **members)[0] == "input[0].content[0].image_url"
    del members["input"]
    assert refusal("responses", "p5", **members)[0] == "stream"
    assert refusal("responses", "p5", **members, stream=True)[0] == "tools"
    assert refusal("responses", "p5", "s", **members, stream=True)[0] == "tools[0].function.name"
    assert parse("responses", "p2", **members)


# -- bounds


def conversation(surface: str, count: int) -> dict[str, Any]:
    """Messages of a user and the assistant in turn."""
    said = [{"role": "assistant" if index % 2 else "user", "content": "x"} for index in range(count)]
    return {"messages" if surface == "chat" else "input": said}


@pytest.mark.parametrize("surface", SURFACES)
def test_the_number_of_messages_is_bounded(surface: str) -> None:
    assert len(parse(surface, **conversation(surface, MAX_MESSAGES)).request["messages"]) == MAX_MESSAGES
    members = conversation(surface, MAX_MESSAGES + 1)
    assert refusal(surface, **members) == (next(iter(members)), None)


def calling(surface: str, arguments: str) -> dict[str, Any]:
    if surface == "responses":
        return {"input": [{"type": "function_call", "call_id": "a", "name": "f", "arguments": arguments}]}
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": arguments}}
    return {"messages": [{"role": "assistant", "tool_calls": [call]}]}


@rows("surface", SURFACES)
@rows("arguments, value", [("[1]", [1]), ('"text"', "text"), ("5", 5), ("false", False), ("null", {}), (" ", {})])
def test_arguments_are_taken_back_as_they_were_handed_out(surface: str, arguments: str, value: Any) -> None:
    (message,) = parse(surface, **calling(surface, arguments)).request["messages"]
    assert message["content"][0]["input"] == value


@pytest.mark.parametrize("surface", SURFACES)
def test_arguments_are_bounded_in_bytes_and_in_depth(surface: str) -> None:
    fitting = '{"a":"' + "é" * ((MAX_ARGUMENTS - 8) // 2) + '"}'
    assert len(fitting.encode()) == MAX_ARGUMENTS
    (message,) = parse(surface, **calling(surface, fitting)).request["messages"]
    assert message["content"][0]["input"] == json.loads(fitting)
    where = "messages[0].tool_calls[0].function.arguments" if surface == "chat" else "input[0].arguments"
    for arguments in (fitting + " ", "x{", "NaN", '{"a":' * 200 + "1" + "}" * 200, '{"a":NaN}', '{"a":"\\ud800"}'):
        assert refusal(surface, **calling(surface, arguments)) == (where, None)
    with pytest.raises(InvalidRequest):  # half a pair, which no body from the network has
        PARSERS[surface]({"model": "m", **calling(surface, '{"a":"\ud800"}')}, RULES["p2"])


def showing(surface: str, url: Any) -> dict[str, Any]:
    if surface == "responses":
        return {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": url}]}]}
    return {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]}


@pytest.mark.parametrize("surface", SURFACES)
def test_pictures_are_bounded_and_of_known_types(surface: str) -> None:
    where = "messages[0].content[0].image_url.url" if surface == "chat" else "input[0].content[0].image_url"
    head = "data:image/png;base64,"
    assert parse(surface, **showing(surface, head + "A" * MAX_IMAGE))
    for url in (head + "A" * (MAX_IMAGE + 1), head, "data:image/bmp;base64,AA", "data:image/png,AA", "ftp://x", "", 5):
        assert refusal(surface, **showing(surface, url)) == (where, None)


# -- there and back, and anything


def whole(content: Any) -> list[dict[str, Any]]:
    """Blocks as they are parsed: neighbouring texts are one."""
    blocks = merged(blocks_of(content))
    return [
        {**block, "content": merged(block["content"])} if isinstance(block.get("content"), list) else block
        for block in blocks
    ]


@pytest.mark.parametrize("surface", SURFACES)
@given(data=st.data())
@settings(max_examples=examples(150))
def test_a_conversation_comes_back_whole(surface: str, data: st.DataObject) -> None:
    request = data.draw(hub_requests(mixed=surface == "responses"))
    body = json.loads(json.dumps(RENDERERS[surface](request)))
    parsed = PARSERS[surface](body, RULES["p2"]).request
    check_hub(parsed)
    said = [{**message, "content": blocks_of(message["content"])} for message in parsed.pop("messages")]
    expected = [{**message, "content": whole(message["content"])} for message in request.pop("messages")]
    assert said == expected
    assert parsed == {**request, "stream": True}


@pytest.mark.parametrize("surface", SURFACES)
@given(data=st.data())
@settings(max_examples=examples(400))
def test_a_body_of_any_shape_is_parsed_or_refused(surface: str, data: st.DataObject) -> None:
    body = data.draw(OPEN_BODIES[surface])
    rules = RULES[data.draw(st.sampled_from(list(RULES)))]
    session, lenient = data.draw(st.sampled_from([None, "s"])), data.draw(st.booleans())
    try:
        ingress = PARSERS[surface](body, rules, session=session, lenient=lenient)
    except InvalidRequest as error:
        assert error.param and error.code in (None, "unsupported_parameter", "unsupported_value")
        return
    check_hub(ingress.request)
    names = {tool["name"] for tool in ingress.request.get("tools", ())}
    assert {*ingress.namespaces, *ingress.customs} <= names


@pytest.mark.parametrize("surface", SURFACES)
@given(body=json_objects)
def test_garbage_is_refused(surface: str, body: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        PARSERS[surface](body, RULES["p2"])
    try:
        PARSERS[surface]({**body, **MINIMAL[surface]}, RULES["p2"])
    except InvalidRequest:
        pass
