"""`scripts/mutants`: which small changes of the source the tests notice."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from .source import Mutant
from .suite import NOTICED, Options, Suite

ROOMS = ["proxy/providers/upstream", "proxy/core/convert", "proxy/server"]
_PYTEST = ["-pno:xdist", "-pno:cacheprovider", "--capture=sys", "--tb=no", "-otmp_path_retention_policy=none"]
Verdicts = Mapping[Mutant, Mapping[str, Any]]


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    before = read(options.compare) if options.compare else {}
    again = {mutant: verdict["test"] for mutant, verdict in before.items() if verdict["outcome"] in NOTICED}
    chosen = Options(options.rooms or ROOMS, options.number, options.seed, again, options.workers, options.cpu)
    suite = Suite(chosen, _say, partial(write, options.out))
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        if status := pytest.main([*_PYTEST, f"--basetemp={folder}/tests", *options.pytest], [suite]):
            return int(status)
    now = {mutant: asdict(verdict) for mutant, verdict in suite.verdicts.items()}
    _say("", *table(now))
    lost = [mutant for mutant in again if now.get(mutant, {"outcome": "gone"})["outcome"] not in NOTICED]
    for mutant in lost:
        outcome = now[mutant]["outcome"] if mutant in now else "gone from the source"
        _say(f"{outcome}, before {before[mutant]['outcome']} by {before[mutant]['test']}: {mutant}")
    return int(any(mutant in now for mutant in lost))


def table(verdicts: Verdicts) -> list[str]:
    """How many of each outcome in each folder, and those that no test notices."""
    counts = Counter((str(Path(mutant.file).parent), verdict["outcome"]) for mutant, verdict in verdicts.items())
    lines = [f"{folder:40} {outcome:10} {count:4}" for (folder, outcome), count in sorted(counts.items())]
    outcomes = {mutant: verdict["outcome"] for mutant, verdict in verdicts.items()}
    lines += [f"{outcome}: {mutant}" for mutant, outcome in outcomes.items() if outcome not in NOTICED]
    totals = ", ".join(f"{count} {outcome}" for outcome, count in Counter(outcomes.values()).most_common())
    return [*lines, f"{len(verdicts)} mutants: {totals}"]


def read(path: Path) -> dict[Mutant, dict[str, Any]]:
    return {Mutant(**row["mutant"]): row for row in json.loads(path.read_text("utf-8"))["mutants"]}


def write(path: Path | None, suffix: str, content: object) -> None:
    if path is not None:
        path.with_suffix(suffix + path.suffix).write_text(json.dumps(content), "utf-8")


def _say(*lines: str) -> None:
    print(*lines, sep="\n", file=sys.__stderr__, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/mutants",
        usage="%(prog)s [OPTION…] [-- ARGUMENT OF PYTEST…]",
        description="Changes the code in small ways, one at a time, and tells which changes no test notices. Only what "
        "runs in the process of the tests is changed. Run it before and after a sample of a table is made smaller.",
    )
    parser.add_argument("--number", type=int, default=220, help="how many changes (220)")
    parser.add_argument("--seed", type=int, default=1, help="another one chooses other changes")
    parser.add_argument("--rooms", nargs="+", metavar="PATH", help=f"folders or files to change ({' '.join(ROOMS)})")
    parser.add_argument("--workers", type=int, default=2, help="children at once (2)")
    parser.add_argument("--cpu", type=float, default=60, help="CPU seconds for the tests of one change (60)")
    parser.add_argument("--out", type=Path, help="JSON file of the verdicts; FILE.reach.json says what a test reaches")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="only what this --out noticed; 1 if one is not")
    parser.add_argument("pytest", nargs="*", help="as of scripts/test, behind --")
    return parser


if __name__ == "__main__":
    sys.exit(main())
