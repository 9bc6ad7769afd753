"""A token that the user has set: used as it is, told when it ends, never renewed."""

from __future__ import annotations

import pytest
from samples import rows

from proxy.auth.static_token import StaticToken
from proxy.core.hiding.secret import Secret
from proxy.errors import SignInError
from proxy.providers.upstream.adapter import RequestCredential

#: {"exp": 1800000000}
JWT = "e30.eyJleHAiOjE4MDAwMDAwMDB9.SIGNATURE"
END_S = 1_800_000_000


def static(token: str = JWT, left_s: float = 3600) -> StaticToken:
    return StaticToken("p5", Secret(token), "THE_VARIABLE", end_ms=60_000, clock=lambda: END_S - left_s)


@rows("token, left_s", [(JWT, 60.001), ("opaque", 0), ("a.b", 0), ("a.b.c", 0)])
async def test_is_used_as_it_is(token: str, left_s: float) -> None:
    got = await static(token, left_s).get()
    assert (got.access.reveal(), got.refresh.reveal(), got.account_id) == (token, "", None)


@rows("left_s, words", [(60, "expires in 60 s"), (30.5, "in 30 s"), (0, "has exp"), (-9, "has exp")])
async def test_one_that_ends_is_told_with_its_place_and_the_cure(left_s: float, words: str) -> None:
    with pytest.raises(SignInError, match=rf"p5 token in THE_VARIABLE.* {words}.*auth login p5") as caught:
        await static(left_s=left_s).get()
    assert (caught.value.status, caught.value.provider) == (401, "p5") and "SIGNATURE" not in caught.value.message


async def test_a_request_that_was_refused_with_it_is_told_its_place() -> None:
    request = RequestCredential(static())
    assert (await request.get()).access.reveal() == JWT
    with pytest.raises(SignInError, match="THE_VARIABLE was refused, and is never renewed"):
        await request.renew()
    assert await request.renew() is False and request.current.access.reveal() == JWT
