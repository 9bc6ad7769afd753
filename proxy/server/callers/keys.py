"""The keys of callers, and the file that holds them: read again when it changes, written whole.

A key has 256 random bits, so one round of SHA-256 hides it as well as any slow hash would. The file holds only digests,
and a key is looked up by its digest, which takes the same time for any wrong key.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from proxy.auth.lock import locked
from proxy.auth.store import private_folder, write_private
from proxy.errors import ProxyError

#: Prefix by which a key can be recognised anywhere.
PREFIX = "mp-"
KEY_BYTES = 32
#: Version of the file. Another one is from a newer program, whose limits this one would not enforce.
VERSION = 1
MAX_KEYS = 1000
MAX_LIMIT = 10**12
#: Maximum limit of requests of one key within a minute, each of which is remembered.
MAX_PER_MINUTE = 10_000

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


class BadKeys(ValueError):
    """A file that is not ours, or damaged; the message says where."""


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """The limits of a caller; None: no limit of its own.

    at_a_time       model requests at one time
    per_minute      model requests that begin within any 60 seconds
    tokens_per_day  input and output tokens of a day (UTC)
    """

    at_a_time: int | None = None
    per_minute: int | None = None
    tokens_per_day: int | None = None


@dataclass(frozen=True, slots=True)
class CallerKey:
    """The key of one caller.

    name     the caller's name, unique; used in the log, the monitor and the metrics
    digest   SHA-256 of the key, hexadecimal
    created  epoch seconds
    """

    name: str
    digest: str
    created: int
    limits: KeyLimits = field(default_factory=KeyLimits)


def is_name(text: str) -> bool:
    """Whether a text may be the name of a caller.

    >>> is_name("anna.b-2"), is_name("a b"), is_name("")
    (True, False, False)
    """
    return _NAME.fullmatch(text) is not None


def new_key(random: Callable[[int], str] = secrets.token_urlsafe) -> str:
    """A key that is not in use."""
    return PREFIX + random(KEY_BYTES)


def digest_of(key: bytes) -> str:
    return hashlib.sha256(key).hexdigest()


def encode_keys(keys: Iterable[CallerKey]) -> bytes:
    """The bytes of the file, by name."""
    rows = [asdict(key) for key in sorted(keys, key=lambda key: key.name)]
    return json.dumps({"version": VERSION, "keys": rows}, indent=2).encode() + b"\n"


def decode_keys(data: bytes) -> dict[str, CallerKey]:
    """digest -> key. Raises BadKeys: a file that is not understood completely is not used at all."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        raise BadKeys("it is not JSON") from None
    if not isinstance(content, dict) or not isinstance(content.get("keys"), list):
        raise BadKeys("it has no list of keys")
    if content.get("version") != VERSION:
        raise BadKeys("it was written by another version of this program")
    if len(content["keys"]) > MAX_KEYS:
        raise BadKeys(f"it has more than {MAX_KEYS} keys")
    keys = {key.digest: key for key in (_key(row, number) for number, row in enumerate(content["keys"], 1))}
    if len({key.name for key in keys.values()}) != len(content["keys"]):
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


#: The name of the file in the folder of the settings.
FILE_NAME = "keys.json"
#: Largest file: a thousand keys.
MAX_FILE_BYTES = 1024 * 1024
#: How often the file is checked, and so how long a revoked key continues to work.
RELOAD_S = 1.0


def read_keys(path: Path) -> dict[str, CallerKey] | None:
    """digest -> key; None if there is no file. Blocks. Raises ProxyError for a file that cannot be used."""
    try:
        return _read(path)
    except BadKeys as error:
        message = f"the callers' keys in {path} cannot be used: {error}; no key is accepted until it is repaired"
        raise ProxyError(message, kind="sign_in") from None


def _read(path: Path) -> dict[str, CallerKey] | None:
    """digest -> key; None if there is no file. Raises BadKeys."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise BadKeys("it is too long")
        return decode_keys(data)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BadKeys(error.strerror or type(error).__name__) from None


async def change_keys(path: Path, change: Callable[[dict[str, CallerKey]], None]) -> None:
    """Applies `change` to name -> key, and writes the result; concurrent changes are made one after another.
    Raises ProxyError, and OSError."""
    private_folder(path.parent)
    async with locked(path.with_name(f"{path.name}.lock"), label="keys"):
        keys = {key.name: key for key in (read_keys(path) or {}).values()}
        change(keys)
        write_private(path, encode_keys(keys.values()))


class KeyFile:
    """The current keys.

    tell     called once about a file that cannot be used, with the reason
    problem  why no key can be checked, "" while all is well
    """

    def __init__(
        self,
        path: Path,
        now: Callable[[], float] = time.monotonic,
        *,
        tell: Callable[[str], None] = lambda _problem: None,
    ) -> None:
        self._path = path
        self._tell = tell
        self._now = now
        self._looked = now()
        self._mark = self._stat()
        self._keys: Mapping[str, CallerKey] | None = None
        self.problem = ""
        self._read()

    @property
    def guards(self) -> bool:
        """Whether callers need a key. They still do after the file is removed, or its last key revoked."""
        self._look()
        return self._keys is not None or bool(self.problem)

    @property
    def keys(self) -> Mapping[str, CallerKey]:
        """digest -> key."""
        self._look()
        return self._keys or {}

    def _look(self) -> None:
        now = self._now()
        if now - self._looked < RELOAD_S:
            return
        self._looked = now
        mark = self._stat()
        if mark != self._mark or self.problem:  # an unusable file may be mended without a new date
            self._mark = mark
            self._read()

    def _read(self) -> None:
        guarded = self._keys is not None or bool(self.problem)
        found, problem = None, ""
        try:
            found = _read(self._path)
        except BadKeys as error:
            problem = str(error)
        if problem and problem != self.problem:
            self._tell(problem)
        self.problem = problem
        self._keys = {} if found is None and guarded else found

    def _stat(self) -> tuple[int, int, int, int] | None:
        try:
            stat = self._path.stat()
        except OSError:
            return None
        return stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino
