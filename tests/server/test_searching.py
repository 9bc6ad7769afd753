"""Models whose service does not search: the proxy searches, and goes on with the model in the same answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import pytest
from checks import check_message_stream
from events import closed, delta, opened
from harness import Answer, Fake, Live, ask, configured, tool, until, use, watch_often, whole_message, with_live
from openai_live import CHAT, RESPONSES, body_for, function
from samples import rows
from wires import message_of

from proxy.core.search.results import Found, Result
from proxy.errors import ProxyError, UpstreamError
from proxy.observe.lifecycle import Searched
from proxy.providers.contract import Call, SearchCall
from proxy.server.request.search_memory import KEPT_S, MAX_KEPT, MAX_KEPT_BYTES, SearchMemory

SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
P2, P4 = "kimi-for-coding", "glm-5.2"
QUERY = 'use web_search: {"query": "rust async"}'
ONLY = "Perform a web search for the query: rust async"
START, *_, REASON, STOP = whole_message(P2, "fine")
HEADER = "x-model-proxy-search"
A = Result("A", "https://a.example/x", "text of A")


@pytest.fixture
def live_options() -> dict[str, Any]:
    return {"openai_routes": True, "openai_mode": "lenient", "tuning": (watch_often(search=5.0),)}


def blocks(answer: Answer) -> list[str]:
    """The types of the answer's blocks without thoughts."""
    return [block["type"] for block in message_of(answer)["content"] if block["type"] != "thinking"]


def block(answer: Answer, kind: str) -> dict[str, Any]:
    return dict(next(one for one in message_of(answer)["content"] if one["type"] == kind))


async def sent(live: Live, body: Mapping[str, Any], stream: bool) -> Answer:
    answer = await live.post({**body, "stream": stream})
    if stream and answer.status == 200:
        check_message_stream(answer.events)
    return answer


both = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "folded"])


# -- with the sandbox


@both
@rows("model, by", [(P2, "p2"), (P4, "p1")])
async def test_a_request_that_only_searches_is_answered_by_a_search(
    live: Live, model: str, by: str, stream: bool
) -> None:
    answer = await sent(live, ask(ONLY, model=model, tools=[SEARCH]), stream)
    assert answer.headers[HEADER] == by
    assert blocks(answer) == ["server_tool_use", "web_search_tool_result", "text"]
    assert block(answer, "server_tool_use")["input"] == {"query": "rust async"}
    links = block(answer, "web_search_tool_result")["content"]
    assert links and all(link["url"].startswith("https://") and link["title"] for link in links)
    assert "What docs.example.org says" in block(answer, "text")["text"]
    assert message_of(answer)["usage"]["server_tool_use"]["web_search_requests"] == 1
    assert live.sandbox.p2.total_requests == live.sandbox.p4.total_requests == 0
    [noted] = live.notes.all("searched")
    assert noted["by"] == by and noted["outcome"] == "ok" and "rust" not in json.dumps(live.notes.records)


@both
@rows("model, by", [(P2, "p2"), (P4, "p1"), ("minimax-m3", "p1")])
async def test_a_model_that_searches_goes_on_in_the_same_answer(live: Live, model: str, by: str, stream: bool) -> None:
    answer = await sent(live, ask(QUERY, model=model, tools=[SEARCH, tool()]), stream)
    assert answer.headers[HEADER] == by and "x-model-proxy-ignored" not in answer.headers
    assert blocks(answer) == ["server_tool_use", "web_search_tool_result", "text"]
    message = message_of(answer)
    assert message["stop_reason"] == "end_turn" and message["usage"]["server_tool_use"]["web_search_requests"] == 1
    assert "[rust async docs.example.org](https://docs.example.org/rust-async)" in block(answer, "text")["text"]
    upstream = live.sandbox.p2 if model == P2 else live.sandbox.p4
    assert upstream.total_requests == 2
    assert live.watcher.names[-1] == "Completed" and live.watcher.names.count("Searched") == 1


