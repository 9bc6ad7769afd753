"""Who renews, when, and what every outcome leaves behind."""

from __future__ import annotations

import asyncio
import errno
import gc
import weakref
from pathlib import Path

import pytest
from harness import until
from refresh_world import NEW, NO_SPACE, OLD, World, begin, failing, granted, record, refused, settled
from samples import rows

from proxy.auth.http import IssuerFailure, TokenResponse
from proxy.auth.refresh import END_MS, MARGIN_MS, PAUSE_S, is_refused
from proxy.auth.store import Credential
from proxy.core.hiding.secret import Secret
from proxy.errors import SignInError, UpstreamError

# When


async def test_nothing_stored_names_the_command(tmp_path: Path) -> None:
    world = World(tmp_path, stored=None)
    for call in (world.credentials.get(), world.credentials.renew(Secret("x"))):
        with pytest.raises(SignInError, match="model-proxy auth login p1") as caught:
            await call
        assert (caught.value.status, caught.value.provider) == (401, "p1")
    assert world.issuer.tokens == []


@pytest.mark.parametrize(("left_ms", "calls"), [(MARGIN_MS + 1, 0), (MARGIN_MS, 1), (-1, 1)])
async def test_freshness(tmp_path: Path, left_ms: int, calls: int) -> None:
    world = World(tmp_path, granted(), stored=record("old", "r1", left_ms))
    got = await world.credentials.get()
    assert got.access.reveal() == ("new" if calls else "old")
    assert len(world.issuer.tokens) == calls


async def test_every_request_sees_the_disk(tmp_path: Path) -> None:
    world = World(tmp_path, stored=record("a", "r"))
    assert (await world.credentials.get()).access.reveal() == "a"
    world.write(record("b", "r"))
    assert (await world.credentials.get()).access.reveal() == "b"
    await world.other.discard()
    with pytest.raises(SignInError):
        await world.credentials.get()


# renew


async def test_stale_401_uses_what_is_there(tmp_path: Path) -> None:
    world = World(tmp_path, stored=NEW)
    assert await world.credentials.renew(Secret("old")) == NEW
    assert world.issuer.tokens == []


async def test_401_renews_a_fresh_token_once_for_all(tmp_path: Path) -> None:
    world = World(tmp_path, granted(), stored=record("old", "r1"))
    got = await asyncio.gather(*(world.credentials.renew(Secret("old")) for _ in range(20)))
    assert {one.access.reveal() for one in got} == {"new"}
    assert world.issuer.tokens == ["r1"]


async def test_renew_is_not_satisfied_by_a_flight_that_found_nothing_due(world: World) -> None:
    """`get` waits for the lock; meanwhile a peer stores a fresh token, which the upstream then rejects."""
    async with world.other.locked():
        getting = asyncio.create_task(world.credentials.get())
        await asyncio.sleep(0)
        world.write(record("peer", "r7"))
        renewing = asyncio.create_task(world.credentials.renew(Secret("peer")))
        await asyncio.sleep(0)
    assert (await getting).access.reveal() == "peer"
    assert (await renewing).access.reveal() == "new"
    assert world.issuer.tokens == ["r7"]


async def test_issuer_that_repeats_the_rejected_token_is_asked_once(tmp_path: Path) -> None:
    world = World(tmp_path, granted("old", "r2"), stored=record("old", "r1"))
    assert (await world.credentials.renew(Secret("old"))).access.reveal() == "old"
    assert world.issuer.tokens == ["r1"]


# Failures that pass

PASSING = [
    *(TokenResponse(status, text, {}) for status, text in ((500, "oops"), (429, ""), (302, ""), (200, "<html>"))),
    TokenResponse(503, "", {}, retry_after=9.0),
    TokenResponse(400, "", {"error": "invalid_request"}),
    TokenResponse(403, "<html>", {}, content_type="text/html"),
    *(IssuerFailure("p1", why, sent=sent) for why, sent in (("refused", False), ("reset", True))),
]


