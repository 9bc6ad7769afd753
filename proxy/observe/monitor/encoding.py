"""Encodes snapshots as JSON. Most rows are the same as a second ago, so their text is reused."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from proxy.observe.monitor.snapshot import VERSION, Snapshot

#: Fields of a snapshot whose rows are kept by the store while nothing of them changes.
_KEPT = ("sessions", "recent")


class SnapshotEncoder:
    """Keeps the text of the rows of the last snapshot that it encoded."""

    def __init__(self) -> None:
        self._texts: dict[int, tuple[object, str]] = {}

    def encode(self, snapshot: Snapshot) -> bytes:
        """`{"version":1,"snapshot":{…}}`, without a line feed."""
        known, self._texts = self._texts, {}
        members = [f'"{name}":{self._rows(getattr(snapshot, name), known)}' for name in _KEPT]
        rest = {name: getattr(snapshot, name) for name in _names(Snapshot) if name not in _KEPT}
        members.append(_text(rest)[1:-1])
        return f'{{"version":{VERSION},"snapshot":{{{",".join(members)}}}}}'.encode("utf-8", "replace")

    def _rows(self, rows: Sequence[object], known: Mapping[int, tuple[object, str]]) -> str:
        texts = self._texts
        for row in rows:
            # An entry holds its row, so that no other one can have its identity.
            texts[id(row)] = known.get(id(row)) or (row, _text(row))
        return f"[{','.join([texts[id(row)][1] for row in rows])}]"


def _text(value: object) -> str:
    return json.dumps(value, default=_plain, ensure_ascii=False, separators=(",", ":"))


def _plain(value: Any) -> dict[str, Any]:
    """Converts one level that JSON has no form for: a dataclass, or a mapping that is no dict."""
    kind: Any = type(value)
    names = _names(kind)
    return {name: getattr(value, name) for name in names} if names else dict(value)


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()
