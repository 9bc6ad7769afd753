"""Agents from npm with the proxy between them and the simulators, configured by their pages, without a terminal."""

from __future__ import annotations

import json
import os
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from e2e import opencode
from e2e.expecting import Scenario, Scenarios, expect, named
from e2e.npm import OnNode, install_node
from e2e.npm import install as npm_install
from e2e.pages import blocks, run_shell
from e2e.process import Finished, run
from e2e.servers import LENIENT, MESSAGES_ONLY, watched_proxy

#: p1, p2, and the chat and Responses wires of p4.
MODELS = ("gpt-5.6-sol", "kimi-for-coding", "opencode-go/kimi-k2.6", "opencode-go/gpt-5.6-luna")

_COMMAND = "echo from-$((1 + 1))-agent"
_DONE, _NOTE = "from-2-agent", "note.txt"
#: Variables that a page's commands get otherwise.
_OWN = ("PATH", "HOME")


class Agent(OnNode):
    """One that is configured by a file of its page.

    page      of docs/clients
    language  of the block that is the file
    place     of the file, below the home
    name      of the program in the page's commands
    wires     over which it can be made to ask -> settings of the proxy that they need
    shown     what the page's commands print, in the sandbox
    """

    page: ClassVar[str]
    language: ClassVar[str]
    place: ClassVar[str]
    name: ClassVar[str]
    wires: ClassVar[Sequence[tuple[str, Mapping[str, str]]]]
    shown: ClassVar[Sequence[str]] = ("hello there",) * 3

    @abstractmethod
    def configuration(self, page: str, wire: str | None, model: str) -> str:
        """What the file says for a wire and a model; the page as it stands where the wire is None."""

    @abstractmethod
    def arguments(self, wire: str, model: str) -> Sequence[str]:
        """Of a run that asks for nothing; the prompt follows."""

    @property
    @abstractmethod
    def tool(self) -> str:
        """A prompt that makes the model call a tool, whose result is a word of its own."""

    async def started(self) -> list[str]:
        """The command that starts it."""
        return [str(await self.node()), str(self.program)]

    async def environment(self) -> dict[str, str]:
        return {"PATH": f"{(await self.node()).parent}:{os.environ['PATH']}", "HOME": str(self.home), "TERM": "dumb"}

    def configure(self, url: str, wire: str | None = None, model: str = "") -> None:
        page = "\n".join(blocks(self.page, self.language, url))
        place = self.home / self.place
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(self.configuration(page, wire, model))

    async def run(self, url: str, wire: str, model: str, prompt: str) -> Finished:
        """One turn."""
        self.configure(url, wire, model)
        command = [*await self.started(), *self.arguments(wire, model), prompt]
        return await run(command, self.work, await self.environment())


class Opencode(Agent):
    page, language, name = "opencode.md", "json", "opencode"
    place = ".config/opencode/opencode.json"
    wires = (("@ai-sdk/anthropic", MESSAGES_ONLY), ("@ai-sdk/openai-compatible", LENIENT), ("@ai-sdk/openai", LENIENT))
    shown = ("hello there",) * 2
    tool = f'use bash: {{"command": "{_COMMAND}", "description": "says it"}}'

    def configuration(self, page: str, wire: str | None, model: str) -> str:
        found = json.loads(page)
        if wire is not None:
            found["provider"]["model-proxy"]["npm"] = wire
        return json.dumps({**found, "autoupdate": False, "share": "disabled", "permission": "allow"})

    def arguments(self, wire: str, model: str) -> Sequence[str]:
        return ("run", "-m", f"model-proxy/{model}")

    async def started(self) -> list[str]:
        return [str(self.program)]

    async def environment(self) -> dict[str, str]:
        return {**await super().environment(), **opencode.SWITCHES}

    async def run(self, url: str, wire: str, model: str, prompt: str) -> Finished:
        """The prompt comes from a file, since as an argument it reaches the model in quotes."""
        self.configure(url, wire, model)
        (self.work / "prompt").write_text(prompt)
        command = " ".join([*await self.started(), *self.arguments(wire, model)])
        return await run(["sh", "-c", f"exec {command} < prompt"], self.work, await self.environment())


class QwenCode(Agent):
    page, language, place, name = "qwen-code.md", "json", ".qwen/settings.json", "qwen"
    wires = (("openai", LENIENT), ("anthropic", MESSAGES_ONLY))

    def configuration(self, page: str, wire: str | None, model: str) -> str:
        quiet = {"general": {"enableAutoUpdate": False}, "privacy": {"usageStatisticsEnabled": False}}
        return json.dumps({**json.loads(page), **quiet})

    @property
    def tool(self) -> str:
        """Not its tool for commands, which on a busy machine sometimes loses what they said."""
        (self.work / _NOTE).write_text(_DONE)
        return f'use read_file: {{"file_path": "{self.work / _NOTE}"}}'

    def arguments(self, wire: str, model: str) -> Sequence[str]:
        return ("--auth-type", wire, "-m", model, "--yolo", "-p")

    async def environment(self) -> dict[str, str]:
        return {**await super().environment(), "MODEL_PROXY_KEY": "unused"}


