"""The image without an engine: its files are built here, and run in bubblewrap as an engine would run them.

Where buildah and debootstrap are, the tree is that of the image itself, on a base of Debian's packages. Elsewhere the
steps of the Dockerfile are done with this machine's Python, on this machine's files.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

import container
import wheel

DOCKERFILE = container.FOLDER / "Dockerfile"
PROGRAM = "/opt/model-proxy/bin/model-proxy"
USER = 10001
KEY = "k" * 32
MIRROR = "http://deb.debian.org/debian"
PACKAGES = "python3,python3-venv,ca-certificates"
#: What the program is left without, once it runs as its user.
_DROPPED = ("--inh-caps=-all", "--bounding-set=-all", "--no-new-privs")
#: Of the machine, for a tree without an image.
_SHARED = ("/usr", "/lib", "/lib64", "/bin", "/etc", sys.base_prefix)

IMAGE, TREE, NOTHING = "image", "tree", "not run: no bubblewrap"
BOX_LIMIT_S = 30.0


def kind() -> str:
    """What can be run on this machine."""
    if not shutil.which("bwrap"):
        return NOTHING
    root = os.name == "posix" and os.geteuid() == 0
    return IMAGE if root and shutil.which("buildah") and shutil.which("debootstrap") else TREE


async def install(version: str, cache: Path) -> Path:
    """The tree, made once a wheel; a base of Debian's packages is kept."""
    made = {IMAGE: _image, TREE: _tree, NOTHING: lambda folder: folder}
    folder = cache / "container"
    folder.mkdir(parents=True, exist_ok=True)
    return await asyncio.to_thread(made[version], folder)


def _image(folder: Path) -> Path:
    base, tree = folder / "base", folder / "image"
    if not (base / "usr/bin/python3").exists():
        _run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(base), MIRROR)
    _in_buildah("model-proxy-e2e-base", "scratch", lambda name: _run("buildah", "add", "-q", name, str(base), "/"))
    certificates = os.environ.get("PIP_CERT")
    own = ("--volume", f"{certificates}:/ca.crt:ro", "--build-arg", "PIP_CERT=/ca.crt") if certificates else ()
    container.put_wheel(container.FOLDER)
    named = ("--build-arg", "BASE=localhost/model-proxy-e2e-base", "--tag", "model-proxy-e2e")
    _run("buildah", "build", "--isolation", "chroot", "--format", "docker", *named, *own, str(container.FOLDER))
    shutil.rmtree(tree, ignore_errors=True)

    def copy(name: str) -> None:
        _run("cp", "-a", _run("buildah", "mount", name).strip(), str(tree))

    _in_buildah(None, "localhost/model-proxy-e2e", copy)
    return tree


def _in_buildah(image: str | None, source: str, work: Callable[[str], object]) -> None:
    """Does it with a container of `source`, which is committed as `image`."""
    name = _run("buildah", "from", source).strip()
    try:
        work(name)
        if image:
            _run("buildah", "commit", "-q", name, image)
    finally:
        _run("buildah", "rm", name)


def _tree(folder: Path) -> Path:
    """The same steps as in the Dockerfile."""
    tree, dist = folder / "tree", folder / "dist"
    shutil.rmtree(tree, ignore_errors=True)
    python, options = str(tree / "bin" / "python"), ("--no-compile", "--only-binary", ":all:", "--require-hashes")
    _run(sys.executable, "-m", "venv", str(tree))
    wheel.pip(python, "install", *options, "-r", str(container.FOLDER / "requirements.lock"))
    wheel.pip(python, "install", "--no-compile", "--no-deps", str(container.put_wheel(dist.parent)))
    _run(python, "-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash", str(tree / "lib"))
    return tree


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "BUILDAH_ISOLATION": "chroot"})
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:3])}: {done.stderr[-1000:]}")
    return done.stdout


def dockerfile_environment() -> dict[str, str]:
    """What the image sets."""
    text = DOCKERFILE.read_text().replace("\\\n", " ")
    found = re.search(r"^ENV (.*)$", text, re.MULTILINE)
    if found is None:
        raise RuntimeError("the Dockerfile sets no variables")
    return dict(pair.split("=", 1) for pair in found[1].split())


