"""`model-proxy claude` and `codex`: the real clients, started with the proxy that they need."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from e2e.claude_code import ClaudeCode
from e2e.codex import Codex
from e2e.expecting import Scenarios, expect
from e2e.npm import Installed
from e2e.ports import free_port
from e2e.process import Finished, run, under_way
from e2e.screen import on_screen
from proxy.sandbox import Sandbox

CLAUDE_CODE: Scenarios[ClaudeCode] = Scenarios()
CODEX: Scenarios[Codex] = Scenarios()

#: How long the proxy waits for another user, and until it has noticed and stopped.
KEEPS_S, ENDS_S = 1, 7.0
_ROOT = Path(__file__).parents[3]


def world_of(client: Installed, folder: Path, sandbox: Sandbox, port: int) -> dict[str, str]:
    """A user who has signed in, and has the client on the PATH under its name."""
    sandbox.write_credentials(folder / "config")
    programs = folder / "bin"
    programs.mkdir()
    (programs / ("codex" if isinstance(client, Codex) else "claude")).symlink_to(client.program)
    return {
        **sandbox.settings(),
        "PATH": f"{programs}:{os.environ.get('PATH', '/usr/bin:/bin')}",
        "HOME": str(client.home),
        "PROXY_CONFIG_DIR": str(folder / "config"),
        "PROXY_PORT": str(port),
        "XDG_STATE_HOME": str(folder / "state"),
        "PYTHONPATH": str(_ROOT),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
    }


def launch_command(client: str, *arguments: str) -> list[str]:
    return [sys.executable, "-P", "-m", "proxy", client, "--proxy-keep", f"{KEEPS_S}", *arguments]


async def _ended(world: Mapping[str, str]) -> bool:
    """Whether the proxy ends by itself, soon enough. It is not asked: that would be a use."""
    mark = f"{world['XDG_STATE_HOME']}/model-proxy/launched/"
    expect(_serving(mark), "one serves after its client")
    try:
        async with asyncio.timeout(ENDS_S):
            while _serving(mark):
                await asyncio.sleep(0.2)
    except TimeoutError:
        return False
    return True


def _serving(mark: str) -> bool:
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it ended just now
            if mark in place.read_text():
                return True
    return False


@CLAUDE_CODE.add
async def two_share_a_proxy_that_ends_after_them(client: ClaudeCode, folder: Path) -> None:
    """Without any setting; files that lead elsewhere do not count. One of them is killed."""
    port = free_port()
    elsewhere = {"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}, "apiKeyHelper": "exit 1"}
    (client.home / ".claude").mkdir(exist_ok=True)
    settings = client.home / ".claude" / "settings.json"
    settings.write_text(json.dumps(elsewhere))
    async with Sandbox() as sandbox:
        world = world_of(client, folder, sandbox, port)
        tools = ("--dangerously-skip-permissions",)
        async with under_way(
            launch_command("claude", "-p", "use Bash: sleep 60", *tools), client.work, world
        ) as killed:
            done = await run(launch_command("claude", "-p", "say it", "--output-format", "json"), client.work, world)
            expect(killed.returncode is None, "the first one is under way", killed.returncode)
            killed.kill()
            await killed.wait()
        _expect_answer(done, world)
        expect(await _ended(world), "the proxy ends after the last of them")
    expect(json.loads(settings.read_text()) == elsewhere, "its settings stay as they were")


def _expect_answer(done: Finished, world: Mapping[str, str]) -> None:
    expect(done.status == 0, "status 0", (done.status, done.stdout, done.stderr))
    result = json.loads(done.stdout)
    expect("sandbox model" in result["result"], "the model's answer", result)
    (model, usage), *_ = result["modelUsage"].items()
    expect((model, usage["contextWindow"]) == ("gpt-5.6-sol", 272_000), "the model with its window", result)
    expect(world["HOME"] in done.stderr and "not used here" in done.stderr, "what does not count is told", done.stderr)


@CLAUDE_CODE.add
async def the_picker_has_the_models_with_their_windows(client: ClaudeCode, folder: Path) -> None:
    """`/model` on a terminal; the chosen one's window is smaller than that of the first."""
    client.know_folder()
    async with Sandbox() as sandbox:
        world = {**world_of(client, folder, sandbox, free_port()), "CLAUDE_CONFIG_DIR": str(client.home / ".claude")}
        command = launch_command("claude", "--proxy-model", "kimi-k3", "--dangerously-skip-permissions")
        async with on_screen(command, client.work, {**world, "LANG": "C.UTF-8"}) as screen:
            await screen.shows("bypass permissions on")
            await screen.command("/model")
            await screen.shows("Kimi Code (p2)")
            await screen.press("Escape")
            await screen.shows("Kept model as")
            await screen.command("/model kimi-k2.6")
            await screen.shows("Set model to kimi-k2.6")
            await screen.command("hello there")
            await screen.shows("I am the sandbox model")
            await screen.command("/context")
            await screen.shows("/262.1k tokens")
            await screen.command("/exit")
            await screen.ends()
            models = {received.body["model"] for received in sandbox.p2.requests}
            expect(models == {"kimi-for-coding"}, "it was asked by its name upstream", models)


@CODEX.add
async def codex_finds_the_proxy_by_options_alone(client: Codex, folder: Path) -> None:
    port = free_port()
    async with Sandbox() as sandbox:
        world = {**world_of(client, folder, sandbox, port), "CODEX_HOME": str(client.home)}
        words = ("codex", "exec", "--json", "--skip-git-repo-check", "say it")
        done = await run(launch_command(*words), client.work, world)
        said = [line["item"].get("text", "") for line in done.lines if line["type"] == "item.completed"]
        expect(done.status == 0 and "sandbox model" in " ".join(said), "an answer", (done.stdout, done.stderr))
        expect(not (client.home / "config.toml").exists(), "no file is written")
        expect(await _ended(world), "the proxy ends with its client")
