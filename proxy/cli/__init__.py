"""The command line: the only part that knows files, variables, signals and the terminal."""

from proxy.cli.main import main

__all__ = ["main"]
