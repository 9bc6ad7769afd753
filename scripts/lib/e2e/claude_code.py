"""Claude Code from npm: installed once into a cache, run with throw-away folders, its JSON lines parsed."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from e2e.npm import Installed, platform_name
from e2e.npm import install as npm_install
from e2e.process import run
from e2e.screen import Screen, on_screen
from e2e.terminal import Terminal, on_terminal

#: The newest version that was tried, and an older one that behaves differently in many places (docs/clients).
VERSIONS = ("2.1.330", "2.1.197")


async def install(version: str, cache: Path) -> Path:
    """The program of a version."""
    package = f"@anthropic-ai/claude-code-{platform_name()}"
    return await npm_install("@anthropic-ai/claude-code", version, cache, f"{package}/claude")


@dataclass
class Outcome:
    """What a run printed, line by line (`--output-format stream-json`)."""

    lines: list[dict[str, Any]] = field(default_factory=list)
    stderr: str = ""
    seconds: float = 0.0

    def of(self, kind: str, subtype: str | None = None) -> list[dict[str, Any]]:
        return [line for line in self.lines if line.get("type") == kind and subtype in (None, line.get("subtype"))]

    @property
    def result(self) -> dict[str, Any]:
        """The closing line: `result`, `is_error`, `api_error_status`."""
        results = self.of("result")
        if not results:
            raise AssertionError(f"no result line; stderr: {self.stderr[-500:]}")
        return results[-1]

    @property
    def text(self) -> str:
        return str(self.result.get("result", ""))

    def blocks(self, role: str, kind: str) -> Iterator[dict[str, Any]]:
        """Content blocks of one type in the conversation as the client saw it."""
        for line in self.of(role):
            content = line["message"]["content"]
            for block in content if isinstance(content, list) else ():
                if block.get("type") == kind:
                    yield block

    @property
    def retries(self) -> list[dict[str, Any]]:
        """The client's own retries."""
        return self.of("system", "api_retry")


class ClaudeCode(Installed):
    async def run(
        self,
        url: str,
        prompt: str,
        *flags: str,
        model: str = "gpt-5.6-sol",
        settings: Mapping[str, str] | None = None,
        skips_permissions: bool = True,
    ) -> Outcome:
        """`claude -p PROMPT`: one turn, tools run without questions unless it asks for permissions."""
        command = self.command(prompt, model, *flags, skips_permissions=skips_permissions)
        done = await run(command, self.work, self.environment(url, settings or {}))
        return Outcome(done.lines, done.stderr, done.seconds)

    def command(self, prompt: str, model: str, *flags: str, skips_permissions: bool = True) -> list[str]:
        switches = ("--dangerously-skip-permissions",) if skips_permissions else ()
        form = ("--output-format", "stream-json", "--verbose")
        return [str(self.program), "-p", prompt, "--model", model, *form, *switches, *flags]

    @asynccontextmanager
    async def on_terminal(self, url: str, prompt: str, *flags: str, model: str) -> AsyncIterator[Terminal]:
        """The client as a user sees it, beginning with a prompt. It knows the folder and asks no question."""
        self.know_folder()
        command = [str(self.program), "--model", model, "--dangerously-skip-permissions", *flags, prompt]
        async with on_terminal(command, self.work, self.environment(url, {})) as terminal:
            yield terminal

    @asynccontextmanager
    async def on_screen(self, url: str, settings: Mapping[str, str], *flags: str, model: str) -> AsyncIterator[Screen]:
        """The same on a screen that is drawn, in the permission mode that it begins with."""
        self.know_folder()
        command = [str(self.program), "--model", model, *flags]
        async with on_screen(command, self.work, self.environment(url, settings)) as screen:
            yield screen

    def know_folder(self) -> None:
        """It was started here before, and asks no question about it."""
        place = self.home / ".claude"
        place.mkdir(exist_ok=True)
        trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        known = {"hasCompletedOnboarding": True, "bypassPermissionsModeAccepted": True, "theme": "dark"}
        (place / ".claude.json").write_text(json.dumps({**known, "projects": {str(self.work): trusted}}))

    def environment(self, url: str, settings: Mapping[str, str]) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.home / ".claude"),
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_AUTH_TOKEN": "unused",
            "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "2",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",  # as root it refuses to skip permissions otherwise
            **settings,
        }
