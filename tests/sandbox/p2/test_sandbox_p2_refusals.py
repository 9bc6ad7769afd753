"""What the simulated P2 refuses, row by row, and what it accepts."""

from typing import Any

import pytest
from p2_sandbox_client import (
    BASH,
    IMAGE,
    TEXT,
    VIDEO,
    P2Client,
    answer,
    call,
    called,
    chat,
    system,
    user,
    with_property,
)
from raw_client import never_crashes

from proxy.sandbox.model.reply import reply as answer_of
from proxy.sandbox.p2.catalog import MODELS, rules_for
from proxy.sandbox.wires.chat.checks import check_chat
from proxy.sandbox.wires.chat.read import prompt_tokens, read_chat
from proxy.sandbox.wires.refusal import Refused

AGENTS_ONLY = "only available for Coding Agents"

HEADERS: list[tuple[str, dict[str, str | None], int, str]] = [
    ("no bearer", {"authorization": None}, 401, "invalid_authentication_error"),
    ("unknown bearer", {"authorization": "Bearer x"}, 401, "invalid_authentication_error"),
    ("another device", {"x-msh-device-id": "0" * 32}, 401, "invalid_authentication_error"),
    ("library", {"user-agent": "Python/3.11 aiohttp/3.10"}, 403, AGENTS_ONLY),
    ("no user agent", {"user-agent": None}, 403, AGENTS_ONLY),
    ("unknown program", {"user-agent": "model-proxy/1.0"}, 403, "access_terminated_error"),
    *(
        (name, {f"x-msh-{name}": None}, 403, AGENTS_ONLY)
        for name in ("platform", "version", "device-name", "device-model", "os-version", "device-id")
    ),
    ("host name not ASCII", {"x-msh-device-name": "主机"}, 403, AGENTS_ONLY),
    ("empty header", {"x-msh-version": " "}, 403, AGENTS_ONLY),
    ("not JSON", {"content-type": "text/plain"}, 400, "JSON"),
]

K3 = {"model": "k3"}
OFF = {"thinking": {"type": "disabled"}, "reasoning_effort": None}
HISTORY = (user("a"), called(call("c"), content=None), answer("c"))
BARE_CALL = {"role": "assistant", "tool_calls": [call("c")]}
FORCED = {"tools": [BASH], "tool_choice": {"type": "function", "function": {"name": "Bash"}}}
REQUIRED = {"tools": [BASH], "tool_choice": "required"}
MISSING = "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1"
UNANSWERED = "must be followed by tool messages responding to each 'tool_call_id'"

