"""An open socket of the simulated P1: requests and answers, what it remembers, what it refuses, what is kept of it."""

import asyncio
import json
import socket
from typing import Any

import aiohttp
import pytest
from harness import until
from p1_sandbox_client import (
    BASH,
    MARKER,
    READ,
    THINKING,
    Client,
    Line,
    SocketClient,
    assistant,
    frame_of,
    full,
    lite,
    output,
    user,
)
from raw_client import Reply, never_crashes
from samples import rows

from proxy.sandbox import Sandbox
from proxy.sandbox.p1.socket.connection import Memory, read_turn
from proxy.sandbox.wires.encrypted_content import encrypt
from proxy.sandbox.wires.refusal import Refused

NEWS = ["codex.rate_limits", "codex.response.metadata"]
CALLS = full(user("use Bash: ls and use Read: /a"), tools=[BASH, READ])


def error_of(reply: Reply) -> dict[str, Any]:
    """The error of an answer that is one error event, perhaps behind news."""
    assert reply.types == ["error"], reply.types
    error: dict[str, Any] = reply.events[0]["error"]
    return {"status": reply.events[0]["status"], **error}


async def open_calls(line: Line, body: dict[str, Any]) -> tuple[Reply, list[dict[str, Any]]]:
    """A turn that ends with calls, and results for them."""
    first = await line.ask(body)
    return first, [output(item["call_id"], "fine") for item in first.items if item["type"] == "function_call"]


async def test_the_answer_is_that_of_http(sockets: SocketClient, client: Client) -> None:
    body = full(user("use Bash: ls"), tools=[BASH], **THINKING)
    over_http = await client.ask(body)
    async with sockets.open() as line:
        answer = await line.ask(body)
        kept = await line.ask({**body, "stream": True}, stream=True)
    assert answer.types[:2] == NEWS
    assert answer.types[2:] == over_http.types == kept.types[2:]
    assert [event["sequence_number"] for event in answer.events[2:]] == list(range(len(over_http.events)))
    assert answer.final["usage"] == over_http.final["usage"]
    assert answer.items[-1]["arguments"] == over_http.items[-1]["arguments"] == '{"command":"ls"}'


async def test_news_are_optional_and_tell_the_quota(sockets: SocketClient) -> None:
    options = sockets.sandbox.p1.options
    options.quota.windows = {"primary": (100, 300)}
    async with sockets.open() as line:
        news = (await line.ask()).events[0]
        assert news["rate_limits"]["limit_reached"] and not news["rate_limits"]["allowed"]
        assert (news["rate_limits"]["primary"]["used_percent"], news["rate_limits"]["secondary"]) == (100, None)
        options.announced = False
        assert (await line.ask()).types[0] == "response.created"


async def test_a_turn_goes_on_from_the_last(sockets: SocketClient) -> None:
    async with sockets.open() as line:
        first, results = await open_calls(line, CALLS)
        second = await line.ask(full(*results, tools=[BASH, READ]), previous_response_id=first.final["id"])
        assert second.final["previous_response_id"] == first.final["id"]
        third = await line.ask(full(user("stream 2 words")), previous_response_id=second.final["id"])
    async with sockets.open() as line:
        whole = [*CALLS["input"], *first.items, *results]
        assert second.text == (await line.ask(full(*whole, tools=[BASH, READ]))).text
        assert "fine" in second.text
        fresh = await line.ask(full(*whole, assistant(second.text), user("stream 2 words")))
        assert fresh.final["usage"]["input_tokens"] > 2 * (await line.ask()).final["usage"]["input_tokens"]
    assert third.text == "word1 word2"


@rows("body", [CALLS, {**CALLS, **THINKING}, {**CALLS, "reasoning": {"effort": "high"}}])
async def test_thoughts_need_not_be_sealed_to_be_remembered(sockets: SocketClient, body: dict[str, Any]) -> None:
    async with sockets.open() as line:
        first, results = await open_calls(line, body)
        second = await line.ask({**body, "input": results}, previous_response_id=first.final["id"])
        assert "fine" in second.text


