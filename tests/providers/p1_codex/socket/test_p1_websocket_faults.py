"""Every fault that the sandbox knows for P1's sockets and their upgrades, and what becomes of it: what the client sees,
how often the upstream was asked over which transport, and that nothing is left open."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from checks import check_message_stream
from harness import Live, ask, texts
from outcomes import Broken, Good, Outcome, Refused, kind_of
from p1_faults import AGAIN, CALL, FINAL, SHARED, Row, asked_for, case_name, comes_out
from samples import each, sampled, walk
from ws_upstream import leaving_nothing, new_session, provider_sockets

from proxy.providers.p1_codex.socket import connect
from proxy.providers.p1_codex.socket.connect import SocketTimers
from proxy.providers.p1_codex.socket.manager import SocketHealth
from proxy.sandbox import FAULTS, Place, Sandbox
from proxy.sandbox.p1.socket.link import Limits

MIB = 1024 * 1024
THOUGHT_AGAIN = Good(2, blocks=("thinking", "text"), waits=(1.5,))


def limited(seconds: int, **more: str) -> Refused:
    return Refused(429, "rate_limit_error", headers={"Retry-After": str(seconds), **more})


SPENT = limited(600, **FINAL)
FORGOTTEN = Refused(400, "invalid_request_error", headers=FINAL, words="not found")

#: What only sockets have, or take differently than HTTP.
SOCKET: list[Row] = [
    ("cut_at_once", {}, AGAIN),
    ("cut_at_once", {"reset": True}, AGAIN),
    ("cut_at_once", {"times": 9}, Refused(502, "api_error", 4)),
    ("cut_after_control", {}, AGAIN),
    ("cut_after_call", {}, CALL),
    ("cut_after_limit", {}, SPENT),
    ("close_at_once", {}, AGAIN),
    ("close_at_once", {"times": 9}, Refused(502, "api_error", 4)),
    ("close_after_control", {}, AGAIN),
    ("close_before_output", {}, AGAIN),
    ("close_before_output", {"code": 1000}, AGAIN),
    ("close_thinking", {}, THOUGHT_AGAIN),
    ("close_thinking", {"times": 2}, Broken(attempts=2, whole=Good(3, blocks=("thinking", "text"), waits=(1.5, 3.0)))),
    ("close_text", {}, Broken()),
    ("close_text", {"code": 1000, "reason": "bye"}, Broken()),
    ("close_arguments", {}, Broken(open="tool_use")),
    ("close_after_call", {}, CALL),
    ("close_after_limit", {}, SPENT),
    ("close_after_terminal", {}, Good()),
    ("pings", {}, Good()),
    ("pings_only", {}, Refused(502, "api_error", words="150 ms")),
    ("pings_only", {"after": "nothing"}, Refused(502, "api_error", words="150 ms")),
    ("pings_only", {"after": "text"}, Broken(words="150 ms", whole=None)),
    ("pings_only", {"count": 3, "every_s": 0.005}, Good()),
    ("control_only", {}, Refused(502, "api_error", words="150 ms")),
    ("control_only", {"count": 3, "every_s": 0.005}, Good()),
    ("pongs_withheld", {}, AGAIN),
    ("pongs_withheld", {"after": "nothing"}, AGAIN),
    ("pongs_withheld", {"after": "text"}, Broken(words="pings")),
    ("pongs_withheld", {"after": "call"}, Broken(open="tool_use", words="pings")),
    ("pongs_withheld", {"times": 9}, Refused(502, "api_error", 4, words="pings")),
    ("binary_frame", {}, Broken(words="binary", whole=None)),
    ("binary_frame", {"after": "nothing"}, Refused(502, "api_error", words="binary")),
    ("malformed_json", {}, Good()),
    ("malformed_json", {"count": 16}, Good()),
    ("malformed_json", {"count": 17}, Broken(words="not JSON", whole=None)),
    ("malformed_json", {"count": 17, "after": "nothing"}, Refused(502, "api_error", words="not JSON")),
    ("invalid_utf8", {}, Broken(words="protocol", whole=None)),
    ("invalid_utf8", {"after": "nothing"}, Refused(502, "api_error", words="protocol")),
    ("huge_frame", {}, Good()),
    ("oversized_frame", {"size": MIB}, Broken(words="67108864 bytes", whole=None)),
    ("oversized_frame", {"size": MIB, "after": "nothing"}, Refused(502, "api_error", words="67108864 bytes")),
    ("fragments", {}, Good()),
    ("previous_response_not_found", {}, FORGOTTEN),
    ("connection_limit", {}, Good(2)),
    ("connection_limit", {"times": 9}, Refused(503, "api_error", 5, {"Retry-After": "2"})),
    ("silence_before_head", {"seconds": 9}, Refused(502, "api_error", words="150 ms")),
    ("silence_mid_text", {"seconds": 9}, Broken(words="150 ms", whole=None)),
]

Start = Callable[[str, dict[str, float]], Live]

#: For the cases that are about time; the others must not hang on how busy the machine is.
PAUSE = {"start": 0.15, "idle": 0.15}
TIMERS = {"pings_only": PAUSE, "control_only": PAUSE, "pongs_withheld": {"ping": 0.02}}


def timers_of(fault: str, params: dict[str, Any], outcome: Outcome) -> dict[str, float]:
    if params.get("seconds") == 9:
        return PAUSE
    return {} if outcome == Good() else TIMERS.get(fault, {})


@pytest.fixture
def start(sandbox: Sandbox, tmp_path: Path) -> Start:
    def begin(mode: str, timers: dict[str, float]) -> Live:
        return Live(sandbox, tmp_path, tuning=(SocketTimers(**timers),), **settings(mode))

    return begin


def settings(mode: str) -> dict[str, Any]:
    """In the mode `auto` only conversations that may be continued get a socket."""
    return {"p1_transport": mode, "p1_previous_response_id": mode == "auto"}


def posts(live: Live) -> int:
    return sum(seen.socket is None for seen in live.sandbox.p1.requests)


def test_every_fault_of_an_answer_has_an_outcome() -> None:
    assert {name for name, _, _ in [*SHARED, *SOCKET]} == set(FAULTS[Place("p1", "websocket")])


#: Mode, and whether a stream is asked for.
FORMS = [("websocket", True), ("auto", False), ("websocket", False), ("auto", True)]


def differs(mode: str, stream: bool, fault: str, params: dict[str, Any], outcome: Outcome) -> Sequence[Hashable]:
    """What makes a difference: each row, each fault in either mode, and each kind of outcome in each mode and form."""
    return (fault, repr(params)), (fault, mode), (kind_of(outcome), mode, stream)


@functools.cache
def cases() -> list[tuple[str, bool, str, dict[str, Any], Outcome]]:
    return sampled(((*form, *row) for form in FORMS for row in [*SHARED, *SOCKET]), 1, differs)


@pytest.mark.parametrize("mode", ["websocket", "auto"])
async def test_a_fault_of_an_answer_comes_out_as_the_table_says(
    start: Start, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was taken by a socket never goes over HTTP, in either mode, and no socket is used twice."""
    async with start(mode, {}) as live:
        with walk() as row:
            for case in cases():
                if case[0] == mode:
                    with row(case[1:-1]), monkeypatch.context() as patch:
                        await comes_out_in(live, patch, *case[1:])


