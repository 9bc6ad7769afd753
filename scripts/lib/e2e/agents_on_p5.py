"""Agents at work on p5: its service asks for files and commands, and the proxy makes calls of the agent's own tools.

Every scenario is one task, which has to be one run. Files must arrive byte by byte, whatever tools an agent has.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from e2e.codex import Codex
from e2e.codex_picker_scenarios import PATCH, codex_world, launched_turn
from e2e.cursor_scenarios import MODEL, asked, execs, expect_clean, use, waiting
from e2e.expecting import Scenario, Scenarios, expect, named
from e2e.node_agents import Agent, Cline, Continue, Opencode, Pi, QwenCode
from e2e.npm import Installed
from e2e.servers import LENIENT, watched_proxy
from proxy.sandbox import Sandbox
from proxy.sandbox.p5.asked import ServerRequest
from proxy.sandbox.p5.runs import Run

#: Gives the client a prompt, and returns what it said: client, address of the proxy, prompt.
Ask = Callable[[Any, str, str], Awaitable[str]]

#: What tools for files like to change: tabs, empty lines, lines that look numbered, both ends of lines, and no end.
READ = "\tindented\n\n     1\tnumbered\n  2→too\n00003| and this\r\nCRLF\r\n  blanks  \n<file>é中😀</file>\nend"
#: What shells like to change.
WRITTEN = "say \"hello\" and 'hello' to $HOME, `date`, $(date), %s, !! and \\n\\\\\nEOF\n\tindented\r\n\\\nend"

#: A command that takes longer than Codex waits before it lets the model go on.
LONG_S = 33
#: What the service allows for it; without a word of it a command has half a minute.
LIMIT_MS = 90_000


class Task(NamedTuple):
    """What came of a task: its run, and what the client said."""

    run: Run
    said: str

    @property
    def calls(self) -> list[ServerRequest]:
        """What the service asked of the client, oldest first."""
        return [one for one in self.run.ledger.asked if one.family == "exec" and one.number != 10]

    @property
    def reported(self) -> str:
        """What the client said of results; it may have shown the calls before."""
        return self.said.rpartition("returned")[2]


async def _task(client: Any, folder: Path, ask: Ask, prompt: str, *script: Mapping[str, Any]) -> Task:
    """Gives a client one task. Raises AssertionError: it was more than one run, or something was done wrong."""
    async with watched_proxy(folder, script, LENIENT) as (url, sandbox):
        try:
            said = await ask(client, url, prompt)
        except AssertionError as error:
            raise AssertionError(f"{error}; the service got {[execs(run) for run in sandbox.p5.runs]}") from error
        await expect_clean(sandbox)
        runs = asked(sandbox.p5)
    expect(len(runs) == 1, "all in one run", ([execs(run) for run in runs], said))
    return Task(runs[0], said)


async def _reads(ask: Ask, client: Installed, folder: Path) -> None:
    """A file comes as it is."""
    (client.work / "note.txt").write_bytes(READ.encode())
    done = await _task(client, folder, ask, use("Read", file_path=str(client.work / "note.txt")))
    expect(execs(done.run) == [READ], "the service has the file", [repr(text) for text in execs(done.run)])
    expect("indented" in done.said, "and the model", done.said)


async def _writes(ask: Ask, client: Installed, folder: Path) -> None:
    """A new file, in a new folder, is what was asked for."""
    made = client.work / "made" / "new.txt"
    done = await _task(client, folder, ask, use("Write", file_path=str(made), content=WRITTEN))
    expect([one.outcome.ok for one in done.calls] == [True], "it is written", execs(done.run))
    found = [place.name for place in made.parent.iterdir()]
    expect(found == [made.name], "with nothing beside it", found)
    expect(made.read_bytes() == WRITTEN.encode(), "byte by byte", made.read_bytes())


async def _changes(ask: Ask, client: Installed, folder: Path) -> None:
    """The service edits so: it reads the whole file and writes it back."""
    (file := client.work / "note.txt").write_bytes(READ.encode())
    edit = {"fault": "rewrite", "path": str(file), "append": WRITTEN, "match": {"prompt": "change the file"}}
    done = await _task(client, folder, ask, "change the file", edit)
    expect([one.outcome.ok for one in done.calls] == [True, True], "both are done", execs(done.run))
    expect(file.read_bytes() == (READ + WRITTEN).encode(), "what it was, and more", file.read_bytes())
    expect("change the file" in done.said, "and an answer", done.said)


async def _runs(ask: Ask, client: Installed, folder: Path) -> None:
    """A command that fails, and one that works."""
    # on a busy machine Qwen Code loses what a command printed just before its end
    rest = "sleep 1; " if isinstance(client, QwenCode) else ""
    fails, works = f"echo oops >&2; {rest}exit 3", f"pwd; echo from-$((1 + 1))-agent; {rest}true"
    lines = [use("Bash", command=fails), use("Bash", command=works)]
    done = await _task(client, folder, ask, "\n".join(lines))
    silent = isinstance(client, Opencode)  # it tells no status, and then 0 counts
    expect([one.outcome.ok for one in done.calls] == [silent, True], "one fails", _told(done))
    failed, worked = execs(done.run)
    expect("oops" in failed, "with its words", failed)
    expect(str(client.work) in worked and "from-2-agent" in worked, "where the client works", worked)
    expect("from-2-agent" in done.reported, "and the model knows", done.said)


async def _ten_tools(ask: Ask, client: Installed, folder: Path) -> None:
    files = {client.work / f"file-{number}.txt": f"content {number}\n" for number in range(3)}
    lines = [use("Write", file_path=str(file), content=text) for file, text in files.items()]
    lines += [use("Read", file_path=str(file)) for file in files]
    lines += [use("Bash", command=f"echo turn-$((6 + {number}))") for number in range(4)]
    done = await _task(client, folder, ask, "\n".join(lines))
    expect([one.outcome.ok for one in done.calls] == [True] * 10, "ten results", _told(done))
    found = execs(done.run)
    expect(found[3:6] == [*files.values()], "the files come back", found)
    expect(all(f"turn-{6 + number}" in found[6 + number] for number in range(4)), "so does the rest", found)
    expect("turn-9" in done.reported, "and an answer", done.said)


def _scenarios_of(ask: Ask, wire: str) -> list[Scenario[Any]]:
    return [_with(ask, each, wire) for each in (_reads, _writes, _changes, _runs, _ten_tools)]


def _with(ask: Ask, each: Callable[[Ask, Any, Path], Awaitable[None]], wire: str) -> Scenario[Any]:
    async def scenario(client: Installed, folder: Path) -> None:
        await each(ask, client, folder)

    return named(scenario, f"{each.__name__.lstrip('_')} over {wire}")


def _told(done: Task) -> list[tuple[bool, str]]:
    return [(one.outcome.ok, one.outcome.text) for one in done.calls]


def _over(wire: str) -> Ask:
    async def ask(agent: Agent, url: str, prompt: str) -> str:
        done = await agent.run(url, wire, MODEL, prompt)
        expect(done.status == 0, "the turn completes", done)
        return done.stdout

    return ask


def _on_p5(agent: type[Agent], *wires: str) -> Sequence[Scenario[Any]]:
    """All over each of these wires; over all that it has when none is named."""
    return [each for wire in wires or [name for name, _ in agent.wires] for each in _scenarios_of(_over(wire), wire)]


OPENCODE, QWEN_CODE, CONTINUE, PI = map(_on_p5, (Opencode, QwenCode, Continue, Pi))
CLINE = _on_p5(Cline, "openai-compatible")


async def _ask_codex(codex: Codex, url: str, prompt: str) -> str:
    done = await codex.run(url, prompt, model=MODEL)
    expect(done.finished.status == 0 and not done.failure, "the turn completes", done.finished)
    return done.text


CODEX: Scenarios[Codex] = Scenarios(_scenarios_of(_ask_codex, "responses"))


@CODEX.add
async def a_command_that_goes_on(codex: Codex, folder: Path) -> None:
    """Codex hands over what a command said so far; the service gets the end of it."""
    prompt = use("Bash", command=f"echo begun; {waiting(LONG_S, 'waited')}; exit 4", timeout=LIMIT_MS)
    done = await _task(codex, folder, _ask_codex, prompt)
    expect([one.outcome.ok for one in done.calls] == [False], "it ends", _told(done))
    expect(["begun" in text and "waited" in text for text in execs(done.run)] == [True], "with all words", _told(done))
    expect("waited" in done.reported, "and the model knows", done.said)


@CODEX.add
async def a_conversation_that_goes_on(codex: Codex, folder: Path) -> None:
    """Each turn is a run, whose prompt has the turns before."""
    async with watched_proxy(folder, [], LENIENT) as (url, sandbox):
        first = await codex.run(url, use("Bash", command="echo from-$((1 + 1))-first"), model=MODEL)
        later = await codex.run(url, use("Bash", command="echo and-$((1 + 1))-later"), model=MODEL, resume=True)
        await expect_clean(sandbox)
        runs = asked(sandbox.p5)
    expect("from-2-first" in first.text and "and-2-later" in later.text, "both complete", (first.text, later.finished))
    expect([len(execs(run)) for run in runs] == [1, 1], "in a run each", [execs(run) for run in runs])
    prompt = str(runs[-1].seen.body["prompt"]) if runs[-1].seen is not None and runs[-1].seen.body else ""
    expect("from-2-first" in prompt, "the second knows the first", prompt[-2000:])


@CODEX.add
async def a_patch(codex: Codex, folder: Path) -> None:
    """Codex's own tool for edits, which the service does not know, is called in its text."""
    (codex.work / "greet.py").write_text('def greet():\n    return "hi"\n')
    async with Sandbox() as sandbox:
        prompt = f"write xml apply_patch: {json.dumps({'input': PATCH})}"
        done = await launched_turn(codex, {**codex_world(codex, folder, sandbox), **LENIENT}, MODEL, prompt)
        await expect_clean(sandbox)
    expect(done.finished.status == 0 and not done.failure, "the turn completes", done.finished)
    found = (codex.work / "greet.py").read_text(), (codex.work / "notes.txt").read_text()
    expect(found == ('def greet():\n    return "hello"\n', "one\n"), "the files are changed", (found, done.text))
