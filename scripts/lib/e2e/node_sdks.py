"""The JavaScript programs of docs/clients, run as they stand with the SDKs from npm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from e2e.expecting import Scenario, Scenarios, expect, named
from e2e.npm import OnNode, install_node
from e2e.npm import install as npm_install
from e2e.pages import blocks
from e2e.servers import LENIENT, MESSAGES_ONLY, watched_proxy

_ZOD = "zod@4.6.7"


@dataclass(frozen=True, slots=True)
class NodeSdk:
    """An SDK and its page.

    name      under which it is driven
    package   of npm
    beside    other packages that the page's programs need
    words     that they print, in the sandbox -> how often
    settings  of the proxy that the page asks for
    more      scenarios beside the page
    """

    name: str
    package: str
    version: str
    page: str
    beside: tuple[str, ...]
    words: Mapping[str, int]
    settings: Mapping[str, str]
    more: Sequence[Scenario[OnNode]] = ()

    async def install(self, version: str, cache: Path) -> Path:
        """What npm knows the package by, beside Node.js."""
        await install_node(cache)
        return await npm_install(self.package, version, cache, f"{self.package}/package.json", *self.beside)

    @property
    def scenarios(self) -> Scenarios[OnNode]:
        return Scenarios([self._page(), *self.more])

    def _page(self) -> Scenario[OnNode]:
        async def page(client: OnNode, folder: Path) -> None:
            async with watched_proxy(folder, [], self.settings) as (url, _sandbox):
                runs = [await client.run_module(block) for block in blocks(self.page, "js", url)]
            for done in runs:
                expect(done.status == 0, "it runs", (done.stderr[-1000:], done.stdout[-1000:]))
            printed = "".join(done.stdout for done in runs)
            seen = {words: printed.count(words) for words in self.words}
            expect(seen == dict(self.words), f"it prints {self.words}", (seen, printed))

        return named(page, self.page)


async def _refusals(client: OnNode, folder: Path) -> None:
    """The parse helpers, where the model refuses: its words, and no failure."""
    models = ("gpt-5.6-sol", "gpt-5.5", "opencode-go/gpt-5.6-luna")
    program = (Path(__file__).parent / "refusals.mjs").read_text()
    async with watched_proxy(folder, [{"fault": "refusal", "times": None}], LENIENT) as (url, _sandbox):
        done = await client.run_module(program, url, *models)
    expect(done.status == 0, "no helper fails", (done.stderr[-1000:], done.stdout))
    ways = ("chat stop null", "responses completed null refusal")
    for line in (f"{model} {way} {_REFUSAL}" for model in models for way in ways):
        expect(done.stdout.count(line) == 2, f"whole and streamed: {line}", done.stdout)


_REFUSAL = "I cannot help with that."

ANTHROPIC = NodeSdk(
    "anthropic-node",
    "@anthropic-ai/sdk",
    "1.12.0",
    "anthropic-sdk.md",
    (_ZOD,),
    {'You asked: "hello"': 3, '"It rains in Paris."': 6},
    MESSAGES_ONLY,
)
OPENAI = NodeSdk(
    "openai-node",
    "openai",
    "7.57.0",
    "openai-sdk.md",
    (_ZOD,),
    {'"It rains in Paris."': 9},
    LENIENT,
    (named(_refusals, "parsed refusals"),),
)
AI_SDK = NodeSdk(
    "ai-sdk",
    "ai",
    "7.0.173",
    "ai-sdk.md",
    ("@ai-sdk/anthropic@4.0.105", "@ai-sdk/openai@4.0.118", "@ai-sdk/openai-compatible@3.0.92", _ZOD),
    {'"It rains in Paris."': 24},
    LENIENT,
)
AGENT_SDK = NodeSdk(
    "claude-agent-sdk-node",
    "@anthropic-ai/claude-agent-sdk",
    "0.3.330",
    "claude-agent-sdk.md",
    (_ZOD,),
    {'"It rains in Paris."': 3},
    MESSAGES_ONLY,
)

#: Those that `--all` drives only.
MORE = (ANTHROPIC, OPENAI, AGENT_SDK)
