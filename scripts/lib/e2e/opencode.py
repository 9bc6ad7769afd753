"""opencode at the simulated p4, without the proxy between them."""

from __future__ import annotations

import json
from pathlib import Path

from e2e.alone import Simulators, simulators
from e2e.expecting import Scenario, Scenarios, expect, named
from e2e.npm import Installed, platform_name
from e2e.npm import install as npm_install
from e2e.process import Finished, run

VERSIONS = ("1.18.33",)

#: One model of each wire, and one that opencode asks over chat completions where others do not.
MODELS = ("kimi-k2.6", "qwen3.8-max", "deepseek-v4-pro", "minimax-m3", "gpt-5.6-luna")

#: What it asks of the network by itself.
SWITCHES = {f"OPENCODE_DISABLE_{name}": "1" for name in ("MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD")}

_KEY = "sk-sandbox-opencode-go"


async def install(version: str, cache: Path) -> Path:
    """The program of a version."""
    package = f"opencode-{platform_name()}"
    return await npm_install("opencode-ai", version, cache, f"{package}/bin/opencode")


class Opencode(Installed):
    async def run(self, found: Simulators, model: str, prompt: str) -> Finished:
        """One turn; the prompt comes from a file, since as an argument it reaches the model in quotes."""
        options = {"baseURL": f"{found.origin}/zen/go/v1", "apiKey": _KEY}
        config = {"autoupdate": False, "share": "disabled", "permission": "allow"}
        place = self.home / ".config" / "opencode" / "opencode.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps({**config, "provider": {"opencode-go": {"options": options}}}))
        (self.work / "prompt").write_text(prompt)
        command = f"exec {self.program} run -m opencode-go/{model} < prompt"
        return await run(["sh", "-c", command], self.work, self._environment())

    def _environment(self) -> dict[str, str]:
        places = {"CONFIG": ".config", "DATA": ".local/share", "STATE": ".local/state", "CACHE": ".cache"}
        return {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.home),
            "TERM": "dumb",
            "OPENCODE_API_KEY": _KEY,
            **{f"XDG_{name}_HOME": str(self.home / place) for name, place in places.items()},
            **SWITCHES,
        }


SCENARIOS: Scenarios[Opencode] = Scenarios()


def _turns_with(model: str) -> Scenario[Opencode]:
    async def turns(opencode: Opencode, folder: Path) -> None:
        """A plain turn, beside which it asks for a title, and one with a tool."""
        async with simulators(folder) as found:
            plain = await opencode.run(found, model, "hello there")
            expect(plain.status == 0 and "hello there" in plain.stdout, "a plain answer", plain)
            call = {"command": "echo from-$((1 + 1))-opencode", "description": "says hello"}
            tool = await opencode.run(found, model, f"use bash: {json.dumps(call)}")
            expect(tool.status == 0 and "from-2-opencode" in tool.stdout, "it calls a tool", tool)

    return named(turns, f"turns with {model}")


for _model in MODELS:
    SCENARIOS.add(_turns_with(_model))
