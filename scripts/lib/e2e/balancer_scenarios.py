"""nginx and HAProxy with our recipes before three replicas. Each scenario raises AssertionError."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from e2e.balancer_talk import Session, Told, places, stream
from e2e.balancers import REPLICAS, Balancer, Replica, balanced, replicas
from e2e.expecting import Scenarios, expect
from proxy.sandbox import Sandbox

VERSIONS = ("here",)
SCENARIOS: Scenarios[Balancer] = Scenarios()

SESSIONS, AT_ONCE = 200, 16
#: Streams of the scenarios in which a replica goes, one a session: words, seconds between them.
STREAMS, WORDS, PACE_S = 30, 120, 0.05
#: Longer than HAProxy takes to notice, in its recipe.
NOTICE_MS, DRAIN_MS = 4_000, 30_000
#: For the throughput: requests, words of each answer.
ANSWERS, ANSWER_WORDS = 600, 200


@asynccontextmanager
async def _asking() -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(120)) as client:
        yield client


@asynccontextmanager
async def _world(
    balancer: Balancer,
    folder: Path,
    sandbox: Sandbox,
    settings: Mapping[str, str] = {},
    *,
    lifetime_s: int | None = None,
    count: int = REPLICAS,
) -> AsyncIterator[tuple[str, list[Replica], aiohttp.ClientSession]]:
    sandbox.write_credentials(folder / "config", lifetime_s=lifetime_s)
    told = {**sandbox.settings(), "PROXY_CONFIG_DIR": str(folder / "config"), **settings}
    async with (
        replicas(folder, told, count) as servers,
        balanced(balancer, servers) as url,
        _asking() as client,
    ):
        yield url, servers, client


@SCENARIOS.add
async def sessions_with_tools_stay_on_their_replica(balancer: Balancer, folder: Path) -> None:
    """Four requests of each over new connections, with continuation on the replica's WebSocket."""
    sessions, gate = [Session(number) for number in range(SESSIONS)], asyncio.Semaphore(AT_ONCE)
    async with Sandbox() as sandbox, _world(balancer, folder, sandbox, _CONTINUED) as (url, servers, client):
        sandbox.p1.requests = deque()  # all are kept

        async def talk(session: Session) -> None:
            async with gate:
                await session.round(client, url, "ls -la")
                await session.round(client, url, "pwd")

        await asyncio.gather(*(talk(one) for one in sessions))
        homes = [set(await places(servers, one.told)) for one in sessions]
        asked = ["previous_response_id" in each.body for each in sandbox.p1.requests]
    expect(all(len(home) == 1 for home in homes), "each session has one replica", homes)
    counts = Counter(next(iter(home)) for home in homes)
    expect(len(counts) == REPLICAS and min(counts.values()) > SESSIONS // 10, "each replica has its share", counts)
    expect(len(asked) == 4 * SESSIONS, "nothing was asked twice", len(asked))
    expect(asked.count(True) == 3 * SESSIONS // 2, "all but the first of Messages went on", Counter(asked))


#: Sessions of Messages are continued; those of Responses send what the client sent.
_CONTINUED = {"PROXY_P1_PREVIOUS_RESPONSE_ID": "1"}


async def _begun(url: str, client: aiohttp.ClientSession, sandbox: Sandbox) -> list[asyncio.Task[Told]]:
    """Slow streams of sessions, all under way."""
    tasks = [asyncio.create_task(stream(client, url, number, WORDS)) for number in range(STREAMS)]
    for _ in range(400):
        if sandbox.p1.total_requests >= STREAMS:
            break
        await asyncio.sleep(0.05)
    expect(sandbox.p1.total_requests >= STREAMS, "all streams are under way", sandbox.p1.total_requests)
    await asyncio.sleep(4 * PACE_S)
    return tasks


async def _homes(url: str, client: aiohttp.ClientSession, servers: Sequence[Replica]) -> list[int]:
    """The replica of each session that streams."""
    told = await asyncio.gather(*(stream(client, url, number, 1) for number in range(STREAMS)))
    expect(all(one.whole for one in told), "every session is answered", [one for one in told if not one.whole][:2])
    return await places(servers, told)


@SCENARIOS.add
async def a_replica_that_drains_loses_nothing(balancer: Balancer, folder: Path) -> None:
    """Its streams end whole, requests that come meanwhile are answered, the others' sessions stay, and it gets its own
    back when it is there again."""
    settings = {"PROXY_STOP_NOTICE_MS": str(NOTICE_MS), "PROXY_DRAIN_TIMEOUT_MS": str(DRAIN_MS)}
    async with Sandbox() as sandbox, _world(balancer, folder, sandbox, settings) as (url, servers, client):
        homes = await _homes(url, client, servers)
        sandbox.p1.options.word_delay_s, sandbox.p1.total_requests = PACE_S, 0
        streams = await _begun(url, client, sandbox)
        servers[0].stop()
        sandbox.p1.options.word_delay_s = 0.0
        meanwhile: list[Told] = []
        while not all(one.done() for one in streams) or servers[0].runs:
            meanwhile.append(await stream(client, url, len(meanwhile) % STREAMS, 1))
            await asyncio.sleep(0.02)
        told = await asyncio.gather(*streams)
        status = await servers[0].ended()
        moved = await _homes(url, client, servers)
        await servers[0].start()
        await asyncio.sleep(4.0)  # until both balancers believe it
        back = await _homes(url, client, servers)
    expect(all(one.whole for one in told), "every stream ends whole", [one for one in told if not one.whole][:2])
    expect(status == 0, "nothing was cut", status)
    lost = [one for one in meanwhile if not one.whole]
    expect(not lost, f"each of {len(meanwhile)} requests meanwhile is answered", lost[:3])
    expect(0 not in moved and 0 in homes, "the sessions of the one that went are with others", moved)
    _expect_others_stayed(homes, moved, 0)
    expect(back == homes, "and they come home", (homes, back))


def _expect_others_stayed(homes: Sequence[int], moved: Sequence[int], gone: int) -> None:
    pairs = list(zip(homes, moved, strict=True))
    expect(all(was == now for was, now in pairs if was != gone), "sessions of the other replicas stay", pairs)


@SCENARIOS.add
async def a_replica_that_is_killed_loses_its_open_streams_only(balancer: Balancer, folder: Path) -> None:
    """Each of them ends with what clients repeat, and the repeated request is answered by another."""
    async with Sandbox() as sandbox, _world(balancer, folder, sandbox) as (url, servers, client):
        homes = await _homes(url, client, servers)
        sandbox.p1.options.word_delay_s, sandbox.p1.total_requests = PACE_S, 0
        streams = await _begun(url, client, sandbox)
        sandbox.p1.options.word_delay_s = 0.0
        await servers[1].kill()
        again = await _homes(url, client, servers)
        told = await asyncio.gather(*streams)
    lost = {number for number, one in enumerate(told) if not one.whole}
    expect(lost == {number for number, home in enumerate(homes) if home == 1}, "only its own", (lost, homes))
    expect(lost and all(told[number].may_be_repeated for number in lost), "as what is repeated", told)
    expect(1 not in again, "which others answer", again)
    _expect_others_stayed(homes, again, 1)


@SCENARIOS.add
async def a_token_is_renewed_once_over_all_replicas(balancer: Balancer, folder: Path) -> None:
    async with Sandbox() as sandbox, _world(balancer, folder, sandbox, lifetime_s=-60) as (url, servers, client):
        sandbox.p1.issuer.delay_s = 0.3
        homes = await _homes(url, client, servers)
        renewals = sandbox.p1.issuer.refresh_requests
    expect(len(set(homes)) == REPLICAS, "every replica needed it", Counter(homes))
    expect(renewals == 1, "and one of them fetched it", renewals)


@SCENARIOS.add
async def throughput_of_three_processes_and_of_one(balancer: Balancer, folder: Path) -> None:
    """Measured and printed, not judged: it is a matter of the machine's cores, which client and upstreams share."""
    for count in (1, REPLICAS):
        async with Sandbox() as sandbox, _world(balancer, folder / f"of-{count}", sandbox, count=count) as world:
            url, servers, client = world
            await _many(url, client, ANSWERS // 10)  # each has loaded what it needs
            started, before = time.monotonic(), [one.cpu_s() for one in servers]
            told = await _many(url, client, ANSWERS)
            seconds, used = time.monotonic() - started, [one.cpu_s() for one in servers]
        expect(all(one.whole for one in told), "every stream ends whole", [one for one in told if not one.whole][:2])
        shares = [round(after - earlier, 1) for after, earlier in zip(used, before, strict=True)]
        cpu_ms = 1000 * sum(shares) / ANSWERS
        print(
            f"       {balancer.program.name}, {count} replicas: {ANSWERS / seconds:.0f} answers"
            f" of {ANSWER_WORDS} words a second, {cpu_ms:.1f} ms CPU of replicas each;"
            f" seconds of CPU {shares} in {seconds:.1f}"
        )


async def _many(url: str, client: aiohttp.ClientSession, count: int) -> list[Told]:
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> Told:
        async with gate:
            return await stream(client, url, number, ANSWER_WORDS)

    return await asyncio.gather(*(one(number) for number in range(count)))
