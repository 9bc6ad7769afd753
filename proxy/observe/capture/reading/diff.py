"""Two bodies compared as a prompt cache compares them, from the front up to the first block that differs; and how much
of a prompt came from the cache, as an answer says. Pure."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

from proxy.observe.capture.layout import DOWNSTREAM_EVENT, REPLY
from proxy.observe.capture.reading.blocks import PARTS, SETTINGS, Block, blocks_of
from proxy.observe.capture.reading.folder import NUMBER, Artifact, CaptureFolder, Unreadable

#: Events searched for the usage, from the end.
LAST_EVENTS = 4


@dataclass(frozen=True, slots=True)
class CachedInput:
    """Tokens of the input, and how many of them were read from the cache."""

    tokens: int
    cached: int


def cached_input(capture: CaptureFolder) -> CachedInput | None:
    """The cached input that the answer reports; None when it failed, or its end was not kept."""
    return next((found for artifact in _ends(capture) if (found := _read(artifact)) is not None), None)


def _ends(capture: CaptureFolder) -> Iterator[Artifact]:
    stations = (REPLY[:NUMBER], DOWNSTREAM_EVENT[:NUMBER])
    yield from [one for one in capture.artifacts() if one.station in stations][: -LAST_EVENTS - 1 : -1]


def _read(artifact: Artifact) -> CachedInput | None:
    try:
        value = artifact.object()
    except Unreadable:
        return None
    for holder in (value, value.get("response"), value.get("message")):
        usage = holder.get("usage") if isinstance(holder, Mapping) else None
        if isinstance(usage, Mapping):
            return _cached(usage)
    return None


def _cached(usage: Mapping[str, Any]) -> CachedInput | None:
    """Reads input tokens: the Messages API counts cached ones apart, the other APIs among the rest."""
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    tokens = _number(usage, "prompt_tokens") or _number(usage, "input_tokens")
    cached = _number(details, "cached_tokens") if isinstance(details, Mapping) else 0
    apart = _number(usage, "cache_read_input_tokens")
    tokens += apart + _number(usage, "cache_creation_input_tokens")
    return CachedInput(tokens, cached + apart) if tokens else None


def _number(values: Mapping[str, Any], name: str) -> int:
    value = values.get(name)
    return value if isinstance(value, int) else 0


#: Blocks of a side that are matched one by one after the first difference; the matching is quadratic, and worse where
#: blocks repeat. Longer lists are taken as replaced as a whole.
MAX_MATCHED = 400

#: Characters of an excerpt before and from the difference on.
BEFORE, AFTER = 40, 80

#: Levels in the place of a difference.
MAX_STEPS = 60

ADDED, REMOVED, CHANGED = "added", "removed", "changed"


@dataclass(frozen=True, slots=True)
class Change:
    """A block that only one side has (the other is None), or that differs."""

    older: Block | None
    newer: Block | None

    @property
    def kind(self) -> str:
        return ADDED if self.older is None else REMOVED if self.newer is None else CHANGED


@dataclass(frozen=True, slots=True)
class FirstDifference:
    """The first difference of two prompts.

    offset    equal bytes of the block
    place     the way to the value that differs: `tools[2].input_schema.type`
    excerpts  the text around it on both sides, cut
    """

    older: Block
    newer: Block
    offset: int
    place: str
    excerpts: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Extent:
    """A number of blocks and their bytes, as compact JSON."""

    blocks: int
    size: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """The common and the different blocks of two requests.

    same      equal blocks at the front
    parts     part -> (of the older, of the newer), settings apart
    first     None when one prompt is the beginning of the other
    changes   those after the common blocks, in order
    settings  those that differ
    """

    same: Extent
    older: Extent
    newer: Extent
    parts: Mapping[str, tuple[Extent, Extent, Extent]]
    first: FirstDifference | None
    changes: tuple[Change, ...]
    settings: tuple[Change, ...]


def compare(older: Mapping[str, Any], newer: Mapping[str, Any]) -> Comparison:
    """Compares two bodies of one wire."""
    blocks = blocks_of(older), blocks_of(newer)
    a, b = ([block for block in side if block.part != SETTINGS] for side in blocks)
    same = _common(a, b)
    first = _first(a[same], b[same]) if same < min(len(a), len(b)) else None
    return Comparison(
        same=_extent(a[:same]),
        older=_extent(a),
        newer=_extent(b),
        parts={part: _part(part, a, b, same) for part in PARTS if part != SETTINGS},
        first=first,
        changes=tuple(_changes(a[same:], b[same:])),
        settings=tuple(_settings(*blocks)),
    )


def _common(a: Sequence[Block], b: Sequence[Block]) -> int:
    for count, (one, other) in enumerate(zip(a, b, strict=False)):
        if (one.part, one.text) != (other.part, other.text):
            return count
    return min(len(a), len(b))


def _extent(blocks: Sequence[Block]) -> Extent:
    return Extent(len(blocks), sum(block.size for block in blocks))


def _part(part: str, a: Sequence[Block], b: Sequence[Block], same: int) -> tuple[Extent, Extent, Extent]:
    """The common prefix, as far as it lies in this part, and the part on both sides."""
    cut = ([block for block in side if block.part == part] for side in (a[:same], a, b))
    common, older, newer = map(_extent, cut)
    return common, older, newer


def _first(one: Block, other: Block) -> FirstDifference:
    if one.part != other.part:  # the older part is over, or a part is new
        return FirstDifference(one, other, 0, other.place, (_cut(one.text, 0), _cut(other.text, 0)))
    at = common_length(one.text, other.text)
    offset = len(one.text[:at].encode("utf-8", "surrogatepass"))
    place = other.place + _way(one.value, other.value)
    return FirstDifference(one, other, offset, place, (_cut(one.text, at), _cut(other.text, at)))


def common_length(a: str, b: str) -> int:
    """The length of the common prefix of two texts."""
    most = min(len(a), len(b))
    return bisect.bisect_left(range(1, most + 1), True, key=lambda length: a[:length] != b[:length])


def _cut(text: str, at: int) -> str:
    start, end = max(0, at - BEFORE), at + AFTER
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")


def _way(a: Any, b: Any) -> str:
    """The path of members and positions to the first value that differs."""
    steps: list[str] = []
    while len(steps) < MAX_STEPS:
        step = _step(a, b)
        if step is None:
            break
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
        a, b = a[step], b[step]
    return "".join(steps)


def _step(a: Any, b: Any) -> str | int | None:
    """The first member that both have and that differs, None when they part here."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        names = zip(a, b, strict=False)
        return next((one if one == other else None for one, other in names if one != other or a[one] != b[one]), None)
    if isinstance(a, list) and isinstance(b, list):
        return next((i for i, (one, other) in enumerate(zip(a, b, strict=False)) if one != other), None)
    return None