async def test_a_call_of_the_client_ends_the_answer_and_the_next_turn_knows_the_results(live: Live) -> None:
    request = ask(f"{QUERY} and use Bash: ls", model=P4, tools=[SEARCH, tool()])
    answer = await sent(live, request, False)
    assert blocks(answer) == ["tool_use", "server_tool_use", "web_search_tool_result"]
    message = message_of(answer)
    assert message["stop_reason"] == "tool_use" and live.sandbox.p4.total_requests == 1
    [call] = [one for one in message["content"] if one["type"] == "tool_use"]
    done = {"type": "tool_result", "tool_use_id": call["id"], "content": "README"}
    turns = [{"role": "assistant", "content": message["content"]}, {"role": "user", "content": [done]}]
    await sent(live, {**request, "messages": [*request["messages"], *turns]}, True)
    spoken = live.sandbox.p4.requests[-1].body["messages"]
    assert [one["role"] for one in spoken] == ["user", "assistant", "tool", "tool"]
    found = next(one["content"] for one in spoken if one["role"] == "tool" and "README" not in one["content"])
    assert "What docs.example.org says about rust async." in found and "foreign pages" in found


async def test_the_domains_of_the_caller_hold_for_every_service(live: Live) -> None:
    asked = {**SEARCH, "allowed_domains": ["docs.example.org"]}
    for model in (P2, P4):
        answer = await sent(live, ask(ONLY, model=model, tools=[asked]), False)
        assert [link["url"] for link in block(answer, "web_search_tool_result")["content"]] == [
            "https://docs.example.org/rust-async"
        ]
    assert live.sandbox.p1.searches[-1].body["settings"]["filters"] == {"allowed_domains": ["docs.example.org"]}
    assert live.sandbox.p2.service_requests[-1].body == {"text_query": "rust async"}
    assert live.sandbox.p2.service_requests[-1].headers["X-Msh-Tool-Call-Id"].startswith("srvtoolu_")


@rows("setting, by", [("p3", "p3"), ("grok-4.5", "p3"), ("p2", "p2"), ("codex", "p1"), ("gpt-5.5", "p1")])
async def test_the_setting_names_who_searches(live: Live, setting: str, by: str) -> None:
    live.config = configured(live.config, search=setting)
    answer = await sent(live, ask(ONLY, model=P4, tools=[SEARCH]), True)
    assert answer.headers[HEADER] == by and blocks(answer)[1] == "web_search_tool_result"
    assert block(answer, "web_search_tool_result")["content"], answer.raw
    if setting == "gpt-5.5":
        assert live.sandbox.p1.searches[-1].body["model"] == "gpt-5.5"
    if by == "p3":
        assert "A search for" in block(answer, "text")["text"]
        [event] = [one for one in live.watcher.last if isinstance(one, Searched)]
        assert event.input_tokens > 0 and event.output_tokens > 0


async def test_nobody_searches_when_it_is_off_or_nobody_can(live: Live) -> None:
    live.config = configured(live.config, search="off")
    answer = await sent(live, ask(QUERY, model=P4, tools=[SEARCH, tool()]), False)
    assert HEADER not in answer.headers and answer.headers["x-model-proxy-ignored"] == "tools[0].type"
    refused = await sent(live, ask(ONLY, model=P4, tools=[SEARCH]), False)
    assert refused.status == 400 and "PROXY_SEARCH" in refused.error["message"]
    live.config = configured(live.config, search="auto")
    for label in ("p1", "p2", "p3"):
        (live.root / label / "auth.json").unlink()
    refused = await sent(live, ask(ONLY, model=P4, tools=[SEARCH]), False)
    assert refused.status == 400 and "sign in" in refused.error["message"]


@both
async def test_a_provider_with_a_search_of_its_own_keeps_it(live: Live, stream: bool) -> None:
    for model in ("gpt-5.5", "grok-4.6", "cursor:auto"):
        answer = await sent(live, ask(ONLY, model=model, tools=[SEARCH]), stream)
        assert HEADER not in answer.headers and answer.status == 200


async def test_a_count_of_tokens_is_as_it_was(live: Live) -> None:
    body = ask(QUERY, model=P4, tools=[SEARCH, tool()])
    with_search = await live.post(body, "/v1/messages/count_tokens")
    without = await live.post({**body, "tools": [tool()]}, "/v1/messages/count_tokens")
    assert with_search.json == without.json and HEADER not in with_search.headers


