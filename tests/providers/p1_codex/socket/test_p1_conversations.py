"""Turns that go on from earlier ones: over which socket, from which response, and what is sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import WSCloseCode
from harness import Live, ask, until, with_live
from p1_events import CREATED, call_events, completed, delta, failure, said
from talks import Talk
from ws_upstream import Backend, Peer, Play, answer, goes_well, late, leaving_nothing, provider_sockets, saying, stalled

from proxy.core.identity import Owner
from proxy.providers.p1_codex import adapter
from proxy.providers.p1_codex.socket import connection as websocket
from proxy.providers.p1_codex.socket import frames
from proxy.providers.p1_codex.socket.manager import PoolLimits

CONTINUES = {"p1_previous_response_id": True}


@pytest.fixture
def live_options() -> dict[str, Any]:
    return CONTINUES


def calling(number: int) -> Play:
    """Answers with a call, as `resp_<number>`."""
    return saying(CREATED, *call_events("ls", f"call_{number}"), completed(f"resp_{number}"), then="nothing")


#: Three turns of a conversation.
TURNS = (calling(1), calling(2), saying(*said("fine", "resp_3"), then="nothing"))


async def test_only_what_is_new_is_sent_over_the_same_socket(talk: Talk, backend: Backend) -> None:
    backend.plays.extend(TURNS)
    await talk.turns("one", "two", "three")
    assert backend.history == [(1, None), (1, "resp_1"), (1, "resp_2")] and len(backend.seen) == 1
    first, second, third = (asked.frame for asked in backend.asked)
    assert len(first.pop("input")) == 3
    for frame, number, text in ((second, 1, "two"), (third, 2, "three")):
        result = {"type": "function_call_output", "call_id": f"call_{number}", "output": text}
        assert frame.pop("input") == [result] and frame.pop("previous_response_id") and frame == first


async def test_the_whole_is_written_out_only_when_it_is_sent(
    talk: Talk, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []

    class Counted(frames.SharedBody):
        def frame(self, previous_response_id: str = "", start: int = 0) -> bytes:
            if not previous_response_id:
                written.append(len(self.members["input"]))
            return super().frame(previous_response_id, start)

    monkeypatch.setattr(adapter, "SharedBody", Counted)
    backend.plays.extend(TURNS)
    await talk.turns("long " * 4000, "two", "three")
    assert [asked.previous for asked in backend.asked] == [None, "resp_1", "resp_2"]
    assert written == [len(backend.asked[0].frame["input"])]
    backend.plays.append(saying(failure("previous_response_not_found"), then="close"))
    await talk.turn("four")
    assert written == [len(asked.frame["input"]) for asked in (backend.asked[0], backend.asked[-1])]


@with_live()
async def test_the_frame_is_the_body_without_stream(front: Live, backend: Backend) -> None:
    await front.stream(ask(model="gpt-5.6-luna"), headers={"x-claude-code-session-id": "s1"})
    frame = backend.asked[0].frame
    assert next(iter(frame)) == "type" and frame["type"] == "response.create" and "stream" not in frame
    assert frame["client_metadata"] == {"ws_request_header_x_openai_internal_codex_responses_lite": "true"}
    headers = {name.lower(): value for name, value in backend.seen[0].items()}
    assert headers["openai-beta"] == "responses_websockets=2026-02-06"
    assert headers["originator"] == "codex_cli_rs" and headers["session-id"] == headers["thread-id"] == "s1"
    assert headers["user-agent"].startswith("codex_cli_rs/") and headers["chatgpt-account-id"]
    others = {"accept", "content-type", "accept-encoding", "x-openai-internal-codex-responses-lite"}
    assert not {*others, "sec-websocket-extensions"} & set(headers)


async def test_a_small_request_on_the_side_changes_nothing(talk: Talk, backend: Backend) -> None:
    """Neither between two turns nor during one does the conversation lose its place or its socket."""
    gate = asyncio.Event()

    async def held(peer: Peer, frame: dict[str, Any]) -> None:
        await gate.wait()
        await answer(peer, frame)

    aside = Talk(talk.live, model="gpt-5.6-luna", system="Write a title.", tools=[])
    await talk.turn("one")
    await aside.turn("one")
    backend.plays.append(held)
    turn = asyncio.ensure_future(talk.turn("two"))
    await until(lambda: len(backend.asked) == 3)
    aside.messages.clear()
    await aside.turn("two")
    gate.set()
    await turn
    await talk.turn("three")
    assert backend.history == [(1, None), (2, None), (1, "resp_1"), (3, None), (1, "resp_4")]
    await until(lambda: backend.open == len(provider_sockets(talk.live).pool) == 1)


@pytest.mark.parametrize(
    ("name", "value", "previous"),
    [("agent-id", "a", None), ("parent-agent-id", "p", None), ("agent-id", "", None), ("unknown", "", "resp_1")],
)
async def test_somebody_else_starts_afresh(
    talk: Talk, backend: Backend, name: str, value: str, previous: str | None
) -> None:
    await talk.turn("one")
    talk.headers[f"x-claude-code-{name}"] = value
    await talk.turn("two")
    assert backend.history == [(1, None), (1 if previous else 2, previous)]


@with_live()
async def test_without_the_setting_turns_are_whole_and_sockets_closed(talk: Talk, backend: Backend) -> None:
    async with leaving_nothing(backend):
        await talk.turns("one", "two")
        assert backend.history == [(1, None), (2, None)]


def text(role: str, words: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": words}]}


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        ("members", "model", "gpt-5.6-terra"),
        ("members", "output_config", {"effort": "low"}),
        ("messages", 0, text("user", "one, rather")),
        ("messages", 1, text("assistant", "I said something else")),
    ],
)
async def test_what_is_no_continuation_is_sent_whole_over_a_new_socket(
    talk: Talk, backend: Backend, part: str, key: Any, value: Any
) -> None:
    await talk.turn("one")
    getattr(talk, part)[key] = value
    await talk.turn("two")
    await until(lambda: backend.open == 1)
    await talk.turn("three")
    assert backend.history == [(1, None), (2, None), (2, "resp_2")]


# -- what goes wrong


def afterwards(then: Callable[[Peer], Awaitable[object]]) -> Play:
    """An answer, and this when nobody asks."""

    async def play(peer: Peer, frame: dict[str, Any]) -> None:
        await peer.say(*said("fine", "resp_x"))
        await asyncio.sleep(0.02)
        await then(peer)
        await peer.listen()

    return play


close_idle = afterwards(lambda peer: peer.ws.close())
chatter = afterwards(lambda peer: peer.say({"type": "codex.rate_limits"}))
deaf_when_idle = afterwards(lambda peer: stalled(peer, {}))


@pytest.mark.parametrize("first", [close_idle, chatter, deaf_when_idle], ids=["closed", "chatter", "deaf"])
@pytest.mark.parametrize("mode", ["websocket", "auto"])
async def test_a_socket_that_died_meanwhile_is_replaced_at_once(backend: Backend, first: Play, mode: str) -> None:
    backend.plays.append(first)
    async with backend.proxy(mode, timers={"validate": 0.05}, **CONTINUES) as live:
        talk = Talk(live)
        await talk.turn("one")
        await asyncio.sleep(0.05)
        await talk.turn("two")
        assert backend.history == [(1, None), (2, None)] and not live.sleeps and not backend.posts
        await until(lambda: backend.open == 1)


@pytest.mark.parametrize(
    "then",
    [
        lambda peer: peer.ws.close(),
        lambda peer: peer.say({"type": "codex.rate_limits"}),
        lambda peer: peer.say(*said("nobody asked", "resp_9")),
        lambda peer: peer.ws.send_str("no json"),
        lambda peer: peer.ws.send_bytes(b"x"),
        lambda peer: peer.later(peer.raw, b"\xf1\x00"),
        lambda peer: peer.later(peer.cut),
    ],
    ids=["close", "news", "an answer", "garbage", "binary", "no frame", "cut"],
)
async def test_a_waiting_socket_that_says_anything_is_closed_at_once(
    talk: Talk, backend: Backend, then: Callable[[Peer], Awaitable[object]]
) -> None:
    gate = asyncio.Event()

    async def when_idle(peer: Peer) -> None:
        await gate.wait()
        await then(peer)

    backend.plays.append(afterwards(when_idle))
    async with leaving_nothing(backend):
        await talk.turn("one")
        pool = provider_sockets(talk.live).pool
        assert len(pool) == 1
        gate.set()
        await until(lambda: len(pool) == backend.open == 0)
        await talk.turn("two")
        assert backend.history == [(1, None), (2, None)] and not talk.live.sleeps
        await provider_sockets(talk.live).close()


async def test_a_late_pong_does_not_spoil_a_socket(talk: Talk, backend: Backend) -> None:
    """One that nobody waits for any more; those are allowed at any time."""

    async def pongs(peer: Peer, frame: dict[str, Any]) -> None:
        await peer.say(*said("fine", "resp_x"))
        for payload in (b"", b"1.9"):
            await peer.ws.pong(payload)

    backend.plays.append(pongs)
    await talk.turns("one", "two")
    assert backend.history == [(1, None), (1, "resp_x")]


async def test_a_new_token_opens_a_new_socket(talk: Talk, backend: Backend) -> None:
    """The token may be another account's by now."""
    await talk.turn("one")
    backend.sandbox.write_credentials(backend.root)
    await talk.turn("two")
    assert backend.history == [(1, None), (2, None)]
    await until(lambda: backend.open == 1)


