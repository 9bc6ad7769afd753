"""Turns that go on from earlier ones: over which socket, from which response, and what is sent."""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from harness import Live, ask, until
from outcomes import Good, is_good
from talks import Talk
from ws_upstream import (
    CREATED,
    Asking,
    Backend,
    Peer,
    Play,
    answer,
    call_events,
    completed,
    delta,
    failure,
    late,
    leaving_nothing,
    provider_sockets,
    said,
    saying,
    stalled,
)

from proxy.core.identity import Owner
from proxy.providers.p1_codex import adapter
from proxy.providers.p1_codex.socket import connection as websocket
from proxy.providers.p1_codex.socket import frames
from proxy.providers.p1_codex.socket.pool import PoolLimits


class Memory:
    """An upstream that remembers its responses by socket, and answers with calls and texts in turn."""

    def __init__(self) -> None:
        self.items: dict[str, list[dict[str, Any]]] = {}  # response -> all of its conversation
        self.last: dict[int, str] = {}  # socket -> response
        self.previous: dict[str, str | None] = {}  # response -> the one before it
        self.count = 0

    async def play(self, peer: Peer, frame: dict[str, Any]) -> None:
        previous = frame.get("previous_response_id")
        if previous is not None and self.last.get(peer.number) != previous:
            await peer.say(failure("previous_response_not_found"))
            return
        known = self.items[previous] if previous is not None else []
        self.count += 1
        number, response = self.count, f"resp_{self.count}"
        events = call_events(f"command {number}", f"call_{number}") if number % 3 else [delta(f"text {number}")]
        self.items[response] = [*known, *frame["input"], {"said": f"{'command' if number % 3 else 'text'} {number}"}]
        self.last[peer.number], self.previous[response] = response, previous
        await peer.say(CREATED, *events, completed(response))

    def words(self, response: str) -> list[str]:
        """All that the upstream knows to be said up to this response; a call that it made itself counts once."""
        return [word for item in self.items[response] for word in self._spoken(item)]

    def _spoken(self, item: dict[str, Any]) -> list[str]:
        if "said" in item:
            return [item["said"]]
        if item.get("role") == "developer":
            return []
        if item["type"] == "message":
            return [part["text"] for part in item["content"]]
        if item["type"] == "function_call":
            return [json.loads(item["arguments"])["command"]]
        return [item["output"]]


def continuing(asking: Asking, mode: str = "websocket", **options: Any) -> AbstractAsyncContextManager[Live]:
    return asking(mode, p1_previous_response_id=True, **options)


async def test_only_what_is_new_is_sent_over_the_same_socket(asking: Asking, backend: Backend) -> None:
    memory = Memory()
    backend.plays.extend([memory.play] * 3)
    async with continuing(asking) as live:
        talk = Talk(live)
        for text in ("one", "two", "three"):
            await talk.turn(text)
        first, second, third = backend.asked
        assert [asked.previous for asked in backend.asked] == [None, "resp_1", "resp_2"]
        assert {asked.socket for asked in backend.asked} == {1} and len(first.frame["input"]) == 3
        assert [item["type"] for item in second.frame["input"]] == ["function_call_output"]
        same = {"input", "previous_response_id"}
        assert [{k: v for k, v in asked.frame.items() if k not in same} for asked in (first, second)] == [
            {k: v for k, v in third.frame.items() if k not in same}
        ] * 2
        assert memory.words("resp_3") == talk.words
        assert len(backend.seen) == 1


