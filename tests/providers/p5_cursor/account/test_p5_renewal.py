"""When P5's token is renewed, what every outcome means for the request, and what stays in the file."""

from __future__ import annotations

from typing import Any

import pytest
from cursor_account import World
from samples import each

from proxy.errors import SignInError, messages_body
from proxy.providers.p5_cursor.account.signin import REFUSED_FOR_S
from proxy.providers.upstream.adapter import RequestCredential


async def refused(world: World) -> SignInError:
    """The error of a request, which tells the file and the cure."""
    with pytest.raises(SignInError) as caught:
        await world.credentials().get()
    error = messages_body(caught.value, "req_1")["error"]
    assert (caught.value.status, error["type"], error["provider"]) == (401, "authentication_error", "p5")
    assert "auth login p5" in error["message"]
    return caught.value


async def test_nobody_is_signed_in(world: World) -> None:
    assert "p5 is not signed in; run" in (await refused(world)).message
    assert not world.root.exists()


@pytest.mark.parametrize("record", [{"accessToken": " ", "refreshToken": "r", "apiKey": "key_sandbox"}, {}])
async def test_a_blank_access_token_is_no_sign_in(world: World, record: dict[str, str]) -> None:
    world.write(record)
    assert str(world.path) in (await refused(world)).message and world.p5.issuer.refresh_requests == 0


@pytest.mark.parametrize(("left_s", "calls"), [(61, 0), (60, 1), (30, 1), (0, 1), (-9, 1)])
async def test_renewed_a_minute_before_the_end(world: World, left_s: int, calls: int) -> None:
    """Or each user gets a 401 after about sixty days."""
    before = world.store(left_s, apiKey="key_sandbox", note="kept")
    credential = await world.credentials().get()
    assert world.p5.issuer.refresh_requests == world.p5.refreshes == calls
    assert world.p5.tokens.accepts(credential.access.reveal())
    tokens = {"accessToken": credential.access.reveal(), "refreshToken": credential.refresh.reveal()}
    assert world.stored == {**tokens, "apiKey": "key_sandbox", "note": "kept"}
    assert (world.stored == before) is (not calls)


#: the answer to a renewal -> what the request is told of it
FAILURES: list[tuple[int, Any, str]] = [
    (500, "oops", "it answered 500 oops"),
    (429, "", "it answered 429"),
    (302, "", "it answered 302"),
    (404, {"error": "not_found"}, "it answered 404 not_found"),
    (401, {"code": "unauthenticated", "message": "gone"}, "was refused (401 gone)"),
    (403, {"error": "forbidden"}, "was refused (403 forbidden)"),
    (400, {"error": "invalid_grant"}, "was refused (400 invalid_grant)"),
    (200, "<html>", "no usable accessToken"),
    (200, {"accessToken": "", "refreshToken": "r"}, "no usable accessToken"),
    (200, {"accessToken": "a", "refreshToken": "r\n"}, "no usable refreshToken"),
]


@each(1)
@pytest.mark.parametrize("left_s", [30, -1])
@pytest.mark.parametrize(("status", "body", "why"), FAILURES)
async def test_a_renewal_that_fails_keeps_the_file_and_ends_the_request_with_401(
    world: World, left_s: int, status: int, body: Any, why: str
) -> None:
    """JWT `exp` in 30 s, refresh answers 500."""
    world.store(left_s)
    before = world.path.read_bytes()
    world.p5.issuer.answer_with(status, body)
    error = await refused(world)
    assert why in error.message and str(world.path) in error.message and error.retry_after is None
    assert world.path.read_bytes() == before and world.p5.issuer.refresh_requests == 1
    assert {path.name for path in world.path.parent.iterdir()} == {"auth.json", "auth.json.refresh.lock"}


async def test_a_service_that_is_not_reached(world: World) -> None:
    world.store(30)
    await world.sandbox.stop()
    assert "cannot be used any longer" in (await refused(world)).message


async def test_a_refusal_is_remembered_for_a_while(world: World) -> None:
    world.store()
    credentials = world.credentials()
    world.p5.issuer.answer_with(401, {"message": "gone"})
    for _ in range(3):
        with pytest.raises(SignInError, match="gone"):
            await credentials.get()
    assert world.p5.issuer.refresh_requests == 1
    world.p5.issuer.recover()
    world.clock.now += REFUSED_FOR_S
    assert await credentials.get() and world.p5.refreshes == 1


async def test_a_new_token_that_ends_as_soon_is_saved_and_not_sent(world: World) -> None:
    world.store(30)
    tokens = {"accessToken": world.jwt(59), "refreshToken": "r2"}
    world.p5.issuer.answer_with(200, tokens)
    assert "has ended all the same" in (await refused(world)).message
    assert world.stored == tokens


async def test_a_renewal_that_brings_no_refresh_token_keeps_the_old_one(world: World) -> None:
    before = world.store()
    access = world.jwt(3600)
    world.p5.issuer.answer_with(200, {"accessToken": access})
    await world.credentials().get()
    assert world.stored == {**before, "accessToken": access}


