"""Keys as data and as a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proxy.errors import ProxyError
from proxy.server.callers.callers import Callers, own_session
from proxy.server.callers.keys import (
    MAX_KEYS,
    RELOAD_S,
    VERSION,
    BadKeys,
    CallerKey,
    KeyFile,
    KeyLimits,
    change_keys,
    decode_keys,
    digest_of,
    encode_keys,
    new_key,
    read_keys,
)

ANNA = CallerKey("anna", digest_of(b"mp-a"), 1_700_000_000, KeyLimits(2, 30, 1_000))
BERT = CallerKey("bert", digest_of(b"mp-b"), 1_700_000_000)


def test_the_file_holds_digests_and_comes_back_as_it_was() -> None:
    data = encode_keys([BERT, ANNA])
    assert decode_keys(data) == {ANNA.digest: ANNA, BERT.digest: BERT}
    assert b"mp-a" not in data and list(json.loads(data)) == ["version", "keys"]


def test_no_two_keys_are_alike_and_each_is_long() -> None:
    keys = {new_key() for _ in range(100)}
    assert len(keys) == 100 and all(key.startswith("mp-") and len(key) >= 46 for key in keys)


def told(**changes: Any) -> dict[str, Any]:
    row = json.loads(encode_keys([ANNA]))["keys"][0]
    return {"version": VERSION, "keys": [{**row, **changes}]}


DAMAGED: dict[str, Any] = {
    "nothing": b"",
    "half": encode_keys([ANNA])[:-20],
    "deep": b"[" * 100_000,
    "a list": [],
    "no keys": {"version": VERSION},
    "a newer program": {"version": VERSION + 1, "keys": []},
    "no row": {"version": VERSION, "keys": [None]},
    "a member more": told(admin=True),
    "a name with a blank": told(name="a b"),
    "no digest": told(digest="x"),
    "a date in words": told(created="today"),
    "a limit in words": told(limits={"at_a_time": "2", "per_minute": None, "tokens_per_day": None}),
    "a limit of nothing": told(limits={"at_a_time": 0, "per_minute": None, "tokens_per_day": None}),
    "a limit that is yes": told(limits={"at_a_time": True, "per_minute": None, "tokens_per_day": None}),
    "a limit less": told(limits={"at_a_time": 2}),
    "a name twice": {"version": VERSION, "keys": [told()["keys"][0], {**told()["keys"][0], "digest": "0" * 64}]},
    "a key twice": {"version": VERSION, "keys": [told()["keys"][0], {**told()["keys"][0], "name": "other"}]},
    "too many": {"version": VERSION, "keys": [None] * (MAX_KEYS + 1)},
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_opens_nothing(content: Any, tmp_path: Path) -> None:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    with pytest.raises(BadKeys):
        decode_keys(data)
    path = tmp_path / "keys.json"
    path.write_bytes(data)
    callers = Callers(KeyFile(path))
    assert callers.guard
    with pytest.raises(ProxyError, match="no key can be checked") as caught:
        callers.find([b"mp-a"])
    assert caught.value.kind == "sign_in" and str(path) not in caught.value.message
    with pytest.raises(ProxyError, match="cannot be used"):
        read_keys(path)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_a_change_counts_after_a_second_and_nothing_opens_what_was_guarded(tmp_path: Path) -> None:
    path, clock = tmp_path / "keys.json", Clock()
    file = KeyFile(path, clock)
    callers = Callers(file)
    assert not callers.guard and callers.find([b"mp-a"]) is None

    async def change(*keys: CallerKey) -> None:
        await change_keys(path, lambda known: (known.clear(), known.update({key.name: key for key in keys}))[0])

    await change(ANNA, BERT)
    assert not callers.guard
    clock.now += RELOAD_S
    assert callers.guard and callers.find([b"", b"mp-a"]) == ANNA and callers.find([b"mp-x"]) is None
    assert path.stat().st_mode & 0o777 == 0o600
    await change(BERT)
    clock.now += RELOAD_S
    assert callers.find([b"mp-a"]) is None and callers.find([b"mp-b"]) == BERT
    path.write_bytes(b"{")
    clock.now += RELOAD_S
    with pytest.raises(ProxyError):
        callers.find([b"mp-b"])
    path.unlink()
    clock.now += RELOAD_S
    assert callers.guard and callers.find([b"mp-b"]) is None
    await change()
    clock.now += RELOAD_S
    assert callers.guard and callers.find([b"mp-b"]) is None


def test_a_folder_in_place_of_the_file_opens_nothing(tmp_path: Path) -> None:
    assert Callers(KeyFile(tmp_path)).guard


def test_sessions_of_two_callers_are_never_the_same() -> None:
    own = {own_session(caller, session) for caller in (None, ANNA, BERT) for session in ("s", "t")}
    assert len(own) == 6 and own_session(None, "s") == "s" and own_session(ANNA, "s") == own_session(ANNA, "s")