SILENCE = saying(then="listen")
NOT_FOUND = saying(failure("previous_response_not_found"), then="listen")


@pytest.mark.parametrize(
    ("second", "waits"),
    [
        (NOT_FOUND, []),
        (saying(failure("x", message="Previous response with id 'resp_1' not found"), then="listen"), []),
        (saying(failure("websocket_connection_limit_reached"), then="listen"), []),
        (saying(failure("token_expired", 401), then="listen"), []),
        (saying(), [1.5]),
        (SILENCE, [1.5]),
    ],
    ids=["not found", "in words", "too old", "token", "cut", "silence"],
)
async def test_a_lost_continuation_costs_one_request_more(backend: Backend, second: Play, waits: list[float]) -> None:
    async with backend.proxy(timers={"start": 0.1} if second is SILENCE else {}, **CONTINUES) as live:
        talk = Talk(live)
        await talk.turn("one")
        backend.plays.append(second)
        assert (await talk.turn("two"))["stop_reason"] == "end_turn" and live.sleeps == waits
        assert len(backend.asked[2].frame["input"]) == len(backend.asked[0].frame["input"]) + 2
        await talk.turn("three")
        assert backend.history == [(1, None), (1, "resp_1"), (2, None), (2, "resp_2")]
        await until(lambda: backend.open == 1)