@dataclass(frozen=True, slots=True)
class Box:
    """A container: the tree, and its two volumes below `folder`."""

    tree: Path
    version: str
    folder: Path

    def volume(self, name: str) -> Path:
        path = self.folder / name
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        if os.geteuid() == 0:
            os.chown(path, USER, USER)
        return path

    def command(self, arguments: Sequence[str], variables: Mapping[str, str], *more: str) -> list[str]:
        """As compose.yaml says: a user without rights, files that nobody can change, two volumes, an empty `/tmp`."""
        whole = ("--ro-bind", str(self.tree), "/")
        parts = [part for place in _SHARED if Path(place).exists() for part in _bound(place, place)]
        program = (*_bound(str(self.tree), str(self.tree)), *_bound(str(self.tree), "/opt/model-proxy"))
        files, own_files = (whole, ()) if self.version == IMAGE else (parts, program)
        volumes = [part for name in ("config", "state") for part in ("--bind", str(self.volume(name)), f"/{name}")]
        own = {**dockerfile_environment(), "PROXY_API_KEY": KEY, **variables}
        setting = [part for pair in own.items() for part in ("--setenv", *pair)]
        apart = ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--as-pid-1", "--die-with-parent", "--clearenv")
        return [
            *(
                "bwrap",
                *files,
                "--proc",
                "/proc",
                "--dev",
                "/dev",
                "--perms",
                "1777",
                "--tmpfs",
                "/tmp",
                *own_files,
                *volumes,
            ),
            *("--remount-ro", "/", *apart, *setting, "--chdir", "/state", *more, *_as_user(), *arguments),
        ]

    async def finished(
        self, *arguments: str, variables: Mapping[str, str] = {}, typed: bytes = b"", program: str = PROGRAM
    ) -> tuple[int, str]:
        """A command to its end: exit status, and all that it said."""
        command = self.command([program, *arguments], variables)
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=asyncio.subprocess.STDOUT
        )
        out, _ = await asyncio.wait_for(process.communicate(typed), BOX_LIMIT_S)
        return process.returncode or 0, out.decode(errors="replace")


def _bound(source: str, place: str) -> tuple[str, ...]:
    """A folder that can be read at `place` by anybody: bubblewrap makes what is above it for root alone."""
    above = reversed(Path(place).parents[:-1])
    return (*(part for one in above for part in ("--perms", "0755", "--dir", str(one))), "--ro-bind", source, place)


def _as_user() -> tuple[str, ...]:
    """Root gives up all that it has before the program begins; anybody else has only himself to begin with."""
    if os.geteuid() == 0:
        return ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", *_DROPPED)
    return ("setpriv", *_DROPPED[:1], _DROPPED[2])


@dataclass(slots=True)
class Running:
    """A proxy in a box. `healthy_s`: from the start of the process to the first answer of `/healthz`."""

    url: str
    pid: int
    process: Process
    healthy_s: float

    def fact(self, name: str) -> str:
        """A line of what the kernel says of the process."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return next(line.partition(":")[2].strip() for line in status.splitlines() if line.startswith(f"{name}:"))

    async def ended(self, number: int) -> int:
        """The exit status after a signal."""
        os.kill(self.pid, number)
        return await asyncio.wait_for(self.process.wait(), BOX_LIMIT_S)


@asynccontextmanager
async def running(box: Box, port: int, variables: Mapping[str, str]) -> AsyncIterator[Running]:
    """`serve` on a port, until it ends or the block does."""
    reading, writing = os.pipe()
    command = box.command([PROGRAM, "serve", "--port", str(port)], variables, "--info-fd", str(writing))
    begun = time.monotonic()
    process = await asyncio.create_subprocess_exec(*command, pass_fds=(writing,), stdin=DEVNULL, stdout=DEVNULL)
    os.close(writing)
    with os.fdopen(reading) as information:
        pid = int(json.loads(await asyncio.to_thread(information.read))["child-pid"])
    url = f"http://127.0.0.1:{port}"
    try:
        await asyncio.wait_for(_healthy(url, process), BOX_LIMIT_S)
        yield Running(url, pid, process, time.monotonic() - begun)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _healthy(url: str, process: Process) -> None:
    async with aiohttp.ClientSession() as session:
        while process.returncode is None:
            try:
                async with session.get(f"{url}/healthz") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.01)
    raise RuntimeError("the proxy ended before it was healthy")
