"""P3's answers from the bytes of the service to the bytes of the client, on every route."""

from __future__ import annotations

import json
from typing import Any

import pytest
from harness import Answer, Live, ask, texts, with_live

from proxy.providers.upstream.transport import HttpTimers

GROK = "grok-4.6"
SEARCH = {"type": "web_search_20250305", "name": "web_search"}
SAID = {"type": "response.output_text.delta", "delta": "half"}
FAILED = {"type": "response.failed", "response": {"status": "failed", "error": {"message": "no words for it"}}}
COMPLETED = {"type": "response.completed", "response": {"usage": {"input_tokens": 12, "output_tokens": 3}}}
X_SEARCH = [
    {
        "type": "response.output_item.added",
        "item": {"type": "custom_tool_call", "id": "ctc_1", "name": "x_user_search"},
    },
    {"type": "response.custom_tool_call_input.delta", "item_id": "ctc_1", "delta": '{"query":"outage"}'},
    {"type": "response.output_item.done", "item": {"type": "custom_tool_call", "id": "ctc_1"}},
    {"type": "response.output_text.delta", "delta": "Yes"},
    {
        "type": "response.output_text.annotation.added",
        "annotation": {
            "type": "url_citation",
            "url": "https://x.com/i/1",
            "title": "1",
            "start_index": 1,
            "end_index": 3,
        },
    },
    {
        "type": "response.completed",
        "response": {"usage": {"output_tokens": 3, "output_tokens_details": {"reasoning_tokens": 2}}},
    },
]


def one_read(*events: dict[str, Any], end: str = "") -> dict[str, Any]:
    """Events that come in one piece."""
    return {"raw": "".join(f"data: {json.dumps(event)}\n\n" for event in events) + end}


def play(live: Live, *entries: dict[str, Any], then: str = "end", times: int = 1) -> None:
    live.sandbox.p3.script.extend([{"events": list(entries), "then": then}] * times)


async def asked(live: Live, path: str = "/v1/messages", **more: Any) -> Answer:
    bodies = {
        "/v1/messages": {**ask(model=GROK), **more},
        "/v1/chat/completions": {"model": GROK, "messages": [{"role": "user", "content": "hi"}], **more},
        "/v1/responses": {"model": GROK, "input": "hi", **more},
    }
    return await live.post(bodies[path], path)


@pytest.mark.parametrize("then", ["end", "cut"])
async def test_what_came_in_one_read_with_a_failure_is_shown(live: Live, then: str) -> None:
    play(live, one_read(SAID, *([FAILED] if then == "end" else ())), then=then)
    answer = await asked(live, stream=True)
    assert answer.status == 200 and texts(answer.events) == "half"
    assert [event["type"] for event in answer.events][-1] == "error"
    assert live.sandbox.p3.total_requests == 1


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("failure", [FAILED, {"type": "error", "message": "no words for it"}])
async def test_a_failure_that_says_nothing_known_is_a_502_and_not_tried_again(
    live: Live, failure: dict[str, Any], stream: bool
) -> None:
    play(live, one_read(failure))
    answer = await asked(live, stream=stream)
    assert answer.status == 502 and "no words for it" in answer.error["message"]
    assert live.sandbox.p3.total_requests == 1


@pytest.mark.parametrize("stream", [True, False])
async def test_nothing_behind_the_end_matters(live: Live, stream: bool) -> None:
    tail = f'data: [DONE]\n\ndata: {json.dumps(SAID)}\n\ndata: {json.dumps(FAILED)}\n\ndata: [DONE]\n\ndata: {{"ty'
    play(live, one_read(SAID, COMPLETED, end=tail))
    answer = await asked(live, stream=stream)
    assert answer.status == 200
    assert (texts(answer.events) if stream else answer.json["content"][0]["text"]) == "half"


@with_live(tuning=(HttpTimers(idle=5.0, drain=0.01),))
async def test_the_end_needs_no_end_of_the_body(live: Live) -> None:
    play(live, one_read(SAID, COMPLETED), then="stall")
    assert [event["type"] for event in (await asked(live, stream=True)).events][-1] == "message_stop"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("begun", [X_SEARCH[0], {"type": "response.x_search_call.searching", "item_id": "x_1"}])
