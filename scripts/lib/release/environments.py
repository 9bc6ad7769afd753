"""The four packages at the ends of what setup.cfg allows, each in an environment of its own, and the tests there.

Environments lie in a cache and are used again while setup.cfg is the same; what is newest is asked for each time.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from release.source import setup_cfg
from release.steps import Failed, Run, Skipped

_BOUND = re.compile(r"([\w.-]+)>=([\d.]+),<([\d.]+)")
_PYTHON = re.compile(r"Python :: 3\.(\d+)$", re.MULTILINE)
PIP = ("-m", "pip", "--disable-pip-version-check")


def runtime(root: Path) -> list[str]:
    """What is installed with the program, as setup.cfg says it."""
    return setup_cfg(root)["options"]["install_requires"].split()


def lowest(root: Path) -> list[str]:
    """The packages, each at its lower bound. Raises Failed for one without both bounds."""
    pins = []
    for requirement in runtime(root):
        found = _BOUND.fullmatch(requirement)
        if found is None:
            raise Failed(f"setup.cfg: {requirement} has no bounds of the form name>=1,<2")
        pins.append(f"{found[1]}=={found[2]}")
    return pins


def minors(root: Path) -> list[int]:
    """The minor versions of Python 3 that the classifiers promise."""
    return sorted(int(found) for found in _PYTHON.findall(setup_cfg(root)["metadata"]["classifiers"]))


def python_of(minor: int, found: Sequence[str]) -> str:
    """Raises Skipped where this minor version is not installed."""
    for python in found:
        if Path(python).name == f"python3.{minor}":
            return python
    raise Skipped(f"Python 3.{minor} is not installed here; nothing is known of it")


def environment(root: Path, cache: Path, python: str, packages: Sequence[str], run: Run) -> str:
    """The interpreter of an environment that has exactly these of the four, and what the tests need."""
    settings = (root / "setup.cfg").read_text()
    key = hashlib.sha256("\n".join([str(root), python, *packages, settings]).encode()).hexdigest()[:12]
    folder = cache / f"{Path(python).name}-{key}"
    inside = str(folder / "bin" / "python")
    if not (folder / "ready").exists():
        folder.mkdir(parents=True, exist_ok=True)
        run([python, "-m", "venv", "--clear", str(folder)])
    # Editable, so that a test that starts the program from elsewhere starts this one.
    project = ["--editable", f"{root}[dev]"]
    run([inside, *PIP, "install", "--quiet", "--upgrade", "--upgrade-strategy", "eager", *project, *packages])
    run([inside, *PIP, "check"])
    (folder / "ready").touch()
    return inside


def installed(root: Path, python: str, run: Run) -> dict[str, str]:
    """The four and what they need, name -> version: what somebody gets who installs the program."""
    program = (
        "import json, re, sys\n"
        "from importlib.metadata import distribution, PackageNotFoundError\n"
        "found, names = {}, sys.argv[1:]\n"
        "while names:\n"
        "    name = re.match(r'[\\w.-]+', names.pop())[0].lower().replace('_', '-')\n"
        "    try:\n"
        "        one = distribution(name)\n"
        "    except PackageNotFoundError:\n"  # only on other systems
        "        continue\n"
        "    if name not in found:\n"
        "        found[name] = one.version\n"
        "        names += [need for need in one.requires or () if 'extra ==' not in need]\n"
        "print('\\n'.join(f'{name} {version}' for name, version in sorted(found.items())))\n"
    )
    lines = run([python, "-c", program, *runtime(root)]).splitlines()
    return dict(line.split(" ", 1) for line in lines)


def versions(root: Path, python: str, run: Run) -> str:
    """`aiohttp 3.14.5, …` of the four."""
    all_of_them = installed(root, python, run)
    names = [re.split(r"[<>=]", one)[0] for one in runtime(root)]
    return ", ".join(f"{name} {all_of_them[name]}" for name in names)


def tested(root: Path, cache: Path, python: str, packages: Sequence[str], tests: Sequence[str], run: Run) -> str:
    """Runs every case of the tests with these packages."""
    inside = environment(root, cache, python, packages, run)
    cached = Path(inside).parents[1] / "pytest"
    said = run([inside, "-m", "pytest", "-o", f"cache_dir={cached}", "-n", "2", "--all", *tests])
    return f"{versions(root, inside, run)}: {said.strip().splitlines()[-1]}"


def linted(root: Path, cache: Path, python: str, run: Run) -> str:
    inside = environment(root, cache, python, runtime(root), run)
    for tool in (["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]):
        run([inside, "-m", *tool])
    return "ruff and mypy find nothing"


def default_cache() -> Path:
    return Path(".cache") / "release"