async def test_the_whole_is_written_out_only_when_it_is_sent(
    asking: Asking, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []

    def shared_json(body: dict[str, Any]) -> bytes:
        written.append(len(body["input"]))
        return frames.shared_json(body)

    monkeypatch.setattr(adapter, "shared_json", shared_json)
    memory = Memory()
    backend.plays.extend([memory.play] * 3)
    async with continuing(asking) as live:
        talk = Talk(live)
        for text in ("long " * 4000, "two", "three"):
            await talk.turn(text)
        assert [asked.previous for asked in backend.asked] == [None, "resp_1", "resp_2"]
        assert written == [len(backend.asked[0].frame["input"])]
        backend.plays.append(saying(failure("previous_response_not_found"), then="close"))
        await talk.turn("four")
        assert written == [len(asked.frame["input"]) for asked in (backend.asked[0], backend.asked[-1])]


async def test_the_frame_is_the_body_without_stream(asking: Asking, backend: Backend) -> None:
    async with asking() as live:
        await live.stream(ask(model="gpt-5.6-luna"), headers={"x-claude-code-session-id": "s1"})
    frame = backend.asked[0].frame
    assert next(iter(frame)) == "type" and frame["type"] == "response.create" and "stream" not in frame
    assert frame["client_metadata"] == {"ws_request_header_x_openai_internal_codex_responses_lite": "true"}
    headers = {name.lower(): value for name, value in backend.seen[0].items()}
    assert headers["openai-beta"] == "responses_websockets=2026-02-06"
    assert headers["originator"] == headers["user-agent"] == "codex_cli_rs" and headers["session-id"] == "s1"
    assert headers["x-openai-internal-codex-responses-lite"] == "true" and headers["chatgpt-account-id"]
    assert not {"accept", "content-type", "accept-encoding", "sec-websocket-extensions"} & set(headers)


async def test_agents_of_one_session_never_share_anything(asking: Asking, backend: Backend) -> None:
    """Two agents and the main conversation, two hundred turns in random order, two at a time."""
    chance, memory = random.Random(7), Memory()
    async with continuing(asking) as live:
        talks = [Talk(live, "s", agent) for agent in (None, "a", "b")]
        latest: dict[Talk, str] = {}
        for number in range(100):
            speakers = chance.sample(talks, k=2)
            backend.plays.extend([memory.play] * 2)
            await asyncio.gather(*(talk.turn(f"{number} of {talks.index(talk)}") for talk in speakers))
            for talk in speakers:
                (response,) = (name for name in list(memory.items)[-2:] if memory.words(name) == talk.words)
                assert memory.previous[response] == latest.get(talk)
                latest[talk] = response
        assert len(backend.asked) == 200 and len(backend.seen) == 3
        assert sum(asked.previous is None for asked in backend.asked) == 3
        assert len(provider_sockets(live).continuations) == 3


async def test_a_small_request_on_the_side_changes_nothing(asking: Asking, backend: Backend) -> None:
    """Neither between two turns nor during one does the conversation lose its place or its socket."""
    gate = asyncio.Event()

    async def held(peer: Peer, frame: dict[str, Any]) -> None:
        await gate.wait()
        await answer(peer, frame)

    async with continuing(asking) as live:
        talk, aside = Talk(live), Talk(live, model="gpt-5.6-luna", system="Write a title.", tools=[])
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
        assert [asked.previous for asked in backend.asked] == [None, None, "resp_1", None, "resp_4"]
        assert [asked.socket for asked in backend.asked] == [1, 2, 1, 3, 1]
        await until(lambda: backend.open == len(provider_sockets(live).pool) == 1)


@pytest.mark.parametrize(
    ("headers", "previous"),
    [
        ({"x-claude-code-agent-id": "a"}, None),
        ({"x-claude-code-parent-agent-id": "p"}, None),
        ({"x-claude-code-agent-id": ""}, None),
        ({}, "resp_1"),
    ],
)
async def test_somebody_else_starts_afresh(
    asking: Asking, backend: Backend, headers: dict[str, str], previous: str | None
) -> None:
    async with continuing(asking) as live:
        talk = Talk(live)
        await talk.turn("one")
        talk.headers |= headers
        await talk.turn("two")
    assert backend.asked[1].previous == previous
    assert (backend.asked[1].socket == backend.asked[0].socket) == (previous is not None)


async def test_without_the_setting_turns_are_whole_and_sockets_closed(asking: Asking, backend: Backend) -> None:
    async with asking() as live, leaving_nothing(backend):
        talk = Talk(live)
        await talk.turn("one")
        await talk.turn("two")
        assert [asked.socket for asked in backend.asked] == [1, 2] and not any(a.previous for a in backend.asked)


async def changed_model(talk: Talk) -> None:
    talk.members["model"] = "gpt-5.6-terra"


async def changed_effort(talk: Talk) -> None:
    talk.members["output_config"] = {"effort": "low"}


async def changed_history(talk: Talk) -> None:
    talk.messages[0] = {"role": "user", "content": [{"type": "text", "text": "one, rather"}]}


async def forgotten_answer(talk: Talk) -> None:
    talk.messages[1] = {"role": "assistant", "content": [{"type": "text", "text": "I said something else"}]}


@pytest.mark.parametrize("change", [changed_model, changed_effort, changed_history, forgotten_answer])
async def test_what_is_no_continuation_is_sent_whole_over_a_new_socket(
    asking: Asking, backend: Backend, change: Any
) -> None:
    async with continuing(asking) as live:
        talk = Talk(live)
        await talk.turn("one")
        await change(talk)
        await talk.turn("two")
        await until(lambda: backend.open == 1)
        await talk.turn("three")
        assert [(asked.socket, asked.previous) for asked in backend.asked] == [(1, None), (2, None), (2, "resp_2")]


# -- what goes wrong


async def close_idle(peer: Peer, frame: dict[str, Any]) -> None:
    await peer.say(*said("fine", "resp_x"))
    await asyncio.sleep(0.02)
    await peer.ws.close()


async def chatter(peer: Peer, frame: dict[str, Any]) -> None:
    """Says something when nobody asked."""
    await peer.say(*said("fine", "resp_x"))
    await asyncio.sleep(0.02)
    await peer.say({"type": "codex.rate_limits"})
    await peer.listen()


async def deaf_when_idle(peer: Peer, frame: dict[str, Any]) -> None:
    await peer.say(*said("fine", "resp_x"))
    await stalled(peer, frame)


@pytest.mark.parametrize("first", [close_idle, chatter, deaf_when_idle])
@pytest.mark.parametrize("mode", ["websocket", "auto"])
async def test_a_socket_that_died_meanwhile_is_replaced_at_once(
    asking: Asking, backend: Backend, first: Play, mode: str
) -> None:
    backend.plays.append(first)
    async with continuing(asking, mode, timers={"validate": 0.05}) as live:
        talk = Talk(live)
        await talk.turn("one")
        await asyncio.sleep(0.05)
        await talk.turn("two")
        assert [(asked.socket, asked.previous) for asked in backend.asked] == [(1, None), (2, None)]
        assert not live.sleeps and not backend.posts
        await until(lambda: backend.open == 1)


SILENCE = saying(then="listen")


async def test_a_new_token_opens_a_new_socket(asking: Asking, backend: Backend) -> None:
    """The token may be another account's by now."""
    async with continuing(asking) as live:
        talk = Talk(live)
        await talk.turn("one")
        live.sandbox.write_credentials(live.root)
        await talk.turn("two")
        assert [(asked.socket, asked.previous) for asked in backend.asked] == [(1, None), (2, None)]
        await until(lambda: backend.open == 1)


@pytest.mark.parametrize(
    ("second", "waits"),
    [
        (saying(failure("previous_response_not_found"), then="listen"), []),
        (saying(failure("x", message="Previous response with id 'resp_1' not found"), then="listen"), []),
        (saying(failure("websocket_connection_limit_reached"), then="listen"), []),
        (saying(failure("token_expired", 401), then="listen"), []),
        (saying(), [1.5]),
        (SILENCE, [1.5]),
    ],
    ids=["not found", "in words", "too old", "token", "cut", "silence"],
)
async def test_a_lost_continuation_costs_one_request_more(
    asking: Asking, backend: Backend, second: Play, waits: list[float]
) -> None:
    async with continuing(asking, timers={"start": 0.1} if second is SILENCE else {}) as live:
        talk = Talk(live)
        await talk.turn("one")
        backend.plays.append(second)
        assert (await talk.turn("two"))["stop_reason"] == "end_turn"
        assert [(a.socket, a.previous) for a in backend.asked] == [(1, None), (1, "resp_1"), (2, None)]
        assert live.sleeps == waits and len(backend.asked[2].frame["input"]) == len(backend.asked[0].frame["input"]) + 2
        await talk.turn("three")
        assert (backend.asked[3].socket, backend.asked[3].previous) == (2, "resp_2")
        await until(lambda: backend.open == 1)


async def test_a_continuation_that_is_lost_twice_is_told(asking: Asking, backend: Backend) -> None:
    async with continuing(asking) as live:
        talk = Talk(live)
        await talk.turn("one")
        backend.plays.extend([saying(failure("previous_response_not_found"), then="listen")] * 2)
        assert (await talk.turn("two"))["status"] == 400
        assert len(backend.asked) == 3
        await until(lambda: backend.open == 0)


@pytest.mark.parametrize(
    "ending",
    [
        [delta("x"), completed("r", status="incomplete", incomplete_details={"reason": "max_output_tokens"})],
        [delta("x"), {**completed("r"), "type": "response.done"}],
        [delta("x"), completed("")],
        [delta("x"), completed("r"), {"type": "codex.rate_limits"}],
    ],
    ids=["incomplete", "done", "no id", "more behind it"],
)
async def test_only_a_proper_end_is_gone_on_from(
    asking: Asking, backend: Backend, ending: list[dict[str, Any]]
) -> None:
    async def play(peer: Peer, frame: dict[str, Any]) -> None:
        peer.say_at_once(*ending)
        await peer.listen()

    async with continuing(asking) as live:
        backend.plays.append(play)
        talk = Talk(live)
        await talk.turn("one")
        await until(lambda: backend.open == 0)
        await talk.turn("two")
        assert backend.asked[1].previous is None


async def test_an_answer_that_was_stopped_here_is_not_gone_on_from(asking: Asking, backend: Backend) -> None:
    async with continuing(asking) as live:
        backend.plays.append(saying(*said("one STOP two", "r"), then="nothing"))
        talk = Talk(live, stop_sequences=["STOP"])
        await talk.turn("one")
        await until(lambda: backend.open == 0)
        assert not len(provider_sockets(live).continuations)


async def test_a_turn_over_http_ends_what_could_be_gone_on_from(asking: Asking, backend: Backend) -> None:
    async with continuing(asking, "auto") as live:
        talk = Talk(live)
        backend.upgrades.append(503)
        await talk.turn("one")
        await talk.turn("two")
        await talk.turn("three")
        assert len(backend.posts) == 1 and [asked.previous for asked in backend.asked] == [None, "resp_2"]


@pytest.mark.parametrize("seconds", [(0.03, 0.06), (0.06, 0.03)], ids=["in turn", "overtaking"])
async def test_two_turns_of_one_conversation_at_a_time_never_share_a_socket(
    asking: Asking, backend: Backend, seconds: tuple[float, float]
) -> None:
    """The one that began later is the one to go on from."""
    async with continuing(asking) as live:
        talk, twin = Talk(live), Talk(live)
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


async def test_a_turn_that_is_tried_again_leaves_the_socket_of_a_later_one(asking: Asking, backend: Backend) -> None:
    async with continuing(asking) as live:
        talk, twin = Talk(live), Talk(live)
        backend.plays.append(late(0.05, saying()))
        first = asyncio.ensure_future(talk.turn("one"))
        await until(lambda: backend.asked)
        await twin.turn("or one")
        await first
        await until(lambda: backend.open == 1)
        await twin.turn("two")
        assert [(asked.socket, asked.previous) for asked in backend.asked][1::2] == [(2, None), (2, "resp_1")]
        assert backend.asked[2].socket == 3


async def test_a_response_is_continued_over_its_own_socket_only(asking: Asking, backend: Backend) -> None:
    async with continuing(asking) as live:
        talk, other = Talk(live), Talk(live, "other")
        await talk.turn("one")
        await other.turn("one")
        waiting = provider_sockets(live).pool
        sockets = {name: waiting.take(Owner(name)) for name in ("s", "other")}
        waiting.put(Owner("s"), sockets["other"], 0.0)
        await talk.turn("two")
        assert (backend.asked[2].socket, backend.asked[2].previous) == (3, None)
        await sockets["s"].close()


async def test_a_crowd_of_waiting_sockets_is_thinned_out(asking: Asking, backend: Backend) -> None:
    async with continuing(asking, tuning=(PoolLimits(most=4, least=2),)) as live:
        for number in range(12):
            await Talk(live, f"s{number}").turn("one")
            assert backend.open <= 5
        await until(lambda: backend.open <= 5)
        assert 2 <= len(provider_sockets(live).pool) <= 5
    assert backend.open == 0


async def test_sockets_that_waited_too_long_are_closed(asking: Asking, backend: Backend) -> None:
    limits = PoolLimits(idle_s=0.2)
    async with continuing(asking, timers={"reap": 0.05}, tuning=(limits,)) as live, leaving_nothing(backend):
        await Talk(live).turn("one")
        assert backend.open == 1
        await until(lambda: backend.open == 0)
        assert backend.goodbyes == [1000]


async def test_a_fast_next_turn_finds_socket_and_state(asking: Asking, backend: Backend) -> None:
    """Both are there before the client has heard the end."""
    async with continuing(asking) as live:
        talk = Talk(live)
        for number in range(20):
            await talk.turn(f"word {number}")
        assert [asked.previous is None for asked in backend.asked] == [True] + [False] * 19


async def test_what_came_together_is_passed_on_together(asking: Asking, backend: Backend) -> None:
    """One look at the socket, one write."""
    reads: list[int] = []
    read = websocket.Socket.read

    async def counted(self: websocket.Socket) -> websocket.Reading:
        reading = await read(self)
        reads.append(len(reading.events))
        return reading

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(websocket.Socket, "read", counted)

        async def play(peer: Peer, frame: dict[str, Any]) -> None:
            peer.say_at_once(CREATED, *(delta(f"w{n} ") for n in range(300)), completed("r"))

        backend.plays.append(play)
        async with asking() as live:
            is_good(await live.stream(ask()), Good(), stream=True)
    assert sum(reads) == 302 and len(reads) <= 3
