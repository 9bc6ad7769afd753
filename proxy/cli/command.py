"""Describes a command: a row for the parser, and a coroutine function that runs it."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from proxy.errors import PROGRAM
from proxy.providers.entry import Entry
from proxy.providers.registry import PROVIDERS

#: The name of the program, in its output and its folders.
APP = PROGRAM


@dataclass(frozen=True, slots=True)
class Context:
    """The context of a command.

    program  how the user starts this program, for texts that say what to type
    """

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    providers: tuple[Entry, ...] = PROVIDERS
    program: str = APP


def _none(_parser: argparse.ArgumentParser, _context: Context) -> None:
    """Adds no arguments."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command. Its functions are imported when it is typed, so that a start is quick.

    arguments  adds its arguments to the parser, when this command was typed
    run        returns the exit status; a ProxyError or an OSError that it raises is printed
    failure    the exit status then
    split      splits the arguments into its own, and those of another program, which become `rest` unparsed
    """

    name: str
    help: str
    run: Callable[[argparse.Namespace, Context], Awaitable[int]]
    arguments: Callable[[argparse.ArgumentParser, Context], None] = _none
    failure: int = 1
    split: Callable[[list[str]], tuple[list[str], list[str]]] | None = None


def say(line: str) -> None:
    """Prints a line at once."""
    print(line, flush=True)


#: Set by `scripts/start`: how it was called.
TYPED_VARIABLE = "MODEL_PROXY_COMMAND"
#: Set by `scripts/start`, which changes the folder: where it was called.
TYPED_FOLDER = "MODEL_PROXY_FOLDER"


def typed(environment: Mapping[str, str], argv: Sequence[str], orig_argv: Sequence[str]) -> str:
    """The command as it was typed, without its arguments.

    argv, orig_argv  as `sys` has them

    >>> typed({TYPED_VARIABLE: "scripts/start"}, ["/x/proxy/__main__.py"], [".venv/bin/python", "-m", "proxy"])
    'scripts/start'
    >>> typed({}, ["/x/proxy/__main__.py"], [".venv/bin/python", "-m", "proxy"])
    '.venv/bin/python -m proxy'
    """
    if called := environment.get(TYPED_VARIABLE):
        return shlex.quote(called)
    name = Path(argv[0]).name
    if name == "__main__.py":
        return f"{shlex.quote(orig_argv[0])} -m proxy"
    return name if shutil.which(name) == argv[0] else shlex.quote(argv[0])
