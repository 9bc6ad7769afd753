"""The descriptions of pictures, so that each picture is described once; and what one request knows of its own."""

from __future__ import annotations

import asyncio
from array import array
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

#: How long a description is kept after its last use, in seconds: a conversation may pause for a day.
KEPT_S = 24 * 3600.0
#: How long after a failure a picture, or an account, is not asked again.
FAILED_S = 300.0
#: Maximum number of descriptions kept, each of at most `MAX_DESCRIPTION` characters, and of failures.
MAX_KEPT = 1000

#: The name of the caller's key; the model that describes; and the picture's digest, or the account for its failure.
PictureKey = tuple[str | None, str, str]


@dataclass(slots=True)
class Descriptions:
    """The descriptions of one request.

    by      the account of the model that described some pictures, "" if none were described
    until   the loop's time for the last question, whichever candidate it is for; None before the first
    waited  how long the current candidate waited for them, in seconds
    said    for each picture of the request a hash of it and one of its text, in order
    """

    by: str = ""
    until: float | None = None
    waited: float = 0.0
    said: array[int] = field(default_factory=lambda: array("q"))

    def begin_anew(self) -> None:
        """Forgets what concerned another candidate."""
        self.by, self.waited, self.said = "", 0.0, array("q")


class PictureMemory:
    """Descriptions and failures by caller, model and picture; failures also by account.

    A picture is asked about by one request at a time: the others wait for its `lock`."""

    def __init__(self, clock: Callable[[], float], *, max_kept: int = MAX_KEPT) -> None:
        self._texts = _Table(clock, max_kept)
        self._failures = _Table(clock, max_kept)
        self._locks: WeakValueDictionary[PictureKey, asyncio.Lock] = WeakValueDictionary()

    def of(self, key: PictureKey) -> str | None:
        """The description, None for a picture without one."""
        return self._texts.get(key, KEPT_S, renew=True)

    def keep(self, key: PictureKey, text: str) -> None:
        """Keeps a description, unless there is one: another one would change prompts that services have in cache."""
        if self.of(key) is None:
            self._texts.put(key, text)

    def failure(self, key: PictureKey) -> str:
        """The reason why a picture or an account lately failed, "" if it did not."""
        return self._failures.get(key, FAILED_S) or ""

    def fail(self, key: PictureKey, reason: str) -> None:
        """Keeps a failure."""
        self._failures.put(key, reason)

    def lock(self, key: PictureKey) -> asyncio.Lock:
        """The lock of a picture, for as long as a request holds or awaits it."""
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        return lock


class _Table:
    """Texts with the time of their last use. A full table drops the oldest of the caller who has the most, so that no
    caller drops what others have."""

    def __init__(self, clock: Callable[[], float], most: int) -> None:
        self._clock = clock
        self._most = most
        self._size = 0
        self._of: dict[str | None, OrderedDict[PictureKey, tuple[float, str]]] = {}

    def get(self, key: PictureKey, kept_s: float, *, renew: bool = False) -> str | None:
        own = self._of.get(key[0])
        found = None if own is None else own.get(key)
        if found is None:
            return None
        used, text = found
        if not 0 <= self._clock() - used <= kept_s:
            self._drop(key[0], key)
            return None
        if renew:
            self._put(key, text)
        return text

    def put(self, key: PictureKey, text: str) -> None:
        self._put(key, text)
        if self._size > self._most:
            caller = max(self._of, key=lambda name: len(self._of[name]))
            self._drop(caller, next(iter(self._of[caller])))

    def _put(self, key: PictureKey, text: str) -> None:
        own = self._of.setdefault(key[0], OrderedDict())
        self._size += key not in own
        own[key] = self._clock(), text
        own.move_to_end(key)

    def _drop(self, caller: str | None, key: PictureKey) -> None:
        own = self._of[caller]
        del own[key]
        self._size -= 1
        if not own:
            del self._of[caller]
