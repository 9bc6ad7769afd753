"""The simulated P4: keys, sessions, models and their wires, the gateway's errors, and the usage query."""

from typing import Any

import pytest
from p2_sandbox_client import BASH as CHAT_BASH
from p2_sandbox_client import IMAGE, answer, call, system, user, with_property
from p4_sandbox_client import BASH, BODIES, P4Client, go_chat, go_messages, go_responses
from raw_client import never_crashes

from proxy.sandbox.model.reply import reply as answer_of
from proxy.sandbox.p4.catalog import MODELS
from proxy.sandbox.wires.encrypted_content import encrypt
from proxy.sandbox.wires.messages.checks import check_messages
from proxy.sandbox.wires.messages.read import prompt_tokens, read_messages

PROVIDER = "Error from provider ("

HEADERS: list[tuple[str, dict[str, str | None], int, str]] = [
    ("no session", {"x-opencode-session": None}, 400, "MissingSessionID"),
    ("empty session", {"x-opencode-session": " "}, 400, "Error from provider (Console Go): "),
    ("two keys", {"authorization": "Bearer k", "x-api-key": "k"}, 401, "AuthError"),
    ("library", {"user-agent": "Python/3.11 aiohttp/3.10"}, 400, "HTTP library"),
    ("no user agent", {"user-agent": None}, 400, "HTTP library"),
    ("not JSON", {"content-type": "text/plain"}, 400, "content-type"),
    ("accepts JSON", {"accept": "application/json"}, 400, "accept"),
]


@pytest.mark.parametrize("wire", BODIES)
@pytest.mark.parametrize(("name", "headers", "status", "words"), HEADERS, ids=[row[0] for row in HEADERS])
async def test_header_rules(go: P4Client, wire: str, name: str, headers: Any, status: int, words: str) -> None:
    reply = await go.ask(BODIES[wire](), headers)
    assert (reply.status, words in reply.data.decode()) == (status, True), reply.data
    assert reply.json["type"] == "error" and set(reply.json["error"]) == {"type", "message"}


@pytest.mark.parametrize("wire", BODIES)
async def test_each_wire_has_its_key_header(go: P4Client, wire: str) -> None:
    body = BODIES[wire]()
    bearer, own = f"Bearer {go.key}", go.key
    right: dict[str, str | None] = {"authorization": bearer, "x-api-key": None}
    wrong: dict[str, str | None] = {"authorization": None, "x-api-key": own}
    if wire == "messages":
        right, wrong = wrong, right
    assert (await go.ask(body, right)).status == 200
    reply = await go.ask(body, wrong)
    assert (reply.status, reply.json["error"]) == (401, {"type": "AuthError", "message": "Missing API key."})
    reply = await go.ask(body, {"authorization": bearer, "x-api-key": own})
    assert (reply.status, "two headers" in reply.json["error"]["message"]) == (400, True)
    version = {"anthropic-version": None if wire == "messages" else "2023-06-01"}
    assert "anthropic-version" in (await go.ask(body, version)).json["error"]["message"]
    go.sandbox.p4.options.tidy_client = False
    assert (await go.ask(body, {"authorization": bearer, "x-api-key": own, **version})).status == 200


async def test_the_session_rule_may_be_off(go: P4Client) -> None:
    go.sandbox.p4.options.needs_session = False
    assert (await go.ask(go_chat(), {"x-opencode-session": None})).status == 200


@pytest.mark.parametrize("name", MODELS)
async def test_each_model_has_its_wires(go: P4Client, name: str) -> None:
    for wire, make in BODIES.items():
        go.wire = wire
        reply = await go.ask(make(model=name))
        if wire in MODELS[name].wires:
            assert reply.status == 200 and b"hello" in reply.data
        else:
            assert (reply.status, reply.json["error"]["type"]) == (401, "ModelError")


async def test_unknown_models_and_accounts(go: P4Client) -> None:
    reply = await go.ask(go_chat(model="opencode-go/glm-5.2"))
    assert (reply.status, reply.json["error"]["type"]) == (401, "ModelError")
    go.sandbox.p4.options.blocked_models = frozenset({"deepseek-v4-pro"})
    reply = await go.ask(go_chat(model="deepseek-v4-pro"))
    assert (reply.status, reply.json["error"]["type"]) == (403, "RegionError")
    go.sandbox.p4.options.subscribed = False
    reply = await go.ask(go_chat())
    assert (reply.status, reply.json["error"]["type"]) == (403, "EntitlementError")


