"""What is particular to P3's sign-in: both flows against the simulated issuer, scopes, and when a token is renewed."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from oauth_accounts import NOW_MS, P3, OAuthAccount, World

from proxy.auth.pkce import challenge_of
from proxy.errors import ProxyError, SignInError, UpstreamError
from proxy.providers.accounts.device_sign_in import DEVICE_GRANT
from proxy.providers.p3_grok.account import signin
from proxy.sandbox.p3.issuer import REUSE_GRACE_S

CLIENT = {"client_id": "b1a00492-073a-47ea-816f-4c329264a828"}
SCOPE = "openid profile email offline_access grok-cli:access api:access conversations:read conversations:write"


@pytest.fixture
def account() -> OAuthAccount:
    return P3


@pytest.fixture
def p3(world: World) -> Any:
    world.upstream.options.device_interval_s = 2
    return world.upstream


def is_stored(world: World, credential: Any) -> bool:
    """Exactly these members, for this user only."""
    expected = {
        "access": credential.access.reveal(),
        "refresh": credential.refresh.reveal(),
        "expires_at_ms": int(world.clock.now + world.upstream.options.access_lifetime_s) * 1000,
        "issuer": world.sandbox.origin,
        **CLIENT,
    }
    modes = world.path.stat().st_mode & 0o777, world.path.parent.stat().st_mode & 0o777
    return world.stored == expected and modes == (0o600, 0o700)


# With a browser


class Browser:
    """Opens the page and follows it back, as a user's does; `changes` spoil the address."""

    def __init__(self, world: World, **changes: str) -> None:
        self._session, self._changes = world.session, changes
        self._loop = asyncio.get_running_loop()
        self.opened = ""
        self.page: asyncio.Future[tuple[int, str]] = self._loop.create_future()

    def __call__(self, url: str) -> None:
        self.opened = url
        self._loop.call_soon_threadsafe(self._visit)

    def _visit(self) -> None:
        self.task = asyncio.ensure_future(self._fetch())

    async def _fetch(self) -> None:
        split = urlsplit(self.opened)
        query = {**dict(parse_qsl(split.query)), **self._changes}
        page = f"{split.scheme}://{split.netloc}{split.path}"
        async with self._session.get(page, params=query) as answer:
            self.page.set_result((answer.status, await answer.text()))


async def log_in(world: World, browser: Browser | None, **options: Any) -> Any:
    return await world.command_line(opener=browser, **options).login(device=False, say=world.said.append)


async def test_browser_sign_in(world: World, p3: Any) -> None:
    browser = Browser(world)
    credential = await log_in(world, browser, random=lambda count: b"\0" * count)
    origin = world.sandbox.origin
    assert browser.opened.startswith(f"{origin}/oauth2/authorize?response_type=code&client_id=b1a00492-")
    query = dict(parse_qsl(urlsplit(browser.opened).query))
    redirect = query.pop("redirect_uri")
    port = urlsplit(redirect).port
    assert redirect == f"http://127.0.0.1:{port}/callback" and port
    assert query == {
        "response_type": "code",
        **CLIENT,
        "scope": SCOPE,
        "code_challenge": challenge_of("A" * 43),
        "code_challenge_method": "S256",
        "state": "A" * 43,
    }
    sent = dict(p3.issuer.token_requests[-1])
    assert sent.pop("code").startswith("ac_")
    assert sent == {
        "grant_type": "authorization_code",
        **CLIENT,
        "redirect_uri": redirect,
        "code_verifier": "A" * 43,
    }
    assert (await browser.page)[0] == 200
    assert world.said[1:] == [browser.opened, f"Auth saved in {world.path}", "Signed in"]
    assert is_stored(world, credential) and p3.tokens.accepts(credential.access.reveal())


GRANT = {"access_token": "SECRET", "refresh_token": "r", "expires_in": 60, "token_type": "bearer"}


