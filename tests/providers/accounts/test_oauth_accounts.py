"""What the providers that sign in have in common: token responses, status, renewal within and between processes."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path
from typing import Any

import pytest
from harness import until
from oauth_accounts import ACCOUNTS, NOW_MS, NOW_S, P1, P2, P3, OAuthAccount, World, context_of, each_account
from processes import Child
from samples import rows

from proxy.auth.grant import MAX_EXPIRES_S
from proxy.errors import SignInError, UpstreamError, messages_body
from proxy.loading import load
from proxy.providers.accounts.device_sign_in import DeviceRules, poll_interval, read_code
from proxy.sandbox import Sandbox

# Token responses

GRANT: dict[str, Any] = {"access_token": "new", "refresh_token": "r2", "expires_in": 3600}


#: `expires_in` of a token response -> seconds from its receipt.
EXPIRY = [(3600, 3600), ("60", 60), (1.5, 1.5), (1e308, MAX_EXPIRES_S)]


@each_account
@pytest.mark.parametrize(("expires_in", "left_s"), EXPIRY)
def test_expiry_counts_from_receipt(account: OAuthAccount, expires_in: object, left_s: float) -> None:
    got = account.parse({"access_token": "no-jwt", "refresh_token": "r", "expires_in": expires_in})
    assert got.expires_ms == NOW_MS + left_s * 1000
    assert (got.account_id, got.extra) == (None, account.extra)


@rows("account", [P1, P2])
@rows("expiry", [{"expires_in": None}, {}])
def test_expiry_that_is_not_told(account: OAuthAccount, expiry: dict[str, None]) -> None:
    got = account.parse({"access_token": "no-jwt", "refresh_token": "r", **expiry})
    assert account.lifetime_s and got.expires_ms == NOW_MS + account.lifetime_s * 1000


UNUSABLE: dict[str, list[Any]] = {
    "expires_in": [0, -1, "0", "soon", True, [], float("inf")],
    "access_token": ["", "  ", None, 5, "a\r\nb: c"],
    "refresh_token": ["", " ", None, "r\x1b"],
}
UNUSABLE_FOR_P3 = [("expires_in", None), *(("token_type", value) for value in ("", "mac", 5))]


@rows(
    "account, name, value",
    [
        *((one, name, value) for one in ACCOUNTS for name, values in UNUSABLE.items() for value in values),
        *((P3, *row) for row in UNUSABLE_FOR_P3),
    ],
)
def test_unusable_token_response(account: OAuthAccount, name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"the token response has no.*{name}"):
        account.parse({**GRANT, name: value})


#: {"chatgpt_account_id": "A"}, {"user_id": "u_9"}
ACCOUNT_JWT, USER_JWT = "e30.eyJjaGF0Z3B0X2FjY291bnRfaWQiOiJBIn0.sig", "e30.eyJ1c2VyX2lkIjoidV85In0.sig"


@pytest.mark.parametrize(
    ("account", "body", "owner", "extra"),
    [
        (P1, {"id_token": ACCOUNT_JWT}, "A", {}),
        (P2, {"access_token": USER_JWT, "scope": "s", "token_type": "Bearer"}, "u_9", {"scope": "s"}),
        (P3, {"access_token": USER_JWT, "scope": "s", "token_type": "beaRER", "id_token": "x"}, None, P3.extra),
    ],
)
def test_renewal_keeps_what_the_answer_lacks(
    account: OAuthAccount, body: dict[str, Any], owner: str | None, extra: dict[str, str]
) -> None:
    first = account.parse({**GRANT, **body})
    second = account.parse({"access_token": "x", "expires_in": 7}, first)
    assert second.access.reveal() == "x" and second.refresh == first.refresh
    assert second.expires_ms == NOW_MS + 7000
    for got in (first, second):
        assert (got.refresh.reveal(), got.account_id, got.extra) == ("r2", owner, extra)


RECORD = {"access": "ACCESS", "refresh": "REFRESH"}
FAR = 10**30
NOBODY = ["Not authenticated"]
SIGN_IN = "run `model-proxy auth login {label}`"
UNREADABLE = "{{}} cannot be read as a credential; " + SIGN_IN
UNFIT = "The sign-in in {{}} {why}; " + SIGN_IN.format(label=P3)
SIGNED_IN = "Signed in at https://auth.x.ai"

#: Members of P3's file that name another issuer or program -> what is said of it.
FOREIGN: list[tuple[dict[str, str], str]] = [
    ({"issuer": "https://other.example"}, "was made at https://other.example, not at https://auth.x.ai"),
    ({"client_id": "else"}, "was made by another client"),
]
NO_ACCOUNT, NO_USER = "Account: (none)", ("User: (none)", "Scope: (none)")

#: account, members of the file (None: no file), seconds since it was written -> what `auth status` prints.
SHOWN: list[tuple[OAuthAccount, Any, float, list[str]]] = [
    *((account, None, 0, NOBODY) for account in ACCOUNTS),
    *((account, [], 0, [*NOBODY, UNREADABLE.format(label=account)]) for account in ACCOUNTS),
    (P1, {"accountId": "acct-1"}, 0, ["Account: acct-1", "Expires: 2027-01-15T08:01:30.007Z (in 90s)", "Storage: {}"]),
    (P1, {"expires": NOW_MS - 1}, 60, [NO_ACCOUNT, "Expires: 2027-01-15T07:59:59.999Z (in -61s)", "Storage: {}"]),
    (P1, {"expires": FAR}, 0, [NO_ACCOUNT, f"Expires: {FAR} (in {(FAR - NOW_MS) // 1000}s)", "Storage: {}"]),
    (P2, {"userId": "u_1", "scope": "s"}, 0, ["Storage: {}", "User: u_1", "Scope: s", "Expires in 90s"]),
    (P2, {"scope": 5}, 100, ["Storage: {}", *NO_USER, "Expires in -10s (renewed when it is needed)"]),
    (P3, {"refresh": "r"}, 0, ["Storage: {}", SIGNED_IN, "Expires in 90s"]),
    (P3, {"refresh": "r"}, 100, ["Storage: {}", SIGNED_IN, "Expires in 0s (renewed when it is needed)"]),
    *((P3, odd, 0, [*NOBODY, UNREADABLE.format(label=P3)]) for odd in ({"scope": "s"}, {"issuer": 5}, {"access": ""})),
    *((P3, odd, 0, [*NOBODY, UNFIT.format(why=why)]) for odd, why in FOREIGN),
]


@pytest.mark.parametrize(("account", "members", "later_s", "lines"), SHOWN)
def test_status(tmp_path: Path, account: OAuthAccount, members: Any, later_s: float, lines: list[str]) -> None:
    path = tmp_path / account.label / "auth.json"
    path.parent.mkdir()
    if members is not None:
        record = {**RECORD, account.expires: NOW_MS + 90_007, **account.extra}
        path.write_text(json.dumps({**record, **members} if members else members))
    said: list[str] = []
    context = context_of(tmp_path, load({})[0], clock=lambda: NOW_S + later_s)
    assert account.make(context).status(say=said.append) is (lines[0] not in NOBODY)
    assert said == [line.format(path) for line in lines]


@pytest.mark.parametrize(
    ("account", "left"),
    [*((one, {"auth.json.refresh.lock"}) for one in (P1, P3)), (P2, {"auth.json.refresh.lock", "device_id"})],
)
async def test_logout(world: World, account: OAuthAccount, left: set[str]) -> None:
    await world.command_line().logout(say=world.said.append)
    assert list(world.root.iterdir()) == []
    world.store()
    await world.command_line().logout(say=world.said.append)
    assert {path.name for path in world.path.parent.iterdir()} == left
    assert world.said == ["Logged out"] * 2


# Renewal

REUSED = {"error": {"code": "refresh_token_reused", "message": "used before"}}
GONE = {"error": "invalid_grant", "error_description": "gone"}


@each_account
async def test_twenty_requests_one_call(world: World, account: OAuthAccount) -> None:
    before = world.store(**account.more)
    world.issuer.delay_s = 0.05
    credentials = world.credentials()
    got = await asyncio.gather(*(credentials.get() for _ in range(20)))
    assert len(set(got)) == 1
    form = {"client_id": account.signin.CLIENT_ID, "grant_type": "refresh_token", "refresh_token": before["refresh"]}
    assert list(world.issuer.token_requests) == [form]
    expires = int(world.clock() + world.upstream.options.access_lifetime_s) * 1000
    tokens = {"access": got[0].access.reveal(), "refresh": got[0].refresh.reveal(), account.expires: expires}
    assert await credentials.get() == got[0] and world.issuer.refreshes == 1
    assert {path.name for path in world.path.parent.iterdir()} - {"device_id"} == {
        "auth.json",
        world.path.name + ".refresh.lock",
    }
    assert world.stored == {**tokens, **world.owner, **account.more}
    assert tokens["access"] != before["access"] and tokens["refresh"] != before["refresh"]
    assert world.path.stat().st_mode & 0o777 == 0o600
    world.clock.now += world.upstream.options.access_lifetime_s
    assert (await credentials.get()).refresh.reveal() not in (before["refresh"], tokens["refresh"])
    assert world.issuer.refreshes == 2
    await credentials.close()
    assert not world.session.closed


@pytest.mark.parametrize("account", [P2])
@pytest.mark.parametrize(("left_s", "calls"), [(900, 1), (-1, 2)])
async def test_refused_while_another_process_stored(world: World, left_s: int, calls: int) -> None:
    """During the pause before the second look. What it stored may be due as well."""
    world.store()
    world.issuer.answer_with(401, GONE, times=1)
    world.clock.then = lambda: world.store(left_s)
    got = await world.credentials().get()
    assert got.access.reveal() == world.stored["access"] and world.upstream.tokens.accepts(got.access.reveal())
    assert (world.issuer.refresh_requests, world.issuer.refreshes) == (calls, calls - 1)
    assert world.clock.sleeps == [world.account.signin.PEER_WAIT_S]


REFUSALS: list[tuple[OAuthAccount, int, Any]] = [
    *((P1, 401, REUSED), (P1, 400, GONE), (P2, 400, GONE)),
    *((P2, 401, {"error": "unauthorized"}), (P2, 403, {"error": "forbidden"})),
    *((P2, status, {"error": "invalid_grant"}) for status in (500, 200)),
    *((P3, 400, GONE), (P3, 401, {"error": "invalid_client", "error_description": "who?"})),
]


@pytest.mark.parametrize(("account", "status", "body"), REFUSALS)
async def test_refusal_is_told_and_remembered(world: World, account: OAuthAccount, status: int, body: Any) -> None:
    world.store()
    before = world.path.read_bytes()
    credentials = world.credentials()
    world.issuer.answer_with(status, body)
    for _ in range(3):
        with pytest.raises(SignInError, match=rf"was refused \({status} .*model-proxy auth login {account}") as caught:
            await credentials.get()
        error = messages_body(caught.value, "req_1")["error"]
        assert (caught.value.status, error["type"]) == (401, "authentication_error")
        code = body["error"]
        assert (code if isinstance(code, str) else code["code"]) in error["message"]
    assert world.issuer.refresh_requests == 1
    if account.deletes:
        assert not world.path.exists()
        return
    assert world.path.read_bytes() == before
    world.clock.now += min(account.remembered_s, 30 * 86_400) - 1
    with pytest.raises(SignInError):
        await credentials.get()
    assert world.issuer.refresh_requests == 1
    world.issuer.recover()
    if math.isinf(account.remembered_s):
        world.store(left_s=900)  # only another sign-in ends it
    world.clock.now += 1
    assert (await credentials.get()).access.reveal() == world.stored["access"]
    left = {path.name for path in world.path.parent.iterdir()} - {"device_id"}
    assert left == {"auth.json", "auth.json.refresh.lock"}


@pytest.mark.parametrize("account", [P2, P3])
@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
async def test_passing_failure_is_tried_three_times(world: World, status: int) -> None:
    world.store()
    world.issuer.answer_with(status, "oops", times=2)
    assert (await world.credentials().get()).access.reveal() == world.stored["access"]
    assert world.issuer.refresh_requests == 3 and world.clock.sleeps == [1.0, 2.0]


@each_account
async def test_lasting_failure_loses_nothing(world: World, account: OAuthAccount) -> None:
    world.store()
    before = world.path.read_bytes()
    credentials = world.credentials()
    world.issuer.answer_with(503, {"error": {"message": "later"}}, {"Retry-After": "7"})
    with pytest.raises(UpstreamError, match="later") as caught:
        await credentials.get()
    assert (caught.value.kind, caught.value.provider, caught.value.retry_after) == ("unavailable", account.label, 7.0)
    assert world.issuer.refresh_requests == 1 + len(account.waits)
    await world.sandbox.stop()
    with pytest.raises(UpstreamError) as caught:
        await credentials.get()
    assert caught.value.kind == "unavailable" and world.clock.sleeps == [*account.waits] * 2
    assert world.path.read_bytes() == before
    await world.sandbox.start()
    world.issuer.recover()
    assert await credentials.get()


@each_account
@pytest.mark.parametrize(
    ("status", "body"),
    [
        *((400, {"error": "invalid_request"}), (404, "x"), (200, {"scope": "s"})),
        (200, {"access_token": "x", "expires_in": 0}),
    ],
)
async def test_other_answers_are_not_repeated(world: World, account: OAuthAccount, status: int, body: Any) -> None:
    world.store()
    before = world.path.read_bytes()
    world.issuer.answer_with(status, body)
    with pytest.raises(UpstreamError) as caught:
        await world.credentials().get()
    assert (caught.value.kind, caught.value.provider) == ("unavailable", account.label)
    assert world.issuer.refresh_requests == 1 and world.path.read_bytes() == before


#: Asks for the credential and prints its access token.
CHILD = """
import asyncio
from pathlib import Path
from aiohttp import ClientSession
from proxy.auth.refresh import Lent
from {module} import {label}_credentials

