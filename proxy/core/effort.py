"""The effort that a Messages request asks for, and the requests whose effort is capped.

No word is refused: each client has its own menu.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeGuard

from proxy.core.content import system_text, texts_of
from proxy.core.identity import session_in_metadata
from proxy.core.routing import family_of, is_auto_review

#: From little to much.
EFFORTS = ("low", "medium", "high", "xhigh", "max")

#: word, in lower case and without blanks and hyphens -> the nearest of EFFORTS. Any other word asks for nothing.
_NEAREST: Mapping[str, str] = {
    **{effort: effort for effort in EFFORTS},
    **dict.fromkeys(("none", "off", "minimal", "minimum", "min", "lowest"), "low"),
    **dict.fromkeys(("med", "mid", "moderate"), "medium"),
    **dict.fromkeys(("extrahigh", "veryhigh"), "xhigh"),
    **dict.fromkeys(("ultra", "ultrahigh", "ultrathink", "maximum", "highest"), "max"),
}
#: (most thinking tokens, effort), from little to much; above the last the effort is `_AMPLE`.
_BUDGETS = ((4096, "low"), (16_384, "medium"))
_AMPLE = "high"
#: The effort of thinking that is on without a budget, or adaptive.
_UNBOUND = "medium"
#: Part of the names of Claude Code's small model.
_QUICK = "haiku"
#: All efforts and the word for no reasoning, which a cap may be.
RANKS = ("none", *EFFORTS)
#: All words that a service may list.
_ORDER = ("none", "minimal", *EFFORTS, "ultra")
_BETWEEN = re.compile(r"[\s_-]+")
#: Characters of a word that are read and logged.
MAX_WORD = 40


def effort_asked(
    request: Mapping[str, Any], *, none: bool = False, budget: bool = False, ultra: bool = False
) -> str | None:
    """The effort that a request asks for, as the nearest of EFFORTS; None if it asks for no known one.

    none    whether the upstream knows the word `none` too
    ultra   whether the model offers `ultra`, which is more than `max`
    budget  whether a thinking budget asks for effort as well: for an upstream that shows no reasoning unasked
    >>> effort_asked({"output_config": {"effort": "ultra"}}), effort_asked({"output_config": {"effort": "purple"}})
    ('max', None)
    """
    word = _word(request)
    if none and word is not None and word.strip().lower() == "none":
        return "none"
    plain = "" if word is None else _BETWEEN.sub("", word[:MAX_WORD]).lower()
    effort = "ultra" if ultra and plain == "ultra" else _NEAREST.get(plain)
    return _of_budget(request) if effort is None and budget else effort


def unknown_effort(request: Mapping[str, Any]) -> str | None:
    """The request's word for its effort, cut to MAX_WORD, if it is not one of EFFORTS; else None."""
    word = _word(request)
    return None if word is None or word in EFFORTS else word[:MAX_WORD]


def _word(request: Mapping[str, Any]) -> str | None:
    """The newest word for the effort: a system message within the conversation sets it from its turn on."""
    for message in reversed(request.get("messages") or ()):
        word = _word_of(message) if message.get("role") == "system" else None
        if word is not None:
            return word
    return _word_of(request)


def _word_of(holder: Mapping[str, Any]) -> str | None:
    config = holder.get("output_config")
    word = config.get("effort") if isinstance(config, Mapping) else None
    return word if isinstance(word, str) else None


def _of_budget(request: Mapping[str, Any]) -> str | None:
    thinking = request.get("thinking")
    if not _thinks(thinking) or _is_small(request):
        return None
    tokens = None if thinking["type"] == "adaptive" else thinking.get("budget_tokens")
    if not isinstance(tokens, int) or isinstance(tokens, bool):
        return _UNBOUND
    return next((effort for most, effort in _BUDGETS if tokens <= most), _AMPLE) if tokens > 0 else None


def _thinks(thinking: Any) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(thinking, Mapping) and thinking.get("type") in ("enabled", "adaptive")


def _is_small(request: Mapping[str, Any]) -> bool:
    """Whether this is small and quick work of Claude Code. Its budget means nothing: every request to that model has
    one. The classifier has an effort of its own."""
    quick = _QUICK in str(request.get("model")).lower() and session_in_metadata(request.get("metadata")) is not None
    return quick or is_auto_review(request)


# -- side requests


def is_side(model: str, small: str, main: str, *, agent: bool) -> bool:
    """Whether a request is work beside the conversation: a sub-agent's, or for the model of small and quick work.

    small, main  the provider's models; if they are equal, only the family in the name decides
    >>> is_side("claude-haiku-4-5", "s", "m", agent=False), is_side("m", "m", "m", agent=False)
    (True, False)
    """
    return agent or _QUICK in (model, family_of(model)) or model == small != main


def capped_request(request: Mapping[str, Any], cap: str) -> Mapping[str, Any]:
    """The Messages request with its effort, in words or by a thinking budget, lowered to the cap. What asks for no more
    is kept; returns `request` itself if nothing changes.

    >>> capped_request({"output_config": {"effort": "high"}}, "low")
    {'output_config': {'effort': 'low'}}
    >>> capped_request({"thinking": {"type": "enabled", "budget_tokens": 9000}}, "low")
    {'thinking': {'type': 'enabled', 'budget_tokens': 4096}}
    """
    changes = _lower(request, cap)
    thinking = _capped_thinking(request.get("thinking"), cap, worded=_word(request) is not None)
    if thinking is not None:
        changes["thinking"] = thinking
    messages = request.get("messages") or ()
    kept = [message | _lower(message, cap) if message.get("role") == "system" else message for message in messages]
    if any(new != old for new, old in zip(kept, messages, strict=True)):
        changes["messages"] = kept
    return {**request, **changes} if changes else request


