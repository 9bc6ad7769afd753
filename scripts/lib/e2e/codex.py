"""Codex CLI from npm: `codex exec` with the configuration of its page, in a home of its own."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.npm import Installed
from e2e.npm import install as npm_install
from e2e.pages import blocks
from e2e.process import Finished, run

#: The newest version that was tried (docs/clients).
VERSIONS = ("0.169.0",)
PAGE = "codex-cli.md"


async def install(version: str, cache: Path) -> Path:
    """The program of a version."""
    return await npm_install("@openai/codex", version, cache, "@openai/codex-*/vendor/*/bin/codex")


@dataclass(frozen=True, slots=True)
class Turn:
    """What a run printed (`--json`)."""

    finished: Finished

    def items(self, kind: str) -> list[dict[str, Any]]:
        """Completed items of a kind: agent_message, command_execution, reasoning, error …"""
        done = [line["item"] for line in self.finished.lines if line["type"] == "item.completed"]
        return [item for item in done if item["type"] == kind]

    @property
    def text(self) -> str:
        """All that the model said."""
        return "\n".join(item["text"] for item in self.items("agent_message"))

    @property
    def usage(self) -> dict[str, int]:
        """The tokens of the turn; empty when it did not complete."""
        return next((line["usage"] for line in self.finished.lines if line["type"] == "turn.completed"), {})

    @property
    def failure(self) -> str:
        """Why the turn failed; empty when it did not."""
        return next((line["error"]["message"] for line in self.finished.lines if line["type"] == "turn.failed"), "")


class Codex(Installed):
    def __init__(self, program: Path, version: str, folder: Path) -> None:
        super().__init__(program, version, folder, home="codex")

    async def run(self, url: str, prompt: str, *flags: str, model: str = "gpt-5.6-sol", resume: bool = False) -> Turn:
        """`codex exec PROMPT`: one turn, tools run without questions; `resume` goes on with the conversation before."""
        self.configure(url)
        mode = ("exec", "resume", "--last") if resume else ("exec",)
        switches = ("--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--model", model)
        return Turn(await run([str(self.program), *mode, *switches, *flags, prompt], self.work, self.environment))

    def configure(self, url: str) -> None:
        """Writes the page's configuration, for the proxy at `url`."""
        (self.home / "config.toml").write_text("\n".join(blocks(PAGE, "toml", url)))

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(self.folder),
            "CODEX_HOME": str(self.home),
            "MODEL_PROXY_KEY": "unused",
        }
