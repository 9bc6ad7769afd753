"""What the system tells of this process, where there is /proc."""

from __future__ import annotations

import os
from pathlib import Path

from proxy.observe.metrics.registry import Metric
from proxy.observe.metrics.table import CPU, MAX_FDS, MEMORY, OPEN_FDS, STARTED

_PROC = Path("/proc")
#: Fields of `/proc/self/stat` behind the name of the program, which may hold anything: man 5 proc counts them from 3.
_USER, _SYSTEM, _START, _PAGES = 14 - 3, 15 - 3, 22 - 3, 24 - 3
_NO_LIMIT = "unlimited"


def process_values(proc: Path = _PROC) -> dict[Metric, float]:
    """metric -> its value; nothing where the system tells nothing."""
    try:
        stat = (proc / "self/stat").read_text().rpartition(")")[2].split()
        boot = next(int(line.split()[1]) for line in _lines(proc / "stat") if line.startswith("btime"))
        ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
        values = {
            MEMORY: float(int(stat[_PAGES]) * page),
            CPU: (int(stat[_USER]) + int(stat[_SYSTEM])) / ticks,
            STARTED: boot + int(stat[_START]) / ticks,
            OPEN_FDS: float(sum(1 for _ in (proc / "self/fd").iterdir())),
        }
        limit = next(line for line in _lines(proc / "self/limits") if line.startswith("Max open files")).split()[3]
        return values if limit == _NO_LIMIT else values | {MAX_FDS: float(limit)}
    except (OSError, ValueError, IndexError, StopIteration):
        return {}


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()
