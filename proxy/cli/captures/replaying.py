"""`captures replay`: sends the request of a capture again, to simulated upstreams."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proxy.cli.captures.comparing import RECEIVED
from proxy.cli.captures.restoring import Restorer, restored_headers
from proxy.cli.captures.selection import chosen
from proxy.cli.command import APP, Command, Context, say
from proxy.cli.config_file import ConfigFile
from proxy.cli.printable import counted, one_line, printable
from proxy.config import Config, ConfigError
from proxy.core.sse import SSEDecoder, dump_json
from proxy.loading import load, settings_of
from proxy.observe.capture.layout import METADATA
from proxy.observe.capture.reading.folder import CaptureFolder
from proxy.settings import Setting, url

if TYPE_CHECKING:
    from proxy.sandbox import Sandbox


@dataclass(slots=True)
class AnswerSummary:
    """The text, calls and end of an answer. `end` is "" until it is whole, `error` is "" unless it failed."""

    text: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    end: str = ""
    error: str = ""
    events: int = 0


def summary_of(body: bytes, *, stream: bool) -> AnswerSummary:
    """Reads a whole answer."""
    summary = AnswerSummary()
    values = _events(body) if stream else _whole(body)
    for value in values:
        summary.events += 1
        _read(value, summary)
    return summary


def _events(body: bytes) -> Iterator[Mapping[str, Any]]:
    decoder = SSEDecoder()
    for _, data in [*decoder.feed(body), *decoder.end()]:
        if data.strip() != b"[DONE]":
            yield from _whole(data)


def _whole(body: bytes) -> Iterator[Mapping[str, Any]]:
    try:
        value = json.loads(body)
    except ValueError:
        return
    if isinstance(value, dict):
        yield value


def _read(value: Mapping[str, Any], summary: AnswerSummary) -> None:
    if value.get("error"):
        error = value["error"]
        summary.error = str(error.get("message") if isinstance(error, Mapping) else error)
    for choice in _dicts(value.get("choices")):
        _message(_dict(choice.get("delta") or choice.get("message")), summary)
        summary.end = str(choice.get("finish_reason") or summary.end)
    for block in _dicts(value.get("content")):
        _block(block, summary)
    for item in _dicts(value.get("output")):
        _item(item, summary)
    read = _EVENTS.get(str(value.get("type")))
    if read:
        read(value, summary)
    elif value.get("object") == "response":
        _ended(value, summary)
    elif "input_tokens" in value:
        summary.text.append(f"{value['input_tokens']} tokens")
        summary.end = "counted"


def _message(message: Mapping[str, Any], summary: AnswerSummary) -> None:
    """Adds a message or a delta of a chat."""
    summary.text.append(_text(message.get("content")))
    summary.calls += (
        name for call in _dicts(message.get("tool_calls")) if (name := _text(_dict(call.get("function")).get("name")))
    )


def _block(block: Mapping[str, Any], summary: AnswerSummary) -> None:
    summary.text.append(_text(block.get("text")))
    if block.get("type") == "tool_use":
        summary.calls.append(_text(block.get("name")))


def _item(item: Mapping[str, Any], summary: AnswerSummary) -> None:
    summary.text += (_text(part.get("text")) for part in _dicts(item.get("content")) if item.get("type") == "message")
    if str(item.get("type")).endswith("_call"):
        summary.calls.append(_text(item.get("name") or item.get("type")))


def _ended(response: Mapping[str, Any], summary: AnswerSummary) -> None:
    summary.end = _text(response.get("status"))
    if response.get("error"):
        summary.error = _text(_dict(response["error"]).get("message"))


def _delta(event: Mapping[str, Any], summary: AnswerSummary) -> None:
    summary.text.append(_text(_dict(event.get("delta")).get("text")))


def _stopped(event: Mapping[str, Any], summary: AnswerSummary) -> None:
    summary.end = _text(_dict(event.get("delta")).get("stop_reason"))


def _last(event: Mapping[str, Any], summary: AnswerSummary) -> None:
    _ended(_dict(event.get("response")), summary)


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _dicts(value: Any) -> Iterable[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


#: type of an event, or of a whole message -> its reader
_EVENTS = {
    "message": lambda event, summary: setattr(summary, "end", _text(event.get("stop_reason"))),
    "content_block_start": lambda event, summary: _block(_dict(event.get("content_block")), summary),
    "content_block_delta": _delta,
    "message_delta": _stopped,
    "response.output_text.delta": lambda event, summary: summary.text.append(_text(event.get("delta"))),
    "response.output_item.added": lambda event, summary: _item({**_dict(event.get("item")), "content": []}, summary),
    "response.completed": _last,
    "response.incomplete": _last,
    "response.failed": _last,
}


#: kind of a request -> its route: the path of a capture may have the prefix of another application
_ROUTES = {
    "messages": "/v1/messages",
    "count_tokens": "/v1/messages/count_tokens",
    "responses": "/v1/responses",
    "chat_completions": "/v1/chat/completions",
}
_EVENT_STREAM = "text/event-stream"


def _arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
    parser.add_argument("capture", nargs="?", help="the beginning of a request id, or a path; the newest without one")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--streamed", action="store_true", help="ask for a stream, whatever the client asked for")
    form.add_argument("--whole", action="store_true", help="ask for an answer in one piece")
    parser.add_argument("--raw", action="store_true", help="print the answer as it comes")
    parser.add_argument("--script", type=Path, metavar="FILE", help="faults for the simulated upstreams to play")


@dataclass(frozen=True, slots=True)
class _Request:
    """The request to send."""

    path: str
    headers: list[tuple[str, str]]
    body: dict[str, Any]
    restored: int


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    media_type: str
    body: bytes

    @property
    def streamed(self) -> bool:
        return self.media_type == _EVENT_STREAM


async def _run(arguments: argparse.Namespace, context: Context) -> int:
    from proxy.sandbox import Sandbox, ScriptError

    capture = chosen(arguments.capture, arguments, context)
    try:
        sandbox = Sandbox(script=arguments.script or ())
    except (OSError, ScriptError) as error:
        raise ConfigError(f"--script: {error}") from None
    async with sandbox:
        request = _request(capture, sandbox)
        if arguments.streamed or arguments.whole:
            request.body["stream"] = arguments.streamed
        say(one_line(f"POST {request.path} to a proxy in front of a simulated {capture.provider}"))
        if request.restored:
            say(f"{counted(request.restored, 'redacted value')} replaced by a stand-in")
        async with _proxy(_config(capture, sandbox, context), sandbox, context) as address:
            answer = await _sent(address, request)
    summary = summary_of(answer.body, stream=answer.streamed)
    good = answer.status < 300 and bool(summary.end) and not summary.error
    _print(answer, summary, raw=arguments.raw)
    return 0 if good else 1


def _request(capture: CaptureFolder, sandbox: Sandbox) -> _Request:
    metadata, artifact = capture.read_object(METADATA), capture.last(RECEIVED)
    if artifact is None:
        raise ConfigError("this capture has no request: it was not kept, because it was too large or the disk was full")
    upstream = sandbox.upstreams.get(capture.provider)
    if upstream is None:
        raise ConfigError(f"there is no simulator of {capture.provider}")
    model = str(metadata.get("model"))
    restorer = Restorer(capture.provider, lambda item: upstream.encrypted(item, model))
    body: dict[str, Any] = restorer.value(artifact.object())
    path = _ROUTES.get(str(metadata.get("kind")))
    if path is None:
        raise ConfigError("this capture does not say what kind of request it was: its metadata cannot be read")
    query = metadata.get("query")
    headers = metadata.get("headers")
    return _Request(
        path=f"{path}?{query}" if query else path,
        headers=restored_headers(headers if isinstance(headers, dict) else {}),
        body=body,
        restored=restorer.restored,
    )


# -- the proxy


def _config(capture: CaptureFolder, sandbox: Sandbox, context: Context) -> Config:
    """The user's settings, with the sandbox's addresses and credentials in place of all that leads out of this machine.
    An alias goes to its original provider."""
    config = ConfigFile(context).config
    settings = settings_of(context.providers)
    simulated, _ = load(sandbox.settings(), settings=settings)
    for setting in settings:
        if setting.secret or setting.parse is url:
            config = _with(config, setting, _simulated(setting, simulated, sandbox))
    aliases = {entry.label for entry in context.providers if entry.catalog.main}
    changes = {"alias_provider": capture.provider} if capture.provider in aliases else {}
    return config.changed(Config, bind_address="127.0.0.1", openai_routes=True, captures=False, **changes)


def _simulated(setting: Setting, simulated: Config, sandbox: Sandbox) -> Any:
    """The sandbox's value of a setting; addresses that it does not set lead there too."""
    value = getattr(simulated.section(setting.section), setting.field)
    is_set = any(name in sandbox.settings() for name in setting.variables)
    return sandbox.origin if setting.parse is url and not is_set else value


