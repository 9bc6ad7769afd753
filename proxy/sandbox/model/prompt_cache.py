"""The prompt cache of an upstream: the beginning that a prompt shares with an earlier one is read from it, if that was
used not long ago."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple

#: Names of conversations that are remembered, and prompts of each: titles and checks come besides the conversation.
MAX_KEYS = 1_000
MAX_PROMPTS = 4

#: The cache counts in blocks of this many tokens.
BLOCK = 128

#: Seconds after which an unused prompt is dropped.
KEPT_S = 600.0


class _Prompt(NamedTuple):
    """A prompt as digests and sizes of its parts, from the front."""

    parts: list[tuple[int, int]]
    used_at: float


class PromptCache:
    """The cache of one upstream."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: OrderedDict[Hashable, list[_Prompt]] = OrderedDict()

    def cached(self, key: Hashable, parts: Iterable[Any], tokens: int) -> int:
        """Returns the number of a prompt's tokens cached under a key, and stores the prompt. `parts`: its parts, in the
        order in which the model reads them."""
        now = self._clock()
        prompt = _Prompt([_digest(part) for part in parts if part], now)
        kept = [one for one in self._kept.pop(key, ()) if now - one.used_at < KEPT_S]
        share = max((_common(one, prompt) for one in kept), default=0.0)
        self._kept[key] = [*(one for one in kept if one.parts != prompt.parts), prompt][-MAX_PROMPTS:]
        if len(self._kept) > MAX_KEYS:
            self._kept.popitem(last=False)
        return int(tokens * share) // BLOCK * BLOCK


def _digest(part: Any) -> tuple[int, int]:
    text = json.dumps(_read(part))
    return hash(text), len(text)


def _read(value: Any) -> Any:
    """A value without marks for caches, which the model does not read."""
    if isinstance(value, dict):
        return {name: _read(member) for name, member in value.items() if name != "cache_control"}
    return [_read(one) for one in value] if isinstance(value, list) else value


def _common(old: _Prompt, new: _Prompt) -> float:
    """The share of the new prompt that the old one begins with."""
    total = sum(size for _, size in new.parts)
    same = 0
    for before, part in zip(old.parts, new.parts, strict=False):
        if before != part:
            break
        same += part[1]
    return same / total if total else 0.0
