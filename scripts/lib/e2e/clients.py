"""All clients that are driven here, and what each must be able to do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e import (
    agents_on_p5,
    auto_mode_scenarios,
    balancer_scenarios,
    balancers,
    captures_scenarios,
    claude_code,
    claude_code_alias_scenarios,
    claude_code_scenarios,
    claude_code_tool_scenarios,
    codex,
    codex_alone,
    codex_picker_scenarios,
    codex_scenarios,
    container,
    container_scenarios,
    curl_scenarios,
    cursor_python_scenarios,
    cursor_scenarios,
    grok_cli,
    grok_scenarios,
    kimi_code,
    launcher_scenarios,
    media_scenarios,
    monitor_page_scenarios,
    monitor_scenarios,
    node_agents,
    node_sdks,
    opencode,
    python_agents,
    sdk_scenarios,
    token_limit_scenarios,
)
from e2e.expecting import Scenario, without
from e2e.npm import OnNode


@dataclass(frozen=True, slots=True)
class Client:
    """A client, the versions that are tried, and what each must be able to do.

    transport  of p1; None for the default
    alone      nothing runs beside its scenarios: they measure times, or start many processes at once
    """

    name: str
    versions: Sequence[str]
    install: Callable[[str, Path], Awaitable[Path]]  # of a version, into the cache; the program
    drive: Callable[[Path, str, Path], Any]  # program, version, folder
    scenarios: Sequence[Scenario[Any]]
    transport: str | None = None
    alone: bool = False


def _node_sdk(sdk: node_sdks.NodeSdk) -> Client:
    return Client(sdk.name, (sdk.version,), sdk.install, OnNode, sdk.scenarios)


_CLAUDE = (claude_code.install, claude_code.ClaudeCode)
_NEWEST, _OLDER = claude_code.VERSIONS[:1], claude_code.VERSIONS[1:]
_OPENCODE = (opencode.VERSIONS, opencode.install, node_agents.Opencode)
_QWEN_CODE = (node_agents.QWEN_VERSIONS, node_agents.install_qwen, node_agents.QwenCode)
_CONTINUE = (node_agents.CONTINUE_VERSIONS, node_agents.install_continue, node_agents.Continue)
_PI = (node_agents.PI_VERSIONS, node_agents.install_pi, node_agents.Pi)
_CLINE = (node_agents.CLINE_VERSIONS, node_agents.install_cline, node_agents.Cline)
_BROWSER = (monitor_page_scenarios.VERSIONS, monitor_page_scenarios.install, OnNode)


def _balancer(name: str, install: Callable[[str, Path], Awaitable[Path]], scenarios: Sequence[Scenario[Any]]) -> Client:
    """p1 over WebSockets, for continuation."""
    return Client(name, balancer_scenarios.VERSIONS, install, balancers.Balancer, scenarios, "websocket", alone=True)


def _framework(one: python_agents.Framework) -> Client:
    return Client(one.name, (one.version,), one.install, python_agents.Installed, python_agents.scenarios(one))


CLIENTS = (
    # first what runs alone, while the others are installed
    Client(
        "sdk", sdk_scenarios.VERSIONS, sdk_scenarios.install, sdk_scenarios.Python, media_scenarios.PYTHON, alone=True
    ),
    Client(
        "curl",
        curl_scenarios.VERSIONS,
        curl_scenarios.install,
        curl_scenarios.Curl,
        curl_scenarios.SCENARIOS,
        alone=True,
    ),
    Client("sdk", sdk_scenarios.VERSIONS, sdk_scenarios.install, sdk_scenarios.Python, sdk_scenarios.SCENARIOS),
    Client("sdk", sdk_scenarios.VERSIONS, sdk_scenarios.install, sdk_scenarios.Python, captures_scenarios.PYTHON),
    Client(
        "tmux",
        monitor_scenarios.VERSIONS,
        monitor_scenarios.install,
        monitor_scenarios.Screens,
        monitor_scenarios.SCENARIOS,
    ),
    Client("codex", codex.VERSIONS, codex.install, codex.Codex, codex_scenarios.SCENARIOS),
    Client("claude-code", _NEWEST, *_CLAUDE, claude_code_scenarios.SCENARIOS),
    Client("claude-code", _OLDER, *_CLAUDE, claude_code_scenarios.DISTINCT),
    Client("claude-code tools", _NEWEST, *_CLAUDE, claude_code_tool_scenarios.SCENARIOS),
    Client("claude-code captures", _NEWEST, *_CLAUDE, captures_scenarios.CLAUDE_CODE),
    Client("claude-code launched", _NEWEST, *_CLAUDE, launcher_scenarios.CLAUDE_CODE),
    Client("codex launched", codex.VERSIONS, codex.install, codex.Codex, launcher_scenarios.CODEX),
    Client("codex with its picker", codex.VERSIONS, codex.install, codex.Codex, codex_picker_scenarios.SCENARIOS),
    Client("claude-code", _NEWEST, *_CLAUDE, token_limit_scenarios.SCENARIOS),
    Client("claude-code", _NEWEST, *_CLAUDE, auto_mode_scenarios.SCENARIOS),
    Client("claude-code", _OLDER, *_CLAUDE, auto_mode_scenarios.SOME),
    Client("claude-code auto mode", _NEWEST, *_CLAUDE, auto_mode_scenarios.NEWEST),
    Client("sdk on p3", sdk_scenarios.VERSIONS, sdk_scenarios.install, sdk_scenarios.Python, grok_scenarios.PYTHON),
    Client("claude-code on p3", _NEWEST, *_CLAUDE, grok_scenarios.CLAUDE_CODE),
    Client("codex on p3", codex.VERSIONS, codex.install, codex.Codex, grok_scenarios.CODEX),
    Client(
        "sdk on p5", sdk_scenarios.VERSIONS, sdk_scenarios.install, sdk_scenarios.Python, cursor_python_scenarios.PYTHON
    ),
    Client("claude-code on p5", claude_code.VERSIONS, *_CLAUDE, cursor_scenarios.CLAUDE_CODE),
    Client("claude-code on p5", _NEWEST, *_CLAUDE, cursor_scenarios.NEWEST),
    Client("claude-code websocket", _NEWEST, *_CLAUDE, claude_code_scenarios.TRANSPORTED, "websocket"),
    Client("codex websocket", codex.VERSIONS, codex.install, codex.Codex, codex_scenarios.P1_SCENARIOS, "websocket"),
    Client("codex on p5", codex.VERSIONS, codex.install, codex.Codex, agents_on_p5.CODEX),
    Client("pi", *_PI, node_agents.PI),
    Client("pi on p5", *_PI, agents_on_p5.PI),
    _node_sdk(node_sdks.AI_SDK),
    *(_framework(one) for one in python_agents.QUICK),
    Client("codex alone", codex.VERSIONS, codex.install, codex_alone.CodexAlone, codex_alone.SCENARIOS),
    Client("page", *_BROWSER, monitor_page_scenarios.SCENARIOS),
)

#: What the same clients show once more: with the older version, over the other transport.
REPEATED = (
    Client(
        "claude-code",
        _OLDER,
        *_CLAUDE,
        (
            *without(claude_code_scenarios.SCENARIOS, claude_code_scenarios.DISTINCT),
            *without(auto_mode_scenarios.SCENARIOS, auto_mode_scenarios.SOME),
            *token_limit_scenarios.SCENARIOS,
        ),
    ),
    Client(
        "claude-code websocket",
        _NEWEST,
        *_CLAUDE,
        without(claude_code_scenarios.P1_SCENARIOS, claude_code_scenarios.TRANSPORTED),
        "websocket",
    ),
)

#: What takes minutes or much room: agents of other makers (a gigabyte to install), and the vendors' own clients at the
#: simulators alone, as far as nothing else needs them (seven hundred megabytes).
MORE = (
    Client("claude-code", _NEWEST, *_CLAUDE, claude_code_alias_scenarios.SCENARIOS),
    Client("claude-code on p5", _NEWEST, *_CLAUDE, cursor_scenarios.SLOW),
    Client("kimi-code alone", kimi_code.VERSIONS, kimi_code.install, kimi_code.KimiCode, kimi_code.SCENARIOS),
    Client("grok alone", grok_cli.VERSIONS, grok_cli.install, grok_cli.Grok, grok_cli.SCENARIOS),
    Client("opencode", *_OPENCODE, node_agents.OPENCODE),
    Client("opencode on p5", *_OPENCODE, agents_on_p5.OPENCODE),
    Client("qwen-code", *_QWEN_CODE, node_agents.QWEN_CODE),
    Client("qwen-code on p5", *_QWEN_CODE, agents_on_p5.QWEN_CODE),
    Client("continue", *_CONTINUE, node_agents.CONTINUE),
    Client("continue on p5", *_CONTINUE, agents_on_p5.CONTINUE),
    Client("cline", *_CLINE, node_agents.CLINE),
    Client("cline on p5", *_CLINE, agents_on_p5.CLINE),
    *(_node_sdk(sdk) for sdk in node_sdks.MORE),
    *(_framework(one) for one in python_agents.MORE),
    Client("opencode alone", opencode.VERSIONS, opencode.install, opencode.Opencode, opencode.SCENARIOS),
    Client("page", *_BROWSER, monitor_page_scenarios.MORE),
    Client(
        "container",
        container_scenarios.VERSIONS,
        container.install,
        container.Box,
        container_scenarios.SCENARIOS,
        alone=True,
    ),
    _balancer("nginx", balancers.install_nginx, balancer_scenarios.SCENARIOS),
    _balancer("haproxy", balancers.install_haproxy, balancer_scenarios.HAPROXY),
)
