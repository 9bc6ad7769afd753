"""Strict and lenient: what is refused by name in the one, and becomes of it in the other."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import pytest
from samples import rows

from core.openai_bodies import PARSERS, RULES, SURFACES, check_hub, function_tool, parse, refusal
from proxy.core.convert.openai_mode import LENIENT_TAKES_IT, MAX_IGNORED, by_mode
from proxy.core.invalid import InvalidRequest
from proxy.providers.p1_codex.chat import chat_request

UNSUPPORTED = "unsupported_parameter"
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
FORMATS: dict[str, dict[str, Any]] = {
    "chat": {
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}}
    },
    "responses": {"text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}}},
}
FORMAT = {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}

#: What lenient mode leaves out on a provider that honours none of it, and tells.
TOLD: list[tuple[str, Any]] = [
    ("temperature", 0.7),
    ("top_p", 0.9),
    ("top_k", 40),
    ("stop", ["x" * 1025]),
    ("stop", ["a"] * 17),
    ("seed", 7),
    ("presence_penalty", 0.5),
    ("frequency_penalty", -0.5),
    ("logit_bias", {"50256": -100}),
    ("top_logprobs", 5),
    ("user", "u-1"),
    ("safety_identifier", "s-1"),
    ("metadata", {"k": "v"}),
    ("service_tier", "flex"),
    ("service_tier", "priority"),
    ("prediction", {"type": "content", "content": "x"}),
    ("prompt_cache_retention", "24h"),
    ("prompt_cache_options", {"ttl": "1h"}),
    ("max_tool_calls", 3),
    ("truncation", "auto"),
    ("moderation", {"a": 1}),
    ("context_management", [{"type": "compaction"}]),
    ("verbosity", "low"),
    ("enable_thinking", True),
]
#: What asks for nothing.
IDLE: list[tuple[str, Any]] = [
    ("stop", []),
    ("stop", ["", ""]),
    ("top_p", 1),
    ("presence_penalty", 0),
    ("frequency_penalty", 0.0),
    ("logit_bias", {}),
    ("logprobs", False),
    ("n", 1),
    ("top_logprobs", 0),
    ("user", ""),
    ("metadata", {}),
    ("store", False),
    ("background", False),
    ("service_tier", "auto"),
    ("service_tier", "default"),
    ("truncation", "disabled"),
    ("modalities", ["text"]),
    ("functions", []),
    ("function_call", "auto"),
    ("prompt_cache_key", "k"),
]
#: What both modes refuse: the caller could not read the answer, or its conversation would be lost.
NEVER: list[tuple[str, Any]] = [
    ("store", True),
    ("background", True),
    ("previous_response_id", "resp_1"),
    ("conversation", "conv_1"),
    ("prompt", {"id": "p"}),
    ("audio", {"voice": "v"}),
    ("modalities", ["text", "audio"]),
    ("logprobs", True),
    ("n", 2),
]
#: Values that a field cannot have: lenient mode takes no nonsense.
NONSENSE: list[tuple[str, Any]] = [
    ("temperature", 2.1),
    ("temperature", -0.1),
    ("temperature", "hot"),
    ("temperature", True),
    ("top_p", 1.5),
    ("stop", [1]),
    ("stop", 5),
    ("seed", "x"),
    ("logit_bias", []),
    ("metadata", "x"),
    ("user", 5),
    ("verbosity", "wordy"),
]


@rows("name, value", TOLD)
@rows("surface", SURFACES)
def test_what_nobody_honours_is_left_out_and_told(surface: str, name: str, value: Any) -> None:
    for rules in ("p2", "p5") if name in ("temperature", "top_p") else ("p2", "p3", "p5"):
        found = parse(surface, rules, lenient=True, **{name: value})
        assert (found.request, found.ignored) == (parse(surface, rules).request, (name,))
        assert parse(surface, rules, lenient=True, **{name: None}).ignored == ()


@rows("name, value", IDLE)
@rows("surface", SURFACES)
def test_what_asks_for_nothing_is_not_told(surface: str, name: str, value: Any) -> None:
    found = parse(surface, lenient=True, **{name: value})
    assert (found.request, found.ignored) == (parse(surface).request, ())


@rows("name, value", NEVER)
@rows("surface", SURFACES)
def test_what_changes_the_kind_of_the_answer_is_refused_in_both(surface: str, name: str, value: Any) -> None:
    for lenient in (False, True):
        assert refusal(surface, lenient=lenient, **{name: value}) == (name, UNSUPPORTED)
    assert LENIENT_TAKES_IT not in told(surface, **{name: value})


@pytest.mark.parametrize("members", [{"functions": [{"name": "f"}]}, {"function_call": {"name": "f"}}])
def test_functions_are_of_the_older_chat_alone(members: dict[str, Any]) -> None:
    (name,) = members
    for surface, rules in (("responses", "p2"), ("chat", "p5")):
        for lenient in (False, True):
            assert refusal(surface, rules, lenient=lenient, **members) == (name, UNSUPPORTED)
        assert LENIENT_TAKES_IT not in told(surface, rules, **members)


FUNCTIONS = {"functions": [{"name": "f", "description": "d", "parameters": SCHEMA}, {"name": "g"}]}


@pytest.mark.parametrize(
    ("members", "choice"), [({}, "none"), ({"tool_choice": "required"}, "any"), ({"tool_choice": "auto"}, "auto")]
)
def test_the_older_choice_holds_for_tools_when_nothing_else_chooses(members: Any, choice: str) -> None:
    tools = [function_tool("chat", "f", parameters={"type": "object"})]
    found = parse("chat", lenient=True, tools=tools, function_call="none", **members)
    assert found.request["tool_choice"]["type"] == choice and found.ignored == ()


@rows(
    "word, choice",
    [(None, "auto"), ("auto", "auto"), ("none", "none"), ({"name": "g"}, "g"), ({"name": "g", "x": 1}, "g")],
)
def test_functions_are_tools_in_lenient_mode(word: Any, choice: str) -> None:
    assert told("chat", **FUNCTIONS, function_call=word).endswith(LENIENT_TAKES_IT)
    found = parse("chat", lenient=True, **FUNCTIONS, function_call=word)
    tools = [{"type": "function", "function": function} for function in FUNCTIONS["functions"]]
    wanted = {"type": "function", "function": {"name": choice}} if choice == "g" else choice
    same = parse("chat", lenient=True, tools=tools, tool_choice=wanted, parallel_tool_calls=False)
    assert (found.request, found.functions) == (same.request, True) and not same.functions


#: What of the older form is refused in lenient mode, and with which member.
BAD_FUNCTIONS: list[tuple[dict[str, Any], str]] = [
    ({"functions": {}}, "functions"),
    ({"functions": ["f"]}, "functions[0]"),
    ({"functions": [{"name": ""}]}, "functions[0].name"),
    ({"functions": [{"name": "f", "parameters": 5}]}, "functions[0].parameters"),
    ({"functions": [{"name": "f"}] * 2}, "functions[1].name"),
    ({"functions": [{"name": "f"}], "tools": [function_tool("chat", "g")]}, "functions"),
    ({"function_call": {"name": "f"}}, "function_call"),
    ({**FUNCTIONS, "function_call": {"name": "h"}}, "function_call"),
    ({**FUNCTIONS, "function_call": "required"}, "function_call"),
    ({"messages": [{"role": "function", "content": "x"}]}, "messages[0].name"),
    ({"messages": [{"role": "function", "name": "f", "content": "x"}]}, "messages[0].name"),
    ({"messages": [{"role": "assistant", "function_call": "f"}]}, "messages[0].function_call"),
    ({"messages": [{"role": "assistant", "function_call": {"name": "f"}}]}, "messages[0].function_call.arguments"),
]


@rows("members, param", BAD_FUNCTIONS)
def test_functions_that_are_none_are_refused_in_both(members: dict[str, Any], param: str) -> None:
    assert refusal("chat", lenient=True, **members) == (param, None)
    assert LENIENT_TAKES_IT not in told("chat", **members)


def test_calls_and_results_of_functions_find_each_other_by_name() -> None:
    turns: list[dict[str, Any]] = []
    for name, result in (("f", "1"), ("g", None)):
        call = {"name": name, "arguments": '{"a": "b"}'}
        turns += [{"role": "assistant", "content": None, "function_call": call}]
        turns += [{"role": "function", "name": name, "content": result}]
    turns.insert(0, {"role": "user", "content": "x"})
    messages = parse("chat", lenient=True, messages=turns, **FUNCTIONS).request["messages"]
    assert [message["role"] for message in messages] == ["user", *["assistant", "user"] * 2]
    calls = [block for message in messages[1::2] for block in message["content"]]
    results = [block for message in messages[2::2] for block in message["content"]]
    assert [(call["name"], call["input"]) for call in calls] == [("f", {"a": "b"}), ("g", {"a": "b"})]
    assert [result["content"] for result in results] == ["1", ""]
    assert [call["id"] for call in calls] == [result["tool_use_id"] for result in results]
    assert calls[0]["id"] != calls[1]["id"]


def test_many_calls_of_functions_find_their_results_at_once() -> None:
    """Looking through all open calls for each result took 6 seconds for a body of half the size."""
    names = ["f", "g"] * 250
    calls = [{"role": "assistant", "function_call": {"name": name, "arguments": ""}} for name in sorted(names)]
    results = [{"role": "function", "name": name, "content": str(at)} for at, name in enumerate(reversed(names))]
    began = time.process_time()
    [_, told, answered] = parse("chat", lenient=True, messages=[SAID, *calls, *results], **FUNCTIONS).request[
        "messages"
    ]
    assert time.process_time() - began < 1
    called = {block["id"]: block["name"] for block in told["content"]}
    assert [called[block["tool_use_id"]] for block in answered["content"]] == names[::-1]


#: Texts with nothing in them, beside something that is said.
SAID: dict[str, Any] = {"role": "user", "content": "x"}
EMPTY: list[tuple[str, dict[str, Any], str]] = [
    *(
        ("chat", {"messages": [{"role": role, "content": content}, SAID]}, f"messages[0].content{rest}")
        for role in ("system", "developer", "user")
        for content, rest in (("", ""), ([], ""), ([{"type": "text", "text": ""}], "[0].text"))
    ),
    (
        "chat",
        {"messages": [SAID, {"role": "assistant", "content": [{"type": "refusal", "refusal": ""}]}]},
        "messages[1].content[0].refusal",
    ),
    ("responses", {"instructions": ""}, "instructions"),
]


@rows("surface, members, param", EMPTY)
def test_an_empty_text_says_nothing_in_lenient_mode(surface: str, members: dict[str, Any], param: str) -> None:
    assert refusal(surface, **members) == (param, None)
    assert told(surface, **members).endswith(LENIENT_TAKES_IT)
    found = parse(surface, lenient=True, **members)
    assert (found.request["messages"], found.ignored) == (parse(surface).request["messages"], ())
    assert "system" not in found.request


@pytest.mark.parametrize(
    ("surface", "members", "param"),
    [
        ("chat", {"messages": [{"role": "user", "content": ""}]}, "messages[0].content"),
        ("responses", {"input": ""}, "input"),
        ("responses", {"input": []}, "input"),
    ],
)
def test_somebody_has_to_say_something(surface: str, members: dict[str, Any], param: str) -> None:
    assert refusal(surface, **members) == (param, None)
    assert refusal(surface, lenient=True, **members) == (param.partition("[")[0], None)
    assert LENIENT_TAKES_IT not in told(surface, **members)


@rows("name, value", NONSENSE)
@rows("surface", SURFACES)
def test_a_value_that_a_field_cannot_have_is_refused_in_both(surface: str, name: str, value: Any) -> None:
    assert refusal(surface, **{name: value}) == (name, UNSUPPORTED)
    assert refusal(surface, lenient=True, **{name: value}) == (name, None)
    assert LENIENT_TAKES_IT not in told(surface, **{name: value})


def told(surface: str, rules: str = "p2", **members: Any) -> str:
    """The message that strict mode refuses with, as a route sends it."""
    body = {**{"chat": {"messages": [{"role": "user", "content": "x"}]}, "responses": {"input": "x"}}[surface]}
    parser = partial(PARSERS[surface], {"model": "m", **body, **members}, RULES[rules])
    with pytest.raises(InvalidRequest) as caught:
        by_mode(parser, partial(parser, lenient=True), leniently=False)
    return caught.value.message


@rows("name, value", TOLD)
@rows("surface", SURFACES)
def test_strict_mode_says_what_lenient_mode_would_take(surface: str, name: str, value: Any) -> None:
    if name.startswith("prompt_cache_"):  # in strict mode a hint
        assert parse(surface, **{name: value}).ignored == ()
        return
    message = told(surface, **{name: value})
    assert name in message and message.endswith(LENIENT_TAKES_IT)
    assert refusal(surface, **{name: value}) == (name, UNSUPPORTED)


#: What P1's own chat form refuses although lenient mode has it, and what neither has.
P1_REFUSED: list[tuple[dict[str, Any], str, bool]] = [
    ({"max_tokens": 5}, "max_tokens", True),
    ({"tools": [function_tool("chat", "f")]}, "tools", True),
    ({"parallel_tool_calls": False}, "parallel_tool_calls", True),
    ({"seed": 1}, "seed", True),
    ({"store": False}, "store", True),
    ({"store": True}, "store", False),
    ({"n": 1}, "n", True),
    ({"n": 2}, "n", False),
    ({"functions": [{"name": "f"}]}, "functions", True),
    ({"messages": [{"role": "user", "content": "x"}, {"role": "user", "content": ""}]}, "messages[1].content", True),
    ({"max_tokens": 0}, "max_tokens", False),
    ({"tools": ["x"]}, "tools", False),
    ({"tool_choice": {"type": "mcp"}}, "tool_choice", False),
    ({"messages": [{"role": "tool", "content": "x", "tool_call_id": "a"}]}, "messages[0].tool_call_id", False),
    ({"reasoning_effort": "minimal"}, "reasoning_effort", True),
    (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a"}}]}]},
        "messages[0].content[0].type",
        True,
    ),
]


@rows("members, param, taken", P1_REFUSED)
def test_p1s_own_form_says_it_too(members: dict[str, Any], param: str, taken: bool) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], **members}
    with pytest.raises(InvalidRequest) as caught:
        by_mode(
            partial(chat_request, body, lite=False),
            partial(PARSERS["chat"], body, RULES["p1"], lenient=True),
            leniently=False,
        )
    assert caught.value.param == param
    assert caught.value.message.endswith(LENIENT_TAKES_IT) is taken


HONOURED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("qwen3.8-flash", {"temperature": 0.7, "top_p": 0.9, "top_k": 5}, {"temperature": 0.7, "top_p": 0.9, "top_k": 5}),
    ("glm-5.2", {"temperature": 0.7, "top_p": 0.9}, {"temperature": 0.7, "top_p": 0.9}),
    *[(rules, {"stop": "END"}, {"stop_sequences": ["END"]}) for rules in ("p1", "p5", "minimax-m3", "glm-5.2")],
    ("qwen3.8-flash", {"stop": ["a", ""]}, {"stop_sequences": ["a"]}),
    ("p3", {"temperature": 0.7, "top_p": 0.9}, {"temperature": 0.7, "top_p": 0.9}),
    *[(rules, {"temperature": 0, "top_p": 0.0}, {"temperature": 0, "top_p": 0.0}) for rules in ("p3", "glm-5.2")],
    ("qwen3.8-flash", {"temperature": 0, "top_k": 0}, {"temperature": 0, "top_k": 0}),
    ("p1", {"service_tier": "priority"}, {"speed": "fast"}),
]


@rows("rules, members, hub", HONOURED)
@rows("surface", SURFACES)
def test_what_the_upstream_honours_is_handed_on(
    surface: str, rules: str, members: dict[str, Any], hub: dict[str, Any]
) -> None:
    found = parse(surface, rules, lenient=True, **members)
    assert (found.request, found.ignored) == (parse(surface, rules).request | hub, ())


@rows("rules", RULES)
@rows("surface", SURFACES)
def test_the_form_of_the_answer(surface: str, rules: str) -> None:
    (name,) = FORMATS[surface]
    found = parse(surface, rules, lenient=True, **FORMATS[surface])
    assert found.request["output_config"]["format"] == FORMAT
    held = "json_schema" in RULES[rules].formats
    assert found.ignored == (() if held else ("response_format" if surface == "chat" else "text.format",))
    if "response_format" in RULES[rules].always:
        assert parse(surface, rules, **FORMATS[surface]).request == found.request
    else:
        assert refusal(surface, rules, **FORMATS[surface]) == (name, UNSUPPORTED)


def test_strict_mode_takes_forms_where_the_upstream_can_be_held_to_them() -> None:
    assert {name for name, rules in RULES.items() if rules.always} == {"gpt-5.6-luna", "minimax-m3"}


@pytest.mark.parametrize("lenient", [False, True])
def test_verbosity_and_strict_functions_go_where_they_are_known(lenient: bool) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    function = function_tool("responses", "f", strict=True, parameters=schema)
    members = {"text": {"verbosity": "high"}, "tools": [function]}
    request = parse("responses", "gpt-5.6-luna", lenient=lenient, **members).request
    assert request["output_config"] == {"verbosity": "high"} and request["tools"][0]["strict"] is True
    found = parse("responses", "p2", lenient=lenient, **members)
    assert "output_config" not in found.request and "strict" not in found.request["tools"][0]
    assert found.ignored == (("text.verbosity", "tools[0].strict") if lenient else ())


def test_a_function_whose_schema_cannot_be_strict_is_handed_on_as_it_is_and_named() -> None:
    """Strict mode would make the model fill what is optional."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    schemas = [{**schema, "required": ["a"]}, schema, {**schema, "required": ["a"], "patternProperties": {"x": {}}}]
    tools = [function_tool("responses", f"f{at}", strict=True, parameters=one) for at, one in enumerate(schemas)]
    found = parse("responses", "gpt-5.6-luna", tools=tools)
    assert ["strict" in tool for tool in found.request["tools"]] == [True, False, False]
    assert [tool["input_schema"] for tool in found.request["tools"]] == schemas
    assert found.ignored == ("tools[1].strict", "tools[2].strict")


