"""The small model over turns of chat completions, and every fault of that wire, at P2; P4 speaks the same."""

import json
from typing import Any

import pytest
from p2_sandbox_client import BASH, IMAGE, READ, TEXT, VIDEO, P2Client, answer, chat, replay, system, user
from raw_client import Reply

from proxy.sandbox import FAULTS, Place

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


@pytest.mark.parametrize(
    ("members", "thinks"),
    [
        ({}, True),
        ({"thinking": None, "reasoning_effort": None}, True),
        ({"thinking": {"type": "disabled"}, "reasoning_effort": None}, False),
        ({"thinking": {"type": "disabled"}, "reasoning_effort": None, "model": "k3"}, True),
    ],
)
async def test_when_it_thinks(kimi: P2Client, members: Any, thinks: bool) -> None:
    assert bool((await kimi.ask(chat(**members))).thought) is thinks


async def test_parallel_calls_then_a_comment(kimi: P2Client) -> None:
    prompt, tools = user("use Bash: ls -la and use Read: /etc/hosts"), [BASH, READ]
    first = await kimi.ask(chat(prompt, tools=tools))
    assert first.calls == [("Bash", {"command": "ls -la"}), ("Read", {"file_path": "/etc/hosts"})]
    assert first.ids == ["Bash:0", "Read:1"] and first.finish == ["tool_calls"] and first.text == ""
    assert len(first.fragments) > 4
    turn = [prompt, replay(first), answer("Bash:0", "a" * 300), answer("Read:1", [TEXT, IMAGE])]
    second = await kimi.ask(chat(*turn, tools=tools))
    assert f'Bash returned: "{"a" * 200}"' in second.text
    assert 'Read returned: "seen" and 1 image (1 image/png)' in second.text
    third = await kimi.ask(chat(*turn, replay(second), user("use Bash: pwd"), tools=tools))
    assert third.ids == ["Bash:2"]


async def test_one_call_at_a_time(kimi: P2Client) -> None:
    body = chat(user("use Bash: a and use Bash: b"), tools=[BASH], parallel_tool_calls=False)
    assert (await kimi.ask(body)).calls == [("Bash", {"command": "a"})]
    assert (await kimi.ask({**body, "tool_choice": "none"})).calls == []


async def test_a_forced_call(kimi: P2Client) -> None:
    reply = await kimi.ask(chat(model="k3", tools=[READ], tool_choice="required"))
    assert reply.calls == [("Read", {"file_path": "example"})]


async def test_media_reminders_words_and_structure(kimi: P2Client) -> None:
    reply = await kimi.ask(chat(user([{**TEXT, "text": "what is this?"}, IMAGE, VIDEO])))
    assert '"what is this?"' in reply.text and "2 images (1 image/png, 1 video/mp4)" in reply.text
    reply = await kimi.ask(chat(user("stream 400 words")))
    assert len(reply.text.split()) == 400 == sum(bool(delta.get("content")) for delta in reply.deltas)
    schema = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "r", "schema": schema}}
    assert json.loads((await kimi.ask(chat(user("fix it"), response_format=wanted))).text) == {"title": "Fix it"}


async def test_summary_and_monitor(kimi: P2Client) -> None:
    order = user("Your task is to create a detailed summary of the conversation so far")
    text = (await kimi.ask(chat(user("first wish"), {"role": "assistant", "content": "ok"}, order))).text
    assert text.startswith("<analysis>") and "first wish" in text
    phrase = "You are a security monitor for autonomous AI coding agents. Judge."
    assert (await kimi.ask(chat(system(phrase), user("run")))).text == "<block>no</block>"
    assert (await kimi.ask(chat(user(f"{phrase}\n\nrun"), model="k3"))).text == "<block>no</block>"


async def test_what_stands_together_is_one_prompt_for_k3(kimi: P2Client) -> None:
    messages = [user("Be brief.\n\nuse Bash: ls"), user("The agents are: none.")]
    assert (await kimi.ask(chat(*messages, model="k3", tools=[BASH]))).calls == [("Bash", {"command": "ls"})]
    assert (await kimi.ask(chat(*messages, tools=[BASH]))).calls == []


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


