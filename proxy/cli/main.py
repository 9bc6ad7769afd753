"""The entry point: parses and runs one command, and prints what it raises."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from proxy.cli.command import APP, Command, Context, typed
from proxy.errors import ProxyError, as_typed
from proxy.later import Later
from proxy.version import __version__


async def _print_version(_arguments: argparse.Namespace, _context: Context) -> int:
    print(f"{APP} {__version__}")
    return 0


#: The modules are imported when their command is typed: a start is quick.
COMMANDS = (
    Command("serve", "run the proxy (default)", Later("proxy.cli.serve:run"), Later("proxy.cli.serve:arguments")),
    Command(
        "claude",
        "start Claude Code on the proxy: claude [arguments of Claude Code]",
        Later("proxy.cli.launch.command:run_claude"),
        Later("proxy.cli.launch.command:client_arguments"),
        split=Later("proxy.cli.launch.command:split_own"),
    ),
    Command(
        "codex",
        "start Codex CLI on the proxy: codex [its arguments]",
        Later("proxy.cli.launch.command:run_codex"),
        Later("proxy.cli.launch.command:client_arguments"),
        split=Later("proxy.cli.launch.command:split_own"),
    ),
    Command(
        "env",
        "print the variables that lead other clients here",
        Later("proxy.cli.launch.command:run_env"),
        Later("proxy.cli.launch.command:env_arguments"),
    ),
    Command(
        "monitor",
        "watch a proxy that runs: monitor --url URL",
        Later("proxy.cli.monitor.command:run"),
        Later("proxy.cli.monitor.command:arguments"),
    ),
    Command("demo", "the monitor with simulated traffic", Later("proxy.cli.monitor.command:run_demo")),
    Command(
        "auth",
        "sign in and out: auth login p1; auth status for all",
        Later("proxy.cli.auth:run"),
        Later("proxy.cli.auth:arguments"),
        failure=2,
    ),
    Command(
        "keys",
        "keys of those who share this proxy: keys add NAME",
        Later("proxy.cli.keys:run"),
        Later("proxy.cli.keys:arguments"),
    ),
    Command(
        "usage",
        "show what is left of an allowance: usage p1; usage for all",
        Later("proxy.cli.usage:run"),
        Later("proxy.cli.usage:arguments"),
    ),
    Command(
        "cache",
        "show how much of the input came from prompt caches, and why not more",
        Later("proxy.cli.monitor.cache:run"),
        Later("proxy.cli.monitor.cache:arguments"),
    ),
    Command(
        "models",
        "list the models of every provider",
        Later("proxy.cli.models:run"),
        Later("proxy.cli.models:arguments"),
    ),
    Command(
        "report",
        "show what was used over time: report week --by project",
        Later("proxy.cli.history.command:run_report"),
        Later("proxy.cli.history.command:report_arguments"),
    ),
    Command(
        "history",
        "where the history of requests is; history clear removes it",
        Later("proxy.cli.history.command:run_history"),
        Later("proxy.cli.history.command:history_arguments"),
    ),
    Command(
        "config",
        "check and show the settings, or begin a config.json",
        Later("proxy.cli.config_command:run"),
        Later("proxy.cli.config_command:arguments"),
    ),
    Command(
        "doctor",
        "look for what is wrong with the set-up, and say what mends it",
        Later("proxy.cli.doctor.command:run"),
        Later("proxy.cli.doctor.command:arguments"),
    ),
    Command(
        "health",
        "ask whether the proxy answers; exit status 0 when it does",
        Later("proxy.cli.health:run"),
        Later("proxy.cli.health:arguments"),
    ),
    Command(
        "captures",
        "look at kept requests, compare and replay them: captures list",
        Later("proxy.cli.captures.command:run"),
        Later("proxy.cli.captures.command:arguments"),
    ),
    Command(
        "sandbox",
        "run the simulated upstreams alone",
        Later("proxy.cli.sandbox:run"),
        Later("proxy.cli.sandbox:arguments"),
    ),
    Command(
        "service",
        "run the proxy as a service of this system, from the login on",
        Later("proxy.cli.service.command:run"),
        Later("proxy.cli.service.command:arguments"),
    ),
    Command(
        "completion",
        "print the completion for a shell: completion bash|zsh|fish",
        Later("proxy.cli.launch.completion:run"),
        Later("proxy.cli.launch.completion:arguments"),
    ),
    Command("version", "print the version", _print_version),
)
DEFAULT = COMMANDS[0].name
#: The exit status of a shell for a program that a closed pipe ended.
_CUT_OFF = 128 + 13
#: Options that need no command; any others belong to the default command.
_OWN_OPTIONS = ("-h", "--help", "-v", "--version")


def main(
    argv: Sequence[str] | None = None, context: Context | None = None, commands: Sequence[Command] = COMMANDS
) -> int:
    """Runs one command; returns the exit status."""
    context = context or Context(program=typed(os.environ, sys.argv, sys.orig_argv))
    arguments = _parse(list(sys.argv[1:] if argv is None else argv), context, commands)
    command: Command = arguments.command
    try:
        import asyncio  # as slow to import as all else here: `--version` and `--help` are quick without

        status = asyncio.run(_run(command, arguments, context))
        print(end="", flush=True)  # also without output, since a Windows task has no stdout
        return status
    except ProxyError as error:
        print(f"{APP}: {as_typed(error.message, context.program)}", file=sys.stderr)
    except BrokenPipeError:  # as in `doctor | head`, which stops reading
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _CUT_OFF
    except OSError as error:  # a folder that is a file, a disk that is full
        print(f"{APP}: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    return command.failure


async def _run(command: Command, arguments: argparse.Namespace, context: Context) -> int:
    return await command.run(arguments, context)


class _Parser(argparse.ArgumentParser):
    """A parser. `bare`: a command that needs arguments shows its help when typed alone."""

    def __init__(self, *names: Any, bare: bool = False, **options: Any) -> None:
        super().__init__(*names, **options)
        self._bare = bare

    def error(self, message: str) -> NoReturn:
        if self._bare:
            self.print_help(sys.stderr)
            self.exit(2, f"\n{self.prog}: error: {message}\n")
        super().error(message)


def _parse(argv: list[str], context: Context, commands: Sequence[Command]) -> argparse.Namespace:
    parser = _Parser(context.program, description="Coding agents with the model subscriptions you already pay for.")
    parser.add_argument("-v", "--version", action="version", version=f"{APP} {__version__}")
    if not argv or (argv[0].startswith("-") and argv[0] not in _OWN_OPTIONS):
        argv = [DEFAULT, *argv]
    places = parser.add_subparsers(metavar="command", required=True)
    for command in commands:
        place = places.add_parser(command.name, help=command.help, bare=len(argv) == 1)
        if command.name == argv[0]:  # a start is quick: arguments of other commands are added only when typed
            command.arguments(place, context)
            if command.split is not None:
                own, rest = command.split(argv[1:])
                argv = [argv[0], *own]
                place.set_defaults(rest=rest)
        place.set_defaults(command=command, commands=commands)
    return parser.parse_args(argv)
