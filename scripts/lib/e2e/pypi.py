"""Clients from PyPI, each version installed once into a cache, in an environment of its own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from e2e.installing import command, once


async def install(name: str, packages: Sequence[str], cache: Path) -> Path:
    """The interpreter of an environment that holds the packages; its programs lie beside it.

    packages  as pip takes them, with versions. `name` of the environment says which these are: it is not made again.

    Raises RuntimeError: they could not be installed.
    """
    folder = cache / name
    interpreter = folder / "bin" / "python"

    async def make() -> None:
        made = (sys.executable, "-m", "venv", "--without-pip", str(folder))
        # This interpreter's pip does it, and what is never imported is never compiled: half the time.
        pip = (sys.executable, "-m", "pip", "--python", str(interpreter), "install", "--no-compile", "--quiet")
        for words in (made, (*pip, "--disable-pip-version-check", *packages)):
            if not await command(*words):
                raise RuntimeError(f"{' '.join(packages)} could not be installed")

    await once(folder, make)
    return interpreter
