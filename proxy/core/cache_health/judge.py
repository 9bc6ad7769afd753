"""What of a request an upstream could have had in its cache, what it had, and why not more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from proxy.core.cache_health.compare import common_prefix, difference, weight_of
from proxy.core.cache_health.fingerprint import Fingerprint

#: Services keep no prompt that is shorter.
MIN_TOKENS = 1024
#: A fall: so much of the input, and at least MIN_TOKENS of it, was read again. Weights are characters and shares are
#: tokens, and services keep prompts in steps, so that less says nothing.
FALL = 0.25
#: How long services keep a prompt without use, as far as they say: some longer, none shorter. Seconds.
KEPT_S = 300.0


@dataclass(frozen=True, slots=True)
class Sent:
    """A request that reached an upstream.

    at       when, in seconds
    account  whose cache it is: to be compared only, None where nobody knows
    """

    fingerprint: Fingerprint
    at: float
    provider: str
    model: str
    effort: str | None = None
    account: Any = None


@dataclass(frozen=True, slots=True)
class CacheVerdict:
    """Shares are of the input, 0 to 1.

    expected  what the request before has in common with this one from the front; None: there was none
    reason    in words, why less was cached than with the one before unchanged; "" where that is not so
    kind      the kind of the reason in a word: a kind that stays is told once
    """

    cached: float
    expected: float | None = None
    reason: str = ""
    kind: str = ""


def judge(
    old: Sent | None, new: Sent, *, cached_tokens: int, input_tokens: int, compacted: bool = False
) -> CacheVerdict:
    """Of a request whose answer told both counts, and the newest request of its conversation before it.

    compacted  whether a summary has taken the place of the conversation in between
    """
    cached = min(1.0, cached_tokens / input_tokens) if input_tokens else 0.0
    if old is None or not new.fingerprint.total:
        return CacheVerdict(cached)
    prefix = common_prefix(old.fingerprint, new.fingerprint)
    expected = weight_of(new.fingerprint, prefix) / new.fingerprint.total
    unchanged = min(1.0, old.fingerprint.total / new.fingerprint.total)
    lost = unchanged - cached
    if lost < FALL or lost * input_tokens < MIN_TOKENS:
        return CacheVerdict(cached, expected)
    told = []
    parted, missing = unchanged - expected, expected - cached
    if parted >= min(FALL, missing):
        told.append(_compaction() if compacted else _parting(old.fingerprint, new.fingerprint, prefix))
    if missing >= min(FALL, parted):
        told.append(_missing(old, new))
    kinds, words = zip(*told, strict=True)
    return CacheVerdict(cached, expected, "; ".join(words), "+".join(kinds))


_Told = tuple[str, str]


def _compaction() -> _Told:
    return "compaction", "the conversation was compacted"


def _parting(old: Fingerprint, new: Fingerprint, prefix: int) -> _Told:
    kind = "tools" if prefix < min(old.tools, new.tools) else "system" if prefix < new.head else "messages"
    return kind, difference(old, new, prefix)


def _missing(old: Sent, new: Sent) -> _Told:
    """Why what is the same was not there."""
    if old.provider != new.provider:
        return "provider", f"another provider: {old.provider} before"
    if old.model != new.model:
        return "model", f"another model: {old.model} before"
    if None not in (old.account, new.account) and old.account != new.account:
        return "account", f"another account or key of {new.provider}"
    waited = new.at - old.at
    if waited > KEPT_S:
        words = f"{_duration(waited)} since the last request, longer than {new.provider} keeps prompts"
        return "time", f"{words} (as far as known)"
    if old.effort != new.effort:
        return "effort", f"another effort: {old.effort or 'none'} before"
    return "upstream", "the upstream had it no more"


def _duration(seconds: float) -> str:
    minutes = int(seconds // 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"
