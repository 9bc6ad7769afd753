"""What a command is: a row for the parser, and a coroutine function that runs it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from proxy.errors import PROGRAM
from proxy.providers.entry import Entry
from proxy.providers.registry import PROVIDERS

#: The name of the program: in what it prints, and of its folders.
APP = PROGRAM


@dataclass(frozen=True, slots=True)
class Context:
    """What a command is run with.

    program  how the user starts this program, for texts that say what to type
    """

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    providers: tuple[Entry, ...] = PROVIDERS
    program: str = APP


def _none(_parser: argparse.ArgumentParser, _context: Context) -> None:
    """No arguments."""


@dataclass(frozen=True, slots=True)
class Command:
    """A row. What it needs beyond the standard library is imported when it runs: a start is quick.

    arguments  adds them to the parser of the command, when it is the one that was asked for
    run        returns the exit status; a ProxyError or an OSError that it raises is printed
    failure    the exit status then
    split      of the arguments: its own, and those of another program, which are not parsed and stand in `rest`
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
