"""The resources of the program: its vocabulary, room on the disk, memory, open files."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from model_proxy import other_owners
from proxy.cli.doctor.finding import Finding, Group, Setup, fail, nearest_folder, note, ok, warn
from proxy.cli.printable import amount

_MIB = 1024 * 1024
#: The log and failed answers need some 30 MB, captures up to half a gigabyte.
LITTLE_DISK_BYTES, NO_DISK_BYTES = 512 * _MIB, 32 * _MIB
FEW_INODES = 1_000
#: The proxy itself takes some 100 MB, and bodies that wait up to `server.maxBufferedRequestBytes`.
OWN_BYTES = 128 * _MIB
#: Each request has two connections.
FEW_FILES = 512
#: Files with the limit of a container: the newer form, and the older one.
MEMORY_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
#: No limit, in the older form.
_UNLIMITED = 2**60


def check_vocabulary(_setup: Setup) -> Sequence[Finding]:
    """Checks whether tokens can be counted."""
    from proxy.providers.upstream import tokenizer

    try:
        tokenizer.load_encoding()
    except Exception as error:  # a file that is missing or damaged, a library that does not load
        why = f"{type(error).__name__}: {error}; tokens are estimated instead"
        pip = f"{sys.executable} -m pip install --force-reinstall WHEEL"  # an index may have another one
        return [fail("the vocabulary cannot be used", why, pip)]
    return [ok("the vocabulary is complete")]


def check_import_name(_setup: Setup) -> Sequence[Finding]:
    """Checks whether another distribution in this environment writes to the folder of this package."""
    others = other_owners()
    if not others:
        return []
    why = "both install a package `proxy`: to upgrade or remove either breaks the other"
    return [warn(f"{', '.join(others)} is in the same environment", why, "pipx install WHEEL")]


def check_disk(setup: Setup) -> Sequence[Finding]:
    """Checks the disk of the log, and that of renewed sign-ins if it is another one."""
    found: list[Finding] = []
    disks = {nearest_folder(root).stat().st_dev: root for root in (setup.config_root, setup.state_root)}
    for root in disks.values():
        found += _disk(root, setup)
    return found


def _disk(root: Path, setup: Setup) -> Iterator[Finding]:
    place = nearest_folder(root)
    free = shutil.disk_usage(place).free
    cure = f"df -h {place}; to make room: {setup.program} captures clear, rm {setup.state_root}/proxy.[0-9]*"
    yield _room(free, f"{amount(free)} free for {root}", cure)
    if hasattr(os, "statvfs"):
        inodes = os.statvfs(place)
        if inodes.f_files and inodes.f_favail < FEW_INODES:
            yield warn(f"{inodes.f_favail} inodes free", "soon no file can be created", f"df -i {place}")


def _room(free: int, what: str, cure: str) -> Finding:
    if free < NO_DISK_BYTES:
        return fail(what, "records are lost, and a renewed sign-in cannot be saved", cure)
    if free < LITTLE_DISK_BYTES:
        return warn(what, "the log and captures may not fit", cure)
    return ok(what)


def check_memory(setup: Setup) -> Sequence[Finding]:
    """Compares the limit of a container with the settings."""
    limit = _memory_limit()
    if limit is None:
        return []
    bodies = setup.config.max_buffered_bytes
    if limit >= OWN_BYTES + bodies:
        return [ok(f"a container with {amount(limit)} of memory")]
    fitting = max(limit - OWN_BYTES, 16 * _MIB)
    why = f"request bodies alone may take {amount(bodies)}: the system would end the proxy"
    cure = setup.export("PROXY_MAX_BUFFERED_REQUEST_BYTES", fitting)
    return [warn(f"a container with {amount(limit)} of memory", why, cure)]


def _memory_limit() -> int | None:
    for path in MEMORY_LIMITS:
        try:
            text = path.read_text().strip()
        except OSError:
            continue
        return int(text) if text.isdecimal() and int(text) < _UNLIMITED else None
    return None


def check_open_files(_setup: Setup) -> Sequence[Finding]:
    if sys.platform == "win32":
        return []
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= FEW_FILES:
        return []
    return [
        note(f"{soft} files may be open at one time", "many agents at once need more", f"ulimit -n {FEW_FILES * 2}")
    ]


DATA = Group(
    "data",
    "Vocabulary, disk, memory",
    (check_vocabulary, check_import_name, check_disk, check_memory, check_open_files),
)
