"""What the simulated P3 answers: events as its vendor's client insists on them, searches, usage, the account; how large
it finds a picture; and what is odd about each form of a stream.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from typing import Any

import pytest
from multidict import CIMultiDict
from p1_sandbox_client import BASH, P3Client, call, output, user
from p1_sandbox_client import grok as request
from pictures import png
from raw_client import Reply
from samples import rows

from proxy.sandbox.p3.input_checks import Size, image_fault, size_of

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


@rows("path, member", [("/user", "userId"), ("/settings", "allow_access"), ("/billing?format=credits", "config")])
async def test_what_is_told_of_the_account_needs_a_login(grok: P3Client, path: str, member: str) -> None:
    status, body = await told(grok, path)
    assert status == 200 and member in body
    assert (await told(grok, path, "x-xai-token-auth"))[0] == 401
    assert (await told(grok, path, "authorization"))[0] == 401
    assert (await told(grok, "/billing"))[0] == 400, "in the form that is asked for only"


async def test_a_key_may_ask_what_it_is(grok: P3Client) -> None:
    assert (await told(grok, "/api-key", "x-xai-token-auth"))[1]["user_id"] == "user-sandbox"


@rows("method, path, status", [("POST", "/compact", 404), ("GET", "", 405)])
async def test_what_the_service_does_not_have(grok: P3Client, method: str, path: str, status: int) -> None:
    async with grok.session.request(method, grok.url + path, headers=grok.headers()) as response:
        assert response.status == status


GIF = struct.pack("<HH", 40, 30)
JPEG_APP = b"\xff\xe0\x00\x04ab"
JPEG_FRAME = b"\xff\xc2\x00\x11\x08" + struct.pack(">HH", 30, 40)
RIFF = b"RIFF\0\0\0\0WEBP"

#: The first bytes of a picture -> its size.
SIZES: list[tuple[bytes, Size | None]] = [
    (base64.b64decode(png(40, 30)), (40, 30)),
    (b"GIF87a" + GIF, (40, 30)),
    (b"GIF89a" + GIF, (40, 30)),
    (b"\xff\xd8" + JPEG_FRAME, (40, 30)),
    (b"\xff\xd8" + JPEG_APP + b"\xff\x01" + JPEG_FRAME, (40, 30)),
    (RIFF + b"VP8 " + b"\0" * 10 + struct.pack("<HH", 40, 30), (40, 30)),
    (RIFF + b"VP8L" + b"\0" * 5 + struct.pack("<I", 39 | 29 << 14), (40, 30)),
    (RIFF + b"VP8X" + b"\0" * 8 + b"\x27\0\0\x1d\0\0", (40, 30)),
    (RIFF + b"WAVE", None),
    (b"\xff\xd8" + JPEG_APP, None),
    (b"\xff\xd8no jpeg", None),
    (b"GIF89a", None),
    (b"BM", None),
    (b"", None),
]


@pytest.mark.parametrize(("data", "size"), SIZES)
def test_sizes(data: bytes, size: Size | None) -> None:
    assert size_of(data) == size
    fault = image_fault(f"data:image/png;base64,{base64.b64encode(data).decode()}")
    assert (fault is None) is (size is not None)


@pytest.mark.parametrize(
    ("width", "height", "seen"), [(8, 64, True), (8, 63, False), (7, 99, False), (23, 23, True), (22, 23, False)]
)
def test_the_smallest(width: int, height: int, seen: bool) -> None:
    assert (image_fault(f"data:image/png;base64,{png(width, height)}") is None) is seen


TEXT = "response.output_text.delta"
ENDS = ("response.completed", "response.incomplete", "response.failed")

Sees = Callable[[Reply], object]


def kinds(reply: Reply) -> list[str]:
    """Types of the finished items."""
    return [item["type"] for item in reply.items]


def first(reply: Reply, kind: str) -> int:
    return reply.types.index(kind)


def searches(reply: Reply) -> list[dict[str, Any]]:
    return [item for item in reply.items if item["type"] in ("web_search_call", "custom_tool_call")]


def order(*kinds: str) -> Sees:
    """Whether the first events of these types come in this order."""
    return lambda reply: (places := [first(reply, kind) for kind in kinds]) == sorted(places)


def deltas(reply: Reply) -> list[dict[str, Any]]:
    return reply.of("response.function_call_arguments.delta")


ASKED = request(user("hello"), tools=[BASH])

#: Fault, parameters -> what one sees of it.
FORMS: list[tuple[str, dict[str, Any], Sees]] = [
    ("data_only", {}, lambda reply: b"event:" not in reply.data and reply.types[-1] in ENDS),
    ("mixed_ends", {}, lambda reply: b"\r\r" in reply.data and b"\r\n\r\n" in reply.data and b"}\n\n" in reply.data),
    ("byte_order_mark", {}, lambda reply: reply.data.startswith(b"\xef\xbb\xbfevent: ")),
    ("silent_frames", {}, lambda reply: b"\n\nid: 42\n\n" in reply.data and b"data:\n" not in reply.data),
    ("silent_frames", {"blank": True}, lambda reply: b"\n\ndata:\n\n" in reply.data and b"\n\ndata\n\n" in reply.data),
    ("unfinished_end", {}, lambda reply: reply.data.endswith(b"}") and b'"response.completed"' in reply.data),
    ("no_done", {}, lambda reply: DONE not in reply.data and reply.types[-1] in ENDS),
    ("held_open", {"seconds": 0.01}, lambda reply: reply.data.endswith(DONE)),
    ("done_instead", {}, lambda reply: reply.data.endswith(DONE) and reply.types[-1] not in ENDS),
    ("no_numbers", {}, lambda reply: b"sequence_number" not in reply.data and reply.types[-1] in ENDS),
    ("minimal", {}, lambda reply: set(reply.types) == {TEXT, ENDS[0]} and reply.final["output"] == []),
    ("terminal_only", {}, lambda reply: reply.types == ["response.completed"] and reply.final["output"]),
    ("thoughts_as_text", {}, lambda reply: reply.of("response.reasoning_text.delta") and not reply.thought),
    ("thoughts_only", {}, lambda reply: kinds(reply) == ["reasoning"]),
    ("empty_thoughts", {}, lambda reply: [item["id"][:3] for item in reply.items] == ["tco", "msg"]),
    (
        "named_by_call",
        {},
        lambda reply: all("item_id" not in one and one["call_id"] == reply.ids[0] for one in deltas(reply)),
    ),
    ("arguments_at_once", {}, lambda reply: [one["delta"] for one in deltas(reply)] == [reply.items[-1]["arguments"]]),
    ("call_not_done", {}, lambda reply: deltas(reply) and kinds(reply) == ["message"] and not reply.final["output"]),
    (
        "arguments_mismatch",
        {},
        lambda reply: reply.of("response.function_call_arguments.done")[0]["arguments"] != reply.items[-1]["arguments"],
    ),
    ("late_text_done", {}, order("response.function_call_arguments.delta", "response.output_text.done")),
    ("search", {}, lambda reply: kinds(reply) == ["web_search_call", "message"]),
    ("search", {"on_x": True}, lambda reply: kinds(reply) == ["custom_tool_call", "message"]),
    ("open_page", {}, lambda reply: searches(reply)[0]["action"]["type"] == "open_page"),
    ("queries", {}, lambda reply: searches(reply)[0]["action"]["queries"] == ["one", "two"]),
    ("search_failed", {}, lambda reply: searches(reply)[0]["status"] == "failed"),
    ("parallel_searches", {}, lambda reply: len(searches(reply)) == 3 and kinds(reply).count("reasoning") == 3),
    ("parallel_searches", {"on_x": True, "count": 2}, lambda reply: len(searches(reply)) == 2),
    ("x_search_events", {}, order("response.x_search_call.searching", "response.output_item.added")),
    ("citations", {}, order("response.output_text.annotation.added", TEXT)),
    ("citations", {"where": "late"}, order("response.output_text.done", "response.output_text.annotation.added")),
    (
        "citations",
        {"where": "item"},
        lambda reply: (
            not reply.of("response.output_text.annotation.added")
            and reply.items[-1]["content"][0]["annotations"][0]["type"] == "url_citation"
        ),
    ),
    ("doom_loop", {}, lambda reply: reply.of("response.doom_loop_check")[0]["doom_loop_check"]["triggers"]),
    ("untyped_error", {"code": "x"}, lambda reply: reply.events == [{"error": {"message": "boom", "code": "x"}}]),
    (
        "slow_down",
        {"status": 429},
        lambda reply: (reply.events[0]["retry_after"], reply.events[0]["status"]) == (2, 429),
    ),
]


@rows("fault, params, sees", FORMS)
async def test_forms_of_a_stream(grok: P3Client, fault: str, params: dict[str, Any], sees: Sees) -> None:
    grok.sandbox.p3.script.replace([{"fault": fault, **params}])
    reply = await grok.ask(ASKED)
    assert reply.status == 200 and reply.broken is None
    assert sees(reply), reply.data[-2_000:]


async def test_searches_at_the_same_time_are_told_by_turns(grok: P3Client) -> None:
    grok.sandbox.p3.script.replace([{"fault": "parallel_searches"}])
    reply = await grok.ask(ASKED)
    begun = [event["output_index"] for event in reply.of("response.output_item.added")]
    done = [event["output_index"] for event in reply.of("response.output_item.done")]
    assert begun[:6] == list(range(6)) and first(reply, "response.output_item.done") > 5
    assert sorted(done) == list(range(7)) and reply.final["output"][0]["id"].startswith("tco")


@rows("fault", ["server_error", "rate_limit", "overloaded", "error_body", "usage_limit"])
async def test_whether_to_try_again_may_be_told(grok: P3Client, fault: str) -> None:
    for retry, header in ((None, None), (False, "false"), (True, "true")):
        grok.sandbox.p3.script.replace([{"fault": fault, "retry": retry}])
        assert (await grok.ask(ASKED)).headers.get("x-should-retry") == header
