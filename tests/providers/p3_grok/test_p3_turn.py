"""P3 end to end: what a table of faults does not say."""

from __future__ import annotations

from typing import Any

from harness import Live, ask
from samples import rows

MODEL = "grok-4.6"
CREATED: dict[str, Any] = {"type": "response.created", "response": {"id": "resp_1"}}
SEARCH = {"id": "ws_1", "type": "web_search_call", "action": {"type": "search", "query": "q", "sources": []}}
X_SEARCH = {"id": "ctc_1", "type": "custom_tool_call", "name": "x_keyword_search", "call_id": "xs_call-1"}
CALL = {"id": "ctc_1", "type": "custom_tool_call", "name": "other", "call_id": "c"}


def added(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress"}}


@rows("stream", [True, False])
@rows("item, attempts", [(SEARCH, 1), (X_SEARCH, 1), (CALL, 2)])
async def test_a_search_is_not_made_again_for_an_answer_that_broke(
    live: Live, item: dict[str, Any], attempts: int, stream: bool
) -> None:
    live.sandbox.p3.script.extend([{"events": [CREATED, added(item)], "then": "cut"}])
    answer = await live.post(ask(model=MODEL, stream=stream))
    assert (live.sandbox.p3.total_requests, answer.status) == (attempts, 502 if attempts == 1 else 200)
    if attempts == 1:
        assert answer.error["type"] == "api_error" and not live.sleeps


@rows("path", ["/v1/messages", "/v1/messages/count_tokens"])
@rows("status", [400, 403, 429])
async def test_only_a_turn_reaches_the_service(live: Live, path: str, status: int) -> None:
    live.sandbox.p3.script.extend([{"status": status, "body": {"error": "no"}, "headers": {"x-should-retry": "false"}}])
    answer = await live.post(ask(model=MODEL), path)
    turns = path == "/v1/messages"
    assert answer.status == (status if turns else 200)
    assert live.sandbox.p3.total_requests == turns and not live.sleeps
    assert answer.headers.get("x-should-retry") == ("false" if turns else None)
