"""A healthy set-up in a folder of its own, with simulated services, that tests then break."""

from __future__ import annotations

import asyncio
import functools
import json
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from model_proxy import other_owners
from proxy.cli import main
from proxy.cli.command import Context
from proxy.cli.doctor import data, listener
from proxy.sandbox import Sandbox

#: (exit status, what was printed)
Run = Callable[..., Awaitable[tuple[int, str]]]

#: Reads the files of every distribution, which are the same in every run of a test.
_other_owners = functools.cache(other_owners)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


class World:
    """Folders, variables and a sandbox. `run` is the command line, in a thread, so that the sandbox can answer it."""

    def __init__(self, root: Path, sandbox: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.sandbox, self._capsys = root, sandbox, capsys
        self.held: list[socket.socket] = []
        self.port = free_port()
        self.config, self.state, self.home = root / "config", root / "state", root / "home"
        for folder in (self.config, self.state, self.home, root / "bin", root / "here"):
            folder.mkdir(mode=0o700)
        sandbox.write_credentials(self.config)
        self.program("claude", "echo '2.1.330 (Claude Code)'")
        self.variables = {
            **sandbox.settings(),
            "PROXY_CONFIG_DIR": str(self.config),
            "XDG_STATE_HOME": str(self.state),
            "HOME": str(self.home),
            "PATH": f"{root / 'bin'}:/usr/bin:/bin",
            "PROXY_PORT": str(self.port),
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_AUTH_TOKEN": "unused",
            "ANTHROPIC_MODEL": "gpt-5.6-sol",
            "CLAUDE_CODE_MAX_CONTEXT_TOKENS": "272000",
        }

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def program(self, name: str, script: str) -> None:
        path = self.root / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def write(self, name: str, content: Any) -> Path:
        """A file below the root: JSON, or a text as it is."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    async def run(self, *arguments: str, **variables: str) -> tuple[int, str]:
        """Runs `doctor …` with these variables beside the healthy ones; an empty one takes one away."""
        environment = {name: value for name, value in {**self.variables, **variables}.items() if value}
        status = await asyncio.to_thread(main, ["doctor", *arguments], Context(environment))
        return status, "".join(self._capsys.readouterr())


@pytest.fixture
def world(
    tmp_path: Path, sandbox: Sandbox, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    made = World(tmp_path, sandbox, capsys)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(data, "other_owners", _other_owners)
    monkeypatch.setattr(listener, "PROBE_S", 0.1)  # what listens here and says nothing never will
    yield made
    for one in made.held:
        one.close()
