"""The command line: the only place that knows files, variables, signals and the terminal."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from proxy.config import Config, ConfigError
from proxy.core.outgoing_proxies import OutboundProxies, UnusableProxy
from proxy.errors import ProxyError
from proxy.loading import kept, load, overrides, read_file, source_of
from proxy.settings import is_loopback
from proxy.version import __version__

if TYPE_CHECKING:
    from aiohttp import ClientSession, web

    from proxy.observe.log.file_log import FileLog
    from proxy.providers.contract import Account

APP = "model-proxy"
#: What the runner may take beyond the time that answers have to finish.
CUT_S = 1.0
LOG_FLUSH_S = 2.0
#: The settings file is looked at again after this long.
RELOAD_S = 1.0


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    arguments = _parse(list(sys.argv[1:] if argv is None else argv))
    status: int = arguments.failure
    try:
        status = asyncio.run(arguments.run(arguments, os.environ))
    except ProxyError as error:
        print(f"{APP}: {error.message}", file=sys.stderr)
    except OSError as error:  # a folder that is a file, a disk that is full
        print(f"{APP}: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    return status


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(APP, description="Coding agents with the model subscriptions you already pay for.")
    parser.add_argument("-v", "--version", action="version", version=f"{APP} {__version__}")
    commands = parser.add_subparsers(metavar="command", required=True)

    serve = commands.add_parser("serve", help="run the proxy (default)")
    serve.add_argument("--port", type=int, help="port to listen on; 0 picks a free one")
    serve.add_argument("--sandbox", action="store_true", help="use simulated upstreams: no account, no network")
    serve.add_argument("--sandbox-script", type=Path, metavar="FILE", help="faults for the simulated upstreams to play")
    serve.add_argument("--no-monitor", action="store_true", help="plain output even on a terminal")
    serve.add_argument("--allow-remote-unauthenticated", action="store_true", help="allow an open listener")
    serve.set_defaults(run=_serve, failure=1)

    auth = commands.add_parser("auth", help="sign in and out: auth login p1")
    auth.add_argument("action", choices=("login", "status", "logout"))
    auth.add_argument("label", help="p1 (codex), p2 (kimi), p4 (opencode)")
    auth.add_argument("--device", action="store_true", help="sign in with a code on another device")
    auth.set_defaults(run=_auth, failure=2)

    usage = commands.add_parser("usage", help="show what is left of an allowance: usage p1")
    usage.add_argument("label", help="p1 (codex), p2 (kimi), p4 (opencode)")
    usage.add_argument("--json", action="store_true", help="the answer as JSON")
    usage.set_defaults(run=_usage, failure=1)

    models = commands.add_parser("models", help="list the models of every provider")
    models.add_argument("--full", action="store_true", help="do not shorten long lists")
    models.set_defaults(run=_models, failure=1)

    sandbox = commands.add_parser("sandbox", help="run the simulated upstreams alone")
    sandbox.add_argument("--port", type=int, default=0)
    sandbox.add_argument("--script", type=Path, metavar="FILE")
    sandbox.set_defaults(run=_sandbox, failure=1)

    commands.add_parser("version", help="print the version").set_defaults(run=_version, failure=1)

    if not argv or (argv[0].startswith("-") and argv[0] not in ("-h", "--help", "-v", "--version")):
        argv = ["serve", *argv]
    return parser.parse_args(argv)


async def _version(_arguments: argparse.Namespace, _environment: Mapping[str, str]) -> int:
    print(f"{APP} {__version__}")
    return 0


# -- where things are


def config_root(environment: Mapping[str, str], platform: str = sys.platform) -> Path:
    """The folder of `config.json` and the credentials."""
    if environment.get("PROXY_CONFIG_DIR"):
        return Path(environment["PROXY_CONFIG_DIR"])
    if platform == "win32":
        return Path(environment.get("APPDATA") or _home(environment) / "AppData" / "Roaming") / APP
    base = environment.get("XDG_CONFIG_HOME") if platform != "darwin" else None
    return Path(base or _home(environment) / ".config") / APP


def state_root(environment: Mapping[str, str], platform: str = sys.platform) -> Path:
    """The folder of the log and of error captures."""
    if platform == "win32":
        return Path(environment.get("LOCALAPPDATA") or _home(environment) / "AppData" / "Local") / APP
    return Path(environment.get("XDG_STATE_HOME") or _home(environment) / ".local" / "state") / APP


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HOME") or environment.get("USERPROFILE") or "/")


class ConfigFile:
    """The settings as they are now: the file is read again when it has changed. What was fixed at start stays.

    warn  is told what is wrong with a file that changed
    """

    def __init__(self, root: Path, environment: Mapping[str, str]) -> None:
        self.warn: Callable[[str], None] = lambda _warning: None
        self.path = root / "config.json"
        self._environment = environment
        self._stamp = self._stat()
        self.content, file_warnings = read_file(self.path)
        self.config, warnings = load(environment, self.content)
        self.warnings = file_warnings + warnings
        self._looked = time.monotonic()

    def current(self) -> Config:
        now = time.monotonic()
        if now - self._looked >= RELOAD_S:
            self._looked = now
            stamp = self._stat()
            if stamp != self._stamp:
                self._stamp = stamp
                self._reload()
        return self.config

    def override(self, **changes: object) -> None:
        """Settings from command-line flags."""
        self.config = replace(self.config, **changes)  # type: ignore[arg-type]

    def _reload(self) -> None:
        content, warnings = read_file(self.path)
        try:
            fresh, more = load(self._environment, content)
        except ConfigError as error:  # a broken file must not stop a running proxy
            self.warn(f"{self.path} is not read again: {error.message}")
            return
        for warning in warnings + more:
            self.warn(warning)
        self.content = content
        self.config = kept(fresh, self.config)

    def _stat(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size


# -- serve


async def _serve(arguments: argparse.Namespace, environment: Mapping[str, str]) -> int:
    stop = _signals()
    async with AsyncExitStack() as stack:
        environment = dict(environment)
        sandbox = bool(arguments.sandbox or arguments.sandbox_script)
        if sandbox:
            await _start_sandbox(stack, environment, arguments.sandbox_script)
        root = config_root(environment)
        settings = ConfigFile(root, environment)
        if arguments.port is not None:
            if not 0 <= arguments.port <= 65535:
                raise ConfigError("--port must be a number from 0 to 65535")
            settings.override(port=arguments.port)
        if arguments.allow_remote_unauthenticated:
            settings.override(allow_remote_unauthenticated=True)
        _check_exposure(settings.config)
        # The simulated upstreams are inside this process: no proxy elsewhere could reach them.
        proxies = OutboundProxies() if sandbox else _proxies(environment)
        log = _open_log(settings.config, environment)
        try:
            return await _run(settings, root, log, stop, environment, proxies, sandbox=sandbox)
        finally:
            await asyncio.to_thread(log.close, LOG_FLUSH_S)


def _signals() -> asyncio.Event:
    """Set by the first SIGINT or SIGTERM; a second one ends the process at once."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def received(number: signal.Signals) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, received, number)
        except NotImplementedError:  # Windows: Ctrl-C arrives as KeyboardInterrupt
            pass
    return stop


