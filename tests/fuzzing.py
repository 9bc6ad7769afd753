"""One fuzz case: a request to a proxy in this process, in front of an upstream that answers with the bytes of the case,
and what is wrong with what came of it. `scripts/fuzz` makes cases, `tests/test_fuzz_cases.py` repeats those kept."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
from checks import IllegalStream, check_message_stream
from cursor_talk import open_runs
from fuzz_stub import FuzzCase, Step, Stub
from harness import Answer, Live, configured, parse_events
from openai_streams import check_chat_chunks, check_response_events

from proxy.providers.p5_cursor.wire.envelopes import EnvelopeDecoder
from proxy.providers.p5_cursor.wire.protobuf import members
from proxy.sandbox import Sandbox

#: CPU seconds that one step of the loop may take.
MAX_STEP_S = 0.25
#: Seconds until an answer counts as hanging.
HANGS_S = 12.0

#: What stands in an answer that has an end; without any of them it broke off.
_ENDS = {
    "responses": re.compile(rb"response\.(completed|incomplete|done)"),
    # calls that are done are taken, also when the socket closes behind them
    "socket": re.compile(rb"response\.(completed|incomplete|done)|output_item\.done[^\n]*_call"),
    "chat": re.compile(rb'"finish_reason":\s*[^n\s]|\[DONE\]'),
    "messages": re.compile(rb'"stop_reason":\s*[^n\s]|message_stop'),
}
#: What is off by default and has routes.
_SWITCHES = dict.fromkeys(
    ("openai_routes", "limits_routes", "monitor_page", "image_routes", "transcription_route", "metrics"), True
)


class Rig:
    """The application, the stub, and what the loop and the logs tell."""

    def __init__(self, live: Live, stub: Stub, secrets: list[bytes]) -> None:
        self.live = live
        self.stub = stub
        self._secrets = secrets
        self.lost: list[str] = []
        #: Of the answers to the last case.
        self.statuses: list[int] = []
        self.slowest = 0.0
        self._plain_config = live.config
        self._start = asyncio.all_tasks()

    async def run(self, case: FuzzCase) -> list[str]:
        """What is wrong; nothing, if all is well."""
        self.stub.steps, self.stub.services, self.stub.played = list(case.upstream), case.services, []
        await asyncio.sleep(0)  # what made the case is no part of its first step
        self.slowest, self.statuses = 0.0, []
        self.live.notes.records.clear()
        self.live.watcher.told.clear()
        self.lost.clear()
        self.live.sandbox.p1.script.replace(case.script)
        transport = "websocket" if case.script else "http"
        self.live.config = configured(self._plain_config, p1_transport=transport, **case.config)
        data = None if case.body is None else Step(case.body).raw
        wrong: list[str] = []
        try:
            async with asyncio.timeout(HANGS_S):
                for _ in range(case.times):
                    answer = await self._asked(case, data)
                    self.statuses.append(answer.status)
                    wrong += judge(case, answer, self.stub.played or scripted(case))
                    wrong += [f"a secret in the answer: {one[:4]!r}" for one in self._secrets if _says(answer, one)]
        except TimeoutError:
            wrong.append("it hangs")
        except aiohttp.ClientPayloadError as error:
            # a stream that broke is broken off here too, where it goes through as it is
            wrong += [] if self._is_native(case) else [f"no whole answer: {error!r}"[:300]]
        except (aiohttp.ClientError, ValueError) as error:
            wrong.append(f"no HTTP answer: {error!r}"[:300])
        return wrong + self._noticed()

    def _is_native(self, case: FuzzCase) -> bool:
        return case.path.startswith("/v1/responses") and any(one.startswith("p1-") for one, _ in self.stub.played)

    async def _asked(self, case: FuzzCase, data: bytes | None) -> Answer:
        url = self.live.url + case.path
        async with self.live.client.request(case.method, url, data=data, headers=case.headers) as response:
            endless = response.method == "GET" and response.content_type == "text/event-stream"
            raw = await (response.content.readany() if endless else response.read())
            return Answer(response.status, response.headers, raw)

    def _noticed(self) -> list[str]:
        records = self.live.notes.records
        internal = [f"{msg}: {fields}"[:600] for _, _, msg, fields in records if msg == "internal_error"]
        slow = [f"a step of {self.slowest:.2f} s"] if self.slowest > MAX_STEP_S else []
        return [*internal, *(f"in the log: {one}" for one in self.lost), *slow]

    async def leftovers(self) -> list[str]:
        """Tasks that a proxy with nothing to do still has beyond those of its start."""
        await open_runs(self.live).close()  # they may wait for their clients
        for _ in range(100):
            left = asyncio.all_tasks() - self._start - {asyncio.current_task()}
            # connections that are kept for the next request
            left = {task for task in left if "Stub.serve" not in repr(task) and "aiohttp" not in repr(task)}
            if not left:
                return []
            await asyncio.sleep(0.02)
        return [f"a task is left: {task!r}"[:300] for task in left]


@contextlib.asynccontextmanager
async def rig(root: Path, plain: Mapping[str, Step] | None = None, **options: Any) -> AsyncIterator[Rig]:
    """One that runs. `plain`: what a wire answers where a case says nothing; else the sandbox does."""
    async with Sandbox() as sandbox:
        stub = Stub(sandbox, plain or {})
        server = await asyncio.start_server(stub.serve, "127.0.0.1", 0, limit=1 << 22)
        stub.origin = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        settings = {name: value.replace(sandbox.origin, stub.origin) for name, value in sandbox.settings().items()}
        known = [value.encode() for name, value in settings.items() if name.endswith("_KEY")]
        async with Live(sandbox, root, settings=settings, **{**_SWITCHES, **options}) as live:
            for path in root.rglob("*.json"):
                path.write_text(path.read_text().replace(sandbox.origin, stub.origin))  # where to sign in again
            running = Rig(live, stub, known + _tokens(root))
            with _watched(running):
                yield running
        server.close()


def _tokens(root: Path) -> list[bytes]:
    """The texts of the credential files that nobody may see."""
    found: list[Any] = [json.loads(path.read_text()) for path in root.rglob("*.json")]
    secret = []
    while found:
        value = found.pop()
        if isinstance(value, dict):
            secret += [str(one).encode() for name, one in value.items() if _is_secret(name.lower(), one)]
            found += value.values()
        elif isinstance(value, list):
            found += value
    return secret


def _is_secret(name: str, value: Any) -> bool:
    named = any(word in name for word in ("token", "access", "refresh", "key", "secret"))
    return named and isinstance(value, str) and len(value) >= 12


@contextlib.contextmanager
def _watched(running: Rig) -> Iterator[None]:
    """Measures every step of the loop, and keeps what asyncio and aiohttp report."""
    plain_run, clock = asyncio.Handle._run, time.thread_time

    def timed_run(handle: asyncio.Handle) -> None:
        begun = clock()
        plain_run(handle)
        running.slowest = max(running.slowest, clock() - begun)

    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            error = record.exc_info[1] if record.exc_info else None
            if not type(error).__module__.startswith("aiohttp.") and not _is_of_simulator(record):
                running.lost.append(f"{record.getMessage()} {error!r}"[:600])

    keeper = Keeper(logging.ERROR)
    logging.getLogger().addHandler(keeper)
    asyncio.Handle._run = timed_run  # type: ignore[method-assign]
    try:
        yield
    finally:
        asyncio.Handle._run = plain_run  # type: ignore[method-assign]
        logging.getLogger().removeHandler(keeper)


def _is_of_simulator(record: logging.LogRecord) -> bool:
    """A simulator that cannot read a mutated request, or write a mutated event, is no fault of the proxy."""
    return bool(record.exc_info) and "/proxy/sandbox/" in logging.Formatter().formatException(record.exc_info)  # type: ignore[arg-type]


def _says(answer: Answer, secret: bytes) -> bool:
    return secret in answer.raw or any(secret in str(value).encode() for value in answer.headers.values())


def judge(case: FuzzCase, answer: Answer, played: list[tuple[str, Step]]) -> list[str]:
    """What is wrong with an answer."""
    if case.method == "HEAD":
        return []
    if b"internal error of the proxy" in answer.raw:  # other 500 are those of upstreams
        return [f"status {answer.status}: {answer.raw[-300:]!r}"]
    route = case.path.partition("?")[0]
    try:
        native = route == "/v1/responses" and any(wire.startswith("p1-") for wire, _ in played)
        complete = _native_end(answer) if native else _is_complete(route, answer)
    except IllegalStream as error:
        # blocks that are not known yet pass between two ends that speak the same API
        later = "unknown block type" in str(error) and any(wire == "p4-messages" for wire, _ in played)
        return [] if later else [f"{error}: {answer.raw[-600:]!r}"[:1500]]
    except (AssertionError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        return [f"{type(error).__name__} {error}: {answer.raw[-600:]!r}"[:1500]]
    if case.services and case.method == "GET" and not complete:
        return [f"a service's answer made it {answer.status}"]
    if complete and played and not has_end(*played[-1]):
        return ["a broken answer looks complete"]
    return []


def scripted(case: FuzzCase) -> list[tuple[str, Step]]:
    """What the steps of a script say, as far as an end is looked for in it."""
    said = [b"events: " + json.dumps(step.get("events", "")).encode() for step in case.script]
    return [("p1-socket", Step.of(raw)) for raw in said]


def has_end(wire: str, step: Step) -> bool:
    """Whether an end was said in it, as far as its bytes tell."""
    if wire == "p5-connect":
        return _has_end(step)
    end = _ENDS.get(wire.partition("-")[2])
    whole = step.raw.lstrip()[:1] in (b"{", b"[")
    return end is None or whole or end.search(step.raw) is not None


def _has_end(step: Step) -> bool:
    """Whether a run says that it is over, or asks for something of the client. A body that ends as HTTP has it, between
    two envelopes, is an end as well; errors in the last envelope would have come out as such."""
    decoder = EnvelopeDecoder()
    try:
        envelopes = decoder.feed(step.raw)
        if any(one.end for one in envelopes) or (step.end == "end" and not decoder.pending):
            return True
        messages = [members("AgentServerMessage", one.payload) for one in envelopes]
    except ValueError:
        return True  # what was read before it is not told here
    said = [pair for message in messages for pair in message]
    asked = any(name in ("exec_server_message", "interaction_query") for name, _ in said)
    return asked or any("turn_ended" in str(value) for name, value in said if name == "interaction_update")


def _is_complete(route: str, answer: Answer) -> bool:
    """Whether the client has reason to take it for whole. Raises where it has no legal form."""
    kind = answer.headers.get("content-type", "").partition(";")[0]
    if kind == "text/event-stream" and route in _STREAMS:
        return _STREAMS[route](answer)
    if kind == "application/json":
        body = json.loads(answer.raw, parse_constant=_no_number)
        if answer.status >= 400:
            assert isinstance(body.get("error"), dict) or route not in _STREAMS, "no error object"
        return answer.status < 400
    assert answer.status < 400 or route not in _STREAMS, f"an error as {kind}"
    return answer.status < 400


def _no_number(name: str) -> None:
    raise ValueError(f"{name} in JSON")


def _messages_end(answer: Answer) -> bool:
    events = parse_events(answer.raw)
    check_message_stream(events)
    return events[-1]["type"] == "message_stop"


def _chat_end(answer: Answer) -> bool:
    frames = answer.raw.decode().split("\n\n")
    assert frames[-2:] == ["data: [DONE]", ""], frames[-3:]
    chunks = [json.loads(one.removeprefix("data: ")) for one in frames[:-2] if not one.startswith(":")]
    if chunks and "error" in chunks[-1]:
        check_chat_chunks(chunks[:-1], include_usage=any("usage" in one for one in chunks[:-1]), cut=True)
        return False
    check_chat_chunks(chunks, include_usage="usage" in chunks[0])
    return True


def _responses_end(answer: Answer) -> bool:
    frames = [one for one in answer.raw.decode().split("\n\n") if one and not one.startswith(":")]
    events = [json.loads(one.partition("data: ")[2]) for one in frames if one != "data: [DONE]"]
    response = check_response_events(events)
    return response is not None and response["status"] in ("completed", "incomplete")


def _native_end(answer: Answer) -> bool:
    """Events go through as they are: only an end is looked for."""
    return answer.status < 400 and any(end in answer.raw for end in (b"response.completed", b"response.incomplete"))


_STREAMS = {
    "/v1/messages": _messages_end,
    "/v1/chat/completions": _chat_end,
    "/v1/responses": _responses_end,
}
__all__ = ["FuzzCase", "IllegalStream", "Rig", "Step", "judge", "rig"]
