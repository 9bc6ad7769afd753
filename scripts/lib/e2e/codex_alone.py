"""Codex CLI at the simulated p1, without the proxy between them: a simulator that it cannot use is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from e2e.alone import Simulators, behind_tls, simulators
from e2e.codex import Codex
from e2e.expecting import Scenario, Scenarios, expect, named
from e2e.process import run

#: A model of each lane, and the smallest one, which exists on one of them alone.
MODELS = ("gpt-5.6-sol", "gpt-5.6-luna", "gpt-5.5")

#: Transport -> what the simulator does to the other one.
TRANSPORTS: dict[str, list[Mapping[str, Any]]] = {
    "http": [{"fault": "upgrade_required", "times": None}],
    "websocket": [{"match": {"wire": "responses"}, "status": 500, "times": None}],
}

_KEY = """model_provider = "sim"
[model_providers.sim]
name = "sim"
base_url = "{origin}/backend-api/codex"
wire_api = "responses"
env_key = "SIM_KEY"
http_headers = {{ "chatgpt-account-id" = "{account}" }}
supports_websockets = {sockets}
"""

_LOGIN = """chatgpt_base_url = "{origin}/backend-api/"
openai_base_url = "{origin}/backend-api/codex"
"""


class CodexAlone(Codex):
    """With a configuration of its own."""

    def __init__(self, program: Path, version: str, folder: Path) -> None:
        super().__init__(program, version, folder)
        self.variables: dict[str, str] = {}

    def configure(self, url: str) -> None:
        """It is: `use` wrote the configuration."""

    def use(self, config: str, **variables: str) -> None:
        (self.home / "config.toml").write_text(config)
        self.variables = variables

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, **self.variables}

    async def log_in(self, issuer: str) -> None:
        """With a code; the simulator approves it by itself."""
        login = (str(self.program), "login", "--device-auth", "--experimental_issuer", issuer)
        done = await run(login, self.work, self.environment)
        expect("Successfully logged in" in done.stdout + done.stderr, "it signs in", done)


SCENARIOS: Scenarios[CodexAlone] = Scenarios()


async def _turns(codex: CodexAlone) -> None:
    """A plain turn, a command whose output is in the answer, and the conversation goes on with another effort."""
    for model in MODELS:
        plain = await codex.run("", "hello there", model=model)
        tools = await codex.run("", 'use exec_command: {"cmd": "echo from-$((1 + 1))-codex"}', model=model)
        effort = ("--config", "model_reasoning_effort=high")
        later = await codex.run("", "hello again", *effort, model=model, resume=True)
        expect('"hello there"' in plain.text and plain.usage["output_tokens"] > 0, f"{model} answers", plain.finished)
        expect("from-2-codex" in tools.text, f"{model} calls a tool", tools.finished)
        expect('"hello again"' in later.text, f"{model} goes on", later.finished)
        expect({plain.finished.status, tools.finished.status, later.finished.status} == {0}, "without an error")
        unread = [done.finished.stderr for done in (plain, tools) if "failed to decode" in done.finished.stderr]
        expect(not unread, "it can read the list of models", unread)


def _with_a_key(transport: str) -> Scenario[CodexAlone]:
    async def with_a_key(codex: CodexAlone, folder: Path) -> None:
        async with simulators(folder, TRANSPORTS[transport]) as found:
            credential, sockets = found.credential("p1"), str(transport == "websocket").lower()
            config = _KEY.format(origin=found.origin, account=credential["accountId"], sockets=sockets)
            codex.use(config, SIM_KEY=credential["access"])
            await _turns(codex)

    return named(with_a_key, f"with a key over {transport}")


def _with_a_login(transport: str) -> Scenario[CodexAlone]:
    async def with_a_login(codex: CodexAlone, folder: Path) -> None:
        """With a ChatGPT login Codex asks where its workspace is served, takes https alone, and compresses."""
        async with simulators(folder, TRANSPORTS[transport]) as found:
            await _logged_in(codex, found, folder)

    return named(with_a_login, f"with a login over {transport}")


async def _logged_in(codex: CodexAlone, found: Simulators, folder: Path) -> None:
    await codex.log_in(found.origin)
    async with behind_tls(found.origin, folder) as (origin, certificate):
        codex.use(_LOGIN.format(origin=origin), SSL_CERT_FILE=str(certificate))
        await _turns(codex)


for _transport in TRANSPORTS:
    SCENARIOS.add(_with_a_key(_transport))
    SCENARIOS.add(_with_a_login(_transport))
