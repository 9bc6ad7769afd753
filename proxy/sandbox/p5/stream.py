"""`RunSSE`, the server's half of a run: refusals, the script's step for it, or the model's normal answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from proxy.sandbox.model.pieces import tokens_of
from proxy.sandbox.p5.answer import NEVER, AgentAnswer, AgentFault
from proxy.sandbox.p5.events import ASKING, ENVELOPES, payload_of
from proxy.sandbox.p5.failures import HTTP_FAULTS, STREAM_TYPE, blame_headers, check_bearer, check_type, check_version
from proxy.sandbox.p5.faults.asking import ASKING_FAULTS
from proxy.sandbox.p5.faults.endings import ENDING_FAULTS, OPENING_FAULTS, PAUSE_FAULTS
from proxy.sandbox.p5.faults.framing import FRAMING_FAULTS, MEMBER_FAULTS
from proxy.sandbox.p5.opening import Opening, read_opening
from proxy.sandbox.p5.prompt import read_prompt
from proxy.sandbox.p5.runs import Course, Run
from proxy.sandbox.p5.state import P5
from proxy.sandbox.play.actions import Pace, Reply
from proxy.sandbox.play.player import BodyPlayer
from proxy.sandbox.play.script import Place, Step
from proxy.sandbox.upstream import CheckedRequest, Received, ServedWire, refusals_noted
from proxy.sandbox.wires.connect.envelopes import FailedCall, read_envelopes
from proxy.sandbox.wires.connect.protobuf import Malformed, Message
from proxy.sandbox.wires.refusal import plain_reply

AGENT_FAULTS: dict[str, AgentFault] = {
    **OPENING_FAULTS,
    **FRAMING_FAULTS,
    **MEMBER_FAULTS,
    **ENDING_FAULTS,
    **ASKING_FAULTS,
    **PAUSE_FAULTS,
}


AGENT = ServedWire(Place("p5", "agent"), HTTP_FAULTS, AGENT_FAULTS)


#: The error for a prompt that is too large.
TOO_LONG = (
    "end_error",
    {"code": "invalid_argument", "error": "ERROR_CONVERSATION_TOO_LONG", "title": "Conversation too long"},
)


def take_opening(p5: P5) -> Step | None:
    """The script's step that applies before the request is known: an HTTP answer, or a fault of the beginning. A step
    that matches the request waits for it."""
    step = p5.script.next_at(AGENT.place)
    if step is None or step.asks_for_a_body:
        return None
    early = isinstance(step.outcome, Reply) or step.fault in HTTP_FAULTS or step.fault in OPENING_FAULTS
    return p5.script.use(step) if early else None


def set_course(p5: P5, run: Run) -> None:
    """Decides the course of a run, as soon as it has its first message and its stream."""
    if run.first is None or run.seen is None or run.course is not None:
        return
    try:
        check_version(run.seen.headers)
        opening = read_opening(run.first, run.blame, p5.options.suffixed)
    except (FailedCall, Malformed) as problem:
        failed = (
            problem if isinstance(problem, FailedCall) else FailedCall("invalid_argument", f"parse binary: {problem}")
        )
        run.course = Course([{"type": "end", "error": failed.body}], Pace())
        return
    run.seen.body = opening.body
    if opening.silent:
        run.course = Course([NEVER], Pace())
        return
    answer = _answer(p5, run, opening, run.seen.headers)
    limit = p5.options.context_limit
    instead = TOO_LONG if limit and answer.input_tokens > limit else None
    outcome, pace = p5.decide(CheckedRequest(AGENT, answer, instead=instead), opening.body)
    if isinstance(outcome, Reply):
        # the stream is open already, so the append gets the status
        run.replies[0], outcome = outcome, [NEVER]
    run.course = Course(map(answer.bound, outcome), pace)


def _answer(p5: P5, run: Run, opening: Opening, headers: Mapping[str, str]) -> AgentAnswer:
    images = [image["mime_type"] for image in opening.body["selected_images"]]
    ask, as_text = read_prompt(opening.prompt, images, mode=opening.mode, thinks=opening.thinks)
    if opening.body["billed_fast"]:
        p5.billed_fast += 1
    return AgentAnswer(
        ask=ask,
        run=run,
        options=p5.options,
        ids=p5.ids,
        prompt=opening.prompt,
        input_tokens=tokens_of(opening.prompt),
        mode=opening.mode,
        as_text=as_text,
        parked=headers.get("x-cursor-streaming") != "true",
    )


#: Not an event stream: the name passes proxies.
_HEAD = {"content-type": "text/event-stream", "cache-control": "no-cache"}


class Cancelled(Exception):
    """The client cancelled the run."""


class RunPlayer(BodyPlayer):
    """Plays a run, with heartbeats while it waits for the client."""

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
    """Serves one RunSSE to its end."""
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
    """The request id in the one envelope that opens a stream. Raises Refused."""
    try:
        [(flags, payload)] = read_envelopes(data)
        found = Message(payload).text(1)
    except ValueError as problem:
        raise FailedCall("invalid_argument", f"protocol error: {problem}").refused() from None
    if flags or not found:
        raise FailedCall("invalid_argument", "protocol error: one envelope with a request id is expected").refused()
    return found


async def _begin(p5: P5, run: Run, seen: Received, player: RunPlayer) -> Reply | None:
    """Runs what precedes the head of the stream; may return another answer than a stream."""
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