async def _start_sandbox(stack: AsyncExitStack, environment: dict[str, str], script: Path | None) -> None:
    """Simulated upstreams in this process, throw-away credentials, and the settings that lead there."""
    from proxy.sandbox import Sandbox, ScriptError

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"{APP}-sandbox-")))
    try:
        sandbox = await stack.enter_async_context(Sandbox(script=script or ()))
    except (OSError, ScriptError) as error:
        raise ConfigError(f"--sandbox-script: {error}") from None
    sandbox.write_credentials(folder)
    environment |= sandbox.settings() | {"PROXY_CONFIG_DIR": str(folder), "XDG_STATE_HOME": str(folder / "state")}


def _proxies(environment: Mapping[str, str]) -> OutboundProxies:
    try:
        return OutboundProxies.from_environment(environment)
    except UnusableProxy as error:
        raise ConfigError(str(error)) from None


def _check_exposure(config: Config) -> None:
    if is_loopback(config.bind_address) or config.api_key or config.allow_remote_unauthenticated:
        return
    raise ConfigError(
        f"refusing to listen on {config.bind_address}: everybody who reaches it could use your accounts. Set"
        " PROXY_API_KEY so that callers need a key, or acknowledge an open listener with"
        " --allow-remote-unauthenticated, PROXY_ALLOW_REMOTE_UNAUTHENTICATED=1 or"
        " server.allowRemoteUnauthenticated in config.json"
    )


