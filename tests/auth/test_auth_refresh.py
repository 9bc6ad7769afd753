"""Who renews, when, and what every outcome leaves behind. The issuer is a function, the clock a number."""

from __future__ import annotations

import asyncio
import errno
import gc
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from proxy.auth.http import IssuerFailure, TokenResponse
from proxy.auth.refresh import MARGIN_MS, Credentials, Renewal, is_refused
from proxy.auth.store import Credential, CredentialFile, Fields, render_record, write_private
from proxy.core.secret import Secret
from proxy.errors import SignInError, UpstreamError

NOW_S = 1_800_000_000
NOW_MS = NOW_S * 1000
HOUR_MS = 3_600_000


def record(access: str, refresh: str, left_ms: int = HOUR_MS, **more: Any) -> Credential:
    return Credential(Secret(access), Secret(refresh), NOW_MS + left_ms, **more)


OLD = record("old", "r1", -1, account_id="acct", extra={"scope": "s"})
NEW = record("new", "r2", account_id="acct", extra={"scope": "s"})


def granted(access: str = "new", refresh: str = "r2") -> TokenResponse:
    return TokenResponse(200, "", {"access": access, "refresh": refresh})


def refused(code: str = "refresh_token_reused", status: int = 401) -> TokenResponse:
    return TokenResponse(status, "", {"error": {"code": code, "message": "used before"}})


def parse(body: Mapping[str, Any], old: Credential, now_ms: int) -> Credential:
    if "access" not in body:
        raise ValueError("no access token")
    return Credential(Secret(body["access"]), Secret(body["refresh"]), now_ms + HOUR_MS, old.account_id, old.extra)


class Issuer:
    """Counts calls and gives the answers in turn. `hold` keeps them back until it is set."""

    def __init__(self, *answers: TokenResponse | Exception | Callable[[], TokenResponse]) -> None:
        self.answers = list(answers)
        self.tokens: list[str] = []
        self.called, self.hold = asyncio.Event(), asyncio.Event()
        self.hold.set()

    async def send(self, credential: Credential) -> TokenResponse:
        self.tokens.append(credential.refresh.reveal())
        self.called.set()
        await self.hold.wait()
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, TokenResponse) else answer()


class Disk(CredentialFile):
    """The credential's file; `full` fails each of these steps with its error, and `tries` counts them."""

    def __init__(self, root: Path, label: str) -> None:
        super().__init__(root, label)
        self.full: dict[str, OSError] = {}
        self.tries: list[str] = []

    def _step(self, name: str) -> None:
        self.tries.append(name)
        if name in self.full:
            raise self.full[name]

    async def save(self, credential: Credential) -> None:
        self._step("save")
        await super().save(credential)

    async def delete(self) -> None:
        self._step("delete")
        await super().delete()

    async def mark_pending(self, credential: Credential) -> None:
        self._step("mark")
        await super().mark_pending(credential)


NO_SPACE = OSError(errno.ENOSPC, "No space left on device")


class World:
    """A stored credential, an issuer, and the object under test."""

    def __init__(self, root: Path, *answers: Any, stored: Credential | None = OLD, **rules: Any) -> None:
        self.root = root
        self.now_s = float(NOW_S)
        self.issuer = Issuer(*answers)
        self.file = Disk(root, "p1")
        self.other = CredentialFile(root, "p1")  # another process, as far as files go
        if stored is not None:
            self.write(stored)
        renewal = Renewal("p1", self.issuer.send, parse, **rules)
        self.credentials = Credentials(self.file, renewal, clock=lambda: self.now_s)

    def write(self, credential: Credential) -> None:
        write_private(self.file.path, render_record(credential, Fields()))

    @property
    def stored(self) -> Credential | None:
        return self.other.reload()

    @property
    def leftovers(self) -> set[str]:
        return {path.name for path in self.file.path.parent.iterdir()} - {"auth.json.refresh.lock"}


async def failing(world: World) -> SignInError | UpstreamError:
    """What `get` raises."""
    with pytest.raises((SignInError, UpstreamError)) as caught:
        await world.credentials.get()
    return caught.value


async def settled(world: World) -> None:
    flight = world.credentials._running()
    if flight is not None:
        await asyncio.wait({flight})