async def main():
    async with ClientSession() as session:
        credentials = {label}_credentials(Lent(Path(sys.argv[1])), sys.argv[2], session)
        begin()
        print((await credentials.get()).access.reveal())
        await credentials.close()

asyncio.run(main())
"""


async def start_child(account: OAuthAccount, root: Path, sandbox: Sandbox) -> Child:
    code = CHILD.format(module=account.signin.__name__, label=account)
    return await Child.started(code, root, sandbox.origin)


@each_account
async def test_two_processes_one_call(tmp_path: Path, sandbox: Sandbox, account: OAuthAccount) -> None:
    sandbox.write_credentials(tmp_path, lifetime_s=-1)
    issuer = getattr(sandbox, account.label).issuer
    issuer.delay_s = 0.3  # long enough for the other process to run into the lock
    children = await asyncio.gather(*(start_child(account, tmp_path, sandbox) for _ in range(2)))
    results = await asyncio.gather(*(child.finish() for child in children))
    stored = json.loads((tmp_path / account.label / "auth.json").read_text())
    assert [out for out, _ in results] == [f"{stored['access']}\n"] * 2, results
    assert issuer.refresh_requests == issuer.refreshes == 1


@pytest.mark.parametrize("account", [P1])
async def test_process_that_died_half_way_does_not_burn_the_token_twice(world: World, account: OAuthAccount) -> None:
    world.store(expires=1)  # the child has the clock of this machine
    world.issuer.delay_s = 0.5
    child = await start_child(account, world.root, world.sandbox)
    talking = asyncio.ensure_future(child.finish())
    await until(lambda: world.issuer.refresh_requests, 5)
    child.process.kill()
    await talking
    with pytest.raises(SignInError, match=r"a process died.*auth login p1"):
        await world.credentials().get()
    assert world.issuer.refresh_requests == 1 and world.path.exists()


# Device codes

CODE = {"user_code": "AB-12", "device_code": "d", "verification_uri_complete": "https://k/?c=AB-12"}


@rows(
    "interval, seconds",
    [
        *(("5", 5), (7, 7), ("7", 7), (0.2, 1), (-3, 1)),
        *((value, 5) for value in ("0", 0, None, "soon", "nan", True, [])),
    ],
)
@rows("margin_s", [0.5, 3.0])
def test_interval(interval: object, seconds: float, margin_s: float) -> None:
    assert poll_interval(interval, margin_s=margin_s) == seconds + margin_s


@rows("expires_in, limit_s", [(None, 900), (60, 60), ("1800", 900), (-1, 900)])
def test_device_code_is_valid_for_15_minutes_at_most(expires_in: object, limit_s: float) -> None:
    code = read_code({**CODE, "expires_in": expires_in, "interval": "7"}, DeviceRules(margin_s=0.5), label="p2")
    assert (code.limit_s, code.interval_s) == (limit_s, 7.5)


@rows(
    "body",
    [
        *({"user_code": "\x1b[2J"}, {"user_code": ""}, {"device_code": None}),
        *(
            {"verification_uri_complete": bad}
            for bad in ("javascript:alert(1)", "https://k/\x1b[2J", "https://[bad", "")
        ),
    ],
)
def test_unusable_device_code(body: dict[str, Any]) -> None:
    with pytest.raises(SignInError, match="unusable"):
        read_code({**CODE, **body}, DeviceRules(), label="p2")