def _open_log(config: Config, environment: Mapping[str, str]) -> FileLog:
    from proxy.observe.log.file_log import FileLog

    return FileLog(state_root(environment), stderr=config.log_stderr, verbose=config.log_verbose)


async def _run(
    settings: ConfigFile,
    root: Path,
    log: FileLog,
    stop: asyncio.Event,
    environment: Mapping[str, str],
    proxies: OutboundProxies,
    *,
    sandbox: bool,
) -> int:
    from aiohttp import web

    from proxy.server.app import create_app

    config = settings.config
    for warning in settings.warnings:
        log.write("warn", "config", warning)
    settings.warn = lambda warning: log.write("warn", "config", warning)
    logging.getLogger().addHandler(_LibraryRecords(log))
    app = create_app(settings.current, config_dir=root, log=log, proxies=proxies, packed_bodies=True)
    # Handlers are cancelled when their client leaves; the watch of a request would do it too, half a second later.
    # Bodies are unpacked by us, with bounds.
    runner = web.AppRunner(
        app, access_log=None, handler_cancellation=True, auto_decompress=False, shutdown_timeout=CUT_S
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, config.bind_address, config.port).start()
    except OSError as error:
        await runner.cleanup()
        where = _address(config.bind_address, config.port)
        raise ConfigError(f"failed to bind proxy listener {where}: {error.strerror or error}") from None
    port = runner.addresses[0][1]
    listening = {"port": port, "bindAddress": config.bind_address, "logDir": str(state_root(environment))}
    log.write("info", "server", "server listening", **listening)
    if proxies.addresses:
        log.write("info", "server", "outgoing proxies are used", **proxies.addresses)
    if not is_loopback(config.bind_address) and not config.api_key:
        fields = {"remoteUnauthenticated": True, "bindAddress": config.bind_address, "port": port}
        log.write("warn", "server", "the listener is open to everybody who reaches it", **fields)
    print(_banner(settings, environment, proxies, port, sandbox=sandbox), flush=True)
    await stop.wait()
    return await _drain(runner, app, log)


class _LibraryRecords(logging.Handler):
    """What aiohttp and asyncio report goes to our log, by its kind: their own form is a traceback on stderr, for every
    piece of garbage that somebody sends to the port."""

    def __init__(self, log: FileLog) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        garbage = type(error).__module__.startswith("aiohttp.")  # a request that is no HTTP
        level = "error" if record.levelno >= logging.ERROR and not garbage else "warn"
        said = record.getMessage().partition("\n")[0]
        self._log.write(level, record.name, said, error=type(error).__name__ if error else None)


async def _drain(runner: web.AppRunner, app: web.Application, log: FileLog) -> int:
    """Stops accepting, lets answers finish, cuts what is left after the limit; the exit status tells which."""
    from proxy.server.state import STATE

    await runner.cleanup()
    cut = app[STATE].running.cut
    log.write("warn" if cut else "info", "server", "server stopped", cutAnswers=cut)
    return 1 if cut else 0


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _banner(
    settings: ConfigFile, environment: Mapping[str, str], proxies: OutboundProxies, port: int, *, sandbox: bool
) -> str:
    config = settings.config
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(config.bind_address, config.bind_address)  # noqa: S104
    url = f"http://{_address(reachable, port)}"
    lines = [f"{APP} {__version__} listens on {url}"]
    if sandbox:
        lines += [
            "SANDBOX: simulated upstreams, throw-away credentials; no account is used and nothing leaves this machine.",
        ]
    lines.append(f"log: {state_root(environment) / 'proxy.log'}")
    if settings.path.exists():
        lines.append(f"config: {settings.path}")
    changed = overrides({} if sandbox else environment, settings.content)
    if changed:
        lines.append("settings: " + ", ".join(changed))
    lines += [f"outgoing proxy for {kind}: {address}" for kind, address in proxies.addresses.items()]
    lines += [f"warning: {warning}" for warning in settings.warnings]
    lines += ["models:", *(f"  {line}" for line in _model_lines(full=False))]
    key = "the value of PROXY_API_KEY" if config.api_key else "unused"
    lines += [
        "Claude Code:",
        f"  export ANTHROPIC_BASE_URL={url}",
        f"  export ANTHROPIC_AUTH_TOKEN={key!r}" if config.api_key else f"  export ANTHROPIC_AUTH_TOKEN={key}",
        "  export ANTHROPIC_MODEL=gpt-5.6-sol",
        "  export CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK=1   # no tool runs twice after a broken stream",
        "  export CLAUDE_CODE_AUTO_COMPACT_WINDOW=272000        # compact before the model's window is full",
    ]
    return "\n".join(lines)