@pytest.mark.parametrize("refresh", [None, "", " "])
async def test_nothing_to_renew_with(world: World, refresh: str | None) -> None:
    world.store(61, refreshToken=refresh)
    assert await world.credentials().get()
    world.store(60, refreshToken=refresh)
    assert "has no refresh token" in (await refused(world)).message
    assert world.p5.issuer.refresh_requests == 0


@pytest.mark.parametrize("token", ["opaque", "a.b", "a.b.c", "e30.e30.e30", "e30.eyJleHAiOiIxIn0.s"])
async def test_a_token_that_tells_no_end_is_used_as_it_is(world: World, token: str) -> None:
    world.store(accessToken=token)
    credentials = world.credentials()
    world.clock.now += 10 * 365 * 86_400
    assert (await credentials.get()).access.reveal() == token and world.p5.issuer.refresh_requests == 0


# Of one request


@pytest.mark.parametrize("token", [None, "opaque"])
async def test_a_token_that_the_service_refuses_is_renewed_once(world: World, token: str | None) -> None:
    before = world.store(3600, **({"accessToken": token} if token else {}))
    request = RequestCredential(world.credentials())
    assert (await request.get()).access.reveal() == before["accessToken"]
    assert await request.renew() and world.p5.tokens.accepts(request.current.access.reveal())
    assert not await request.renew() and world.p5.refreshes == 1


@pytest.mark.parametrize(
    ("changes", "status", "why"),
    [({}, 500, "it answered 500"), ({}, 401, "was refused (401"), ({"refreshToken": None}, 200, "no refresh token")],
)
async def test_a_refused_token_that_cannot_be_renewed(
    world: World, changes: dict[str, None], status: int, why: str
) -> None:
    before = world.store(3600, **changes)
    world.p5.issuer.answer_with(status, {"message": "x"})
    request = RequestCredential(world.credentials())
    await request.get()
    with pytest.raises(SignInError, match="auth login p5") as caught:
        await request.renew()
    assert why in caught.value.message and str(world.path) in caught.value.message and world.stored == before


# The API key


async def test_an_api_key_is_exchanged_where_there_is_no_refresh_token(world: World) -> None:
    world.store(30, refreshToken=None, apiKey=" key_sandbox ")
    credential = await world.credentials().get()
    assert world.p5.tokens.accepts(credential.access.reveal())
    assert set(world.stored) == {"accessToken", "refreshToken", "apiKey"} and world.p5.refreshes == 0


async def test_an_api_key_helps_when_the_refresh_token_is_refused(world: World) -> None:
    world.store(30, refreshToken="used", apiKey="key_sandbox")
    assert world.p5.tokens.accepts((await world.credentials().get()).access.reveal())
    assert world.stored["refreshToken"] != "used"


@pytest.mark.parametrize("before", [{"refreshToken": "used"}, {"refreshToken": None, "apiKey": "key_old"}])
async def test_an_api_key_that_is_added_after_a_refusal_is_exchanged_at_once(
    world: World, before: dict[str, str | None]
) -> None:
    record = world.store(30, **before)
    credentials = world.credentials()
    with pytest.raises(SignInError, match="was refused"):
        await credentials.get()
    world.write({**record, "apiKey": "key_sandbox"})
    assert world.p5.tokens.accepts((await credentials.get()).access.reveal())


async def test_an_api_key_does_not_come_back_in_an_error(world: World) -> None:
    world.store(30, refreshToken=None, apiKey="KEY")
    world.p5.issuer.answer_with(500, {"message": "KEY is unknown", "error": "KEY"})
    assert "KEY" not in (await refused(world)).message


@pytest.mark.parametrize("key", [" ", 5, None, "a\nb"])
async def test_an_api_key_that_is_none(world: World, key: Any) -> None:
    world.store(30, refreshToken=None, apiKey=key)
    assert "has no refresh token" in (await refused(world)).message


# A token of the user's


@pytest.mark.parametrize("stored", [False, True])
async def test_a_token_that_is_set_goes_first_and_stays_out_of_the_file(world: World, stored: bool) -> None:
    before = world.store(3600) if stored else None
    world.token = world.jwt(61)
    request = RequestCredential(world.credentials())
    assert (await request.get()).access.reveal() == world.token
    with pytest.raises(SignInError, match=r"PROXY_P5_AUTH_TOKEN \(or CURSOR_AUTH_TOKEN\) was refused"):
        await request.renew()
    assert world.p5.issuer.refresh_requests == 0
    assert (world.stored == before) if stored else not world.root.exists()


async def test_a_token_that_is_set_and_ends_is_not_replaced_by_the_file(world: World) -> None:
    world.store(3600)
    world.token = world.jwt(60)
    assert "PROXY_P5_AUTH_TOKEN" in (await refused(world)).message


# Several at once
