"""The row of `captures`, with the actions below it."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

from proxy.cli.command import Command, Context
from proxy.config import ConfigError


def _actions() -> tuple[Command, ...]:
    """The actions, imported here since no other command needs them."""
    from proxy.cli.captures.comparing import DIFF
    from proxy.cli.captures.looking import CLEAR, LIST, SHOW
    from proxy.cli.captures.replaying import REPLAY

    return LIST, SHOW, CLEAR, DIFF, REPLAY


def arguments(parser: argparse.ArgumentParser, context: Context) -> None:
    places = parser.add_subparsers(metavar="action", required=True)
    for action in _actions():
        place = places.add_parser(action.name, help=action.help)
        action.arguments(place, context)
        place.add_argument("--folder", type=Path, metavar="DIR", help="where captures are, if not in the state folder")
        place.set_defaults(action=action)


async def run(arguments: argparse.Namespace, context: Context) -> int:
    from proxy.observe.capture.reading.folder import Unreadable

    action: Command = arguments.action
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may lack the characters of a prompt
    try:
        return await action.run(arguments, context)
    except Unreadable as error:
        raise ConfigError(str(error)) from None
    except RecursionError:
        raise ConfigError("an artifact is no JSON that was captured, it is nested too deeply") from None