@pytest.mark.parametrize("data", [b"", b"{", b"[]"])
async def test_bodies_that_are_no_object(go: P4Client, data: bytes) -> None:
    assert (await go.ask(data)).status == 400


KIMI = {"model": "kimi-k2.6"}
BARE_CALL = {"role": "assistant", "content": "", "tool_calls": [call("c")]}
TURN = (user("a"), BARE_CALL, answer("c"))
FORCED = {"tools": [CHAT_BASH], "tool_choice": {"type": "function", "function": {"name": "Bash"}}}
EXTRA = "Extra inputs are not permitted"

CHAT: list[tuple[str, dict[str, Any], str]] = [
    ("temperature", go_chat(temperature=0.2), f"temperature: {EXTRA}"),
    ("thinking", go_chat(thinking={"type": "enabled"}), f"thinking: {EXTRA}"),
    ("cache control", go_chat({**user("a"), "cache_control": {}}), f"messages[0].cache_control: {EXTRA}"),
    ("system behind", go_chat(system("a"), user("b"), system("c")), "messages[2]: a system message must be the first"),
    ("result not behind its call", go_chat(user("a"), BARE_CALL, user("b"), answer("c")), "must be followed"),
    ("part without type", go_chat(user([{"text": "a"}])), "invalid content part"),
    ("effort of glm", go_chat(reasoning_effort="low"), "one of high, max"),
    ("effort of mimo", go_chat(model="mimo-v2.5", reasoning_effort="max"), "one of low, medium, high"),
    ("effort of deepseek", go_chat(model="deepseek-v4-pro", reasoning_effort="xhigh"), "one of low, medium"),
    (
        "deepseek without reasoning",
        go_chat(user("a"), {"role": "assistant", "content": "b"}, user("c"), model="deepseek-v4-pro"),
        "must be passed back",
    ),
    ("kimi without reasoning", go_chat(*TURN, **KIMI), "reasoning_content is missing in assistant tool call message"),
    ("kimi forced", go_chat(**KIMI, **FORCED), "tool_choice 'specified' is incompatible with thinking enabled"),
    (
        "kimi pair",
        go_chat(**KIMI, thinking={"type": "enabled"}, reasoning_effort="high"),
        "cannot specify both 'thinking' and 'reasoning_effort'",
    ),
    ("kimi empty text", go_chat(user([{"type": "text", "text": ""}, IMAGE]), **KIMI), "text content is empty"),
    ("kimi schema", go_chat(tools=[with_property({})], **KIMI), "At path 'properties.mode'"),
]


@pytest.mark.parametrize(("name", "body", "words"), CHAT, ids=[row[0] for row in CHAT])
async def test_chat_rules(go: P4Client, name: str, body: dict[str, Any], words: str) -> None:
    reply = await go.ask(body)
    message = reply.json["error"]["message"]
    vendor = MODELS[body["model"]].vendor
    assert (reply.status, words in message, message.startswith(f"{PROVIDER}{vendor}): ")) == (400, True, True), message


CHAT_ACCEPTED: list[tuple[str, dict[str, Any]]] = [
    ("system first", go_chat(system("a"), user("b"), reasoning_effort="max")),
    ("history", go_chat(*TURN, user("b"))),
    ("forced", go_chat(**FORCED)),
    ("schema", go_chat(tools=[with_property({})])),
    ("image for the blind", go_chat(user([IMAGE]))),
    ("kimi history", go_chat(user("a"), {**BARE_CALL, "reasoning_content": "."}, answer("c"), **KIMI)),
    ("k3 required", go_chat(model="kimi-k3", tools=[CHAT_BASH], tool_choice="required")),
    (
        "deepseek history",
        go_chat(
            user("a"),
            {"role": "assistant", "content": "b", "reasoning_content": ""},
            user("c"),
            model="deepseek-v4-flash",
            reasoning_effort="max",
        ),
    ),
    ("effort of others", go_chat(model="hy3", reasoning_effort="low")),
]


@pytest.mark.parametrize(("name", "body"), CHAT_ACCEPTED, ids=[row[0] for row in CHAT_ACCEPTED])
async def test_chat_accepted(go: P4Client, name: str, body: dict[str, Any]) -> None:
    reply = await go.ask(body)
    assert reply.status == 200, reply.data