# -- the other commands


def _model_lines(*, full: bool) -> list[str]:
    from proxy.providers.registry import PROVIDERS

    shown = 100 if full else 20
    lines = []
    for entry in PROVIDERS:
        if entry.build is None:
            continue
        ids = sorted(entry.catalog.models)
        more = f", … ({len(ids) - shown} more: {APP} models --full)" if len(ids) > shown else ""
        lines.append(f"{entry.catalog.label} ({entry.catalog.service}): {', '.join(ids[:shown])}{more}")
    return lines


async def _models(arguments: argparse.Namespace, _environment: Mapping[str, str]) -> int:
    print("\n".join(_model_lines(full=arguments.full)))
    return 0


def _account(name: str, environment: Mapping[str, str]) -> Account:
    """The account of a provider, by label or service name. Raises ConfigError."""
    from proxy.providers.contract import AccountContext
    from proxy.providers.registry import LABELS, PROVIDERS

    entry = next((entry for entry in PROVIDERS if entry.catalog.label == LABELS.get(name)), None)
    if entry is None or entry.account is None:
        known = ", ".join(
            f"{entry.catalog.label} ({entry.catalog.service})" for entry in PROVIDERS if entry.account is not None
        )
        raise ConfigError(f"unknown provider {name!r}: accounts exist for {known}")
    root = config_root(environment)
    settings = ConfigFile(root, environment)
    source = partial(source_of, environment=environment, file=settings.content)
    return entry.account(AccountContext(root, settings.config, source, partial(_connect, environment)))


def _connect(environment: Mapping[str, str], *urls: str) -> AbstractAsyncContextManager[ClientSession]:
    """The client of an account: what needs no network works whatever the proxies are set to."""
    from proxy.providers.upstream.client import client_session

    near = bool(urls) and all(is_loopback(urlsplit(url).hostname or "") for url in urls)
    return client_session(OutboundProxies() if near else _proxies(environment))


async def _auth(arguments: argparse.Namespace, environment: Mapping[str, str]) -> int:
    account = _account(arguments.label, environment)
    if arguments.action == "status":
        return 0 if account.status(say=_say) else 1
    if arguments.action == "logout":
        await account.logout(say=_say)
    else:
        await account.login(device=arguments.device, say=_say)
    return 0


async def _usage(arguments: argparse.Namespace, environment: Mapping[str, str]) -> int:
    await _account(arguments.label, environment).usage(as_json=arguments.json, say=_say)
    return 0


def _say(line: str) -> None:
    print(line, flush=True)


async def _sandbox(arguments: argparse.Namespace, _environment: Mapping[str, str]) -> int:
    from proxy.sandbox import ScriptError, run_alone

    stop = _signals()
    served = asyncio.ensure_future(run_alone(arguments.port, arguments.script))
    waiting = asyncio.ensure_future(stop.wait())
    await asyncio.wait({served, waiting}, return_when=asyncio.FIRST_COMPLETED)
    for task in (served, waiting):
        task.cancel()
    await asyncio.wait({served, waiting})
    if not served.cancelled() and isinstance(error := served.exception(), OSError | ScriptError):
        raise ConfigError(str(error))
    return 0
