"""What Claude Code asks beside its conversation, with the session, the history and the tools of that. Pure.

It wants words and nothing else, while the conversation itself may be answered or have a tool at work: so it has a run
of its own, without tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proxy.core.content import messages_of, texts_of

#: How it begins: a side question (`/btw`), the proposal of a next prompt, what an agent is doing, a recap. As versions
#: 2.1.197 and 2.1.330 write it.
_BEGINNINGS = (
    "<system-reminder>This is a side question from the user.",
    "[SUGGESTION MODE:",
    "Describe your most recent action in 3-5 words",
    "The user stepped away and is coming back. Recap",
)


def is_an_aside(request: Mapping[str, Any]) -> bool:
    """Whether the last message of the user is of that kind.

    >>> is_an_aside({"messages": [{"role": "user", "content": "[SUGGESTION MODE: Suggest what the user might …]"}]})
    True
    """
    for message in reversed(messages_of(request)):
        if message.get("role") != "system":
            texts = texts_of(message.get("content")) if message.get("role") == "user" else ()
            return any(text.lstrip().startswith(_BEGINNINGS) for text in texts)
    return False
