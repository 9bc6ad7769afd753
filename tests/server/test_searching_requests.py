"""Searches and the request around them: what is left out, corrected and refused, who is asked, and who pays."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from events import closed, delta, opened
from harness import Fake, Live, ask, configured, played, store_account, tool, use, whole_message
from openai_live import CHAT, RESPONSES
from pictures import png
from samples import rows
from wires import message_of

from proxy.core.search.results import Found, Result
from proxy.errors import UpstreamError
from proxy.providers.contract import Call, SearchCall
from proxy.sandbox import Sandbox
from proxy.server.request.state import STATE

SEARCH = {"type": "web_search_20250305", "name": "web_search"}
P2, P4 = "kimi-for-coding", "glm-5.2"
QUERY = 'use web_search: {"query": "rust async"}'
ONLY = "Perform a web search for the query: rust async"
HEADER, IGNORED = "x-model-proxy-search", "x-model-proxy-ignored"
CODE = {"type": "code_execution_20250522", "name": "code_execution"}
FETCH = {"type": "web_fetch_20250910", "name": "web_fetch"}
JPEG = base64.b64encode(b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(64)).decode()
START, *_, REASON, STOP = whole_message(P2, "fine")

both = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "folded"])


@pytest.fixture
def live_options() -> dict[str, Any]:
    return {"openai_routes": True, "openai_mode": "lenient"}


def picture(kind: str = "image/png") -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": JPEG}}


class Searching(Fake):
    """A model that searches once, and a service that finds one page."""

    asked = '{"query": "q"}'

    def __init__(self) -> None:
        super().__init__("p2", self._play)
        self.searched: list[SearchCall] = []

    async def _play(self, call: Call) -> AsyncGenerator[list[Any], None]:
        if len(self.calls) > 1:
            yield whole_message(call.model, "fine")
            return
        yield [START, opened("tool_use", 0, id="t1", name="web_search"), delta(self.asked, "input_json_delta", 0)]
        yield [closed(0), {**REASON, "delta": {"stop_reason": "tool_use", "stop_sequence": None}}, STOP]

    async def search(self, call: SearchCall) -> Found:
        self.searched.append(call)
        return Found((Result("A", "https://a.example/x", "text of A"),))


@both
async def test_each_round_has_the_request_as_it_was_cleaned(live: Live, stream: bool) -> None:
    fake = use(live, Searching())
    content = [picture(), {"type": "text", "text": "go"}]
    tools = [SEARCH, CODE, FETCH, {**SEARCH, "type": "web_search_20260209"}, tool()]
    answer = await live.post({**ask([{"role": "user", "content": content}], model=P2, tools=tools), "stream": stream})
    assert answer.headers[IGNORED] == "tools[1].type, tools[2].type, tools[3].type" and len(fake.calls) == 2
    for call in fake.calls:
        assert [one["name"] for one in call.request["tools"]] == ["web_search", "Bash"]
        assert call.request["messages"][0]["content"][0] == picture("image/jpeg")


async def test_each_round_has_the_pictures_in_words(live: Live) -> None:
    live.config = configured(live.config, vision_model="gpt-5.5")
    source = {"type": "base64", "media_type": "image/png", "data": png()}
    content = [{"type": "image", "source": source}, {"type": "text", "text": QUERY}]
    answer = await live.post(ask([{"role": "user", "content": content}], model=P4, tools=[SEARCH, tool()]))
    first, second = (seen.body["messages"][0] for seen in live.sandbox.p4.requests)
    assert answer.headers["x-model-proxy-vision"] == "p1" and answer.headers[HEADER] == "p1"
    assert first == second and "described by gpt-5.5" in str(first)


@pytest.mark.parametrize("model", [P2, P4])
async def test_real_services_get_neither_wrong_tools_nor_wrong_pictures(live: Live, model: str) -> None:
    content = [picture(), {"type": "text", "text": QUERY}]
    answer = await live.post(
        ask([{"role": "user", "content": content}], model=model, tools=[SEARCH, CODE, FETCH, tool()])
    )
    assert answer.status == 200, answer.raw
    upstream = live.sandbox.p2 if model == P2 else live.sandbox.p4
    for seen in upstream.requests:
        assert [one["function"]["name"] for one in seen.body["tools"]] == ["web_search", "Bash"]
        assert "image/png" not in str(seen.body)


@rows(
    "member",
    [{"max_uses": 0}, {"max_uses": "3"}, {"name": "no name"}, {"blocked_domains": ["evil.*"]}],
)
async def test_what_a_search_cannot_honour_is_refused(live: Live, member: dict[str, Any]) -> None:
    answer = await live.post(ask(QUERY, model=P4, tools=[{**SEARCH, **member}, tool()]))
    assert answer.status == 400 and f"`{next(iter(member))}` of a search tool" in answer.error["message"]


@both
async def test_half_a_character_is_searched_as_a_question_mark(live: Live, stream: bool) -> None:
    fake = use(live, Searching())
    fake.asked = '{"query": "rust \\ud800\\u0007"}'
    answer = await live.post({**ask(model=P2, tools=[SEARCH, tool()]), "stream": stream})
    assert message_of(answer)["content"][0]["input"] == {"query": "rust ?"}
    assert [call.query.text for call in fake.searched] == ["rust ?"]


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
async def test_other_apis_ask_the_model_even_if_the_words_are_those_of_a_search(live: Live, path: str) -> None:
    chat = {"messages": [{"role": "user", "content": ONLY}], "web_search_options": {}}
    responses = {"input": ONLY, "tools": [{"type": "web_search"}]}
    answer = await live.post({"model": P2, **(chat if path == CHAT else responses)}, path)
    assert answer.status == 200 and answer.headers[HEADER] == "p2" and live.sandbox.p2.total_requests > 0
    assert b"quoted from foreign pages" not in answer.raw


@both
async def test_a_failure_after_a_search_leads_to_no_other_model(live: Live, stream: bool) -> None:
    class Failing(Searching):
        async def _play(self, call: Call) -> AsyncGenerator[list[Any], None]:
            if len(self.calls) > 1:
                raise UpstreamError("broken", kind="overloaded")
            async for batch in super()._play(call):
                yield batch

    live.config = configured(live.config, fallback=((P2, (P4,)),))
    fake = use(live, Failing())
    answer = await live.post({**ask(model=P2, tools=[SEARCH, tool()]), "stream": stream})
    assert len(fake.searched) == 1 and live.sandbox.p4.total_requests == 0 and not live.sandbox.p1.searches
    assert answer.headers[HEADER] == "p2" and "x-model-proxy-fallback" not in answer.headers
    assert answer.events[-1]["type"] == "error" if stream else answer.status == 529


@both
async def test_the_account_that_goes_on_searches_and_is_named(tmp_path: Path, stream: bool) -> None:
    async with Sandbox() as sandbox, Live(sandbox, tmp_path, on_spent="next") as live:
        store_account(tmp_path, "p2")
        spent, work = Searching(), Searching()
        spent._stream = played(UpstreamError("no more", kind="usage_limit", provider="p2", retry_after=600))
        accounts = live.app[STATE].accounts
        accounts.providers.made["p2"], accounts.named["p2/work"] = spent, work
        answer = await live.post({**ask(model=P2, tools=[SEARCH, tool()]), "stream": stream})
        assert len(spent.calls) == 1 and len(work.calls) == 2 and len(work.searched) == 1 and not spent.searched
        assert answer.headers[HEADER] == "p2/work" and live.notes.all("searched")[0]["by"] == "p2/work"


async def test_words_about_a_search_touch_no_other_account(tmp_path: Path) -> None:
    async with Sandbox() as sandbox:
        store_account(tmp_path, "p1", sandbox.p1.second().credentials(None, None))
        async with Live(sandbox, tmp_path, openai_routes=True, openai_mode="lenient") as live:
            accounts = live.app[STATE].accounts
            looked: list[str] = []
            known = accounts.of
            accounts.of = lambda label: looked.append(label) or known(label)  # type: ignore[method-assign, func-returns-value]
            for path, body in (
                ("/v1/messages", ask("what is web_search?", model=P4)),
                (CHAT, {"model": P4, "messages": [{"role": "user", "content": "web_search"}]}),
                (RESPONSES, {"model": P4, "input": "web_search"}),
            ):
                assert (await live.post(body, path)).status == 200
            assert set(looked) == {"p4"}
            await live.post(ask(QUERY, model=P4, tools=[SEARCH, tool()]))
            assert "p1" in looked and not accounts._affinity._began
