"""Recognising Claude Code's request for a summary of the conversation, and how much thinking it may take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proxy.core.content import system_text, texts_of
from proxy.core.effort import EFFORTS as ASKED

SYSTEM_MARKER = "You are a helpful AI assistant tasked with summarizing conversations"
#: Both must stand in the newest message; either alone occurs in ordinary conversations about this client.
TEXT_ONLY_MARKER = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools."
TASK_MARKER = "Your task is to create a detailed summary of"

#: Characters of each end of a text in which they are looked for; of one of 60 MB that takes 70 ms.
WITHIN = 64 * 1024

#: from little to much
EFFORTS = ("none", *ASKED)


def is_compaction(request: Mapping[str, Any]) -> bool:
    """Whether the request asks for a summary that replaces the conversation."""
    if SYSTEM_MARKER in system_text(request.get("system")):
        return True
    # behind it the client may tell of the system, or of another effort
    for message in reversed(request.get("messages") or ()):
        if message["role"] != "system":
            return message["role"] == "user" and any(map(_asks_for_summary, texts_of(message["content"])))
    return False


def _asks_for_summary(text: str) -> bool:
    """The client's words are some kilobytes, before or behind what a user wrote: of a long text both ends are read."""
    if len(text) > 2 * WITHIN:
        text = text[:WITHIN] + text[-WITHIN:]
    return TEXT_ONLY_MARKER in text and TASK_MARKER in text


def is_instruction(text: str) -> bool:
    """Whether a text of a compaction request is the one that asks for the summary; beside the system prompt made for
    it the task stands alone."""
    return _asks_for_summary(text) or text.lstrip().startswith(TASK_MARKER)


def capped_effort(effort: str | None, cap: str) -> str | None:
    """The effort of a compaction request under a cap: lowered, never raised; without one of its own it takes the cap.

    `cap`: an effort, "off" for none.

    >>> capped_effort("xhigh", "low"), capped_effort("low", "high"), capped_effort(None, "low")
    ('low', 'low', 'low')
    >>> capped_effort("max", "off")
    'max'
    """
    if cap == "off":
        return effort
    if effort is None:
        return cap
    return min(effort, cap, key=EFFORTS.index)
