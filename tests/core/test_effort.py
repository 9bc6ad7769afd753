"""The words by which a request asks for effort."""

from __future__ import annotations

import copy
from typing import Any

from samples import rows

from proxy.core.effort import (
    EFFORTS,
    MAX_WORD,
    capped_openai_body,
    capped_request,
    effort_asked,
    is_side,
    unknown_effort,
)


@rows(
    "word, effort",
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


@rows("word, effort", [("none", "none"), (" NONE ", "none"), ("off", "low"), ("high", "high")])
def test_some_upstreams_know_none(word: str, effort: str) -> None:
    assert effort_asked({"output_config": {"effort": word}}, none=True) == effort


@rows("config", [None, "high", 5, [], {}, {"effort": 5}, {"effort": None}, {"effort": ["high"]}])
def test_what_is_no_text_asks_for_nothing(config: Any) -> None:
    request = {"output_config": config}
    assert effort_asked(request) is None and unknown_effort(request) is None


CODE = {"user_id": '{"device_id":"d","account_uuid":"","session_id":"s"}'}
REVIEW = "You are a security monitor for autonomous AI coding agents."


@rows(
    "members, effort",
    [
        *(({"thinking": {"type": "enabled", "budget_tokens": n}}, "low") for n in (1, 1024, 4096)),
        *(({"thinking": {"type": "enabled", "budget_tokens": n}}, "medium") for n in (4097, 16_384)),
        *(({"thinking": {"type": "enabled", "budget_tokens": n}}, "high") for n in (16_385, 31_999, 10**9)),
        *(({"thinking": {"type": "enabled", "budget_tokens": n}}, "medium") for n in (None, "9", True, [])),
        *(({"thinking": {"type": "enabled", "budget_tokens": n}}, None) for n in (0, -1)),
        *(({"thinking": {"type": kind, "budget_tokens": 9000}}, None) for kind in ("disabled", "x", None)),
        *(({"thinking": {"type": "adaptive", **budget}}, "medium") for budget in ({}, {"budget_tokens": 9})),
        *(({"thinking": thinking}, None) for thinking in ("enabled", None, [], {})),
    ],
)
def test_a_budget_for_thinking_asks_for_effort_where_reasoning_is_not_shown_unasked(
    members: dict[str, Any], effort: str | None
) -> None:
    assert effort_asked(members, budget=True) == effort
    assert effort_asked(members) is None


AMPLE = {"thinking": {"type": "enabled", "budget_tokens": 31_999}}


@rows(
    "members, effort",
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


@rows(
    "turns, effort",
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


#: model, whether an agent asks -> whether it is work beside the conversation; of providers with and without a small one
SIDE = [
    ("main", False, False),
    ("main", True, True),
    ("small", False, True),
    ("haiku", False, True),
    ("claude-haiku-4-5-20251001", False, True),
    ("claude-opus-5", False, False),
    ("other", False, False),
]


@rows("model, agent, side", SIDE)
def test_side_requests(model: str, agent: bool, side: bool) -> None:
    assert is_side(model, "small", "main", agent=agent) == side
    assert is_side("main", "main", "main", agent=agent) == agent


def thinks(tokens: Any, **members: Any) -> dict[str, Any]:
    return {"thinking": {"type": "enabled", "budget_tokens": tokens, **members}}


def says(effort: Any) -> dict[str, Any]:
    return {"output_config": {"effort": effort, "format": "kept"}}


LATER = {"role": "system", "content": "x", "output_config": {"effort": "max"}}
USER = {"role": "user", "content": "hi"}

#: request, cap, what becomes of it; None for what stays
CAPPED: list[tuple[dict[str, Any], str, dict[str, Any] | None]] = [
    ({}, "low", None),
    (says("high"), "low", says("low")),
    (says("Extra High"), "high", says("high")),
    (says("low"), "medium", None),
    (says("high"), "max", None),
    (says("low"), "none", says("none")),
    (says("none"), "low", None),
    *((says(word), "low", None) for word in ("auto", "purple", 5, None)),
    (thinks(9000, display="x"), "low", thinks(4096, display="x")),
    (thinks(9000), "medium", None),
    (thinks(50_000), "medium", thinks(16_384)),
    (thinks(50_000), "high", None),
    (thinks(1024), "low", None),
    *((thinks(tokens), "low", thinks(4096)) for tokens in (None, True, "9")),
    ({"thinking": {"type": "enabled"}}, "low", thinks(4096)),
    ({"thinking": {"type": "enabled"}}, "high", None),
    (thinks(2000), "none", {"thinking": {"type": "disabled"}}),
    ({"thinking": {"type": "adaptive"}}, "none", {"thinking": {"type": "disabled"}}),
    ({"thinking": {"type": "adaptive"}}, "low", {"thinking": {"type": "enabled", "budget_tokens": 4096}}),
    ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}, "low", None),
    ({"messages": [USER, LATER]}, "low", {"messages": [USER, LATER | {"output_config": {"effort": "low"}}]}),
    ({"messages": [USER, LATER]}, "max", None),
]


@rows("request_body, cap, becomes", CAPPED)
def test_a_cap_lowers_and_never_raises(request_body: dict[str, Any], cap: str, becomes: dict[str, Any] | None) -> None:
    before = copy.deepcopy(request_body)
    result = capped_request(request_body, cap)
    assert result is request_body if becomes is None else result == becomes
    assert request_body == before


@rows("name", ["reasoning_effort", "reasoning"])
@rows(
    "word, cap, becomes",
    [("high", "low", "low"), ("low", "high", "low"), ("minimal", "low", "minimal"), (None, "low", None), (5, "low", 5)],
)
def test_a_cap_on_the_openai_style_routes(name: str, word: Any, cap: str, becomes: Any) -> None:
    def body(effort: Any) -> dict[str, Any]:
        return {name: {"effort": effort, "summary": "auto"} if name == "reasoning" else effort}

    assert capped_openai_body(body(word), cap) == body(becomes)
