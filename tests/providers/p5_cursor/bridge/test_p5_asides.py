"""What Claude Code asks beside its conversation."""

from __future__ import annotations

from typing import Any

from samples import rows

from proxy.providers.p5_cursor.bridge.asides import is_an_aside

SIDE = "<system-reminder>This is a side question from the user. You must answer it.</system-reminder>\n\n"


def says(role: str, *texts: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text} for text in texts]}


@rows(
    "messages, expected",
    [
        ([says("user", "Q", SIDE, "what is this?")], True),
        ([says("user", "Q"), says("assistant", "A"), says("user", SIDE), says("system", "# Environment")], True),
        ([says("user", "Q"), says("assistant", "A"), {"role": "user", "content": SIDE}], True),
        ([says("user", "[SUGGESTION MODE: Suggest what the user might naturally type next]")], True),
        ([says("user", "Describe your most recent action in 3-5 words using present tense")], True),
        ([says("user", "The user stepped away and is coming back. Recap in under 40 words")], True),
        ([says("user", SIDE), says("assistant", "A"), says("user", "and now?")], False),
        ([says("user", SIDE), says("assistant", "A")], False),
        ([says("user", "What does [SUGGESTION MODE: do?")], False),
        ([says("system", SIDE)], False),
        ([{"role": "user"}, None, {"role": "user", "content": [None, {"type": "text", "text": 3}]}], False),
        ([], False),
        (None, False),
    ],
)
def test_what_is_asked_beside_a_conversation(messages: Any, expected: bool) -> None:
    assert is_an_aside({"messages": messages}) is expected
