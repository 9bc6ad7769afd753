"""What Claude Code must be able to do through the proxy. Each scenario raises AssertionError when it fails."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from e2e.claude_code import ClaudeCode
from e2e.expecting import Scenario, Scenarios, expect, named
from e2e.media_files import red_png
from e2e.pages import run_shell
from e2e.servers import sandboxed_proxy, watched_proxy

SCENARIOS: Scenarios[ClaudeCode] = Scenarios()
scenario = SCENARIOS.add


@scenario
async def plain_answer(claude: ClaudeCode, folder: Path) -> None:
    async with sandboxed_proxy(folder, []) as url:
        done = await claude.run(url, "hello there")
    expect(not done.result["is_error"] and "hello there" in done.text, "a plain answer", done.result)


@scenario
async def what_the_page_says(claude: ClaudeCode, folder: Path) -> None:
    async with sandboxed_proxy(folder, []) as url:
        [done] = await run_shell("claude-code.md", url, folder, {"claude": f"{claude.program} -p 'hello there'"})
    expect(done.status == 0 and "hello there" in done.stdout, "an answer", (done.stdout, done.stderr))


@scenario
async def alias_and_fast_models(claude: ClaudeCode, folder: Path) -> None:
    async with watched_proxy(folder, [], {}) as (url, sandbox):
        for model, upstream in (("claude-opus-4-8", "gpt-5.6-sol"), ("gpt-5.5-fast", "gpt-5.5")):
            done = await claude.run(url, "hello", model=model)
            expect(not done.result["is_error"], f"{model} answers", done.result)
            expect(sandbox.p1.requests[-1].body["model"] == upstream, f"{model} is served by {upstream}")
        expect(sandbox.p1.requests[-1].body.get("service_tier") == "priority", "-fast asks for the priority tier")


@scenario
async def claude_names(claude: ClaudeCode, folder: Path) -> None:
    """The client's own words become a version of a family, of which each release brings a new one."""
    async with watched_proxy(folder, [], {}) as (url, sandbox):
        for word in ("haiku", "sonnet", "opus", "fable", "opusplan"):
            done = await claude.run(url, "hello", model=word)
            expect(not done.result["is_error"] and not done.retries, f"{word} answers at once", done.result)
        expect(len(sandbox.p1.requests) < 15, "no request was repeated", len(sandbox.p1.requests))


@scenario
async def tools_one_after_another(claude: ClaudeCode, folder: Path) -> None:
    """Bash and Read on a lite-lane model; the results come back to the model."""
    (claude.work / "note.txt").write_text("written in the note\n")
    prompt = f"use Bash: echo from-bash\nuse Read: {claude.work / 'note.txt'}"
    async with sandboxed_proxy(folder, []) as url:
        done = await claude.run(url, prompt)
    names = [block["name"] for block in done.blocks("assistant", "tool_use")]
    expect(names == ["Bash", "Read"], "two tool calls", names)
    expect("from-bash" in done.text and "written in the note" in done.text, "both results in the answer", done.text)


@scenario
async def parallel_tool_calls(claude: ClaudeCode, folder: Path) -> None:
    async with sandboxed_proxy(folder, []) as url:
        done = await claude.run(url, "use Bash: echo first and use Bash: echo second", model="gpt-5.5")
    turns = [
        line["message"]["id"]
        for line in done.of("assistant")
        for block in line["message"]["content"]
        if block["type"] == "tool_use"
    ]
    expect(len(turns) == 2 and turns[0] == turns[1], "two calls in one answer", turns)
    expect("first" in done.text and "second" in done.text, "both results in the answer", done.text)


@scenario
async def image_through_read(claude: ClaudeCode, folder: Path) -> None:
    path = claude.work / "red.png"
    path.write_bytes(red_png())
    async with sandboxed_proxy(folder, []) as url:
        done = await claude.run(url, f"use Read: {path}")
    expect("1 image" in done.text and "image/png" in done.text, "the model saw the image", done.text)


@scenario
async def thinking_is_replayed(claude: ClaudeCode, folder: Path) -> None:
    """With effort the model thinks; its encrypted reasoning must come back with the tool result."""
    async with watched_proxy(folder, [], {}) as (url, sandbox):
        done = await claude.run(url, "use Bash: echo thought", "--effort", "high")
        bodies = [received.body for received in sandbox.p1.requests]
    expect("thought" in done.text, "the turn completes", done.result)
    expect(list(done.blocks("assistant", "thinking")), "thinking is shown")
    expect(bodies[-1]["reasoning"]["effort"] == "high", "the effort arrives", bodies[-1]["reasoning"])
    replayed = [item for item in bodies[-1]["input"] if item["type"] == "reasoning"]
    expect(replayed and all(item["encrypted_content"] for item in replayed), "reasoning is replayed", replayed)


