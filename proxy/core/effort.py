"""The effort that a Messages request asks for. No word is refused: a client chooses from a menu of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: from little to much
EFFORTS = ("low", "medium", "high", "xhigh", "max")

#: Words of some clients and upstreams -> the nearest of EFFORTS.
_NEAREST = {**{word: word for word in EFFORTS}, "none": "low", "minimal": "low", "ultra": "max"}


def effort_asked(request: Mapping[str, Any]) -> str | None:
    """The word in `output_config.effort`; None when there is none, or something else than a text.

    >>> effort_asked({"output_config": {"effort": "high"}}), effort_asked({"output_config": "high"})
    ('high', None)
    """
    config = request.get("output_config")
    asked = config.get("effort") if isinstance(config, Mapping) else None
    return asked if isinstance(asked, str) else None


def known_effort(asked: str | None) -> str | None:
    """The nearest effort of EFFORTS; None for a word that nobody knows.

    >>> known_effort("ultra"), known_effort("extreme"), known_effort(None)
    ('max', None, None)
    """
    return _NEAREST.get(asked) if asked is not None else None
