"""`doctor --live`: one tiny conversation with each service, to check whether its wire has changed.

The requests go through the whole proxy, in this process and on a loopback port, with the settings and accounts of the
user. The service's real answer is shown beside the expected one, without credentials.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

from proxy.cli.account import SignIn, sign_ins
from proxy.cli.command import APP, Context, say
from proxy.cli.config_file import ConfigFile, proxies_of
from proxy.cli.doctor.attempts import MemoryCaptures, attempt_lines
from proxy.cli.doctor.finding import Setup
from proxy.cli.doctor.report import Style
from proxy.cli.doctor.scrub import Scrubber
from proxy.config import Config, ConfigError
from proxy.core.messages import Fold
from proxy.core.sse import SSEDecoder, load_json
from proxy.providers.entry import Entry, account_titles, named
from proxy.server.app import create_app

#: Seconds for one step: models may think for long, but not for this.
STEP_S = 120.0
MAX_TOKENS = 1024
TOOL = {
    "name": "Read",
    "description": "Reads a file and returns its text.",
    "input_schema": {"type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["file_path"]},
}
#: Not a real file: the call is checked and never run.
FILE = "/tmp/model-proxy-doctor.txt"  # noqa: S108
PLAIN_PROMPT = "Say OK."
TOOL_PROMPT = f"Call the tool Read once, for the file below, and say nothing else.\nuse Read: {FILE}"
#: Largest factor between the estimate and the service's count, which includes instructions of its own.
FAR = 20


@dataclass(slots=True)
class LiveReply:
    """The proxy's answer. `answer` is folded from the stream, or the body."""

    status: int = 0
    answer: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    took_s: float = 0.0

    @property
    def usage(self) -> Mapping[str, Any]:
        found = self.answer.get("usage")
        return found if isinstance(found, dict) else {}

    @property
    def blocks(self) -> list[dict[str, Any]]:
        found = self.answer.get("content")
        return [block for block in found if isinstance(block, dict)] if isinstance(found, list) else []


#: Yields the faults of a reply, in words. The second argument has the replies before it.
Verdict = Callable[[LiveReply, Mapping[str, LiveReply]], Iterator[str]]


def _plain(reply: LiveReply, _before: Mapping[str, LiveReply]) -> Iterator[str]:
    if not any(block.get("type") == "text" and block.get("text") for block in reply.blocks):
        yield "there is no text"
    if reply.answer.get("stop_reason") != "end_turn":
        yield f"it ended with {reply.answer.get('stop_reason')!r}, not with 'end_turn'"
    yield from _counted(reply)


def _tool(reply: LiveReply, _before: Mapping[str, LiveReply]) -> Iterator[str]:
    calls = [block for block in reply.blocks if block.get("type") == "tool_use"]
    if not calls:
        yield "the tool was not called"
        return
    if calls[0].get("name") != TOOL["name"]:
        yield f"it called {calls[0].get('name')!r}"
    if calls[0].get("input", {}).get("file_path") != FILE:
        yield f"the arguments of the call are incomplete: {calls[0].get('input')!r}"
    if reply.answer.get("stop_reason") != "tool_use":
        yield f"it ended with {reply.answer.get('stop_reason')!r}, not with 'tool_use'"


def _counted(reply: LiveReply) -> Iterator[str]:
    if not _input_of(reply.usage) or not reply.usage.get("output_tokens"):
        yield "the service reported no usage"


def _count(reply: LiveReply, before: Mapping[str, LiveReply]) -> Iterator[str]:
    estimate, actual = reply.answer.get("input_tokens"), _input_of(before["plain turn"].usage)
    if not isinstance(estimate, int) or estimate <= 0:
        yield "there is no number"
    elif actual and estimate > actual * FAR:
        yield f"the estimate is {estimate}, and the service counted {actual}"


def _input_of(usage: Mapping[str, Any]) -> int:
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return sum(int(usage.get(name) or 0) for name in names)


@dataclass(frozen=True, slots=True)
class LiveStep:
    """One request.

    good  the verdict on an expected reply
    """

    name: str
    path: str
    body: Mapping[str, Any]
    wrong: Verdict
    good: str


def _asked(prompt: str, **members: Any) -> dict[str, Any]:
    return {"max_tokens": MAX_TOKENS, "messages": [{"role": "user", "content": prompt}], **members}


STEPS = (
    LiveStep(
        "plain turn", "/v1/messages", _asked(PLAIN_PROMPT, stream=True), _plain, "an answer, its end and its usage came"
    ),
    LiveStep(
        "tool turn",
        "/v1/messages",
        _asked(TOOL_PROMPT, stream=True, tools=[TOOL]),
        _tool,
        "the tool call came with complete arguments",
    ),
    LiveStep(
        "count",
        "/v1/messages/count_tokens",
        {"messages": _asked(PLAIN_PROMPT)["messages"]},
        _count,
        "the estimate, made without the service, is of the same size as the service's count",
    ),
)


async def live(label: str, model: str | None, context: Context) -> int:
    """Runs all conversations; 1 when a step failed. Raises ConfigError for a provider that cannot be asked."""
    file = ConfigFile(context, new=True)
    chosen = _chosen(label, sign_ins(context, file), context)
    if model and len(chosen) > 1:
        raise ConfigError("--model needs one provider: --live LABEL --model NAME")
    setup = Setup(context, file, file.config, ())
    scrubber, attempts = Scrubber(setup), MemoryCaptures()
    say("asks with your account: two tiny answers of each provider, some hundred tokens")
    good = True
    async with _proxy(setup, attempts) as (address, key):
        for entry in chosen:
            screen = _Screen(scrubber, Style.of(sys.stdout, context.environment))
            asked = model or entry.catalog_now(setup.config).main
            good &= await _provider(entry, asked, (address, key), attempts, screen)
    if not good:
        say(f"to report it: attach these lines, and what {context.program} doctor --bundle writes")
    return 0 if good else 1


