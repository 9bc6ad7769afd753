"""The launcher as a process, with programs in place of the clients."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import urllib.request
from asyncio.subprocess import PIPE
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread, Timer

import aiohttp
import pytest
from processes import Forked, environment, finished, forked
from samples import rows

from proxy.cli import main
from proxy.cli.command import TYPED_FOLDER, Context
from proxy.cli.launch.background import Background, answers, check_running, free_port
from proxy.cli.launch.launching import set_out
from proxy.cli.launch.users import Users
from proxy.config import ConfigError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the launcher becomes its client on POSIX alone")

CLIENT = """#!/bin/sh
for word in "$@"; do echo "[$word]"; done
echo "url=$ANTHROPIC_BASE_URL model=$ANTHROPIC_MODEL key=$ANTHROPIC_API_KEY token=$ANTHROPIC_AUTH_TOKEN"
echo "pid=$$"
read -r line
kill -$line $$
"""


@pytest.fixture
def world(tmp_path: Path) -> dict[str, str]:
    """Both clients are on the PATH, and show what they got; then they wait for the name of a signal that ends them."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("claude", "codex"):
        (programs / name).write_text(CLIENT)
        (programs / name).chmod(0o755)
    own = environment(tmp_path, PROXY_PORT=str(free_port()), PROXY_P4_API_KEY="k")
    return own | {"PATH": f"{programs}:/usr/bin:/bin"}


async def launched(world: dict[str, str], *arguments: str) -> Forked:
    return await forked.start("-m", "proxy", *arguments, env=world, stdin=PIPE)


async def lines_of(process: Forked) -> list[str]:
    assert process.stdout is not None
    lines = []
    while not lines or not lines[-1].startswith("pid="):
        line = await asyncio.wait_for(process.stdout.readline(), 20)
        assert line, await finished(process)
        lines.append(line.decode().rstrip("\n"))
    return lines


def background_of(world: dict[str, str]) -> list[int]:
    """The processes that serve for these launchers."""
    users = f"{world['XDG_STATE_HOME']}/model-proxy/launched/"
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if users in place.read_text():
                found.append(int(place.parent.name))
        except OSError:  # it ended just now
            continue
    return found


@contextmanager
def ended(world: dict[str, str]) -> Iterator[None]:
    try:
        yield
    finally:
        for process in background_of(world):
            os.kill(process, signal.SIGKILL)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes below /proc")
async def test_two_clients_share_one_proxy_and_get_their_arguments_signals_and_statuses(world: dict[str, str]) -> None:
    world |= {"ANTHROPIC_API_KEY": "hunter2"}
    with ended(world):
        claude, codex = await asyncio.gather(
            launched(world, "claude", "-p", "it's $HOME", "--help", "--", "--proxy-model"),
            launched(world, "codex", "--proxy-model", "p4", "--", "exec", ""),
        )
        shown, options = await asyncio.gather(lines_of(claude), lines_of(codex))
        url = f"http://127.0.0.1:{world['PROXY_PORT']}"
        assert shown[0] == "[--settings]"
        settings = Path(shown[1][1:-1])
        assert settings.stat().st_mode & 0o777 == 0o600 and "gpt-5.6-sol" not in settings.read_text()
        assert "modelPicker" in json.loads(settings.read_text())
        assert shown[2:-1] == [
            *("[-p]", "[it's $HOME]", "[--help]", "[--]", "[--proxy-model]"),
            f"url={url} model=kimi-k2.7-code key= token=unused",
        ]
        assert shown[-1] == f"pid={claude.pid}", "the launcher has become the client"
        assert options[-4:-2] == ["[exec]", "[]"] and f'base_url="{url}/v1"' in options[1]
        assert "[model_context_window=262144]" in options, "this Codex takes no catalogue of models"
        assert len(background_of(world)) == 1
        with urllib.request.urlopen(f"{url}/healthz") as answer:
            assert answer.status == 200
        await failing_request(url)
        state = Path(world["XDG_STATE_HOME"]) / "model-proxy"
        output, log = state / "launched" / "output.log", state / "proxy.log"
        async with asyncio.timeout(5):
            while "unknown model" not in log.read_text():
                await asyncio.sleep(0.05)
        assert "listens on" in output.read_text() and "unknown model" not in output.read_text(), "which has no bound"
        for process, name, number in ((claude, b"TERM\n", signal.SIGTERM), (codex, b"KILL\n", signal.SIGKILL)):
            _, err = await asyncio.wait_for(process.communicate(name), 5)
            assert process.returncode == -number
            assert b"hunter2" not in err and (b"ANTHROPIC_API_KEY: not used here" in err) == (process is claude)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes below /proc")
