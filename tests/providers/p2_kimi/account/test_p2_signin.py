"""P2's sign-in and renewal against the simulated issuer."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from proxy.auth.refresh import Credentials
from proxy.core.secret import Secret
from proxy.errors import SignInError, UpstreamError
from proxy.providers.p2_kimi.account import signin
from proxy.providers.p2_kimi.account.signin import credential_from, p2_credentials
from proxy.sandbox import Sandbox

REPO = Path(__file__).parents[4]
NOW_S = 1_800_000_000.0
NOW_MS = 1_800_000_000_000
#: {"user_id": "u_9"}
JWT = "e30.eyJ1c2VyX2lkIjoidV85In0.sig"


class Time:
    """Clocks that only sleeping moves."""

    def __init__(self) -> None:
        self.now = NOW_S
        self.sleeps: list[float] = []
        self.then: Callable[[], Any] = lambda: None

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds
        self.then()


class World:
    """A config root, the simulated account, and both clocks on one hand."""

    def __init__(self, root: Path, sandbox: Sandbox, time: Time, session: aiohttp.ClientSession) -> None:
        self.root, self.sandbox, self.time, self.session = root, sandbox, time, session
        self.p2, self.issuer = sandbox.p2, sandbox.p2.issuer
        self.path = root / "p2" / "auth.json"
        self.said: list[str] = []

    def store(self, left_s: int = -1) -> None:
        self.sandbox.write_credentials(self.root, lifetime_s=left_s)

    @property
    def stored(self) -> dict[str, Any]:
        record: dict[str, Any] = json.loads(self.path.read_text())
        return record

    def credentials(self) -> Credentials:
        time, origin = self.time, self.sandbox.origin + "/"
        return p2_credentials(self.root, origin, self.session, time.clock, sleep=time.sleep, user_agent="KimiCLI/2")

    async def login(self) -> Any:
        time = self.time
        return await signin.login(
            self.root,
            self.sandbox.origin,
            say=self.said.append,
            session=self.session,
            clock=time.clock,
            monotonic=time.clock,
            sleep=time.sleep,
        )


@pytest.fixture
async def world(tmp_path: Path) -> Any:
    time = Time()
    async with Sandbox(clock=time.clock) as sandbox, aiohttp.ClientSession() as session:
        sandbox.p2.options.device_interval_s = 5
        yield World(tmp_path, sandbox, time, session)


# Token responses


def test_token_response() -> None:
    body = {"access_token": JWT, "refresh_token": "r", "expires_in": "60", "scope": "s", "token_type": "Bearer"}
    first = credential_from(body, None, NOW_MS)
    assert (first.account_id, first.expires_ms, first.extra) == ("u_9", NOW_MS + 60_000, {"scope": "s"})
    second = credential_from({"access_token": "no-jwt"}, first, NOW_MS)
    assert (second.refresh, second.account_id, second.extra) == (first.refresh, "u_9", {"scope": "s"})
    assert second.expires_ms == NOW_MS + 900_000


@pytest.mark.parametrize(
    "body",
    [{}, {"access_token": ""}, {"access_token": "a"}, {"access_token": "a", "refresh_token": "r", "expires_in": 0}],
)
def test_unusable_token_response(body: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="the token response has no"):
        credential_from(body, None, NOW_MS)


# Sign-in


async def test_sign_in(world: World) -> None:
    world.p2.options.device_answers = ("authorization_pending", "slow_down", "authorization_pending")
    world.p2.options.watch_interval = True  # a poll that comes too early would be told to slow down
    credential = await world.login()
    assert world.time.sleeps == [5.5, 10.5, 10.5]
    path = world.path
    assert world.stored == {
        "access": credential.access.reveal(),
        "refresh": credential.refresh.reveal(),
        "expires": int((world.time.now + 900) * 1000),
        "userId": "u_sandbox",
        "scope": "kimi-code",
    }
    assert path.stat().st_mode & 0o777 == 0o600
    page, code = world.said[1], world.said[2].rpartition(" ")[2]
    assert page == f"{world.sandbox.origin}/kimi/device?user_code={code}"
    assert world.said[3:] == [f"Auth saved in {path}", "User: u_sandbox", "Signed in"]
    assert (
        set(world.issuer.devices) == {(world.root / "p2" / "device_id").read_text()} and len(world.issuer.devices) == 5
    )
    poll = dict(world.issuer.token_requests[-1])
    assert poll.pop("device_code").startswith("dc_")
    assert poll == {"client_id": signin.CLIENT_ID, "grant_type": signin.DEVICE_GRANT}
    assert world.p2.tokens.accepts(credential.access.reveal())
    assert signin.login_device is signin.login


async def test_pending_with_status_200(world: World) -> None:
    world.p2.options.pending_status = 200
    await world.login()
    assert world.time.sleeps == [5.5]


async def test_v20(world: World) -> None:
    answers = [
        (400, {"error": "authorization_pending"}),
        (400, {"error": "slow_down"}),
        (200, {"error": "authorization_pending"}),
        (200, {"access_token": JWT, "refresh_token": "r"}),
    ]

    def next_answer() -> None:
        status, body = answers.pop(0)
        world.issuer.answer_with(status, body, times=1)

    next_answer()
    world.time.then = next_answer
    await world.login()
    assert world.time.sleeps == [5.5, 10.5, 10.5]
    assert world.stored["expires"] == int(world.time.now * 1000) + 900_000 and "scope" not in world.stored


async def test_trouble_while_the_user_is_busy(world: World) -> None:
    world.issuer.answer_with(503, "busy", times=6)
    await world.login()
    assert world.time.sleeps == [5.5] * 7
    assert world.path.exists()


async def test_too_many_requests_slow_the_polls_down(world: World) -> None:
    world.p2.options.device_answers = ()
    world.issuer.answer_with(429, "", times=1)
    await world.login()
    assert world.time.sleeps == [10.5]


@pytest.mark.parametrize(
    ("arrange", "message", "sleeps"),
    [
        (lambda p2: setattr(p2.issuer, "deny", True), "refused in the browser", 0),
        (lambda p2: setattr(p2.options, "device_answers", ("expired_token",)), "has expired", 0),
        (lambda p2: setattr(p2.options, "device_lifetime_s", 11), "not entered in time", 2),
        (lambda p2: setattr(p2.options, "device_lifetime_s", 5000), "not entered in time", 164),
        (lambda p2: p2.issuer.answer_with(400, {"error": "invalid_client", "error_description": "who?"}), "who", 0),
        (lambda p2: p2.issuer.answer_with(400, "no JSON"), "failed: 400 no JSON", 0),
        (lambda p2: p2.issuer.answer_with(200, "no JSON"), "has no access_token", 0),
        (lambda p2: p2.issuer.answer_with(200, {"error": "strange"}), "failed: 200 strange", 0),
        (lambda p2: p2.issuer.answer_with(200, {"access_token": "SECRET"}), "has no refresh_token", 0),
    ],
)
async def test_failed_sign_in_stores_nothing(world: World, arrange: Any, message: str, sleeps: int) -> None:
    world.p2.options.device_answers = ("authorization_pending",) * 300
    arrange(world.p2)
    with pytest.raises(SignInError, match=message) as caught:
        await world.login()
    assert len(world.time.sleeps) == sleeps and "SECRET" not in caught.value.message
    assert not world.path.exists()


CODE = {"user_code": "AB-12", "device_code": "d", "verification_uri_complete": "https://k/?c=AB-12"}


@pytest.mark.parametrize(
    ("body", "interval_s", "limit_s"),
    [
        ({}, 5.5, 900.0),
        ({"interval": 0.2, "expires_in": 60}, 1.5, 60.0),
        ({"interval": "7", "expires_in": "1800"}, 7.5, 900.0),
        ({"interval": None, "expires_in": -1}, 5.5, 900.0),
    ],
)
def test_device_code(body: dict[str, Any], interval_s: float, limit_s: float) -> None:
    code = signin._read_code({**CODE, **body})
    assert (code.interval_s, code.limit_s) == (interval_s, limit_s)


@pytest.mark.parametrize(
    "body",
    [
        {"user_code": "\x1b[2J"},
        {"user_code": ""},
        {"device_code": None},
        {"verification_uri_complete": "javascript:alert(1)"},
        {"verification_uri_complete": "https://k/\x1b[2J"},
        {"verification_uri_complete": "https://[bad"},
        {"verification_uri_complete": ""},
    ],
)
def test_unusable_device_code(body: dict[str, Any]) -> None:
    with pytest.raises(SignInError, match="unusable"):
        signin._read_code({**CODE, **body})


# Renewal


async def test_renewal_rotates(world: World) -> None:
    world.store()
    before = world.stored
    credentials = world.credentials()
    got = await credentials.get()
    after = world.stored
    assert after["access"] == got.access.reveal() != before["access"] and after["refresh"] != before["refresh"]
    assert (after["userId"], after["scope"]) == ("u_sandbox", "kimi-code")
    assert world.issuer.token_requests[0] == {
        "client_id": signin.CLIENT_ID,
        "grant_type": "refresh_token",
        "refresh_token": before["refresh"],
    }
    world.time.now += 3600
    assert (await credentials.get()).refresh.reveal() not in (before["refresh"], after["refresh"])
    assert world.issuer.refreshes == 2
    await credentials.close()


async def test_v19_two_requests_one_call(world: World) -> None:
    world.store(200)
    credentials = world.credentials()
    world.issuer.delay_s = 0.05
    got = await asyncio.gather(*(credentials.get() for _ in range(2)))
    assert got[0] == got[1] and world.issuer.refresh_requests == 1
    world.store(301)
    await credentials.get()
    assert world.issuer.refresh_requests == 1


async def test_v19_refused_while_another_process_won(world: World) -> None:
    world.store()
    world.issuer.answer_with(401, {"error": "invalid_grant"}, times=1)
    world.time.then = lambda: world.store(900)  # during the pause before the second look
    got = await world.credentials().get()
    assert got.refresh.reveal() == world.stored["refresh"]
    assert world.issuer.refresh_requests == 1 and world.path.exists()
    assert world.time.sleeps == [signin.PEER_WAIT_S]


async def test_refused_while_another_process_stored_one_that_is_due(world: World) -> None:
    world.store()
    world.issuer.answer_with(401, {"error": "invalid_grant"}, times=1)
    world.time.then = lambda: world.store(-1)
    got = await world.credentials().get()
    assert world.issuer.refresh_requests == 2 and world.issuer.refreshes == 1
    assert world.p2.tokens.accepts(got.access.reveal()) and got.access.reveal() == world.stored["access"]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, {"error": "unauthorized"}),
        (403, {"error": "forbidden"}),
        (400, {"error": "invalid_grant", "error_description": "gone"}),
        (500, {"error": "invalid_grant"}),
        (200, {"error": "invalid_grant"}),
    ],
)
async def test_refusal_keeps_the_file_and_is_remembered_for_five_minutes(world: World, status: int, body: Any) -> None:
    world.store()
    before = world.path.read_bytes()
    credentials = world.credentials()
    world.issuer.answer_with(status, body)
    for _ in range(3):
        with pytest.raises(SignInError, match=r"was refused.*auth login p2"):
            await credentials.get()
    assert world.issuer.refresh_requests == 1 and world.path.read_bytes() == before
    world.time.now += 299
    with pytest.raises(SignInError):
        await credentials.get()
    assert world.issuer.refresh_requests == 1
    world.issuer.recover()
    world.time.now += 1
    assert (await credentials.get()).access.reveal() == world.stored["access"]
    assert {path.name for path in world.path.parent.iterdir()} == {
        "auth.json",
        "auth.json.refresh.lock",
        "device_id",
    }


async def test_new_sign_in_ends_a_refusal_at_once(world: World) -> None:
    world.store()
    credentials = world.credentials()
    world.p2.tokens.revoke_refresh("invalid_grant")
    with pytest.raises(SignInError):
        await credentials.get()
    world.store()
    assert await credentials.get()


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
async def test_passing_trouble_is_tried_three_times(world: World, status: int) -> None:
    world.store()
    world.issuer.answer_with(status, "oops", times=2)
    assert (await world.credentials().get()).access.reveal() == world.stored["access"]
    assert world.issuer.refresh_requests == 3 and world.time.sleeps == [1.0, 2.0]


async def test_lasting_trouble_loses_nothing(world: World) -> None:
    world.store()
    before = world.path.read_bytes()
    credentials = world.credentials()
    world.issuer.answer_with(503, {"error": {"message": "later"}}, {"Retry-After": "7"})
    with pytest.raises(UpstreamError, match="later") as caught:
        await credentials.get()
    assert (caught.value.kind, caught.value.retry_after) == ("unavailable", 7.0)
    assert world.issuer.refresh_requests == 3 and world.path.read_bytes() == before
    await world.sandbox.stop()
    with pytest.raises(UpstreamError) as caught:
        await credentials.get()
    assert caught.value.kind == "unavailable" and world.time.sleeps == [1.0, 2.0] * 2
    await world.sandbox.start()
    world.issuer.recover()
    assert await credentials.get()


@pytest.mark.parametrize(("status", "body"), [(400, {"error": "invalid_request"}), (404, "x"), (200, {"scope": "s"})])
async def test_other_answers_are_not_repeated(world: World, status: int, body: Any) -> None:
    world.store()
    before = world.path.read_bytes()
    world.issuer.answer_with(status, body)
    with pytest.raises(UpstreamError):
        await world.credentials().get()
    assert world.issuer.refresh_requests == 1 and world.path.read_bytes() == before


async def test_rejected_access_token_is_renewed_whatever_its_time(world: World) -> None:
    world.store(900)
    old = world.stored["access"]
    got = await world.credentials().renew(Secret(old))
    assert got.access.reveal() != old and world.issuer.refresh_requests == 1


async def test_device_of_the_copied_folder_is_sent(world: World) -> None:
    world.store()
    await p2_credentials(world.root, world.sandbox.origin, world.session, world.time.clock).get()
    assert set(world.issuer.devices) == {world.p2.options.device_id}


#: Says "ready", waits for a line, then asks for the credential and prints its access token.
CHILD = """
import asyncio, sys
from pathlib import Path
from aiohttp import ClientSession
from proxy.providers.p2_kimi.account.signin import p2_credentials