async def test_a_continuation_that_is_lost_twice_is_told(talk: Talk, backend: Backend) -> None:
    await talk.turn("one")
    backend.plays.extend([NOT_FOUND] * 2)
    assert (await talk.turn("two"))["status"] == 400 and len(backend.asked) == 3
    await until(lambda: backend.open == 0)


@pytest.mark.parametrize(
    "ending",
    [
        [completed(status="incomplete", incomplete_details={"reason": "max_output_tokens"})],
        [{**completed(), "type": "response.done"}],
        [completed("")],
        [completed(), {"type": "codex.rate_limits"}],
    ],
    ids=["incomplete", "done", "no id", "more behind it"],
)
async def test_only_a_proper_end_is_gone_on_from(talk: Talk, backend: Backend, ending: list[dict[str, Any]]) -> None:
    async def play(peer: Peer, frame: dict[str, Any]) -> None:
        peer.say_at_once(delta("x"), *ending)
        await peer.listen()

    backend.plays.append(play)
    await talk.turn("one")
    await until(lambda: backend.open == 0)
    await talk.turn("two")
    assert backend.asked[1].previous is None


async def test_an_answer_that_was_stopped_here_is_not_gone_on_from(talk: Talk, backend: Backend) -> None:
    backend.plays.append(saying(*said("one STOP two", "r"), then="nothing"))
    talk.members["stop_sequences"] = ["STOP"]
    await talk.turn("one")
    await until(lambda: backend.open == 0)
    assert not len(provider_sockets(talk.live).continuations)


@with_live(mode="auto", **CONTINUES)
async def test_a_turn_over_http_ends_what_could_be_gone_on_from(talk: Talk, backend: Backend) -> None:
    backend.upgrades.append(503)
    await talk.turns("one", "two", "three")
    assert len(backend.posts) == 1 and [asked.previous for asked in backend.asked] == [None, "resp_2"]


def up_to(size: int) -> Play:
    """Takes no frame that is larger."""

    async def play(peer: Peer, frame: dict[str, Any]) -> None:
        if len(json.dumps(frame)) <= size:
            await answer(peer, frame)
        else:
            await peer.ws.close(code=WSCloseCode.MESSAGE_TOO_BIG)

    return play


@with_live(mode="auto", **CONTINUES)
async def test_a_conversation_that_is_too_large_for_sockets_stays_with_http(talk: Talk, backend: Backend) -> None:
    backend.plays.extend([up_to(20_000)] * 9)
    await talk.turns("one", "two " * 8000)
    assert backend.traffic == (1, 1, 2) and backend.history == [(1, None), (1, "resp_1")]
    assert [item["role"] for item in backend.posts[0]["input"]][-3:] == ["user", "assistant", "user"]
    await talk.turns("three", "four")
    assert backend.traffic == (1, 3, 2)  # no upgrade for what would be refused
    await Talk(talk.live, "other").turn("one")
    assert backend.traffic == (2, 3, 3) and provider_sockets(talk.live).health.dead == 0
    talk.messages.clear()  # the client has summed it up
    await talk.turns("five", "six")
    assert backend.traffic == (3, 3, 5) and backend.asked[-1].previous is not None and not talk.live.sleeps