async def comes_out_in(
    live: Live, patch: pytest.MonkeyPatch, stream: bool, fault: str, params: dict[str, Any], outcome: Outcome
) -> None:
    p1, sockets = live.sandbox.p1, provider_sockets(live)
    upgrades = p1.sockets.total
    live.forget()
    sockets.timers, sockets.health = SocketTimers(**timers_of(fault, params, outcome)), SocketHealth()
    if fault == "oversized_frame":  # whose words name the limit as it was
        patch.setattr(connect, "MAX_FRAME_BYTES", MIB)
    async with leaving_nothing(p1.sockets, live):
        p1.script.replace([{"fault": fault, "match": {"wire": "websocket"}, **params}])
        answer = await live.post(asked_for(fault, params, stream=stream), headers=new_session())
        expected = comes_out(live, answer, outcome, stream=stream)
        made = live.upstream, p1.sockets.total - upgrades, posts(live)
        assert made == (expected.attempts, expected.attempts, 0)


NOT_OF_THIS_SIZE = Refused(502, "api_error", words="size over a WebSocket; p1.transport=http")


@pytest.mark.parametrize(
    ("mode", "outcome", "posted"), [("websocket", NOT_OF_THIS_SIZE, 0), ("auto", Good(2), 1)], ids=["websocket", "auto"]
)
@pytest.mark.parametrize("stream", [True, False])
async def test_what_is_too_large_for_a_socket_was_not_taken(
    start: Start, mode: str, outcome: Outcome, posted: int, stream: bool
) -> None:
    async with start(mode, {}) as live, leaving_nothing(live.sandbox.p1.sockets, live):
        p1 = live.sandbox.p1
        p1.script.replace([{"fault": "close_at_once", "match": {"wire": "websocket"}, "code": 1009}])
        answer = await live.post(asked_for("close_at_once", {}, stream=stream), headers=new_session())
        comes_out(live, answer, outcome, stream=stream)
        assert (p1.sockets.total, posts(live)) == (1, posted)


