"""What is in the wheel, and what a container is built from."""

from __future__ import annotations

import email
import shlex
import zipfile
from collections.abc import Collection
from pathlib import Path

from release.source import version
from release.steps import Failed, Run, Skipped

DOCKERFILE = "scripts/container/Dockerfile"
#: Beside the modules: files that the program reads, and what the law and installers want.
NEEDED = ("proxy/py.typed", "proxy/version.py", "model_proxy.py")
NEEDED_ENDS = (".gz", ".html", ".css", "/METADATA", "/RECORD", "/WHEEL", "/entry_points.txt", "/LICENSE")
#: First folders of a wheel; whatever else is there was not meant.
FOLDERS = ("proxy", "model_proxy.py")
UNWANTED_PARTS = frozenset({"tests", "__pycache__", ".git", ".venv", ".cache", "auth.json", "config.json", ".env"})
MAX_WHEEL_MB = 5.0


def check_wheel(root: Path, wheel: Path) -> str:
    """Names and metadata of a wheel that was built from `root`."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        metadata = email.message_from_bytes(
            b"".join(archive.read(name) for name in names if name.endswith(".dist-info/METADATA"))
        )
    info = f"model_proxy-{version(root)}.dist-info"
    faults = [f"lacks {name}" for name in NEEDED if name not in names]
    faults += [f"lacks a file that ends in {end}" for end in NEEDED_ENDS if not any(n.endswith(end) for n in names)]
    faults += [f"has {name}" for name in names if _unwanted(name, {*FOLDERS, info})]
    faults += [f"lacks {name}" for name in sorted(_sources(root) - set(names))]
    faults += [
        f"metadata lacks {key}" for key in ("Name", "Summary", "License", "Requires-Python") if not metadata[key]
    ]
    if metadata["Version"] != version(root):
        faults.append(f"metadata says version {metadata['Version']}")
    size = wheel.stat().st_size / 1e6
    if size > MAX_WHEEL_MB:
        faults.append(f"is {size:.1f} MB, more than {MAX_WHEEL_MB:.0f}")
    if faults:
        raise Failed(f"{wheel.name} {'; '.join(faults[:8])}")
    return f"{wheel.name}: {len(names)} files, {size:.1f} MB"


def _unwanted(name: str, folders: Collection[str]) -> bool:
    parts = name.split("/")
    return parts[0] not in folders or not UNWANTED_PARTS.isdisjoint(parts)


def _sources(root: Path) -> set[str]:
    found = (path.relative_to(root) for path in (root / "proxy").rglob("*") if path.is_file())
    return {str(path) for path in found if "__pycache__" not in path.parts}


def check_container(root: Path, run: Run) -> str:
    """What the Dockerfile copies from the folder it is built in: tracked by git, and nothing that has no business in
    an image. Raises Skipped without a Dockerfile."""
    if not (root / DOCKERFILE).exists():
        raise Skipped(f"there is no {DOCKERFILE}")
    tracked = run(["git", "ls-files"]).split("\n")
    copied = [one.removeprefix("./").rstrip("/") or "." for one in copies((root / DOCKERFILE).read_text())]
    files = [name for name in tracked if any(_within(name, one) for one in copied)]
    missing = [one for one in copied if not any(_within(name, one) for name in tracked)]
    faults = [f"copies {one}, which git does not have" for one in missing]
    faults += [f"copies {name}" for name in files if not UNWANTED_PARTS.isdisjoint(name.split("/"))]
    if "." in copied:
        faults.append("copies the whole folder, with whatever lies there")
    if faults or not files:
        raise Failed(f"{DOCKERFILE} {'; '.join(faults[:8]) or 'copies nothing'}")
    return f"{len(files)} files: {', '.join(copied)}"


def _within(name: str, place: str) -> bool:
    return place == "." or name == place or name.startswith(f"{place}/")


def copies(dockerfile: str) -> list[str]:
    """The sources of COPY and ADD that come from outside of the build.

    >>> copies("COPY a b/ /x\\nCOPY --from=build /y /z\\nRUN c")
    ['a', 'b/']
    """
    found = []
    for line in dockerfile.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words and words[0].upper() in ("COPY", "ADD") and not any(word.startswith("--from") for word in words):
            found += [word for word in words[1:-1] if not word.startswith("--")]
    return found