async def begin(world: World) -> asyncio.Task[Credential]:
    """A `get` whose call to the issuer is under way and stays there until `hold` is set."""
    world.issuer.hold.clear()
    task = asyncio.create_task(world.credentials.get())
    await world.issuer.called.wait()
    return task


# When


async def test_nothing_stored_names_the_command(tmp_path: Path) -> None:
    world = World(tmp_path, stored=None)
    for call in (world.credentials.get(), world.credentials.renew(Secret("x"))):
        with pytest.raises(SignInError, match="model-proxy auth login p1") as caught:
            await call
        assert "python -m proxy auth login p1" in caught.value.message
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


async def test_renewed_record_is_saved_and_keeps_what_the_answer_lacks(tmp_path: Path) -> None:
    world = World(tmp_path, granted())
    assert await world.credentials.get() == NEW == world.stored
    assert world.leftovers == {"auth.json"}
    assert await world.credentials.get() == NEW
    assert world.issuer.tokens == ["r1"]


async def test_twenty_requests_make_one_call(tmp_path: Path) -> None:
    world = World(tmp_path, granted())
    world.issuer.hold.clear()
    waiting = [asyncio.create_task(world.credentials.get()) for _ in range(20)]
    await world.issuer.called.wait()
    world.issuer.hold.set()
    assert await asyncio.gather(*waiting) == [NEW] * 20
    assert world.issuer.tokens == ["r1"]


async def test_two_objects_on_one_file_make_one_call(tmp_path: Path) -> None:
    one, two = World(tmp_path, granted()), World(tmp_path)
    got = await asyncio.gather(*(world.credentials.get() for world in (one, two)))
    assert got == [NEW, NEW]
    assert len(one.issuer.tokens + two.issuer.tokens) == 1


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


async def test_renew_is_not_satisfied_by_a_flight_that_found_nothing_due(tmp_path: Path) -> None:
    """`get` waits for the lock; meanwhile a peer stores a fresh token, which the upstream then rejects."""
    world = World(tmp_path, granted())
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
    TokenResponse(500, "oops", {}),
    TokenResponse(503, "", {}, retry_after=9.0),
    TokenResponse(429, "", {}),
    TokenResponse(400, "", {"error": "invalid_request"}),
    TokenResponse(302, "", {}),
    TokenResponse(403, "<html>", {}, content_type="text/html"),
    TokenResponse(200, "<html>", {}),
    IssuerFailure("p1", "refused", sent=False),
    IssuerFailure("p1", "reset", sent=True),
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


async def test_tokens_never_show_in_the_message(tmp_path: Path) -> None:
    stored = record("ACCESS-TOKEN", "REFRESH-TOKEN", -1)
    world = World(tmp_path, TokenResponse(500, "got REFRESH-TOKEN and ACCESS-TOKEN", {}), stored=stored)
    with pytest.raises(UpstreamError) as caught:
        await world.credentials.get()
    assert "[redacted]" in caught.value.message and "-TOKEN" not in caught.value.message


# Refusal


@pytest.mark.parametrize(
    "answer",
    [
        refused("refresh_token_reused"),
        refused("refresh_token_expired", 400),
        refused("anything", 403),
        TokenResponse(401, "plain words", {}, content_type="text/html"),
        TokenResponse(400, "", {"error": "invalid_grant", "error_description": "gone"}),
    ],
    ids=lambda answer: f"{answer.status}-{answer.code}",
)
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