BODIES: list[tuple[str, dict[str, Any], int, str]] = [
    ("unknown model", chat(model="kimi-k2.6"), 404, "kimi-k2.6"),
    ("no model", chat(model=None), 404, "Not found the model"),
    ("no messages", {**chat(), "messages": []}, 400, "messages"),
    ("temperature", chat(temperature=0.3), 400, "invalid temperature: only 1 is allowed for this model"),
    ("temperature off", chat(temperature=1, **OFF), 400, "invalid temperature: only 0.6 is allowed for this model"),
    ("effort", chat(reasoning_effort="max"), 400, "reasoning_effort"),
    ("effort of k3", chat(reasoning_effort="medium", **K3), 400, "one of low, high, max"),
    ("effort inside", chat(thinking={"type": "enabled", "effort": "ultra"}), 400, "thinking.effort"),
    ("thinking type", chat(thinking={"type": "adaptive"}), 400, "thinking.type"),
    ("thinking no object", chat(thinking="enabled"), 400, "thinking"),
    ("max_tokens", chat(max_tokens=0), 400, "max_tokens"),
    ("stream no boolean", chat(stream="yes"), 400, "stream"),
    ("parallel no boolean", chat(parallel_tool_calls="yes"), 400, "parallel_tool_calls"),
    ("cache key no text", chat(prompt_cache_key=1), 400, "prompt_cache_key"),
    ("forced", chat(**FORCED), 400, "tool_choice 'specified' is incompatible with thinking enabled"),
    ("required", chat(**REQUIRED), 400, "tool_choice 'required' is incompatible with thinking enabled"),
    ("forced on k3", chat(**K3, **FORCED), 400, "tool_choice 'specified' is incompatible"),
    ("choice", chat(tools=[BASH], tool_choice="any"), 400, "tool_choice"),
    ("choice of no name", chat(tools=[BASH], tool_choice={"type": "function"}), 400, "tool_choice"),
    ("tools no list", chat(tools={"a": 1}), 400, "tools"),
    ("tool type", chat(tools=[{"type": "custom", "name": "x"}]), 400, "tools[0].type"),
    ("tool without name", chat(tools=[{"type": "function", "function": {}}]), 400, "tools[0].function.name"),
    ("property", chat(tools=[with_property({})]), 400, "At path 'properties.mode': type is not defined"),
    ("enum only", chat(tools=[with_property({"enum": ["a"]})]), 400, "At path 'properties.mode'"),
    ("items", chat(tools=[with_property({"type": "array", "items": {}})]), 400, "'properties.mode.items'"),
    (
        "member of anyOf",
        chat(tools=[with_property({"anyOf": [{"type": "string"}, {"description": "x"}]})]),
        400,
        "'properties.mode.anyOf.1'",
    ),
    (
        "additional properties",
        chat(tools=[with_property({"type": "object", "additionalProperties": {"minimum": 1}})]),
        400,
        "'properties.mode.additionalProperties'",
    ),
    ("role", chat({"role": "function", "content": "x"}), 400, "messages[0].role"),
    ("system on k3", chat(system("S"), user("a"), **K3), 400, "role 'system' is not supported"),
    ("developer on k3", chat({"role": "developer", "content": "S"}, **K3), 400, "role 'developer'"),
    ("part without type", chat(user([{"text": "a"}])), 400, "invalid content part"),
    ("foreign part", chat(user([{"type": "input_text", "text": "a"}])), 400, "invalid content part"),
    ("empty part", chat(user([{"type": "text", "text": ""}, IMAGE])), 400, "text content is empty"),
    ("empty part of a result", chat(*HISTORY[:2], answer("c", [{"type": "text", "text": ""}])), 400, "is empty"),
    ("empty content beside calls", chat(user("a"), called(call("c"), content=""), answer("c")), 400, "is empty"),
    ("image without address", chat(user([{"type": "image_url", "image_url": "x"}])), 400, "image_url.url"),
    ("video on the small k3", chat(user([VIDEO]), model="k3-256k"), 400, "no video input"),
    ("content null", chat(user(None)), 400, "messages[0].content"),
    ("thought missing", chat(user("a"), BARE_CALL, answer("c")), 400, MISSING),
    ("thought empty", chat(user("a"), {**BARE_CALL, "reasoning_content": ""}, answer("c")), 400, MISSING),
    ("thought missing on k3", chat(user("a"), BARE_CALL, answer("c"), **K3), 400, MISSING),
    (
        "k3 cannot be switched off",
        chat(user("a"), BARE_CALL, answer("c"), **K3, **OFF),
        400,
        MISSING,
    ),
    ("no answer", chat(user("a"), called(call("c")), user("b")), 400, UNANSWERED),
    ("no answer at the end", chat(user("a"), called(call("c"))), 400, UNANSWERED),
    ("one of two", chat(user("a"), called(call("c"), call("d")), answer("c")), 400, "messages: d"),
    ("something between", chat(user("a"), called(call("c")), system("s"), answer("c")), 400, UNANSWERED),
    ("orphan", chat(user("a"), answer("c")), 400, "tool_call_id c is not found"),
    ("answered twice", chat(*HISTORY, answer("c")), 400, "tool_call_id c is not found"),
    ("call without id", chat(user("a"), called({**call(""), "id": ""})), 400, "tool_calls[0].id"),
    ("arguments no text", chat(user("a"), called(call("c", arguments={}))), 400, "arguments"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("name", "headers", "status", "words"), HEADERS, ids=[row[0] for row in HEADERS])
async def test_header_rules(kimi: P2Client, name: str, headers: Any, status: int, words: str) -> None:
    reply = await kimi.ask(chat(), headers)
    assert (reply.status, words in reply.data.decode()) == (status, True), reply.data


@pytest.mark.parametrize(("name", "body", "status", "words"), BODIES, ids=[row[0] for row in BODIES])
async def test_body_rules(kimi: P2Client, name: str, body: dict[str, Any], status: int, words: str) -> None:
    reply = await kimi.ask(body)
    assert (reply.status, words in reply.json["error"]["message"]) == (status, True), reply.data
    assert set(reply.json["error"]) == {"message", "type", "code"}


TYPED = [
    {"type": "string"},
    {"$ref": "#/$defs/x"},
    {"anyOf": [{"type": "string"}, {"type": "null"}]},
    {"type": "object", "additionalProperties": False, "properties": {"items": {"type": "string"}}},
    {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "string"}, "default": {}},
    {"not": {}},
]

