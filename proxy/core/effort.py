"""The effort that a Messages request asks for. No word is refused: a client chooses from a menu of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from proxy.core.identity import session_in_metadata
from proxy.core.routing import is_auto_review

#: from little to much
EFFORTS = ("low", "medium", "high", "xhigh", "max")

#: Words beside those, without case, blanks and hyphens -> the nearest of EFFORTS. Any other asks for nothing.
_NEAREST: Mapping[str, str] = {
    **{effort: effort for effort in EFFORTS},
    **dict.fromkeys(("none", "off", "minimal", "minimum", "min", "lowest"), "low"),
    **dict.fromkeys(("med", "mid", "moderate"), "medium"),
    **dict.fromkeys(("extrahigh", "veryhigh"), "xhigh"),
    **dict.fromkeys(("ultra", "ultrahigh", "ultrathink", "maximum", "highest"), "max"),
}
#: (most thinking tokens, effort), from little to much; above the last it is `_AMPLE`.
_BUDGETS = ((4096, "low"), (16_384, "medium"))
_AMPLE = "high"
#: The effort of thinking that is switched on without a budget.
_UNBOUND = "medium"
#: Part of the names of Claude Code's small model.
_QUICK = "haiku"
_BETWEEN = re.compile(r"[\s_-]+")
#: What is looked at of a word, and what a log has of it.
MAX_WORD = 40


def effort_asked(request: Mapping[str, Any], *, none: bool = False, budget: bool = False) -> str | None:
    """The effort that a request asks for, the nearest of EFFORTS; None when it asks for none that is known.

    none    whether the upstream knows the word `none` too
    budget  whether a budget for thinking asks for effort as well: for an upstream that shows no reasoning unasked
    >>> effort_asked({"output_config": {"effort": "ultra"}}), effort_asked({"output_config": {"effort": "purple"}})
    ('max', None)
    """
    word = _word(request)
    if none and word is not None and word.strip().lower() == "none":
        return "none"
    effort = None if word is None else _NEAREST.get(_BETWEEN.sub("", word[:MAX_WORD]).lower())
    return _of_budget(request) if effort is None and budget else effort


def unknown_effort(request: Mapping[str, Any]) -> str | None:
    """The word that a request asks by, or its beginning, when it is none of EFFORTS."""
    word = _word(request)
    return None if word is None or word in EFFORTS else word[:MAX_WORD]


def _word(request: Mapping[str, Any]) -> str | None:
    """The newest word: a system message among the others sets the effort from its turn on."""
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
    if not isinstance(thinking, Mapping) or thinking.get("type") != "enabled" or _is_small(request):
        return None
    tokens = thinking.get("budget_tokens")
    if not isinstance(tokens, int) or isinstance(tokens, bool):
        return _UNBOUND
    return next((effort for most, effort in _BUDGETS if tokens <= most), _AMPLE) if tokens > 0 else None


def _is_small(request: Mapping[str, Any]) -> bool:
    """Whether this is small and quick work of Claude Code: it gives a budget to every request to that model, whoever
    asks for it, and the classifier has an effort of its own."""
    quick = _QUICK in str(request.get("model")).lower() and session_in_metadata(request.get("metadata")) is not None
    return quick or is_auto_review(request)
