"""What Claude Code must be able to do on p5, whose runs go on while a tool of the client is at work."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from e2e.claude_code import ClaudeCode, Outcome
from e2e.expecting import Scenarios, expect
from e2e.media_files import red_png
from e2e.process import under_way
from e2e.servers import tuned_proxy, watched_proxy
from e2e.terminal import ESCAPE, until
from proxy.providers.p5_cursor.run.watch import RunTimers
from proxy.sandbox import P5, Sandbox
from proxy.sandbox.p5.runs import Run

MODEL = "cursor"

#: Tried with every version of the client.
CLAUDE_CODE: Scenarios[ClaudeCode] = Scenarios()
#: Tried with the newest one.
NEWEST: Scenarios[ClaudeCode] = Scenarios()
#: The same, and slow.
SLOW: Scenarios[ClaudeCode] = Scenarios()

#: What ends when its client leaves must do so within this.
AT_ONCE_S = 1.0

#: The client says so when Escape was heard.
INTERRUPTED = "Interrupted"

#: Lines that look like what a client puts around a file's text, and an end without a line break.
FILE = "1\tnot the client's\n\n   2→nor this\n\tindented é中\n<system-reminder>mine</system-reminder>\nend"


def asked(p5: P5, words: str = "") -> list[Run]:
    """The runs of a conversation, without what the client asks beside it: that offers no tools."""
    bodies = [(run, str(run.seen.body["prompt"])) for run in p5.runs if run.seen is not None and run.seen.body]
    return [run for run, prompt in bodies if words in prompt and "\n<tools>\n" in prompt]


def execs(run: Run) -> list[str]:
    """What was asked of the client: the outcome of each call, oldest first."""
    return [one.outcome.text for one in run.ledger.asked if one.family == "exec" and one.number != 10]


async def expect_clean(sandbox: Sandbox) -> None:
    """Nothing was done that the service does not want, and nothing is left behind."""
    expect(not sandbox.p5.violations, "nothing that the service does not want", sandbox.p5.violations)
    await until(lambda: all(run.ended_at is not None for run in sandbox.p5.runs), "every run ends", AT_ONCE_S)


def waiting(seconds: int, word: str) -> str:
    """A command that takes so long and prints the word. (The client refuses a long `sleep`.)"""
    return f"timeout {seconds} tail -f /dev/null; echo {word}"


def use(tool: str, **arguments: Any) -> str:
    """A line of a prompt that makes the sandbox's model call the tool."""
    return f"use {tool}: {json.dumps(arguments)}"


def results(done: Outcome) -> Iterator[str]:
    """What the client's tools returned, as the client saw it."""
    return (str(block.get("content")) for block in done.blocks("user", "tool_result"))


@CLAUDE_CODE.add
async def turns(claude: ClaudeCode, folder: Path) -> None:
    """A plain turn; a chain of tools, all of whose results come back into the same run; and the session goes on."""
    note, made = claude.work / "note.txt", claude.work / "made.txt"
    note.write_text("first\n\n\tthird\nend")
    chain = [use("Bash", command="pwd"), use("Read", file_path=str(note))]
    chain += [use("Write", file_path=str(made), content="one\n\ttwo\n"), "use Bash: exit 3"]
    async with watched_proxy(folder, [], {}) as (url, sandbox):
        plain = await claude.run(url, "hello there", model=MODEL)
        tools = await claude.run(url, "\n".join(chain), model=MODEL)
        [run] = asked(sandbox.p5, "use Bash: exit 3")
        later = await claude.run(url, "use Bash: echo and-again", "--continue", model=MODEL)
        await expect_clean(sandbox)
        count = len(sandbox.p5.runs)
    expect(not plain.result["is_error"] and "hello there" in plain.text, "a plain answer", plain.result)
    names = [block["name"] for block in tools.blocks("assistant", "tool_use")]
    expect(names == ["Bash", "Read", "Write", "Bash"], "four calls", names)
    expect(
        execs(run) == [str(claude.work), "first\n\n\tthird\nend", str(made), "Exit code 3"], "in one run", execs(run)
    )
    expect(made.read_text() == "one\n\ttwo\n", "the file is written", made.read_text())
    expect(not tools.result["is_error"] and "Exit code 3" in tools.text, "results in the answer", tools.result)
    expect("and-again" in later.text and count == 3, "the session goes on in a run of its own", (later.result, count))


