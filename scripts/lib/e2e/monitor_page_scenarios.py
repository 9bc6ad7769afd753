"""The monitor's page in a real Chromium, in front of a proxy with traffic."""

from __future__ import annotations

from pathlib import Path

from e2e.expecting import Scenario, Scenarios, expect, named
from e2e.npm import OnNode, install_node
from e2e.npm import install as npm_install
from e2e.servers import watched_proxy

#: Chromium is in the npm package as such.
VERSIONS = ("147.0.0",)
_BESIDE = ("playwright-core@1.65.1", "axe-core@4.14.1")

_PROGRAM = Path(__file__).parent / "monitor_page.mjs"
_ON = {"PROXY_MONITOR_PAGE": "1"}
_KEY = "key-of-the-caller"

#: A stream that one can watch.
_SLOWLY = [{"match": {"prompt": "slowly"}, "word_delay_s": 0.05, "times": None}]


async def install(version: str, cache: Path) -> Path:
    await install_node(cache)
    package = "@sparticuz/chromium"
    return await npm_install(package, version, cache, f"{package}/package.json", *_BESIDE)


def _checked(words: str, checks: str, key: str = "") -> Scenario[OnNode]:
    """A scenario of what the program beside this file calls so."""

    async def scenario(browser: OnNode, folder: Path) -> None:
        settings = {**_ON, "PROXY_API_KEY": key} if key else _ON
        async with watched_proxy(folder, _SLOWLY, settings) as (url, _sandbox):
            done = await browser.run_module(_PROGRAM.read_text(), url, checks, key)
        expect(done.status == 0, "every check of the page holds", (done.stdout[-600:], done.stderr[:1000]))

    return named(scenario, f"monitor page in Chromium {words}")


SCENARIOS: Scenarios[OnNode] = Scenarios([_checked("", "empty,numbers,live,keys,alike,hostile")])
MORE: Scenarios[OnNode] = Scenarios(
    [_checked("for everybody", "numbers,gone,axe"), _checked("with a key", "key", _KEY)]
)
