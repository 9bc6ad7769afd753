"""A caller's key as data, and the form of the file that holds all of them. Pure.

A key is 256 random bits, so one round of SHA-256 hides it as well as any slow hash would: there is nothing to guess
from. The file holds digests only, and a key is looked up by its digest: that takes as long however much of it is right.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

#: By which a key is recognised where it turns up.
PREFIX = "mp-"
KEY_BYTES = 32
#: Of the file. Another one was written by a newer program, whose limits this one would not keep.
VERSION = 1
MAX_KEYS = 1000
MAX_LIMIT = 10**12
#: Requests of one key within a minute are remembered one by one.
MAX_PER_MINUTE = 10_000

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


class BadKeys(ValueError):
    """A file that is none of ours, or damaged; the text says where."""


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """What a caller may use; None: as much as everybody.

    at_a_time       model requests at one time
    per_minute      model requests that begin within any 60 seconds
    tokens_per_day  input and output tokens of a day (UTC)
    """

    at_a_time: int | None = None
    per_minute: int | None = None
    tokens_per_day: int | None = None


@dataclass(frozen=True, slots=True)
class CallerKey:
    """name     of the caller, unique: in the log, the monitor and the metrics
    digest   SHA-256 of the key, hexadecimal
    created  epoch seconds
    """

    name: str
    digest: str
    created: int
    limits: KeyLimits = field(default_factory=KeyLimits)


def is_name(text: str) -> bool:
    """Whether a caller may be called so.

    >>> is_name("anna.b-2"), is_name("a b"), is_name("")
    (True, False, False)
    """
    return _NAME.fullmatch(text) is not None


def new_key(random: Callable[[int], str] = secrets.token_urlsafe) -> str:
    """A key that nobody has."""
    return PREFIX + random(KEY_BYTES)


def digest_of(key: bytes) -> str:
    return hashlib.sha256(key).hexdigest()


def encode_keys(keys: Iterable[CallerKey]) -> bytes:
    """The bytes of the file, by name."""
    rows = [asdict(key) for key in sorted(keys, key=lambda key: key.name)]
    return json.dumps({"version": VERSION, "keys": rows}, indent=2).encode() + b"\n"


def decode_keys(data: bytes) -> dict[str, CallerKey]:
    """digest -> key. Raises BadKeys: a file that is not understood as a whole is not used at all."""
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        raise BadKeys("it is no JSON") from None
    if not isinstance(told, dict) or not isinstance(told.get("keys"), list):
        raise BadKeys("it has no list of keys")
    if told.get("version") != VERSION:
        raise BadKeys("it was written by another version of this program")
    if len(told["keys"]) > MAX_KEYS:
        raise BadKeys(f"it has more than {MAX_KEYS} keys")
    keys = {key.digest: key for key in (_key(row, number) for number, row in enumerate(told["keys"], 1))}
    if len({key.name for key in keys.values()}) != len(told["keys"]):
        raise BadKeys("a name or a key occurs twice")
    return keys


def _key(row: Any, number: int) -> CallerKey:
    wrong = BadKeys(f"key {number} of it cannot be understood")
    if not isinstance(row, dict) or row.keys() != {one.name for one in fields(CallerKey)}:
        raise wrong
    name, digest, created = row["name"], row["digest"], row["created"]
    right = isinstance(name, str) and is_name(name) and isinstance(digest, str) and _DIGEST.fullmatch(digest)
    if not right or type(created) is not int:
        raise wrong
    limits = _limits(row["limits"])
    if limits is None:
        raise wrong
    return CallerKey(name, digest, created, limits)


def _limits(row: Any) -> KeyLimits | None:
    if not isinstance(row, Mapping) or row.keys() != {one.name for one in fields(KeyLimits)}:
        return None
    if not all(value is None or (type(value) is int and 0 < value <= MAX_LIMIT) for value in row.values()):
        return None
    return KeyLimits(**row)
