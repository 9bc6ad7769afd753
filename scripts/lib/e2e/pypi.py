"""Clients from PyPI, each version installed once into a cache, in an environment of its own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path


async def install(name: str, packages: Sequence[str], cache: Path) -> Path:
    """The interpreter of an environment that holds the packages; its programs lie beside it.

    packages  as pip takes them, with versions. `name` of the environment says which these are: it is not made again.

    Raises RuntimeError: they could not be installed.
    """
    folder = cache / name
    interpreter, ready = folder / "bin" / "python", folder / ".ready"
    if ready.exists():
        return interpreter
    cache.mkdir(parents=True, exist_ok=True)
    made = (sys.executable, "-m", "venv", "--clear", "--without-pip", str(folder))
    # This interpreter's pip does it, and what is never imported is never compiled: half the time.
    pip = (sys.executable, "-m", "pip", "--python", str(interpreter), "install", "--no-compile", "--quiet")
    for command in (made, (*pip, "--disable-pip-version-check", *packages)):
        process = await asyncio.create_subprocess_exec(*command)
        if await process.wait() != 0:
            raise RuntimeError(f"{' '.join(packages)} could not be installed")
    ready.touch()
    return interpreter