#: (fault, its members, the word of the failure, "" for a good search; how often the service is asked)
FAULTS: list[tuple[str, dict[str, Any], str, int]] = [
    ("silence_before_head", {"seconds": 0.02}, "", 1),
    ("silence_mid_text", {"seconds": 0.02}, "", 1),
    ("cut_before_output", {}, "", 2),
    ("cut_text", {"times": 9}, "unavailable", 4),
    ("malformed_json", {}, "unavailable", 1),
    ("empty_body", {}, "unavailable", 1),
    ("in_a_list", {}, "unavailable", 1),
    ("too_long", {}, "unavailable", 1),
    ("unauthorized", {}, "", 2),
    ("unauthorized", {"times": 9}, "unavailable", 2),
    ("rate_limit", {}, "", 2),
    ("rate_limit", {"times": 9}, "too_many_requests", 4),
    ("usage_limit", {"times": 9}, "too_many_requests", 1),
    ("server_error", {}, "", 2),
    ("server_error", {"times": 9}, "unavailable", 4),
    ("overloaded", {"times": 9}, "unavailable", 4),
    ("forbidden", {}, "unavailable", 1),
    ("html_error", {"times": 9}, "unavailable", 4),
]


@both
@pytest.mark.parametrize("label, model", [("p1", P4), ("p2", P2)])
@pytest.mark.parametrize("fault, members, code, asked", FAULTS)
async def test_a_search_that_fails_is_a_result_that_says_so(
    live: Live, label: str, model: str, fault: str, members: dict[str, Any], code: str, asked: int, stream: bool
) -> None:
    step = {"fault": fault, "match": {"wire": "search"}, **members}
    upstream = live.sandbox.upstreams[label]
    upstream.script.extend([step])
    answer = await sent(live, ask(QUERY, model=model, tools=[SEARCH, tool()]), stream)
    assert blocks(answer) == ["server_tool_use", "web_search_tool_result", "text"]
    content = block(answer, "web_search_tool_result")["content"]
    seen = live.sandbox.p1.searches if label == "p1" else live.sandbox.p2.service_requests
    assert len(seen) == asked
    if code:
        assert content == {"type": "web_search_tool_result_error", "error_code": code}
        assert "The web search failed" in block(answer, "text")["text"]
        assert "server_tool_use" not in message_of(answer)["usage"]
    else:
        assert isinstance(content, list) and content
    [event] = [one for one in live.watcher.last if isinstance(one, Searched)]
    assert event.outcome == (code or "ok")


# -- with a model and a search that the test writes


class Searching(Fake):
    """A model that calls the search so often, and a service that finds the same each time."""

    def __init__(self, rounds: int = 1, found: Any = None, more: list[Any] | None = None, query: str = "q") -> None:
        super().__init__("p2", self._play)
        self.searched: list[SearchCall] = []
        self.cancelled = 0
        self._rounds = rounds
        self._found = found or Found((A,))
        self._more = more or []
        self._query = query

    async def _play(self, call: Call) -> AsyncGenerator[list[Any], None]:
        if len(self.calls) > self._rounds:
            yield whole_message(call.model, f"see [A]({A.url})")
            return
        arguments = json.dumps({"query": self._query})
        yield [START]
        yield [
            opened("tool_use", 0, id=f"t{len(self.calls)}", name="web_search"),
            delta(arguments, "input_json_delta", 0),
            closed(0),
            *self._more,
        ]
        yield [{**REASON, "delta": {"stop_reason": "tool_use", "stop_sequence": None}}, STOP]

    async def search(self, call: SearchCall) -> Found:
        self.searched.append(call)
        try:
            if isinstance(self._found, asyncio.Event):
                await self._found.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if isinstance(self._found, BaseException):
            raise self._found
        return self._found if isinstance(self._found, Found) else Found((A,))


@both
async def test_searches_are_counted_and_usage_is_the_sum(live: Live, stream: bool) -> None:
    fake = use(live, Searching(3))
    answer = await sent(live, ask(model=P2, tools=[SEARCH]), stream)
    usage = message_of(answer)["usage"]
    assert usage["input_tokens"] == 4 * REASON["usage"]["input_tokens"]
    assert usage["output_tokens"] == 4 * REASON["usage"]["output_tokens"]
    assert usage["server_tool_use"] == {"web_search_requests": 3, "web_fetch_requests": 0}
    assert len(fake.calls) == 4 and fake.closed == 4
    ids = [one["id"] for one in message_of(answer)["content"] if one["type"] == "server_tool_use"]
    assert len(set(ids)) == 3


