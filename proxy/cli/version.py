"""`version`."""

from __future__ import annotations

import argparse

from proxy.cli.command import APP, Command, Context
from proxy.version import __version__


async def _run(_arguments: argparse.Namespace, _context: Context) -> int:
    print(f"{APP} {__version__}")
    return 0


VERSION = Command("version", "print the version", _run)
