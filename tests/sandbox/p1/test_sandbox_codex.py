"""What Codex CLI sends to the backend natively, its tool turns, and what the simulated P1 tells of its quota."""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

import aiohttp
import pytest
from p1_sandbox_client import LITE, Client, SocketClient, developer, full, tool, user
from samples import rows

from proxy.sandbox import P1Options, Quota, Sandbox
from proxy.sandbox.model.prompts import declared

PLACE = user("<environment_context>\n  <cwd>/work</cwd>\n</environment_context>")

FUNCTIONS = """Run JavaScript code to orchestrate/compose tool calls

### `apply_patch`
declare const tools: { apply_patch(input: string): Promise<unknown>; };

### `exec_command`
declare const tools: { exec_command(args: {
  // Shell command to execute.
  cmd: string;
  tty?: boolean;
}): Promise<{ output: string; }>; };

### `get_goal`
declare const tools: { get_goal(args: {}): Promise<unknown>; };
"""

GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: /[\\s\\S]+/"}
EXEC = {"type": "custom", "name": "exec", "description": FUNCTIONS, "format": GRAMMAR}
SEARCHER = {"type": "tool_search", "execution": "client", "description": "d", "parameters": {"type": "object"}}


def namespace(name: str, *tools: dict[str, Any]) -> dict[str, Any]:
    return {"type": "namespace", "name": name, "description": "", "tools": list(tools)}


def body(*items: dict[str, Any], **members: Any) -> dict[str, Any]:
    """What both shapes have in common."""
    return {
        "stream": True,
        "input": [developer("You are Codex."), PLACE, *items],
        "tool_choice": "auto",
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "thread",
        "client_metadata": {"thread_id": "thread", "x-codex-turn-metadata": '{"turn_id":"1"}'},
        **members,
    }


def known(*items: dict[str, Any], **members: Any) -> dict[str, Any]:
    """The request for a model that Codex knows: on the lite lane, with one tool for scripts."""
    tools = [namespace("functions", EXEC, tool("wait", "cell_id")), namespace("collaboration", tool("send", "text"))]
    offered = {"type": "additional_tools", "id": "at_1", "role": "developer", "tools": tools}
    lite = {
        "model": "gpt-5.6-sol",
        "parallel_tool_calls": False,
        "reasoning": {"effort": "low", "context": "all_turns"},
        "text": {"verbosity": "low"},
    }
    common = body(*items)
    return {**common, **lite, "input": [offered, *common["input"]], **members}


def unknown(*items: dict[str, Any], **members: Any) -> dict[str, Any]:
    """The request for a model that it does not know, or knows to be on the full lane."""
    tools = [
        tool("exec_command", "cmd"),
        namespace("multi_agent_v1", tool("close_agent", "target")),
        {"type": "custom", "name": "apply_patch", "description": "Edits files.", "format": GRAMMAR},
        SEARCHER,
        {"type": "web_search", "external_web_access": False, "search_content_types": ["text", "image"]},
    ]
    full = {"model": "gpt-5.5", "tools": tools, "parallel_tool_calls": True, "reasoning": {"summary": "auto"}}
    return {**body(*items), **full, **members}


def lane(sent: dict[str, Any]) -> dict[str, str]:
    return {LITE: "true"} if sent["input"][0]["type"] == "additional_tools" else {}


@rows("shape", [known, unknown])
async def test_a_plain_turn(client: Client, shape: Any) -> None:
    sent = shape(user("hello there"))
    assert '"hello there"' in (await client.ask(sent, lane(sent))).text


async def test_a_compressed_body(client: Client) -> None:
    """As Codex sends it with a ChatGPT login over HTTP."""
    zstd = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    sent = known(user("hello there"))
    headers = {**client.headers(), **lane(sent), "content-encoding": "zstd"}
    data = zstd.compress(json.dumps(sent).encode())
    async with client.session.post(client.url, data=data, headers=headers) as response:
        assert response.status == 200 and "hello there" in await response.text()
    assert client.sandbox.p1.requests[-1].body == sent


def runs(call: str) -> dict[str, str]:
    """The call of `exec` with a script that runs this."""
    return {"name": "exec", "input": f"const result = await tools.{call}; text(result?.output ?? result);"}