@scenario
async def hosted_web_search(claude: ClaudeCode, folder: Path) -> None:
    await _search(claude, folder, "gpt-5.5")


@scenario
async def standalone_web_search(claude: ClaudeCode, folder: Path) -> None:
    searches = await _search(claude, folder, "claude-opus-4-8")
    expect(searches, "the search endpoint was asked")


async def _search(claude: ClaudeCode, folder: Path, model: str) -> int:
    search = json.dumps({"query": "rust news"})
    load = json.dumps({"query": "select:WebSearch", "max_results": 5})  # newer clients hide the tool until asked
    async with watched_proxy(folder, [], {}) as (url, sandbox):
        done = await claude.run(url, f"use ToolSearch: {load}\nuse WebSearch: {search}", model=model)
        searches = len(sandbox.p1.searches)
    results = [str(block.get("content")) for block in done.blocks("user", "tool_result")]
    expect(any("Links: [{" in text for text in results), "the search result has links", results)
    return searches


@scenario
async def a_search_for_a_model_without_one(claude: ClaudeCode, folder: Path) -> None:
    """WebSearch in a conversation with a model whose service does not search: its own provider's service, or another
    subscription's, answers; and the conversation goes on with the links."""
    search, load = json.dumps({"query": "rust news"}), json.dumps({"query": "select:WebSearch", "max_results": 5})
    async with watched_proxy(folder, [], {}) as (url, sandbox):
        for model, searches in (
            ("kimi-for-coding", sandbox.p2.service_requests),
            ("opencode-go/kimi-k2.6", sandbox.p1.searches),
        ):
            done = await claude.run(url, f"use ToolSearch: {load}\nuse WebSearch: {search}", model=model)
            results = [str(block.get("content")) for block in done.blocks("user", "tool_result")]
            links = [text for text in results if 'Links: [{"title"' in text and "docs.example.org/rust-news" in text]
            expect(links and "What docs.example.org says" in links[0], f"{model} gets links and texts", results)
            expect(len(searches) == 1 and not done.result["is_error"], f"one search for {model}", len(searches))


@scenario
async def rate_limit_with_a_short_wait(claude: ClaudeCode, folder: Path) -> None:
    """The proxy waits out a short Retry-After; the client does not notice."""
    async with sandboxed_proxy(folder, [{"fault": "rate_limit", "seconds": 2}]) as url:
        done = await claude.run(url, "hello")
    expect(not done.result["is_error"] and not done.retries, "answered without a retry of the client", done.result)
    expect(done.seconds >= 2, "the wait was kept", done.seconds)


@scenario
async def rate_limit_with_a_long_wait(claude: ClaudeCode, folder: Path) -> None:
    """A long one reaches the client with its Retry-After, so it stops at once and says why."""
    async with watched_proxy(folder, [{"fault": "rate_limit", "seconds": 3600, "times": None}], {}) as (url, sandbox):
        done = await claude.run(url, "hello")
        count = sandbox.p1.total_requests
    expect(done.result["is_error"] and done.result["api_error_status"] == 429, "the client sees 429", done.result)
    expect(count == 1, "exactly one upstream request", count)


@scenario
async def stream_cut_in_the_middle(claude: ClaudeCode, folder: Path) -> None:
    """A cut answer must be an error, and the proxy itself must not ask upstream a second time.

    The older client gives up; the newer one asks again by itself, a few times, and then calls the answer incomplete.
    The proxy's very first answer begins late, since it waits for the token vocabulary: nothing of it may have been seen
    when it is cut, and then a repetition is right. Hence the question before.
    """
    turn = {"match": {"contains": "the turn that is cut"}, "times": None}
    cut = {**turn, "fault": "cut_text", "reset": False, "word_delay_s": 0.02}
    async with watched_proxy(folder, [cut], {}) as (url, sandbox):
        await claude.run(url, "hello")
        done = await claude.run(url, "the turn that is cut", settings={"CLAUDE_CODE_MAX_RETRIES": "0"})
        count = sandbox.p1.total_requests
    asked = (folder / "state" / "model-proxy" / "proxy.log").read_text().count('"msg":"request",')
    expect(done.result["is_error"], "the client reports an error", done.result)
    expect("mid-response" in done.text or "p1:" in done.text, "and says what happened", done.text)
    expect(count == asked, "one upstream request for each of the client's", (count, asked))