@CLAUDE_CODE.add
async def a_file_read_and_written_back(claude: ClaudeCode, folder: Path) -> None:
    """The service edits so: it reads the whole file and writes it back. What the client puts around it must be gone."""
    files = {"plain.txt": FILE, "long.txt": "line\n\n" * 700}
    edits = [{"fault": "rewrite", "path": str(claude.work / name), "append": "more\n"} for name in files]
    for name, text in files.items():
        (claude.work / name).write_text(text)
    async with watched_proxy(folder, edits, {}) as (url, sandbox):
        for _ in files:
            done = await claude.run(url, "hello", model=MODEL)
            expect(not done.result["is_error"], "the turn completes", done.result)
        runs = len(sandbox.p5.runs)
        await expect_clean(sandbox)
    for name, text in files.items():
        found = (claude.work / name).read_text()
        expect(found == f"{text}more\n", f"{name} is what it was, and more", found[-200:])
    expect(runs == len(files), "each in one run", runs)


@CLAUDE_CODE.add
async def interrupted(claude: ClaudeCode, folder: Path) -> None:
    """Escape in the middle of an answer ends its run, in the middle of a tool the next prompt does. What is typed while
    a tool is at work reaches the model."""
    slow = {"match": {"prompt": "stream 4000 words"}, "word_delay_s": 0.02, "times": None}
    async with watched_proxy(folder, [slow], {}) as (url, sandbox):

        def of(words: str) -> list[Run]:
            return asked(sandbox.p5, words)

        async with claude.on_terminal(url, "stream 4000 words", model=MODEL) as terminal:
            await terminal.shows("word20")
            terminal.press(ESCAPE)
            [streamed] = of("stream 4000 words")
            await until(lambda: streamed.cancelled, "its run ends", AT_ONCE_S)
            await terminal.shows(INTERRUPTED)
            await terminal.say(f"use Bash: {waiting(60, 'never')}")
            await until(lambda: any(map(_waits, of("echo never"))), "a tool is at work")
            terminal.press(ESCAPE)
            await terminal.shows(INTERRUPTED)
            await terminal.say(f"use Bash: {waiting(2, 'waited')}")
            await until(lambda: of("echo waited"), "the next prompt is asked")
            await until(lambda: of("echo never")[0].ended_at is not None, "the paused run ends", AT_ONCE_S)
            await until(lambda: _waits(of("echo waited")[0]), "a tool is at work")
            await terminal.say("and something else")
            await until(lambda: of("and something else"), "what was typed meanwhile is asked")
            [last] = of("and something else")
            await until(lambda: last.ended_at is not None, "and answered")
        expect(not last.cancelled, "to the end", last.received)
        expect(not sandbox.p5.violations, "nothing that the service does not want", sandbox.p5.violations)


@NEWEST.add
async def a_side_question(claude: ClaudeCode, folder: Path) -> None:
    """`/btw` comes with the session and the tools of the answer that goes on meanwhile, and leaves that alone."""
    slow = {"match": {"prompt": "stream 150 words"}, "word_delay_s": 0.03, "times": None}
    async with watched_proxy(folder, [slow], {}) as (url, sandbox):
        async with claude.on_terminal(url, "stream 150 words", model=MODEL) as terminal:
            await terminal.shows("word20")
            await terminal.say("/btw and what is this?")
            await until(lambda: asked(sandbox.p5, "and what is this?"), "the side question is asked")
            await until(lambda: all(run.ended_at for run in asked(sandbox.p5)), "both are answered")
            await terminal.shows("word150")
        await expect_clean(sandbox)
        cancelled = [run.cancelled for run in asked(sandbox.p5)]
    expect(cancelled == [False, False], "neither ends the other", cancelled)


def _waits(run: Run) -> bool:
    """Whether it waits for a tool of the client."""
    return run.ended_at is None and any(one.family == "exec" and one.number != 10 for one in run.ledger.owed)


