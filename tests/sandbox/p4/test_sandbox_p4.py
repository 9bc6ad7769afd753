"""The simulated P4: keys, sessions, models and their wires, the gateway's errors, and the usage query."""

import pytest
from p2_sandbox_client import IMAGE, user
from p4_sandbox_client import BODIES, P4Client, go_chat, go_messages
from samples import rows

from proxy.sandbox.p4.catalog import MODELS
from proxy.sandbox.wires.encrypted_content import encrypt


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


@rows("name", MODELS)
async def test_each_model_has_its_wires(go: P4Client, name: str) -> None:
    for wire, make in BODIES.items():
        go.wire = wire
        reply = await go.ask(make(model=name))
        if wire in MODELS[name].wires:
            assert reply.status == 200 and b"hello" in reply.data
        else:
            assert (reply.status, reply.json["error"]["type"]) == (401, "ModelError")


async def test_what_a_client_says_of_itself_is_kept(go: P4Client) -> None:
    said = {"x-opencode-client": "cli", "x-opencode-project": "global", "x-opencode-request": "msg_1"}
    assert (await go.ask(go_chat(), {**said, "accept": "*/*"})).status == 200
    assert (await go.ask(go_chat())).status == 200
    assert list(go.sandbox.p4.clients) == [said, {}]


async def test_unknown_models_and_accounts(go: P4Client) -> None:
    reply = await go.ask(go_chat(model="opencode-go/glm-5.2"))
    assert (reply.status, reply.json["error"]["type"]) == (401, "ModelError")
    go.sandbox.p4.options.blocked_models = frozenset({"deepseek-v4-pro"})
    reply = await go.ask(go_chat(model="deepseek-v4-pro"))
    assert (reply.status, reply.json["error"]["type"]) == (403, "RegionError")
    go.sandbox.p4.options.subscribed = False
    reply = await go.ask(go_chat())
    assert (reply.status, reply.json["error"]["type"]) == (403, "EntitlementError")


async def test_images_may_be_refused_where_there_are_no_eyes(go: P4Client) -> None:
    go.sandbox.p4.options.refuse_images = True
    assert "no image input" in (await go.ask(go_chat(user([IMAGE])))).json["error"]["message"]
    assert (await go.ask(go_chat(user([IMAGE]), model="kimi-k2.6"))).status == 200


FOREIGN = {"type": "thinking", "thinking": "t", "signature": "Y2NwOmtpbWk6djE6bXNnXzE6Mg"}


async def test_signatures_may_be_checked(go: P4Client) -> None:
    go.sandbox.p4.options.check_signatures = True
    history = [user("a"), {"role": "assistant", "content": [FOREIGN]}, user("c")]
    assert "Invalid `signature`" in (await go.ask(go_messages(*history))).json["error"]["message"]
    history[1]["content"] = [{**FOREIGN, "signature": encrypt("go-sandbox", "thinking")}]
    assert (await go.ask(go_messages(*history))).status == 200


async def test_context_overflow(go: P4Client) -> None:
    go.sandbox.p4.options.context_limit = 1_000
    for make in (go_chat, go_messages):
        reply = await go.ask(make(user("x" * 5_000)))
        assert reply.status == 400 and "maximum context length" in reply.json["error"]["message"]


async def test_usage_and_models(go: P4Client) -> None:
    bearer = {"authorization": f"Bearer {go.key}"}
    go.sandbox.p4.options.usage["monthly"] = 100
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
        assert {"glm-5.2", "deepseek-v4.1-flash", "gpt-6-luna"} <= {
            row["id"] for row in (await response.json())["data"]
        }


async def test_limits_say_when_and_what(go: P4Client) -> None:
    go.sandbox.p4.script.extend([{"fault": "usage_limit", "seconds": 7_200, "window": "monthly"}])
    reply = await go.ask(go_chat())
    assert reply.headers["retry-after"] == "7200"
    assert reply.json["metadata"] == {"workspace": "wrk_sandbox", "limitName": "monthly"}
    assert reply.json["error"]["type"] == "GoUsageLimitError"
