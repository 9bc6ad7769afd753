"""Verdicts on tool calls: read from the reviewer model's answer, and written for clients."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proxy.core.auto_mode.policy import KIND

#: Longest explanation that clients show.
MAX_EXPLANATION = 2000
#: A code fence around a whole answer.
_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*)\n[ \t]*```", re.DOTALL | re.IGNORECASE)
#: The reason of a reviewer that gives none.
NO_REASON = "The reviewer of this proxy's auto mode flagged this call without saying why"


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call of an answer.

    size   characters of its arguments; a call that is too long is not judged
    whole  whether the answer had all of it
    """

    id: str
    tool: str
    input: Mapping[str, Any]
    size: int = 0
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one call.

    outcome  flagged, not_flagged, skipped, timeout, error, refused, input_too_long, truncated
    why      the reason for a flagged call: a sentence for the user and the model
    """

    outcome: str
    why: str = ""

    def for_client(self) -> dict[str, Any]:
        """The form that clients read."""
        if self.outcome in ("flagged", "not_flagged"):
            explanation = {"explanation": one_line(self.why) or NO_REASON} if self.outcome == "flagged" else {}
            return {"type": "evaluated", "outcome": self.outcome, **explanation}
        if self.outcome == "skipped":
            return {"type": "skipped"}
        return {"type": "unavailable", "reason": self.outcome}


ERROR = Verdict("error")


def one_line(text: str) -> str:
    """The text in one line of at most `MAX_EXPLANATION` characters, without control characters and the full stop, which
    clients add."""
    line = " ".join(text[: 2 * MAX_EXPLANATION].split())
    line = "".join(sign for sign in line if sign.isprintable())
    return line.removesuffix(".") if len(line) <= MAX_EXPLANATION else line[: MAX_EXPLANATION - 1] + "…"


def results(verdicts: Mapping[str, Verdict]) -> list[dict[str, Any]]:
    """`safeguard_results` of an answer, with or without calls, from the verdicts by call id.

    >>> results({})
    [{'type': 'dangerous_tool_use', 'status': {'type': 'available', 'tool_uses': {}}}]
    """
    uses = {name: verdict.for_client() for name, verdict in verdicts.items()}
    return [{"type": KIND, "status": {"type": "available", "tool_uses": uses}}]


def outcomes(verdicts: Mapping[str, Verdict]) -> dict[str, int]:
    """outcome -> its number of verdicts"""
    return dict(Counter(verdict.outcome for verdict in verdicts.values()))


def reviewed(text: str, calls: Sequence[ToolUse]) -> dict[str, Verdict]:
    """The verdicts in the reviewer's answer, by call id; the answer names calls by their place, from 1.

    The answer is one JSON object, perhaps in a code fence: `{"verdicts": [{"call": 1, "flagged": false}, …]}`. A call
    without exactly one readable verdict is an error, never a permission, and so is every call of any other answer. An
    answer with a member twice in one object contradicts itself, and is an error for every call. One that flags an
    unclear call permits none.
    """
    found: dict[int, Verdict] = {}
    rows = _rows(text)
    unclear = any(_is_unclear(row, len(calls)) for row in rows)
    for row in rows:
        place, verdict = _place(row), _verdict(row)
        if place is not None:
            found[place] = ERROR if place in found or (unclear and verdict.outcome != "flagged") else verdict
    return {call.id: found.get(place, ERROR) for place, call in enumerate(calls, 1)}


def _rows(text: str) -> list[Any]:
    fenced = _FENCED.fullmatch(text.strip())
    try:
        value = json.loads(fenced[1] if fenced else text, object_pairs_hook=_members)
    except (ValueError, RecursionError):
        return []
    rows = value.get("verdicts") if isinstance(value, dict) else None
    return rows if isinstance(rows, list) else []


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object without duplicate members. Raises ValueError."""
    if len({name.strip().lower() for name, _ in pairs}) < len(pairs):
        raise ValueError("a member occurs twice")
    return dict(pairs)


def _place(row: Any) -> int | None:
    place = row.get("call") if isinstance(row, dict) else None
    return place if isinstance(place, int) and not isinstance(place, bool) else None


def _is_unclear(row: Any, calls: int) -> bool:
    """Whether a row may mean another call than it names: the reviewer may have counted from zero."""
    place = _place(row)
    return place is None or (not 1 <= place <= calls and _verdict(row).outcome != "not_flagged")


def _verdict(row: Any) -> Verdict:
    flagged, reason = (row.get("flagged"), row.get("reason")) if isinstance(row, dict) else (None, None)
    if not isinstance(flagged, bool):
        return ERROR
    return Verdict("flagged", reason if isinstance(reason, str) else "") if flagged else Verdict("not_flagged")
