"""The monitor's page in a real Chromium, in front of a proxy with traffic."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from e2e.expecting import Scenario, Scenarios, expect, named
from e2e.npm import OnNode, install_node
from e2e.npm import install as npm_install
from e2e.process import run
from e2e.servers import watched_proxy
from proxy.observe.history.past_request import COLUMNS, PastRequest
from proxy.observe.history.schema import FILE_NAME, Names, connect, transaction
from proxy.observe.history.writer import write_requests

#: Chromium is in the npm package as such.
VERSIONS = ("147.0.0",)
_BESIDE = ("playwright-core@1.65.1", "axe-core@4.14.1")

_PROGRAM, _HISTORY = (Path(__file__).parent / name for name in ("monitor_page.mjs", "monitor_history.mjs"))
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


_HOUR_S = 3600
#: What others may call a model: one that would be an element, one that is long, and more than have a colour or a row.
_MODELS = (
    "gpt-5.5",
    "<img src=x onerror=alert(1)>",
    f"long-{'name-' * 40}",
    *(f"model-{number}" for number in range(20)),
)
_EMPTY = PastRequest(*[None] * len(COLUMNS))  # type: ignore[arg-type]


def _past_requests(now: float) -> Iterator[PastRequest]:
    """Two a day of each model, for 40 days; some failed, some of a service that does not report its cache."""
    for number in count():
        ended = now - 60 - number * 12 * _HOUR_S
        if ended < now - 40 * 24 * _HOUR_S:
            return
        for place, model in enumerate(_MODELS):
            failed, account = (number + place) % 9 == 0, f"p{1 + place % 5}"
            yield _EMPTY._replace(
                request=f"r{number}-{place}",
                ended=round(1000 * ended),
                first_ms=None if failed else 300 + 90 * place,
                total_ms=5000,
                endpoint="messages",
                account=account,
                served=model,
                input=100_000 // (1 + place),
                cached=None if account == "p5" else 80_000 // (1 + place),
                output=0 if failed else 500,
                aside=0,
                searches=0,
                retries=0,
                outcome="failed" if failed else "completed",
            )


#: account, window -> hours since now, per cent, hours until the reset: spent before it, not, used up, begun again,
#: unused for hours, and one of which too little is known.
_WINDOWS = {
    ("p1/old", "5 hours"): [(-8.0, 90.0, -4.0), (-2.0, 20.0, 3.0), (-0.5, 60.0, 3.0)],
    ("p2/work", "week"): [(-100.0, 10.0, 90.0), (-2.5, 29.5, 90.0), (-0.5, 30.0, 90.0)],
    ("p3/old", "month"): [(-90.0, 100.0, 400.0)],
    ("p4/old", "Rolling"): [(-9.0, 70.0, -5.0)],
    ("p5/old", "month"): [(-90.0, 10.0, 400.0)],
    ("p5/old", "day"): [(-0.05, 40.0, 20.0)],
}


def _write_past(path: Path) -> None:
    """A history that is known, as a proxy would have left it."""
    now = time.time()
    db = connect(path)
    with transaction(db):
        names = Names(db)
        write_requests(db, list(_past_requests(now)), names)
        for (account, window), samples in _WINDOWS.items():
            place = names.number(account), names.number(window), names.number("")
            for at, used, end in samples:
                moments = (round(1000 * (now + hours * _HOUR_S)) for hours in (at, end))
                values = (*place, next(moments), used, next(moments))
                db.execute(f"INSERT INTO allowances VALUES ({', '.join('?' * len(values))})", values)
    db.close()


def _checked(words: str, checks: str, key: str = "", past: bool = True, **settings: str) -> Scenario[OnNode]:
    """A scenario of what the program beside this file calls so. `past`: with a history of the last weeks."""

    async def scenario(browser: OnNode, folder: Path) -> None:
        given = {**_ON, **settings, **({"PROXY_API_KEY": key} if key else {})}
        if past:
            _write_past(folder / "state" / "model-proxy" / FILE_NAME)
        async with watched_proxy(folder, _SLOWLY, given) as (url, _sandbox):
            done = await browser.run_module(_PROGRAM.read_text(), url, checks, key, parts=[_HISTORY])
        expect(done.status == 0, "every check of the page holds", (done.stdout[-600:], done.stderr[:1000]))

    return named(scenario, f"monitor page in Chromium {words}")


SCENARIOS: Scenarios[OnNode] = Scenarios(
    [
        _checked("", "empty,formats,numbers,live,keys,alike,hostile", past=False),
        _checked("with a history", "days,past,past_keys,past_rows,past_faults,past_forced_colours"),
    ]
)
MORE: Scenarios[OnNode] = Scenarios(
    [
        _checked("for everybody", "numbers,gone,axe,past_axe"),
        _checked("with a key", "key", _KEY),
        _checked("without a history", "past_off", past=False, PROXY_HISTORY="0"),
    ]
)