@pytest.mark.parametrize("failure", PASSING, ids=str)
async def test_a_passing_failure_costs_nothing(tmp_path: Path, failure: TokenResponse | Exception) -> None:
    world = World(tmp_path, failure, granted())
    with pytest.raises(UpstreamError) as caught:
        await world.credentials.get()
    assert (caught.value.status, caught.value.provider) == (503, "p1")
    assert caught.value.retry_after == getattr(failure, "retry_after", None)
    assert world.stored == OLD and world.leftovers == {"auth.json"}
    assert await world.credentials.get() == NEW
    assert world.issuer.tokens == ["r1", "r1"]


async def test_passing_failure_is_shared_by_all_who_wait(tmp_path: Path) -> None:
    world = World(tmp_path, TokenResponse(503, "", {}))
    got = await asyncio.gather(*(world.credentials.get() for _ in range(20)), return_exceptions=True)
    assert {type(one) for one in got} == {UpstreamError} and len(world.issuer.tokens) == 1


#: What is left of a token that is due for renewal and still lives.
DYING_MS = MARGIN_MS - 60_000


@pytest.mark.parametrize("failure", PASSING, ids=str)
async def test_while_the_old_token_lives_a_passing_failure_costs_no_request(
    tmp_path: Path, failure: TokenResponse | Exception
) -> None:
    """A bad minute of the issuer: the old token is used, and the issuer is asked again after a pause."""
    world = World(tmp_path, failure, granted(), stored=record("old", "r1", DYING_MS))
    got = await asyncio.gather(*(world.credentials.get() for _ in range(20)))
    assert {one.access.reveal() for one in got} == {"old"} and world.issuer.tokens == ["r1"]
    assert world.notes.messages == ["sign-in not renewed"]
    world.now_s += PAUSE_S - 1
    assert (await world.credentials.get()).access.reveal() == "old" and world.issuer.tokens == ["r1"]
    world.now_s += 2
    assert (await world.credentials.get()).access.reveal() == "new" and world.issuer.tokens == ["r1", "r1"]


async def test_a_token_at_its_end_is_not_sent(tmp_path: Path) -> None:
    world = World(tmp_path, TokenResponse(503, "", {}), stored=record("old", "r1", END_MS))
    assert isinstance(await failing(world), UpstreamError)


async def test_a_full_disk_and_a_missing_refresh_token_cost_no_request_either(tmp_path: Path) -> None:
    world = World(tmp_path, stored=record("old", "r1", DYING_MS))
    world.file.full["mark"] = NO_SPACE
    assert (await world.credentials.get()).access.reveal() == "old" and world.issuer.tokens == []
    bare = World(tmp_path, stored=record("old", "", DYING_MS))
    assert (await bare.credentials.get()).access.reveal() == "old"


async def test_a_refusal_counts_at_once(tmp_path: Path) -> None:
    world = World(tmp_path, refused(), stored=record("old", "r1", DYING_MS))
    assert isinstance(await failing(world), SignInError) and world.stored is None


async def test_an_issuer_that_hangs_is_not_waited_for_while_the_old_token_lives(tmp_path: Path) -> None:
    world = World(tmp_path, granted(), stored=record("old", "r1", DYING_MS), patience_s=0.01)
    world.issuer.hold.clear()
    got = await asyncio.gather(*(world.credentials.get() for _ in range(20)))
    assert {one.access.reveal() for one in got} == {"old"}
    await until(lambda: world.issuer.tokens == ["r1"])
    world.credentials._patience_s = 60  # who comes now does not wait at all
    assert (await asyncio.wait_for(world.credentials.get(), 10)).access.reveal() == "old"
    assert world.notes.messages == ["sign-in not renewed"]
    world.issuer.hold.set()
    await settled(world)
    assert await world.credentials.get() == world.stored != got[0]


STRICT = {"ends": True, "end_ms": DYING_MS, "margin_ms": DYING_MS}


@pytest.mark.parametrize("failure", PASSING, ids=str)
async def test_an_issuer_may_have_it_that_a_failure_ends_the_sign_in(
    tmp_path: Path, failure: TokenResponse | Exception
) -> None:
    """Then nothing is sent with what is left of the old token, and nothing is lost."""
    world = World(tmp_path, failure, granted(), stored=record("old", "r1", DYING_MS), **STRICT)
    error = await failing(world)
    assert isinstance(error, SignInError) and error.retry_after is None
    assert str(world.file.path) in error.message and "auth login p1" in error.message
    assert world.stored == record("old", "r1", DYING_MS) and world.leftovers == {"auth.json"}
    assert (await world.credentials.get()).access.reveal() == "new"