async def test_only_the_last_answer_of_this_socket_can_be_gone_on_from(sockets: SocketClient, client: Client) -> None:
    async with sockets.open() as line, sockets.open() as other:
        first, second = await line.ask(), await line.ask()
        over_http = await client.ask(full())
        for taken in (first, over_http):
            refused = error_of(await line.ask(previous_response_id=taken.final["id"]))
            assert (refused["status"], refused["code"]) == (400, "previous_response_not_found")
            assert refused["param"] == "previous_response_id" and taken.final["id"] in refused["message"]
        assert (
            error_of(await other.ask(previous_response_id=second.final["id"]))["code"] == "previous_response_not_found"
        )
        assert (await line.ask(previous_response_id=second.final["id"])).types[-1] == "response.completed"


@rows("fault", ["failed", "incomplete", "error_event", "rate_limit", "completed_with_error"])
async def test_what_did_not_complete_is_not_remembered(sockets: SocketClient, fault: str) -> None:
    async with sockets.open() as line:
        first = await line.ask()
        sockets.sandbox.p1.script.extend([{"fault": fault}])
        second = await line.ask(previous_response_id=first.final["id"])
        tried = [first.final["id"], second.events[-1].get("response", {}).get("id", "resp_x")]
        for taken in tried:
            assert error_of(await line.ask(previous_response_id=taken))["code"] == "previous_response_not_found"


@rows("fault", ["bare_terminal", "tiny_writes", "fragments", "no_deltas", "late_events"])
async def test_what_completed_somehow_is_remembered(sockets: SocketClient, fault: str) -> None:
    async with sockets.open() as line:
        sockets.sandbox.p1.script.extend([{"fault": fault}])
        first, results = await open_calls(line, CALLS)
        await line.send(frame_of(full(*results, tools=[BASH, READ]), previous_response_id=first.final["id"]))
        assert (await line.listen(("response.completed",))).text.count("fine") == 2


async def test_results_must_fit_the_calls_of_the_history(sockets: SocketClient) -> None:
    async with sockets.open() as line:
        first, results = await open_calls(line, CALLS)
        refused = await line.ask(full(results[0]), previous_response_id=first.final["id"])
        assert "No tool output found" in error_of(refused)["message"]
        assert "No tool call found" in error_of(await line.ask(full(*results)))["message"]


async def test_a_warm_up(sockets: SocketClient) -> None:
    sockets.sandbox.p1.script.extend([{"fault": "usage_limit"}])
    async with sockets.open() as line:
        for body in (full(), {**full(), "input": []}, {**lite(), "input": []}):
            warm = await line.ask(body, generate=False)
            assert warm.types == [*NEWS, "response.created", "response.in_progress", "response.completed"]
            assert warm.final["output"] == []
        assert error_of(await line.ask())["type"] == "usage_limit_reached", "it uses no step"
        warm = await line.ask(full(user("use Bash: ls"), tools=[BASH]), generate=False)
        turn = await line.ask({**full(tools=[BASH]), "input": []}, previous_response_id=warm.final["id"])
        assert turn.items[0]["name"] == "Bash"


async def test_compaction(sockets: SocketClient, client: Client) -> None:
    trigger = {"type": "compaction_trigger"}
    async with sockets.open() as line:
        first, results = await open_calls(line, CALLS)
        compacted = await line.ask(full(*results, trigger), previous_response_id=first.final["id"])
        assert [item["type"] for item in compacted.items] == ["compaction"]
        (item,) = compacted.items
        assert set(item) == {"type", "id", "encrypted_content"}
        again = full(user("hello"), item, user("stream 2 words"))
        assert (await line.ask(again)).text == (await client.ask(again)).text == "word1 word2"
        over_http = await client.ask(full(user("hello"), trigger))
        assert [one["type"] for one in over_http.items] == ["compaction"]
        assert error_of(await line.ask(full(trigger, user("x"))))["message"].startswith("compaction_trigger must be")