@rows(
    "word, effort, ignored",
    [("minimal", "low", ()), ("none", "low", ()), ("ultra", "max", ()), ("XHigh", "xhigh", ()), ("purple", None, True)],
)
@rows("surface", SURFACES)
def test_an_unknown_effort_is_the_nearest(surface: str, word: str, effort: str | None, ignored: Any) -> None:
    path = "reasoning_effort" if surface == "chat" else "reasoning.effort"
    members = {"reasoning_effort": word} if surface == "chat" else {"reasoning": {"effort": word}}
    found = parse(surface, lenient=True, **members)
    assert found.request.get("output_config") == (None if effort is None else {"effort": effort})
    assert found.ignored == ((path,) if ignored else ())


@pytest.mark.parametrize(
    ("word", "config"), [(None, {"effort": "medium"}), ("high", {"effort": "high"}), ("none", None)]
)
def test_p1s_efforts_are_those_of_its_own_form(word: str | None, config: Any) -> None:
    assert parse("chat", "p1", lenient=True, reasoning_effort=word).request.get("output_config") == config


def test_a_limit_is_told_where_the_upstream_knows_none() -> None:
    for rules, ignored in (("p1", ("max_tokens",)), ("p5", ("max_tokens",)), ("p2", ()), ("p3", ()), ("glm-5.2", ())):
        assert parse("chat", rules, lenient=True, max_tokens=5).ignored == ignored
    assert parse("chat", "p1", lenient=True, max_completion_tokens=5).ignored == ("max_completion_tokens",)
    assert parse("responses", "p5", lenient=True, max_output_tokens=5).ignored == ("max_output_tokens",)


