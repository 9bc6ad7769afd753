"""`claude` and `codex`: the client, with the proxy that it needs; `env`: what other clients need."""

from __future__ import annotations

import argparse

from proxy.cli.command import Context
from proxy.cli.launch.shells import SHELLS

#: Beginning of the launcher's own options, which no client option has.
_OWN, _VALUED = "--proxy-", ("--proxy-model", "--proxy-keep")


def split_own(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Splits the launcher's own options, which come first, from the client's arguments. `--` may end them.

    >>> split_own(["--proxy-model", "gpt-5.5", "--", "-p", "hi"])
    (['--proxy-model', 'gpt-5.5'], ['-p', 'hi'])
    >>> split_own(["-p", "--proxy-model"])
    ([], ['-p', '--proxy-model'])
    """
    end = 0
    while end < len(arguments) and arguments[end].startswith(_OWN):
        end += 2 if arguments[end] in _VALUED else 1
    rest = arguments[end:]
    return arguments[:end], rest[1:] if end and rest[:1] == ["--"] else rest


def client_arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
    parser.usage = f"{parser.prog} [--proxy-model MODEL] [--proxy-sandbox] [arguments of the client …]"
    parser.add_argument("--proxy-model", metavar="MODEL", help="model to begin with, or a provider, such as p2")
    parser.add_argument(
        "--proxy-sandbox", action="store_true", help="a proxy of its own with simulated upstreams: no account is used"
    )
    # seconds that a started proxy stays after its last use
    parser.add_argument("--proxy-keep", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--proxy-help", action="help", help="show this; -h is the client's")


def env_arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
    parser.add_argument("client", nargs="?", choices=("claude", "openai"), help="for these clients only")
    parser.add_argument("--shell", choices=tuple(SHELLS), help="by default the one that $SHELL names")
    parser.add_argument("--model", metavar="MODEL", help="model to begin with, or a provider, such as p2")
    parser.add_argument(
        "--start", action="store_true", help="start the proxy when none answers; it ends with this terminal"
    )


async def run_claude(arguments: argparse.Namespace, context: Context) -> int:
    from proxy.cli.launch.launching import CLAUDE_CODE, launch

    return launch(CLAUDE_CODE, arguments, context)


async def run_codex(arguments: argparse.Namespace, context: Context) -> int:
    from proxy.cli.launch.launching import CODEX_CLI, launch

    return launch(CODEX_CLI, arguments, context)


async def run_env(arguments: argparse.Namespace, context: Context) -> int:
    from proxy.cli.launch.launching import print_variables

    return print_variables(arguments, context)