def _with(config: Config, setting: Setting, value: Any) -> Config:
    return config.changed(setting.section, **{setting.field: value})


@asynccontextmanager
async def _proxy(config: Config, sandbox: Sandbox, context: Context) -> AsyncIterator[str]:
    """Runs a proxy with these settings inside the block; yields its address."""
    from aiohttp import web

    from proxy.server.app import create_app

    with tempfile.TemporaryDirectory(prefix=f"{APP}-replay-") as folder:
        sandbox.write_credentials(Path(folder))
        app = create_app(config, config_dir=Path(folder), entries=context.providers, packed_bodies=True)
        runner = web.AppRunner(app, access_log=None, auto_decompress=False, shutdown_timeout=0)
        await runner.setup()
        try:
            await web.TCPSite(runner, config.bind_address, 0).start()
            host, port = runner.addresses[0][:2]
            yield f"http://{host}:{port}"
        finally:
            await runner.cleanup()


async def _sent(address: str, request: _Request) -> _Answer:
    from aiohttp import ClientError, ClientSession

    headers = [*request.headers, ("content-type", "application/json")]
    data = dump_json(request.body).encode("utf-8", "replace")
    async with ClientSession() as session:
        try:
            async with session.post(address + request.path, data=data, headers=headers) as response:
                body = await response.read()
                return _Answer(response.status, response.content_type, body)
        except ClientError as error:
            raise ConfigError(f"the answer broke off: {type(error).__name__}: {error}") from None


# -- output


def _print(answer: _Answer, summary: AnswerSummary, *, raw: bool) -> None:
    form = f"stream of {counted(summary.events, 'event')}" if answer.streamed else answer.media_type
    say(f"{answer.status}, {form}")
    if raw or (answer.status >= 300 and not summary.error):
        say(printable(answer.body.decode("utf-8", "backslashreplace")).rstrip("\n"))
        return
    if text := "".join(summary.text):
        say(printable(text))
    for name in summary.calls:
        say(f"calls {one_line(name)}")
    if summary.error:
        say(f"error: {one_line(summary.error)}")
    say(f"end: {one_line(summary.end) or 'none, the answer is incomplete'}")


REPLAY = Command("replay", "send a captured request to a proxy in front of simulated upstreams", _run, _arguments)
