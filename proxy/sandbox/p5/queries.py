"""The questions of a run that are for the user: their numbers, what they ask, and how an answer is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from proxy.sandbox.wires.connect.protobuf import Message

Event = Mapping[str, Any]

CALL_ID = "toolu_query"

_OPTIONS = [{1: "a", 2: "First"}, {1: "b", 2: "Second"}]


def _question(event: Event) -> dict[int, Any]:
    question = {1: "q1", 2: event.get("text", "Which one?"), 3: _OPTIONS}
    return {1: {1: "A question", 2: [question]}, 2: CALL_ID}


#: Kind -> its number and its arguments.
QUERIES: dict[str, tuple[int, Callable[[Event], dict[int, Any]]]] = {
    "web_search": (2, lambda event: {1: {1: event.get("text", "news"), 2: CALL_ID}}),
    "ask_question": (3, _question),
    "switch_mode": (4, lambda event: {1: {1: event.get("text", "plan"), 2: "A plan comes first.", 3: CALL_ID}}),
    "exa_search": (5, lambda _: {}),
    "exa_fetch": (6, lambda _: {}),
    "create_plan": (
        7,
        lambda event: {1: {1: event.get("text", "1. Look."), 2: "Overview", 3: "Plan"}, 2: CALL_ID},
    ),
    "setup_vm": (8, lambda _: {}),
    "web_fetch": (9, lambda event: {1: {1: event.get("text", "https://example.com/"), 2: CALL_ID}}),
    "pr_management": (10, lambda _: {}),
    "mcp_auth": (11, lambda event: {1: {1: event.get("text", "server"), 2: CALL_ID}}),
    "generate_image": (12, lambda _: {2: CALL_ID}),
    "replace_env": (13, lambda _: {}),
    "unknown": (99, lambda _: {}),
}


def verdict(number: int, response: Message) -> str:
    """What the answer to the query of that number says: approved, rejected, or nothing."""
    if number == 7:
        return "approved" if response.has(7, 1, 1) else "rejected" if response.has(7, 1, 2) else "nothing"
    if number == 3:
        return "approved" if response.has(3, 1, 1) else "rejected" if response.has(3, 1) else "nothing"
    return "approved" if response.has(number, 1) else "rejected" if response.has(number, 2) else "nothing"


def reason(number: int, response: Message) -> str:
    """Why it was rejected."""
    return response.text(3, 1, 3, 1) if number == 3 else response.text(number, 2, 1)