async def test_a_compacted_history_must_come_from_here(sockets: SocketClient) -> None:
    good = {"type": "compaction", "encrypted_content": encrypt("acct-sandbox", "cmp_1")}
    async with sockets.open() as line:
        assert (await line.ask(full(good, user("x")))).types[-1] == "response.completed"
        for content in ("gAAAAAxyz", encrypt("acct-else", "cmp_1"), encrypt("acct-sandbox", "rs_1")):
            refused = error_of(await line.ask(full({**good, "encrypted_content": content}, user("x"))))
            assert "could not be verified" in refused["message"]


async def test_one_request_at_a_time(sockets: SocketClient) -> None:
    sockets.sandbox.p1.options.word_delay_s = 0.002
    async with sockets.open() as line:
        await line.send(frame_of(full(user("stream 20 words"))))
        await line.listen(("response.created",))
        await line.send(frame_of(full(user("stream 2 words"))))
        refused = await line.listen(("error",))
        assert (refused.events[-1]["status"], "already" in refused.events[-1]["error"]["message"]) == (400, True)
        rest = await line.listen()
        assert rest.types[-1] == "response.completed" and (refused.text + rest.text).endswith("word20")
        again = await line.ask(full(user("stream 2 words")), previous_response_id=rest.final["id"])
        assert again.text == "word1 word2"
    assert [seen.status for seen in sockets.sandbox.p1.requests] == [200, 400, 200]


REFUSED: list[tuple[str, Any, int, str]] = [
    ("no JSON", "{", 400, "Invalid JSON"),
    ("no object", "[]", 400, "Invalid JSON"),
    ("no type", {}, 400, "Unknown event type"),
    ("other type", frame_of(full(), type="response.cancel"), 400, "Unknown event type: response.cancel"),
    ("stream false", frame_of(full(), stream=False), 400, "Stream must be set to true"),
    ("stored", frame_of(full(store=True)), 400, "Store must be set to false"),
    ("unsupported", frame_of(full(), temperature=1), 400, "Unsupported parameter: temperature"),
    ("no list", frame_of(full(), input="hi"), 400, "Input must be a list"),
    ("no input", frame_of(full(), input=[]), 400, "Missing required parameter: 'input'"),
    ("previous no text", frame_of(full(), previous_response_id=1), 400, "Invalid type for 'previous_response_id'"),
    ("generate no boolean", frame_of(full(), generate=1), 400, "Invalid type for 'generate'"),
    ("unknown model", frame_of(full(model="gpt-9")), 400, "'gpt-9' model is not supported"),
    ("marker no text", frame_of(lite(client_metadata=dict.fromkeys(MARKER, "1"))), 400, "contradicts"),
]


