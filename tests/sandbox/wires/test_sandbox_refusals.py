"""What the simulated P1 refuses, row by row, and what it accepts."""

from typing import Any

import pytest
from p1_sandbox_client import (
    BASH,
    LITE,
    MARKER,
    Client,
    assistant,
    call,
    developer,
    full,
    lite,
    output,
    tool,
    user,
)
from raw_client import never_crashes

from proxy.sandbox.model.reply import reply as answer_of
from proxy.sandbox.p1.checks import Seen, check_body
from proxy.sandbox.wires.encrypted_content import encrypt
from proxy.sandbox.wires.responses.read import prompt_tokens, read_ask

LUNA = {"model": "gpt-5.6-luna"}
WEB = {"type": "web_search", "external_web_access": True, "search_content_types": ["text", "image"]}
SEALED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": encrypt("acct-sandbox", "rs_1")}
PART = {"type": "input_text", "text": "x"}


def schema_format(schema: Any, **members: Any) -> dict[str, Any]:
    return {"text": {"format": {"type": "json_schema", "name": "r", "schema": schema, "strict": True, **members}}}


def message(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": list(parts)}


HEADERS = [
    ("no bearer", {"authorization": None}, 401, "token_expired"),
    ("unknown bearer", {"authorization": "Bearer x"}, 401, "token_expired"),
    ("no account", {"chatgpt-account-id": None}, 403, "account id"),
    ("wrong account", {"chatgpt-account-id": "acct-else"}, 403, "account id"),
    ("not JSON", {"content-type": "text/plain"}, 415, "Unsupported Media Type"),
    ("accepts JSON only", {"accept": "application/json"}, 406, "text/event-stream"),
    ("no originator", {"originator": None}, 400, "originator"),
    ("underscore session", {"session_id": "s"}, 400, "session_id"),
    ("socket beta", {"openai-beta": "responses_websockets=2026-02-06"}, 400, "upgrade"),
    ("odd lite header", {LITE: "1"}, 400, LITE),
]

UNSUPPORTED = [
    "stream_options", "max_output_tokens", "max_completion_tokens", "temperature", "top_p", "user", "truncation",
    "prompt_cache_options", "prompt_cache_retention", "safety_identifier", "context_management", "metadata",
    "previous_response_id", "max_tokens", "messages", "type", "generate",
]  # fmt: skip

OPEN_OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
LOOSE_OBJECT = {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"], "additionalProperties": False}
FINE_OBJECT = {"type": "object", "properties": {"a": OPEN_OBJECT}, "required": ["a"], "additionalProperties": False}

BODIES: list[tuple[str, dict[str, Any], int, str]] = [
    *((name, full(**{name: 1}), 400, f"Unsupported parameter: {name}") for name in UNSUPPORTED),
    ("store missing", {k: v for k, v in full().items() if k != "store"}, 400, "Store must be set to false"),
    ("store true", full(store=True), 400, "Store must be set to false"),
    ("stream false", full(stream=False), 400, "Stream must be set to true"),
    ("unknown model", full(model="gpt-9"), 400, "'gpt-9' model is not supported"),
    ("fast suffix", full(model="gpt-5.5-fast"), 400, "not supported"),
    ("luna on the full lane", full(**LUNA), 404, "Model not found gpt-5.6-luna"),
    ("lite for a full model", lite(model="gpt-5.5"), 400, "Responses Lite"),
    ("lite parallel", lite(parallel_tool_calls=True), 400, "requires `parallel_tool_calls` to be false"),
    ("lite instructions", lite(instructions="x"), 400, "does not support `instructions`"),
    ("lite tools", {**lite(), "tools": [BASH]}, 400, "does not support `tools`"),
    ("lite hosted tool", lite(tools=[WEB]), 400, "Unsupported tool type: web_search"),
    ("metadata numbers", full(client_metadata={"a": 1}), 400, "client_metadata"),
    ("marker not a text", lite(client_metadata={**MARKER, next(iter(MARKER)): "1"}), 400, "contradicts"),
    ("instructions no text", full(instructions=1), 400, "Invalid type for 'instructions'"),
    ("parallel no boolean", full(parallel_tool_calls="yes"), 400, "parallel_tool_calls"),
    ("tier", full(service_tier="turbo"), 400, "Unsupported service_tier: turbo"),
    ("tier of another model", full(service_tier="ultrafast"), 400, "Unsupported service_tier"),
    ("include", full(include=["everything"]), 400, "'everything'"),
    ("effort", full(reasoning={"effort": "minimal"}), 400, "Invalid value: 'minimal'"),
    ("effort of another model", full(reasoning={"effort": "ultra"}), 400, "Invalid value: 'ultra'"),
    ("summary", full(reasoning={"summary": "off"}), 400, "'off'"),
    ("reasoning member", full(reasoning={"budget": 1}), 400, "Unknown parameter: 'reasoning.budget'"),
    ("verbosity", full(text={"verbosity": "max"}), 400, "'max'"),
    ("text member", full(text={"size": 1}), 400, "Unknown parameter: 'text.size'"),
    ("format type", full(text={"format": {"type": "xml"}}), 400, "'xml'"),
    ("format name", full(**schema_format(FINE_OBJECT, name="a b")), 400, "text.format.name"),
    ("open object", full(**schema_format(OPEN_OBJECT)), 400, "'additionalProperties' is required"),
    ("open object inside", full(**schema_format(FINE_OBJECT)), 400, "context=('properties', 'a')"),
    ("optional property", full(**schema_format(LOOSE_OBJECT)), 400, "Missing 'b'"),
    ("schema of a list", full(**schema_format({"type": "array"})), 400, "Invalid schema for response_format 'r'"),
    ("tool member", full(tools=[{**BASH, "defer_loading": True}]), 400, "Unknown parameter: 'tools.defer_loading'."),
    ("tool cache control", full(tools=[{**BASH, "cache_control": {}}]), 400, "'tools.cache_control'"),
    ("tool type", full(tools=[{"type": "bash_20250124", "name": "bash"}]), 400, "Unsupported tool type"),
    ("tool name", full(tools=[tool("a b")]), 400, "^[a-zA-Z0-9_-]+$"),
    ("tool name long", full(tools=[tool("a" * 65)]), 400, "maximum length 64"),
    ("tool schema", full(tools=[{**BASH, "parameters": {"type": "string"}}]), 400, "Invalid schema for function"),
    ("strict tool", full(tools=[{**BASH, "strict": True}]), 400, "'additionalProperties' is required"),
    (
        "regex",
        full(tools=[{**BASH, "parameters": {"properties": {"a": {"pattern": r"^\p{L}+$"}}}}]),
        400,
        r"Invalid schema for function 'Bash': '^\\p{L}+$' is not a 'regex'.",
    ),
    ("empty filter", full(tools=[{**WEB, "filters": {"allowed_domains": []}}]), 400, "list of domains"),
    ("choice word", full(tool_choice="any"), 400, "'any'"),
    ("required without tools", full(tool_choice="required"), 400, "must be specified with 'tools'"),
    (
        "choice of a missing function",
        full(tools=[BASH], tool_choice={"type": "function", "name": "Read"}),
        400,
        "Tool choice 'function' not found in 'tools' parameter.",
    ),
    ("search choice", full(tool_choice={"type": "web_search"}), 502, "Bad Gateway"),
    (
        "allowed tools",
        full(
            tools=[BASH], tool_choice={"type": "allowed_tools", "mode": "required", "tools": [{"type": "web_search"}]}
        ),
        502,
        "Bad Gateway",
    ),
    ("input text", full(input="hello"), 400, "Input must be a list"),
    ("input empty", full(input=[]), 400, "Missing required parameter: 'input'"),
    ("item type", full({"type": "thinking"}), 400, "Invalid value: 'thinking'"),
    ("item type no text", full({"type": ["message"]}), 400, "Invalid value"),
    ("item member", full({**user("x"), "cache_control": {}}), 400, "'input[0].cache_control'"),
    ("item id", full({**user("x"), "id": "item_1"}), 400, "begins with 'msg'"),
    ("system role", full(message("system", PART)), 400, "System messages are not allowed"),
    ("tool role", full(message("tool", PART)), 400, "Invalid value: 'tool'"),
    (
        "input_text of the assistant",
        full(message("assistant", PART), user("x")),
        400,
        "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
    ),
    ("output_text of the user", full(message("user", {"type": "output_text", "text": "x"})), 400, "'output_text'"),
    ("breakpoint", full(message("user", {**PART, "prompt_cache_breakpoint": {}})), 400, "prompt_cache_breakpoint"),
    ("part without text", full(message("user", {"type": "input_text"})), 400, "content[0].text"),
    ("image no base64", full(user("x", "data:image/png;base64,@@")), 400, "valid image"),
    ("image empty", full(user("x", "data:image/png;base64,")), 400, "valid image"),
    ("image of another type", full(user("x", "data:text/plain;base64,aGk=")), 400, "valid image"),
    (
        "image in a result",
        full(call("c"), output("c", [{"type": "input_image", "image_url": "?"}])),
        400,
        "valid image",
    ),
    ("orphan result", full(output("c9")), 400, "No tool call found for function call output with call_id c9."),
    ("result before call", full(output("c"), call("c")), 400, "No tool call found"),
    ("call without result", full(call("c8"), user("x")), 400, "No tool output found for function call c8."),
    ("call id long", full(call("c" * 65), output("c" * 65)), 400, "maximum length 64"),
    ("call id empty", full(call(""), output("")), 400, "input[0].call_id"),
    ("call name", full(call("c", "a.b"), output("c")), 400, "^[a-zA-Z0-9_-]+$"),
    ("call arguments", full({**call("c"), "arguments": {}}, output("c")), 400, "expected a string"),
    ("bare reasoning", full({"type": "reasoning", "id": "rs_9", "summary": []}), 404, "Item with id 'rs_9' not found."),
    ("reference", full({"type": "item_reference", "id": "msg_1"}), 404, "Item with id 'msg_1' not found."),
    ("foreign seal", full({**SEALED, "encrypted_content": encrypt("other", "rs_1")}), 400, "could not be verified"),
    ("invented seal", full({**SEALED, "encrypted_content": "gAAAAAopaque"}), 400, "thinking_signature_invalid"),
    ("seal of another item", full({**SEALED, "id": "rs_2"}), 400, "did not match the target item id"),
    (
        "tools item on the full lane",
        full({"type": "additional_tools", "role": "developer", "tools": [BASH]}),
        400,
        "Lite",
    ),
    ("trigger not last", full({"type": "compaction_trigger"}, user("x")), 400, "must be the last"),
]


@pytest.mark.parametrize(("name", "headers", "status", "words"), HEADERS, ids=[row[0] for row in HEADERS])
async def test_header_rules(client: Client, name: str, headers: Any, status: int, words: str) -> None:
    reply = await client.ask(full(), headers)
    assert (reply.status, words in reply.data.decode()) == (status, True), reply.data


@pytest.mark.parametrize(("name", "body", "status", "words"), BODIES, ids=[row[0] for row in BODIES])
async def test_body_rules(client: Client, name: str, body: dict[str, Any], status: int, words: str) -> None:
    on_lite = {LITE: "true"} if "client_metadata" in body and "contradicts" in words else None
    reply = await client.ask(body, on_lite)
    assert (reply.status, words in reply.data.decode()) == (status, True), reply.data


ACCEPTED: list[tuple[str, dict[str, Any]]] = [
    ("full", full()),
    ("lite", lite(developer("Be brief."), user("hi"), tools=[BASH], tool_choice="auto")),
    ("sol on both lanes", full(model="gpt-5.6-sol", reasoning={"effort": "ultra", "context": "all_turns"})),
    ("message without type, content as text", full({"role": "user", "content": "hi"})),
    ("history", full(user("a"), SEALED, assistant("b"), call("c"), output("c"), user("d"), tools=[BASH])),
    (
        "result with parts",
        full(call("c"), output("c", [PART, {"type": "input_image", "image_url": "https://e.example/a"}])),
    ),
    ("search", full(tools=[{**WEB, "filters": {"allowed_domains": ["a.example"]}}])),
    (
        "allowed",
        full(tools=[WEB], tool_choice={"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web_search"}]}),
    ),
    ("choice inside the input", lite(tools=[BASH], tool_choice={"type": "function", "name": "Bash"})),
    ("namespace", lite(tools=[{"type": "namespace", "name": "functions", "description": "", "tools": [BASH]}])),
    ("custom", full(tools=[{"type": "custom", "name": "apply_patch", "format": {"type": "text"}}])),
    ("a property named pattern", full(tools=[{**BASH, "parameters": {"properties": {"pattern": {"default": "("}}}}])),
    ("empty parameters", full(tools=[{**BASH, "parameters": {}}])),
    ("strict", full(**schema_format({**FINE_OBJECT, "properties": {"a": {"type": ["string", "null"]}}}))),
    ("loose schema", full(**schema_format(OPEN_OBJECT, strict=False))),
    ("tier", full(service_tier="priority", prompt_cache_key="k")),
]


