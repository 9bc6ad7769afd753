"""Clients from npm, each version installed once into a cache."""

from __future__ import annotations

import asyncio
import platform
import shutil
from pathlib import Path

_MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}


def platform_name() -> str:
    """As packages with a program for this machine are called: `linux-x64`."""
    return f"{platform.system().lower()}-{_MACHINES[platform.machine().lower()]}"


async def install(package: str, version: str, cache: Path, program: str) -> Path:
    """The path of `program` (a glob below node_modules) of that version. The packages' install scripts are not needed.

    Raises RuntimeError: npm is missing, or it brought no such program.
    """
    folder = cache / f"{package.rpartition('/')[2]}-{version}"
    if (found := _find(folder, program)) is not None:
        return found
    npm = shutil.which("npm")
    if npm is None:
        raise RuntimeError(f"npm is needed to install {package}")
    folder.mkdir(parents=True, exist_ok=True)
    process = await asyncio.create_subprocess_exec(
        *(npm, "install", "--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"),
        f"{package}@{version}",
        stdout=asyncio.subprocess.DEVNULL,
    )
    status, found = await process.wait(), _find(folder, program)
    if status != 0 or found is None:
        raise RuntimeError(f"{package} {version} could not be installed")
    return found


class Installed:
    """One installed version of a client, with a home and a folder to work in of its own."""

    def __init__(self, program: Path, version: str, folder: Path, home: str = "home") -> None:
        self.program = program
        self.version = version
        self.folder = folder
        self.home = folder / home
        self.work = folder / "work"
        for place in (self.home, self.work):
            place.mkdir(parents=True, exist_ok=True)


def _find(folder: Path, program: str) -> Path | None:
    return next(iter(sorted((folder / "node_modules").glob(program))), None)
