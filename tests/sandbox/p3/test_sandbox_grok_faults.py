"""What is odd about each form of a stream of the simulated P3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from p1_sandbox_client import BASH, user
from p3_sandbox_client import P3Client
from p3_sandbox_client import grok as ask_for
from raw_client import Reply
from samples import rows

DONE = b"data: [DONE]\n\n"
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
    reply = await grok.ask(request())
    assert reply.status == 200 and reply.broken is None
    assert sees(reply), reply.data[-2_000:]


def request() -> dict[str, Any]:
    return ask_for(user("hello"), tools=[BASH])


async def test_searches_at_the_same_time_are_told_by_turns(grok: P3Client) -> None:
    grok.sandbox.p3.script.replace([{"fault": "parallel_searches"}])
    reply = await grok.ask(request())
    begun = [event["output_index"] for event in reply.of("response.output_item.added")]
    done = [event["output_index"] for event in reply.of("response.output_item.done")]
    assert begun[:6] == list(range(6)) and first(reply, "response.output_item.done") > 5
    assert sorted(done) == list(range(7)) and reply.final["output"][0]["id"].startswith("tco")


@rows("fault", ["server_error", "rate_limit", "overloaded", "error_body", "usage_limit"])
async def test_whether_to_try_again_may_be_told(grok: P3Client, fault: str) -> None:
    for retry, header in ((None, None), (False, "false"), (True, "true")):
        grok.sandbox.p3.script.replace([{"fault": fault, "retry": retry}])
        assert (await grok.ask(request())).headers.get("x-should-retry") == header