@NEWEST.add
async def ten_tools(claude: ClaudeCode, folder: Path) -> None:
    prompt = "\n".join(f"use Bash: echo turn-{number}" for number in range(10))
    async with watched_proxy(folder, [], {}) as (url, sandbox):
        done = await claude.run(url, prompt, model=MODEL)
        [run] = sandbox.p5.runs
        await expect_clean(sandbox)
    expect(execs(run) == [f"turn-{number}" for number in range(10)], "ten results in one run", execs(run))
    expect("turn-9" in done.text and not done.result["is_error"], "and an answer", done.result)


@NEWEST.add
async def a_tool_longer_than_every_silence(claude: ClaudeCode, folder: Path) -> None:
    """While a tool is at work the limits of silence rest, and signs of life go on."""
    timers = RunTimers(
        heartbeat=0.2, exec_heartbeat=0.2, first=1.5, silence=1.0, quiet_end=1.0, progress=1.0, whole=1.5, stalled=1.0
    )
    async with tuned_proxy(folder, [], timers) as (url, sandbox):
        sandbox.p5.options.heartbeat_s = 0.1
        sandbox.p5.options.client_heartbeat_s = 1.0
        done = await claude.run(url, f"use Bash: {waiting(4, 'waited')}", model=MODEL)
        [run] = sandbox.p5.runs
        await expect_clean(sandbox)
    [call] = [one for one in run.ledger.asked if one.family == "exec" and one.number != 10]
    expect(execs(run) == ["waited"] and "waited" in done.text, "the turn completes", (execs(run), done.result))
    expect(run.heartbeats > 10 and call.heartbeats > 10, "signs of life", (run.heartbeats, call.heartbeats))


@NEWEST.add
async def killed(claude: ClaudeCode, folder: Path) -> None:
    """A client that is killed while it is answered leaves nothing behind; killed in a tool, it goes on later."""
    slow = {"match": {"prompt": "stream 4000 words"}, "word_delay_s": 0.02}
    async with watched_proxy(folder, [slow], {}) as (url, sandbox):
        await _killed_when(claude, url, "stream 4000 words", lambda: asked(sandbox.p5))
        [run] = sandbox.p5.runs
        await until(lambda: run.cancelled, "its run ends", AT_ONCE_S)
        await _killed_when(claude, url, f"use Bash: {waiting(60, 'never')}", lambda: any(map(_waits, sandbox.p5.runs)))
        done = await claude.run(url, "hello again", "--continue", model=MODEL)
        await expect_clean(sandbox)
        ways = [(run.cancelled, len(execs(run))) for run in sandbox.p5.runs]
    expect("hello again" in done.text and not done.result["is_error"], "the next prompt works", done.result)
    expect(ways == [(True, 0), (True, 1), (False, 0)], "in a run of its own", ways)


async def _killed_when(claude: ClaudeCode, url: str, prompt: str, ready: Callable[[], Any]) -> None:
    """A little later, so that the client wrote down what it has."""
    command = claude.command(prompt, MODEL)
    async with under_way(command, claude.work, claude.environment(url, {})):
        await until(ready, f"{prompt!r} is under way")
        await asyncio.sleep(0.7)


@NEWEST.add
async def compacted(claude: ClaudeCode, folder: Path) -> None:
    """On command, and because the service says that the conversation is too long."""
    too_long = {"match": {"prompt": "the overflowing turn"}, "fault": "end_error", "code": "resource_exhausted"}
    too_long["error"] = "ERROR_CONVERSATION_TOO_LONG"
    async with watched_proxy(folder, [too_long], {}) as (url, sandbox):
        await claude.run(url, "use Bash: echo first", model=MODEL)
        told = await claude.run(url, "/compact", "--continue", model=MODEL)
        for turn in ("the second turn", "the third turn"):
            await claude.run(url, turn, "--continue", model=MODEL)
        done = await claude.run(url, "the overflowing turn", "--continue", model=MODEL)
        await expect_clean(sandbox)
    expect(told.of("system", "compact_boundary"), "compacted on command", told.lines[-3:])
    expect(done.of("system", "compact_boundary"), "compacted by itself", done.lines[-3:])
    expect("the overflowing turn" in done.text and not done.result["is_error"], "and went on", done.result)