HTTP: list[tuple[str, dict[str, Any], int, str]] = [
    ("rate_limit", {"seconds": 2}, 429, "rate limit"),
    ("rate_limit", {"seconds": None, "wrapped": True}, 429, '{"type":"error","error":{'),
    ("huge_retry_after", {}, 429, "rate limit"),
    ("usage_limit", {}, 429, "exceeded_current_quota_error"),
    ("overloaded", {"retry_after": 1}, 529, "overloaded"),
    ("server_error", {}, 500, "server_error"),
    ("html_error", {}, 502, "<html>"),
    ("redirect", {}, 302, ""),
    ("unauthorized", {}, 401, "invalid_authentication_error"),
    ("payment_required", {}, 402, "membership"),
    ("forbidden", {}, 403, "access_terminated_error"),
    ("context_http", {}, 400, "token limit"),
    ("bad_request", {"message": "m"}, 400, '"message":"m"'),
]


@pytest.mark.parametrize("members", [{}, WHOLE])
@pytest.mark.parametrize(("fault", "params", "status", "words"), HTTP)
async def test_http_faults(kimi: P2Client, members: Any, fault: str, params: Any, status: int, words: str) -> None:
    reply = await played(kimi, fault, chat(**members), **params)
    assert (reply.status, words in reply.data.decode()) == (status, True), reply.data
    assert (await kimi.ask(chat(**members))).status == 200


async def test_retry_after(kimi: P2Client) -> None:
    assert (await played(kimi, "rate_limit", seconds=0.2)).headers["retry-after"] == "0.2"
    assert "retry-after" not in (await played(kimi, "rate_limit", seconds=None)).headers
    assert (await played(kimi, "huge_retry_after")).headers["retry-after"] == "86400"


#: Fault -> finish reasons, whether `[DONE]` came, whether the connection broke.
ENDINGS: list[tuple[str, dict[str, Any], list[str], bool, bool]] = [
    ("cut_before_output", {}, [], False, True),
    ("cut_text", {}, [], False, True),
    ("cut_text", {"reset": True}, [], False, True),
    ("cut_thinking", {}, [], False, True),
    ("cut_arguments", {}, [], False, True),
    ("cut_frame", {}, [], False, True),
    ("cut_after_terminal", {}, ["tool_calls"], True, True),
    ("end_without_terminal", {}, [], False, False),
    ("end_before_output", {}, [], False, False),
    ("no_done", {}, ["tool_calls"], False, False),
    ("no_finish", {}, [], True, False),
    ("finish_reason", {"reason": "stop"}, ["stop"], True, False),
    ("finish_reason", {"reason": "content_filter"}, ["content_filter"], True, False),
    ("incomplete", {}, ["length"], True, False),
    ("truncated_arguments", {}, ["length"], True, False),
    ("error_event", {}, [], False, False),
    ("error_event", {"after": "call"}, [], False, False),
]


@pytest.mark.parametrize(("fault", "params", "finish", "done", "broken"), ENDINGS)
async def test_endings(kimi: P2Client, fault: str, params: Any, finish: list[str], done: bool, broken: bool) -> None:
    reply = await played(kimi, fault, **params)
    assert (reply.status, reply.finish, reply.done, reply.broken is not None) == (200, finish, done, broken)
    await kimi.sandbox.p2.idle()


#: Faults that leave a whole call of Bash, for a reader who is ready for them.
HARMLESS: list[tuple[str, dict[str, Any]]] = [
    ("keepalives", {}),
    ("unknown_events", {}),
    ("comments", {}),
    ("comments_only", {"every_s": 0.01}),
    ("done_sentinel", {}),
    ("tiny_writes", {"size": 7}),
    ("crlf", {}),
    ("arguments_before_name", {}),
    ("arguments_at_end", {}),
    ("whole_arguments", {}),
    ("name_in_pieces", {}),
    ("missing_ids", {}),
    ("missing_ids", {"empty": True}),
    ("explicit_nulls", {}),
    ("late_thought", {}),
    ("second_choice", {}),
    ("fixed_call_ids", {}),
    *(("usage", {"where": where}) for where in ("own", "finish", "choice", "missing")),
]


@pytest.mark.parametrize(("fault", "params"), HARMLESS)
async def test_whole_answers(kimi: P2Client, fault: str, params: Any) -> None:
    reply = await played(kimi, fault, **params)
    assert reply.broken is None and reply.done
    assert reply.calls == [("Bash", {"command": "ls"})]
    assert reply.finish == ["tool_calls"]


async def test_fragments_of_calls(kimi: P2Client) -> None:
    before = (await played(kimi, "arguments_before_name")).fragments
    assert "name" not in before[0]["function"] and before[1]["function"]["name"] == "Bash"
    two = await played(kimi, "interleaved")
    assert [fragment["index"] for fragment in two.fragments[:4]] == [0, 1, 0, 1]
    assert [name for name, _ in two.calls] == ["Bash", "Bash"]
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


