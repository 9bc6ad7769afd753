"""`models`: what can be asked for, without a proxy that runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proxy.cli import main
from proxy.cli.command import Context
from proxy.core.routing import ALIASES

Run = Callable[..., str]


@pytest.fixture
def models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `models …` with variables, and says what it printed."""

    def run(line: str = "", **variables: str) -> str:
        context = Context({"XDG_CONFIG_HOME": str(tmp_path), **variables}, program="scripts/start")
        assert main(["models", *line.split()], context) == 0
        return capsys.readouterr().out

    return run


def test_the_json_has_every_model_with_its_limits_and_where_it_goes(models: Run) -> None:
    told = json.loads(models("--json", PROXY_P1_MODELS="new=gpt-5.5,other"))
    by_id: dict[str, dict[str, Any]] = {one["id"]: one for one in told["models"]}
    assert len(by_id) == len(told["models"])
    of_p1 = {"provider": "p1", "service": "codex", "max_output_tokens": None}
    assert by_id["new-fast"] == {"id": "new-fast", "context_window": 272_000, **of_p1}
    assert by_id["other"] == {"id": "other", "context_window": None, **of_p1}
    assert by_id["opencode-go/glm-5.1"]["max_output_tokens"] == 32_768
    assert {one["provider"] for one in told["models"]} == {"p1", "p2", "p3", "p4", "p5"}
    assert "cursor-plan:gpt-5.5-high" in by_id and not ALIASES & by_id.keys()


@pytest.mark.parametrize(
    ("label", "haiku", "opus"), [("p1", "gpt-5.6-luna", "gpt-5.6-sol"), ("kimi", "kimi-for-coding", "kimi-for-coding")]
)
def test_the_json_says_what_stands_behind_each_alias(models: Run, label: str, haiku: str, opus: str) -> None:
    aliases = json.loads(models("--json", PROXY_ALIAS_PROVIDER=label))["aliases"]
    assert aliases.keys() == ALIASES
    assert (aliases["haiku"]["model"], aliases["opus"]["model"]) == (haiku, opus)
    assert {one["provider"] for one in aliases.values()} == {"p2" if label == "kimi" else label}


def test_a_name_that_two_providers_list_is_told_once_as_it_is_served(models: Run) -> None:
    told = json.loads(models("--json", PROXY_P4_MODELS="gpt-5.5"))["models"]
    assert [one["provider"] for one in told if one["id"] == "gpt-5.5"] == ["p1"]
    assert [one["provider"] for one in told if one["id"] == "opencode-go/gpt-5.5"] == ["p4"]


def test_long_lists_are_cut_and_say_what_to_type(models: Run) -> None:
    lines = models().splitlines()
    assert [line[:2] for line in lines] == ["p1", "p2", "p3", "p4", "p5"]
    assert lines[0].endswith(", … (8 more: scripts/start models --full)") and "cursor:" not in lines[4]
    assert "cursor:gpt-5.5-high" in models("--full") and "…" not in models("--full")
