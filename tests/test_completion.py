"""Completion as the shells themselves do it."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from proxy.cli.command import Context
from proxy.cli.launch import completion as command
from proxy.cli.main import COMMANDS, main

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts" / "lib"))

from completion import SCRIPTS, script, shapes

#: what is typed -> words that must be proposed, one that must not
TYPED: list[tuple[str, set[str], str]] = [
    ("model-proxy ", {"serve", "claude", "codex", "env", "auth", "completion"}, "login"),
    ("model-proxy c", {"claude", "codex", "config", "captures", "completion"}, "serve"),
    ("model-proxy auth ", {"login", "status", "logout"}, "p1"),
    ("model-proxy auth login ", {"p1", "codex", "p5", "cursor"}, "login"),
    ("model-proxy auth login --device k", {"kimi"}, "p1"),
    ("model-proxy env --shell ", {"sh", "fish", "powershell"}, "claude"),
    ("model-proxy env --shell fish ", {"claude", "openai"}, "fish"),
    ("model-proxy claude --proxy-model grok-", {"grok-4.6", "grok-4.5"}, "gpt-5.5"),
    ("model-proxy claude --proxy-", {"--proxy-model", "--proxy-sandbox"}, "--help"),
    ("model-proxy serve --no", {"--no-monitor"}, "--until-unused"),
    ("model-proxy sandbox --script fau", {"faults.json"}, "--port"),
]


def bash(text: str, typed: str, folder: Path) -> set[str]:
    code = text + 'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _model_proxy; printf "%s\\n" "${COMPREPLY[@]}"'
    return run(["bash", "--norc", "-c", code, "bash", *typed.split(" ")], folder)


def fish(text: str, typed: str, folder: Path) -> set[str]:
    (folder / "script").write_text(text)
    lines = run(["fish", "--no-config", "-c", "source script; complete -C $argv[1]", typed], folder)
    return {line.partition("\t")[0] for line in lines}


def run(command: list[str], folder: Path) -> set[str]:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=20)
    assert not done.stderr
    return set(done.stdout.splitlines())


SHELLS = {"bash": bash, "fish": fish}


@pytest.mark.parametrize("shell", [name for name in SHELLS if shutil.which(name)])
@pytest.mark.parametrize(("typed", "proposed", "absent"), TYPED)
def test_a_shell_proposes(shell: str, typed: str, proposed: set[str], absent: str, tmp_path: Path) -> None:
    (tmp_path / "faults.json").touch()
    found = SHELLS[shell](script(shell), typed, tmp_path)
    assert found >= proposed and absent not in found


def test_every_command_is_in_every_script_and_hidden_options_in_none() -> None:
    for text in map(script, SCRIPTS):
        assert all(command.name in text for command in COMMANDS) and "until-unused" not in text


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_command_prints_the_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert tuple(SCRIPTS) == command.SHELLS
    assert main(["completion", shell]) == 0 and capsys.readouterr().out == script(shell)


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh")
def test_zsh_reads_the_script(tmp_path: Path) -> None:
    """Its functions are defined and registered; `_arguments` itself only works at a prompt."""
    (tmp_path / "script").write_text(script("zsh"))
    code = "autoload -Uz compinit; compinit -u -D; source ./script; print $_comps[model-proxy]"
    assert run(["zsh", "-f", "-c", code], tmp_path) == {"_model_proxy"}


def test_a_help_text_cannot_end_a_text_of_a_script(tmp_path: Path) -> None:
    def arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
        parser.add_argument("--odd", help='it\'s `id` $(id) [x]: 5%% "y"')

    odd = shapes([replace(COMMANDS[0], arguments=arguments)], Context())
    for shell in (name for name in SHELLS if shutil.which(name)):
        assert "--odd" in SHELLS[shell](SCRIPTS[shell](odd), "model-proxy serve --o", tmp_path)