def _changes(a: Sequence[Block], b: Sequence[Block]) -> list[Change]:
    tail = _common(a[::-1], b[::-1])
    a, b = a[: len(a) - tail], b[: len(b) - tail]
    if max(len(a), len(b)) > MAX_MATCHED:
        return _replaced(a, b)
    matcher = SequenceMatcher(None, [one.text for one in a], [one.text for one in b], autojunk=False)
    changes = []
    for kind, a1, a2, b1, b2 in matcher.get_opcodes():
        if kind != "equal":
            changes += _replaced(a[a1:a2], b[b1:b2])
    return changes


def _replaced(a: Sequence[Block], b: Sequence[Block]) -> list[Change]:
    """Pairs blocks of the same place or kind as changed ones."""
    pairs = zip(a, b, strict=False)
    if all(one.part == other.part and (one.place == other.place or one.kind == other.kind) for one, other in pairs):
        return [Change(one, other) for one, other in zip_longest(a, b)]
    return [*(Change(one, None) for one in a), *(Change(None, other) for other in b)]


def _settings(a: Sequence[Block], b: Sequence[Block]) -> list[Change]:
    older, newer = ({block.place: block for block in side if block.part == SETTINGS} for side in (a, b))
    return [
        Change(older.get(place), newer.get(place))
        for place in {**older, **newer}
        if place not in older or place not in newer or older[place].text != newer[place].text
    ]


def counts(changes: Sequence[Change]) -> dict[str, int]:
    """kind -> number of changes."""
    return {kind: sum(change.kind == kind for change in changes) for kind in (CHANGED, ADDED, REMOVED)}
