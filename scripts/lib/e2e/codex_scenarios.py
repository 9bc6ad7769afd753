"""What Codex CLI must be able to do through the proxy. Each scenario raises AssertionError when it fails."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from e2e.codex import PAGE, Codex
from e2e.expecting import Scenario, Scenarios, expect, named
from e2e.media_files import red_png
from e2e.pages import run_shell
from e2e.servers import sandboxed_proxy, watched_proxy
from proxy.core.sse import dump_json

SCENARIOS: Scenarios[Codex] = Scenarios()
scenario = SCENARIOS.add

#: p1 natively, in the shapes in which Codex speaks to it: one tool for scripts, a tool for each function, and
#: the latter for a name that it does not know.
NATIVE = ("gpt-5.6-sol", "gpt-5.5", "sonnet")

#: One model of each wire: p2 and p4 over chat completions, p4 over Messages and over Responses.
TRANSLATED = ("kimi-for-coding", "opencode-go/kimi-k2.6", "minimax-m3", "opencode-go/muse-spark-1.3-contributor")

#: A model of p4 by the name of one of p1.
KNOWN_BY_NAME = "opencode-go/gpt-5.6-luna"

#: What Codex needs of a second while it waits for nothing.
AT_ONCE_S = 5.0


@scenario
async def what_the_page_says(codex: Codex, folder: Path) -> None:
    tools = {"codex": f"{codex.program} exec --skip-git-repo-check", "model-proxy": f"{sys.executable} -m proxy"}
    catalog = codex.folder / ".codex" / "model-proxy-models.json"
    catalog.parent.mkdir(exist_ok=True)
    async with sandboxed_proxy(folder, []) as url:
        codex.configure(url)
        done, listed = await run_shell(PAGE, url, codex.folder, tools, CODEX_HOME=str(codex.home))
    expect((done.status, listed.status) == (0, 0), "every command succeeds", done.stderr + listed.stderr)
    expect(len(json.loads(catalog.read_text("utf-8"))["models"]) > 10, "the catalogue is a file")
    expect(done.stdout.count('You asked: "hello there"') == 4, "four answers", done.stdout)


def _turns_with(model: str) -> Scenario[Codex]:
    async def turns(codex: Codex, folder: Path) -> None:
        """A plain turn, a command whose output is in the answer, and the conversation goes on with its history."""
        async with sandboxed_proxy(folder, []) as url:
            plain = await codex.run(url, "hello there", model=model)
            tools = await codex.run(url, 'use exec_command: {"cmd": "echo from-$((1 + 1))-codex"}', model=model)
            later = await codex.run(url, "use exec_command: echo and-again", model=model, resume=True)
        expect('"hello there"' in plain.text and plain.usage["output_tokens"] > 0, "a plain answer", plain.finished)
        expect([done["exit_code"] for done in tools.items("command_execution")] == [0], "it ran", tools.finished)
        expect("from-2-codex" in tools.text, "the output is in the answer", tools.finished)
        expect("and-again" in later.text, "the conversation goes on", later.finished)
        expect({plain.finished.status, tools.finished.status, later.finished.status} == {0}, "without an error")

    return named(turns, f"turns with {model}")


for _model in NATIVE:
    scenario(_turns_with(_model))

#: Those of p1; natively it is spoken to over HTTP whatever its transport.
P1_SCENARIOS: Sequence[Scenario[Codex]] = tuple(SCENARIOS[1:])

for _model in TRANSLATED:
    scenario(_turns_with(_model))


def _tools_with(model: str) -> Scenario[Codex]:
    async def tools(codex: Codex, folder: Path) -> None:
        """Two calls in one answer, a tool of a namespace, a picture as the result of a tool, and thinking."""
        picture = codex.work / "red.png"
        picture.write_bytes(red_png())
        effort = ("--config", "model_reasoning_effort=high")
        async with sandboxed_proxy(folder, []) as url:
            two = await codex.run(url, "use exec_command: echo one and use exec_command: echo two", model=model)
            close = await codex.run(url, "use multi_agent_v1__close_agent: nobody", *effort, model=model)
            image = await codex.run(url, f"use view_image: {picture}", model=model)
        expect(len(two.items("command_execution")) == 2, "both run", two.finished)
        expect("one" in two.text and "two" in two.text, "both results are in the answer", two.finished)
        expect("close_agent returned" in close.text, "the tool of the namespace is called", close.finished)
        expect("unsupported call" not in close.text, "and Codex knows it", close.text)
        expect(close.items("reasoning"), "thinking is shown", close.finished)
        expect("1 image" in image.text and "image/png" in image.text, "the model saw the picture", image.finished)

    return named(tools, f"tools with {model}")


for _model in TRANSLATED:
    scenario(_tools_with(_model))


@scenario
async def thinking_is_replayed(codex: Codex, folder: Path) -> None:
    """Natively the body passes as it is: Codex's own lane, its tools, and the sealed reasoning with the tool result."""
    async with watched_proxy(folder, [], {}) as (url, sandbox):
        done = await codex.run(url, "use exec_command: echo thought", "--config", "model_reasoning_effort=high")
        bodies = [received.body for received in sandbox.p1.requests]
    expect("thought" in done.text and len(bodies) == 2, "the turn completes", done.finished)
    expect(bodies[0]["input"][0]["type"] == "additional_tools", "the tools stand in the input")
    expect(bodies[-1]["reasoning"]["effort"] == "high", "the effort arrives", bodies[-1]["reasoning"])
    replayed = [item for item in bodies[-1]["input"] if item["type"] == "reasoning"]
    expect(replayed and all(item["encrypted_content"] for item in replayed), "reasoning is replayed", replayed)


