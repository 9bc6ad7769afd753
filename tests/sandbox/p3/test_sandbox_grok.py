"""What the simulated P3 answers: events as its vendor's client insists on them, searches, usage, the account."""

from __future__ import annotations

import json
from typing import Any

import pytest
from multidict import CIMultiDict
from p1_sandbox_client import BASH, call, output, user
from p3_sandbox_client import P3Client
from p3_sandbox_client import grok as request
from raw_client import Reply
from samples import rows

WEB, POSTS = {"type": "web_search"}, {"type": "x_search"}
SEARCH = user("Perform a web search for the query: rust")
THINKING: dict[str, Any] = {"reasoning": {"effort": "high"}, "include": ["reasoning.encrypted_content"]}
DONE = b"data: [DONE]\n\n"

#: The only names that the vendor's own client bears.
NAMES = {
    *(f"response.{state}" for state in ("created", "in_progress", "completed", "failed", "incomplete")),
    *(f"response.output_item.{state}" for state in ("added", "done")),
    *(f"response.content_part.{state}" for state in ("added", "done")),
    *(f"response.output_text.{state}" for state in ("delta", "done", "annotation.added")),
    *(f"response.function_call_arguments.{state}" for state in ("delta", "done")),
    *(f"response.reasoning_summary_{state}" for state in ("part.added", "part.done", "text.delta", "text.done")),
    *(f"response.web_search_call.{state}" for state in ("in_progress", "searching", "completed")),
    *(f"response.custom_tool_call_input.{state}" for state in ("delta", "done")),
}

#: Requests that together show every kind of item.
ALL: list[dict[str, Any]] = [
    request(user("hello"), **THINKING),
    request(user("use Bash: ls"), tools=[BASH]),
    request(SEARCH, tools=[WEB]),
    request(user("search X for: rust"), tools=[POSTS]),
]


@rows("body", ALL)
async def test_what_the_vendors_client_insists_on(grok: P3Client, body: dict[str, Any]) -> None:
    reply = await grok.ask(body)
    assert [event["sequence_number"] for event in reply.events] == list(range(len(reply.events)))
    assert set(reply.types) <= NAMES and reply.types[0] == "response.created"
    assert reply.data.endswith(DONE) and reply.data.count(DONE) == 1
    for event in reply.events:
        assert {"id", "object", "created_at", "status", "model", "output"} <= event.get("response", reply.final).keys()
        if event["type"] == "response.output_text.delta":
            assert {"item_id", "output_index", "content_index", "delta"} <= event.keys()
        if event.get("item", {}).get("type") == "web_search_call":
            assert event["item"]["action"]["type"] == "search"
    assert reply.final["output"] == reply.items != []
    usage = reply.final["usage"]
    assert usage["input_tokens_details"].keys() == {"cached_tokens"}
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert usage["output_tokens_details"]["reasoning_tokens"] >= 0 < usage["cost_in_usd_ticks"]


async def test_the_end_of_an_answer_may_lack_its_mark(grok: P3Client) -> None:
    grok.sandbox.p3.options.done = False
    reply = await grok.ask(ALL[0])
    assert DONE not in reply.data and reply.types[-1] == "response.completed"


async def test_headers_of_an_answer(grok: P3Client) -> None:
    headers = (await grok.ask(ALL[0])).headers
    assert headers["content-type"].startswith("text/event-stream") and headers["x-request-id"]
    assert (headers["x-grok-context-window"], headers["x-grok-max-completion-tokens"]) == ("500000", "65536")


@rows(
    "members, shown, sealed",
    [
        ({}, False, False),
        ({"reasoning": {"effort": "none"}}, False, False),
        ({"reasoning": {"effort": "low"}}, True, False),
        (THINKING, True, True),
    ],
)
async def test_thoughts_are_shown_unasked_and_sealed_on_demand(
    grok: P3Client, members: Any, shown: bool, sealed: bool
) -> None:
    reply = await grok.ask(request(**members))
    thoughts = [item for item in reply.items if item["type"] == "reasoning"]
    assert bool(reply.thought) is shown is bool(thoughts)
    assert [bool(item.get("encrypted_content")) for item in thoughts] == [sealed] * shown
    if sealed:
        assert not set(thoughts[0]["encrypted_content"]) & set("-_=")  # standard base64 without padding
        again = [user("hello"), *reply.items, user("go on")]
        assert (await grok.ask(request(*again))).status == 200


# -- searches


