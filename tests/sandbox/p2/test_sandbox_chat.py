"""The small model over turns of chat completions, and every fault of that wire, at P2; P4 speaks the same."""

from typing import Any

from p2_sandbox_client import BASH, IMAGE, READ, TEXT, VIDEO, P2Client, answer, chat, replay, user
from raw_client import Reply
from samples import rows

from proxy.sandbox import Place

PLACE = Place("p2", "chat")
WHOLE = {"stream": None, "stream_options": None}


async def test_order_of_a_thought_and_a_text(kimi: P2Client) -> None:
    reply = await kimi.ask(chat(user("hello there")))
    assert reply.status == 200 and reply.headers["content-type"].startswith("text/event-stream")
    assert reply.headers["x-trace-id"]
    kinds = ["thought" if "reasoning_content" in delta else "text" for delta in reply.deltas[1:-1]]
    assert kinds == sorted(kinds, reverse=True) and set(kinds) == {"thought", "text"}
    assert reply.deltas[0] == {"role": "assistant", "content": ""} and reply.deltas[-1] == {}
    assert reply.finish == ["stop"] and reply.data.endswith(b"data: [DONE]\n\n")
    assert "**Planning the answer**" in reply.thought and '"hello there"' in reply.text
    assert {event["object"] for event in reply.events} == {"chat.completion.chunk"}
    assert {event["model"] for event in reply.events} == {"kimi-for-coding"}
    assert len({event["id"] for event in reply.events}) == 1
    assert reply.data.count(b"event:") == 0


async def test_usage(kimi: P2Client) -> None:
    body = chat(user("x" * 4_000))
    first, second = [await kimi.ask(body) for _ in range(2)]
    usage = second.events[-1]["usage"]
    assert second.events[-1]["choices"] == []
    assert second.events[-2]["choices"][0]["usage"] == usage
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert 0 < usage["completion_tokens_details"]["reasoning_tokens"] < usage["completion_tokens"]
    assert first.events[-1]["usage"]["cached_tokens"] == 0
    assert 896 <= usage["cached_tokens"] == usage["prompt_tokens_details"]["cached_tokens"] <= usage["prompt_tokens"]
    assert [event for event in (await kimi.ask(chat(stream_options=None))).events if not event["choices"]] == []


@rows(
    "members, thinks",
    [
        ({}, True),
        ({"thinking": None}, True),
        ({"thinking": {"type": "disabled"}}, False),
        ({"thinking": {"type": "disabled"}, "model": "k3"}, True),
    ],
)
async def test_when_it_thinks(kimi: P2Client, members: Any, thinks: bool) -> None:
    assert bool((await kimi.ask(chat(**members))).thought) is thinks


async def test_calls_are_numbered_in_the_conversation(kimi: P2Client) -> None:
    prompt, tools = user("use Bash: ls -la and use Read: /etc/hosts"), [BASH, READ]
    first = await kimi.ask(chat(prompt, tools=tools))
    assert first.ids == ["Bash:0", "Read:1"] and first.finish == ["tool_calls"]
    turn = [prompt, replay(first), answer("Bash:0", "a" * 300), answer("Read:1", [TEXT, IMAGE])]
    second = await kimi.ask(chat(*turn, tools=tools))
    third = await kimi.ask(chat(*turn, replay(second), user("use Bash: pwd"), tools=tools))
    assert third.ids == ["Bash:2"]


async def test_media(kimi: P2Client) -> None:
    reply = await kimi.ask(chat(user([{**TEXT, "text": "what is this?"}, IMAGE, VIDEO])))
    assert '"what is this?"' in reply.text and "2 images (1 image/png, 1 video/mp4)" in reply.text


async def test_older_members_are_counted(kimi: P2Client) -> None:
    assert (await kimi.ask(chat(max_tokens=5, reasoning_effort="low"))).status == 200
    await kimi.ask(chat())
    assert kimi.sandbox.p2.older_members == {"max_tokens": 1, "reasoning_effort": 1}


async def test_without_a_stream(kimi: P2Client) -> None:
    reply = await kimi.ask(chat(user("use Bash: ls"), tools=[BASH], **WHOLE))
    [choice] = reply.json["choices"]
    assert (reply.json["object"], choice["finish_reason"]) == ("chat.completion", "tool_calls")
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "Bash", "arguments": '{"command":"ls"}'}
    assert choice["message"]["reasoning_content"] and reply.json["usage"]["total_tokens"]
    assert '"hello"' in (await kimi.ask(chat(**WHOLE))).json["choices"][0]["message"]["content"]


async def played(kimi: P2Client, fault: str, body: dict[str, Any] | None = None, **params: Any) -> Reply:
    kimi.sandbox.p2.script.replace([{"fault": fault, **params}])
    reply = await kimi.ask(chat(user("use Bash: ls"), tools=[BASH]) if body is None else body)
    assert kimi.sandbox.p2.script.left == 0
    return reply


#: Fault -> finish reasons, whether `[DONE]` came.
REASONS: list[tuple[str, dict[str, Any], list[str], bool]] = [
    ("cut_after_terminal", {}, ["tool_calls"], True),
    ("end_without_terminal", {}, [], False),
    ("no_done", {}, ["tool_calls"], False),
    ("no_finish", {}, [], True),
    ("finish_reason", {"reason": "stop"}, ["stop"], True),
    ("finish_reason", {"reason": "content_filter"}, ["content_filter"], True),
    ("incomplete", {}, ["length"], True),
    ("truncated_arguments", {}, ["length"], True),
    ("empty", {}, ["stop"], True),
]


