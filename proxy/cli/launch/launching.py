"""`claude`, `codex` and `env`: a client with the proxy that it needs, or the variables for other clients.

Files of a client are read when they affect a launch, and never written.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from proxy.cli.account import SignIn, cures, sign_ins, usable_labels
from proxy.cli.banner import reachable
from proxy.cli.command import TYPED_FOLDER, TYPED_VARIABLE, Context, say
from proxy.cli.config_file import ConfigFile
from proxy.cli.launch.background import OPENAI_ROUTES, WATCHES, Background, answers, check_running, free_port
from proxy.cli.launch.claude_picker import PICKER, picker_settings
from proxy.cli.launch.client_environment import (
    ELSEWHERE,
    Served,
    UnknownModel,
    Variable,
    asked_option,
    child_environment,
    claude_code,
    claude_code_child,
    codex,
    codex_options,
    first_entry,
    openai,
    served_model,
    without_elsewhere,
)
from proxy.cli.launch.codex_models import SETTING, CatalogUnfit, catalog_setting, give_catalog, users_catalog
from proxy.cli.launch.given_files import given_file
from proxy.cli.launch.own_files import claude_files, codex_file, merged
from proxy.cli.launch.shells import SHELLS, Shell, usual_shell
from proxy.cli.launch.usable_models import UsableModel, usable_models, with_chosen
from proxy.cli.launch.users import UNUSED_S
from proxy.cli.models import offering
from proxy.cli.paths import state_root
from proxy.config import Config, ConfigError
from proxy.providers.entry import Entry


def warn(line: str) -> None:
    print(f"model-proxy: {line}", file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True)
class SetOut:
    """The starting point of a launch. `environment`: the user's, without variables for this program only."""

    context: Context
    config: Config
    background: Background
    environment: Mapping[str, str]

    def served(self, model: str | None, *, needs_account: bool = True) -> Served:
        """The settings of a client. Raises ConfigError when no account is signed in, and no proxy answers that might
        know one."""
        known = self._sign_ins()
        usable = usable_labels(known)
        if needs_account and not usable and not self.background.sandbox:
            text = "\n".join(cures(known, self.context.program))
            if not answers(self.background.url):
                raise ConfigError(text)
            warn(text)
        providers = self._providers()
        first = first_entry(providers, self.config, usable or {self.config.alias_provider})
        return served_model(self.background.url, self.config, providers, first, model)

    def models(self, *, any_tools: bool = False) -> list[UsableModel]:
        """The models of the providers that the user is signed in to. Where the proxy alone may know an account, and in
        the sandbox, those of all providers."""
        known = () if self.background.sandbox else self._sign_ins()
        return usable_models(self._providers(), self.config, usable_labels(known), any_tools=any_tools)

    def _providers(self) -> tuple[Entry, ...]:
        return self.context.providers if self.background.sandbox else offering(self.context)

    def _sign_ins(self) -> list[SignIn]:
        return sign_ins(self.context, ConfigFile(self.context, new=True))


def set_out(context: Context, *, sandbox: bool = False, openai: bool = False, keep: float | None = None) -> SetOut:
    """Prepares a launch. Raises ConfigError.

    openai  whether the OpenAI-style routes are needed; else a proxy that is started has them unless set otherwise
    keep    seconds that a started proxy stays after its last use; None for the default
    """
    # The rest blocks the loop, whose own handler would only note Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    file = ConfigFile(context)
    config, environment = file.config, context.environment
    port = free_port() if sandbox or not config.port else config.port
    given = {} if file.source("p1.responsesApi") and not openai else {OPENAI_ROUTES: "1"}
    url = f"http://127.0.0.1:{port}" if sandbox else reachable(config.bind_address, port)
    started = {**environment, **given}
    alone = sandbox or not config.port
    stays = UNUSED_S if keep is None else keep
    background = Background(url, port, state_root(environment), started, sandbox, alone, stays)
    own = {name: value for name, value in environment.items() if name not in (TYPED_FOLDER, TYPED_VARIABLE)}
    return SetOut(context, config, background, own)