async def test_in_the_place_of_a_background_proxy_that_was_killed_another_is_started(world: dict[str, str]) -> None:
    url = f"http://127.0.0.1:{world['PROXY_PORT']}"
    with ended(world):
        first = await launched(world, "claude")
        await lines_of(first)
        (killed,) = background_of(world)
        os.kill(killed, signal.SIGKILL)
        async with asyncio.timeout(5):
            while background_of(world):
                await asyncio.sleep(0.01)
        second = await launched(world, "claude")
        assert f"url={url} model=kimi-k2.7-code key= token=unused" in await lines_of(second)
        assert len(background_of(world)) == 1 and killed not in background_of(world)
        await failing_request(url)
        for client in (first, second):
            _, err = await asyncio.wait_for(client.communicate(b"TERM\n"), 5)
            assert client.returncode == -signal.SIGTERM and b"Traceback" not in err


def files(world: dict[str, str], here: Path) -> dict[str, Path]:
    """Where the files are that a client itself reads."""
    home = Path(world["HOME"])
    return {
        "own": home / ".claude" / "settings.json",
        "project": here / ".claude" / "settings.json",
        "local": here / ".claude" / "settings.local.json",
        "codex": home / ".codex" / "config.toml",
    }


async def test_choices_in_all_files_of_a_client_stay(
    world: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also behind a byte order mark."""
    (here := tmp_path / "here").mkdir()
    monkeypatch.chdir(here)
    world |= {"HOME": str(tmp_path), TYPED_FOLDER: str(here)}
    texts = {
        "own": '\ufeff{"modelPicker": {"options": []}, "modelSettings": {"glm-5.3": {"autoCompactWindow": 300000}}}',
        "project": '{"modelSettings": {"glm-5.2": {"autoCompactWindow": 400000}}}',
        "local": '{"modelSettings": {"glm-5.3": {"effortLevel": "low"}}}',
        "codex": 'model_catalog_json = "/mine.json"',
    }
    for name, path in files(world, here).items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(texts[name])
    with ended(world):
        claude, codex = await asyncio.gather(launched(world, "claude"), launched(world, "codex"))
        shown, options = await asyncio.gather(lines_of(claude), lines_of(codex))
        settings = json.loads(Path(shown[1][1:-1]).read_text())
        windows = {name: row["autoCompactWindow"] for name, row in settings["modelSettings"].items()}
        assert "modelPicker" not in settings and (windows["glm-5.3"], windows["glm-5.2"]) == (300_000, 400_000)
        assert not [line for line in options if "model_catalog_json" in line or "model_context_window" in line]
        for process in (claude, codex):
            _, err = await asyncio.wait_for(process.communicate(b"KILL\n"), 5)
            assert (b"model_catalog_json of" in err) == (process is codex)


async def failing_request(url: str) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{url}/v1/messages", json={"model": "no", "max_tokens": 1, "messages": []}) as answer,
    ):
        assert answer.status == 400


def test_a_start_that_waits_can_be_interrupted(world: dict[str, str]) -> None:
    """Nothing returns to the loop meanwhile, whose own handler would only take note."""
    users = Users(Path(world["XDG_STATE_HOME"]) / "model-proxy" / "launched" / world["PROXY_PORT"])
    before = signal.getsignal(signal.SIGINT)
    try:
        with users.locked(), after(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)):
            assert main(["claude"], Context(world)) == 130
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def after(seconds: float, then: Callable[[], None]) -> Iterator[None]:
    timer = Timer(seconds, then)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@pytest.mark.parametrize(
    ("sandbox", "port", "alone"), [(False, "18765", False), (False, "0", True), (True, "18765", True)]
)
def test_a_port_that_nobody_else_knows(world: dict[str, str], sandbox: bool, port: str, alone: bool) -> None:
    """It is no reason for simulated upstreams."""
    background = set_out(Context(world | {"PROXY_PORT": port}), sandbox=sandbox).background
    assert (background.sandbox, background.alone) == (sandbox, alone)
    assert background.port != 0 and (background.users.path.name == port) is not alone


def test_what_cannot_be_started_says_what_to_do(
    world: dict[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "execve")
    nobody = {name: value for name, value in world.items() if name != "PROXY_P4_API_KEY"}
    with listening(b'{"ok": false}') as port:
        rows = [
            (nobody, "auth login p1"),
            (world | {"PATH": "/nonexistent"}, "npm install -g @anthropic-ai/claude-code"),
            (world | {"PROXY_PORT": str(port)}, f"127.0.0.1:{port} is taken by another program"),
        ]
        for own, said in rows:
            assert main(["claude"], Context(own)) == 1
            assert said in capsys.readouterr().err
    assert not background_of(world)


@contextmanager
def listening(health: bytes, status: int = 200, asked: list[bytes] | None = None) -> Iterator[int]:
    """A server of somebody else's, or an older one of ours. `asked` is given the credential of each request."""
    asked = [] if asked is None else asked

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.headers.get("Authorization", "").encode("latin-1"))
            self.send_response(200 if self.path == "/healthz" else status)
            self.end_headers()
            self.wfile.write(health)

        def log_message(self, *_: object) -> None:
            return

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@rows("health", [b"", b"<html>", b'{"ok": false}', b"[1]", b"\xff"])
def test_a_port_of_somebody_else_is_told(health: bytes) -> None:
    with listening(health) as port, pytest.raises(ConfigError, match="taken by another program"):
        answers(f"http://127.0.0.1:{port}")