@pytest.mark.parametrize(("frame", "status", "words"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
async def test_refused_frames(sockets: SocketClient, frame: Any, status: int, words: str) -> None:
    async with sockets.open() as line:
        await line.send(frame)
        refused = error_of(await line.listen())
        assert (refused["status"], words in refused["message"]) == (status, True), refused
        assert refused["type"] == "invalid_request_error"
        assert (await line.ask()).types[-1] == "response.completed", "the socket lives on"
    assert [seen.status for seen in sockets.sandbox.p1.requests] == [status, 200]


def test_junk_in_any_place_of_a_frame() -> None:
    frame = {**frame_of(lite()), "previous_response_id": None, "generate": False}
    never_crashes(frame, lambda spoilt: read_turn(spoilt, {}, Memory()))


def test_a_memory_gives_its_conversation_once() -> None:
    memory = Memory()
    memory.remember("resp_1", [user("a"), {"type": "compaction_trigger"}, {"type": "reasoning", "id": "rs_1"}])
    with pytest.raises(Refused):
        memory.recall("resp_2")
    assert memory.recall(None) == []
    assert memory.recall("resp_1") == [user("a")]
    with pytest.raises(Refused):
        memory.recall("resp_1")


async def test_pings_are_answered(sockets: SocketClient) -> None:
    async with sockets.open() as line:
        await line.socket.ping(b"12345678")
        await line.ask()
        await line.socket.ping()
        await line.ask()
        assert line.pongs == [b"12345678", b""]
    (seen,) = sockets.sandbox.p1.sockets.seen
    assert (seen.pings, seen.pongs) == (2, 0)


async def test_binary_frames_are_refused(sockets: SocketClient) -> None:
    async with sockets.open() as line:
        await line.socket.send_bytes(json.dumps(frame_of(full())).encode())
        assert (await line.listen()).status == aiohttp.WSCloseCode.UNSUPPORTED_DATA
    assert sockets.sandbox.p1.sockets.seen[-1].close_code == aiohttp.WSCloseCode.UNSUPPORTED_DATA
    assert sockets.sandbox.p1.total_requests == 0


async def test_a_large_frame_arrives(sockets: SocketClient) -> None:
    sockets.sandbox.p1.options.context_limit = 10_000_000
    async with sockets.open() as line:
        assert (await line.ask(full(user("x" * 5_000_000)))).types[-1] == "response.completed"
    assert sockets.sandbox.p1.requests[-1].size > 5_000_000


async def test_what_is_kept(sockets: SocketClient, client: Client) -> None:
    p1 = sockets.sandbox.p1
    await client.ask(full())
    async with sockets.open() as first, sockets.open() as second:
        await first.ask()
        await second.ask()
        await first.ask(full(user("again")))
        assert p1.sockets.open == 2
    assert [seen.socket for seen in p1.requests] == [None, 1, 2, 1]
    assert (p1.total_requests, p1.sockets.total) == (4, 2)
    one, two = p1.sockets.seen
    assert (one.status, one.headers["originator"], one.number, two.number) == (101, "codex_cli_rs", 1, 2)
    assert [frame.body["input"] for frame in one.frames] == [[user("hello")], [user("again")]]
    assert [frame.size for frame in two.frames] == [len(json.dumps(frame_of(full())))]
    await p1.idle()


async def test_how_sockets_end(sockets: SocketClient) -> None:
    p1 = sockets.sandbox.p1
    p1.options.word_delay_s = 0.002
    async with sockets.open() as line:
        await line.socket.close(code=4000)
    async with sockets.open() as line:
        await line.send(frame_of(full(user("stream 1000 words"))))
        await line.listen(("response.created",))
        transport = line.socket._response.connection.transport  # type: ignore[union-attr]
        transport.abort()
        await p1.idle()
    async with asyncio.timeout(10):
        while p1.sockets.open:
            await asyncio.sleep(0.005)
    assert [seen.close_code for seen in p1.sockets.seen] == [4000, 1006]


async def test_a_client_that_closes_in_the_middle_ends_the_answer(sockets: SocketClient) -> None:
    sockets.sandbox.p1.options.word_delay_s = 0.002
    async with sockets.open() as line:
        await line.send(frame_of(full(user("stream 1000 words"))))
        await line.listen(("response.created",))
    await sockets.sandbox.p1.idle()


async def test_a_slow_reader_is_waited_for(sockets: SocketClient) -> None:
    async with sockets.open() as line:
        line.socket.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 18)
        await line.send(frame_of(full(user("stream 30000 words"))))
        await until(lambda: sockets.sandbox.p1.active)
        await asyncio.sleep(0.3)
        assert sockets.sandbox.p1.active == 1
        assert len((await line.listen()).of("response.output_text.delta")) == 30_000


@rows("form", ["failed", "error", "http"])
async def test_context_overflow(sockets: SocketClient, form: str) -> None:
    sockets.sandbox.p1.options.context_limit = 1_000
    sockets.sandbox.p1.options.context_form = form
    async with sockets.open() as line:
        reply = await line.ask(full(user("x" * 5_000)))
    event = reply.events[-1]
    error = event.get("error") or event["response"]["error"]
    assert (reply.types, error["code"]) == (
        ["response.failed" if form == "failed" else "error"],
        "context_length_exceeded",
    )


async def test_stop_closes_sockets() -> None:
    sandbox = Sandbox(script=[{"fault": "silence_mid_text", "seconds": None}])
    await sandbox.start()
    async with aiohttp.ClientSession() as session, SocketClient(sandbox, session).open() as line:
        await line.send(frame_of(full()))
        await line.listen(("response.output_text.delta",))
        await sandbox.stop()
        assert (await line.listen()).broken is not None
    assert (sandbox.p1.active, sandbox.p1.sockets.open) == (0, 0)