def return_to_folder(environment: Mapping[str, str]) -> None:
    """Changes back to the user's folder, which the start script leaves."""
    if folder := environment.get(TYPED_FOLDER):
        os.chdir(folder)


def claude_model(environment: Mapping[str, str]) -> str | None:
    """The model that the user's variables or settings choose for Claude Code."""
    named = (file.content.get("model") for file in reversed(claude_files(environment)))
    return environment.get("ANTHROPIC_MODEL") or next((one for one in named if isinstance(one, str) and one), None)


def settings_elsewhere(environment: Mapping[str, str]) -> list[str]:
    """Warnings about settings that would direct Claude Code elsewhere, and that are overridden."""
    said = []
    for file in reversed(claude_files(environment)):
        variables = file.content.get("env")
        names = [name for name in _PLACES if isinstance(variables, dict) and variables.get(name)]
        names += [name for name in ("apiKeyHelper",) if file.content.get(name)]
        if names:
            said.append(f"{', '.join(names)} of {file.path}: not used here")
    return said


_PLACES = ("ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY")


def codex_model(environment: Mapping[str, str]) -> str | None:
    """The model that the user's file chooses for Codex."""
    file = codex_file(environment)
    model = None if file is None else file.content.get("model")
    return model if isinstance(model, str) and model else None


@dataclass(frozen=True, slots=True)
class ClientStart:
    """What a client is started with.

    program    where the client is
    arguments  the user's, for the client
    model      whether we choose the model
    """

    out: SetOut
    served: Served
    program: str
    arguments: Sequence[str]
    model: bool

    @property
    def folder(self) -> Path:
        """Where the files are that it is given."""
        return self.out.background.state / "pickers"


def _claude_options(start: ClientStart, environment: Mapping[str, str]) -> list[str]:
    """The settings of the picker. Of several options `--settings` the client reads the last, so one of the user stands
    alone."""
    if _asks_settings(start.arguments):
        warn(f"your --settings are used, so the picker (/model) has no models of ours: put {PICKER} into them")
        return []
    settings = picker_settings(start.out.models(), start.served.window, merged(claude_files(environment)))
    try:
        file = given_file(start.folder, "claude-settings", json.dumps(settings, indent=2) + "\n")
    except OSError as error:
        warn(f"the picker (/model) has no models of ours: {error.filename or start.folder}: {error.strerror or error}")
        return []
    return ["--settings", str(file)]


def _asks_settings(arguments: Sequence[str]) -> bool:
    return asked_option(arguments, ("--settings",)) is not None


def _codex_options(start: ClientStart, environment: Mapping[str, str]) -> list[str]:
    """The provider and the catalogue of models. A Codex that cannot read that still gets the window of its model."""
    if theirs := users_catalog(environment):
        warn(f"{SETTING} of {theirs} is used, so the picker (/model) has its models only: remove it there for all")
        return codex_options(start.served, model=start.model, catalog="")
    models = with_chosen(start.out.models(any_tools=True), start.served)
    try:
        catalog = catalog_setting(give_catalog(start.folder, start.program, environment, models))
    except CatalogUnfit as why:
        warn(f"this Codex gets no catalogue of models, so its picker (/model) has its own only: {why}")
        return codex_options(start.served, model=start.model)
    return codex_options(start.served, model=start.model, catalog=catalog)


@dataclass(frozen=True, slots=True)
class Client:
    """A program that can be started.

    names      its options that choose a model
    chosen     the model that the user's environment or files choose, None for none
    variables  of its environment; given the user's arguments
    options    before its arguments; given its environment
    openai     whether it needs the OpenAI-style routes
    """

    program: str
    install: str
    names: tuple[str, ...]
    chosen: Callable[[Mapping[str, str]], str | None]
    variables: Callable[[Served, Sequence[str]], list[Variable]]
    options: Callable[[ClientStart, Mapping[str, str]], list[str]]
    elsewhere: Callable[[dict[str, str]], list[str]]
    openai: bool = False


