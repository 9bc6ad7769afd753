"""P1's decisions: model, tier, effort, headers. Whole bodies stand in tests/vectors."""

from __future__ import annotations

from typing import Any

import pytest
from harness import configured
from samples import rows

from proxy.config import Config
from proxy.providers.contract import Target
from proxy.providers.p1_codex.request import effort_of, headers, resolve, search_owner, search_url


def resolved(
    model: str, request: dict[str, Any] | None = None, *, auto_review: bool = False, **settings: Any
) -> Target:
    return resolve(model, request or {}, configured(Config(), **settings), auto_review=auto_review)


@rows(
    "model, settings, sent",
    [
        ("gpt-5.5", {}, ("gpt-5.5", None)),
        ("sonnet", {}, ("gpt-5.6-terra", None)),
        ("claude-opus-5-5", {}, ("gpt-6-sol", None)),
        ("gpt-5.6-sol-fast", {}, ("gpt-5.6-sol", "priority")),
        ("gpt-5.6-sol", {"p1_service_tier": "fast"}, ("gpt-5.6-sol", "priority")),
        ("gpt-5.6-sol", {"p1_model": "gpt-5.4-fast"}, ("gpt-5.4", "priority")),
        ("gpt-5.6-sol", {"p1_model": "opus"}, ("gpt-5.6-sol", None)),
        ("gpt-5.6-sol-fast", {"p1_service_tier": "flex"}, ("gpt-5.6-sol", "flex")),
        ("gpt-5.6-sol-fast", {"p1_model": "gpt-5.4"}, ("gpt-5.4", "priority")),
        ("claude-opus-5", {}, ("gpt-5.6-sol", None)),
        ("claude-haiku-4-5-20251001", {}, ("gpt-5.6-luna", None)),
    ],
)
def test_a_name_becomes_a_model_and_a_tier(model: str, settings: dict[str, Any], sent: tuple[str, str | None]) -> None:
    found = resolved(model, **settings)
    assert (found.model, found.tier) == sent


def test_the_safety_classifier_is_not_forced_to_a_model() -> None:
    assert resolved("gpt-5.6-luna", auto_review=True, p1_model="gpt-5.5").model == "gpt-5.6-luna"
    assert resolved("gpt-5.6-luna", p1_model="gpt-5.5").model == "gpt-5.5"


@rows(
    "request_body, expected",
    [
        ({"speed": "fast"}, "priority"),
        ({"speed": "fast", "service_tier": "standard_only"}, None),
        ({"speed": "standard"}, None),
        ({"speed": ["fast"]}, None),
    ],
)
def test_a_request_can_ask_for_speed(request_body: dict[str, Any], expected: str | None) -> None:
    assert resolved("gpt-5.5", request_body).tier == expected


@rows(
    "config, forced, expected",
    [
        (None, None, None),
        ({"effort": "low"}, None, "low"),
        ({"effort": "max"}, None, "max"),
        ({"effort": "ultra"}, None, "max"),
        ({"effort": "huge"}, None, None),
        ({"effort": "huge"}, "high", "high"),
        ({"effort": 3}, None, None),
        ({"effort": None}, "high", "high"),
        ({"effort": "low"}, "none", "none"),
        ("high", None, None),
    ],
)
def test_efforts(config: Any, forced: str | None, expected: str | None) -> None:
    assert effort_of({"output_config": config}, configured(Config(), p1_effort=forced)) == expected


def test_a_configured_originator_is_sent_on_the_full_lane_only() -> None:
    config = configured(Config(), p1_originator="foo")
    assert headers(config, lite=False, session=None)["originator"] == "foo"
    sent = headers(config, lite=True, session=None)
    assert sent["originator"] == "codex_cli_rs" and sent["user-agent"].startswith("codex_cli_rs/")
    assert headers(Config(), lite=False, session=None)["user-agent"].startswith("model-proxy/")


@pytest.mark.parametrize("session", ["a\nb", "é", "a\x7f"])
def test_a_session_that_is_no_header_is_not_sent(session: str) -> None:
    assert "session-id" not in headers(Config(), lite=False, session=session)
    assert search_owner(None, session, "random") == "search-random"


@pytest.mark.parametrize("end", ["responses", "responses/", ""])
def test_the_search_stands_beside_the_responses(end: str) -> None:
    assert search_url(f"https://h.example/x/{end}") == "https://h.example/x/alpha/search"
