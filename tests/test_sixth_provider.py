"""What a sixth provider takes: one entry, and one for its simulator. Everything else follows from them."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import fields
from pathlib import Path

import pytest
from harness import Live, ask, kinds, texts, tool
from openai_live import BOTH, body_for, function
from processes import ROOT, Proxy
from toy_provider.entry import TOY
from toy_provider.settings import ToySettings
from toy_provider.simulator import TOY_SIMULATOR, ToyUpstream

from proxy.cli.command import Context
from proxy.cli.config_file import ConfigFile
from proxy.cli.main import main
from proxy.config import ConfigError
from proxy.loading import SETTINGS, load, overrides, settings_of
from proxy.providers.registry import PROVIDERS
from proxy.sandbox import SIMULATORS, Sandbox, ScriptError

ENTRIES = (*PROVIDERS, TOY)
TABLE = settings_of(ENTRIES)
Run = Callable[..., Awaitable[tuple[int, str, str]]]


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(simulators=(*SIMULATORS, TOY_SIMULATOR)) as running:
        yield running


@pytest.fixture
async def live(sandbox: Sandbox, tmp_path: Path) -> AsyncIterator[Live]:
    async with Live(sandbox, tmp_path / "config", entries=ENTRIES, openai_routes=True) as running:
        yield running


@pytest.fixture
def toys(sandbox: Sandbox) -> ToyUpstream:
    found = sandbox["p6"]
    assert isinstance(found, ToyUpstream)
    return found


@pytest.fixture
def command(sandbox: Sandbox, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """A command, with the toy among the providers: (status, stdout, stderr)."""
    context = Context({**sandbox.settings(), "PROXY_CONFIG_DIR": str(tmp_path / "config")}, ENTRIES)

    async def run(*arguments: str) -> tuple[int, str, str]:
        status = await asyncio.to_thread(main, arguments, context)
        out, err = capsys.readouterr()
        return status, out, err

    return run


# -- listed, routed, counted


async def test_it_is_listed(live: Live, command: Run) -> None:
    listed = {model["id"]: model["owned_by"] for model in (await live.get("/v1/models")).json["data"]}
    assert listed["toy-large"] == listed["toy-small"] == "p6" and listed["gpt-5.5"] == "p1"
    unknown = await live.post(ask(model="nobody"))
    assert unknown.status == 400 and "p6: toy-large, toy-small" in unknown.error["message"]
    assert "\np6 (toy): toy-large, toy-small\n" in (await command("models"))[1]


async def test_it_is_counted(live: Live, toys: ToyUpstream) -> None:
    counted = [
        (await live.post(ask("hello " * times, model="toy-small"), path="/v1/messages/count_tokens")).json
        for times in (1, 100)
    ]
    assert 0 < counted[0]["input_tokens"] < counted[1]["input_tokens"] and toys.total_requests == 0


async def test_the_names_of_claude_code_lead_to_it_by_a_setting(
    sandbox: Sandbox, toys: ToyUpstream, tmp_path: Path
) -> None:
    found = load({"PROXY_ALIAS_PROVIDER": "toy"}, settings=TABLE)[0].alias_provider
    async with Live(sandbox, tmp_path, entries=ENTRIES, alias_provider=found) as live:
        assert (await live.post(ask(model="sonnet"))).status == 200
    assert found == "p6" and toys.requests[-1].body["model"] == "toy-small"


async def test_the_names_of_claude_code_follow_a_session_that_works_with_it(live: Live, toys: ToyUpstream) -> None:
    for model in ("toy-large", "sonnet"):
        await live.post(ask(model=model), headers={"x-claude-code-session-id": "s"})
    assert [request.body["model"] for request in toys.requests] == ["toy-large", "toy-small"] and live.upstream == 0


# -- served

PROMPT = "use Bash: ls"
BODIES = {path: body_for(path, PROMPT, tools=[function(path)]) for path in BOTH} | {
    "/v1/messages": ask(PROMPT, tools=[tool()])
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", BODIES)
async def test_it_is_served_on_every_route(live: Live, toys: ToyUpstream, path: str, stream: bool) -> None:
    answer = await live.post({**BODIES[path], "model": "toy-large", "stream": stream}, path=path)
    assert answer.status == 200, answer.raw
    assert answer.headers["content-type"].startswith("text/event-stream" if stream else "application/json")
    assert b"Bash" in answer.raw and b"ls" in answer.raw and b"toy-large" in answer.raw
    assert toys.total_requests == 1 and toys.requests[-1].body["model"] == "toy-large"
    assert live.upstream == 0


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_and_its_result_go_through(live: Live, toys: ToyUpstream, stream: bool) -> None:
    first = (await live.post(ask(PROMPT, model="toy-large", tools=[tool()]))).json
    call = next(block for block in first["content"] if block["type"] == "tool_use")
    assert first["stop_reason"] == "tool_use" and call["input"] == {"command": "ls"}
    history = [
        {"role": "user", "content": PROMPT},
        {"role": "assistant", "content": first["content"]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": "a.txt"}]},
    ]
    answer = await live.post(ask(history, model="toy-large", tools=[tool()], stream=stream))
    said = texts(answer.events) if stream else answer.json["content"][-1]["text"]
    assert answer.status == 200 and "a.txt" in said
    assert [message["role"] for message in toys.requests[-1].body["messages"]] == ["user", "assistant", "tool"]


#: `serve` with the toy among its providers.
SERVE = """
import os
from proxy.cli.command import Context
from proxy.cli.main import main
from test_sixth_provider import ENTRIES
raise SystemExit(main(["serve", "--port", "0"], Context(os.environ, ENTRIES)))
"""


async def test_it_is_served_by_the_command(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.write_credentials(tmp_path / "config")
    path = os.pathsep.join((str(ROOT), str(ROOT / "tests")))
    async with Proxy(tmp_path, code=SERVE, PYTHONPATH=path, **sandbox.settings()) as proxy:
        async with proxy.post(ask(model="toy-large")) as response:
            assert response.status == 200, await response.text()
        assert re.search(rb"  p6 toy .* 2 models, such as toy-large\n", proxy.out) and b"p6.baseUrl (env)" in proxy.out


# -- signed in


async def test_it_is_signed_in_and_out(live: Live, command: Run, tmp_path: Path) -> None:
    stored = tmp_path / "config" / "p6" / "auth.json"
    assert stored.exists()  # the sandbox signs in wherever that is needed
    assert (await command("auth", "logout", "p6"))[:2] == (0, "Logged out\n") and not stored.exists()
    assert await command("auth", "status", "toy") == (1, "Not authenticated\n", "")
    refused = await live.post(ask(model="toy-large"))
    assert refused.status == 401 and "auth login p6" in refused.error["message"]
    assert await command("auth", "login", "toy") == (0, f"Auth saved in {stored}\n", "")
    assert await command("auth", "status", "p6") == (0, "Signed in\n", "")
    assert await command("usage", "p6") == (0, "Toys usage:\n  not counted\n", "")
    assert (await live.post(ask(model="toy-large"))).status == 200
    assert "p5 (cursor), p6 (toy)" in (await command("auth", "login", "p9"))[2]


async def test_its_token_is_renewed(live: Live, toys: ToyUpstream) -> None:
    live.sandbox.write_credentials(live.root, lifetime_s=-1)
    assert (await live.post(ask(model="toy-large"))).status == 200 and toys.refreshes == 1


# -- settings


def test_its_settings_have_rows_of_their_own() -> None:
    assert [setting.name for setting in TABLE[: len(SETTINGS)]] == [setting.name for setting in SETTINGS]
    assert [setting.field for setting in TABLE[len(SETTINGS) :]] == [field.name for field in fields(ToySettings)]
    aliases = next(setting for setting in TABLE if setting.field == "alias_provider")
    assert aliases.kind == "p1 or p2 or p3 or p4 or p5 or p6 (codex, kimi, grok, opencode, cursor, toy)"


def test_its_settings_come_from_variables_and_from_the_file(tmp_path: Path) -> None:
    variables = {"PROXY_P6_MAX_TOKENS": "7", "PROXY_CONFIG_DIR": str(tmp_path)}
    content = {"p6": {"maxTokens": 9, "baseUrl": "https://other.example/"}}
    (tmp_path / "config.json").write_text(json.dumps(content))
    file = ConfigFile(Context(variables, ENTRIES))
    assert file.config.section(ToySettings) == ToySettings("https://other.example", 7)
    assert (file.source("p6.maxTokens"), file.source("p6.baseUrl")) == ("PROXY_P6_MAX_TOKENS", "config.json")
    assert overrides(variables, content, TABLE) == ["p6.baseUrl: https://other.example/", "p6.maxTokens (env)"]
    assert load({}, content, TABLE)[0].section(ToySettings).max_tokens == 9
    with pytest.raises(ConfigError, match=r"p6\.maxTokens: expected whole number"):
        load({}, {"p6": {"maxTokens": "many"}}, TABLE)
    with pytest.raises(ConfigError, match="PROXY_P6_BASE_URL"):
        load({"PROXY_P6_BASE_URL": "http://toys.example"}, settings=TABLE)


async def test_its_settings_count_for_the_next_request(live: Live, toys: ToyUpstream) -> None:
    for limit in (5, 50):
        live.config = live.config.changed(ToySettings, max_tokens=limit)
        await live.post(ask(model="toy-large"))
        assert toys.requests[-1].body["max_tokens"] == limit


# -- simulated


async def test_its_simulator_plays_the_faults_of_a_script(live: Live, toys: ToyUpstream) -> None:
    toys.script.extend([{"fault": "overloaded"}])
    assert (await live.post(ask(model="toy-large"))).status == 200
    assert toys.total_requests == 2 and live.sleeps
    toys.script.extend([{"fault": "cut_text"}])
    broken = await live.stream(ask("stream 40 words", model="toy-large"))
    assert kinds(broken.events)[-1] == "error"
    with pytest.raises(ScriptError):
        toys.script.extend([{"fault": "out_of_toys"}])


async def test_a_step_for_it_is_played_by_nobody_else(tmp_path: Path) -> None:
    steps = [{"provider": "p6", "status": 418}]
    async with (
        Sandbox(script=steps, simulators=(*SIMULATORS, TOY_SIMULATOR)) as sandbox,
        Live(sandbox, tmp_path, entries=ENTRIES) as live,
    ):
        answers = [await live.post(ask(model=model)) for model in ("gpt-5.5", "toy-large")]
    assert [answer.status for answer in answers] == [200, 418]
