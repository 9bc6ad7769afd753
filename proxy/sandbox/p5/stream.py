"""`RunSSE`: the server's half of a run."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from aiohttp import web

from proxy.sandbox.p5.course import AGENT, set_course, take_opening
from proxy.sandbox.p5.events import ASKING, ENVELOPES, payload_of
from proxy.sandbox.p5.headers import STREAM_TYPE, blame_headers, check_bearer, check_type
from proxy.sandbox.p5.runs import Run
from proxy.sandbox.p5.state import P5
from proxy.sandbox.play.actions import Pace, Reply
from proxy.sandbox.play.player import BodyPlayer
from proxy.sandbox.recorder import Received
from proxy.sandbox.upstream import refusals_noted
from proxy.sandbox.wires.connect.envelopes import read_envelopes
from proxy.sandbox.wires.connect.errors import Failed
from proxy.sandbox.wires.connect.protobuf import Message
from proxy.sandbox.wires.refusal import plain_reply

#: It is no event stream: the name passes proxies.
_HEAD = {"content-type": "text/event-stream", "cache-control": "no-cache"}


class Cancelled(Exception):
    """The client wants no more of the run."""


class RunPlayer(BodyPlayer):
    """Plays a run. Heartbeats go out while the client is waited for."""

    def __init__(self, request: web.Request, run: Run, heartbeat_s: float) -> None:
        super().__init__(request, _HEAD, ENVELOPES)
        self.run = run
        self.heartbeat_s = heartbeat_s

    async def send(self, batch: list[dict[str, Any]]) -> None:
        for event in batch:
            if event["type"] == "end":
                self.run.end()
            elif event["type"] in ASKING:
                self.run.ledger.note(payload_of(event))
        split = next((event["split"] for event in batch if "split" in event), None)
        if split is None:
            await super().send(batch)
            return
        data = ENVELOPES.encode(batch)
        batch.clear()
        for start in range(0, len(data), split):
            await self.write(data[start : start + split])

    async def until(self, ready: Callable[[], bool]) -> None:
        while not ready():
            if self.run.cancelled:
                raise Cancelled
            self.run.news.clear()
            try:
                async with asyncio.timeout(self.heartbeat_s):
                    await self.run.news.wait()
            except TimeoutError:
                await self.send([{"type": "heartbeat"}])


async def serve_run(p5: P5, request: web.Request) -> web.StreamResponse:
    """One RunSSE, to its end."""
    data = await request.read()
    with p5.at_work():
        seen = Received(request.path, request.headers, None, size=len(data))
        p5.note(seen)
        with refusals_noted(seen):
            check_bearer(request.headers, p5.tokens)
            check_type(request.headers, STREAM_TYPE)
            request_id = _request_id(data)
        blame_headers(request.headers, p5.blame, request_id)
        run = p5.runs.claim(request_id)
        player = RunPlayer(request, run, p5.options.heartbeat_s)
        reply = await _begin(p5, run, seen, player)
        if reply is not None:
            seen.status = reply.status
            return plain_reply(reply.status, reply.body, dict(reply.headers or {}))
        seen.status = 200
        try:
            with contextlib.suppress(ConnectionResetError):
                await _play(run, player)
        finally:
            run.end()
        return player.response


def _request_id(data: bytes) -> str:
    """Of the one envelope that opens a stream. Raises Refused."""
    try:
        [(flags, payload)] = read_envelopes(data)
        found = Message(payload).text(1)
    except ValueError as problem:
        raise Failed("invalid_argument", f"protocol error: {problem}").refused() from None
    if flags or not found:
        raise Failed("invalid_argument", "protocol error: one envelope with a request id is expected").refused()
    return found


async def _begin(p5: P5, run: Run, seen: Received, player: RunPlayer) -> Reply | None:
    """What comes before the head of the stream; perhaps another answer than a stream."""
    if run.opened:
        run.blame("a second RunSSE")
    step = take_opening(p5) if run.first is None else None
    if step is not None and isinstance(step.outcome, Reply):
        return step.outcome
    if step is not None and step.fault is not None:
        if step.fault in AGENT.http_faults:
            return AGENT.http_faults[step.fault](**step.params)
        await player.perform(AGENT.faults[step.fault](None, **step.params), Pace())
    run.seen = seen
    set_course(p5, run)
    return run.replies.pop(0, None)


async def _play(run: Run, player: RunPlayer) -> None:
    await player.open()
    try:
        await player.until(lambda: run.course is not None)
        stands = run.course is None or await player.perform(run.course.actions, run.course.pace)
    except Cancelled:
        stands = True
        await player.send([{"type": "end", "error": {"code": "canceled", "message": "The run was canceled."}}])
    if stands:
        await player.response.write_eof()
