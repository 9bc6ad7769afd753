"""Finds the proxy's background process, or starts it and waits for it."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import proxy
from proxy.cli.launch.users import ALONE, UNUSED_S, Users
from proxy.config import ConfigError

#: A proxy on this machine answers in milliseconds, even a busy one.
ANSWER_S = 5.0
#: Allows for an interpreter's start on a slow machine.
START_S = 30.0
_POLL_S = 0.05
#: How much is shown of the log of a proxy that did not start.
_TAIL_LINES, _TAIL_BYTES = 12, 4096
_MAX_ANSWER = 1024

OPENAI_ROUTES = "PROXY_P1_RESPONSES_API"
#: Without process ids that can be checked, only its launcher can end it.
WATCHES = os.name == "posix"


@dataclass(frozen=True, slots=True)
class Background:
    """A proxy that may run in the background.

    url, port    where it is, or will be
    state        folder of its log and of its file of users
    environment  its environment
    sandbox      with simulated upstreams
    alone        whether only this launcher uses it, since its port is not known elsewhere
    keep         seconds for which it stays without users
    """

    url: str
    port: int
    state: Path
    environment: Mapping[str, str]
    sandbox: bool = False
    alone: bool = False
    keep: float = UNUSED_S

    @property
    def users(self) -> Users:
        return Users(self.state / "launched" / (f"{ALONE}{os.getpid()}" if self.alone else str(self.port)))

    @property
    def log(self) -> Path:
        return self.state / "launched" / "output.log"

    def find_or_start(self, user: int) -> subprocess.Popen[bytes] | None:
        """Makes sure that a proxy answers, for the process `user`; returns the one that was started for it. Raises
        ConfigError, also when another program has the port."""
        users = self.users
        with users.locked():
            if answers(self.url):
                users.add(user)
                return None
            users.only(user)
            process = self._start(users.path)
            self._wait(process)
            return process

    def _start(self, users: Path) -> subprocess.Popen[bytes]:
        # A folder `proxy` in the current directory is not this program.
        root = str(Path(proxy.__file__).parents[1])
        path = os.pathsep.join(filter(None, (root, self.environment.get("PYTHONPATH"))))
        until = ["--until-unused", str(users), "--unused-after", f"{self.keep:g}"] if WATCHES else []
        options = [*until, *(["--sandbox"] if self.sandbox else [])]
        command = [sys.executable, "-P", "-m", "proxy", "serve", "--no-monitor", "--port", str(self.port), *options]
        own_group = 0 if WATCHES else getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
        with os.fdopen(os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as log:
            return subprocess.Popen(  # noqa: S603
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.state,
                env={**self.environment, "PYTHONPATH": path},
                start_new_session=True,  # Ctrl-C in the client must not reach it
                creationflags=own_group,
            )

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + START_S
        while process.poll() is None:
            if answers(self.url):
                return
            if time.monotonic() > end:
                process.terminate()
                raise ConfigError(f"the proxy did not answer within {START_S:g} s: {self.log}")
            time.sleep(_POLL_S)
        raise ConfigError(f"the proxy did not start:\n{_tail(self.log)}")


def answers(url: str) -> bool:
    """Whether a proxy answers at this URL. Raises ConfigError when another program does."""
    try:
        status, body = _get(url, "/healthz")
    except ConnectionRefusedError:
        return False
    except (OSError, http.client.HTTPException):
        status, body = 0, b""
    try:
        ours = status == 200 and json.loads(body) == {"ok": True}
    except ValueError:
        ours = False
    if not ours:
        raise ConfigError(
            f"{urlsplit(url).netloc} is taken by another program, not a model-proxy. End it, or choose another"
            " port with PROXY_PORT or `port` in config.json"
        )
    return True


def check_running(url: str, key: str, *, openai: bool) -> None:
    """Raises ConfigError when the answering proxy has another key, or lacks routes that are needed."""
    status, _ = _get(url, "/v1/responses" if openai else "/v1/models?limit=1", key)
    if status in (401, 403):
        raise ConfigError(
            f"the proxy that runs at {url} wants another key: set PROXY_API_KEY to the one that it was started with"
        )
    if openai and status == 404:
        raise ConfigError(
            f"the proxy that runs at {url} serves no OpenAI-style routes: end it and type this again, or start it with"
            f" {OPENAI_ROUTES}=1"
        )


def free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        port: int = place.getsockname()[1]
        return port


def _get(url: str, path: str, key: str = "") -> tuple[int, bytes]:
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=ANSWER_S)
    try:
        headers = {"Authorization": f"Bearer {key}".encode()} if key else {}
        connection.request("GET", path, headers={**headers, "Connection": "close"})
        answer = connection.getresponse()
        return answer.status, answer.read(_MAX_ANSWER)
    finally:
        connection.close()


def _tail(log: Path) -> str:
    lines = log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace").splitlines()
    return "\n".join(f"  {line}" for line in lines[-_TAIL_LINES:])
