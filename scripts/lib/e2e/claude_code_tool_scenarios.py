"""What Claude Code must be able to do with the tools of an MCP server. Each scenario raises AssertionError when it
fails."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from e2e import mcp_server
from e2e.claude_code import ClaudeCode, Outcome
from e2e.expecting import Scenario, Scenarios, expect, named
from e2e.servers import watched_proxy
from proxy.core.tools.calls import short_name

SCENARIOS: Scenarios[ClaudeCode] = Scenarios()
SERVER = "odd"
#: Both lanes of p1, p2, and the three wires of p4.
MODELS = ("gpt-5.5", "gpt-5.6-sol", "kimi-for-coding", "glm-5.2", "minimax-m3", "opencode-go/gpt-5.6-luna")
SEARCHING = ("gpt-5.6-sol", "kimi-for-coding", "minimax-m3")


def full_name(tool: str) -> str:
    return f"mcp__{SERVER}__{tool}"


async def with_server(
    claude: ClaudeCode, url: str, prompt: str, model: str, settings: Mapping[str, str] | None = None
) -> Outcome:
    """A run of the client with the MCP server, which it starts itself."""
    command = {"command": sys.executable, "args": [mcp_server.__file__]}
    servers = json.dumps({"mcpServers": {SERVER: command}})
    return await claude.run(url, prompt, "--mcp-config", servers, "--strict-mcp-config", model=model, settings=settings)


def call_line(tool: str, arguments: Mapping[str, Any]) -> str:
    """A line of a prompt that makes the sandbox's model call the tool, by the name that it knows."""
    return f"use {short_name(full_name(tool))}: {json.dumps(arguments)}"


def expect_calls(done: Outcome, tools: Mapping[str, Mapping[str, Any]]) -> None:
    results = [str(block.get("content")) for block in done.blocks("user", "tool_result")]
    for tool, arguments in tools.items():
        wanted = f"{tool} was called with {json.dumps(arguments)}"
        expect(any(wanted in result for result in results), f"{tool} was called", results)
    expect(not done.result["is_error"], "the turn completes", done.result)


#: A call of each tool.
CALLS: Mapping[str, Mapping[str, Any]] = {
    **{tool: {} for tool in mcp_server.SCHEMAS},
    "any_of": {"name": "x"},
    "arrays_inside": {"a": [["x"]], "o": {"any": 1}},
}


def _schemas_on(model: str) -> Scenario[ClaudeCode]:
    async def schemas(claude: ClaudeCode, folder: Path) -> None:
        """Tools with schemas that backends refuse, offered all at once and called one after another."""
        prompt = "\n".join(call_line(tool, arguments) for tool, arguments in CALLS.items())
        async with watched_proxy(folder, [], {}) as (url, _sandbox):
            done = await with_server(claude, url, prompt, model, {"ENABLE_TOOL_SEARCH": "false"})
        expect_calls(done, CALLS)

    return named(schemas, f"mcp schemas on {model}")


def _tool_search_on(model: str) -> Scenario[ClaudeCode]:
    async def tool_search(claude: ClaudeCode, folder: Path) -> None:
        """The client hides MCP tools until they are searched for; what was found comes back as references."""
        wanted = {"bare": {}, "any_of": {"name": "x"}}
        names = ",".join(map(full_name, wanted))
        search = json.dumps({"query": f"select:{names}", "max_results": 5})
        prompt = "\n".join([f"use ToolSearch: {search}", *(call_line(tool, given) for tool, given in wanted.items())])
        async with watched_proxy(folder, [], {}) as (url, sandbox):
            done = await with_server(claude, url, prompt, model, {"ENABLE_TOOL_SEARCH": "true"})
            requests = [*sandbox.p1.requests, *sandbox.p2.requests, *sandbox.p4.requests]
            sent = [json.dumps(request.body) for request in requests]
        loaded = f"[tool reference: {full_name('bare')}]"
        expect(any(loaded in body for body in sent), "the model is told what is loaded")
        unknown = [word for word in ('"tool_reference"', "defer_loading") if any(word in body for body in sent)]
        expect(not unknown, "in words that it knows", unknown)
        expect_calls(done, wanted)

    return named(tool_search, f"tool search on {model}")


for _model in MODELS:
    SCENARIOS.add(_schemas_on(_model))
for _model in SEARCHING:
    SCENARIOS.add(_tool_search_on(_model))