@pytest.mark.parametrize(
    ("arrange", "message", "status"),
    [
        (lambda p3: setattr(p3.issuer.codes, "deny", "access_denied"), "refused: access_denied", 400),
        (lambda p3: p3.issuer.answer_with(400, {"error": "invalid_grant"}), "refused the code: 400 invalid_grant", 500),
        (lambda p3: p3.issuer.answer_with(307, ""), "refused the code: 307", 500),
        (lambda p3: p3.issuer.answer_with(500, "SECRET"), "refused the code: 500\\.", 500),
        (lambda p3: p3.issuer.answer_with(200, {**GRANT, "refresh_token": ""}), "has no refresh_token", 500),
    ],
)
async def test_failed_browser_sign_in_stores_nothing(
    world: World, p3: Any, arrange: Any, message: str, status: int
) -> None:
    arrange(p3)
    browser = Browser(world)
    with pytest.raises(SignInError, match=message) as caught:
        await log_in(world, browser)
    assert "SECRET" not in caught.value.message and (await browser.page)[0] == status
    assert not world.path.exists()


async def test_issuer_that_cannot_do_it_is_not_opened(world: World, p3: Any) -> None:
    p3.issuer.document = {"code_challenge_methods_supported": ["plain"]}
    with pytest.raises(ProxyError, match="lacks S256"):
        await log_in(world, None)
    assert world.said == []


def test_only_the_real_issuers_page_may_call_back_by_script() -> None:
    assert signin.CALLERS == {"https://auth.x.ai": "https://accounts.x.ai"}


# With a code


async def log_in_device(world: World) -> Any:
    return await world.command_line().login(device=True, say=world.said.append)


async def test_t25_waits_before_each_poll(world: World, p3: Any) -> None:
    p3.options.device_answers = ("authorization_pending", "slow_down", "authorization_pending")
    p3.options.watch_interval = True  # a poll that comes too early would be told to slow down
    credential = await log_in_device(world)
    assert world.clock.sleeps == [2, 2, 7, 7]
    page, code = world.said[1], world.said[2].rpartition(" ")[2]
    assert page == f"{world.sandbox.origin}/device?user_code={code}" and "check that it shows" in world.said[2]
    assert world.said[3:] == [f"Auth saved in {world.path}", "Signed in"]
    assert is_stored(world, credential) and p3.issuer.discoveries == 0
    poll = dict(p3.issuer.token_requests[-1])
    assert poll.pop("device_code").startswith("dc_") and poll == {**CLIENT, "grant_type": DEVICE_GRANT}


#: Members over the answer with the code -> the sleeps until the end.
LIMITS: list[tuple[dict[str, Any], list[float]]] = [
    ({"expires_in": 2, "interval": 5}, [2]),  # T25
    ({"expires_in": 11, "interval": 5}, [5, 5, 1]),
    ({"expires_in": None, "interval": 250}, [250, 250, 100]),
    ({"expires_in": 5000, "interval": 2500}, [2500, 2500]),
    ({"expires_in": 12, "interval": None}, [5, 5, 2]),
]


@pytest.mark.parametrize(("members", "sleeps"), LIMITS)
async def test_t25_code_that_is_not_entered_in_time(
    world: World, p3: Any, members: dict[str, Any], sleeps: list[float]
) -> None:
    p3.options.device_answers, p3.options.device_lifetime_s = ("authorization_pending",) * 9, 9000
    p3.issuer.device_members = members
    with pytest.raises(SignInError, match="not entered in time"):
        await log_in_device(world)
    assert world.clock.sleeps == sleeps and len(p3.issuer.token_requests) == len(sleeps) - 1
    assert not world.path.exists()


#: Members over the answer with the code -> the page that is shown, {} is the origin; None: the code is unusable.
PAGES: list[tuple[dict[str, Any], str | None]] = [
    ({"verification_uri_complete": "https://accounts.x.ai/d?c=1"}, "https://accounts.x.ai/d?c=1"),
    ({"verification_uri_complete": None}, "{}/device"),
    ({"verification_uri_complete": "", "verification_uri": "https://x.ai/d"}, "https://x.ai/d"),
    ({"verification_uri_complete": None, "verification_uri": None}, "{}/device"),
    *(
        ({name: bad, **more}, None)
        for name, more in (
            ("verification_uri_complete", {}),
            ("verification_uri", {"verification_uri_complete": None}),
        )
        for bad in ("http://x.ai/d", "javascript:alert(1)", "https://x.ai/\x1b[2J", "https://[bad", "//x.ai", "https:x")
    ),
    *(({"user_code": bad}, None) for bad in ("\x1b[2J", "A B", "ÄÖ", "", None, 5, "--")),
    *(({"device_code": bad}, None) for bad in ("", None)),
]