@scenario
async def hosted_web_search(codex: Codex, folder: Path) -> None:
    async with sandboxed_proxy(folder, []) as url:
        done = await codex.run(url, "Perform a web search for the query: rust news", model="gpt-5.5")
    expect([item["query"] for item in done.items("web_search")] == ["rust news"], "it searched", done.finished)


@scenario
async def a_search_for_a_model_without_one(codex: Codex, folder: Path) -> None:
    """The model calls the search, the proxy makes it, and the model goes on in the same answer; then beside a command,
    whose turn knows what was found."""
    query = 'use web_search: {"query": "rust news"}'
    async with watched_proxy(folder, [], {}) as (url, sandbox):
        for model, upstream in (("kimi-for-coding", sandbox.p2), ("opencode-go/kimi-k2.6", sandbox.p4)):
            done = await codex.run(url, query, model=model)
            expect([item["query"] for item in done.items("web_search")] == ["rust news"], "it searched", done.finished)
            expect("(https://docs.example.org/rust-news)" in done.text, "and goes on with the results", done.text)
            expect(upstream.total_requests == 2, "the model was asked twice", upstream.total_requests)
            upstream.total_requests = 0
        both = await codex.run(
            url, f"{query} and use exec_command: echo from-$((1 + 1))-codex", model="kimi-for-coding"
        )
        expect("from-2-codex" in both.text and both.items("web_search"), "beside a command", both.finished)
        expect(len(sandbox.p2.service_requests) == 2 and len(sandbox.p1.searches) == 1, "the services were asked")
        both = await codex.run(url, f"{query} and use exec_command: echo a-$((1 + 1))-b", model="opencode-go/glm-5.2")
        expect("a-2-b" in both.text and both.items("web_search"), "p4 beside a command", both.finished)
        again = await codex.run(url, "and now?", model="gpt-5.5", resume=True)
        expect("and now?" in again.text and not again.failure, "p1 takes the ids of the calls", again.finished)


@scenario
async def an_answer_of_a_schema(codex: Codex, folder: Path) -> None:
    schema = codex.folder / "schema.json"
    schema.write_text(
        '{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}'
    )
    async with sandboxed_proxy(folder, []) as url:
        done = await codex.run(url, "how many?", "--output-schema", str(schema))
    expect(done.text == '{"n": 1}', "JSON of the schema", done.finished)


@scenario
async def no_sockets(codex: Codex, folder: Path) -> None:
    """A Codex that is told to try a WebSocket first goes on over HTTP at once."""
    socket = ("--config", "model_providers.model-proxy.supports_websockets=true")
    async with sandboxed_proxy(folder, []) as url:
        for model in ("gpt-5.6-sol", "kimi-for-coding"):
            done = await codex.run(url, "hello there", *socket, model=model)
            expect('"hello there"' in done.text, "the turn completes", done.finished)
            expect("failed to connect to Responses WebSocket" in done.finished.stderr, "it tried", done.finished.stderr)
            expect(done.finished.seconds < AT_ONCE_S, "without waiting", done.finished.seconds)


