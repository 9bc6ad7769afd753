"""What the simulators refuse, row by row of their tables of checks, and what they accept."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from broken_rows import Broken, Good, broken_rows, data_rows
from p1_sandbox_client import LITE, MARKER, Client, P3Client, full, lite, user
from p2_sandbox_client import P2Client, chat
from p2_sandbox_client import user as chat_user
from p4_sandbox_client import P4Client, go_chat, go_responses
from raw_client import Reply, form_of, never_crashes, places
from refusal_cases import ACCEPTED, HEADERS, REFUSED, Case
from samples import rows, sampled

from proxy.sandbox.model.reply import reply as answer_of
from proxy.sandbox.p1.headers import FORMAT, UPGRADE_HEADERS
from proxy.sandbox.p1.responses import BODY, SeenRequest
from proxy.sandbox.p2.catalog import MODELS, rules_for, thinks
from proxy.sandbox.p3.checks import BODY as GROK_BODY
from proxy.sandbox.p3.checks import GrokRules
from proxy.sandbox.p3.refusals import reworded
from proxy.sandbox.p4.catalog import MODELS as GO_MODELS
from proxy.sandbox.p4.catalog import chat_rules
from proxy.sandbox.p4.catalog import thinks as go_thinks
from proxy.sandbox.wires.chat.checks import CHAT, ChatRules
from proxy.sandbox.wires.chat.read import prompt_tokens as chat_tokens
from proxy.sandbox.wires.chat.read import read_chat
from proxy.sandbox.wires.field_checks import Field, Known, Table, check
from proxy.sandbox.wires.messages.answer import prompt_tokens as messages_tokens
from proxy.sandbox.wires.messages.answer import read_messages
from proxy.sandbox.wires.messages.checks import MESSAGES
from proxy.sandbox.wires.responses.read import prompt_tokens, read_ask

#: For each wire, a body to spoil the headers of.
PLAIN = {
    wire: next(case.sent for case in ACCEPTED if case.wire == wire) for wire in ("p1", "p2", "p3", "chat", "messages")
}
PLAIN["responses"] = go_responses()


class Clients:
    """A client for each wire."""

    def __init__(self, client: Client, kimi: P2Client, grok: P3Client, go: P4Client) -> None:
        self.clients = {"p1": client, "p2": kimi, "p3": grok, "chat": go, "messages": go, "responses": go}
        self.go = go

    async def __call__(self, wire: str, body: Any, headers: dict[str, str | None] | None = None) -> Reply:
        self.go.wire = wire
        return await self.clients[wire].ask(body, headers)


@pytest.fixture
def ask(client: Client, kimi: P2Client, grok: P3Client, go: P4Client) -> Clients:
    return Clients(client, kimi, grok, go)


def check_shape(reply: Reply, wire: str, body: Any) -> None:
    """The error has the members that it has at this upstream, and P4 says who it comes from."""
    if wire == "p1":
        return
    error = reply.json["error"]
    if wire == "p3":
        flat = isinstance(error, str) and set(reply.json) <= {"error", "code"}
        assert flat or error["code"] == "invalid_image"
        return
    if wire == "p2":
        assert set(error) == {"message", "type", "code"}
        return
    assert reply.json["type"] == "error" and set(error) == {"type", "message"}
    if error["type"] == "invalid_request_error" and not error["message"].startswith("Untidy client"):
        assert error["message"].startswith(f"Error from provider ({GO_MODELS[body['model']].vendor}): ")


WIRES = dict.fromkeys(case.wire for case in ACCEPTED)


@rows("case", HEADERS)
async def test_header_rules(ask: Clients, case: Case) -> None:
    reply = await ask(case.wire, PLAIN[case.wire], case.sent)
    assert (reply.status, case.words in reply.data.decode()) == (case.status, True), reply.data
    if case.wire != "p2" or case.status != 400:
        check_shape(reply, case.wire, PLAIN[case.wire])


@rows("case", REFUSED)
async def test_body_rules(ask: Clients, case: Case) -> None:
    on_lite = {LITE: "true"} if "contradicts" in case.words else None
    reply = await ask(case.wire, case.sent, on_lite)
    said = reply.data.decode() if case.wire in ("p1", "p3") else reply.json["error"]["message"]
    assert (reply.status, case.words in said) == (case.status, True), reply.data
    check_shape(reply, case.wire, case.sent)


@rows("case", ACCEPTED)
async def test_accepted(ask: Clients, case: Case) -> None:
    reply = await ask(case.wire, case.sent)
    assert reply.status == 200, reply.data
    assert case.wire not in ("p1", "p3") or reply.types[-1] == "response.completed"
    assert case.wire != "p2" or reply.data.count(b"data: [DONE]") == 1 == reply.data.count(b'"finish_reason":"')


@pytest.mark.parametrize("wire", ["p1", "p2", "p3", "chat"])
@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null"])
async def test_bodies_that_are_no_object(ask: Clients, wire: str, data: bytes) -> None:
    assert (await ask(wire, data)).status == 400


VENDOR = {"originator": "codex_cli_rs", "user-agent": "codex_cli_rs"}


def p1_rules(good: dict[str, Any]) -> Callable[[Any], Any]:
    on_lite = good.get("client_metadata") == MARKER
    return lambda body: SeenRequest(VENDOR, body, on_lite, "acct-sandbox")


def chat_demands(good: dict[str, Any], wire: str) -> ChatRules:
    if wire == "p2":
        model = MODELS[good["model"]]
        return rules_for(model, thinking=thinks(model, good), one_effort=False)
    return chat_rules(good["model"], thinking=go_thinks(good["model"], good), refuse_images=False)


def always(rules: Any) -> Callable[[Any], Any]:
    return lambda _body: rules


@functools.cache
def goods(wire: str) -> list[Good]:
    """The accepted bodies of the wire, with their rules."""
    bodies = [case.sent for case in ACCEPTED if case.wire == wire]
    if wire == "p1":
        return [(body, p1_rules(body)) for body in bodies]
    if wire == "p3":
        return [(body, lambda body: GrokRules(body, "user-sandbox")) for body in bodies]
    if wire == "messages":
        return [(body, always(lambda signature: signature not in ("", "surprise"))) for body in bodies]
    return [(body, always(chat_demands(body, wire))) for body in bodies]


def headers_of(**values: str) -> Good:
    return {name.replace("_", "-"): value for name, value in values.items()}, always("text/event-stream")


REFUSAL = full({"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]})

PAIRED = go_chat(model="kimi-k2.6", thinking={"type": "enabled"})

#: Table -> what passes it, with the rules.
TABLES: dict[str, tuple[Table, list[Good]]] = {
    "p1": (BODY, [*goods("p1"), (REFUSAL, p1_rules(REFUSAL))]),
    "p2": (
        CHAT,
        [(PAIRED, always(chat_demands(PAIRED, "chat"))), *goods("p2"), *goods("chat")],
    ),
    "p3": (GROK_BODY, goods("p3")),
    "messages": (MESSAGES, goods("messages")),
    "headers": (FORMAT, [headers_of(content_type="application/json", accept="text/event-stream", originator="x")]),
    "upgrade": (UPGRADE_HEADERS, [headers_of(openai_beta="responses_websockets=1", originator="x", accept="*/*")]),
}

#: How rows begin that no change of a body breaks, only another model or lane. They are among the cases above.
BY_HAND = (
    "additional_tools requires",
    "Tool type not supported by this model",
    "invalid content part at {here}: this model has no",
)


@pytest.fixture(scope="module")
def broken() -> dict[str, dict[int, Broken]]:
    """By table: for each row, a body that it refuses."""
    return {
        name: broken_rows(table, passing, [key for key, row in data_rows(table).items() if is_by_hand(row)])
        for name, (table, passing) in TABLES.items()
    }


def is_by_hand(row: Field | Known) -> bool:
    return row.refusal.words.startswith(BY_HAND)


@pytest.mark.parametrize("name", TABLES)
def test_each_row_refuses_what_breaks_it(name: str, broken: dict[str, dict[int, Broken]]) -> None:
    rows = data_rows(TABLES[name][0])
    assert [row for key, row in rows.items() if key not in broken[name] and not is_by_hand(row)] == []
    assert len(rows) > 4


async def test_rows_over_http(ask: Clients, broken: dict[str, dict[int, Broken]]) -> None:
    """The simulators say what the rows say, and P4 who says so."""
    ask.go.sandbox.p4.options.tidy_client = False
    for name in ("p1", "p2", "p3", "messages"):
        for body, rules, refused in broken[name].values():
            if "Invalid `signature`" in refused.message:
                continue  # which a switch of P4 turns on, see there
            wire = "chat" if name == "p2" and body.get("model") in GO_MODELS else name
            reply = await ask(wire, body, {LITE: "true"} if name == "p1" and rules.lite else {})
            assert reply.status == (reworded(refused) if name == "p3" else refused).status, (body, reply.data)
            if name == "p3":
                assert reply.json == reworded(refused).body
            elif name == "p1":
                assert reply.json == refused.body
            else:
                assert reply.json["error"]["message"].endswith(refused.message), (body, reply.data)


@rows("wire", WIRES)
def test_junk_is_refused_or_served_but_never_a_crash(wire: str) -> None:
    """Anywhere. A sample of the suite spoils each form of place once for each wire."""
    table = {"p1": BODY, "p3": GROK_BODY, "messages": MESSAGES}.get(wire, CHAT)
    spoiling = ((number, path) for number, (body, _) in enumerate(goods(wire)) for path in places(body))
    sample = sampled(spoiling, 1, lambda number, path: [form_of(goods(wire)[number][0], path)])
    for number, around in itertools.groupby(sample, key=lambda row: row[0]):
        body, rules = goods(wire)[number]

        def serve(changed: dict[str, Any], rules: Any = rules) -> object:
            check(changed, table, rules(changed))
            if wire in ("p1", "p3"):
                on_lite = getattr(rules(changed), "lite", False)
                return prompt_tokens(changed) and answer_of(read_ask(changed, lite=on_lite))
            if wire == "messages":
                return messages_tokens(changed) and answer_of(read_messages(changed))
            return chat_tokens(changed) and answer_of(read_chat(changed, effort="high"))

        never_crashes(body, serve, [path for _, path in around])


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


async def test_a_picture_does_not_fill_the_context(client: Client, kimi: P2Client) -> None:
    url = f"data:image/png;base64,{'aGlo' * 10_000}"
    client.sandbox.p1.options.context_limit = kimi.sandbox.p2.options.context_limit = 2_000
    assert (await client.ask(full(user("x", url)))).types[-1] == "response.completed"
    assert (await kimi.ask(chat(chat_user([{"type": "image_url", "image_url": {"url": url}}])))).status == 200


async def test_context_overflow_of_chat(kimi: P2Client) -> None:
    kimi.sandbox.p2.options.context_limit = 1_000
    reply = await kimi.ask(chat(chat_user("x" * 5_000)))
    assert reply.status == 400 and "exceeded model token limit: 1000" in reply.json["error"]["message"]


async def test_a_switch_makes_effort_and_thinking_exclude_each_other(kimi: P2Client) -> None:
    kimi.sandbox.p2.options.one_effort = True
    reply = await kimi.ask(chat(reasoning_effort="high"))
    assert reply.json["error"]["message"] == "cannot specify both 'thinking' and 'reasoning_effort'"
    assert (await kimi.ask(chat())).status == 200


async def test_requests_are_kept_with_their_status(client: Client, kimi: P2Client) -> None:
    p1, p2 = client.sandbox.p1, client.sandbox.p2
    await client.ask(full(store=True))
    await client.ask(full())
    await kimi.ask(chat(temperature=0.5))
    await kimi.ask(chat())
    assert [seen.status for seen in p1.requests] == [400, 200] == [seen.status for seen in p2.requests]
    assert p1.requests[-1].headers["Session-Id"] == "s1"
    assert p1.requests[0].body["store"] is True and p2.requests[0].body["temperature"] == 0.5
    assert (p1.total_requests, p2.total_requests) == (2, 2)
