"""Checks a release and tags it.

Every step runs, also behind one that failed; the tag is made only when all of them ran, none failed, and it was not a
`--dry-run`. Nothing is pushed and nothing is uploaded.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import wheel
from release import audit, contents, environments, source
from release.steps import Outcome, Run, Step, run_command, run_steps, table

ROOT = Path(__file__).parents[3]

#: What to do about a step that failed.
ADVICE = {
    "tree": "commit or remove what `git status` shows",
    "version": f"write the next version into {source.VERSION_FILE}, and nowhere else",
    "changelog": "put the day behind the version, as in `## 1.2.3 (2026-11-23)`, and leave no section open",
    "lint": "mend what is named; scripts/test looks for the same",
    "lowest": "raise the lower bound in setup.cfg to what works, or mend the code",
    "audit": "raise the bound of the package that is named; where no index answers, look by hand, then --without-audit",
    "wheel": "compare setup.cfg ([options.package_data]) with scripts/lib/release/contents.py",
    "container": f"copy single files and folders in {contents.DOCKERFILE}",
}
NEWEST_ADVICE = "mend what fails with the newest packages, or lower their upper bounds in setup.cfg"


class Release:
    """The steps over one tree.

    tests   arguments for pytest, none for all tests
    pythons  interpreters that are installed
    rehearsal  nothing will be tagged: the change log may still be open
    """

    def __init__(
        self,
        root: Path,
        cache: Path,
        run: Run,
        pythons: Sequence[str],
        folder: Path,
        tests: Sequence[str] = (),
        *,
        rehearsal: bool = False,
    ) -> None:
        self._root, self._cache, self._run = root, cache, run
        self._pythons, self._folder, self._tests, self._rehearsal = pythons, folder, tests, rehearsal

    def steps(self) -> list[Step]:
        root, run = self._root, self._run
        promised = environments.minors(root)
        checks: dict[str, Callable[[], str]] = {
            "tree": lambda: source.check_tree(run),
            "version": lambda: source.check_version(root, run),
            "changelog": lambda: source.check_changelog(root, rehearsal=self._rehearsal),
            "lint": lambda: environments.linted(root, self._cache, self._python(promised[0]), run),
            "lowest": lambda: self._tested(promised[0], environments.lowest(root)),
            **{f"python3.{minor}": self._newest(minor) for minor in promised},
            "audit": self._audited,
            "wheel": self._wheel,
            "container": lambda: contents.check_container(root, run),
        }
        return [Step(name, check, ADVICE.get(name, NEWEST_ADVICE)) for name, check in checks.items()]

    def _python(self, minor: int) -> str:
        return environments.python_of(minor, self._pythons)

    def _tested(self, minor: int, packages: Sequence[str]) -> str:
        python = self._python(minor)
        return environments.tested(self._root, self._cache, python, packages, self._tests, self._run)

    def _newest(self, minor: int) -> Callable[[], str]:
        return lambda: self._tested(minor, environments.runtime(self._root))

    def _audited(self) -> str:
        """Of the newest packages, with what they need."""
        python = self._python(environments.minors(self._root)[0])
        inside = environments.environment(self._root, self._cache, python, environments.runtime(self._root), self._run)
        return audit.audited(environments.installed(self._root, inside, self._run))

    def _wheel(self) -> str:
        """Builds it, looks into it, and tries it with each Python."""
        built = wheel.build(self._folder)
        seen = [contents.check_wheel(self._root, built)]
        seen += [wheel.tried(python, built, self._folder / str(n)) for n, python in enumerate(self._pythons)]
        return "\n   ".join(seen)


def selected(steps: Sequence[Step], only: Sequence[str], skip: Sequence[str]) -> list[Step]:
    """Those that were asked for, in their own order. Raises SystemExit for a name that none has."""
    names = [step.name for step in steps]
    if unknown := sorted({*only, *skip} - set(names)):
        raise SystemExit(f"no such step: {', '.join(unknown)}; there are {', '.join(names)}")
    return [step for step in steps if (not only or step.name in only) and step.name not in skip]


def verdict(outcomes: Sequence[Outcome], every: int, dry_run: bool) -> str:
    """Why no tag is made; "" when it is."""
    if failed := [outcome.step.name for outcome in outcomes if outcome.result == "FAILED"]:
        return f"no tag: {', '.join(failed)} failed"
    if len(outcomes) < every:
        return "no tag: not all steps ran"
    return "no tag: --dry-run" if dry_run else ""


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/release", description=__doc__)
    parser.add_argument("--dry-run", action="store_true", help="everything but the tag")
    parser.add_argument("--only", nargs="+", default=[], metavar="STEP", help="these steps, and no tag")
    parser.add_argument("--skip", nargs="+", default=[], metavar="STEP", help="all but these, and no tag")
    parser.add_argument("--list", action="store_true", help="name the steps")
    parser.add_argument("--without-audit", action="store_true", help="where the index does not tell of vulnerabilities")
    parser.add_argument("--tests", nargs="+", default=[], metavar="PATH", help="these tests instead of all; no tag")
    parser.add_argument("--cache", type=Path, default=environments.default_cache(), help="where environments are kept")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None, run: Run = run_command) -> int:
    asked = arguments(words)
    with tempfile.TemporaryDirectory() as folder:
        pythons = wheel.pythons()
        release = Release(
            ROOT, asked.cache.absolute(), run, pythons, Path(folder), asked.tests, rehearsal=asked.dry_run
        )
        every = release.steps()
        if asked.list:
            print("\n".join(step.name for step in every))
            return 0
        if asked.without_audit:
            print("!! vulnerabilities are NOT checked (--without-audit)")
            every = [step for step in every if step.name != "audit"]
        outcomes = run_steps(selected(every, asked.only, asked.skip), lambda line: print(line, flush=True))
    print(f"\n{table(outcomes)}\n")
    reason = verdict(outcomes, len(every), asked.dry_run or bool(asked.tests))
    tag = f"v{source.version(ROOT)}"
    print(f"{reason or 'tagged'}: {tag}\n\n{source.changes(ROOT)[:2000]}")
    if not reason:
        run(["git", "tag", "--annotate", tag, "--message", f"{tag}\n\n{source.changes(ROOT)}"])
        print(f"\nnext: git push origin {tag}")
    return int(any(outcome.result == "FAILED" for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
