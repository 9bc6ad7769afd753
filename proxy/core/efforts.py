"""How hard a model is asked to think: the words that clients use, and which of them upstreams know."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

#: from little to much
EFFORTS = ("none", "low", "medium", "high", "xhigh", "max")
#: What a Messages request may ask for.
ASKED = EFFORTS[1:]

#: Words beside those, without case, blanks and hyphens -> the nearest that is known. Any other asks for nothing.
_NEAREST: Mapping[str, str] = {
    **{effort: effort for effort in ASKED},
    **dict.fromkeys(("none", "off", "minimal", "minimum", "min", "lowest"), "low"),
    **dict.fromkeys(("med", "mid", "moderate"), "medium"),
    **dict.fromkeys(("extrahigh", "veryhigh"), "xhigh"),
    **dict.fromkeys(("ultra", "ultrahigh", "ultrathink", "maximum", "highest"), "max"),
}
#: What is looked at of a word, and what a log has of it.
MAX_WORD = 40
_BETWEEN = re.compile(r"[\s_-]+")


def asked_effort(request: Mapping[str, Any]) -> str | None:
    """The effort that a Messages request asks for, as one of `ASKED`; None when it asks for none that is known.

    Menus of clients get new words before anybody else knows them, and a refusal would end every turn.

    >>> asked_effort({"output_config": {"effort": "ultra"}}), asked_effort({"output_config": {"effort": "purple"}})
    ('max', None)
    """
    word = _word(request)
    return None if word is None else _NEAREST.get(_BETWEEN.sub("", word[:MAX_WORD]).lower())


def unknown_effort(request: Mapping[str, Any]) -> str | None:
    """The word that a request asks by, when it is none of `ASKED`."""
    word = _word(request)
    return None if word in ASKED else word


def _word(request: Mapping[str, Any]) -> str | None:
    config = request.get("output_config")
    word = config.get("effort") if isinstance(config, Mapping) else None
    return word if isinstance(word, str) else None