@NEWEST.add
async def a_second_terminal(claude: ClaudeCode, folder: Path) -> None:
    """A session that is opened a second time while a tool of the first is at work: both complete."""
    session = str(uuid.uuid4())
    async with watched_proxy(folder, [], {}) as (url, sandbox):
        await claude.run(url, "hello", "--session-id", session, model=MODEL)
        going_on = ("--resume", session)
        first = asyncio.create_task(claude.run(url, f"use Bash: {waiting(8, 'from-first')}", *going_on, model=MODEL))
        await until(lambda: any(map(_waits, sandbox.p5.runs)), "the first waits for its tool")
        second = await claude.run(url, "use Bash: echo from-second", *going_on, model=MODEL)
        done = await first
        await expect_clean(sandbox)
    expect('returned: "from-second"' in second.text, "the second completes", second.result)
    expect('returned: "from-first"' in done.text, "and the first", done.result)


@NEWEST.add
async def names_and_modes(claude: ClaudeCode, folder: Path) -> None:
    """The modes of the service, and one of its models by name with an effort."""
    names = {"cursor-plan": ("default", 3), "cursor-ask": ("default", 2), "cursor:gpt-5.5": ("gpt-5.5-high", 1)}
    async with watched_proxy(folder, [], {}) as (url, sandbox):
        for name, wanted in names.items():
            done = await claude.run(url, "hello there", "--effort", "high", model=name)
            expect("hello there" in done.text and not done.result["is_error"], f"{name} answers", done.result)
            body = asked(sandbox.p5)[-1].seen.body
            expect((body["model"], body["mode"]) == wanted, f"{name} is {wanted}", (body["model"], body["mode"]))
        await expect_clean(sandbox)


@NEWEST.add
async def other_tools(claude: ClaudeCode, folder: Path) -> None:
    """Tools that the service does not know are called in its text; a subagent has runs of its own."""
    (claude.work / "note.txt").write_text("before\n")
    picture = claude.work / "red.png"
    picture.write_bytes(red_png())
    note = str(claude.work / "note.txt")
    agent = use("Agent", description="d", prompt="use Bash: echo from-agent", subagent_type="general-purpose")
    edit = use("Edit", file_path=note, old_string="before", new_string="after")
    async with watched_proxy(folder, [], {}) as (url, sandbox):
        edited = await claude.run(url, f"{use('Read', file_path=note)}\n{edit}", model=MODEL)
        helped = await claude.run(url, agent, model=MODEL)
        shown = await claude.run(url, use("Read", file_path=str(picture)), model=MODEL)
        refused = await claude.run(url, use("Read", file_path=f"{note}.missing"), model=MODEL)
        await expect_clean(sandbox)
    expect((claude.work / "note.txt").read_text() == "after\n", "the file is edited", list(results(edited)))
    expect("from-agent" in list(results(helped)), "a tool of the subagent runs", list(results(helped)))
    expect("image" in shown.text and not shown.result["is_error"], "a picture does no harm", shown.result)
    expect("does not exist" in refused.text, "a refusal of the client reaches the model", refused.result)


@NEWEST.add
async def a_picture_is_described(claude: ClaudeCode, folder: Path) -> None:
    """The service gets no pictures from tools: another model describes them."""
    picture = claude.work / "red.png"
    picture.write_bytes(red_png())
    async with watched_proxy(folder, [], {"PROXY_VISION_MODEL": "gpt-5.6-sol"}) as (url, sandbox):
        done = await claude.run(url, use("Read", file_path=str(picture)), model=MODEL)
        await expect_clean(sandbox)
        said = [text for run in asked(sandbox.p5) for text in execs(run)]
        described = sandbox.p1.total_requests
    expect(not done.result["is_error"] and described == 1, "the picture was asked about once", done.result)
    expect(any("[Picture, described by gpt-5.6-sol" in text for text in said), "the model reads the description", said)


@SLOW.add
async def a_tool_of_seventy_seconds(claude: ClaudeCode, folder: Path) -> None:
    """With the times as they are; the service wants a sign of life at least every six seconds."""
    async with watched_proxy(folder, [], {}) as (url, sandbox):
        sandbox.p5.options.client_heartbeat_s = sandbox.p5.options.exec_heartbeat_s = 6.0
        done = await claude.run(url, use("Bash", command=waiting(70, "waited"), timeout=100_000), model=MODEL)
        [run] = sandbox.p5.runs
        await expect_clean(sandbox)
    expect(execs(run) == ["waited"] and "waited" in done.text, "the turn completes", (execs(run), done.result))
