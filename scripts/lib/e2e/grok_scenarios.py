"""What the clients must be able to do on p3, whose images and searches follow settings of their own."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import aiohttp

from e2e.claude_code import ClaudeCode
from e2e.codex import Codex
from e2e.expecting import Scenario, Scenarios, expect, named
from e2e.media_files import red_png
from e2e.process import Finished, run
from e2e.sdk_scenarios import Python
from e2e.servers import sandboxed_proxy, watched_proxy
from proxy.sandbox import Sandbox

#: One with the full scale of efforts, one without.
MODELS = ("grok-4.6", "grok-4.5")

CLAUDE_CODE: Scenarios[ClaudeCode] = Scenarios()
CODEX: Scenarios[Codex] = Scenarios()
PYTHON: Scenarios[Python] = Scenarios()


def _turns_with(model: str) -> Scenario[ClaudeCode]:
    async def turns(claude: ClaudeCode, folder: Path) -> None:
        """A plain turn, a thinking turn with tools one after another, two calls in one answer."""
        (claude.work / "note.txt").write_text("written in the note\n")
        async with watched_proxy(folder, [], {}) as (url, sandbox):
            plain = await claude.run(url, "hello there", model=model)
            prompt = f"use Bash: echo from-bash\nuse Read: {claude.work / 'note.txt'}"
            tools = await claude.run(url, prompt, "--effort", "max", model=model)
            efforts = {seen.body.get("reasoning", {}).get("effort") for seen in sandbox.p3.requests}
            both = await claude.run(url, "use Bash: echo first and use Bash: echo second", model=model)
        expect(not plain.result["is_error"] and "hello there" in plain.text, "a plain answer", plain.result)
        expect("from-bash" in tools.text and "written in the note" in tools.text, "tool results arrive", tools.result)
        expect(list(tools.blocks("assistant", "thinking")), "thinking is shown", tools.lines[-3:])
        expect(("xhigh" if model == "grok-4.6" else "high") in efforts, "as hard as the model can", efforts)
        expect("first" in both.text and "second" in both.text, "both results in the answer", both.result)

    return named(turns, f"turns with {model}")


for _model in MODELS:
    CLAUDE_CODE.add(_turns_with(_model))


def _image_with(setting: Mapping[str, str], seen: bool) -> Scenario[ClaudeCode]:
    async def image(claude: ClaudeCode, folder: Path) -> None:
        """An image through the Read tool stays in the history: the turn after it must work as well."""
        picture = claude.work / "red.png"
        picture.write_bytes(red_png(32))
        async with watched_proxy(folder, [], setting) as (url, sandbox):
            first = await claude.run(url, f"use Read: {picture}", model="grok-4.6")
            later = await claude.run(url, "hello again", "--continue", model="grok-4.6")
            sent = json.dumps(sandbox.p3.requests[-1].body)
        expect(not first.result["is_error"] and not later.result["is_error"], "both turns work", later.result)
        expect(("1 image (1 image/png)" in first.text) is seen, "whether the model saw it", first.text)
        expect(("[image omitted: image/png]" in first.text) is not seen, "or a note", first.text)
        expect(("input_image" in sent) is seen, "in the later turn too", sent[-600:])

    return named(image, f"image {'seen' if seen else 'omitted'}")


CLAUDE_CODE.add(_image_with({}, seen=False))
CLAUDE_CODE.add(_image_with({"PROXY_P3_TOOL_IMAGE": "inline"}, seen=True))


def _search_told_as(form: str, shown: str) -> Scenario[ClaudeCode]:
    async def search(claude: ClaudeCode, folder: Path) -> None:
        """Claude Code's WebSearch reports where the answer comes from, and the session goes on with what it got."""
        load = json.dumps({"query": "select:WebSearch", "max_results": 5})  # newer clients hide the tool until asked
        prompt = f"use ToolSearch: {load}\nuse WebSearch: {json.dumps({'query': 'rust news'})}"
        async with watched_proxy(folder, [], {"PROXY_P3_SEARCH_BLOCKS": form}) as (url, _sandbox):
            done = await claude.run(url, prompt, model="grok-4.6")
            later = await claude.run(url, "hello again", "--continue", model="grok-4.6")
        results = [str(block.get("content")) for block in done.blocks("user", "tool_result")]
        expect(any(shown in text and "https://" in text for text in results), "the sources are shown", results)
        expect(not later.result["is_error"] and "hello again" in later.text, "the session goes on", later.result)

    return named(search, f"web search told as {form}")


CLAUDE_CODE.add(_search_told_as("text", "[web search: rust news]"))
CLAUDE_CODE.add(_search_told_as("native", "Links: [{"))


@CLAUDE_CODE.add
async def a_model_that_is_not_listed(claude: ClaudeCode, folder: Path) -> None:
    """It reaches the service; what that says of it reaches the user."""
    async with watched_proxy(folder, [], {}) as (url, sandbox):
        done = await claude.run(url, "hello", model="grok-99")
        expect(sandbox.p3.requests[-1].body["model"] == "grok-99", "it is asked for")
    expect(done.result["is_error"] and "grok-99" in done.text, "the refusal is told", done.result)


