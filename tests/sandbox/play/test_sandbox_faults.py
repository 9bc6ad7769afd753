"""Scripts and every named fault, seen by a raw client."""

import asyncio
import json
import time
from typing import Any

import aiohttp
import pytest
from p1_sandbox_client import BASH, READ, THINKING, Client, full, user
from raw_client import Reply
from samples import rows

from proxy.sandbox import Sandbox, ScriptError
from proxy.sandbox.wires.encrypted_content import check_encrypted
from proxy.sandbox.wires.responses.answer import FAILURES

ADDED = "response.output_item.added"
DONE = "response.output_item.done"
TEXT = "response.output_text.delta"
ARGUMENTS = "response.function_call_arguments.delta"


async def played(client: Client, fault: str, body: dict[str, Any] | None = None, **params: Any) -> Reply:
    client.sandbox.p1.script.replace([{"fault": fault, **params}])
    return await client.ask(full() if body is None else body)


#: Fault -> the last event that arrives, and whether the connection broke.
ENDINGS: list[tuple[str, dict[str, Any], str | None, bool]] = [
    ("cut_after_terminal", {}, "response.completed", True),
    ("end_without_terminal", {}, DONE, False),
    ("completed_with_error", {}, "response.completed", False),
    ("failed", {}, "response.failed", False),
    ("error_event", {}, "error", False),
    ("incomplete", {}, "response.incomplete", False),
    ("incomplete", {"event": "response.completed"}, "response.completed", False),
    ("late_events", {}, "response.failed", False),
    ("rate_limits", {"then_end": True}, "codex.rate_limits", False),
]


@rows("fault, params, last, broken", ENDINGS)
async def test_endings(client: Client, fault: str, params: dict[str, Any], last: str, broken: bool) -> None:
    reply = await played(client, fault, full(**THINKING), **params)
    assert reply.status == 200
    assert (reply.types[-1], reply.broken is not None) == (last, broken)
    await client.sandbox.p1.idle()


@rows("fault", ["silence_before_head", "silence_after_created", "silence_mid_text"])
async def test_silence(client: Client, fault: str) -> None:
    silence_s, now = 0.2, asyncio.get_running_loop().time
    client.sandbox.p1.script.extend([{"fault": fault, "seconds": silence_s}])
    start = now()
    async with client.post(full()) as response:
        head = now() - start
        await response.content.readany()
        first = now() - start
        await response.read()
        whole = now() - start
    assert whole >= silence_s
    assert (head >= silence_s) is (fault == "silence_before_head")
    assert (first >= silence_s) is (fault == "silence_before_head")


async def test_endless_silence_ends_when_the_client_leaves(client: Client) -> None:
    client.sandbox.p1.script.extend([{"fault": "silence_mid_arguments", "seconds": None}])
    async with client.post(full()) as response:
        assert ARGUMENTS.encode() in await response.content.readany()
        assert client.sandbox.p1.active == 1
        response.close()
    await client.sandbox.p1.idle()


async def test_a_client_that_leaves_a_slow_answer_releases_it(client: Client) -> None:
    client.sandbox.p1.options.word_delay_s = 0.01
    async with client.post(full(user("stream 10000 words"))) as response:
        for _ in range(5):
            await response.content.readany()
        response.close()
    await client.sandbox.p1.idle()


@rows("code", FAILURES)
async def test_failed_with_each_code(client: Client, code: str) -> None:
    reply = await played(client, "failed", code=code)
    response = reply.final
    assert response["status"] == "failed"
    assert response["error"] is None if code == "unexplained" else response["error"]["code"] == code


async def test_where_and_how_failures_come(client: Client) -> None:
    reply = await played(client, "failed", code="slow_down", status=503, message="m", after="text")
    assert (reply.types[-2], reply.events[-1]["status"], reply.final["error"]["message"]) == (TEXT, 503, "m")
    nested = await played(client, "error_event", code="server_error", status=500, headers={"retry-after": "3"})
    assert nested.events == [
        {
            "type": "error",
            "error": {"code": "server_error", "message": FAILURES["server_error"]["message"]},
            "status": 500,
            "headers": {"retry-after": "3"},
            "sequence_number": 0,
        }
    ]
    flat = await played(client, "error_event", code="server_error", message="m", flat=True)
    assert flat.events == [
        {"type": "error", "code": "server_error", "message": "m", "param": None, "sequence_number": 0}
    ]