@rows("fault, params, finish, done", REASONS)
async def test_finish_reasons(kimi: P2Client, fault: str, params: Any, finish: list[str], done: bool) -> None:
    reply = await played(kimi, fault, **params)
    assert (reply.status, reply.finish, reply.done) == (200, finish, done)


async def test_fragments_of_calls(kimi: P2Client) -> None:
    before = (await played(kimi, "arguments_before_name")).fragments
    assert "name" not in before[0]["function"] and before[1]["function"]["name"] == "Bash"
    restarted = (await played(kimi, "index_restarts")).fragments
    assert {fragment["index"] for fragment in restarted} == {0}
    assert [fragment["id"] for fragment in restarted if "id" in fragment] == ["Bash:0", "Bash:1"]
    assert all("index" not in fragment for fragment in (await played(kimi, "missing_index")).fragments)
    assert all("id" not in fragment for fragment in (await played(kimi, "missing_ids")).fragments)
    assert (await played(kimi, "missing_ids", empty=True)).ids == [""]
    assert all("name" not in fragment["function"] for fragment in (await played(kimi, "missing_names")).fragments)
    assert {fragment["id"] for fragment in (await played(kimi, "repeated_names")).fragments} == {"Bash:0"}
    at_end = await played(kimi, "arguments_at_end")
    assert len(at_end.deltas[-1]["tool_calls"]) == 1 == len(at_end.fragments) - 1
    whole = (await played(kimi, "whole_arguments", as_object=True)).fragments
    assert [fragment["function"]["arguments"] for fragment in whole] == [{"command": "ls"}]
    between = await played(kimi, "text_between")
    kinds = ["text" if delta.get("content") else "call" for delta in between.deltas if set(delta) - {"role"}]
    assert kinds.index("text") < len(kinds) - 1 - kinds[::-1].index("call")


async def test_where_the_usage_stands(kimi: P2Client) -> None:
    found = {}
    for where in ("own", "finish", "choice", "missing"):
        events = (await played(kimi, "usage", where=where)).events
        own = "usage" in events[-1] and not events[-1]["choices"]
        finishing = next(event for event in events if event["choices"] and event["choices"][0]["finish_reason"])
        found[where] = (own, "usage" in finishing, "usage" in finishing["choices"][0])
    assert found == {
        "own": (True, False, False),
        "finish": (False, True, False),
        "choice": (False, False, True),
        "missing": (False, False, False),
    }


@rows("index", [0, 1])
async def test_several_choices(kimi: P2Client, index: int) -> None:
    reply = await played(kimi, "several_choices", chat(), index=index)
    last = next(event["choices"] for event in reversed(reply.events) if event["choices"])
    assert [(choice["index"], choice["finish_reason"]) for choice in last] == [(0, None), (index, "stop")]
    second = await played(kimi, "second_choice", chat())
    assert any(len(event["choices"]) == 2 for event in second.events)


async def test_errors_inside_of_the_stream(kimi: P2Client) -> None:
    first = await played(kimi, "error_event", message="busy", kind="engine_overloaded_error")
    assert first.events == [{"error": {"message": "busy", "type": "engine_overloaded_error"}}]


async def test_raw_chunks_and_pace(kimi: P2Client) -> None:
    chunk = {"choices": [{"index": 0, "delta": {"content": "x"}}]}
    kimi.sandbox.p2.script.extend([{"events": [chunk, {"raw": "data: [DONE]\n\n"}]}, {"word_delay_s": 0.002}])
    assert (
        await kimi.ask(chat())
    ).data == b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\ndata: [DONE]\n\n'
    count = 0
    async with kimi.post(chat(user("stream 20 words"))) as response:
        async for _data, end in response.content.iter_chunks():
            count += end
    assert count > 20


async def test_an_events_step_waits_for_a_stream(kimi: P2Client) -> None:
    kimi.sandbox.p2.script.extend([{"events": []}])
    assert (await kimi.ask(chat(**WHOLE))).json["choices"]
    assert (await kimi.ask(chat())).data == b""


async def test_account_routes(kimi: P2Client) -> None:
    async with kimi.session.get(f"{kimi.url}/models", headers=kimi.headers()) as response:
        models = {model["id"]: model for model in (await response.json())["data"]}
    assert set(models) == {"kimi-for-coding", "kimi-for-coding-highspeed", "k3", "k3-256k"}
    assert models["k3"]["think_efforts"]["valid_efforts"] == ["low", "high", "max"]
    assert (models["k3"]["supports_thinking_type"], models["k3-256k"]["supports_video_in"]) == ("only", False)
    async with kimi.session.get(f"{kimi.url}/usages", headers=kimi.headers()) as response:
        usages = await response.json()
        assert response.headers["x-trace-id"]
    assert usages["usage"]["used"] == "3" and usages["limits"][0]["window"]["duration"] == 300
    for path, sent, words in (
        ("search", {"text_query": "rust"}, "https://docs.example.org/rust"),
        ("fetch", {"url": "https://e.example/a"}, "The content of https://e.example/a"),
    ):
        async with kimi.session.post(f"{kimi.url}/{path}", headers=kimi.headers(), json=sent) as response:
            assert response.status == 200 and words in await response.text()
        async with kimi.session.post(f"{kimi.url}/{path}", headers=kimi.headers(), json={"query": "rust"}) as response:
            assert response.status == 400
        async with kimi.session.post(f"{kimi.url}/{path}", headers=kimi.device(), json=sent) as response:
            assert response.status == 401
    assert [seen.status for seen in kimi.sandbox.p2.service_requests] == [200, 400, 401] * 2
    for path in ("models", "usages"):
        async with kimi.session.get(f"{kimi.url}/{path}", headers=kimi.device()) as response:
            assert response.status == 401