@both
async def test_a_loop_that_never_ends_is_ended(live: Live, stream: bool) -> None:
    fake = use(live, Searching(10**9))
    answer = await live.post({**ask(model=P2, tools=[{**SEARCH, "max_uses": 2}]), "stream": stream})
    assert len(fake.searched) == 2 and len(fake.calls) == 4
    told = [one["content"] for one in fake.calls[-1].request["messages"][-1]["content"]]
    assert "no more searches are allowed" in told[0]
    if stream:
        check_message_stream(answer.events)
        assert answer.events[-1]["type"] == "error"
    else:  # clients repeat a 502 twice, each time with all the searches
        assert answer.status == 422 and "without an answer" in answer.error["message"]
        assert answer.headers["x-should-retry"] == "false"


async def test_the_last_round_allows_no_call_so_that_it_ends_with_words(live: Live) -> None:
    class Obeying(Searching):
        async def _play(self, call: Call) -> AsyncGenerator[list[Any], None]:
            if call.request.get("tool_choice") == {"type": "none"}:
                yield whole_message(call.model, "that is all")
                return
            async for batch in super()._play(call):
                yield batch

    fake = use(live, Obeying(10**9))
    answer = await sent(live, ask(model=P2, tools=[{**SEARCH, "max_uses": 2}, tool()]), False)
    assert answer.status == 200 and block(answer, "text")["text"] == "that is all" and len(fake.calls) == 4


async def test_what_was_forced_is_forced_once(live: Live) -> None:
    fake = use(live, Searching())
    await sent(live, ask(model=P2, tools=[SEARCH], tool_choice={"type": "tool", "name": "web_search"}), True)
    assert [call.request["tool_choice"]["type"] for call in fake.calls] == ["tool", "auto"]


@rows("query", ["", "   ", 7, None])
async def test_a_call_without_a_query_is_answered_without_a_search(live: Live, query: Any) -> None:
    fake = use(live, Searching(query=query))
    answer = await sent(live, ask(model=P2, tools=[SEARCH]), False)
    assert not fake.searched and block(answer, "web_search_tool_result")["content"]["error_code"] == "invalid_input"


@both
@rows(
    "error, code",
    [
        (UpstreamError("slow down", kind="rate_limit"), "too_many_requests"),
        (ProxyError("p1 is not signed in", kind="sign_in"), "unavailable"),
        (RuntimeError("a fault of ours"), "unavailable"),
    ],
)
async def test_any_failure_of_a_search_is_told_to_the_model(live: Live, error: Any, code: str, stream: bool) -> None:
    fake = use(live, Searching(found=error))
    answer = await sent(live, ask(model=P2, tools=[SEARCH]), stream)
    assert block(answer, "web_search_tool_result")["content"]["error_code"] == code
    [told] = fake.calls[-1].request["messages"][-1]["content"]
    assert told["is_error"] is True and "fault of ours" not in told["content"]


async def test_a_client_that_leaves_stops_the_search(live: Live) -> None:
    waits = asyncio.Event()
    fake = use(live, Searching(found=waits))
    async with live.open({**ask(model=P2, tools=[SEARCH]), "stream": True}):
        await until(lambda: fake.searched)
    await until(lambda: fake.cancelled == 1)
    assert fake.closed == len(fake.calls) == 1


@both
@pytest.mark.parametrize("fault", ["silence_before_head", "silence_mid_text"])
@with_live(tuning=(watch_often(search=0.3),))
async def test_a_search_that_is_too_slow_is_given_up(live: Live, fault: str, stream: bool) -> None:
    live.sandbox.p2.script.extend([{"fault": fault, "seconds": 60.0, "match": {"wire": "search"}}])
    answer = await sent(live, ask(QUERY, model=P2, tools=[SEARCH, tool()]), stream)
    assert block(answer, "web_search_tool_result")["content"]["error_code"] == "unavailable"
    assert "took too long" in block(answer, "text")["text"]


@with_live(tuning=(watch_often(search=0.05),))
async def test_a_search_has_a_time(live: Live) -> None:
    fake = use(live, Searching(found=asyncio.Event()))
    answer = await sent(live, ask(model=P2, tools=[SEARCH]), False)
    assert block(answer, "web_search_tool_result")["content"]["error_code"] == "unavailable"
    assert fake.cancelled == 1


