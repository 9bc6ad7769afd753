"""P5's sign-in: the page, the polls and what each answer means, and what a command tells."""

from __future__ import annotations

import secrets
import uuid
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from cursor_account import World
from harness import until
from oauth_accounts import context_of

from proxy.auth.pkce import challenge_of
from proxy.errors import ProxyError, SignInError
from proxy.loading import load
from proxy.providers.p5_cursor.account import signin
from proxy.providers.p5_cursor.account.signin import ATTEMPTS, delay_s

VERIFIER = "A" * 43
ID = str(uuid.UUID(bytes=bytes(16), version=4))


async def log_in(world: World, *, opens_after: int | None = 1, **options: Any) -> Any:
    """Signs in; the user opens the page after so many polls."""
    polls = 0

    async def sleep(seconds: float) -> None:
        nonlocal polls
        polls += 1
        if polls == opens_after:
            async with world.session.get(world.said[1]) as page:
                assert page.status == 200
        await world.clock.sleep(seconds)

    options = {"opener": None, "random": bytes, "clock": world.clock, "sleep": sleep, **options}
    config = load(world.sandbox.settings())[0]
    account = signin.CursorAccount(context_of(world.root, config, world.session, **options))
    return await account.login(device=False, say=world.said.append)


async def test_sign_in(world: World) -> None:
    credential = await log_in(world)
    page = urlsplit(world.said[1])
    assert f"{page.scheme}://{page.netloc}{page.path}" == f"{world.sandbox.origin}/loginDeepControl"
    assert parse_qsl(page.query) == [
        ("challenge", challenge_of(VERIFIER)),
        ("uuid", ID),
        ("mode", "login"),
        ("redirectTarget", "cli"),
    ]
    assert world.said[2:] == [f"Auth saved in {world.path}", "Signed in"]
    access, refresh = credential.access.reveal(), credential.refresh.reveal()
    assert world.stored == {"accessToken": access, "refreshToken": refresh} and world.p5.tokens.accepts(access)
    assert (world.path.stat().st_mode & 0o777, world.path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert world.clock.sleeps == [1.0] and world.p5.issuer.polls == 2  # the first one goes out at once


async def test_each_sign_in_has_secrets_of_its_own(world: World) -> None:
    pages = []
    for _ in range(2):
        world.said.clear()
        await log_in(world, random=secrets.token_bytes)
        pages.append(dict(parse_qsl(urlsplit(world.said[1]).query)))
    assert all(pages[0][name] != pages[1][name] for name in ("challenge", "uuid"))


@pytest.mark.parametrize("failure", [False, OSError("no display")])
async def test_a_browser_that_cannot_be_opened_is_no_failure(world: World, failure: Any) -> None:
    opened = []

    def opener(url: str) -> bool:
        opened.append(url)
        if isinstance(failure, Exception):
            raise failure
        return False

    await log_in(world, opener=opener)
    await until(lambda: opened)
    assert opened == [world.said[1]] and world.path.exists()


def test_delays() -> None:
    assert [delay_s(attempt) for attempt in range(4)] == pytest.approx([1.0, 1.2, 1.44, 1.728])
    assert delay_s(12) == pytest.approx(8.916, abs=0.001) and {delay_s(n) for n in range(13, ATTEMPTS)} == {10.0}


#: statuses of the first polls -> whether the sign-in comes to its end, and how many polls there were
POLLS: list[tuple[tuple[int, ...], bool, int]] = [
    ((), True, 2),
    ((404, 404), True, 3),
    ((500, 500, 500), False, 3),
    ((500, 500, 404, 500, 500), True, 6),
    ((500, 500), True, 3),
    *(((status, status, status), False, 3) for status in (302, 402, 405, 429, 502, 204)),
    *(((404, status), False, 2) for status in (400, 401, 403, 410)),
    ((500, 429, 302), False, 3),
]


@pytest.mark.parametrize(("answers", "signs_in", "polls"), POLLS, ids=str)
async def test_polls(world: World, answers: tuple[int, ...], signs_in: bool, polls: int) -> None:
    """Poll 404, 404, 200: signed in; 500 × 3: failed; 500, 500, 404, 500, 500, 200: signed in."""
    world.p5.options.poll_answers = answers
    if signs_in:
        await log_in(world)
    else:
        with pytest.raises(SignInError, match=f"refused the sign-in: {answers[-1]}"):
            await log_in(world)
    assert world.path.exists() is signs_in and world.p5.issuer.polls == polls
    assert world.clock.sleeps == [delay_s(attempt) for attempt in range(polls - 1)]


async def test_a_service_that_is_not_reached_three_times_fails_the_sign_in(world: World) -> None:
    await world.sandbox.stop()
    with pytest.raises(ProxyError, match="sign-in service could not be used") as caught:
        await log_in(world, opens_after=None)
    assert len(world.clock.sleeps) == 2 and VERIFIER not in caught.value.message


async def test_a_page_that_nobody_confirms(world: World) -> None:
    with pytest.raises(SignInError, match="not confirmed in time"):
        await log_in(world, opens_after=None)
    assert world.p5.issuer.polls == ATTEMPTS == 150 and 23 * 60 < sum(world.clock.sleeps) < 25 * 60


#: in place of the tokens -> what is wrong with it
UNUSABLE: list[tuple[Any, str]] = [
    *((granted, "not a JSON object") for granted in ("<html>signed in</html>", [], {}, "null")),
    *(({"accessToken": bad, "refreshToken": "SECRET"}, "no usable accessToken") for bad in (None, "", " ", 5, "a\nb")),
    *(({"accessToken": "SECRET", "refreshToken": bad}, "no usable refreshToken") for bad in (None, "", 5, "r\x1b")),
    ({"authId": "SECRET"}, "no usable accessToken"),
]


@pytest.mark.parametrize(("granted", "message"), UNUSABLE)
async def test_an_answer_without_tokens_ends_the_sign_in_at_once(world: World, granted: Any, message: str) -> None:
    world.p5.issuer.granted = granted
    with pytest.raises(SignInError, match=message) as caught:
        await log_in(world)
    assert "SECRET" not in caught.value.message and not world.path.exists() and world.p5.issuer.polls == 2


async def test_a_new_sign_in_replaces_the_old_one(world: World) -> None:
    world.store(apiKey="of another account")
    await log_in(world)
    assert set(world.stored) == {"accessToken", "refreshToken"}