@CLAUDE_CODE.add
async def models_change(claude: ClaudeCode, folder: Path) -> None:
    """A conversation with tools and thinking goes from p1 to p3, to p2 and back: nobody refuses what another left."""
    chain = ("gpt-5.6-sol", "grok-4.6", "kimi-for-coding", "gpt-5.5", "grok-4.5", "opencode-go/gpt-5.6-luna")
    async with sandboxed_proxy(folder, []) as url:
        for number, model in enumerate(chain):
            going_on = ("--continue",) if number else ()
            done = await claude.run(url, f"use Bash: echo turn-{number}", "--effort", "high", *going_on, model=model)
            expect(not done.result["is_error"] and f"turn-{number}" in done.text, f"{model} goes on", done.result)


@CLAUDE_CODE.add
async def a_refused_account(claude: ClaudeCode, folder: Path) -> None:
    """A quota that is used up is told at once, and asked for once."""
    spent = {"provider": "p3", "fault": "usage_limit", "times": None}
    async with watched_proxy(folder, [spent], {}) as (url, sandbox):
        done = await claude.run(url, "hello", model="grok-4.6")
        count = sandbox.p3.total_requests
    expect(done.result["is_error"] and "p3" in done.text, "the provider is named", done.text)
    expect(count == 1 and not done.retries, "without retries", (count, done.retries))


@CODEX.add
async def turns(codex: Codex, folder: Path) -> None:
    """A command whose output is in the answer, a tool of a namespace, and the conversation goes on."""
    async with sandboxed_proxy(folder, []) as url:
        tools = await codex.run(url, 'use exec_command: {"cmd": "echo from-$((1 + 1))-codex"}', model="grok-4.6")
        later = await codex.run(url, "use exec_command: echo and-again", model="grok-4.6", resume=True)
        effort = ("--config", "model_reasoning_effort=high")
        close = await codex.run(url, "use multi_agent_v1__close_agent: nobody", *effort, model="grok-4.5")
    expect([done["exit_code"] for done in tools.items("command_execution")] == [0], "it ran", tools.finished)
    expect("from-2-codex" in tools.text and "and-again" in later.text, "the output is in the answers", later.finished)
    expect("close_agent returned" in close.text and close.items("reasoning"), "namespace and thinking", close.finished)


@CODEX.add
async def web_search(codex: Codex, folder: Path) -> None:
    async with sandboxed_proxy(folder, []) as url:
        done = await codex.run(url, "Perform a web search for the query: rust news", model="grok-4.6")
        later = await codex.run(url, "hello again", model="grok-4.6", resume=True)
    expect([item["query"] for item in done.items("web_search")] == ["rust news"], "it searched", done.finished)
    expect("https://" in done.text, "its sources are in the answer", done.text)
    expect('"hello again"' in later.text, "the conversation goes on", later.finished)


#: What the sign-in service says to the first polls, how the sign-in ends, and in which words.
DEVICE_LOGINS: Sequence[tuple[tuple[str, ...], int, str]] = (
    (("authorization_pending", "slow_down"), 0, "Auth saved in"),
    (("authorization_pending", "access_denied"), 2, "refused"),
    (("expired_token",), 2, "expired"),
)


@PYTHON.add
async def device_login(python: Python, folder: Path) -> None:
    """A sign-in with a code through the command line: pending, told to slow down, refused, expired."""
    for number, (answers, status, words) in enumerate(DEVICE_LOGINS):
        async with Sandbox() as sandbox:
            sandbox.p3.options.device_answers = answers
            home = {**sandbox.settings(), "PROXY_CONFIG_DIR": str(folder / f"login-{number}")}
            done = await _auth(python, home, "login", "p3", "--device")
            known = await _auth(python, home, "status", "p3")
            gone = [await _auth(python, home, action, "p3") for action in ("logout", "status")]
        expect((done.status, known.status) == (status, int(status > 0)), f"{answers} ends so", (done, known))
        expect(words in done.stdout + done.stderr, f"{answers} is told", done)
        expect([each.status for each in gone] == [0, 1], "signed out", gone)


async def _auth(python: Python, home: Mapping[str, str], *arguments: str) -> Finished:
    python.folder.mkdir(parents=True, exist_ok=True)
    command = (str(python.program), "-m", "proxy", "auth", *arguments)
    return await run(command, python.folder, {**os.environ, **home})


@PYTHON.add
async def one_renewal_for_twenty_requests(_python: Python, folder: Path) -> None:
    """Requests that come at one moment with an expired token renew it once."""
    body = {"model": "grok-4.6", "max_tokens": 50, "messages": [{"role": "user", "content": "hello"}]}
    async with watched_proxy(folder, [], {}) as (url, sandbox), aiohttp.ClientSession() as http:
        sandbox.write_credentials(folder / "config", lifetime_s=-1)

        async def ask() -> int:
            async with http.post(f"{url}/v1/messages", json=body) as answer:
                return answer.status

        statuses = await asyncio.gather(*(ask() for _ in range(20)))
        renewals = sandbox.p3.issuer.refresh_requests
    expect(statuses == [200] * 20 and renewals == 1, "all are answered after one renewal", (statuses, renewals))