@scenario
async def overload_is_retried(claude: ClaudeCode, folder: Path) -> None:
    async with sandboxed_proxy(folder, [{"fault": "server_error"}]) as url:
        done = await claude.run(url, "hello")
    expect(not done.result["is_error"] and not done.retries, "a passing 5xx is not noticed", done.result)


@scenario
async def another_model_serves(claude: ClaudeCode, folder: Path) -> None:
    """The provider of the model is down between two turns with tools; the model that the settings name goes on, and the
    first one again as soon as it can."""
    settings = {"PROXY_FALLBACK": "gpt-5.5=kimi-k3"}
    async with watched_proxy(folder, [], settings) as (url, sandbox):
        await claude.run(url, "run: echo first", model="gpt-5.5")
        before = sandbox.p1.total_requests
        sandbox.p1.script.extend([{"fault": "overloaded", "times": 4}])  # with all repetitions
        done = await claude.run(url, "run: echo second", "--continue", model="gpt-5.5")
        expect(not done.result["is_error"] and "second" in done.text, "the turn is completed", done.result)
        expect(not done.retries and sandbox.p2.requests, "by the other model, at once", done.retries)
        expect(sandbox.p1.total_requests > before, "after the first was asked")
        elsewhere = sandbox.p2.total_requests
        done = await claude.run(url, "hello again", "--continue", model="gpt-5.5")
        expect(not done.result["is_error"] and "hello again" in done.text, "the first one goes on", done.result)
        expect(sandbox.p2.total_requests == elsewhere, "and nobody else is asked")


@scenario
async def context_overflow_compacts(claude: ClaudeCode, folder: Path) -> None:
    """The overflow of a long conversation leads the client to compact it and to go on."""
    overflow = {"match": {"prompt": "the overflowing turn"}, "fault": "failed", "code": "context_length_exceeded"}
    async with watched_proxy(folder, [overflow], {}) as (url, sandbox):
        await claude.run(url, "the first turn")
        for turn in ("the second turn", "the third turn"):
            await claude.run(url, turn, "--continue")
        done = await claude.run(url, "the overflowing turn", "--continue")
        bodies = [received.body for received in sandbox.p1.requests]
    summaries = [body for body in bodies if "Your task is to create a detailed summary" in json.dumps(body["input"])]
    expect(summaries, "the client asked for a summary")
    expect(summaries[0]["reasoning"]["effort"] == "low", "with little effort", summaries[0]["reasoning"])
    expect(done.of("system", "compact_boundary"), "the client compacted", done.lines[-3:])
    expect(not done.result["is_error"] and "the overflowing turn" in done.text, "and completed the turn", done.result)


@scenario
async def missing_sign_in(claude: ClaudeCode, folder: Path) -> None:
    """Without a credential the client must hear at once what to do, not retry for minutes."""
    async with watched_proxy(folder, [], {}) as (url, _sandbox):
        (folder / "config" / "p1" / "auth.json").unlink()
        done = await claude.run(url, "hello", settings={"CLAUDE_CODE_MAX_RETRIES": "10"})
    expect(done.result["is_error"] and "auth login p1" in done.text, "the command is named", done.result)
    expect(done.seconds < 15 and not done.retries, "without retries", done.seconds)


#: What a request goes on from.
PREVIOUS = "previous_response_id"

#: Those of p1, which are tried over its other transport as well: its default is HTTP.
P1_SCENARIOS: Sequence[Scenario[ClaudeCode]] = tuple(SCENARIOS)
#: Of these, what depends on how an upstream is asked and answers. The others are decided before or beside it.
TRANSPORTED: Sequence[Scenario[ClaudeCode]] = (
    tools_one_after_another,
    parallel_tool_calls,
    image_through_read,
    thinking_is_replayed,
    stream_cut_in_the_middle,
    context_overflow_compacts,
)
#: What the older version asks in its own way: its names, tools, thoughts, searches, compaction and repetitions.
DISTINCT: Sequence[Scenario[ClaudeCode]] = (
    *TRANSPORTED,
    claude_names,
    hosted_web_search,
    standalone_web_search,
)

CONTINUED = {"PROXY_P1_TRANSPORT": "auto", "PROXY_P1_PREVIOUS_RESPONSE_ID": "1"}


