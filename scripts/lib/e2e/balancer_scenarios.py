"""nginx and HAProxy with our recipes before three replicas. Each scenario raises AssertionError."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import aiohttp

from e2e.balancer_talk import SESSION_HEADERS, Session, Told, places, stream
from e2e.balancers import RECIPES, REPLICAS, Balancer, Replica, balanced, replicas
from e2e.expecting import Scenarios, expect
from e2e.process import run
from proxy.observe.history.schema import FILE_NAME as HISTORY
from proxy.sandbox import Sandbox
from proxy.server.callers.callers import used_today
from proxy.server.callers.keys import FILE_NAME as KEYS
from proxy.server.callers.keys import CallerKey, KeyLimits, digest_of, encode_keys

VERSIONS = ("here",)
SCENARIOS: Scenarios[Balancer] = Scenarios()

SESSIONS, AT_ONCE = 200, 16
#: Streams of the scenarios in which a replica goes, one a session: words, seconds between them.
STREAMS, WORDS, PACE_S = 30, 120, 0.05
#: Longer than HAProxy takes to notice, in its recipe.
NOTICE_MS, DRAIN_MS = 4_000, 30_000
#: For the throughput: requests, words of each answer.
ANSWERS, ANSWER_WORDS = 600, 200

#: The balancer's address, the replicas behind it, and what asks.
_World = tuple[str, list[Replica], aiohttp.ClientSession]


@asynccontextmanager
async def _asking(key: str) -> AsyncIterator[aiohttp.ClientSession]:
    connector, timeout = aiohttp.TCPConnector(limit=0, force_close=True), aiohttp.ClientTimeout(120)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, headers={"x-api-key": key}) as client:
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
    one_state: bool = False,
    key: str = "any",
) -> AsyncIterator[_World]:
    """`one_state`: as on one machine; `key`: of the one who asks."""
    sandbox.write_credentials(folder / "config", lifetime_s=lifetime_s)
    told = {**sandbox.settings(), "PROXY_CONFIG_DIR": str(folder / "config"), **settings}
    async with (
        replicas(folder, told, count, one_state=one_state) as servers,
        balanced(balancer, servers) as url,
        _asking(key) as client,
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
    for kind, header in enumerate(SESSION_HEADERS):
        counts = Counter(next(iter(home)) for home in homes[kind :: len(SESSION_HEADERS)])
        least = SESSIONS // len(SESSION_HEADERS) // 10
        expect(len(counts) == REPLICAS and min(counts.values()) >= least, f"{header} spreads them", counts)
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
    async with Sandbox() as sandbox, _world(balancer, folder, sandbox) as world:
        await _loses_its_own(world, sandbox, Replica.kill)


@SCENARIOS.add
async def a_replica_without_time_to_drain_loses_its_open_streams_only(balancer: Balancer, folder: Path) -> None:
    async def ends(replica: Replica) -> None:
        replica.stop()
        expect(await replica.ended() == 1, "it says that it cut answers")

    settings = {"PROXY_STOP_NOTICE_MS": "500", "PROXY_DRAIN_TIMEOUT_MS": "100"}
    async with Sandbox() as sandbox, _world(balancer, folder, sandbox, settings) as world:
        await _loses_its_own(world, sandbox, ends)


async def _loses_its_own(world: _World, sandbox: Sandbox, end: Callable[[Replica], Awaitable[None]]) -> None:
    """Each of its streams ends with what clients repeat, and the repeated request is answered by another."""
    url, servers, client = world
    homes = await _homes(url, client, servers)
    sandbox.p1.options.word_delay_s, sandbox.p1.total_requests = PACE_S, 0
    streams = await _begun(url, client, sandbox)
    sandbox.p1.options.word_delay_s = 0.0
    await end(servers[1])
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
async def two_processes_with_one_state_folder_keep_sessions_and_survive_one_another(
    balancer: Balancer, folder: Path
) -> None:
    """The killed one comes back by itself, as under a service manager, and its sessions with it."""
    async with Sandbox() as sandbox, _world(balancer, folder, sandbox, count=2, one_state=True) as world:
        url, servers, client = world
        homes = await _homes(url, client, servers)
        expect(len(set(homes)) == 2, "both serve", Counter(homes))
        expect(homes == await _homes(url, client, servers), "and each session stays", homes)
        await _loses_its_own(world, sandbox, Replica.kill)
        await servers[1].start()
        await asyncio.sleep(4.0)  # until HAProxy believes it
        back = await _homes(url, client, servers)
        expect(back == homes, "its sessions come home", (homes, back))
        log = servers[0].state / "model-proxy" / "proxy.log"
        records = [json.loads(line) for line in log.read_text().splitlines()]
    starts = [record for record in records if record["msg"] == "server listening"]
    expect(len(starts) == 3, "one log has the records of both, each whole", len(records))


#: Who asks, and who watches.
_CALLER, _GUARDED = "key-of-anna", {"PROXY_API_KEY": "key-of-the-operator"}


@SCENARIOS.add
async def two_processes_with_one_state_folder_renew_once_and_count_a_caller_together(
    balancer: Balancer, folder: Path
) -> None:
    anna = CallerKey("anna", digest_of(_CALLER.encode()), 0)
    keys, history = folder / "config" / KEYS, folder / "state" / "model-proxy" / HISTORY
    keys.parent.mkdir(parents=True)
    keys.write_bytes(encode_keys([anna]))
    shared = _world(
        balancer, folder, sandbox := Sandbox(), _GUARDED, lifetime_s=-60, count=2, one_state=True, key=_CALLER
    )
    async with sandbox, shared as (url, servers, client):
        sandbox.p1.issuer.delay_s = 0.3
        homes = await _homes(url, client, servers)
        expect(len(set(homes)) == 2, "both needed the token", Counter(homes))
        expect(sandbox.p1.issuer.refresh_requests == 1, "one fetched it", sandbox.p1.issuer.refresh_requests)
        await asyncio.sleep(2.0)  # until both have written
        use = (used_today(history, time.time()) or {})["anna"]
        expect(use.requests == STREAMS, "each request is counted once", use)
        keys.write_bytes(encode_keys([replace(anna, limits=KeyLimits(tokens_per_day=use.tokens))]))
        await asyncio.sleep(2.0)  # until both have read them
        # Neither used that much by itself. Each hears of the other within a second after a request of its own.
        for _ in range(2):
            told = [await stream(client, url, homes.index(home), 1) for home in (0, 1)]
            await asyncio.sleep(2.0)
    expect([one.status for one in told] == [429, 429], "both refuse what both together used up", told)


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
            f" of {ANSWER_WORDS} words a second, {cpu_ms:.1f} ms CPU each; {shares} s CPU in {seconds:.1f} s"
        )


async def _many(url: str, client: aiohttp.ClientSession, count: int) -> list[Told]:
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> Told:
        async with gate:
            return await stream(client, url, number, ANSWER_WORDS)

    return await asyncio.gather(*(one(number) for number in range(count)))


#: Of HAProxy alone.
HAPROXY: Scenarios[Balancer] = Scenarios(SCENARIOS)


@HAPROXY.add
async def it_takes_the_configuration_of_the_kubernetes_manifests(balancer: Balancer, folder: Path) -> None:
    manifests = (RECIPES / "kubernetes" / "model-proxy.yaml").read_text()
    path = folder / "haproxy.cfg"
    path.write_text(dedent(manifests.partition("  haproxy.cfg: |\n")[2].partition("---\n")[0]))
    done = await run([str(balancer.program), "-c", "-f", str(path)], folder, {})
    expect(done.status == 0 and "[WARNING]" not in done.stderr, "without a warning", done.stderr)
