"""`models`: what can be asked for, without a proxy that runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proxy.cli import main
from proxy.cli.command import Context
from proxy.core.routing import ALIASES
from proxy.sandbox import Sandbox

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
    unknown = {"efforts": None, "sees": None, "in_plan": True}
    assert by_id["new-fast"] == {"id": "new-fast", "context_window": 272_000, **of_p1, **unknown}
    assert by_id["other"] == {"id": "other", "context_window": None, **of_p1, **unknown}
    assert by_id["kimi-k3"]["efforts"] == ["low", "high", "max"] and by_id["glm-5.2"]["sees"] is False
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


def kept(tmp_path: Path, label: str, **models: Any) -> None:
    folder = tmp_path / "state" / "model-proxy" / "models"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{label}.json").write_text(json.dumps({"asked": 1.0, "models": models}))


def test_what_a_service_offered_last_is_listed_and_what_it_lacks_is_marked(models: Run, tmp_path: Path) -> None:
    kept(tmp_path, "p2", **{"kimi-for-coding": {"context": 300_000}, "kimi-next": {"efforts": ["low"]}})
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    line = next(line for line in models("--full", **state).splitlines() if line.startswith("p2"))
    assert line == (
        "p2 (kimi): k2.6, kimi-for-coding, kimi-k2.6, kimi-next, k3 (not in your plan), kimi-k3 (not in your plan)"
    )
    by_id = {one["id"]: one for one in json.loads(models("--json", **state))["models"]}
    assert by_id["kimi-k2.6"]["context_window"] == 300_000 and by_id["kimi-next"]["efforts"] == ["low"]
    assert by_id["k3"]["in_plan"] is False and by_id["kimi-next"]["in_plan"] is True


async def test_refresh_asks_every_service_with_an_account(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with Sandbox() as sandbox:
        sandbox.write_credentials(tmp_path / "config")
        sandbox.p3.options.list_fault = "malformed_json"
        environment = {
            **sandbox.settings(),
            "PROXY_CONFIG_DIR": str(tmp_path / "config"),
            "XDG_STATE_HOME": str(tmp_path / "state"),
        }
        context = Context(environment, program="scripts/start")
        assert await asyncio.to_thread(main, ["models", "--refresh", "--full"], context) == 1
    printed = capsys.readouterr()
    assert "kimi-for-coding-highspeed" in printed.out and printed.err.startswith("p3 did not list its models: ")
    files = {path.name for path in (tmp_path / "state" / "model-proxy" / "models").iterdir()}
    assert files == {"p1.json", "p2.json", "p4.json", "p5.json"}


def test_the_catalogue_for_codex_has_the_models_of_providers_that_are_signed_in(models: Run) -> None:
    rows = json.loads(models("--codex", PROXY_P4_API_KEY="k", PATH=""))["models"]
    assert all(row["description"] == "OpenCode Go (p4)" for row in rows) and len(rows) > 50
    everyone = json.loads(models("--codex", PATH=""))["models"]
    assert {row["description"][-3:-1] for row in everyone} == {"p1", "p2", "p3", "p4"}, "where nobody is known"
