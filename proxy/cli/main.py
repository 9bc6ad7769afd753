"""The entry point: parses and runs one command, and prints what it raises."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from proxy.cli.auth import AUTH
from proxy.cli.captures.command import CAPTURES
from proxy.cli.command import APP, Command, Context, typed
from proxy.cli.config_command import CONFIG
from proxy.cli.doctor.command import DOCTOR
from proxy.cli.health import HEALTH
from proxy.cli.history.command import HISTORY, REPORT
from proxy.cli.keys import KEYS
from proxy.cli.launch.command import CLAUDE, CODEX, ENV
from proxy.cli.launch.completion import COMPLETION
from proxy.cli.models import MODELS
from proxy.cli.monitor.cache import CACHE
from proxy.cli.monitor.command import DEMO, MONITOR
from proxy.cli.sandbox import SANDBOX
from proxy.cli.serve import SERVE
from proxy.cli.service.command import SERVICE
from proxy.cli.usage import USAGE
from proxy.errors import ProxyError, as_typed
from proxy.version import __version__


async def _print_version(_arguments: argparse.Namespace, _context: Context) -> int:
    print(f"{APP} {__version__}")
    return 0


VERSION = Command("version", "print the version", _print_version)


COMMANDS = (
    *(SERVE, CLAUDE, CODEX, ENV, MONITOR, DEMO, AUTH, KEYS, USAGE, CACHE, MODELS),
    *(REPORT, HISTORY),
    *(CONFIG, DOCTOR, HEALTH, CAPTURES, SANDBOX, SERVICE, COMPLETION, VERSION),
)
DEFAULT = SERVE.name
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
