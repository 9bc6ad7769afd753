"""Remembers the newest requests of each session and agent, to compare the next one with.

One owner has several conversations at a time: under one session a client also sends titles, checks and summaries. So a
few are kept, and a request is compared with the one that it continues.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from proxy.core.cache_health.judge import Sent, common_prefix, is_continued, is_cut_short, same_head, weight_of
from proxy.core.identity import Owner

#: Maximum number of conversations of one owner.
MAX_LINES = 4
#: Maximum number of owners, and of the blocks of all of them: 20 bytes each.
MAX_OWNERS = 1024
MAX_BLOCKS = 1_000_000
#: An owner that was idle longer is forgotten: no service keeps a prompt for so long. Seconds.
IDLE_S = 4 * 3600.0
#: Shortest prompt that services keep, in characters.
MIN_WEIGHT = 2_000


@dataclass(slots=True)
class Line:
    """A conversation.

    newest   its newest request that reached an upstream
    summary  whether a summary of it was asked for since
    shown    the kind of the reason that was shown last, "" after a request without one
    """

    newest: Sent
    summary: bool = False
    shown: str = ""

    def is_new(self, kind: str) -> bool:
        """Notes the kind of a reason, "" for none, and returns whether it differs from the last one."""
        before, self.shown = self.shown, kind
        return bool(kind) and kind != before


@dataclass(frozen=True, slots=True)
class Compared:
    """A request that an upstream has begun to answer.

    line       the conversation that it belongs to from now on
    old        the request before it there, None if it is the first
    compacted  whether a summary replaced the conversation in between
    """

    line: Line
    new: Sent
    old: Sent | None = None
    compacted: bool = False


@dataclass(slots=True)
class _Lines:
    """The conversations of one owner, the newest last."""

    seen: float
    lines: list[Line] = field(default_factory=list)

    @property
    def blocks(self) -> int:
        return sum(len(line.newest.fingerprint.digests) for line in self.lines)


class PromptMemory:
    """The requests of all owners, bounded by age, owners and blocks."""

    def __init__(self, *, max_owners: int = MAX_OWNERS, max_blocks: int = MAX_BLOCKS) -> None:
        self._owners: OrderedDict[Owner, _Lines] = OrderedDict()
        self._max_owners = max_owners
        self._max_blocks = max_blocks
        self.blocks = 0

    def __len__(self) -> int:
        return len(self._owners)

    def reached(self, owner: Owner, sent: Sent, *, summary: bool = False) -> Compared:
        """Notes a request that an upstream has begun to answer.

        summary  whether it asks for a summary that will replace the conversation: no request continues it
        """
        self._expire(sent.at)
        found = self._owners.pop(owner, None) or _Lines(sent.at)
        self.blocks -= found.blocks
        compared = _compared(found.lines, sent)
        if summary:
            for line in found.lines:
                line.summary = True
        elif sent.fingerprint.total >= MIN_WEIGHT:
            found.lines = _with(found.lines, compared)
        found.seen = sent.at
        if found.lines:
            self._owners[owner] = found
            self.blocks += found.blocks
        self._limit()
        return compared

    def _expire(self, now: float) -> None:
        while self._owners and now - next(iter(self._owners.values())).seen > IDLE_S:
            self._forget()

    def _limit(self) -> None:
        while len(self._owners) > self._max_owners or (self.blocks > self._max_blocks and len(self._owners) > 1):
            self._forget()

    def _forget(self) -> None:
        self.blocks -= self._owners.popitem(last=False)[1].blocks


def _compared(lines: list[Line], sent: Sent) -> Compared:
    """The request with the conversation that has most in common with it from the front."""
    best, most = None, -1
    for line in reversed(lines):
        prefix = common_prefix(line.newest.fingerprint, sent.fingerprint)
        weight = weight_of(sent.fingerprint, prefix)
        if weight > most and _belongs(line, sent, prefix):
            best, most = line, weight
    if best is None:
        return Compared(Line(sent), sent)
    old, new = best.newest.fingerprint, sent.fingerprint
    compacted = best.summary and not is_continued(old, new, common_prefix(old, new))
    return Compared(best, sent, best.newest, compacted)


def _belongs(line: Line, sent: Sent, prefix: int) -> bool:
    old, new = line.newest.fingerprint, sent.fingerprint
    if same_head(old, new, prefix) and (prefix > new.head or line.summary or is_cut_short(old, new)):
        return True
    return is_continued(old, new, prefix)


def _with(lines: list[Line], compared: Compared) -> list[Line]:
    """The conversations with a new request. If they are too many the shortest is dropped: side requests come and go,
    and must not displace the one that matters."""
    line = compared.line
    line.newest, line.summary = compared.new, False
    others = [other for other in lines if other is not line]
    if len(others) >= MAX_LINES:
        others.remove(min(others, key=lambda other: other.newest.fingerprint.total))
    return [*others, line]