def capped_openai_body(body: Mapping[str, Any], cap: str) -> Mapping[str, Any]:
    """The body of an OpenAI-style route with `reasoning_effort` or `reasoning.effort` lowered to the cap. Returns
    `body` itself if nothing changes."""
    changes: dict[str, Any] = {}
    if (lower := _lower_word(body.get("reasoning_effort"), cap)) is not None:
        changes["reasoning_effort"] = lower
    reasoning = body.get("reasoning")
    if isinstance(reasoning, Mapping) and (lower := _lower_word(reasoning.get("effort"), cap)) is not None:
        changes["reasoning"] = {**reasoning, "effort": lower}
    return {**body, **changes} if changes else body


def _lower(holder: Mapping[str, Any], cap: str) -> dict[str, Any]:
    lower = _lower_word(_word_of(holder), cap)
    return {} if lower is None else {"output_config": {**holder["output_config"], "effort": lower}}


def _lower_word(word: Any, cap: str) -> str | None:
    """The cap if the word asks for more, else None."""
    if not isinstance(word, str):
        return None
    asked = effort_asked({"output_config": {"effort": word}}, none=True)
    return cap if asked is not None and RANKS.index(asked) > RANKS.index(cap) else None


def _capped_thinking(thinking: Any, cap: str, *, worded: bool) -> dict[str, Any] | None:
    """The `thinking` member with the largest budget within the cap, None if it is within already.

    worded  whether a word asks for the effort, which adaptive thinking follows
    """
    if not _thinks(thinking) or (worded and thinking["type"] == "adaptive"):
        return None
    if cap == "none":
        return {"type": "disabled"}
    most = next((tokens for tokens, effort in _BUDGETS if effort == cap), None)
    tokens = thinking.get("budget_tokens")
    return (
        {**thinking, "type": "enabled", "budget_tokens": most} if most is not None and _exceeds(tokens, most) else None
    )


def _exceeds(tokens: Any, most: int) -> bool:
    """Whether a budget is over `most`. A missing one, or one that is no number, may be."""
    return not isinstance(tokens, int) or isinstance(tokens, bool) or tokens > most


# -- requests for a summary of the conversation, as Claude Code words them

SYSTEM_MARKER = "You are a helpful AI assistant tasked with summarizing conversations"
#: The newest message must hold both; either alone occurs in ordinary conversations about this client.
TEXT_ONLY_MARKER = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools."
TASK_MARKER = "Your task is to create a detailed summary of"

#: Characters at each end of a text that are searched for them. A search of all of 60 MB would take 70 ms.
WITHIN = 64 * 1024


def is_compaction(request: Mapping[str, Any]) -> bool:
    """Whether the request asks for a summary that replaces the conversation."""
    if SYSTEM_MARKER in system_text(request.get("system")):
        return True
    # the client may append a system message, or one that sets the effort
    for message in reversed(request.get("messages") or ()):
        if message["role"] != "system":
            return message["role"] == "user" and any(map(_asks_for_summary, texts_of(message["content"])))
    return False


def _asks_for_summary(text: str) -> bool:
    """The client's words are some kilobytes before or after what a user wrote, so a long text is read at both ends."""
    if len(text) > 2 * WITHIN:
        text = text[:WITHIN] + text[-WITHIN:]
    return TEXT_ONLY_MARKER in text and TASK_MARKER in text


def is_instruction(text: str) -> bool:
    """Whether a text of a compaction request is the one that asks for the summary. With the system prompt made for it,
    the text has only the task."""
    return _asks_for_summary(text) or text.lstrip().startswith(TASK_MARKER)


def narrowed(effort: str | None, offered: tuple[str, ...] | None) -> str | None:
    """The effort to send to a model that offers some: the most of them that is not more than the asked one, else the
    least. None if it offers none. `none`, which no list names, is kept.

    >>> narrowed("max", ("low", "high")), narrowed("ultra", ("max", "ultra")), narrowed("low", ("high",))
    ('high', 'ultra', 'high')
    >>> narrowed("low", ()), narrowed("none", ("low",)), narrowed("high", None)
    (None, 'none', 'high')
    """
    if effort in (None, "none") or offered is None or effort in offered:
        return effort
    known = sorted((one for one in offered if one in _ORDER[1:]), key=_ORDER.index)
    if not known:
        return None
    return next((one for one in reversed(known) if _ORDER.index(one) <= _ORDER.index(str(effort))), known[0])


def offered_effort(asked: str | None, ours: str | None, offered: tuple[str, ...]) -> str | None:
    """The effort to send to a model that offers some: the asked one, else that of our table, else the nearest.

    >>> offered_effort("medium", "high", ("low", "high")), offered_effort("max", "high", ("high", "max"))
    ('high', 'max')
    """
    return ours if asked not in offered and ours in offered else narrowed(asked, offered)


def lost_effort(
    asked: str | None, sent: str | None, offered: tuple[str, ...] | None
) -> tuple[tuple[str, str, str | None], ...]:
    """The effort that a model does not offer, as (what, asked, sent); empty if it is not known what it offers."""
    return () if offered is None or asked is None or asked == sent else (("effort", asked, sent),)


def capped_effort(effort: str | None, cap: str) -> str | None:
    """The effort of a compaction request under a cap: lowered, never raised; the cap if the request names none.

    cap  an effort, "off" for no cap

    >>> capped_effort("xhigh", "low"), capped_effort("low", "high"), capped_effort(None, "low")
    ('low', 'low', 'low')
    >>> capped_effort("max", "off")
    'max'
    """
    if cap == "off":
        return effort
    if effort is None:
        return cap
    return min(effort, cap, key=_ORDER.index)