# -- the upgrade


@dataclass(frozen=True)
class Way:
    """How a request ends in one mode, and how many upgrades it took. An answer came over a socket, or by a POST."""

    outcome: Outcome
    upgrades: int = 1
    post: bool = False


def no_websocket(status: int) -> Refused:
    return Refused(status, "invalid_request_error", headers=FINAL, words="the upgrade to a WebSocket with status")


OVER_HTTP = Way(Good(), post=True)
SECOND = Way(Good(), 2)
THEN_HTTP = Way(Good(), 2, post=True)
TWICE = Way(AGAIN, 2)
LATER = Way(Good(waits=(3.0, 1.0)), 2)
LATER_HTTP = Way(LATER.outcome, 2, post=True)
UNAUTHORIZED = Way(Refused(401, "authentication_error", headers=FINAL), 2)
FORBIDDEN = Way(Refused(403, "permission_error", headers=FINAL), 2)
FAILED = Way(Refused(500, "api_error", headers={"Retry-After": "2"}), 4)
BUSY = Way(Refused(529, "overloaded_error", headers={"Retry-After": "2"}), 4)

#: fault -> what becomes of it in the mode websocket, and in the mode auto
UPGRADES: list[tuple[str, dict[str, Any], Way, Way]] = [
    ("upgrade_unauthorized", {}, SECOND, SECOND),
    ("upgrade_unauthorized", {"times": 9}, UNAUTHORIZED, THEN_HTTP),
    ("upgrade_forbidden", {}, LATER, LATER),
    ("upgrade_forbidden", {"times": 9}, FORBIDDEN, LATER_HTTP),
    ("upgrade_limits", {"per_second": 9}, Way(Good()), Way(Good())),
    ("upgrade_limits", {"per_second": 0}, LATER, LATER),
    ("upgrade_limits", {"most_open": 0}, LATER, LATER),
    ("upgrade_not_found", {}, Way(no_websocket(400)), OVER_HTTP),
    ("upgrade_required", {}, Way(no_websocket(426)), OVER_HTTP),
    ("upgrade_rate_limit", {"seconds": 2}, Way(Good(waits=(2.0,)), 2), OVER_HTTP),
    ("upgrade_rate_limit", {"seconds": 31}, Way(limited(31)), OVER_HTTP),
    ("upgrade_usage_limit", {}, Way(limited(3600, **FINAL)), OVER_HTTP),
    ("upgrade_server_error", {}, TWICE, OVER_HTTP),
    ("upgrade_server_error", {"times": 9}, FAILED, OVER_HTTP),
    ("upgrade_overloaded", {"retry_after": 2}, Way(Good(waits=(2.0,)), 2), OVER_HTTP),
    ("upgrade_overloaded", {"times": 9}, BUSY, OVER_HTTP),
    ("upgrade_html", {}, TWICE, OVER_HTTP),
    ("upgrade_redirect", {}, TWICE, OVER_HTTP),
    ("upgrade_hang", {}, TWICE, OVER_HTTP),
    ("upgrade_hang", {"times": 9}, Way(Refused(502, "api_error", words="400 ms"), 4), OVER_HTTP),
    # the HTTP library asks once more by itself: the connection may have been an old one
    ("upgrade_cut", {}, SECOND, SECOND),
    ("upgrade_cut", {"times": 2}, Way(AGAIN, 3), THEN_HTTP),
    ("upgrade_cut", {"times": 9}, Way(Refused(502, "api_error", words="cannot reach"), 8), THEN_HTTP),
    ("upgrade_wrong_accept", {}, TWICE, OVER_HTTP),
    ("upgrade_no_accept", {}, TWICE, OVER_HTTP),
    ("upgrade_other_protocol", {}, TWICE, OVER_HTTP),
    ("upgrade_extension", {}, TWICE, OVER_HTTP),
    ("upgrade_extension", {"times": 9}, Way(Refused(502, "api_error", words="rules of WebSocket"), 4), OVER_HTTP),
    ("upgrade_subprotocol", {}, TWICE, OVER_HTTP),
]