class Continue(Agent):
    page, language, place, name = "continue.md", "yaml", ".continue/config.yaml", "cn"
    wires = (("anthropic", MESSAGES_ONLY), ("openai", LENIENT))
    shown = ("hello there", 'returned: "hello')
    tool = f'use Bash: {{"command": "{_COMMAND}"}}'

    def configuration(self, page: str, wire: str | None, model: str) -> str:
        if wire is None:
            return page
        asked = re.sub(r"^( +model:) gpt-5.6-sol$", rf"\1 {model}", page, flags=re.MULTILINE)
        return re.sub(r"^( +provider:) \w+$", rf"\1 {wire}", asked, flags=re.MULTILINE)

    def arguments(self, wire: str, model: str) -> Sequence[str]:
        return ("--config", str(self.home / self.place), "--auto", "-p")

    async def environment(self) -> dict[str, str]:
        return {**await super().environment(), "CONTINUE_METRICS_ENABLED": "0", "CONTINUE_TELEMETRY_ENABLED": "0"}


class Pi(Agent):
    page, language, place, name = "pi.md", "json", ".pi/agent/models.json", "pi"
    wires = (("anthropic-messages", MESSAGES_ONLY), ("openai-completions", LENIENT), ("openai-responses", LENIENT))
    tool = f'use bash: {{"command": "{_COMMAND}"}}'

    def configuration(self, page: str, wire: str | None, model: str) -> str:
        if wire is None:
            return page
        found = json.loads(page)
        provider = found["providers"]["model-proxy"]
        address = provider["baseUrl"] if wire == "anthropic-messages" else f"{provider['baseUrl']}/v1"
        provider.update(api=wire, baseUrl=address)
        return json.dumps(found)

    def arguments(self, wire: str, model: str) -> Sequence[str]:
        return ("-p", "--model", f"model-proxy/{model}")

    async def environment(self) -> dict[str, str]:
        return {**await super().environment(), "PI_OFFLINE": "1", "PI_TELEMETRY": "0"}


class Cline(Agent):
    page, language, place, name = "cline.md", "json", ".cline/data/settings/providers.json", "cline"
    wires = (("anthropic", MESSAGES_ONLY), ("openai-compatible", LENIENT), ("openai-native", LENIENT))
    shown = ('You asked: "hello there"',) * 4
    tool = f'use run_commands: {{"commands": ["{_COMMAND}"]}}'

    def configuration(self, page: str, wire: str | None, model: str) -> str:
        return page

    def configure(self, url: str, wire: str | None = None, model: str = "") -> None:
        super().configure(url, wire, model)
        (self.home / self.place).with_name("global-settings.json").write_text('{"telemetryOptOut": true}')

    def arguments(self, wire: str, model: str) -> Sequence[str]:
        return ("-P", wire, "-m", model)

    async def environment(self) -> dict[str, str]:
        """Nothing goes on in the background, where it would outlive the scenario."""
        switches = {"CLINE_SESSION_BACKEND_MODE": "local", "CLINE_NO_AUTO_UPDATE": "1"}
        return {**await super().environment(), **switches}


QWEN_VERSIONS = ("0.24.4",)
CONTINUE_VERSIONS = ("1.5.47",)
PI_VERSIONS = ("1.6.0",)
CLINE_VERSIONS = ("3.0.65",)


async def install_qwen(version: str, cache: Path) -> Path:
    """The program of a version."""
    await install_node(cache)
    return await npm_install("@qwen-code/qwen-code", version, cache, "@qwen-code/qwen-code/cli-entry.js")


async def install_continue(version: str, cache: Path) -> Path:
    """The program of a version."""
    await install_node(cache)
    return await npm_install("@continuedev/cli", version, cache, "@continuedev/cli/dist/cn.js")


async def install_pi(version: str, cache: Path) -> Path:
    """The program of a version."""
    await install_node(cache)
    package = "@earendil-works/pi-coding-agent"
    return await npm_install(package, version, cache, f"{package}/dist/bundle/cli.js")


async def install_cline(version: str, cache: Path) -> Path:
    """The program of a version."""
    await install_node(cache)
    return await npm_install("cline", version, cache, "cline/bin/cline")


def _rounds_over(wire: str, settings: Mapping[str, str]) -> Scenario[Agent]:
    async def rounds(agent: Agent, folder: Path) -> None:
        """A tool is called, and its result comes back to the model, with each model."""
        async with watched_proxy(folder, [], settings) as (url, _sandbox):
            for model in MODELS:
                done = await agent.run(url, wire, model, agent.tool)
                expect(done.status == 0 and 'returned: "' in done.stdout, f"{model} has its result", done)
                expect(_DONE in done.stdout.rpartition('returned: "')[2], f"{model} has what the tool said", done)

    return named(rounds, f"tool rounds over {wire}")


def _page() -> Scenario[Agent]:
    async def page(agent: Agent, folder: Path) -> None:
        """The page's commands, with its configuration."""
        async with watched_proxy(folder, [], LENIENT) as (url, _sandbox):
            agent.configure(url)
            tools = {agent.name: " ".join(await agent.started())}
            variables = {name: value for name, value in (await agent.environment()).items() if name not in _OWN}
            runs = await run_shell(agent.page, url, agent.home, tools, **variables)
        expect(all(done.status == 0 for done in runs), "they run", runs)
        printed = "".join(done.stdout for done in runs)
        expect(
            all(printed.count(words) >= agent.shown.count(words) for words in agent.shown), "they are answered", runs
        )

    return named(page, "page")


def _scenarios(agent: type[Agent]) -> Scenarios[Agent]:
    """What each of them must be able to do."""
    return Scenarios([*(_rounds_over(*wire) for wire in agent.wires), _page()])


OPENCODE, QWEN_CODE, CONTINUE, PI, CLINE = map(_scenarios, (Opencode, QwenCode, Continue, Pi, Cline))
