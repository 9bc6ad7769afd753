"""What the reviewer model is asked: one request for all calls of an answer.

All that it is shown is one JSON text, so that nothing in a call or a conversation can pass for words of ours. Results
of tools are left out: whatever they say, nobody who matters said it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from proxy.core.auto_mode.own_words import own_words
from proxy.core.auto_mode.policy import LISTS, Policy, Rule
from proxy.core.auto_mode.prompt import SYSTEM
from proxy.core.auto_mode.verdicts import ToolUse
from proxy.core.content import messages_of, texts_of
from proxy.core.sse import dump_json

#: Characters of one call's arguments, and of all calls of an answer together. What is longer is not judged at all: half
#: of a call says nothing about the other half.
MAX_CALL = 100_000
MAX_CALLS = 300_000
#: How many of the user's last messages are shown, and how many characters of each.
MAX_TURNS = 6
MAX_TURN = 4_000

_CUT = " […] "


def question(
    calls: Sequence[ToolUse], policy: Policy, messages: Mapping[str, Any], *, subagent: bool
) -> dict[str, Any]:
    """The Messages request to the reviewer, without a model.

    calls     those to judge, in the order in which `verdicts.reviewed` reads the answer
    messages  the request that is being answered
    """
    shown = {
        "agent": "subagent" if subagent else "main",
        "policy": _policy(policy),
        "user_turns": user_turns(messages),
        "calls": [{"call": place, "tool": call.tool, "input": call.input} for place, call in enumerate(calls, 1)],
    }
    text = dump_json(shown).encode(errors="replace").decode()  # a model may write half of a surrogate pair
    return {
        "system": [{"type": "text", "text": SYSTEM}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": text}]}],
        "max_tokens": 4096,
        "output_config": {"effort": "low"},
    }


def user_turns(request: Mapping[str, Any]) -> list[str]:
    """What the user said last, oldest first: texts of user messages alone, without what clients insert."""
    turns: list[str] = []
    for message in reversed(messages_of(request)):
        if message.get("role") != "user":
            continue
        text = "\n".join(filter(None, map(own_words, texts_of(message.get("content")))))
        if text:
            turns.append(_cut(text))
        if len(turns) == MAX_TURNS:
            break
    return turns[::-1]


def _cut(text: str) -> str:
    """Its beginning and its end."""
    half = MAX_TURN // 2
    return text if len(text) <= MAX_TURN else text[:half] + _CUT + text[-half:]


def _policy(policy: Policy) -> dict[str, Any]:
    rules = {name: _texts(getattr(policy, name)) for name in ("deny", "ask", "allow")}
    known = {
        "permission_mode": policy.mode,
        "platform": policy.platform,
        "working_folder": policy.cwd,
        "working_folders": list(policy.trusted),
        "home": policy.home,
        "branch": policy.branch,
        "default_branch": policy.default_branch,
    }
    return {
        "rules": rules,
        "auto_mode": {name: list(policy.lists.get(name, ())) for name in LISTS},
        **{name: value for name, value in known.items() if value},
    }


def _texts(rules: Sequence[Rule]) -> list[str]:
    return [rule.text for rule in rules]