def test_every_fault_of_an_upgrade_has_an_outcome() -> None:
    assert {name for name, *_ in UPGRADES} == set(FAULTS[Place("p1", "upgrade", stream=False)])


@each(2)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("mode", ["websocket", "auto"])
@pytest.mark.parametrize(("fault", "params", "websocket", "auto"), UPGRADES, ids=case_name)
async def test_a_fault_of_an_upgrade_comes_out_as_the_table_says(
    start: Start, fault: str, params: dict[str, Any], websocket: Way, auto: Way, mode: str, stream: bool
) -> None:
    """Nothing was asked yet, so it may go over HTTP where the mode allows it; once, and not over both."""
    way = websocket if mode == "websocket" else auto
    # long enough for a busy machine: an upgrade that is given up before it arrived would not be counted
    timers = {"connect": 0.4} if fault == "upgrade_hang" else {}
    async with start(mode, timers) as live, leaving_nothing(live.sandbox.p1.sockets, live):
        # upgrades keep their distance from a moment: time stands still, or a busy machine would have less to wait for
        provider_sockets(live)._limiter._now = lambda: 0.0
        live.sandbox.p1.script.extend([{"fault": fault, **params}])
        answer = await live.post(asked_for(fault, params, stream=stream), headers=new_session())
        comes_out(live, answer, way.outcome, stream=stream)
        assert live.sandbox.p1.refreshes == (fault == "upgrade_unauthorized")
        good = isinstance(way.outcome, Good)
        assert (live.sandbox.p1.sockets.total, live.upstream, posts(live)) == (way.upgrades, good, way.post)


async def test_a_burst_that_the_edge_refuses_is_answered_whole(start: Start) -> None:
    """More at a time than it lets in: each is asked once, over a socket or over HTTP."""
    async with start("auto", {}) as live, leaving_nothing(live.sandbox.p1.sockets, live):
        live.sandbox.p1.options.limits = Limits(per_second=3)
        live.sandbox.p1.sockets.clock = lambda: 0.0  # the second does not end
        answers = await asyncio.gather(
            *(live.stream(ask(f"question {number}"), headers=new_session()) for number in range(12))
        )
        for number, answer in enumerate(answers):
            check_message_stream(answer.events)
            assert f"question {number}" in texts(answer.events)
        refused = [seen for seen in live.sandbox.p1.sockets.seen if seen.status == 403]
        assert refused and (live.upstream, posts(live)) == (12, 12 - 3)
        assert 1 <= live.sleeps.count(3.0) <= 9  # who comes when that is known does not wait
