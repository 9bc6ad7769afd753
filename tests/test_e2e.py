"""What `scripts/e2e` says of words that select nothing, before any client is installed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts" / "lib"))

from e2e import run
from e2e.clients import MORE


@pytest.mark.parametrize("line", ["balancer", "codex nosuch", "--all --captures balancer"])
async def test_words_that_select_nothing_are_told_with_those_there_are(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def never(*_: Any) -> Path:
        raise AssertionError("nothing is installed")

    monkeypatch.setattr("e2e.clients.Client.install", never)
    assert await run.main(line.split()) == 1
    out, err = capsys.readouterr()
    assert out == "" and f"{line.split()[-1]!r} is in the name of no scenario" in err
    assert "codex 0.169.0: " in err and "plain_answer" in err
    assert (f"With --all also: {MORE[0].name}" in err) == ("--all" not in line)


async def test_a_word_that_only_all_has_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert await run.main(["opencode 1"]) == 1
    assert "'opencode 1' is in the name of no scenario; with --all it selects " in capsys.readouterr().err