def test_nobody_and_ours() -> None:
    assert not answers(f"http://127.0.0.1:{free_port()}")
    with listening(b'{"ok": true}') as port:
        assert answers(f"http://127.0.0.1:{port}")


def test_what_speaks_no_http_is_somebody_else() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def talk() -> None:
            connection, _ = server.accept()
            connection.sendall(b"220 mail\r\n")
            connection.close()

        thread = Thread(target=talk)
        thread.start()
        with pytest.raises(ConfigError, match="taken by another program"):
            answers(f"http://127.0.0.1:{server.getsockname()[1]}")
        thread.join()


@rows(
    "status, openai, said",
    [
        (200, False, None),
        (405, True, None),
        (401, False, "wants another key: set PROXY_API_KEY"),
        (401, True, "wants another key: set PROXY_API_KEY"),
        (404, True, "PROXY_P1_RESPONSES_API=1"),
    ],
)
def test_a_proxy_that_runs_must_fit(status: int, openai: bool, said: str | None) -> None:
    with listening(b'{"ok": true}', status) as port:
        url = f"http://127.0.0.1:{port}"
        if said is None:
            check_running(url, "key", openai=openai)
        else:
            with pytest.raises(ConfigError, match=said):
                check_running(url, "key", openai=openai)


def test_a_key_with_letters_of_any_language_is_sent_as_the_proxy_reads_it() -> None:
    asked: list[bytes] = []
    with listening(b"", 200, asked) as port:
        check_running(f"http://127.0.0.1:{port}", "schlüssel ✓", openai=False)
    assert asked == ["Bearer schlüssel ✓".encode()]


#: `$SHELL`, what was typed behind the program, the hint.
HINTS = [
    ("/bin/bash", "env", 'eval "$(scripts/start env)"'),
    ("/bin/zsh", "env openai", 'eval "$(scripts/start env openai)"'),
    ("/bin/bash", "env claude --model k3", 'eval "$(scripts/start env claude --model k3)"'),
    ("/bin/bash", "env --model opus[1m]", "eval \"$(scripts/start env --model 'opus[1m]')\""),
    ("/bin/bash", "env --start openai", 'eval "$(scripts/start env openai --start)"'),
    ("/bin/bash", "env --shell zsh", 'eval "$(scripts/start env --shell zsh)"'),
    ("/bin/fish", "env --shell bash", 'eval "$(scripts/start env --shell bash)"'),
    ("/usr/bin/fish", "env --model k3", "scripts/start env --shell fish --model 'k3' | source"),
    (
        "",
        "env openai --shell powershell",
        "& scripts/start env openai --shell powershell | Out-String | Invoke-Expression",
    ),
]


@pytest.mark.parametrize(("shell", "line", "hint"), HINTS)
def test_the_hint_prints_what_was_asked_for(
    shell: str,
    line: str,
    hint: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[int] = []
    monkeypatch.setattr(Background, "find_or_start", lambda _background, user: started.append(user))
    own = {"SHELL": shell, "XDG_CONFIG_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path), "PROXY_P4_API_KEY": "k"}
    assert main(line.split(), Context(own, program="scripts/start")) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"# to use these: {hint}"
    assert bool(started) == ("--start" in line)
