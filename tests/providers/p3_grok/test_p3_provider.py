"""P3 as an upstream: what reaches it beside the body, what is said of that in the log, and how an answer is told."""

from __future__ import annotations

import base64
import json
import struct
import uuid
from typing import Any

import pytest
from harness import Live, ask, texts, tool, with_live
from samples import rows

from proxy.providers.p3_grok.provider import NOTED, responses_url
from proxy.providers.p3_grok.request import answer_headers

GROK = "grok-4.6"
SESSION = {"x-claude-code-session-id": "session-1"}
SEARCH = {"type": "web_search_20250305", "name": "web_search"}
AFFINITY = ("x-grok-conv-id", "x-grok-session-id", "x-grok-req-id")


@pytest.mark.parametrize("base", ["https://h/v1", "https://h/v1/responses"])
def test_the_endpoint_is_found_below_a_base(base: str) -> None:
    assert responses_url(base) == "https://h/v1/responses"


async def test_a_request_has_the_headers_of_the_vendors_client(live: Live) -> None:
    assert (await live.post(ask(model=GROK))).status == 200
    sent = live.sandbox.p3.requests[-1].headers
    assert sent["accept"] == "text/event-stream" and sent["content-type"] == "application/json"
    assert sent["authorization"].startswith("Bearer ") and sent.getall("x-xai-token-auth") == ["xai-grok-cli"]
    assert (sent["x-grok-client-identifier"], sent["x-grok-client-version"]) == ("grok-shell", "0.2.93")
    assert sent["user-agent"].startswith("grok-shell/0.2.93 (")
    assert not [name for name in AFFINITY if name in sent]  # nobody named a session
    assert "prompt_cache_key" not in live.sandbox.p3.requests[-1].body


async def test_a_session_leads_to_its_prompt_cache(live: Live) -> None:
    live.sandbox.p3.script.extend([{"fault": "rate_limit"}])
    assert (await live.post(ask("x" * 8000, model=GROK), headers=SESSION)).status == 200
    again = (await live.post(ask("x" * 8000, model=GROK), headers=SESSION)).json
    seen = live.sandbox.p3.requests
    assert {(one.headers[AFFINITY[0]], one.headers[AFFINITY[1]]) for one in seen} == {("session-1", "session-1")}
    turns = [one.headers["x-grok-req-id"] for one in seen]
    assert turns[0] == turns[1] != turns[2] and [str(uuid.UUID(turn)) for turn in turns] == turns
    assert {one.body["prompt_cache_key"] for one in seen} == {"session-1"}
    assert again["usage"]["cache_read_input_tokens"] >= 1000


@rows("session", [None, "", "has blanks", "ü", "two\nlines"])
def test_what_fits_no_header_is_not_sent(session: str | None) -> None:
    assert not [name for name in answer_headers("0.2.93", session or None, "t") if name in AFFINITY]


@with_live(p3_client_version="0.1.100")
async def test_an_old_version_is_told_with_the_setting(live: Live) -> None:
    answer = await live.post(ask(model=GROK))
    assert answer.status == 400 and answer.headers["x-should-retry"] == "false"
    assert "0.1.100 is outdated" in answer.error["message"]
    assert "PROXY_P3_CLIENT_VERSION" in answer.error["message"] and live.sandbox.p3.total_requests == 1


async def test_the_log_says_what_was_left_out_and_what_the_service_told(live: Live) -> None:
    asked = ask(model="grok-99", tools=[tool(), {"type": "code_execution_20250825", "name": "code_execution"}])
    await live.post({**asked, "new_member": ["SECRET"]})
    assert [noted["notes"] for noted in live.notes.all("grok_request_reduced")] == [["members left out: new_member"]]
    assert live.notes.all("model_not_listed") == [{"model": "grok-99", "like": "grok-4.6"}]
    [told] = live.notes.all("grok_upstream_response_received")
    assert set(told["headers"]) == set(NOTED)
    assert "SECRET" not in json.dumps(live.notes.records)


@pytest.mark.parametrize("member", ["max_tokens", "messages", "tools"])
async def test_what_is_refused_is_refused_for_counting_too(live: Live, member: str) -> None:
    wrong = {"max_tokens": 0, "messages": [], "tools": "no"}[member]
    for path in ("/v1/messages", "/v1/messages/count_tokens"):
        answer = await live.post({**ask(model=GROK), member: wrong}, path)
        assert answer.status == 400 and member in answer.error["message"]
    assert live.sandbox.p3.total_requests == 0


async def test_counting_asks_nobody(live: Live) -> None:
    answer = await live.post(ask(model="grok-4.5"), "/v1/messages/count_tokens")
    assert answer.json == {"input_tokens": 8} and live.sandbox.p3.total_requests == 0


async def test_a_typed_answer_comes_word_by_word(live: Live) -> None:
    """The schema goes up as it stands, so nothing has to be put right at the end."""
    live.sandbox.p3.options.word_delay_s = 0.002
    schema = {"type": "object", "properties": {"title": {"type": "string"}, "note": {"type": "string"}}}
    typed = {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
    answer = await live.stream(ask("a title", model=GROK, **typed))
    sent = live.sandbox.p3.requests[-1].body["text"]["format"]
    assert sent == {"type": "json_schema", "name": "structured_output", "schema": schema, "strict": True}
    assert json.loads(texts(answer.events)) and len(answer.events) > 6


FORMS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["text", "text"]),
    ({"p3_search_blocks": "native"}, ["server_tool_use", "web_search_tool_result", "text"]),
]


@pytest.mark.parametrize(("live_options", "blocks"), FORMS, ids=["text", "native"])
async def test_a_search_is_told_as_the_setting_says(live: Live, blocks: list[str]) -> None:
    asked = ask("Perform a web search for the query: tea", model=GROK, tools=[SEARCH])
    answer = (await live.post(asked)).json
    assert [block["type"] for block in answer["content"]] == blocks
    assert [cited["type"] for cited in answer["content"][-1]["citations"]] == ["web_search_result_location"] * 3
    assert answer["usage"]["server_tool_use"]["web_search_requests"] == 1
    history = [
        *asked["messages"],
        {"role": "assistant", "content": answer["content"]},
        {"role": "user", "content": "on"},
    ]
    assert (await live.post({**asked, "messages": history})).status == 200  # and comes back without harm


def _picture() -> dict[str, Any]:
    header = struct.pack(">IIBBBBB", 32, 32, 8, 2, 0, 0, 0)
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR" + header + bytes(64)).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


MODES = [{"p3_tool_image": "reattach"}, {"p3_tool_image": "inline"}]


@pytest.mark.parametrize("live_options", MODES, ids=["reattach", "inline"])
async def test_pictures_of_calls_that_ran_side_by_side_are_taken(live: Live) -> None:
    calls = [{"type": "tool_use", "id": name, "name": "Read", "input": {"file_path": name}} for name in "ab"]
    results = [{"type": "tool_result", "tool_use_id": name, "content": [_picture()]} for name in "ab"]
    history = [("user", "use Read: a\nuse Read: b"), ("assistant", calls), ("user", results)]
    messages = [{"role": role, "content": content} for role, content in history]
    answer = await live.post(ask(messages, model=GROK, tools=[tool("Read", "file_path")]))
    assert answer.status == 200, answer.raw
    assert json.dumps(live.sandbox.p3.requests[-1].body).count('"input_image"') == 2