async def test_a_failing_outgoing_proxy_does_not_end_the_sign_in(tmp_path: Path) -> None:
    way = UpstreamError("The proxy wants a password.", kind="outbound_auth", provider="p1")
    world = World(tmp_path, way, stored=record("old", "r1", DYING_MS), **STRICT)
    assert await failing(world) is way


async def test_a_proxy_that_stops_does_not_end_the_sign_in(tmp_path: Path) -> None:
    world = World(tmp_path, stored=record("old", "r1", DYING_MS), **STRICT)
    await world.credentials.close()
    assert "shutting down" in (await failing(world)).message


async def test_what_renews_a_credential_may_be_something_else(tmp_path: Path) -> None:
    world = World(tmp_path, granted(), stored=record("old", "", -1), renewable=lambda credential: True)
    assert (await world.credentials.get()).access.reveal() == "new" and world.issuer.tokens == [""]


async def test_a_401_for_a_token_that_should_live_is_not_answered_with_it(tmp_path: Path) -> None:
    world = World(tmp_path, TokenResponse(503, "", {}), stored=record("old", "r1", DYING_MS))
    with pytest.raises(UpstreamError):
        await world.credentials.renew(Secret("old"))


async def test_tokens_never_show_in_the_message(tmp_path: Path) -> None:
    stored = record("ACCESS-TOKEN", "REFRESH-TOKEN", -1)
    world = World(tmp_path, TokenResponse(500, "got REFRESH-TOKEN and ACCESS-TOKEN", {}), stored=stored)
    with pytest.raises(UpstreamError) as caught:
        await world.credentials.get()
    assert "[redacted]" in caught.value.message and "-TOKEN" not in caught.value.message


# Refusal


REFUSALS = [
    *(refused(), refused("refresh_token_expired", 400), refused("anything", 403)),
    TokenResponse(401, "plain words", {}, content_type="text/html"),
    TokenResponse(400, "", {"error": "invalid_grant", "error_description": "gone"}),
]


@pytest.mark.parametrize("answer", REFUSALS, ids=lambda answer: f"{answer.status}-{answer.code}")
async def test_refusal_deletes_and_is_remembered(tmp_path: Path, answer: TokenResponse) -> None:
    world = World(tmp_path, answer)
    got = await asyncio.gather(*(world.credentials.get() for _ in range(5)), return_exceptions=True)
    for error in (*got, *[await failing(world) for _ in range(3)]):
        assert isinstance(error, SignInError) and error.status == 401
        assert answer.reason() in error.message and "auth login p1" in error.message
    assert world.stored is None and world.leftovers == set()
    assert world.issuer.tokens == ["r1"]
    # A new sign-in ends it, and after a sign-out the old reason is not dug up again.
    world.write(NEW)
    assert await world.credentials.get() == NEW
    await world.other.discard()
    assert "not signed in" in str(await failing(world))


async def test_file_that_cannot_be_read_is_named(world: World) -> None:
    world.file.path.write_text("{")
    for failure in (world.credentials.get(), world.credentials.renew(OLD.access)):
        with pytest.raises(SignInError, match=r"p1 sign-in in .*auth\.json cannot be read; run .*auth login p1"):
            await failure
    assert world.issuer.tokens == []


@pytest.mark.parametrize("stored", [OLD, NEW])
async def test_credential_that_is_unfit_is_never_used(tmp_path: Path, stored: Credential) -> None:
    world = World(tmp_path, granted(), stored=stored, unfit=lambda found: f"is of {found.extra['scope']}")
    for failure in (world.credentials.get(), world.credentials.renew(OLD.access)):
        with pytest.raises(SignInError, match=r"The p1 sign-in in .*auth\.json is of s; run .*auth login p1"):
            await failure
    assert world.issuer.tokens == [] and world.stored == stored


