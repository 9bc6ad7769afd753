"""Clients from npm, each version installed once into a cache."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from e2e.installing import command, once
from e2e.process import Finished, run

_MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}


def platform_name() -> str:
    """As packages with a program for this machine are called: `linux-x64`."""
    return f"{platform.system().lower()}-{_MACHINES[platform.machine().lower()]}"


#: Most clients need a newer Node.js than many machines have.
NODE = "22.23.3"


async def install_node(cache: Path) -> Path:
    """The path of `node`."""
    package = f"node-{platform_name()}"
    return await install(package, NODE, cache, f"{package}/bin/node")


async def install(
    package: str,
    version: str,
    cache: Path,
    program: str,
    *beside: str,
    unpack: Callable[[Path], Awaitable[None]] | None = None,
) -> Path:
    """The path of `program` (a glob below node_modules) of that version. The packages' install scripts are not needed.

    beside  what is installed in the same place, as npm takes it (`zod@4.6.7`)
    unpack  what else is to be done with the program, once

    Raises RuntimeError: npm is missing, or it brought no such program.
    """
    folder = cache / f"{package.rpartition('/')[2]}-{version}"

    async def make() -> None:
        npm = shutil.which("npm")
        if npm is None:
            raise RuntimeError(f"npm is needed to install {package}")
        switches = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
        good = await command(npm, "install", "--prefix", str(folder), *switches, f"{package}@{version}", *beside)
        found = _find(folder, program)
        if not good or found is None:
            raise RuntimeError(f"{package} {version} could not be installed")
        if unpack is not None:
            await unpack(found)

    await once(folder, make)
    found = _find(folder, program)
    if found is None:
        raise RuntimeError(f"{folder} holds no {program}")
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


class OnNode(Installed):
    """A client that the Node.js of the same cache runs."""

    @property
    def modules(self) -> Path:
        """The folder `node_modules` that it lies in."""
        return next(place for place in reversed(self.program.parents) if place.name == "node_modules")

    async def node(self) -> Path:
        return await install_node(self.modules.parents[1])

    async def run_module(self, text: str, *arguments: str, parts: Iterable[Path] = ()) -> Finished:
        """Runs a program that finds its packages where this client is installed, and beside it the files that are its
        parts."""
        node, beside, program = await self.node(), self.work / "node_modules", self.work / "program.mjs"
        if not beside.exists():
            beside.symlink_to(self.modules)
        program.write_text(text)
        for part in parts:
            shutil.copy(part, self.work)
        environment = {"PATH": f"{node.parent}:{os.environ['PATH']}", "HOME": str(self.home)}
        return await run([str(node), str(program), *arguments], self.work, environment)


def _find(folder: Path, program: str) -> Path | None:
    return next(iter(sorted((folder / "node_modules").glob(program))), None)
