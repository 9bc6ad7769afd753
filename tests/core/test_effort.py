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


CODE = {"user_id": '{"device_id":"d","account_uuid":"","session_id":"s"}'}
REVIEW = "You are a security monitor for autonomous AI coding agents."


@pytest.mark.parametrize(
    ("members", "effort"),
    [
        *(({"thinking": {"type": "enabled", "budget_tokens": n}}, "low") for n in (1, 1024, 4096)),
        *(({"thinking": {"type": "enabled", "budget_tokens": n}}, "medium") for n in (4097, 16_384)),
        *(({"thinking": {"type": "enabled", "budget_tokens": n}}, "high") for n in (16_385, 31_999, 10**9)),
        *(({"thinking": {"type": "enabled", "budget_tokens": n}}, "medium") for n in (None, "9", True, [])),
        *(({"thinking": {"type": "enabled", "budget_tokens": n}}, None) for n in (0, -1)),
        *(({"thinking": {"type": kind, "budget_tokens": 9000}}, None) for kind in ("disabled", "adaptive", "x", None)),
        *(({"thinking": thinking}, None) for thinking in ("enabled", None, [], {})),
    ],
)
def test_a_budget_for_thinking_asks_for_effort_where_reasoning_is_not_shown_unasked(
    members: dict[str, Any], effort: str | None
) -> None:
    assert effort_asked(members, budget=True) == effort
    assert effort_asked(members) is None


AMPLE = {"thinking": {"type": "enabled", "budget_tokens": 31_999}}


@pytest.mark.parametrize(
    ("members", "effort"),
    [
        ({"output_config": {"effort": "low"}}, "low"),
        ({"output_config": {"effort": "purple"}}, "high"),
        ({"metadata": CODE, "model": "claude-haiku-4-5-20251001"}, None),
        ({"metadata": CODE, "model": "claude-haiku-4-5", "output_config": {"effort": "low"}}, "low"),
        ({"metadata": CODE, "model": "claude-sonnet-4-5"}, "high"),
        ({"metadata": {"user_id": "me"}, "model": "claude-haiku-4-5"}, "high"),
        ({"system": [{"type": "text", "text": REVIEW}]}, None),
    ],
)
def test_words_come_before_budgets_and_small_requests_of_claude_code_have_none(
    members: dict[str, Any], effort: str | None
) -> None:
    assert effort_asked({**AMPLE, **members}, budget=True) == effort


def turn(role: str, config: Any) -> dict[str, Any]:
    return {"role": role, "content": "x", "output_config": config}


@pytest.mark.parametrize(
    ("turns", "effort"),
    [
        ([turn("system", {"effort": "low"})], "low"),
        ([turn("system", {"effort": "low"}), turn("user", None), turn("system", {"effort": "max"})], "max"),
        ([turn("system", {"effort": "low"}), turn("system", {}), turn("system", None)], "low"),
        ([turn("user", {"effort": "low"}), turn("assistant", {"effort": "low"})], "high"),
        ([turn("system", {"effort": 5}), turn("system", "low"), turn("system", [])], "high"),
        ([], "high"),
    ],
)
def test_a_turn_sets_the_effort_from_there_on(turns: list[dict[str, Any]], effort: str) -> None:
    assert effort_asked({"output_config": {"effort": "high"}, "messages": turns}) == effort