CALLS: list[tuple[Any, str, dict[str, Any]]] = [
    (known, 'use exec_command: {"cmd": "ls", "tty": true}', runs('exec_command({"cmd":"ls","tty":true})')),
    (known, "use exec_command: ls -la", runs('exec_command({"cmd":"ls -la"})')),
    (known, "use apply_patch: *** Begin", runs('apply_patch("*** Begin")')),
    (known, "use exec: text(1)", {"name": "exec", "input": "text(1)"}),
    (known, "use send: hi", {"name": "send", "namespace": "collaboration", "arguments": '{"text":"hi"}'}),
    (unknown, "use exec_command: ls", {"name": "exec_command", "arguments": '{"cmd":"ls"}'}),
    (unknown, "use apply_patch: *** Begin", {"name": "apply_patch", "input": "*** Begin"}),
    (unknown, "use multi_agent_v1__close_agent: a", {"name": "close_agent", "namespace": "multi_agent_v1"}),
]


@rows("shape, prompt, expected", CALLS)
async def test_a_tool_turn(client: Client, shape: Any, prompt: str, expected: dict[str, Any]) -> None:
    """The call is made in the form in which the tool was offered, and its result, as Codex sends it, is understood."""
    sent = shape(user(prompt))
    *_, item = (await client.ask(sent, lane(sent))).items
    assert {name: item.get(name) for name in expected} == expected
    result = {
        "type": f"{item['type']}_output",
        "id": "fco_1",
        "call_id": item["call_id"],
        "output": [{"type": "input_text", "text": "Script completed"}, {"type": "input_text", "text": "from-codex"}],
    }
    again = shape(user(prompt), item, result)
    assert "from-codex" in (await client.ask(again, lane(again))).text


def test_functions_of_a_script() -> None:
    assert declared(FUNCTIONS) == {"apply_patch": None, "exec_command": "cmd", "get_goal": None}
    assert declared("Edits files.") == {}


NOW = 1_000_000.5


def window(percent: float, reset: int = 600, **length: int) -> dict[str, Any]:
    return {"used_percent": percent, **length, "reset_after_seconds": reset, "reset_at": 1_000_000 + reset}


def test_headers_of_each_window_and_family() -> None:
    quota = Quota(
        windows={"primary": (100, 300)},
        families={"codex_bengalfox": {"primary": (7.25, 60)}},
        reset_after_s=5,
        has_credits=True,
        balance="4.2",
    )
    assert quota.headers(NOW) == {
        "x-codex-credits-has-credits": "true",
        "x-codex-credits-unlimited": "false",
        "x-codex-credits-balance": "4.2",
        "x-codex-primary-used-percent": "100.0",
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-after-seconds": "5",
        "x-codex-primary-reset-at": "1000005",
        "x-codex-bengalfox-primary-used-percent": "7.2",
        "x-codex-bengalfox-primary-window-minutes": "60",
        "x-codex-bengalfox-primary-reset-after-seconds": "5",
        "x-codex-bengalfox-primary-reset-at": "1000005",
    }


def test_usage_and_event_say_the_same() -> None:
    quota = Quota()
    usage, event = quota.usage(NOW), quota.event(NOW)
    assert usage["rate_limit"]["primary_window"] == window(12, limit_window_seconds=18_000)
    assert event["rate_limits"]["secondary"] == window(3, window_minutes=10_080)
    assert event["type"] == "codex.rate_limits"
    assert usage["plan_type"] == event["plan_type"] == "plus"


@pytest.mark.parametrize(
    ("percents", "has_credits", "reached", "allowed"),
    [((12, 99.9), False, False, True), ((12, 100), False, True, False), ((100, 3), True, True, True)],
)
def test_an_exhausted_window(percents: Any, has_credits: bool, reached: bool, allowed: bool) -> None:
    primary, secondary = percents
    quota = Quota({"primary": (primary, 300), "secondary": (secondary, 10_080)}, has_credits=has_credits)
    for told in (quota.usage(NOW)["rate_limit"], quota.event(NOW)["rate_limits"]):
        assert (told["limit_reached"], told["allowed"]) == (reached, allowed)
    assert (quota.usage(NOW)["rate_limit_reached_type"] is not None) is reached


async def test_every_answer_tells(session: aiohttp.ClientSession) -> None:
    options = P1Options(quota=Quota({"primary": (42, 300)}))
    async with Sandbox(options=[options], clock=lambda: NOW) as sandbox:
        client, sockets = Client(sandbox, session), SocketClient(sandbox, session)
        answers = [await client.ask(full()), await sockets.knock()]
        for headers in (answer.headers for answer in answers):
            assert headers["x-codex-primary-used-percent"] == "42.0"
            assert "x-codex-secondary-used-percent" not in headers
        url = f"{sandbox.origin}/backend-api/wham/usage"
        async with session.get(url, headers=client.headers()) as response:
            usage = await response.json()
        assert usage["rate_limit"]["primary_window"]["used_percent"] == 42
        assert usage["rate_limit"]["secondary_window"] is None