async def searched(client: P3Client, *tools: dict[str, Any], prompt: Any = SEARCH, **members: Any) -> Reply:
    reply = await client.ask(request(prompt, tools=list(tools), **members))
    assert reply.status == 200, reply.data
    return reply


@rows("asked", [True, False])
async def test_a_web_search_cites_and_links_its_pages(grok: P3Client, asked: bool) -> None:
    include = ["web_search_call.action.sources"] if asked else []
    reply = await searched(grok, {**WEB, "filters": {"allowed_domains": ["rust-lang.org"]}}, include=include)
    search, said = reply.items
    url = "https://rust-lang.org/rust"
    source = {"type": "url", "url": url, "title": "rust (rust-lang.org)"}
    assert search["action"] == {"type": "search", "query": "rust", "sources": [source] if asked else []}
    [part] = said["content"]
    [cited] = part["annotations"]
    assert part["text"][cited["start_index"] : cited["end_index"]] == f"[[1]]({url})"
    assert (cited["type"], cited["url"], cited["title"]) == ("url_citation", url, "1")
    assert reply.of("response.output_text.annotation.added")[0]["annotation"] == cited


async def test_links_in_the_text_can_be_refused(grok: P3Client) -> None:
    reply = await searched(grok, WEB, include=["no_inline_citations"])
    assert "](http" not in reply.text
    assert [one["url"] for one in reply.items[-1]["content"][0]["annotations"]] == [
        f"https://{domain}/rust" for domain in ("docs.example.org", "news.example.com", "www.example.net")
    ]


async def test_excluded_domains_are_not_searched(grok: P3Client) -> None:
    reply = await searched(grok, {**WEB, "filters": {"excluded_domains": ["example.org", "example.com"]}})
    assert "www.example.net" in reply.text and "docs.example.org" not in reply.text


async def test_a_search_of_posts_is_a_call_of_the_services_own_tool(grok: P3Client) -> None:
    reply = await searched(grok, WEB, POSTS, prompt=user("search X for: rust"))
    search, said = reply.items
    assert (search["type"], search["name"], search["status"]) == ("custom_tool_call", "x_keyword_search", "completed")
    assert search["call_id"].startswith("xs_call") and json.loads(search["input"])["query"] == "rust"
    pieces = [event["delta"] for event in reply.of("response.custom_tool_call_input.delta")]
    assert len(pieces) > 1 and "".join(pieces) == search["input"]
    assert "https://x.com/rust" in said["content"][0]["text"] and reply.calls == []


@rows("tool, kind", [(WEB, "web_search_call"), (POSTS, "custom_tool_call")])
async def test_a_search_can_be_forced(grok: P3Client, tool: dict[str, Any], kind: str) -> None:
    reply = await searched(grok, tool, prompt=user("cats"), tool_choice="required")
    assert reply.items[0]["type"] == kind
    if tool is WEB:
        allowed = {"type": "allowed_tools", "mode": "required", "tools": [tool]}
        assert (await searched(grok, tool, BASH, prompt=user("cats"), tool_choice=allowed)).items[0]["type"] == kind


async def test_nothing_is_searched_unless_it_is_offered(grok: P3Client) -> None:
    for prompt, tool in ((SEARCH, POSTS), (user("search X for: rust"), WEB)):
        assert [item["type"] for item in (await searched(grok, tool, prompt=prompt)).items] == ["message"]


async def test_a_conversation_goes_on_behind_its_searches_and_calls(grok: P3Client) -> None:
    """As the vendor's own client sends them back: without what it does not need."""
    left_out = {"id", "status", "content"}
    history: list[Any] = []
    for prompt, tool in ((SEARCH, WEB), (user("search X for: rust"), POSTS), (user("use Bash: ls"), BASH)):
        history.append(prompt)
        for item in (await searched(grok, tool, prompt=history[-1], **THINKING)).items:
            kept = {name: value for name, value in item.items() if name not in left_out} if "name" in item else item
            history.append(kept if item["type"] != "message" else {"role": "assistant", "content": "found"})
            if item["type"] == "function_call":
                history.append(output(item["call_id"], "done"))
    reply = await grok.ask(request(*history, tools=[BASH, WEB, POSTS]))
    assert reply.status == 200 and 'The tool Bash returned: "done"' in reply.text


# -- usage


async def used(client: P3Client, body: dict[str, Any], **headers: str | None) -> dict[str, Any]:
    usage: dict[str, Any] = (await client.ask(body, headers)).final["usage"]
    return usage


