"""A provider's credential on disk, `<config root>/<label>/auth.json`, safe for several processes.

In the same folder are `auth.json.refresh.lock`, held during renewal, sign-in and sign-out, and during a renewal
`auth.json.refresh-pending.json`, by which the next process learns that this one died half-way.

The credential is this program's own. The vendors' tools keep theirs elsewhere and must not share it: refresh tokens are
single-use, so two programs with one token sign each other out.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from proxy.auth import jwt
from proxy.auth.lock import LOCK_WAIT_S, lock_now, locked
from proxy.core.hiding.secret import Secret
from proxy.core.identity import fits_header
from proxy.errors import ProxyError

#: Largest file; a record has a few kilobytes.
MAX_FILE_BYTES = 1024 * 1024
#: Temporary files that a killed save leaves, and how many of these are removed at once.
_LEFTOVER = re.compile(r"\.[\w.-]+\.tmp")
MAX_LEFTOVERS = 1000


@dataclass(frozen=True, slots=True)
class Credential:
    """A signed-in account.

    refresh     empty if there is none
    expires_ms  end of the access token, epoch milliseconds; `jwt.NO_END_MS` if unknown
    extra       further members of the file, kept when the tokens change
    """

    access: Secret
    refresh: Secret
    expires_ms: int
    account_id: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)
    #: Hides the account's id too, which is private though no credential: see `core.hiding.secret.blanked`.
    _hidden: Secret = field(init=False, repr=False, compare=False)
    #: See `account_digest`: every request asks for it, and reading the token takes 8 µs.
    _digest: int | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hidden", Secret(self.account_id or ""))
        person = jwt.claims(self.access.reveal()).get("sub")
        known = (self.account_id, person if isinstance(person, str) else None)
        object.__setattr__(self, "_digest", None if known == (None, None) else hash(known))


def account_digest(credential: Credential | None) -> int | None:
    """A value that identifies a credential's account, equal after every renewal, to be compared within this process
    only. None if the credential does not name its account."""
    return None if credential is None else credential._digest


@dataclass(frozen=True, slots=True)
class Fields:
    """Names of the members in the file: the first of each is written, all are read.

    expires_ms     (): read from the access token, see `jwt.expires_ms`
    needs_refresh  False: the refresh token may be missing, and is then not written
    texts          the further members, all texts, that a file must have, and no others; None: any are kept
    """

    access: tuple[str, ...] = ("access",)
    refresh: tuple[str, ...] = ("refresh",)
    expires_ms: tuple[str, ...] = ("expires",)
    account_id: tuple[str, ...] = ("accountId", "account_id")
    needs_refresh: bool = True
    texts: frozenset[str] | None = None

    def fit(self, extra: Mapping[str, Any]) -> bool:
        """Whether these further members are allowed."""
        if self.texts is None:
            return True
        return extra.keys() == self.texts and all(isinstance(value, str) for value in extra.values())

    def all(self) -> set[str]:
        return {*self.access, *self.refresh, *self.expires_ms, *self.account_id}


def _first(record: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((record[name] for name in names if name in record), None)


def _refresh(record: Mapping[str, Any], fields: Fields) -> Any:
    """The refresh token, "" if it is missing and need not be there."""
    found = _first(record, fields.refresh)
    missing = not isinstance(found, str) or not found.strip()
    return "" if missing and not fields.needs_refresh else found


def parse_record(data: bytes, fields: Fields) -> Credential | None:
    """The credential in a file's bytes; None if they are no valid record."""
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    access, refresh = _first(record, fields.access), _refresh(record, fields)
    expires = _first(record, fields.expires_ms) if fields.expires_ms else jwt.expires_ms(access)
    account = _first(record, fields.account_id)
    if not (isinstance(access, str) and access.strip() and isinstance(refresh, str) and jwt.is_number(expires)):
        return None
    known = fields.all()
    extra = {name: value for name, value in record.items() if name not in known}
    texts = (access, refresh, account if isinstance(account, str) else "")
    if not (fields.fit(extra) and all(map(fits_header, texts))):
        return None
    return Credential(
        access=Secret(access),
        refresh=Secret(refresh),
        expires_ms=int(expires),
        account_id=account if isinstance(account, str) and account else None,
        extra=extra,
    )


