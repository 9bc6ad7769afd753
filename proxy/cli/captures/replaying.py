"""`captures replay`: the request of a capture once more, against simulated upstreams."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proxy.cli.captures.answers import Told, told_by
from proxy.cli.captures.comparing import RECEIVED
from proxy.cli.captures.printable import counted, one_line, printable
from proxy.cli.captures.restoring import Restorer, restored_headers
from proxy.cli.captures.selection import chosen
from proxy.cli.command import APP, Command, Context, say
from proxy.cli.config_file import ConfigFile
from proxy.config import Config, ConfigError
from proxy.core.sse import dump_json
from proxy.loading import load, settings_of
from proxy.observe.capture.layout import METADATA
from proxy.observe.capture.reading.folder import CaptureFolder
from proxy.settings import Setting, url

if TYPE_CHECKING:
    from proxy.sandbox import Sandbox

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
    """What is sent again."""

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
    told = told_by(answer.body, stream=answer.streamed)
    good = answer.status < 300 and bool(told.end) and not told.error
    _print(answer, told, raw=arguments.raw)
    return 0 if good else 1


def _request(capture: CaptureFolder, sandbox: Sandbox) -> _Request:
    metadata, artifact = capture.told(METADATA), capture.last(RECEIVED)
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
    """The user's settings, but nothing of them leads out of this machine, and no credential is used: those are of the
    sandbox. An alias goes to the provider that it went to."""
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
    """What the sandbox says; an address of which it says nothing leads there too."""
    value = getattr(simulated.section(setting.section), setting.field)
    told = any(name in sandbox.settings() for name in setting.variables)
    return sandbox.origin if setting.parse is url and not told else value


def _with(config: Config, setting: Setting, value: Any) -> Config:
    return config.changed(setting.section, **{setting.field: value})


@asynccontextmanager
async def _proxy(config: Config, sandbox: Sandbox, context: Context) -> AsyncIterator[str]:
    """A proxy with these settings, until the block ends; where it listens."""
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


# -- what is said


def _print(answer: _Answer, told: Told, *, raw: bool) -> None:
    form = f"stream of {counted(told.events, 'event')}" if answer.streamed else answer.media_type
    say(f"{answer.status}, {form}")
    if raw or (answer.status >= 300 and not told.error):
        say(printable(answer.body.decode("utf-8", "backslashreplace")).rstrip("\n"))
        return
    if text := "".join(told.text):
        say(printable(text))
    for name in told.calls:
        say(f"calls {one_line(name)}")
    if told.error:
        say(f"error: {one_line(told.error)}")
    say(f"end: {one_line(told.end) or 'none, the answer is not whole'}")


REPLAY = Command("replay", "send a captured request to a proxy in front of simulated upstreams", _run, _arguments)
