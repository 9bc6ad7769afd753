"""What is particular to P2's sign-in: the device flow against the simulated issuer, and the device headers."""

from __future__ import annotations

from typing import Any

import pytest
from oauth_accounts import P2, OAuthAccount, World

from proxy.auth.refresh import Lent
from proxy.errors import SignInError
from proxy.providers.accounts.device_sign_in import DEVICE_GRANT
from proxy.providers.p2_kimi.account import signin
from proxy.providers.p2_kimi.account.signin import p2_credentials

#: {"user_id": "u_9"}
JWT = "e30.eyJ1c2VyX2lkIjoidV85In0.sig"


@pytest.fixture
def account() -> OAuthAccount:
    return P2


@pytest.fixture
def p2(world: World) -> Any:
    world.upstream.options.device_interval_s = 5
    return world.upstream


async def sign_in(world: World) -> Any:
    return await world.command_line().login(device=False, say=world.said.append)


async def test_sign_in(world: World, p2: Any) -> None:
    p2.options.device_answers = ("authorization_pending", "slow_down", "authorization_pending")
    p2.options.watch_interval = True  # a poll that comes too early would be told to slow down
    credential = await sign_in(world)
    assert world.clock.sleeps == [5.5, 10.5, 10.5]
    path = world.path
    assert world.stored == {
        "access": credential.access.reveal(),
        "refresh": credential.refresh.reveal(),
        "expires": int((world.clock.now + 900) * 1000),
        "userId": "u_sandbox",
        "scope": "kimi-code",
    }
    assert path.stat().st_mode & 0o777 == 0o600
    page, code = world.said[1], world.said[2].rpartition(" ")[2]
    assert page == f"{world.sandbox.origin}/kimi/device?user_code={code}"
    assert world.said[3:] == [f"Auth saved in {path}", "User: u_sandbox", "Signed in"]
    assert set(p2.issuer.holders) == {(path.parent / "device_id").read_text()} and len(p2.issuer.holders) == 5
    poll = dict(p2.issuer.token_requests[-1])
    assert poll.pop("device_code").startswith("dc_")
    assert poll == {"client_id": signin.CLIENT_ID, "grant_type": DEVICE_GRANT}
    assert p2.tokens.accepts(credential.access.reveal())


async def test_v20(world: World, p2: Any) -> None:
    waiting = ((400, "authorization_pending"), (400, "slow_down"), (200, "authorization_pending"))
    answers = [
        *((status, {"error": word}) for status, word in waiting),
        (200, {"access_token": JWT, "refresh_token": "r"}),
    ]

    def next_answer() -> None:
        status, body = answers.pop(0)
        p2.issuer.answer_with(status, body, times=1)

    next_answer()
    world.clock.then = next_answer
    await sign_in(world)
    assert world.clock.sleeps == [5.5, 10.5, 10.5]
    assert world.stored["expires"] == int(world.clock.now * 1000) + 900_000 and "scope" not in world.stored


@pytest.mark.parametrize(
    ("status", "times", "answers", "sleeps"),
    [(503, 6, ("authorization_pending",), [5.5] * 7), (429, 1, (), [10.5])],
    ids=["passing failures", "too many requests slow the polls down"],
)
async def test_failing_polls_are_repeated(
    world: World, p2: Any, status: int, times: int, answers: tuple[str, ...], sleeps: list[float]
) -> None:
    p2.options.device_answers = answers
    p2.issuer.answer_with(status, "", times=times)
    await sign_in(world)
    assert world.clock.sleeps == sleeps and world.path.exists()


@pytest.mark.parametrize(
    ("arrange", "message", "sleeps"),
    [
        (lambda p2: setattr(p2.issuer.devices, "deny", True), "refused in the browser", 0),
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
async def test_failed_sign_in_stores_nothing(world: World, p2: Any, arrange: Any, message: str, sleeps: int) -> None:
    p2.options.device_answers = ("authorization_pending",) * 300
    arrange(p2)
    with pytest.raises(SignInError, match=message) as caught:
        await sign_in(world)
    assert len(world.clock.sleeps) == sleeps and "SECRET" not in caught.value.message
    assert not world.path.exists()


async def test_device_of_the_copied_folder_is_sent(world: World, p2: Any) -> None:
    world.sandbox.write_credentials(world.root, lifetime_s=-1)
    await p2_credentials(Lent(world.root, world.clock), world.sandbox.origin, world.session).get()
    assert set(p2.issuer.holders) == {p2.options.device_id}
