"""The allowances of the accounts, as the server tells of them."""

from __future__ import annotations

from proxy.core.allowances.report import Allowance, AllowanceWindow
from proxy.observe.monitor.snapshot import AllowanceRow
from proxy.providers.accounts.allowance_store import AllowanceStore
from proxy.server.serving.allowances import allowance_rows

NOW = 1_795_180_000.0


def test_rows_for_the_monitor_never_show_a_window_that_is_over_as_full() -> None:
    store = AllowanceStore(clock=lambda: NOW)
    full = AllowanceWindow("5 hours", 100.0, NOW, resets_at=NOW + 60)
    store.tell("p2", None, Allowance((full, AllowanceWindow("Month", None, NOW, words="$1.00 used"))))
    store.tell("p1", None, Allowance((AllowanceWindow("Weekly", 3.0, NOW, limit="Spark"),)))
    weekly = AllowanceRow("p1", "Weekly", 3.0, NOW, limit="Spark")
    assert allowance_rows(store, NOW) == (weekly, AllowanceRow("p2", "5 hours", 100.0, NOW, resets_at=NOW + 60))
    assert allowance_rows(store, NOW + 60) == (weekly, AllowanceRow("p2", "5 hours", 0.0, NOW, reset=True))
