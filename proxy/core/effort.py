"""The effort that a Messages request asks for. No word is refused: a client chooses from a menu of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

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
_BETWEEN = re.compile(r"[\s_-]+")
#: What is looked at of a word, and what a log has of it.
MAX_WORD = 40


def effort_asked(request: Mapping[str, Any], *, none: bool = False) -> str | None:
    """The effort that a request asks for, the nearest of EFFORTS; None when it asks for none that is known.

    none  whether the upstream knows the word `none` too
    >>> effort_asked({"output_config": {"effort": "ultra"}}), effort_asked({"output_config": {"effort": "purple"}})
    ('max', None)
    """
    word = _word(request)
    if none and word is not None and word.strip().lower() == "none":
        return "none"
    return None if word is None else _NEAREST.get(_BETWEEN.sub("", word[:MAX_WORD]).lower())


def unknown_effort(request: Mapping[str, Any]) -> str | None:
    """The word that a request asks by, or its beginning, when it is none of EFFORTS."""
    word = _word(request)
    return None if word is None or word in EFFORTS else word[:MAX_WORD]


def _word(request: Mapping[str, Any]) -> str | None:
    config = request.get("output_config")
    word = config.get("effort") if isinstance(config, Mapping) else None
    return word if isinstance(word, str) else None