async def test_a_search_reads_the_prompt_again(grok: P3Client) -> None:
    plain, web = [await used(grok, request(SEARCH, tools=tools)) for tools in ([BASH], [WEB])]
    assert "context_details" not in plain and "num_sources_used" not in plain
    last = web["context_details"]
    assert web["input_tokens"] == 2 * last["input_tokens"] and last["output_tokens"] == web["output_tokens"]
    assert (web["num_sources_used"], web["num_server_side_tools_used"]) == (3, 1)


#: How a conversation is named, of the first request and of the second, and whether the second is cached.
NAMED: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    ({"key": "a"}, {"key": "a"}, True),
    ({"header": "a"}, {"header": "a"}, True),
    ({"header": "a"}, {"header": "b"}, False),
    ({"key": "a"}, {"key": "b"}, False),
    ({}, {}, False),
    ({"header": ""}, {"header": ""}, False),
]


@pytest.mark.parametrize(("first", "second", "cached"), NAMED)
async def test_the_cache_needs_the_name_of_the_conversation(
    grok: P3Client, first: Any, second: Any, cached: bool
) -> None:
    found = []
    for named in (first, second):
        body = request(user("x" * 8_000), **({"prompt_cache_key": named["key"]} if "key" in named else {}))
        headers = {"x-grok-conv-id": named["header"]} if "header" in named else {}
        found.append((await used(grok, body, **headers))["input_tokens_details"]["cached_tokens"])
    assert found[0] == 0 and (found[1] > 1_000) is cached


async def test_a_prompt_that_is_too_long(grok: P3Client) -> None:
    grok.sandbox.p3.options.context_limit = 1_000
    reply = await grok.ask(request(user("x" * 5_000)))
    assert reply.status == 400 and "maximum prompt length is 1000" in reply.json["error"]


async def test_a_call_that_is_still_open_may_end_the_history(grok: P3Client) -> None:
    assert (await grok.ask(request(user("a"), call("c")))).status == 200


async def test_a_newer_gate(grok: P3Client) -> None:
    grok.sandbox.p3.options.oldest_version = "0.3.0"
    reply = await grok.ask(ALL[0])
    assert reply.status == 426 and "version 0.2.93 is outdated. Please update to version 0.3.0" in reply.json["error"]


async def test_a_token_without_the_scope(grok: P3Client) -> None:
    grok.sandbox.p3.tokens.scope = "openid offline_access"
    grok.credential = grok.sandbox.p3.stored_credential()
    reply = await grok.ask(ALL[0])
    assert reply.status == 403 and "grok-cli:access" in reply.json["error"]


async def test_two_headers_of_the_kind_are_one_too_many(grok: P3Client) -> None:
    headers = CIMultiDict([*grok.headers().items(), ("x-xai-token-auth", "xai-grok-cli")])
    async with grok.session.post(grok.url, json=ALL[0], headers=headers) as response:
        assert response.status == 401 and "xai-grok-cli, xai-grok-cli" in (await response.json())["error"]


# -- beside the answers


async def told(client: P3Client, path: str, *left_out: str) -> tuple[int, Any]:
    headers = {name: value for name, value in client.headers().items() if name not in left_out}
    async with client.session.get(client.url.replace("/responses", path), headers=headers) as response:
        return response.status, await response.json()


async def test_the_list_of_models(grok: P3Client) -> None:
    status, body = await told(grok, "/models", "x-xai-token-auth")
    assert status == 200 and body["object"] == "list"
    assert [(one["id"], one["reasoningEfforts"], one["supportsBackendSearch"]) for one in body["data"]] == [
        ("grok-4.6", ["low", "medium", "high", "xhigh"], True),
        ("grok-4.5", ["low", "medium", "high"], False),
        ("grok-composer-2.5-fast", [], False),
    ]


@rows("path", ["/user", "/settings", "/billing?format=credits"])
async def test_what_is_told_of_the_account_needs_a_login(grok: P3Client, path: str) -> None:
    assert (await told(grok, path))[0] == 200
    assert (await told(grok, path, "x-xai-token-auth"))[0] == 401
    assert (await told(grok, path, "authorization"))[0] == 401


async def test_a_key_may_ask_what_it_is(grok: P3Client) -> None:
    assert (await told(grok, "/api-key", "x-xai-token-auth"))[1]["user_id"] == "user-sandbox"


@rows("method, path, status", [("POST", "/compact", 404), ("GET", "", 405)])
async def test_what_the_service_does_not_have(grok: P3Client, method: str, path: str, status: int) -> None:
    async with grok.session.request(method, grok.url + path, headers=grok.headers()) as response:
        assert response.status == status