@pytest.mark.parametrize(
    ("answer", "final"),
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


async def test_leaving_client_does_not_lose_the_rotated_token(tmp_path: Path) -> None:
    world = World(tmp_path, granted())
    first = await begin(world)
    second = asyncio.create_task(world.credentials.get())
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    world.issuer.hold.set()
    assert await second == NEW == world.stored


async def test_flight_without_any_waiter_still_saves_and_close_waits_for_it(tmp_path: Path) -> None:
    world = World(tmp_path, granted())
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


async def test_close_gives_up_on_a_hanging_issuer_and_costs_nothing(tmp_path: Path) -> None:
    world = World(tmp_path, granted())
    waiting = await begin(world)
    await world.credentials.close(wait_s=0.01)
    with pytest.raises(UpstreamError, match="shutting down"):
        await waiting
    with pytest.raises(UpstreamError, match="shutting down"):
        await world.credentials.get()
    assert world.stored == OLD and world.leftovers == {"auth.json"}
    await world.credentials.close()


# A save that fails


async def test_unsaved_rotation_is_used_and_saved_later(tmp_path: Path) -> None:
    world = World(tmp_path, granted())
    world.file.full["save"] = NO_SPACE
    assert await world.credentials.get() == NEW
    assert world.stored == OLD
    assert world.leftovers == {"auth.json", "auth.json.refresh-pending.json"}
    assert await world.credentials.get() == NEW  # from memory; a retry runs beside it
    await settled(world)
    assert world.file.tries.count("save") == 2 and world.stored == OLD
    world.file.full.clear()
    assert await world.credentials.get() == NEW
    await settled(world)
    assert world.stored == NEW and world.leftovers == {"auth.json"}
    assert world.issuer.tokens == ["r1"]


async def test_no_second_rotation_before_the_first_is_saved(tmp_path: Path) -> None:
    world = World(tmp_path, granted(), granted("newer", "r3"))
    world.file.full["save"] = NO_SPACE
    await world.credentials.get()
    world.now_s += HOUR_MS / 1000
    for call in (world.credentials.get, lambda: world.credentials.renew(NEW.access)):
        with pytest.raises(UpstreamError, match=r"cannot be written.*No space left"):
            await call()
    assert world.issuer.tokens == ["r1"]
    world.file.full.clear()
    assert (await world.credentials.get()).access.reveal() == "newer"
    assert world.issuer.tokens == ["r1", "r2"]
    assert world.stored is not None and world.stored.refresh.reveal() == "r3"


async def test_unsaved_rotation_gives_way_to_a_new_sign_in_and_to_a_sign_out(tmp_path: Path) -> None:
    world = World(tmp_path, granted())
    world.file.full["save"] = NO_SPACE
    await world.credentials.get()
    await world.other.discard()
    assert "not signed in" in str(await failing(world))
    fresh = record("login", "r5")
    await world.other.put(fresh)
    assert await world.credentials.get() == fresh
    assert world.leftovers == {"auth.json"}


async def test_peer_does_not_send_a_token_whose_rotation_is_unsaved(tmp_path: Path) -> None:
    world, peer = World(tmp_path, granted()), World(tmp_path)
    world.file.full["save"] = NO_SPACE
    await world.credentials.get()
    assert isinstance(await failing(peer), SignInError) and peer.issuer.tokens == []
    world.file.full.clear()
    await world.credentials.get()
    await settled(world)
    assert await peer.credentials.get() == NEW


async def test_nothing_is_sent_from_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    world = World(tmp_path, granted())
    world.file.full["mark"] = OSError(errno.EROFS, "Read-only file system")
    error = await failing(world)
    assert isinstance(error, UpstreamError) and "Read-only file system" in error.message
    assert world.issuer.tokens == []


# A process that died


async def test_marker_of_the_current_record_fails_closed(tmp_path: Path) -> None:
    world = World(tmp_path, granted())
    await world.other.mark_pending(OLD)
    for _ in range(2):
        error = await failing(world)
        assert isinstance(error, SignInError) and "a process died" in error.message
    assert world.issuer.tokens == [] and world.stored == OLD
    await world.other.put(record("login", "r5", -1))  # signing in again cures it
    assert await world.credentials.get()
    assert world.issuer.tokens == ["r5"]


async def test_marker_of_another_record_is_stale(tmp_path: Path) -> None:
    world = World(tmp_path, granted())
    await world.other.mark_pending(NEW)
    assert await world.credentials.get() == NEW
    assert world.leftovers == {"auth.json"}


async def test_marker_does_not_matter_while_the_token_is_fresh(tmp_path: Path) -> None:
    world = World(tmp_path, stored=NEW)
    await world.other.mark_pending(NEW)
    assert await world.credentials.get() == NEW


async def test_marker_is_there_while_the_outcome_is_open(tmp_path: Path) -> None:
    world = World(tmp_path)
    seen: list[Any] = []

    def look() -> TokenResponse:
        seen.append(json.loads(world.file.pending_path.read_text()))
        return granted()

    world.issuer.answers.append(look)
    await world.credentials.get()
    assert set(seen[0]) == {"auth_generation_sha256"}
