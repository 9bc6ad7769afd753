"""The allowances in the terminal."""

from __future__ import annotations

from proxy.observe.monitor.snapshot import AllowanceRow
from proxy.observe.monitor.terminal.strip import allowance_lines, strip_line

NOW = 1_795_180_000.0


def test_a_window_that_has_begun_again_is_not_shown_as_unused() -> None:
    rows = [AllowanceRow("p2", "Weekly", 0.0, NOW - 7_200, reset=True)]
    line = "".join(run.text for run in allowance_lines(rows, 100, NOW)[0])
    assert "begun again since" in line and "0%" not in line
    assert "0%" not in "".join(run.text for run in strip_line(rows, 100, NOW))