async def main():
    async with ClientSession() as session:
        credentials = p2_credentials(Path(sys.argv[1]), sys.argv[2], session)
        print("ready", flush=True)
        sys.stdin.readline()
        print((await credentials.get()).access.reveal(), flush=True)
        await credentials.close()

asyncio.run(main())
"""


async def test_two_processes_one_call(tmp_path: Path, sandbox: Sandbox) -> None:
    sandbox.write_credentials(tmp_path, lifetime_s=-1)
    sandbox.p2.issuer.delay_s = 0.3  # long enough for the other process to run into the lock
    pipe = asyncio.subprocess.PIPE
    children = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", CHILD, str(tmp_path), sandbox.origin, stdin=pipe, stdout=pipe, stderr=pipe, cwd=REPO
        )
        for _ in range(2)
    ]
    for child in children:
        assert child.stdout is not None and await child.stdout.readline() == b"ready\n"
    results = await asyncio.gather(*(child.communicate(b"go\n") for child in children))
    stored = json.loads((tmp_path / "p2" / "auth.json").read_text())
    assert [out for out, _ in results] == [f"{stored['access']}\n".encode()] * 2, results
    assert sandbox.p2.issuer.refresh_requests == sandbox.p2.issuer.refreshes == 1


# Status and sign-out


def test_status(tmp_path: Path) -> None:
    said: list[str] = []
    assert not signin.status(tmp_path, say=said.append, clock=lambda: NOW_S)
    path = tmp_path / "p2" / "auth.json"
    path.parent.mkdir()
    record = {"access": "ACCESS", "refresh": "REFRESH", "expires": NOW_MS + 90_007}
    path.write_text(json.dumps({**record, "userId": "u_1", "scope": "s"}))
    assert signin.status(tmp_path, say=said.append, clock=lambda: NOW_S)
    path.write_text(json.dumps({**record, "scope": 5}))
    assert signin.status(tmp_path, say=said.append, clock=lambda: NOW_S + 100)
    path.write_text("{")
    assert not signin.status(tmp_path, say=said.append)
    storage = f"Storage: {path}"
    assert said == [
        "Not authenticated",
        *(storage, "User: u_1", "Scope: s", "Expires in 90s"),
        *(storage, "User: (none)", "Scope: (none)", "Expires in -10s (renewed when it is needed)"),
        "Not authenticated",
    ]


async def test_logout_keeps_the_device(world: World) -> None:
    await signin.logout(world.root, say=world.said.append)
    assert list(world.root.iterdir()) == []
    world.store()
    await signin.logout(world.root, say=world.said.append)
    assert not world.path.exists() and (world.root / "p2" / "device_id").exists()
    assert world.said == ["Logged out"] * 2