def render_record(credential: Credential, fields: Fields) -> bytes:
    """The bytes of the file. Equal credentials have equal bytes."""
    record: dict[str, Any] = {fields.access[0]: credential.access.reveal()}
    if credential.refresh or fields.needs_refresh:
        record[fields.refresh[0]] = credential.refresh.reveal()
    if fields.expires_ms:
        record[fields.expires_ms[0]] = credential.expires_ms
    if credential.account_id is not None:
        record[fields.account_id[0]] = credential.account_id
    return json.dumps({**record, **credential.extra}, indent=2).encode() + b"\n"


def private_folder(folder: Path) -> None:
    """Makes the folder and its missing parents, all 0700, and tightens the mode of an existing folder."""
    if not folder.parent.exists():
        private_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_mode & 0o077:
        _best_effort(folder.chmod, 0o700)


def _best_effort(action: Callable[..., Any], *args: Any) -> None:
    """Ignores failures of steps that some systems lack (modes on Windows, fsync of a folder on some mounts)."""
    try:
        action(*args)
    except OSError:
        pass


def _sync_folder(folder: Path) -> None:
    """Makes a rename or a removal survive a power cut."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_private(path: Path, data: bytes) -> None:
    """Replaces a file atomically, with mode 0600 from the start; after a failure the old one is untouched.

    Blocks (two fsyncs): call it in a thread. Raises OSError.
    """
    private_folder(path.parent)
    try:
        _replace(path, data)
    except FileNotFoundError:  # `remove_leftovers` of another process removed the temporary file
        _replace(path, data)
    # The new file is in place: the save has succeeded even if one of these steps fails.
    _best_effort(path.chmod, 0o600)
    _best_effort(_sync_folder, path.parent)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Makes an OSError that names no file, such as that of a full disk, name this one."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Opens a new file, mode 0600; removes it if it cannot be written whole. Raises FileExistsError, OSError."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with naming(path), os.fdopen(fd, "wb") as file:
            yield file
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _replace(path: Path, data: bytes) -> None:
    temp = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with naming(path), os.fdopen(fd, "wb") as file:
            _best_effort(lock_now, fd)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temp.replace(path)
    except BaseException:
        temp.unlink(missing_ok=True)
        raise


def remove_leftovers(folder: Path) -> None:
    """Removes files that killed processes left in `write_private`; a living one locks its own. Ignores failures.
    Blocks."""
    try:
        found = [path for path in folder.iterdir() if _LEFTOVER.fullmatch(path.name)]
    except OSError:
        return
    for path in found[:MAX_LEFTOVERS]:
        _best_effort(_remove_unlocked, path)


def _remove_unlocked(path: Path) -> None:
    fd = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        lock_now(fd)
        path.unlink()
    finally:
        os.close(fd)


class CredentialFile:
    """The credential of provider `label` below the config root."""

    def __init__(
        self,
        root: Path,
        label: str,
        *,
        fields: Fields = Fields(),
        lock_wait_s: float = LOCK_WAIT_S,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.label = label
        self.path = root / label / "auth.json"
        self.lock_path = self.path.with_name("auth.json.refresh.lock")
        self.pending_path = self.path.with_name("auth.json.refresh-pending.json")
        self._fields = fields
        self._lock_wait_s = lock_wait_s
        self._sleep = sleep
        self._seen: tuple[tuple[int, int, int], Credential | None] | None = None

    def load(self) -> Credential | None:
        """The stored credential, None if there is none that can be read.

        Checks the disk every time, so that another process' renewal, sign-in or sign-out counts at once. Parses the
        content again only if time, size or inode changed.
        """
        try:
            stat = self.path.stat()
        except OSError:
            self._seen = None
            return None
        mark = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if self._seen is None or self._seen[0] != mark:
            self._seen = (mark, self._read())
        return self._seen[1]

    @property
    def seen(self) -> Credential | None:
        """The last result of `load`; checks the disk only the first time."""
        return self.load() if self._seen is None else self._seen[1]

    @property
    def is_unreadable(self) -> bool:
        """Whether there is a file, but not a valid credential."""
        if self.load() is not None:
            return False
        try:
            return self.path.exists()
        except OSError:  # we may not read its folder
            return True

    def reload(self) -> Credential | None:
        """Like `load`, but always reads the content: for decisions that cannot be undone."""
        self._seen = None
        return self.load()

    def _read(self) -> Credential | None:
        try:
            with self.path.open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
        except OSError:
            return None
        return parse_record(data, self._fields) if len(data) <= MAX_FILE_BYTES else None

    async def save(self, credential: Credential) -> None:
        """Writes the credential. Raises OSError, and then leaves the old file unchanged."""
        await asyncio.to_thread(write_private, self.path, render_record(credential, self._fields))
        self._seen = None

    async def delete(self) -> None:
        """Removes the credential and its marker, if there are any. Raises OSError."""
        await asyncio.to_thread(self._delete)
        self._seen = None

    def _delete(self) -> None:
        self.path.unlink(missing_ok=True)
        remove_leftovers(self.path.parent)
        self.pending_path.unlink(missing_ok=True)
        _best_effort(_sync_folder, self.path.parent)

    def locked(self) -> AbstractAsyncContextManager[None]:
        """The lock of renewal, sign-in and sign-out. Makes the folder. Raises OSError and the errors of
        `lock.locked`."""
        private_folder(self.path.parent)
        return locked(self.lock_path, label=self.label, wait_s=self._lock_wait_s, sleep=self._sleep)

    async def put(self, credential: Credential) -> None:
        """Stores a new sign-in. Raises ProxyError."""
        try:
            async with self.locked():
                await self.save(credential)
                self.clear_pending()
        except OSError as error:
            raise self._not_writable(error) from error

    async def discard(self) -> None:
        """Signs out, if there is a sign-in. Raises ProxyError."""
        if not self.path.parent.is_dir():  # the lock would make the folder
            return
        try:
            async with self.locked():
                await self.delete()
        except OSError as error:
            raise self._not_writable(error) from error

    def _not_writable(self, error: OSError) -> ProxyError:
        return ProxyError(
            f"The credential could not be changed in {self.path.parent}: {error.strerror}.",
            provider=self.label,
        )

    # The marker of an unfinished renewal. It holds a digest of the record and matters only under the lock: there a
    # marker of the current record means that its writer is dead.

    def _generation(self, credential: Credential) -> str:
        return hashlib.sha256(render_record(credential, self._fields)).hexdigest()

    async def mark_pending(self, credential: Credential) -> None:
        """Writes the marker that this credential is about to be renewed. Raises OSError."""
        note = {"auth_generation_sha256": self._generation(credential)}
        await asyncio.to_thread(write_private, self.pending_path, json.dumps(note).encode())

    def is_pending(self, credential: Credential) -> bool:
        """Whether a process began to renew exactly this credential and never finished."""
        try:
            note = json.loads(self.pending_path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return False
        return isinstance(note, dict) and note.get("auth_generation_sha256") == self._generation(credential)

    def clear_pending(self) -> None:
        """Removes the marker. Ignores failures, since the next save makes a marker meaningless."""
        _best_effort(self.pending_path.unlink)


class CredentialSource(Protocol):
    """The common interface of `refresh.Credentials` and `StaticToken`. All methods raise ProxyError."""

    async def get(self) -> Credential:
        """A credential that is ready for use."""
        ...

    @property
    def present(self) -> bool:
        """Whether there is a credential to try, without asking the issuer."""
        ...

    @property
    def account(self) -> int | None:
        """Identifies the account, see `account_digest`."""
        ...

    async def renew(self, rejected: Secret) -> Credential:
        """A credential with another access token than `rejected`, which the service has refused."""
        ...

    async def close(self) -> None:
        """Ends background work. Called once, at shutdown."""
        ...
