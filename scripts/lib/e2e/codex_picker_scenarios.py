"""`model-proxy codex` with the catalogue of models: no warning, edits, the picker, windows. Each scenario raises
AssertionError when it fails."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from e2e.codex import Codex, Turn
from e2e.expecting import Scenario, Scenarios, expect, named
from e2e.launcher_scenarios import launch_command, world_of
from e2e.ports import free_port
from e2e.process import run
from e2e.screen import on_screen
from proxy.sandbox import Sandbox

SCENARIOS: Scenarios[Codex] = Scenarios()

#: Those that get the tools of other models than OpenAI's: of each provider and wire; the last one as p1 has it, too.
TRANSLATED = (
    "kimi-for-coding",
    "grok-4.6",
    "opencode-go/kimi-k2.6",
    "opencode-go/minimax-m3",
    "opencode-go/gpt-5.6-luna",
)
#: And p1's: first one that this Codex does not know, before the service was asked what it offers; also an alias.
MODELS = ("gpt-5.4-mini", "gpt-5.3-codex", "gpt-5.3-codex-spark", "gpt-5.4", "gpt-5.6-sol", "opus", *TRANSLATED)
_EXEC = ("exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
_NO_METADATA = "Model metadata"

PATCH = """*** Begin Patch
*** Update File: greet.py
@@
 def greet():
-    return "hi"
+    return "hello"
*** Add File: notes.txt
+one
*** End Patch
"""


def codex_world(codex: Codex, folder: Path, sandbox: Sandbox) -> dict[str, str]:
    return {**world_of(codex, folder, sandbox, free_port()), "CODEX_HOME": str(codex.home)}


async def launched_turn(codex: Codex, world: Mapping[str, str], model: str, prompt: str, *words: str) -> Turn:
    """A turn. Its prompt comes from a file, since it may be longer than an argument."""
    (file := codex.folder / "prompt").write_text(prompt)
    command = launch_command("codex", "--proxy-model", model, *_EXEC, *words, "-")
    return Turn(
        await run(["sh", "-c", 'file=$1; shift; exec "$@" < "$file"', "sh", str(file), *command], codex.work, world)
    )


def _quiet(done: Turn) -> None:
    said = done.finished.stdout + done.finished.stderr
    expect(done.finished.status == 0 and _NO_METADATA not in said, "it works without a warning", done.finished)


@SCENARIOS.add
async def no_model_lacks_metadata(codex: Codex, folder: Path) -> None:
    async with Sandbox() as sandbox:
        world = codex_world(codex, folder, sandbox)
        for model in MODELS:
            done = await launched_turn(codex, world, model, 'use exec_command: {"cmd": "echo from-$((1 + 1))"}')
            _quiet(done)
            expect("from-2" in done.text, f"{model} ran a command", done.finished)
        given = [*(folder / "state" / "model-proxy" / "pickers").iterdir()]
        modes = {file.name: file.stat().st_mode & 0o777 for file in given}
        expect(set(modes.values()) == {0o600}, "the files are private", modes)


def _edits_with(model: str) -> Scenario[Codex]:
    async def edits(codex: Codex, folder: Path) -> None:
        (codex.work / "greet.py").write_text('def greet():\n    return "hi"\n')
        async with Sandbox() as sandbox:
            prompt = f"use apply_patch: {json.dumps({'input': PATCH})}"
            done = await launched_turn(codex, codex_world(codex, folder, sandbox), model, prompt)
        _quiet(done)
        found = (codex.work / "greet.py").read_text(), (codex.work / "notes.txt").read_text()
        expect(
            found == ('def greet():\n    return "hello"\n', "one\n"), "the files are changed", (found, done.finished)
        )

    return named(edits, f"apply_patch with {model}")


for _model in TRANSLATED:
    SCENARIOS.add(_edits_with(_model))


@SCENARIOS.add
async def it_compacts_at_the_window_of_the_model(codex: Codex, folder: Path) -> None:
    """What fits the window of one model is compacted before it goes on with one that has a smaller window."""
    async with Sandbox() as sandbox:
        world = codex_world(codex, folder, sandbox)
        for model, compacts in (("kimi-k3", False), ("kimi-for-coding", True)):
            first = await launched_turn(codex, world, model, "word " * 190_000)
            begun = len(sandbox.p2.requests)
            later = await launched_turn(codex, world, model, "hello again", "resume", "--last")
            _quiet(first)
            _quiet(later)
            sizes = [len(json.dumps(received.body)) for received in [*sandbox.p2.requests][begun - 1 :]]
            expect(len(sizes) == (3 if compacts else 2), f"{model} compacts: {compacts}", sizes)
            expect((sizes[-1] < sizes[0] / 2) is compacts, "and goes on with less", sizes)


@SCENARIOS.add
async def the_picker_lists_and_switches(codex: Codex, folder: Path) -> None:
    """`/model` on a terminal, and the window of the chosen model in `/status`."""
    async with Sandbox() as sandbox:
        world = {**codex_world(codex, folder, sandbox), "LANG": "C.UTF-8"}
        trusted = f'[projects."{codex.work}"]\ntrust_level = "trusted"\n'
        (codex.home / "config.toml").write_text(trusted)
        command = launch_command("codex", "--proxy-model", "kimi-k3")
        async with on_screen(command, codex.work, {**os.environ, **world}) as screen:
            await screen.shows("kimi-k3 default")
            await screen.command("/model")
            await screen.shows("kimi-k3 (current)")
            await screen.press("Down")
            await screen.shows("grok-composer-2.5-fast")
            await screen.press("Enter")
            await screen.shows("Select Reasoning Level")
            await screen.press("s")
            await screen.shows("Model changed to grok-composer-2.5-fast")
            await screen.command("hello there")
            await screen.shows("I am the sandbox model")
            await screen.command("/status")
            await screen.shows("190K")
            expect(_NO_METADATA not in screen.seen[-1], "no warning", screen.seen[-1])
            expect(sandbox.p3.total_requests == 1, "it asked the other provider", sandbox.p3.total_requests)