async def test_a_failure_after_a_search_is_an_error_and_nothing_is_asked_again(live: Live) -> None:
    class Failing(Searching):
        async def _play(self, call: Call) -> AsyncGenerator[list[Any], None]:
            if len(self.calls) > 1:
                raise UpstreamError("broken", kind="overloaded")
            async for batch in super()._play(call):
                yield batch

    live.config = configured(live.config, fallback=((P2, ("kimi-k3",)),))
    fake = use(live, Failing())
    answer = await live.stream(ask(model=P2, tools=[SEARCH]))
    check_message_stream(answer.events)
    assert answer.events[-1]["type"] == "error" and len(fake.calls) == 2 and len(fake.searched) == 1


async def test_the_conversation_grows_and_the_callers_body_does_not(live: Live) -> None:
    fake = use(live, Searching(2))
    earlier = [{"role": "user" if place % 2 == 0 else "assistant", "content": f"m{place}"} for place in range(21)]
    await sent(live, ask(earlier, model=P2, tools=[SEARCH]), True)
    assert [len(call.request["messages"]) for call in fake.calls] == [21, 23, 25]
    assert [one["content"] for one in fake.calls[2].request["messages"][:21]] == [one["content"] for one in earlier]


def test_what_is_remembered_is_bounded_and_belongs_to_its_caller() -> None:
    now = [0.0]
    memory = SearchMemory(lambda: now[0])
    memory.keep("anna", "a", [{"type": "x"}], 10)
    assert (
        memory.of("anna", "a") and not memory.of("bob", "a") and not memory.of(None, "a") and not memory.of("anna", "b")
    )
    now[0] = KEPT_S + 1
    assert not memory.of("anna", "a") and memory._bytes == 0
    for number in range(MAX_KEPT + 5):
        memory.keep(None, f"{number}", [{}], 1)
    assert not memory.of(None, "4") and memory.of(None, "5") and memory._bytes == MAX_KEPT
    memory.keep(None, "large", [{}], MAX_KEPT_BYTES)
    assert memory.of(None, "large") and len(memory._kept) == 1


# -- the OpenAI-style routes


def responses_items(answer: Answer) -> list[dict[str, Any]]:
    return list(answer.json["output"])


class CallingLater(Searching):
    """A model that searches, and in its next round calls the client."""

    async def _play(self, call: Call) -> AsyncGenerator[list[Any], None]:
        if len(self.calls) != 2:
            async for batch in super()._play(call):
                yield batch
            return
        yield [START]
        yield [opened("tool_use", 0, id=self.call_id, name="Bash"), delta("{}", "input_json_delta", 0), closed(0)]
        yield [{**REASON, "delta": {"stop_reason": "tool_use", "stop_sequence": None}}, STOP]

    call_id = "call_" + "0" * 32


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
@rows("length", [5, 46])
async def test_the_next_turn_knows_what_was_searched_before_a_call(live: Live, path: str, length: int) -> None:
    fake = CallingLater()
    fake.call_id = "c" * length
    use(live, fake)
    search = {"web_search_options": {}} if path == CHAT else {}
    tools = [function(path), *([] if path == CHAT else [{"type": "web_search"}])]
    body = body_for(path, "go", P2, tools=tools, **search)
    call_id, body = next_turn(await live.post(body, path), body, path)
    await live.post(body, path)
    user, *steps = fake.calls[-1].request["messages"]
    kinds = [(message["role"], [one["type"] for one in message["content"]]) for message in steps]
    assert kinds == [("assistant", ["tool_use"]), ("user", ["tool_result"])] * 2 and user["role"] == "user"
    assert [one["content"][0]["name"] for one in steps if one["role"] == "assistant"] == ["web_search", "Bash"]
    assert "text of A" in steps[1]["content"][0]["content"] and len(call_id) <= 64


