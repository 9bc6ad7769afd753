"""Files that a launcher gives a client, each named by a digest of its content.

A running client reads its file again later, so no other launch replaces or removes it; old ones are dropped by age.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from proxy.auth.store import write_private

#: Seconds that a file is kept after the last launch that gave it.
KEPT_S = 30 * 24 * 3600.0
#: Most files of one kind.
MAX_KEPT = 50


def given_file(
    folder: Path, kind: str, text: str, *, reader: str = "", check: Callable[[Path], None] = lambda _path: None
) -> Path:
    """The file with this text, mode 0600, written unless it is there. Raises OSError, and what `check` raises.

    reader  the program that reads it, if another one has to check it again
    check   raises an error when the client cannot read the file; it then gets no name that a later launch trusts
    """
    data = text.encode()
    digest = hashlib.sha256(data + reader.encode(errors="surrogateescape")).hexdigest()[:16]
    path = folder / f"{kind}-{digest}.json"
    if _holds(path, data):
        with suppress(OSError):
            os.utime(path)
    else:
        unchecked = path.with_suffix(f".{os.getpid()}.unchecked")
        try:
            write_private(unchecked, data)
            check(unchecked)
            unchecked.replace(path)
        finally:
            unchecked.unlink(missing_ok=True)
    _drop_old(path, kind)
    return path


def _holds(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except OSError:
        return False


def _drop_old(given: Path, kind: str) -> None:
    """Removes the files of this kind that no launch has given for long."""
    found: list[tuple[float, Path]] = []
    for path in given.parent.glob(f"{kind}-*"):
        with suppress(OSError):
            found.append((path.stat().st_mtime, path))
    least = time.time() - KEPT_S
    for place, (given_at, path) in enumerate(sorted(found, reverse=True)):
        if path != given and (place >= MAX_KEPT or given_at < least):
            with suppress(OSError):
                path.unlink()