def _chosen(label: str, known: list[SignIn], context: Context) -> list[Entry]:
    usable = {one.entry.label: one for one in known if one.usable and one.entry.build is not None}
    if label == "all":
        if not usable:
            raise ConfigError(f"no account is signed in: {context.program} auth status")
        return [one.entry for one in usable.values()]
    entry = named(label, context.providers)
    if entry is None:
        raise ConfigError(f"unknown provider {label!r}: one of {account_titles(context.providers)}, or all")
    if entry.label not in usable:
        raise ConfigError(f"{entry.title}: not signed in; {context.program} auth status {entry.label}")
    return [entry]


@dataclass(frozen=True, slots=True)
class _Screen:
    """Prints lines without secrets."""

    scrubber: Scrubber
    style: Style

    def line(self, text: str) -> None:
        say(self.style.text(self.scrubber.text(text)))

    def verdict(self, wrong: list[str], good: str) -> None:
        words = "; ".join(wrong) or good
        say(f"  {self.style.mark('fail' if wrong else 'ok')} {self.style.text(self.scrubber.text(words))}")


async def _provider(
    entry: Entry, model: str, place: tuple[str, str], attempts: MemoryCaptures, screen: _Screen
) -> bool:
    """Runs the steps of one provider; whether all replies were as expected."""
    screen.line(f"{entry.title}, {model}")
    replies: dict[str, LiveReply] = {}
    all_good = True
    for step in STEPS:
        attempts.kept.clear()
        reply = replies[step.name] = await _sent(step, model, place, session=f"doctor-{step.path}-{step.name}")
        wrong = _wrong(step, reply, replies)
        all_good &= not wrong
        screen.line(f"{step.name}: POST {step.path}, {reply.status or 'no answer'}, {reply.took_s:.1f} s")
        for attempt in attempts.kept:
            for line in attempt_lines(attempt):
                screen.line(f"    {line}")
        screen.line(f"    usage: {_usage(step, reply)}")
        screen.verdict(wrong, step.good)
    tokens = sum(_input_of(reply.usage) + int(reply.usage.get("output_tokens") or 0) for reply in replies.values())
    screen.line(f"{entry.title}: {tokens} tokens in all")
    return all_good


def _wrong(step: LiveStep, reply: LiveReply, replies: Mapping[str, LiveReply]) -> list[str]:
    if reply.error:
        return [reply.error]
    return [*step.wrong(reply, replies)]


def _usage(step: LiveStep, reply: LiveReply) -> str:
    if step.wrong is _count:
        return f"{reply.answer.get('input_tokens')} tokens, estimated here"
    numbers = {name: value for name, value in reply.usage.items() if isinstance(value, int)}
    return ", ".join(f"{name} {value}" for name, value in numbers.items()) or "none reported"


# -- the proxy


@asynccontextmanager
async def _proxy(setup: Setup, attempts: MemoryCaptures) -> AsyncIterator[tuple[str, str]]:
    """Runs a proxy with these settings on a port of its own inside the block; yields its address and its key."""
    config = setup.config.changed(Config, bind_address="127.0.0.1", port=0)
    app = create_app(
        config,
        config_dir=setup.config_root,
        captures=attempts,
        proxies=proxies_of(setup.environment),
        entries=setup.context.providers,
        packed_bodies=True,
        command=setup.program,
    )
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, auto_decompress=False, shutdown_timeout=0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        yield f"http://127.0.0.1:{port}", config.api_key.reveal() if config.api_key else APP
    finally:
        await runner.cleanup()


async def _sent(step: LiveStep, model: str, place: tuple[str, str], *, session: str) -> LiveReply:
    """Sends a step; the reply has any failure on the way."""
    address, key = place
    headers = {"x-api-key": key, "x-claude-code-session-id": session.replace(" ", "-").replace("/", "-")}
    reply, begun = LiveReply(), time.monotonic()
    body = {"model": model, **step.body}
    try:
        async with (
            asyncio.timeout(STEP_S),
            aiohttp.ClientSession() as http,
            http.post(address + step.path, json=body, headers=headers) as answer,
        ):
            reply.status = answer.status
            _read(await answer.read(), answer.content_type, reply)
    except TimeoutError:
        reply.error = f"no complete answer within {STEP_S:g} s"
    except (aiohttp.ClientError, ValueError, LookupError, OverflowError) as error:
        reply.error = f"the answer is incomplete: {type(error).__name__}: {error}"
    reply.took_s = time.monotonic() - begun
    return reply


def _read(body: bytes, kind: str, reply: LiveReply) -> None:
    """Reads an answer. Raises ValueError and LookupError for what is not ours."""
    if kind != "text/event-stream":
        reply.answer = load_json(body.decode())
        if reply.status >= 400:
            reply.error = _error_of(reply.answer)
        return
    fold, decoder = Fold(), SSEDecoder()
    for event in (load_json(data.decode()) for _, data in (*decoder.feed(body), *decoder.end())):
        if event.get("type") == "error":
            reply.error = _error_of(event)
        fold.add([event])
    reply.answer = fold.message
    if not fold.complete and not reply.error:
        reply.error = "the answer broke off"


def _error_of(value: Mapping[str, Any]) -> str:
    error = value.get("error")
    return str(error.get("message")) if isinstance(error, dict) else str(value)