ACCEPTED: list[tuple[str, dict[str, Any]]] = [
    ("plain", chat(system("S"), user("a"))),
    ("k3", chat(user("S\n\na"), **K3)),
    ("system in the middle", chat(system("S"), user("a"), system("b"), *HISTORY, system("c"))),
    ("history", chat(*HISTORY, user("b"), tools=[BASH], parallel_tool_calls=False)),
    ("content left out", chat(user("a"), called(call("Bash:0")), answer("Bash:0", [TEXT, IMAGE]))),
    ("empty answer", chat(user("a"), called(call("c")), answer("c", ""))),
    ("ids repeat", chat(*HISTORY, *HISTORY)),
    ("no thought without calls", chat(user("a"), {"role": "assistant", "content": "b"}, user("c"))),
    ("off", chat(user("a"), BARE_CALL, answer("c"), temperature=0.6, **OFF)),
    ("off and forced", chat(**FORCED, **OFF)),
    ("required on k3", chat(**K3, **REQUIRED)),
    ("no choice", chat(tools=[BASH], tool_choice="none")),
    ("one temperature", chat(temperature=1)),
    ("effort inside", chat(thinking={"type": "enabled", "effort": "low", "keep": "all"}, reasoning_effort=None)),
    ("film", chat(user([TEXT, VIDEO, {"type": "video_url", "video_url": {"url": "ms://f1"}}]))),
    ("builtin", chat(tools=[{"type": "builtin_function", "function": {"name": "$web_search"}}])),
    ("schemas", chat(tools=[with_property(schema) for schema in TYPED])),
    ("parameters empty", chat(tools=[{"type": "function", "function": {"name": "a", "parameters": {}}}])),
    ("newer limit", chat(max_tokens=None, max_completion_tokens=5)),
    ("structured", chat(response_format={"type": "json_object"})),
]


@pytest.mark.parametrize(("name", "body"), ACCEPTED, ids=[row[0] for row in ACCEPTED])
async def test_accepted(kimi: P2Client, name: str, body: dict[str, Any]) -> None:
    reply = await kimi.ask(body)
    assert reply.status == 200, reply.data
    assert reply.done and len(reply.finish) == 1


@pytest.mark.parametrize(("name", "body"), ACCEPTED, ids=[row[0] for row in ACCEPTED])
def test_junk_is_refused_or_served_but_never_a_crash(name: str, body: dict[str, Any]) -> None:
    rules = rules_for(MODELS[body["model"]], thinking=True, one_effort=False)

    def serve(changed: dict[str, Any]) -> object:
        check_chat(changed, rules)
        return prompt_tokens(changed) and answer_of(
            read_chat(changed, effort="high", system_role=not rules.no_system_role)
        )

    never_crashes(body, serve)


async def test_a_switch_makes_effort_and_thinking_exclude_each_other(kimi: P2Client) -> None:
    kimi.sandbox.p2.options.one_effort = True
    reply = await kimi.ask(chat())
    assert reply.json["error"]["message"] == "cannot specify both 'thinking' and 'reasoning_effort'"
    assert (await kimi.ask(chat(thinking={"type": "enabled", "effort": "high"}, reasoning_effort=None))).status == 200


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null"])
async def test_bodies_that_are_no_object(kimi: P2Client, data: bytes) -> None:
    assert (await kimi.ask(data)).status == 400


async def test_context_overflow(kimi: P2Client) -> None:
    kimi.sandbox.p2.options.context_limit = 1_000
    reply = await kimi.ask(chat(user("x" * 5_000)))
    assert reply.status == 400 and "exceeded model token limit: 1000" in reply.json["error"]["message"]
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{'aGlo' * 10_000}"}}
    kimi.sandbox.p2.options.context_limit = 2_000
    assert (await kimi.ask(chat(user([picture])))).status == 200


async def test_requests_are_kept_with_their_status(kimi: P2Client) -> None:
    await kimi.ask(chat(temperature=0.5))
    await kimi.ask(chat())
    assert [seen.status for seen in kimi.sandbox.p2.requests] == [400, 200]
    assert kimi.sandbox.p2.requests[0].body["temperature"] == 0.5
    assert (kimi.sandbox.p2.total_requests, kimi.sandbox.p1.total_requests) == (2, 0)


def test_the_error_of_a_missing_place_is_named_once() -> None:
    with pytest.raises(Refused, match="messages"):
        check_chat({}, rules_for(MODELS["k3"], thinking=True, one_effort=False))
