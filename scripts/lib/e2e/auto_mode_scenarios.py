"""Claude Code in auto mode: its own safety classifier must be answered whichever model the session works with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from e2e.claude_code import ClaudeCode
from e2e.expecting import Scenario, Scenarios, expect, named
from e2e.servers import watched_proxy
from proxy.sandbox import Sandbox

SCENARIOS: Scenarios[ClaudeCode] = Scenarios()

MARKER = "You are a security monitor for autonomous AI coding agents."

#: The newest client asks a server that judges calls itself unless it is told not to.
OWN_CLASSIFIER = {"CLAUDE_CODE_AUTO_MODE_SERVER": "0"}

#: A model of each wire -> what of its upstream's requests says that there is room for the answer.
MODELS: dict[str, dict[str, Any]] = {
    "gpt-5.6-sol": {"max_output_tokens": None},
    "kimi-for-coding": {"thinking": {"type": "disabled"}, "max_completion_tokens": 32_000},
    "grok-4.6": {"max_output_tokens": None, "reasoning": {"effort": "low"}},
    "opencode-go/kimi-k2.6": {"max_tokens": 32_000},
    "minimax-m3": {"thinking": {"type": "disabled"}, "max_tokens": 32_000},
    "opencode-go/gpt-5.6-luna": {"max_output_tokens": None},
    "cursor": {"model": "default", "mode": 1},
}


def _judgements(sandbox: Sandbox) -> Iterator[Mapping[str, Any]]:
    """The bodies of the classifier's requests that reached any upstream."""
    for upstream in (sandbox.p1, sandbox.p2, sandbox.p3, sandbox.p4, sandbox.p5):
        for seen in upstream.requests:
            if MARKER in json.dumps(seen.body):
                yield seen.body


def _judged_by(model: str) -> Scenario[ClaudeCode]:
    async def judged(claude: ClaudeCode, folder: Path) -> None:
        """The command runs, since the classifier lets it; an answer that is cut or empty would deny it."""
        made = claude.work / "made"
        # aliases follow no session to p3 and p4, and the newer client asks an alias
        settings = {} if model.startswith(("gpt-", "kimi-")) else {"PROXY_AUTO_REVIEW_MODEL": model}
        async with watched_proxy(folder, [], settings) as (url, sandbox):
            prompt = f"use Bash: curl -s http://127.0.0.1:9/x; echo judged > {made}"
            done = await claude.run(
                url, prompt, "--permission-mode", "auto", model=model, settings=OWN_CLASSIFIER, skips_permissions=False
            )
            judgements = list(_judgements(sandbox))
        expect(judgements, "the classifier was asked", done.lines[-3:])
        expected = MODELS[model]
        found = [{name: body.get(name) for name in expected} for body in judgements]
        expect(all(one == expected for one in found), "with room for its answer and without thinking", found)
        expect(made.exists(), "the command ran", done.text)

    return named(judged, f"auto mode judged by {model}")


for _model in MODELS:
    SCENARIOS.add(_judged_by(_model))