async def test_odd_arguments(kimi: P2Client) -> None:
    def text(reply: Reply) -> str:
        return "".join(fragment["function"]["arguments"] for fragment in reply.fragments)

    assert text(await played(kimi, "no_arguments")) == ""
    assert text(await played(kimi, "bad_arguments")) == "[1]"
    assert text(await played(kimi, "truncated_arguments")) == '{"comman'


@pytest.mark.parametrize("prefix", ["call_", "Agent_"])
async def test_ids_repeat(kimi: P2Client, prefix: str) -> None:
    body = chat(user("use Bash: a and use Bash: b"), tools=[BASH])
    replies = [await played(kimi, "fixed_call_ids", body, prefix=prefix) for _ in range(2)]
    assert [reply.ids for reply in replies] == [[f"{prefix}0", f"{prefix}1"]] * 2


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


@pytest.mark.parametrize("index", [0, 1])
async def test_several_choices(kimi: P2Client, index: int) -> None:
    reply = await played(kimi, "several_choices", chat(), index=index)
    last = next(event["choices"] for event in reversed(reply.events) if event["choices"])
    assert [(choice["index"], choice["finish_reason"]) for choice in last] == [(0, None), (index, "stop")]
    second = await played(kimi, "second_choice", chat())
    assert any(len(event["choices"]) == 2 for event in second.events)


async def test_empty_answers(kimi: P2Client) -> None:
    reply = await played(kimi, "empty")
    assert (reply.text, reply.thought, reply.calls, reply.finish, reply.done) == ("", "", [], ["stop"], True)


async def test_errors_inside_of_the_stream(kimi: P2Client) -> None:
    first = await played(kimi, "error_event", message="busy", kind="engine_overloaded_error")
    assert first.events == [{"error": {"message": "busy", "type": "engine_overloaded_error"}}]
    late = await played(kimi, "late_events")
    assert late.data.index(b"[DONE]") < late.data.index(b"too late") < late.data.index(b'"error"')


async def test_bytes_that_no_reader_likes(kimi: P2Client) -> None:
    assert b'data: {"id":"chatcmpl_' in (await played(kimi, "malformed_json")).data
    assert b"\xff\xfe" in (await played(kimi, "invalid_utf8")).data
    assert len((await played(kimi, "huge_frame", size=2_000_000)).data) > 2_000_000


@pytest.mark.parametrize(
    "fault", ["silence_before_head", "silence_after_created", "silence_mid_text", "silence_mid_arguments"]
)
async def test_silence(kimi: P2Client, fault: str) -> None:
    assert (await played(kimi, fault, seconds=0.01)).done


WHOLE_FAULTS: list[tuple[str, dict[str, Any]]] = [
    ("cut_before_output", {}),
    ("cut_text", {"reset": True}),
    ("malformed_json", {}),
    ("invalid_utf8", {}),
    ("huge_frame", {"size": 1_000}),
    ("silence_before_head", {"seconds": 0.01}),
    ("empty", {}),
    ("fixed_call_ids", {}),
]


@pytest.mark.parametrize(("fault", "params"), WHOLE_FAULTS)
async def test_faults_without_a_stream(kimi: P2Client, fault: str, params: Any) -> None:
    reply = await played(kimi, fault, chat(**WHOLE), **params)
    assert (reply.status, reply.broken is not None) == (200, fault.startswith("cut"))
    bad = fault in ("malformed_json", "invalid_utf8") or reply.broken is not None
    if bad:
        with pytest.raises(ValueError):
            json.loads(reply.data)
        return
    [choice] = reply.json["choices"]
    assert (choice["message"]["content"] == "") is (fault == "empty")
    assert ("tool_calls" in choice["message"]) is (fault == "fixed_call_ids")
    assert len(reply.data) > 1_000 or fault != "huge_frame"


def test_every_fault_has_a_test() -> None:
    fragments = {
        "interleaved", "index_restarts", "missing_index", "missing_names", "repeated_names", "text_between",
        "no_arguments", "bad_arguments",
    }  # fmt: skip
    others = {
        "malformed_json", "invalid_utf8", "huge_frame", "late_events", "several_choices", "empty",
        "silence_before_head", "silence_after_created", "silence_mid_text", "silence_mid_arguments",
    }  # fmt: skip
    seen = {row[0] for row in HTTP} | {row[0] for row in ENDINGS} | {row[0] for row in HARMLESS} | fragments | others
    assert set(FAULTS[PLACE]) == seen
    assert set(FAULTS[PLACE._replace(stream=False)]) == {row[0] for row in (*HTTP, *WHOLE_FAULTS)}


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
