"""The file of the callers' keys: read again when it changes, written whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from proxy.auth.lock import locked
from proxy.auth.store import private_folder, write_private
from proxy.errors import ProxyError
from proxy.server.callers.keys import BadKeys, CallerKey, decode_keys, encode_keys

#: The name of the file in the folder of the settings.
FILE_NAME = "keys.json"
#: Of a thousand keys; what is longer is none of ours.
MAX_FILE_BYTES = 1024 * 1024
#: The file is looked at again after this long: so long does a revoked key go on to work.
RELOAD_S = 1.0


def read_keys(path: Path) -> dict[str, CallerKey] | None:
    """digest -> key; None without a file. Blocks. Raises ProxyError for a file that cannot be used."""
    try:
        return _read(path)
    except BadKeys as error:
        message = f"the callers' keys in {path} cannot be used: {error}; nobody gets in with one until it is mended"
        raise ProxyError(message, kind="sign_in") from None


def _read(path: Path) -> dict[str, CallerKey] | None:
    """As `read_keys`. Raises BadKeys."""
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
    """Lets `change` work on name -> key, and writes the result; two that change at once do it one after another.
    Raises ProxyError, and OSError."""
    private_folder(path.parent)
    async with locked(path.with_name(f"{path.name}.lock"), label="keys"):
        keys = {key.name: key for key in (read_keys(path) or {}).values()}
        change(keys)
        write_private(path, encode_keys(keys.values()))


class KeyFile:
    """The keys as they are now.

    problem  why nobody's key can be checked, "" while all is well
    """

    def __init__(self, path: Path, now: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._now = now
        self._looked = now()
        self._mark = self._stat()
        self._keys: Mapping[str, CallerKey] | None = None
        self.problem = ""
        self._read()

    @property
    def guards(self) -> bool:
        """Whether callers need a key. A file that goes away, or whose last key is revoked, opens nothing."""
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
        if mark != self._mark:
            self._mark = mark
            self._read()

    def _read(self) -> None:
        guarded = self._keys is not None or bool(self.problem)
        found, problem = None, ""
        try:
            found = _read(self._path)
        except BadKeys as error:
            problem = str(error)
        self.problem = problem
        self._keys = {} if found is None and guarded else found

    def _stat(self) -> tuple[int, int, int] | None:
        try:
            stat = self._path.stat()
        except OSError:
            return None
        return stat.st_mtime_ns, stat.st_size, stat.st_ino
