"""`env`: the variables of clients, as lines of a shell."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Mapping

from proxy.cli.command import Context, say
from proxy.cli.launch.background import OPENAI_ROUTES
from proxy.cli.launch.client_environment import ELSEWHERE, Variable, claude_code, openai
from proxy.cli.launch.setting_out import set_out
from proxy.cli.launch.shells import SHELLS, Shell, usual_shell


def print_variables(arguments: argparse.Namespace, context: Context) -> int:
    """Raises ConfigError."""
    name = arguments.shell or usual_shell(context.environment, sys.platform)
    out = set_out(context, openai=arguments.client == "openai")
    served = out.served(arguments.model, needs_account=arguments.start)
    if arguments.start:
        out.background.find_or_start(_terminal())
    shell, lines = SHELLS[name], []
    if arguments.client != "openai":
        lines += ["# Claude Code and clients of the Messages API"]
        lines += variable_lines(claude_code(served), shell, out.environment)
    if arguments.client == "openai" or out.config.openai_routes or arguments.start:
        lines += ["# clients of OpenAI's APIs"]
        lines += variable_lines(openai(served), shell, {})
    else:
        lines += [f"# for clients of OpenAI's APIs the proxy needs {OPENAI_ROUTES}=1"]
    lines.append(f"# to use these: {shell.use.format(_typed(arguments, name, context))}")
    say("\n".join(lines))
    return 0


def _typed(arguments: argparse.Namespace, shell: str, context: Context) -> str:
    """The command that prints the same lines."""
    words = ["env", arguments.client] if arguments.client else ["env"]
    if arguments.shell or SHELLS[shell] is not SHELLS["sh"]:
        words += ["--shell", shell]
    if arguments.model:
        words += ["--model", SHELLS[shell].quote(arguments.model)]
    if arguments.start:
        words.append("--start")
    return " ".join([context.program, *words])


def variable_lines(variables: Iterable[Variable], shell: Shell, own: Mapping[str, str]) -> list[str]:
    """Sets variables, and removes those of the user that would lead elsewhere."""
    removed = [shell.unset(name) for name in ELSEWHERE if own.get(name)]
    return [shell.set(one.name, one.value) for one in variables] + removed


def _terminal() -> int:
    """The process whose end is that of the terminal."""
    session = os.getsid(0) if hasattr(os, "getsid") else 0
    return session or os.getppid()  # no id is seen of a session that began outside of a container