def next_turn(answer: Answer, body: dict[str, Any], path: str) -> tuple[str, dict[str, Any]]:
    """The id of the call in an answer, and the request with its result."""
    if path == CHAT:
        message = answer.json["choices"][0]["message"]
        [call_id] = [one["id"] for one in message["tool_calls"]]
        done = {"role": "tool", "tool_call_id": call_id, "content": "README"}
        return call_id, {**body, "messages": [*body["messages"], message, done]}
    items = answer.json["output"]
    [call_id] = [one["call_id"] for one in items if one["type"] == "function_call"]
    asked = {"type": "message", "role": "user", "content": body["input"]}
    output = {"type": "function_call_output", "call_id": call_id, "output": "README"}
    return call_id, {**body, "input": [asked, *items, output]}


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
async def test_an_id_that_would_be_too_long_stays_as_it_is(live: Live, path: str) -> None:
    fake = CallingLater()
    fake.call_id = "c" * 47
    use(live, fake)
    search = {"web_search_options": {}} if path == CHAT else {}
    tools = [function(path), *([] if path == CHAT else [{"type": "web_search"}])]
    body = body_for(path, "go", P2, tools=tools, **search)
    assert next_turn(await live.post(body, path), body, path)[0] == fake.call_id


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
@rows("model", [P2, P4])
async def test_the_next_turn_knows_what_was_searched_beside_a_call(live: Live, path: str, model: str) -> None:
    """A client of these APIs cannot send the results back."""
    search = {"web_search_options": {}} if path == CHAT else {}
    tools = [function(path), *([] if path == CHAT else [{"type": "web_search"}])]
    body = body_for(path, f"{QUERY} and use Bash: ls", model, tools=tools, **search)
    answer = await live.post(body, path)
    call_id, body = next_turn(answer, body, path)
    await live.post(body, path)
    upstream = live.sandbox.p2 if model == P2 else live.sandbox.p4
    spoken = upstream.requests[-1].body["messages"]
    results = [one["content"] for one in spoken if one["role"] == "tool"]
    assert len(results) == 2 and "What docs.example.org says about rust async." in results[0]
    calls = [call["id"] for one in spoken for call in one.get("tool_calls") or ()]
    assert len(set(calls)) == 2 and not any("__u" in one for one in calls) and len(call_id) <= 64


@rows("mode", ["strict", "lenient"])
async def test_responses_show_the_search_as_an_item_and_cite_what_is_linked(live: Live, mode: str) -> None:
    live.config = configured(live.config, openai_mode=mode)
    body = {"model": P4, "input": QUERY, "tools": [{"type": "web_search"}]}
    answer = await live.post(body, RESPONSES)
    assert answer.headers[HEADER] == "p1" and "x-model-proxy-ignored" not in answer.headers
    search, message = responses_items(answer)
    assert search["type"] == "web_search_call" and search["action"]["query"] == "rust async"
    assert search["action"]["sources"][0] == {"type": "url", "url": "https://docs.example.org/rust-async"}
    [part] = message["content"]
    assert len(part["annotations"]) == 3
    for one in part["annotations"]:
        link = part["text"][one["start_index"] : one["end_index"]]
        assert one["type"] == "url_citation" and link.startswith("[") and link.endswith(f"]({one['url']})")


@both
async def test_chat_cites_what_is_linked(live: Live, stream: bool) -> None:
    body = {
        "model": P4,
        "messages": [{"role": "user", "content": QUERY}],
        "web_search_options": {"search_context_size": "low"},
        "stream": stream,
    }
    answer = await live.post(body, CHAT)
    assert answer.headers[HEADER] == "p1"
    if stream:
        chunks = [json.loads(line[6:]) for line in answer.raw.decode().split("\n\n") if line.startswith("data: {")]
        deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
        text = "".join(one.get("content") or "" for one in deltas)
        cited = [one["url_citation"] for item in deltas for one in item.get("annotations", ())]
    else:
        message = answer.json["choices"][0]["message"]
        text, cited = message["content"], [one["url_citation"] for one in message["annotations"]]
    assert len(cited) == 3
    for one in cited:
        assert text[one["start_index"] : one["end_index"]].endswith(f"]({one['url']})")


async def test_strict_mode_refuses_the_options_of_a_search_as_before(live: Live) -> None:
    live.config = configured(live.config, openai_mode="strict")
    body = {"model": P4, "messages": [{"role": "user", "content": QUERY}], "web_search_options": {}}
    answer = await live.post(body, CHAT)
    assert answer.status == 400 and answer.json["error"]["param"] == "web_search_options"


async def test_a_forced_search_of_responses_is_made(live: Live) -> None:
    body = {"model": P4, "input": "hi", "tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}}
    answer = await live.post(body, RESPONSES)
    assert [item["type"] for item in responses_items(answer)] == ["web_search_call", "message"]


async def test_bodies_without_a_search_are_served_as_before(live: Live) -> None:
    for path, body in (
        (RESPONSES, {"model": P4, "input": "tell me of web_search"}),
        (CHAT, {"model": P4, "messages": [{"role": "user", "content": "web_search"}]}),
        ("/v1/messages", ask("web_search", model=P4)),
    ):
        answer = await live.post(body, path)
        assert answer.status == 200 and HEADER not in answer.headers and not live.notes.all("searched")