NESTED: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("chat", {"messages": [{"role": "user", "content": "x", "cache_control": {}}]}, ("messages[0].cache_control",)),
    (
        "chat",
        {"stream": True, "stream_options": {"include_obfuscation": True}},
        ("stream_options.include_obfuscation",),
    ),
    ("chat", {"stream": True, "stream_options": {"x": 1}}, ("stream_options.x",)),
    ("responses", {"stream_options": {"include_obfuscation": True}}, ("stream_options",)),
    ("responses", {"include": ["file_search_call.results"]}, ("include",)),
    ("responses", {"reasoning": {"summary": "long", "budget": 1}}, ("reasoning.budget", "reasoning.summary")),
    ("responses", {"text": {"x": 1}}, ("text.x",)),
    ("responses", {"client_metadata": "me"}, ("client_metadata",)),
    ("responses", {"input": [{"role": "user", "content": "x", "name": "n"}]}, ("input[0].name",)),
    ("responses", {"input": [{"role": "user", "content": "x"}, {"type": "mcp_call"}]}, ("input[1].type",)),
]


@rows("surface, members, ignored", NESTED)
def test_nested_strangers_are_told_by_path(surface: str, members: dict[str, Any], ignored: tuple[str, ...]) -> None:
    found = parse(surface, lenient=True, **members)
    assert found.ignored == ignored
    check_hub(found.request)


