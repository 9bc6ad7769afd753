"""`completion`: prints the script for a shell, which `scripts/reference` wrote."""

from __future__ import annotations

import argparse
import importlib.resources

from proxy.cli.command import Context, say

#: Those for which `proxy/data/completion/` has a script.
SHELLS = ("bash", "zsh", "fish")


def arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
    parser.add_argument("shell", choices=SHELLS)


async def run(arguments: argparse.Namespace, _context: Context) -> int:
    script = importlib.resources.files("proxy.data") / "completion" / arguments.shell
    say(script.read_text("utf-8").rstrip("\n"))
    return 0
