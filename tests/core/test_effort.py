"""The words by which a request asks for effort."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.core.effort import EFFORTS, MAX_WORD, effort_asked, unknown_effort


@pytest.mark.parametrize(
    ("word", "effort"),
    [
        *((word, word) for word in EFFORTS),
        *(("HIGH", "high"), (" high ", "high"), ("x-high", "xhigh"), ("extra_high", "xhigh"), ("Very High", "xhigh")),
        *(("ultra", "max"), ("maximum", "max"), ("minimal", "low"), ("none", "low"), ("med", "medium")),
        *(("auto", None), ("", None), ("purple", None), ("high" * 1000, None)),
    ],
)
def test_words(word: str, effort: str | None) -> None:
    request = {"output_config": {"effort": word}}
    assert effort_asked(request) == effort
    assert unknown_effort(request) == (None if word in EFFORTS else word[:MAX_WORD])


@pytest.mark.parametrize(("word", "effort"), [("none", "none"), (" NONE ", "none"), ("off", "low"), ("high", "high")])
def test_some_upstreams_know_none(word: str, effort: str) -> None:
    assert effort_asked({"output_config": {"effort": word}}, none=True) == effort


@pytest.mark.parametrize("config", [None, "high", 5, [], {}, {"effort": 5}, {"effort": None}, {"effort": ["high"]}])
def test_what_is_no_text_asks_for_nothing(config: Any) -> None:
    request = {"output_config": config}
    assert effort_asked(request) is None and unknown_effort(request) is None
