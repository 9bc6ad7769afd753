"""The descriptions of pictures, so that each picture is described once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

#: How long a description is kept after its last use, in seconds: a conversation may pause for a day.
KEPT_S = 24 * 3600.0
#: How long after a failure a picture is not asked about again.
FAILED_S = 300.0
#: Maximum number of descriptions kept, each of at most `MAX_DESCRIPTION` characters.
MAX_KEPT = 1000

#: The name of the caller's key, the model that describes, and the picture's digest.
PictureKey = tuple[str | None, str, str]


class PictureMemory:
    """Descriptions by caller, model and picture. An entry expires; a full table drops the one that was not used for
    the longest time."""

    def __init__(self, clock: Callable[[], float], *, max_kept: int = MAX_KEPT) -> None:
        self._clock = clock
        self._max = max_kept
        self._kept: OrderedDict[PictureKey, tuple[float, str]] = OrderedDict()

    def of(self, key: PictureKey) -> str | None:
        """The description; "" for a picture that could not be described lately, None for an unknown one."""
        used, text = self._kept.get(key, (0.0, None))
        if text is None:
            return None
        now = self._clock()
        if not 0 <= now - used <= (KEPT_S if text else FAILED_S):
            del self._kept[key]
            return None
        if text:
            self._kept[key] = now, text
        self._kept.move_to_end(key)
        return text

    def keep(self, key: PictureKey, text: str) -> None:
        """Keeps a description, or a failure if it is ""."""
        self._kept[key] = self._clock(), text
        self._kept.move_to_end(key)
        if len(self._kept) > self._max:
            self._kept.popitem(last=False)