@rows("reason", ["max_output_tokens", "content_filter", None])
async def test_incomplete_with_each_reason(client: Client, reason: str | None) -> None:
    final = (await played(client, "incomplete", reason=reason)).final
    assert final["status"] == "incomplete"
    assert final["incomplete_details"] == (None if reason is None else {"reason": reason})


@rows("after", ["text", "call"])
async def test_an_incomplete_answer_repeats_what_was_sent(client: Client, after: str) -> None:
    reply = await played(client, "incomplete", after=after)
    item = reply.final["output"][-1]
    assert item["status"] == "incomplete"
    last = [event for event in reply.events if event["type"].endswith(".delta")][-1]["type"]
    said = item["arguments"] if after == "call" else item["content"][0]["text"]
    assert said == "".join(event["delta"] for event in reply.of(last)) != ""


async def test_empty_completions(client: Client) -> None:
    assert (await played(client, "empty")).types == ["response.created", "response.in_progress", "response.completed"]
    reply = await played(client, "empty", message=True)
    assert reply.items[0]["content"][0]["text"] == "" and reply.text == ""
    assert (await played(client, "completed_with_error")).final["error"]["code"] == "server_error"


async def test_refusal_parts(client: Client) -> None:
    reply = await played(client, "refusal", text="No, sorry.")
    assert "".join(event["delta"] for event in reply.of("response.refusal.delta")) == "No, sorry."
    assert reply.items[0]["content"] == [{"type": "refusal", "refusal": "No, sorry."}]


async def test_where_arguments_come(client: Client) -> None:
    body = full(user("use Bash: ls"), tools=[BASH])
    in_done = await played(client, "arguments_in_done", body)
    assert ARGUMENTS not in in_done.types
    assert in_done.of("response.function_call_arguments.done")[0]["arguments"] == '{"command":"ls"}'
    in_item = await played(client, "arguments_in_item", body)
    assert "response.function_call_arguments.done" not in in_item.types
    assert in_item.items[0]["arguments"] == '{"command":"ls"}'
    assert (await played(client, "no_arguments", body)).items[0]["arguments"] == ""


async def test_text_without_deltas(client: Client) -> None:
    in_done = await played(client, "no_deltas")
    assert TEXT not in in_done.types and in_done.of("response.output_text.done")[0]["text"]
    in_item = await played(client, "no_deltas", whole="item")
    assert "response.output_text.done" not in in_item.types and in_item.items[0]["content"][0]["text"]


async def test_what_goes_wrong_in_read(client: Client) -> None:
    body = full(user("use Read: /a"), tools=[READ])
    assert json.loads((await played(client, "read_pages_empty", body)).items[-1]["arguments"])["pages"] == ""
    assert json.loads((await played(client, "read_huge_offset", body)).items[-1]["arguments"])["offset"] == 1_300_000
    spaces = await played(client, "read_spaces", body)
    text = "".join(event["delta"] for event in spaces.of(ARGUMENTS))
    assert " " * 1024 in text and json.loads(text)["pages"] == ""
    assert not (await played(client, "read_spaces", body, closed=False)).items[-1]["arguments"].endswith("}")
    client.sandbox.p1.script.extend([{"fault": "read_spaces", "stall": True}])
    async with client.post(body) as response:
        assert b" " * 1024 in await response.content.readany()
    await client.sandbox.p1.idle()


async def test_calls_interleave(client: Client) -> None:
    reply = await played(client, "interleaved", full(user("use Bash: abc and use Read: def"), tools=[BASH, READ]))
    assert [event["output_index"] for event in reply.of(ARGUMENTS)] == [0, 1, 0, 1]
    assert len((await played(client, "interleaved")).of(ADDED)) == 3


@rows(
    "fault, early, late",
    [("sealed_only_added", True, False), ("sealed_only_done", False, True), ("sealed_differs", True, True)],
)
async def test_where_the_seal_comes(client: Client, fault: str, early: bool, late: bool) -> None:
    reply = await played(client, fault)
    first, last = (reply.of(kind)[0]["item"].get("encrypted_content") for kind in (ADDED, DONE))
    assert (first is not None, last is not None) == (early, late)
    assert first != last
    for content in filter(None, (first, last)):
        check_encrypted(content, "acct-sandbox", reply.items[0]["id"])


