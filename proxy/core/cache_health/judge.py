"""Compares two requests of a conversation: what they have in common, what came from the upstream's cache, and the
reason why not more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from proxy.core.cache_health.fingerprint import Fingerprint

#: Maximum number of tools named in a reason.
_NAMED = 3


def common_prefix(old: Fingerprint, new: Fingerprint) -> int:
    """Number of equal blocks, from the front."""
    count = min(len(old.digests), len(new.digests))
    if old.digests[:count] == new.digests[:count]:
        return count
    return next(i for i, (a, b) in enumerate(zip(old.digests, new.digests, strict=False)) if a != b)


def weight_of(fingerprint: Fingerprint, blocks: int) -> int:
    """The weight of the first `blocks` blocks."""
    return sum(fingerprint.weights[:blocks])


def is_continued(old: Fingerprint, new: Fingerprint, prefix: int) -> bool:
    """Whether at least half of the old conversation is in the new one, at any place."""
    if prefix >= len(old.digests):
        return True
    there = set(new.digests[new.head :])
    said = range(old.head, len(old.digests))
    whole = sum(old.weights[i] for i in said)
    return whole > 0 and 2 * sum(old.weights[i] for i in said if old.digests[i] in there) >= whole


def same_head(old: Fingerprint, new: Fingerprint, prefix: int) -> bool:
    """Whether the tools and system texts are equal."""
    return old.head == new.head <= prefix


def is_cut_short(old: Fingerprint, new: Fingerprint) -> bool:
    """Whether a long conversation has become a much shorter one."""
    return new.head > 0 and old.messages >= _LONG and 2 * new.messages <= old.messages


#: Least messages of a conversation that is worth a summary.
_LONG = 6


def difference(old: Fingerprint, new: Fingerprint, prefix: int) -> str:
    """The difference of two requests, in words; `prefix` is their `common_prefix`."""
    if prefix < max(old.tools, new.tools) and _tools(old) != _tools(new):
        return _of_tools(old, new)
    if prefix < max(old.head, new.head):
        return _of_system(old, new, prefix)
    return _of_messages(old, new, prefix)


def _tools(of: Fingerprint) -> list[int]:
    return list(of.digests[: of.tools])


def _of_tools(old: Fingerprint, new: Fingerprint) -> str:
    before, now = Counter(_tools(old)), Counter(_tools(new))
    if before == now:
        return "the tools were reordered"
    gone = [name for name, digest in zip(old.names, _tools(old), strict=False) if digest not in now]
    come = [name for name, digest in zip(new.names, _tools(new), strict=False) if digest not in before]
    changed = [name for name in come if name in gone]
    changes = (
        _several(changed, "the tool {} changed", "{} tools changed"),
        _several([name for name in come if name not in gone], "a tool was added: {}", "{} tools were added"),
        _several([name for name in gone if name not in come], "a tool was removed: {}", "{} tools were removed"),
    )
    return ", ".join(filter(None, changes)) or "the tools changed"


def _several(names: list[str], one: str, more: str) -> str:
    if not names:
        return ""
    quoted = [f"`{name}`" for name in names]
    if len(names) == 1:
        return one.format(quoted[0])
    shown = ", ".join(quoted[:_NAMED]) + (", …" if len(names) > _NAMED else "")
    return f"{more.format(len(names))}: {shown}"


def _of_system(old: Fingerprint, new: Fingerprint, prefix: int) -> str:
    if not old.system or not new.system:
        return "a system text was added" if new.system else "the system text was removed"
    if max(old.system, new.system) == 1:
        return "the system text changed"
    return f"the system text changed (block {max(prefix, new.tools) - new.tools + 1})"


def _of_messages(old: Fingerprint, new: Fingerprint, prefix: int) -> str:
    place = old.places[prefix] + 1
    where = f"message {place} of {old.messages}"
    later_old, later_new = old.digests[prefix + 1 :], new.digests[prefix + 1 :]
    if old.messages > place and set(later_old).isdisjoint(new.digests[prefix:]):
        return _gone_back(old, new, place)
    if old.digests[prefix] in later_new:
        return f"something was put in before {where}"
    if new.digests[prefix] in later_old:
        return f"{where} was removed"
    return f"{where} was edited"


def _gone_back(old: Fingerprint, new: Fingerprint, place: int) -> str:
    """The reason for a conversation of which everything after message `place` is gone."""
    if not is_cut_short(old, new):
        return f"the conversation went back to message {place} of {old.messages}"
    anew = "was begun anew" if place == 1 else f"went back to message {place} of {old.messages}"
    return f"the conversation was compacted, or {anew}"


#: Shortest prompt that services keep.
MIN_TOKENS = 1024
#: Share of the input, at least MIN_TOKENS, that must be read again to count as a fall. Less means nothing: weights are
#: characters and shares are tokens, and services keep prompts in steps.
FALL = 0.25
#: How long services keep an unused prompt, in seconds; some say they keep it longer, none shorter.
KEPT_S = 300.0


@dataclass(frozen=True, slots=True)
class Sent:
    """A request that reached an upstream.

    at       its time, in seconds
    account  identifies the account with the cache, to be compared only; None if unknown
    described  for each picture that is described a hash of it and one of its text, in order
    """

    fingerprint: Fingerprint
    at: float
    provider: str
    model: str
    effort: str | None = None
    account: Any = None
    described: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class CacheVerdict:
    """The outcome of a comparison. Shares are of the input, 0 to 1.

    cached    share that came from the cache
    expected  share that the request before has in common with this one from the front; None if there was none
    reason    why less was cached than if the one before had only been continued; "" if it was not less
    kind      one word for the reason: a kind that does not change is shown only once
    """

    cached: float
    expected: float | None = None
    reason: str = ""
    kind: str = ""


def judge(
    old: Sent | None, new: Sent, *, cached_tokens: int, input_tokens: int, compacted: bool = False
) -> CacheVerdict:
    """The verdict on a request with both token counts of its answer.

    old        the request before it in its conversation
    compacted  whether a summary replaced the conversation in between
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
    reasons = []
    parted, missing = unchanged - expected, expected - cached
    if parted >= min(FALL, missing):
        reasons.append(_compaction() if compacted else _parting(old, new, prefix))
    if missing >= min(FALL, parted):
        reasons.append(_missing(old, new))
    kinds, words = zip(*reasons, strict=True)
    return CacheVerdict(cached, expected, "; ".join(words), "+".join(kinds))


#: Kind and words.
_Reason = tuple[str, str]


def _compaction() -> _Reason:
    return "compaction", "the conversation was compacted"


def _parting(before: Sent, now: Sent, prefix: int) -> _Reason:
    old, new = before.fingerprint, now.fingerprint
    kind = "tools" if prefix < min(old.tools, new.tools) else "system" if prefix < new.head else "messages"
    if kind == "messages" and is_described_anew(before.described, now.described):
        return "descriptions", "a picture has another description than before"
    return kind, difference(old, new, prefix)


def is_described_anew(old: Sequence[int], new: Sequence[int]) -> bool:
    """Whether the first difference of two lists of pictures and their texts is a text.

    >>> is_described_anew([1, 7, 2, 8], [1, 7, 2, 9]), is_described_anew([1, 7], [1, 7, 2, 8])
    (True, False)
    >>> is_described_anew([1, 7], [2, 8])
    False
    """
    place = next((place for place, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), 0)
    return place % 2 == 1


def _missing(old: Sent, new: Sent) -> _Reason:
    """Why equal blocks were not in the cache."""
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
    return "upstream", "the upstream no longer had it"


def _duration(seconds: float) -> str:
    minutes = int(seconds // 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"
