"""What the source itself has to say: a clean tree, one version, and a section of CHANGELOG.md for it."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

from release.steps import Failed, Run

VERSION_FILE = "proxy/version.py"
#: What setup.cfg says instead of a number.
VERSION_ATTRIBUTE = "attr: proxy.version.__version__"
_VERSION = re.compile(r'^__version__ = "(\d+\.\d+\.\d+)"$', re.MULTILINE)
_SECTION = re.compile(r"^## (\S+) \((.*)\)$", re.MULTILINE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def setup_cfg(root: Path) -> configparser.ConfigParser:
    found = configparser.ConfigParser()
    found.read(root / "setup.cfg")
    return found


def version(root: Path) -> str:
    """The version of the source. Raises Failed where there is none of the form 1.2.3."""
    found = _VERSION.search((root / VERSION_FILE).read_text())
    if found is None:
        raise Failed(f'{VERSION_FILE} has no line such as __version__ = "1.2.3"')
    return found[1]


def check_version(root: Path, run: Run) -> str:
    """One place has it, no tag has it, and none has a later one."""
    now = version(root)
    said = setup_cfg(root)["metadata"]["version"]
    if said != VERSION_ATTRIBUTE:
        raise Failed(f"setup.cfg says `version = {said}`, not `{VERSION_ATTRIBUTE}`")
    tags = run(["git", "tag", "--list", "v*"]).split()
    numbers = [_numbers(tag) for tag in tags if re.fullmatch(r"v\d+\.\d+\.\d+", tag)]
    if numbers and max(numbers) >= _numbers(f"v{now}"):
        raise Failed(f"{now} is not above v{'.'.join(map(str, max(numbers)))}, which is tagged")
    return f"{now}, from {VERSION_FILE}"


def _numbers(tag: str) -> tuple[int, ...]:
    return tuple(map(int, tag[1:].split(".")))


def check_tree(run: Run) -> str:
    left = run(["git", "status", "--porcelain"]).splitlines()
    if left:
        raise Failed(f"{len(left)} files differ from the commit: {', '.join(line[3:] for line in left[:5])}")
    return f"clean at {run(['git', 'rev-parse', '--short', 'HEAD']).strip()}"


def check_changelog(root: Path, *, rehearsal: bool = False) -> str:
    """The first section is that of the version, with a day, and no section is open. In a rehearsal the first may still
    be, since its day is that of the tag."""
    now, sections = version(root), _SECTION.findall((root / "CHANGELOG.md").read_text())
    if not sections or sections[0][0] != now:
        raise Failed(f"the first section is {sections[0][0] if sections else 'missing'}, not {now}")
    undated = [name for name, when in sections if not _DATE.fullmatch(when)]
    if rehearsal and undated == [now]:
        return f"{now}, open; it gets its day before the tag"
    if undated:
        raise Failed(f"no day stands behind {', '.join(undated)}")
    return f"{now} of {sections[0][1]}"


def changes(root: Path) -> str:
    """The text of the first section."""
    return re.split(r"^## .*$", (root / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1].strip()