@with_live(mode="auto", **CONTINUES)
async def test_a_size_that_is_told_behind_an_event_is_no_reason_to_ask_again(talk: Talk, backend: Backend) -> None:
    async def play(peer: Peer, frame: dict[str, Any]) -> None:
        await peer.say(CREATED)
        await peer.ws.close(code=WSCloseCode.MESSAGE_TOO_BIG)

    backend.plays.append(play)
    assert (await talk.turn("one"))["status"] == 502 and backend.traffic == (1, 0, 1)


@pytest.mark.parametrize("seconds", [(0.03, 0.06), (0.06, 0.03)], ids=["in turn", "overtaking"])
async def test_two_turns_of_one_conversation_at_a_time_never_share_a_socket(
    talk: Talk, backend: Backend, seconds: tuple[float, float]
) -> None:
    """The one that began later is the one to go on from."""
    twin = Talk(talk.live)
    await talk.turn("one")
    twin.messages = list(talk.messages)
    backend.plays.extend(late(wait) for wait in seconds)
    first = asyncio.ensure_future(talk.turn("two"))
    await until(lambda: len(backend.asked) == 2)
    await twin.turn("or two")
    await first
    assert {asked.socket for asked in backend.asked[1:]} == {1, 2} and len(backend.asked) == 3
    await until(lambda: backend.open == 1)
    await twin.turn("three")
    assert backend.asked[3].socket == 2 and backend.asked[3].previous is not None


async def test_a_turn_that_is_tried_again_leaves_the_socket_of_a_later_one(talk: Talk, backend: Backend) -> None:
    twin = Talk(talk.live)
    backend.plays.append(late(0.05, saying()))
    first = asyncio.ensure_future(talk.turn("one"))
    await until(lambda: backend.asked)
    await twin.turn("or one")
    await first
    await until(lambda: backend.open == 1)
    await twin.turn("two")
    assert backend.history[1::2] == [(2, None), (2, "resp_1")] and backend.asked[2].socket == 3


async def test_a_response_is_continued_over_its_own_socket_only(talk: Talk, backend: Backend) -> None:
    await talk.turn("one")
    await Talk(talk.live, "other").turn("one")
    waiting = provider_sockets(talk.live).pool
    sockets = {name: waiting.take(Owner(name)) for name in ("s", "other")}
    waiting.put(Owner("s"), sockets["other"], 0.0)
    await talk.turn("two")
    assert backend.history[2] == (3, None)
    await sockets["s"].close()


async def test_a_crowd_of_waiting_sockets_is_thinned_out(backend: Backend) -> None:
    async with backend.proxy(tuning=(PoolLimits(most=4, least=2),), **CONTINUES) as live:
        for number in range(12):
            await Talk(live, f"s{number}").turn("one")
            assert backend.open <= 5
        assert 2 <= len(provider_sockets(live).pool) <= 5
    assert backend.open == 0


@with_live(timers={"reap": 0.05}, tuning=(PoolLimits(idle_s=0.2),), **CONTINUES)
async def test_sockets_that_waited_too_long_are_closed(talk: Talk, backend: Backend) -> None:
    async with leaving_nothing(backend):
        await talk.turn("one")
        assert backend.open == 1
        await until(lambda: backend.open == 0)
        assert backend.goodbyes == [1000]


async def test_a_fast_next_turn_finds_socket_and_state(talk: Talk, backend: Backend) -> None:
    """Both are there before the client has heard the end."""
    await talk.turns(*(f"word {number}" for number in range(20)))
    assert [asked.previous is None for asked in backend.asked] == [True] + [False] * 19


@with_live()
async def test_what_came_together_is_passed_on_together(
    front: Live, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One look at the socket, one write."""
    reads: list[int] = []
    read = websocket.Socket.read

    async def counted(self: websocket.Socket) -> websocket.Reading:
        reading = await read(self)
        reads.append(len(reading.events))
        return reading

    async def play(peer: Peer, frame: dict[str, Any]) -> None:
        peer.say_at_once(CREATED, *(delta(f"w{n} ") for n in range(300)), completed())

    monkeypatch.setattr(websocket.Socket, "read", counted)
    backend.plays.append(play)
    await goes_well(front)
    assert sum(reads) == 302 and len(reads) <= 3
