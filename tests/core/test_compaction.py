"""Recognising requests for a summary."""

from __future__ import annotations

from typing import Any

from samples import rows

from proxy.core.effort import (
    RANKS,
    SYSTEM_MARKER,
    TASK_MARKER,
    TEXT_ONLY_MARKER,
    WITHIN,
    capped_effort,
    is_compaction,
)

BOTH = f"{TEXT_ONLY_MARKER}\n{TASK_MARKER} the conversation so far"


def asked(content: Any, role: str = "user") -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "hi"}, {"role": role, "content": content}]}


@rows(
    "request_body, expected",
    [
        ({"system": f"… {SYSTEM_MARKER}."}, True),
        ({"system": [{"type": "text", "text": SYSTEM_MARKER}]}, True),
        (asked(BOTH), True),
        (asked([{"type": "tool_result", "tool_use_id": "a"}, {"type": "text", "text": BOTH}]), True),
        (asked(BOTH + "x" * 3 * WITHIN), True),
        (asked("x" * 3 * WITHIN + BOTH), True),
        (asked("x" * 2 * WITHIN + BOTH + "x" * 2 * WITHIN), False),  # what a user has pasted
        (asked(TEXT_ONLY_MARKER), False),
        (asked(TASK_MARKER), False),
        (asked([{"type": "text", "text": TEXT_ONLY_MARKER}, {"type": "text", "text": TASK_MARKER}]), False),
        (asked(BOTH, role="assistant"), False),
        (asked(BOTH, role="system"), False),
        ({"messages": [*asked(BOTH)["messages"], {"role": "user", "content": "next"}]}, False),
        *(({"messages": [*asked(BOTH)["messages"], {"role": "system", "content": told}]}, True) for told in ([], "x")),
        (asked([{"type": "tool_result", "content": BOTH}]), False),
        (asked(None), False),
        ({"messages": []}, False),
        ({}, False),
    ],
)
def test_both_markers_in_the_newest_message(request_body: dict[str, Any], expected: bool) -> None:
    assert is_compaction(request_body) is expected


@rows("effort", RANKS)
@rows("cap", RANKS)
def test_a_cap_lowers_and_never_raises(effort: str, cap: str) -> None:
    capped = capped_effort(effort, cap)
    assert capped is not None
    assert RANKS.index(capped) == min(RANKS.index(effort), RANKS.index(cap))


def test_off_is_no_cap() -> None:
    assert capped_effort("max", "off") == "max"
    assert capped_effort(None, "off") is None
    assert capped_effort(None, "medium") == "medium"
