"""kimi-code at the simulated p2, without the proxy between them."""

from __future__ import annotations

from pathlib import Path

from e2e.alone import Simulators, simulators
from e2e.expecting import Scenarios, expect
from e2e.npm import OnNode, install_node
from e2e.npm import install as npm_install
from e2e.process import Finished, run

VERSIONS = ("2.1.0",)


async def install(version: str, cache: Path) -> Path:
    """The program, and the Node.js that runs it."""
    await install_node(cache)
    return await npm_install("@moonshot-ai/kimi-code", version, cache, "@moonshot-ai/kimi-code/dist/main.mjs")


class KimiCode(OnNode):
    async def run(self, found: Simulators, *arguments: str) -> Finished:
        node = await self.node()
        environment = {
            "PATH": f"{node.parent}:/usr/bin:/bin",
            "HOME": str(self.home),
            "TERM": "dumb",
            "KIMI_CODE_HOME": str(self.home / ".kimi"),
            "KIMI_CODE_BASE_URL": f"{found.origin}/coding/v1",
            "KIMI_CODE_OAUTH_HOST": found.origin,
            "KIMI_CODE_NO_AUTO_UPDATE": "1",
            "KIMI_DISABLE_TELEMETRY": "1",
        }
        return await run([str(node), str(self.program), *arguments], self.work, environment)


SCENARIOS: Scenarios[KimiCode] = Scenarios()


@SCENARIOS.add
async def signs_in_and_works(kimi: KimiCode, folder: Path) -> None:
    """Device login, then a plain turn and one with a tool on each kind of model, and a search."""
    async with simulators(folder) as found:
        login = await kimi.run(found, "login")
        expect(login.status == 0 and "Logged in" in login.stdout + login.stderr, "it signs in", login)
        for model in ("kimi-code/kimi-for-coding", "kimi-code/k3"):
            plain = await kimi.run(found, "-m", model, "-p", "hello there")
            expect(plain.status == 0 and '"hello there"' in plain.stdout, f"{model} answers", plain)
            tool = await kimi.run(found, "-m", model, "-p", "use Bash: echo from-$((1 + 1))-kimi")
            expect(tool.status == 0 and "from-2-kimi" in tool.stdout, f"{model} calls a tool", tool)
        search = await kimi.run(found, "-p", 'use WebSearch: {"query": "rust"}')
        expect(search.status == 0 and "WebSearch returned" in search.stdout, "it searches", search)