@scenario
async def continuation_saves_upload(claude: ClaudeCode, folder: Path) -> None:
    """Every round of tools goes on from the answer before it, over the same socket, and sends what is new."""
    prompt = "use Bash: echo one\nuse Bash: echo two\nuse Bash: echo three"
    async with watched_proxy(folder, [], CONTINUED) as (url, sandbox):
        done = await claude.run(url, prompt, "--effort", "high")
        requests = list(sandbox.p1.requests)
    expect(all(word in done.text for word in ("one", "two", "three")), "all results in the answer", done.text)
    first = next(seen for seen in requests if "echo three" in json.dumps(seen.body))
    later = [seen for seen in requests if PREVIOUS in seen.body]
    shown = [(seen.socket, seen.body.get(PREVIOUS), seen.size) for seen in requests]
    expect(len(later) == 3 and all(seen.socket == first.socket for seen in later), "three rounds go on from it", shown)
    expect(all(seen.size * 5 < first.size for seen in later), "and are small", shown)


@scenario
async def server_compaction(claude: ClaudeCode, folder: Path) -> None:
    """The overflow leads to a summary and to the backend's own item, which later turns carry in its place."""
    overflow = {"match": {"prompt": "the overflowing turn"}, "fault": "failed", "code": "context_length_exceeded"}
    async with watched_proxy(folder, [overflow], {**CONTINUED, "PROXY_P1_SERVER_COMPACTION": "1"}) as (url, sandbox):
        await claude.run(url, "the first turn")
        for turn in ("the second turn", "the third turn"):
            await claude.run(url, turn, "--continue")
        done = await claude.run(url, "the overflowing turn", "--continue")
        after = await claude.run(url, "use Bash: echo afterwards", "--continue")
        kinds = [[item["type"] for item in seen.body["input"]] for seen in sandbox.p1.requests]
    expect(done.of("system", "compact_boundary"), "the client compacted", done.lines[-3:])
    expect(not done.result["is_error"] and "the overflowing turn" in done.text, "and completed the turn", done.result)
    expect(sum("compaction_trigger" in items for items in kinds) == 1, "the item was asked for once", kinds)
    expect(not after.result["is_error"] and "afterwards" in after.text, "the next turn works", after.result)
    expect(any("compaction" in items for items in kinds), "and carries the item", kinds)


@scenario
async def a_picture_is_described(claude: ClaudeCode, folder: Path) -> None:
    """Read of a picture on models that are sent none: another model describes it, once."""
    picture = claude.work / "red.png"
    picture.write_bytes(red_png())
    settings = {"PROXY_VISION_MODEL": "gpt-5.6-sol"}
    for number, model in enumerate(("glm-5.2", "minimax-m2.7", "grok-4.5")):
        async with watched_proxy(folder / str(number), [], settings) as (url, sandbox):
            done = await claude.run(url, f"use Read: {picture}", model=model)
            asked = [json.dumps(received.body) for received in sandbox.p1.requests]
            sent = [json.dumps(one.body) for one in (*sandbox.p4.requests, *sandbox.p3.requests)]
        expect(not done.result["is_error"], "the turn completes", done.result)
        described = [body for body in sent if "[Picture, described by gpt-5.6-sol" in body]
        expect(described, f"{model} has the description", sent[-1][-2000:])
        expect(not any("iVBORw0KGgo" in body for body in sent), "and no picture")
        expect(len(asked) == 1 and "iVBORw0KGgo" in asked[0], "the picture was asked about once", len(asked))
        expect("use Read" not in asked[0], "without the conversation")


#: One model of each wire: p2 and p4 over chat completions, p4 over Messages and over Responses.
OTHER_WIRES = ("kimi-for-coding", "opencode-go/kimi-k2.6", "minimax-m3", "opencode-go/gpt-5.6-luna")


def _turns_with(model: str) -> Scenario[ClaudeCode]:
    async def turns(claude: ClaudeCode, folder: Path) -> None:
        """A plain turn, a thinking turn with tools, and an image through the Read tool."""
        (claude.work / "note.txt").write_text("written in the note\n")
        picture = claude.work / "red.png"
        picture.write_bytes(red_png())
        async with sandboxed_proxy(folder, []) as url:
            plain = await claude.run(url, "hello there", model=model)
            prompt = f"use Bash: echo from-bash\nuse Read: {claude.work / 'note.txt'}"
            tools = await claude.run(url, prompt, "--effort", "high", model=model)
            image = await claude.run(url, f"use Read: {picture}", model=model)
        expect(not plain.result["is_error"] and "hello there" in plain.text, "a plain answer", plain.result)
        expect("from-bash" in tools.text and "written in the note" in tools.text, "tool results arrive", tools.result)
        expect(list(tools.blocks("assistant", "thinking")), "thinking is shown", tools.lines[-3:])
        expect("image/png" in image.text, "the model saw the image", image.result)

    return named(turns, f"turns with {model}")


for _model in OTHER_WIRES:
    scenario(_turns_with(_model))