@pytest.mark.parametrize(("name", "body"), ACCEPTED, ids=[row[0] for row in ACCEPTED])
async def test_accepted(client: Client, name: str, body: dict[str, Any]) -> None:
    reply = await client.ask(body)
    assert reply.status == 200, reply.data
    assert reply.types[-1] == "response.completed"


@pytest.mark.parametrize(
    ("originator", "agent", "status"),
    [
        ("codex_cli_rs", "codex_cli_rs", 200),
        ("codex_cli_rs", "codex_cli_rs/0.169.0 (Debian)", 200),
        ("codex_exec", "codex_exec/0.169.0", 200),
        ("codex_cli_rs", "model-proxy/1.0", 404),
        ("model-proxy", "model-proxy/1.0", 404),
    ],
)
async def test_luna_is_for_the_vendors_clients(client: Client, originator: str, agent: str, status: int) -> None:
    reply = await client.ask(lite(), {"originator": originator, "user-agent": agent})
    assert reply.status == status


async def test_marker_needs_the_header_but_not_the_reverse(client: Client) -> None:
    with_marker = lite(model="gpt-5.6-sol")
    without = {name: value for name, value in with_marker.items() if name != "client_metadata"}
    assert (await client.ask(with_marker, {LITE: None})).status == 400
    assert (await client.ask(without, {LITE: "true"})).status == 200


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null"])
async def test_bodies_that_are_no_object(client: Client, data: bytes) -> None:
    assert (await client.ask(data)).status == 400