def test_few_paths_are_told_of_many() -> None:
    turns = [{"role": "user", "content": "x", "cache_control": {}}] * (2 * MAX_IGNORED)
    assert len(parse("chat", lenient=True, messages=turns).ignored) == MAX_IGNORED


HOSTED = [
    *("code_interpreter", "file_search", "mcp", "image_generation"),
    *("computer_use_preview", "local_shell", "shell", "apply_patch"),
]


@rows("kind", HOSTED)
@rows("surface", SURFACES)
def test_a_hosted_tool_that_the_upstream_lacks(surface: str, kind: str) -> None:
    both = [{"type": kind}, function_tool(surface, "f")]
    assert refusal(surface, tools=both) == ("tools[0].type", UNSUPPORTED)
    assert told(surface, tools=both).endswith(LENIENT_TAKES_IT)
    found = parse(surface, lenient=True, tools=both)
    assert [tool["name"] for tool in found.request["tools"]] == ["f"]
    assert found.ignored == ("tools[0].type",)
    assert refusal(surface, lenient=True, tools=both, tool_choice={"type": kind}) == ("tool_choice.type", UNSUPPORTED)
    assert refusal(surface, lenient=True, tools=both[:1], tool_choice="required") == ("tool_choice", None)
    assert refusal(surface, lenient=True, tools=both[:1]) == ("tools[0].type", UNSUPPORTED)
    assert LENIENT_TAKES_IT not in told(surface, tools=both[:1])
    assert "tools" not in parse(surface, lenient=True, tools=both[:1], tool_choice="none").request


