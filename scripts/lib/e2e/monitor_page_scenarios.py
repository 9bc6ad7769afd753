"""The monitor's page in a real Chromium, in front of a proxy with traffic."""

from __future__ import annotations

from pathlib import Path

from e2e.expecting import Scenario, Scenarios, expect, named
from e2e.npm import OnNode, install_node
from e2e.npm import install as npm_install
from e2e.process import run
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
    node = await install_node(cache)
    package = "@sparticuz/chromium"

    async def unpack(found: Path) -> None:
        """Where the program looks for it. It takes a browser that is half there for a whole one."""
        folder = found.parents[3]
        place = folder / "unpacked"
        place.mkdir()
        done = await run([str(node), "--input-type=module", "-e", _UNPACK, str(place)], folder, {})
        expect(done.status == 0, "Chromium is unpacked", done)

    return await npm_install(package, version, cache, f"{package}/package.json", *_BESIDE, unpack=unpack)


#: Of the functions service whose libraries the package brings; it looks for both names when it is loaded.
_UNPACK = """
process.env.TMPDIR = process.argv[1];
process.env.AWS_EXECUTION_ENV = "AWS_Lambda_nodejs20.x";
process.env.AWS_LAMBDA_JS_RUNTIME = "nodejs20.x";
const { default: packed } = await import("@sparticuz/chromium");
await packed.executablePath();
"""


def _checked(words: str, checks: str, key: str = "") -> Scenario[OnNode]:
    """A scenario of what the program beside this file calls so."""

    async def scenario(browser: OnNode, folder: Path) -> None:
        settings = {**_ON, "PROXY_API_KEY": key} if key else _ON
        async with watched_proxy(folder, _SLOWLY, settings) as (url, _sandbox):
            done = await browser.run_module(_PROGRAM.read_text(), url, checks, key)
        expect(done.status == 0, "every check of the page holds", (done.stdout[-600:], done.stderr[:1000]))

    return named(scenario, f"monitor page in Chromium {words}")


SCENARIOS: Scenarios[OnNode] = Scenarios([_checked("", "empty,formats,numbers,live,keys,alike,hostile")])
MORE: Scenarios[OnNode] = Scenarios(
    [_checked("for everybody", "numbers,gone,axe"), _checked("with a key", "key", _KEY)]
)