@pytest.mark.parametrize("way", ["kept", "cannot be deleted"])
async def test_refused_token_that_stays_on_disk_is_not_sent_again(tmp_path: Path, way: str) -> None:
    world = World(tmp_path, refused(), delete_refused=way != "kept")
    world.file.full["delete"] = OSError(errno.EACCES, "Permission denied")
    for _ in range(3):
        error = await failing(world)
        assert isinstance(error, SignInError) and "refresh_token_reused" in error.message
    assert world.stored == OLD and world.leftovers == {"auth.json"}
    assert world.issuer.tokens == ["r1"]
    world.write(NEW)  # a new sign-in ends it at once
    assert await world.credentials.get() == NEW


async def test_a_refused_credential_that_its_user_removes_is_no_sign_in(tmp_path: Path) -> None:
    world = World(tmp_path, refused(), delete_refused=False)
    assert "refresh_token_reused" in str(await failing(world))
    world.file.path.unlink()
    for call in (world.credentials.get(), world.credentials.renew(OLD.access)):
        with pytest.raises(SignInError, match="p1 is not signed in; run `model-proxy auth login p1`"):
            await call


async def test_refused_but_a_peer_won(tmp_path: Path) -> None:
    world = World(tmp_path)
    peer = record("peer", "r9")

    def lose() -> TokenResponse:
        world.write(peer)
        return refused()

    world.issuer.answers.append(lose)
    assert await world.credentials.get() == peer == world.stored
    assert world.leftovers == {"auth.json"}


async def test_no_refresh_token_means_sign_in(tmp_path: Path) -> None:
    world = World(tmp_path, stored=record("old", "", -1))
    assert "has no refresh token" in str(await failing(world))


@rows(
    "answer, final",
    [
        (TokenResponse(401, "", {}), True),
        (TokenResponse(403, "no", {}, content_type="text/plain"), True),
        (TokenResponse(403, "<html>", {}, content_type="text/html"), False),
        (TokenResponse(400, "", {"error": "invalid_client"}), False),
        (TokenResponse(400, "", {"error": {"code": "refresh_token_invalidated"}}), True),
        (TokenResponse(429, "", {"error": "invalid_grant"}), False),
        (TokenResponse(500, "", {"error": "invalid_grant"}), False),
    ],
)
def test_is_refused(answer: TokenResponse, final: bool) -> None:
    assert is_refused(answer) is final


# Cancellation and the end


async def test_leaving_client_does_not_lose_the_rotated_token(world: World) -> None:
    first = await begin(world)
    second = asyncio.create_task(world.credentials.get())
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    world.issuer.hold.set()
    assert await second == NEW == world.stored


async def test_flight_without_any_waiter_still_saves_and_close_waits_for_it(world: World) -> None:
    only = await begin(world)
    only.cancel()
    await asyncio.wait({only})
    closing = asyncio.create_task(world.credentials.close())
    await asyncio.sleep(0)
    world.issuer.hold.set()
    await closing
    assert world.stored == NEW


async def test_failure_without_any_waiter_is_silent(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = World(tmp_path, TokenResponse(500, "", {}))
    only = await begin(world)
    only.cancel()
    world.issuer.hold.set()
    await settled(world)
    assert world.stored == OLD
    del world, only
    gc.collect()
    assert caplog.records == []  # no "exception was never retrieved"


async def test_close_gives_up_on_a_hanging_issuer_and_costs_nothing(world: World) -> None:
    waiting = await begin(world)
    await world.credentials.close(wait_s=0.01)
    with pytest.raises(UpstreamError, match="shutting down"):
        await waiting
    with pytest.raises(UpstreamError, match="shutting down"):
        await world.credentials.get()
    assert world.stored == OLD and world.leftovers == {"auth.json"}
    await world.credentials.close()


async def test_a_failed_renewal_keeps_nothing_of_those_who_asked(tmp_path: Path) -> None:
    class Request:
        """Lives as long as the frame that asked."""

    async def ask() -> weakref.ref[Request]:
        request = Request()
        with pytest.raises(SignInError):
            await world.credentials.get()
        return weakref.ref(request)

    world = World(tmp_path, refused(), stored=record("old", "r1", DYING_MS))
    asked = await asyncio.create_task(ask())
    await settled(world)
    gc.collect()
    assert asked() is None
