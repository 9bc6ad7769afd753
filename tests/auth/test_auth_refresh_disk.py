"""Renewal when a save fails, and when a process died before it."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest
from refresh_world import HOUR_MS, NEW, NO_SPACE, OLD, World, failing, granted, record, settled

from proxy.auth.http import TokenResponse
from proxy.errors import SignInError, UpstreamError

# A save that fails


async def test_unsaved_rotation_is_used_and_saved_later(world: World) -> None:
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
        with pytest.raises(UpstreamError, match=r"/p1 cannot be written \(No space left"):
            await call()
    assert world.issuer.tokens == ["r1"]
    world.file.full.clear()
    assert (await world.credentials.get()).access.reveal() == "newer"
    assert world.issuer.tokens == ["r1", "r2"]
    assert world.stored is not None and world.stored.refresh.reveal() == "r3"


async def test_unsaved_rotation_gives_way_to_a_new_sign_in_and_to_a_sign_out(world: World) -> None:
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


async def test_nothing_is_sent_from_a_folder_that_cannot_be_written(world: World) -> None:
    world.file.full["mark"] = OSError(errno.EROFS, "Read-only file system")
    error = await failing(world)
    assert isinstance(error, UpstreamError) and "Read-only file system" in error.message
    assert world.issuer.tokens == []


# A process that died


async def test_marker_of_the_current_record_fails_closed(world: World) -> None:
    await world.other.mark_pending(OLD)
    for _ in range(2):
        error = await failing(world)
        assert isinstance(error, SignInError) and "a process died" in error.message
    assert world.issuer.tokens == [] and world.stored == OLD
    await world.other.put(record("login", "r5", -1))  # signing in again cures it
    assert await world.credentials.get()
    assert world.issuer.tokens == ["r5"]


async def test_marker_of_another_record_is_stale(world: World) -> None:
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
