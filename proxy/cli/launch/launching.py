"""A client of somebody else's, with the proxy that it needs."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from proxy.cli.command import Context
from proxy.cli.launch.background import WATCHES, check_running
from proxy.cli.launch.choosing import UnknownModel
from proxy.cli.launch.client_environment import (
    Served,
    Variable,
    asked_model,
    child_environment,
    claude_code_child,
    codex,
    codex_options,
    without_elsewhere,
)
from proxy.cli.launch.own_settings import claude_model, codex_model, settings_elsewhere
from proxy.cli.launch.setting_out import SetOut, return_to_folder, set_out, warn
from proxy.config import ConfigError


@dataclass(frozen=True, slots=True)
class Client:
    """A program that can be started.

    names      its options that choose a model
    chosen     the model that the user's environment or files choose, None for none
    variables  what it is told in its environment
    options    what it is told before its arguments, given whether the model is ours to choose
    openai     whether it needs the OpenAI-style routes
    """

    program: str
    install: str
    names: tuple[str, ...]
    chosen: Callable[[Mapping[str, str]], str | None]
    variables: Callable[[Served], list[Variable]]
    options: Callable[[Served, bool], list[str]]
    elsewhere: Callable[[dict[str, str]], list[str]]
    openai: bool = False


CLAUDE_CODE = Client(
    "claude",
    "npm install -g @anthropic-ai/claude-code",
    ("--model",),
    claude_model,
    claude_code_child,
    lambda _served, _model: [],
    lambda environment: without_elsewhere(environment) + settings_elsewhere(environment),
)
CODEX_CLI = Client(
    "codex",
    "npm install -g @openai/codex",
    ("--model", "-m"),
    codex_model,
    codex,
    lambda served, model: codex_options(served, model=model),
    lambda _environment: [],
    openai=True,
)


def launch(client: Client, arguments: argparse.Namespace, context: Context) -> int:
    """Becomes the client, where the system can; else its exit status. Raises ConfigError."""
    return_to_folder(context.environment)
    program = shutil.which(client.program, path=context.environment.get("PATH"))
    if program is None:
        raise ConfigError(f"{client.program} is not on the PATH; install it: {client.install}")
    out = set_out(context, sandbox=arguments.proxy_sandbox, openai=client.openai, keep=arguments.proxy_keep)
    served, theirs = _served(client, arguments, out)
    started = out.background.find_or_start(os.getpid())
    if started is None:
        check_running(served.url, served.key, openai=client.openai)
    variables = [one for one in client.variables(served) if not (theirs and one.name == "ANTHROPIC_MODEL")]
    environment, said = child_environment(out.environment, variables, served.url)
    for line in said + client.elsewhere(environment):
        warn(line)
    command = [program, *client.options(served, not theirs), *arguments.rest]
    return _become(command, environment) if WATCHES else _wait_for(command, environment, started)


def _served(client: Client, arguments: argparse.Namespace, out: SetOut) -> tuple[Served, bool]:
    """What the client is to use, and whether its own options or files choose the model. One of those that nobody serves
    is for the proxy to refuse, or, of a file, is not for this proxy."""
    if arguments.proxy_model:
        return out.served(arguments.proxy_model), False
    asked = asked_model(arguments.rest, client.names)
    own = asked or client.chosen(out.environment)
    try:
        return out.served(own), bool(own)
    except UnknownModel:
        return out.served(None), bool(asked)


def _become(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """The terminal, its signals and the exit status are the client's from here on."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and what is ignored stays so
    os.execve(command[0], list(command), dict(environment))  # noqa: S606


def _wait_for(command: Sequence[str], environment: Mapping[str, str], started: subprocess.Popen[bytes] | None) -> int:
    """Windows cannot replace a process: the proxy ends with the client of the launcher that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the client
    try:
        return subprocess.call(list(command), env=dict(environment))  # noqa: S603
    finally:
        if started is not None:
            started.terminate()