@scenario
async def stream_cut_in_the_middle(codex: Codex, folder: Path) -> None:
    """A cut answer is told as a failure that Codex repeats by itself; the proxy does not repeat what was seen."""
    for model, upstream in (("gpt-5.5", "p1"), ("kimi-for-coding", "p2")):
        cut = {"provider": upstream, "fault": "cut_text", "reset": False, "word_delay_s": 0.02}
        (place := folder / upstream).mkdir()
        async with watched_proxy(place, [cut], {}) as (url, sandbox):
            done = await codex.run(url, "hello there", model=model)
            count = getattr(sandbox, upstream).total_requests
        expect('"hello there"' in done.text and done.finished.status == 0, "the turn completes", done.finished)
        expect(count == 2, "with one repetition", count)


@scenario
async def call_cut_by_the_token_limit(codex: Codex, folder: Path) -> None:
    """Codex says that the answer is incomplete, and repeats the cut call ever after: the conversation must go on."""
    cut = {"provider": "p2", "fault": "truncated_arguments"}
    async with sandboxed_proxy(folder, [cut]) as url:
        broken = await codex.run(url, "use exec_command: ls", model="kimi-for-coding")
        later = await codex.run(url, "hello again", model="kimi-for-coding", resume=True)
    expect("max_output_tokens" in broken.failure, "the limit is told", broken.finished)
    expect('"hello again"' in later.text and later.finished.status == 0, "the conversation goes on", later.finished)


@scenario
async def models_change(codex: Codex, folder: Path) -> None:
    """What the page says of a changed provider."""
    known = ("gpt-5.6-sol", "kimi-for-coding", "opencode-go/gpt-5.6-luna", "gpt-5.6-sol", "minimax-m3")
    chain = ("kimi-for-coding", "minimax-m3", "gpt-5.5", "opencode-go/kimi-k2.6", "sonnet", "kimi-for-coding", *known)
    async with sandboxed_proxy(folder, []) as url:
        for number, model in enumerate(chain):
            done = await codex.run(url, _running(model, f"turn-{number}"), model=model, resume=number > 0)
            expect(f"turn-{number}" in done.text and done.finished.status == 0, f"{model} goes on", done.finished)


def _running(model: str, word: str) -> str:
    """A prompt that makes Codex run a command. Of the name of p4's model it thinks that scripts run commands there."""
    if model != KNOWN_BY_NAME:
        return f'use exec_command: {{"cmd": "echo {word}"}}'
    script = f'const done = await tools.exec_command({{cmd: "echo {word}"}}); text(done.output);'
    return f"use functions__exec: {dump_json({'input': script})}"


@scenario
async def a_model_that_codex_knows_by_name(codex: Codex, folder: Path) -> None:
    """It stands behind p4 here: its tools come inside the input, one of them takes a script."""
    async with watched_proxy(folder, [], {}) as (url, sandbox):
        done = await codex.run(url, _running(KNOWN_BY_NAME, "from-luna"), model=KNOWN_BY_NAME)
        items = sandbox.p4.requests[-1].body["input"]
    expect("from-luna" in done.text and done.finished.status == 0, "the script ran", done.finished)
    expect([item["exit_code"] for item in done.items("command_execution")] == [0], "in Codex", done.finished)
    sealed = [item for item in items if item["type"] == "reasoning" and item["encrypted_content"]]
    expect(len(sealed) == 1, "the reasoning came back", items)


@scenario
async def context_overflow(codex: Codex, folder: Path) -> None:
    """Codex stops and says so, without asking again."""
    overflow = {"fault": "failed", "code": "context_length_exceeded", "times": None}
    async with watched_proxy(folder, [overflow], {}) as (url, sandbox):
        done = await codex.run(url, "hello there")
        count = sandbox.p1.total_requests
    expect("context window" in done.failure and count == 1, "the reason is told", (done.failure, count))


@scenario
async def missing_sign_in(codex: Codex, folder: Path) -> None:
    """Without a credential the user reads what to do. (Left alone, Codex asks five times more before it gives up.)"""
    once = ("--config", "model_providers.model-proxy.stream_max_retries=0")
    async with watched_proxy(folder, [], {}) as (url, _sandbox):
        for label, model in (("p1", "gpt-5.6-sol"), ("p2", "kimi-for-coding")):
            (folder / "config" / label / "auth.json").unlink()
            done = await codex.run(url, "hello", *once, model=model)
            expect(f"auth login {label}" in done.failure, "the command is named", done.finished)
            expect(done.finished.seconds < AT_ONCE_S, "at once", done.finished.seconds)