@rows("date", ["", "_2025_08_26", "_preview", "_preview_2025_03_11"])
@rows("surface", SURFACES)
def test_dated_names_are_their_kind(surface: str, date: str) -> None:
    for rules in ("p1", "p3"):
        tools = parse(surface, rules, lenient=True, tools=[{"type": "web_search" + date}]).request["tools"]
        assert [tool["name"] for tool in tools] == ["web_search"]
    for lenient in (False, True):
        assert parse(surface, lenient=lenient, tools=[{"type": "web_search" + date}]).ignored == ("tools[0].type",)


@pytest.mark.parametrize("surface", SURFACES)
def test_several_choices_are_refused_in_order(surface: str) -> None:
    assert refusal(surface, lenient=True, audio={}, conversation="x", temperature="hot")[0] == "audio"


PLACE = {"country": "NO", "city": "Oslo"}


def test_search_options_are_a_search_where_there_is_one() -> None:
    options = {"search_context_size": "low", "user_location": {"type": "approximate", "approximate": PLACE}}
    assert refusal("chat", "p3", web_search_options=options) == ("web_search_options", UNSUPPORTED)
    assert parse("chat", lenient=True, web_search_options=options).ignored == ("web_search_options",)
    (tool,) = parse("chat", "p3", lenient=True, web_search_options=options).request["tools"]
    assert (tool["name"], tool["user_location"]) == ("web_search", {"type": "approximate", **PLACE})
    found = parse("chat", "p1", lenient=True, web_search_options=options, tools=[{"type": "web_search"}])
    assert [tool["name"] for tool in found.request["tools"]] == ["web_search"]
    assert found.ignored == ("web_search_options.user_location",)
    assert refusal("chat", "p3", lenient=True, web_search_options="x") == ("web_search_options", None)


@rows("surface", SURFACES)
@rows("rules", RULES)
def test_instructions_alone_are_what_the_user_says(surface: str, rules: str) -> None:
    """As in P1's own chat form, which lenient mode stands in for."""
    said = [{"role": "system", "content": "Be brief."}, {"role": "developer", "content": "Greet me."}]
    name = "messages" if surface == "chat" else "input"
    assert refusal(surface, rules, **{name: said}) == (name, None)
    request = parse(surface, rules, lenient=True, **{name: said}).request
    assert request["system"] == [{"type": "text", "text": "Be brief."}]
    assert request["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Greet me."}]}]
    assert refusal(surface, rules, lenient=True, **{name: []}) == (name, None)
