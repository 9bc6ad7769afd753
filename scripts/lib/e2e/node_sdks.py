"""The JavaScript programs of docs/clients, run as they stand with the SDKs from npm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from e2e.expecting import Scenario, Scenarios, expect, named
from e2e.npm import OnNode, install_node
from e2e.npm import install as npm_install
from e2e.pages import run_node
from e2e.servers import watched_proxy

_ZOD = "zod@4.6.7"
_LENIENT = {"PROXY_OPENAI_MODE": "lenient"}


@dataclass(frozen=True, slots=True)
class NodeSdk:
    """An SDK and its page.

    name      under which it is driven
    package   of npm
    beside    other packages that the page's programs need
    words     that they print, in the sandbox -> how often
    settings  of the proxy that the page asks for
    """

    name: str
    package: str
    version: str
    page: str
    beside: tuple[str, ...]
    words: Mapping[str, int]
    settings: Mapping[str, str]

    async def install(self, version: str, cache: Path) -> Path:
        """What npm knows the package by, beside Node.js."""
        await install_node(cache)
        return await npm_install(self.package, version, cache, f"{self.package}/package.json", *self.beside)

    @property
    def scenarios(self) -> Scenarios[OnNode]:
        found: Scenarios[OnNode] = Scenarios()
        found.add(self._page())
        return found

    def _page(self) -> Scenario[OnNode]:
        async def page(client: OnNode, folder: Path) -> None:
            async with watched_proxy(folder, [], self.settings) as (url, _sandbox):
                runs = await run_node(self.page, url, await client.node(), client.modules, client.work)
            for done in runs:
                expect(done.status == 0, "it runs", (done.stderr[-1000:], done.stdout[-1000:]))
            printed = "".join(done.stdout for done in runs)
            seen = {words: printed.count(words) for words in self.words}
            expect(seen == dict(self.words), f"it prints {self.words}", (seen, printed))

        return named(page, self.page)


ANTHROPIC = NodeSdk(
    "anthropic-node",
    "@anthropic-ai/sdk",
    "1.12.0",
    "anthropic-sdk.md",
    (_ZOD,),
    {'You asked: "hello"': 3, '"It rains in Paris."': 6},
    {},
)
OPENAI = NodeSdk("openai-node", "openai", "7.57.0", "openai-sdk.md", (_ZOD,), {'"It rains in Paris."': 9}, _LENIENT)
AI_SDK = NodeSdk(
    "ai-sdk",
    "ai",
    "7.0.173",
    "ai-sdk.md",
    ("@ai-sdk/anthropic@4.0.105", "@ai-sdk/openai@4.0.118", "@ai-sdk/openai-compatible@3.0.92", _ZOD),
    {'"It rains in Paris."': 24},
    _LENIENT,
)
AGENT_SDK = NodeSdk(
    "claude-agent-sdk-node",
    "@anthropic-ai/claude-agent-sdk",
    "0.3.330",
    "claude-agent-sdk.md",
    (_ZOD,),
    {'"It rains in Paris."': 3},
    {},
)

#: Those that `--all` drives only.
MORE = (ANTHROPIC, OPENAI, AGENT_SDK)