async def test_a_search_that_has_begun_is_not_made_again(live: Live, begun: dict[str, Any], stream: bool) -> None:
    play(live, one_read(begun, {"type": "error", "error": {"type": "server_error", "message": "late"}}))
    answer = await asked(live, stream=stream)
    assert answer.status == 503 and "late" in answer.error["message"]
    assert live.sandbox.p3.total_requests == 1


async def test_nothing_at_all_is_asked_for_again(live: Live) -> None:
    play(live, one_read(COMPLETED), times=2)
    assert (await asked(live)).status == 200
    assert live.sandbox.p3.total_requests == 3


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("apart", [True, False])
async def test_a_search_that_never_ends_is_no_answer_and_not_made_again(live: Live, stream: bool, apart: bool) -> None:
    begun = {"type": "response.web_search_call.searching", "item_id": "ws_1"}
    play(live, *((begun, COMPLETED) if apart else (one_read(begun, COMPLETED),)))
    answer = await asked(live, stream=stream)
    assert answer.status == 529 and live.sandbox.p3.total_requests == 1


async def test_a_search_and_a_citation_on_messages(live: Live) -> None:
    play(live, one_read(*X_SEARCH), times=2)
    whole = (await asked(live)).json
    line, text = whole["content"]
    assert line == {"type": "text", "text": "[X search: outage]\n"}
    cited = {"type": "web_search_result_location", "url": "https://x.com/i/1", "title": "1", "cited_text": ""}
    assert text == {"type": "text", "text": "Yes", "citations": [cited]}
    usage = (await asked(live, stream=True)).events[-2]["usage"]
    assert usage.keys() == {"output_tokens", "server_tool_use", "output_tokens_details"}
    assert (usage["output_tokens"], usage["output_tokens_details"]) == (3, {"thinking_tokens": 2})
    assert usage["server_tool_use"].items() >= {"web_search_requests": 1, "x_search_requests": 1}.items()


CITED = {"type": "url_citation", "url": "https://x.com/i/1", "title": "1", "start_index": 1, "end_index": 3}


@with_live(openai_routes=True)
async def test_a_search_and_a_citation_on_responses(live: Live) -> None:
    play(live, one_read(*X_SEARCH))
    answer = (await asked(live, "/v1/responses")).json
    search, message = answer["output"]
    assert search["type"] == "web_search_call" and search["action"] == {"type": "search", "query": "outage"}
    [part] = message["content"]
    assert (part["text"], part["annotations"]) == ("Yes", [CITED])
    assert answer["usage"]["output_tokens_details"] == {"reasoning_tokens": 2}


@with_live(openai_routes=True)
async def test_a_search_and_a_citation_on_chat(live: Live) -> None:
    play(live, one_read(*X_SEARCH))
    answer = (await asked(live, "/v1/chat/completions")).json
    message = answer["choices"][0]["message"]
    assert message["content"] == "Yes"
    kind, *_ = CITED.items()
    assert message["annotations"] == [
        {"type": kind[1], kind[1]: {name: CITED[name] for name in CITED if name != "type"}}
    ]
    assert answer["usage"]["completion_tokens_details"]["reasoning_tokens"] == 2


async def test_the_search_of_claude_code_shows_its_sources(live: Live) -> None:
    """It reads texts and links of results, and no citations."""
    play(live, one_read(*X_SEARCH))
    answer = (await asked(live, tools=[SEARCH], tool_choice={"type": "auto"})).json
    assert [block["text"] for block in answer["content"]] == [
        "[X search: outage]\n",
        "Yes",
        "Sources:\n- [1](https://x.com/i/1)\n",
    ]


async def test_the_log_says_what_of_an_answer_is_not_shown(live: Live) -> None:
    """What the model says does not belong into a log; names of events and of tools do, once, and not without end."""
    call = {"type": "custom_tool_call", "id": "ctc_1", "name": "shell", "input": "SECRET"}
    strange = {"type": "response.mcp_call.completed", "output": "SECRET"}
    done = {"type": "response.output_item.done", "item": call}
    many = [{"type": f"strange.{number}"} for number in range(50)]
    play(live, one_read(strange, done, strange, *X_SEARCH[:3], *many, *X_SEARCH[3:]))
    assert (await asked(live)).status == 200
    notes = [noted["note"] for noted in live.notes.all("grok_answer_reduced")]
    assert notes[:3] == ["event response.mcp_call.completed", "call of shell", "event strange.0"] and len(notes) == 10
    assert "SECRET" not in json.dumps(live.notes.records)
