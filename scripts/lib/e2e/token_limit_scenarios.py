"""What Claude Code must do when the token limit cuts the call of a tool. Each scenario raises AssertionError."""

from __future__ import annotations

import json
from pathlib import Path

from e2e.claude_code import ClaudeCode
from e2e.expecting import Scenario, Scenarios, expect, named
from e2e.servers import watched_proxy

SCENARIOS: Scenarios[ClaudeCode] = Scenarios()

#: model -> who serves it. One over the Responses wire, one over chat completions.
MODELS = {"gpt-5.6-sol": "p1", "kimi-for-coding": "p2"}


def _cut_write_with(model: str, label: str) -> Scenario[ClaudeCode]:
    async def cut(claude: ClaudeCode, folder: Path) -> None:
        """The file is not written by half; the model is told that its call was cut, and the loop goes on."""
        path = claude.work / "long.txt"
        prompt = f"use Write: {json.dumps({'file_path': str(path), 'content': 'many words ' * 50})}"
        step = {"provider": label, "match": {"prompt": "use Write"}, "fault": "incomplete", "after": "call"}
        async with watched_proxy(folder, [step], {}) as (url, sandbox):
            done = await claude.run(url, prompt, model=model)
            asked = getattr(sandbox, label).total_requests
        results = [str(block.get("content")) for block in done.blocks("user", "tool_result")]
        expect(not path.exists(), "the cut call is not run", path)
        expect(any("could not be parsed" in text for text in results), "the model hears of it", results)
        expect(not done.result["is_error"] and "could not be parsed" in done.text, "and the loop goes on", done.result)
        expect(asked == 2 and not done.retries, "the answer is not paid for twice", asked)

    return named(cut, f"write call cut by the token limit of {model}")


for _model, _label in MODELS.items():
    SCENARIOS.add(_cut_write_with(_model, _label))