CLAUDE_CODE = Client(
    "claude",
    "npm install -g @anthropic-ai/claude-code",
    ("--model",),
    claude_model,
    lambda served, arguments: claude_code_child(served, compacts=_asks_settings(arguments)),
    _claude_options,
    lambda environment: without_elsewhere(environment) + settings_elsewhere(environment),
)
CODEX_CLI = Client(
    "codex",
    "npm install -g @openai/codex",
    ("--model", "-m"),
    codex_model,
    lambda served, _arguments: codex(served),
    _codex_options,
    lambda _environment: [],
    openai=True,
)


def launch(client: Client, arguments: argparse.Namespace, context: Context) -> int:
    """Becomes the client, if the system can; else returns its exit status. Raises ConfigError."""
    return_to_folder(context.environment)
    program = shutil.which(client.program, path=context.environment.get("PATH"))
    if program is None:
        raise ConfigError(f"{client.program} is not on the PATH; install it: {client.install}")
    out = set_out(context, sandbox=arguments.proxy_sandbox, openai=client.openai, keep=arguments.proxy_keep)
    served, theirs = _served(client, arguments, out)
    started = out.background.find_or_start(os.getpid())
    if started is None:
        check_running(served.url, served.key, openai=client.openai)
    variables = client.variables(served, arguments.rest)
    variables = [one for one in variables if not (theirs and one.name == "ANTHROPIC_MODEL")]
    environment, said = child_environment(out.environment, variables, served.url)
    for line in said + client.elsewhere(environment):
        warn(line)
    start = ClientStart(out, served, program, arguments.rest, not theirs)
    command = [program, *client.options(start, environment), *arguments.rest]
    return _become(command, environment) if WATCHES else _wait_for(command, environment, started)


def _served(client: Client, arguments: argparse.Namespace, out: SetOut) -> tuple[Served, bool]:
    """The client's settings, and whether its own options or files choose the model. The proxy refuses an unknown model
    of an option; one of a file is not meant for this proxy."""
    if arguments.proxy_model:
        return out.served(arguments.proxy_model), False
    asked = asked_option(arguments.rest, client.names)
    own = asked or client.chosen(out.environment)
    try:
        return out.served(own), bool(own)
    except UnknownModel:
        return out.served(None), bool(asked)


def _become(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Replaces this process by the client, which gets the terminal, its signals and the exit status."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and a child inherits that
    os.execve(command[0], list(command), dict(environment))  # noqa: S606


def _wait_for(command: Sequence[str], environment: Mapping[str, str], started: subprocess.Popen[bytes] | None) -> int:
    """Runs the client and waits, since Windows cannot replace a process: a proxy ends with the client of its
    launcher."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the client
    try:
        return subprocess.call(list(command), env=dict(environment))  # noqa: S603
    finally:
        if started is not None:
            started.terminate()


def print_variables(arguments: argparse.Namespace, context: Context) -> int:
    """Prints the variables. Raises ConfigError."""
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
    """The command that prints these lines."""
    words = ["env", arguments.client] if arguments.client else ["env"]
    if arguments.shell or SHELLS[shell] is not SHELLS["sh"]:
        words += ["--shell", shell]
    if arguments.model:
        words += ["--model", SHELLS[shell].quote(arguments.model)]
    if arguments.start:
        words.append("--start")
    return " ".join([context.program, *words])


def variable_lines(variables: Iterable[Variable], shell: Shell, own: Mapping[str, str]) -> list[str]:
    """Lines that set variables, and remove those of the user that would direct clients elsewhere."""
    removed = [shell.unset(name) for name in ELSEWHERE if own.get(name)]
    return [shell.set(one.name, one.value) for one in variables] + removed


def _terminal() -> int:
    """The process that ends with the terminal."""
    session = os.getsid(0) if hasattr(os, "getsid") else 0
    return session or os.getppid()  # a session that began outside of a container has no visible id