async def test_images_may_be_refused_where_there_are_no_eyes(go: P4Client) -> None:
    go.sandbox.p4.options.refuse_images = True
    assert "no image input" in (await go.ask(go_chat(user([IMAGE])))).json["error"]["message"]
    assert (await go.ask(go_chat(user([IMAGE]), **KIMI))).status == 200


def result(call_id: str, content: Any = "ok", **members: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **members}


def use(call_id: str, name: str = "Bash") -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {}}


def turn(role: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
THOUGHT = {"type": "thinking", "thinking": "t", "signature": encrypt("go-sandbox", "thinking")}
FOREIGN = {**THOUGHT, "signature": "Y2NwOmtpbWk6djE6bXNnXzE6Mg"}

MESSAGES: list[tuple[str, dict[str, Any], str]] = [
    *(
        (name, go_messages(**{name: {}}), f"{name}: {EXTRA}")
        for name in ("context_management", "mcp_servers", "container", "stream_options")
    ),
    ("no limit", {name: value for name, value in go_messages().items() if name != "max_tokens"}, "max_tokens"),
    ("limit of 0", go_messages(max_tokens=0), "max_tokens"),
    ("no messages", {**go_messages(), "messages": []}, "messages"),
    ("system role", go_messages(user("a"), system("b")), "messages[1].role"),
    ("message member", go_messages({**user("a"), "cache_control": {}}), f"messages[0].cache_control: {EXTRA}"),
    ("empty content", go_messages(user("")), "messages[0].content"),
    ("block type", go_messages(turn("user", use("c"))), "messages[0].content[0].type"),
    ("block without text", go_messages(turn("user", {"type": "text"})), "messages[0].content[0].text"),
    ("thought unsigned", go_messages(user("a"), turn("assistant", {"type": "thinking", "thinking": "t"})), "signature"),
    ("no result", go_messages(user("a"), turn("assistant", use("c")), user("b")), "without `tool_result` blocks: c"),
    ("no result at the end", go_messages(user("a"), turn("assistant", use("c"))), "without `tool_result` blocks: c"),
    ("orphan result", go_messages(turn("user", result("c"))), "unexpected `tool_use_id`"),
    ("image source", go_messages(turn("user", {"type": "image", "source": {"type": "file"}})), "source.type"),
    ("server tool", go_messages(tools=[{"type": "web_search_20250305", "name": "web_search"}]), "tools[0].type"),
    ("tool without schema", go_messages(tools=[{"name": "a"}]), "tools[0].input_schema"),
    ("choice without tools", go_messages(tool_choice={"type": "auto"}), "while providing tools"),
    ("choice of none such", go_messages(tools=[BASH], tool_choice={"type": "tool", "name": "x"}), "'x' not found"),
    ("choice", go_messages(tools=[BASH], tool_choice={"type": "required"}), "tool_choice.type"),
    ("thinking", go_messages(thinking={"type": "on"}), "thinking.type"),
    ("system block", go_messages(system=[PICTURE]), "system[0].type"),
]


@pytest.mark.parametrize(("name", "body", "words"), MESSAGES, ids=[row[0] for row in MESSAGES])
async def test_messages_rules(go: P4Client, name: str, body: dict[str, Any], words: str) -> None:
    reply = await go.ask(body)
    assert reply.status == 400 and words in reply.json["error"]["message"], reply.data
    assert reply.json["error"]["message"].startswith("Error from provider (MiniMax): ")


MESSAGES_ACCEPTED: list[tuple[str, dict[str, Any]]] = [
    ("plain", go_messages(system="S", metadata={"user_id": "u"}, temperature=0.2, stop_sequences=["x"])),
    ("system blocks", go_messages(system=[{"type": "text", "text": "S", "cache_control": {"type": "ephemeral"}}])),
    (
        "history",
        go_messages(
            turn("user", {"type": "text", "text": "a"}, PICTURE),
            turn("assistant", FOREIGN, {"type": "text", "text": "b"}, use("c"), use("d", "Read")),
            turn("user", result("c", is_error=False), result("d", [{"type": "text", "text": "x"}, PICTURE])),
            tools=[{**BASH, "type": "custom", "cache_control": {"type": "ephemeral"}}],
            tool_choice={"type": "auto", "disable_parallel_tool_use": True},
            output_config={"effort": "high"},
            thinking={"type": "adaptive"},
        ),
    ),
]


@pytest.mark.parametrize(("name", "body"), MESSAGES_ACCEPTED, ids=[row[0] for row in MESSAGES_ACCEPTED])
async def test_messages_accepted(go: P4Client, name: str, body: dict[str, Any]) -> None:
    reply = await go.ask(body)
    assert reply.status == 200, reply.data


@pytest.mark.parametrize(("name", "body"), MESSAGES_ACCEPTED, ids=[row[0] for row in MESSAGES_ACCEPTED])
def test_junk_is_refused_or_served_but_never_a_crash(name: str, body: dict[str, Any]) -> None:
    def serve(changed: dict[str, Any]) -> object:
        check_messages(changed, lambda signature: bool(signature))
        return prompt_tokens(changed) and answer_of(read_messages(changed))

    never_crashes(body, serve)


async def test_signatures_may_be_checked(go: P4Client) -> None:
    go.sandbox.p4.options.check_signatures = True
    history = [user("a"), turn("assistant", FOREIGN, {"type": "text", "text": "b"}), user("c")]
    assert "Invalid `signature`" in (await go.ask(go_messages(*history))).json["error"]["message"]
    history[1] = turn("assistant", THOUGHT, {"type": "text", "text": "b"})
    assert (await go.ask(go_messages(*history))).status == 200


RESPONSES: list[tuple[str, dict[str, Any], str]] = [
    ("unknown member", go_responses(messages=[]), "Unknown parameter: 'messages'"),
    ("effort", go_responses(reasoning={"effort": "ultra"}), "'ultra'"),
    ("verbosity", go_responses(text={"verbosity": "none"}), "'none'"),
    ("parallel no boolean", go_responses(parallel_tool_calls="yes"), "parallel_tool_calls"),
    (
        "sealed elsewhere",
        go_responses({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": encrypt("acct", "rs_1")}),
        "encrypted content",
    ),
    ("orphan result", go_responses({"type": "function_call_output", "call_id": "c", "output": "x"}), "No tool call"),
    ("not stored", go_responses({"type": "item_reference", "id": "rs_9"}), "not found"),
    ("tool", go_responses(tools=[{"type": "function", "name": "a b"}]), "tools[0].name"),
]


@pytest.mark.parametrize(("name", "body", "words"), RESPONSES, ids=[row[0] for row in RESPONSES])
async def test_responses_rules(go: P4Client, name: str, body: dict[str, Any], words: str) -> None:
    reply = await go.ask(body)
    assert reply.status == 400 and words in reply.json["error"]["message"], reply.data
    assert reply.json["error"]["message"].startswith("Error from provider (OpenAI): ")


async def test_context_overflow(go: P4Client) -> None:
    go.sandbox.p4.options.context_limit = 1_000
    for make in (go_chat, go_messages):
        reply = await go.ask(make(user("x" * 5_000)))
        assert reply.status == 400 and "maximum context length" in reply.json["error"]["message"]


async def test_usage_and_models(go: P4Client) -> None:
    bearer = {"authorization": f"Bearer {go.key}"}
    async with go.session.get(f"{go.url}/usage", headers=bearer) as response:
        usage = (await response.json())["usage"]
    assert {name: (window["status"], window["percent"]) for name, window in usage.items()} == {
        "rolling": ("ok", 12.5),
        "weekly": ("ok", 34),
        "monthly": ("rate-limited", 100),
    }
    assert usage["rolling"]["resetsAt"].endswith("00Z")
    assert len(go.sandbox.p4.usage_requests) == 1
    async with go.session.get(f"{go.url}/usage") as response:
        assert (response.status, (await response.json())["error"]["type"]) == (401, "AuthError")
    go.sandbox.p4.options.subscribed = False
    async with go.session.get(f"{go.url}/usage", headers=bearer) as response:
        assert (response.status, (await response.json())["error"]["type"]) == (403, "EntitlementError")
    async with go.session.get(f"{go.url}/models") as response:
        assert len((await response.json())["data"]) == 36


async def test_limits_say_when_and_what(go: P4Client) -> None:
    go.sandbox.p4.script.extend([{"fault": "usage_limit", "seconds": 7_200, "window": "monthly"}])
    reply = await go.ask(go_chat())
    assert reply.headers["retry-after"] == "7200"
    assert reply.json["metadata"] == {"workspace": "wrk_sandbox", "limitName": "monthly"}
    assert reply.json["error"]["type"] == "GoUsageLimitError"