async def test_steps_wait_for_the_request_they_match(client: Client) -> None:
    script = client.sandbox.p1.script
    script.extend(
        [
            {"match": {"contains": 'say "two"'}, "status": 500},
            {"match": {"prompt": "three", "model": "gpt-5.5"}, "status": 503, "times": 2},
            {"match": {"prompt": "ever"}, "times": None, "fault": "empty"},
        ]
    )
    statuses = [(await client.ask(full(user(text)))).status for text in ("one", 'say "two"', "three", "three", "three")]
    assert statuses == [200, 500, 503, 503, 200]
    for _ in range(3):
        assert (await client.ask(full(user("for ever")))).items == []
    assert script.left == 1
    script.replace([])
    assert script.left == 0


async def test_a_refused_request_uses_no_step(client: Client) -> None:
    client.sandbox.p1.script.extend([{"status": 500}])
    assert (await client.ask(full(store=True))).status == 400
    assert (await client.ask(full())).status == 500


async def test_raw_events(client: Client) -> None:
    events = [
        {"type": "response.created", "response": {"id": "r"}},
        {"raw": "data: {oops\n\n"},
        {"raw_base64": "Og=="},
        {"pause_s": 0.01},
        {"type": "keepalive"},
    ]
    client.sandbox.p1.script.extend(
        [{"events": events, "delay_s": 0.01, "then": end} for end in ("end", "cut", "reset")]
    )
    whole, cut, reset = [await client.ask(full()) for _ in range(3)]
    frame = b'event: response.created\ndata: {"type":"response.created","response":{"id":"r"}}\n\n'
    assert whole.data == frame + b'data: {oops\n\n:event: keepalive\ndata: {"type":"keepalive"}\n\n'
    assert whole.broken is None and cut.broken is not None and reset.broken is not None
    client.sandbox.p1.script.extend([{"events": events[:1], "then": "stall"}])
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(client.ask(full()), 0.1)
    await client.sandbox.p1.idle()


async def test_pace(client: Client) -> None:
    client.sandbox.p1.script.extend([{"word_delay_s": 0.005}, {"events_per_write": 1}, {}])
    chunks = []
    for _ in range(3):
        start, count = time.monotonic(), 0
        async with client.post(full(user("stream 20 words"))) as response:
            async for _data, end in response.content.iter_chunks():
                count += end
        chunks.append((count, time.monotonic() - start >= 0.1))
    (slow, took), (single, _), (batched, _) = chunks
    assert took and slow >= 20 and single == 28 and batched == 4


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"fault": "nothing_like_it"}, "unknown fault"),
        ({"fault": "cut_text", "seconds": 1}, "takes reset"),
        ({"status": 500, "events": []}, "exclude"),
        ({"status": 500, "code": 1}, "unknown member 'code'"),
        ({"match": {"text": "x"}}, "match knows"),
        ({"times": 0}, "times"),
        ({"events": [{}], "provider": "p1"}, "type"),
        ({"provider": "p9"}, "no such provider"),
        ({"match": {"wire": "messages"}, "provider": "p2"}, "no such provider or wire"),
        ({"fault": "usage", "provider": "p1"}, "unknown fault"),
        ({"events": [], "then": "explode"}, "explode"),
    ],
)
def test_steps_that_make_no_sense(step: dict[str, Any], words: str) -> None:
    with pytest.raises(ScriptError, match=words):
        Sandbox(script=[step])


async def test_stop_does_not_wait_for_open_answers() -> None:
    sandbox = Sandbox(script=[{"fault": "silence_mid_text", "seconds": None, "times": None}])
    await sandbox.start()
    async with aiohttp.ClientSession() as session:
        client = Client(sandbox, session)
        async with client.post(full()) as response:
            await response.content.readany()
            start = time.monotonic()
            await sandbox.stop()
            assert time.monotonic() - start < 10  # the silence has no end
            with pytest.raises(aiohttp.ClientError):
                await response.read()
    assert sandbox.p1.active == 0
