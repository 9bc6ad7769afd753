"""P1's decisions: model, tier, effort, headers. Whole bodies stand in tests/vectors."""

from __future__ import annotations

from typing import Any

import pytest
from harness import configured

from proxy.config import Config
from proxy.core.identity import Owner
from proxy.errors import RequestError
from proxy.providers.contract import Target
from proxy.providers.p1_codex.request import effort_of, headers, resolve, search_headers, search_owner, search_url


def resolved(
    model: str, request: dict[str, Any] | None = None, *, auto_review: bool = False, **settings: Any
) -> Target:
    return resolve(model, request or {}, configured(Config(), **settings), auto_review=auto_review)


@pytest.mark.parametrize(
    ("model", "settings", "expected"),
    [
        ("gpt-5.5", {}, Target("gpt-5.5")),
        ("haiku", {}, Target("gpt-5.6-luna")),
        ("sonnet", {}, Target("gpt-5.6-terra")),
        ("claude-opus-5", {}, Target("gpt-5.6-sol")),
        ("claude-opus-5-5", {}, Target("gpt-6-sol")),
        ("gpt-5.6-sol-fast", {}, Target("gpt-5.6-sol", "priority")),
        ("gpt-5.6-sol-fast", {"p1_service_tier": "flex"}, Target("gpt-5.6-sol", "flex")),
        ("gpt-5.6-sol", {"p1_service_tier": "fast"}, Target("gpt-5.6-sol", "priority")),
        ("gpt-5.6-sol-fast", {"p1_model": "gpt-5.4"}, Target("gpt-5.4", "priority")),
        ("gpt-5.6-sol", {"p1_model": "gpt-5.4-fast"}, Target("gpt-5.4", "priority")),
        ("gpt-5.6-sol", {"p1_model": "opus"}, Target("gpt-5.6-sol")),
    ],
)
def test_names_tiers_and_forced_models(model: str, settings: dict[str, Any], expected: Target) -> None:
    assert resolved(model, **settings) == expected


def test_the_safety_classifier_is_not_forced_to_a_model() -> None:
    assert resolved("gpt-5.6-luna", auto_review=True, p1_model="gpt-5.5").model == "gpt-5.6-luna"
    assert resolved("gpt-5.6-luna", p1_model="gpt-5.5").model == "gpt-5.5"


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("gpt-7", {}),
        ("gpt-5.6-sol-fast-fast", {}),
        ("gpt-5.5", {"p1_model": "gpt-7"}),
        ("gpt-5.5", {"p1_service_tier": "slow"}),
        ("gpt-5.5", {"p1_effort": "much"}),
    ],
)
def test_what_cannot_be_served_is_a_400(model: str, settings: dict[str, Any]) -> None:
    with pytest.raises(RequestError) as caught:
        resolved(model, **settings)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("request_body", "expected"),
    [
        ({"speed": "fast"}, "priority"),
        ({"speed": "fast", "service_tier": "standard_only"}, None),
        ({"speed": "standard"}, None),
        ({"speed": ["fast"]}, None),
    ],
)
def test_a_request_can_ask_for_speed(request_body: dict[str, Any], expected: str | None) -> None:
    assert resolved("gpt-5.5", request_body).tier == expected


@pytest.mark.parametrize(
    ("config", "forced", "expected"),
    [
        (None, None, None),
        ({"effort": "low"}, None, "low"),
        ({"effort": "max"}, None, "max"),
        ({"effort": "ultra"}, None, "max"),
        ({"effort": 3}, None, None),
        ({"effort": None}, "high", "high"),
        ({"effort": "low"}, "none", "none"),
        ("high", None, None),
    ],
)
def test_efforts(config: Any, forced: str | None, expected: str | None) -> None:
    assert effort_of({"output_config": config}, configured(Config(), p1_effort=forced)) == expected


@pytest.mark.parametrize("effort", ["", "none", "huge", "HIGH"])
def test_an_effort_that_no_client_may_ask_for_is_refused(effort: str) -> None:
    with pytest.raises(RequestError, match=r"Invalid output_config\.effort"):
        effort_of({"output_config": {"effort": effort}}, Config())


def test_lite_requests_come_from_the_vendors_client() -> None:
    sent = headers(configured(Config(), p1_originator="foo"), lite=True, session="s1")
    assert sent["originator"] == sent["user-agent"] == "codex_cli_rs"
    assert sent["x-openai-internal-codex-responses-lite"] == "true"
    assert (sent["session-id"], sent["x-client-request-id"], sent["x-codex-window-id"]) == ("s1", "s1", "s1:0")
    assert "session_id" not in sent


def test_full_requests_have_our_name_or_the_configured_one() -> None:
    assert headers(configured(Config(), p1_originator="foo"), lite=False, session=None)["originator"] == "foo"
    sent = headers(Config(), lite=False, session=None)
    assert sent["user-agent"].startswith("model-proxy/")
    assert not {"session-id", "x-client-request-id", "x-codex-window-id"} & sent.keys()


@pytest.mark.parametrize("session", ["a\nb", "é", "a\x7f"])
def test_a_session_that_is_no_header_is_not_sent(session: str) -> None:
    assert "session-id" not in headers(Config(), lite=False, session=session)
    assert search_owner(None, session, "random") == "search-random"


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("https://h.example/x/responses", "https://h.example/x/alpha/search"),
        ("https://h.example/x/responses/", "https://h.example/x/alpha/search"),
        ("https://h.example/x/", "https://h.example/x/alpha/search"),
    ],
)
def test_the_search_stands_beside_the_responses(base: str, expected: str) -> None:
    assert search_url(base) == expected


def test_agents_of_a_session_search_under_names_of_their_own() -> None:
    first, second = (search_owner(Owner("s", agent), "s", "r") for agent in ("a", "b"))
    assert first != second
    assert first == search_owner(Owner("s", "a"), "s", "other")
    assert search_owner(Owner("s"), "s", "r") == "s"
    assert search_owner(None, None, "r") == "search-r"
    assert search_headers(Config(), first)["session-id"] == first