async def test_an_upgrade_is_sent_to_http(client: Client) -> None:
    async with client.session.get(client.url, headers=client.headers()) as response:
        assert response.status == 426


@pytest.mark.parametrize("form", ["failed", "error", "http"])
async def test_context_overflow(client: Client, form: str) -> None:
    client.sandbox.p1.options.context_limit = 1_000
    client.sandbox.p1.options.context_form = form
    reply = await client.ask(full(user("x" * 5_000)))
    if form == "http":
        assert reply.status == 400
        assert reply.json["error"]["code"] == "context_length_exceeded"
        return
    [event] = reply.events
    error = event["response"]["error"] if form == "failed" else event["error"]
    assert event["type"] == ("response.failed" if form == "failed" else "error")
    assert error["code"] == "context_length_exceeded"
    assert "context window" in error["message"]


async def test_a_picture_does_not_fill_the_context(client: Client) -> None:
    client.sandbox.p1.options.context_limit = 2_000
    assert (
        (await client.ask(full(user("x", f"data:image/png;base64,{'aGlo' * 10_000}"))))
        .events[-1]["type"]
        .endswith("completed")
    )


async def test_refused_requests_are_kept_with_their_status(client: Client) -> None:
    await client.ask(full(store=True))
    await client.ask(full())
    assert [seen.status for seen in client.sandbox.p1.requests] == [400, 200]
    assert client.sandbox.p1.requests[-1].headers["Session-Id"] == "s1"
    assert client.sandbox.p1.requests[0].body["store"] is True


@pytest.mark.parametrize(("name", "body"), ACCEPTED, ids=[row[0] for row in ACCEPTED])
def test_junk_is_refused_or_served_but_never_a_crash(name: str, body: dict[str, Any]) -> None:
    on_lite = "client_metadata" in body
    headers = {"originator": "codex_cli_rs", "user-agent": "codex_cli_rs"}

    def serve(changed: dict[str, Any]) -> object:
        check_body(Seen(headers, changed, on_lite, "acct-sandbox"))
        return prompt_tokens(changed) and answer_of(read_ask(changed, lite=on_lite))

    never_crashes(body, serve)