@pytest.mark.parametrize(("members", "page"), PAGES)
async def test_page_of_a_code(world: World, p3: Any, members: dict[str, Any], page: str | None) -> None:
    p3.issuer.device_members = members
    if page is None:
        with pytest.raises(SignInError, match="unusable device code"):
            await log_in_device(world)
        assert world.said == [] and not p3.issuer.token_requests
        return
    await log_in_device(world)
    assert world.said[1] == page.format(world.sandbox.origin)
    complete = bool(members.get("verification_uri_complete"))
    assert world.said[2].startswith("and check that it shows" if complete else "and enter this code: ")


@pytest.mark.parametrize(
    ("arrange", "message", "sleeps"),
    [
        (lambda p3: setattr(p3.options, "device_enabled", False), "Device sign-in is not enabled", 0),
        (lambda p3: setattr(p3.issuer.devices, "deny", True), "refused in the browser", 1),
        (lambda p3: setattr(p3.options, "device_answers", ("expired_token",)), "has expired", 1),
        (lambda p3: p3.issuer.answer_with(400, {"error": "invalid_grant"}), "failed: 400 invalid_grant", 1),
        (lambda p3: p3.issuer.answer_with(401, {"error": "invalid_client"}), "failed: 401 invalid_client", 1),
        (lambda p3: p3.issuer.answer_with(500, "oops"), "failed: 500\\.", 1),
        (lambda p3: p3.issuer.answer_with(429, ""), "failed: 429", 1),
        (lambda p3: p3.issuer.answer_with(200, {**GRANT, "refresh_token": None}), "has no refresh_token", 1),
    ],
)
async def test_failed_device_sign_in(world: World, p3: Any, arrange: Any, message: str, sleeps: int) -> None:
    arrange(p3)
    with pytest.raises(SignInError, match=message) as caught:
        await log_in_device(world)
    assert len(world.clock.sleeps) == sleeps and "SECRET" not in caught.value.message
    assert not world.path.exists()


# Scopes


@pytest.mark.parametrize(
    ("scope", "warned"), [(SCOPE, False), ("grok-cli:access openid", False), ("", False), ("openid api:access", True)]
)
async def test_scope_that_was_not_granted_is_told(world: World, p3: Any, scope: str, warned: bool) -> None:
    p3.tokens.scope = scope
    await log_in_device(world)
    lines = [line for line in world.said if "grok-cli:access was not granted" in line]
    assert bool(lines) is warned and all("Sign in again" in line for line in lines)
    assert "scope" not in world.stored


# Renewal


@pytest.mark.parametrize(("left_ms", "calls"), [(299_999, 1), (300_000, 1), (300_001, 0)])
async def test_t24_five_minutes_before_the_end(world: World, p3: Any, left_ms: int, calls: int) -> None:
    world.store(expires_at_ms=NOW_MS + left_ms)
    await world.credentials().get()
    assert p3.issuer.refresh_requests == calls


async def test_living_token_outlasts_a_failing_renewal(world: World, p3: Any) -> None:
    before = world.store(left_s=200)
    p3.issuer.document = {"token_endpoint": "https://evil.example/token"}
    credentials = world.credentials()
    assert (await credentials.get()).access.reveal() == before["access"]
    world.clock.now += 200
    with pytest.raises(UpstreamError, match="not an address of") as caught:
        await credentials.get()
    assert caught.value.kind == "unavailable" and p3.issuer.refresh_requests == 0 and world.stored == before


async def test_renewal_that_may_have_arrived_is_not_repeated(world: World, p3: Any) -> None:
    """The issuer takes a second one for theft."""
    before = world.store()
    credentials = world.credentials()
    p3.issuer.cut_answers = True
    with pytest.raises(UpstreamError, match="could not be used") as caught:
        await credentials.get()
    assert caught.value.kind == "unavailable"
    assert (p3.issuer.refresh_requests, p3.issuer.refreshes, world.clock.sleeps) == (1, 1, [])
    assert world.stored == before
    p3.issuer.cut_answers = False
    world.clock.now += REUSE_GRACE_S - 1
    assert p3.tokens.accepts((await credentials.get()).access.reveal())


async def test_documents_of_the_issuer_are_kept(world: World, p3: Any) -> None:
    world.store()
    credentials = world.credentials()
    for _ in range(3):
        await credentials.get()
        await credentials.renew((await credentials.get()).access)
    assert p3.refreshes == 4 and p3.issuer.discoveries == 1
