"""What is left of an allowance."""

from __future__ import annotations

from samples import rows

from proxy.core.allowances.rate_limits import RateLimitStatus, Window

NOW = 1000.0


@rows(
    "windows, until",
    [
        ((), None),
        ((Window(99.9, 300, 2000),), None),
        ((Window(100, 300, 2000),), 2000),
        ((Window(100, 300, 2000), Window(120, 10_080, 9000)), 9000),
        ((Window(100, 300, 9000), Window(100, 10_080, 2000)), 9000),
        ((Window(30, 300, 2000), Window(100, 10_080, 9000)), 9000),
        ((Window(100, 300, 1000),), None),
        ((Window(100, 300, None),), None),
    ],
)
def test_a_spent_limit_is_back_when_all_its_used_up_windows_are(
    windows: tuple[Window, ...], until: float | None
) -> None:
    assert RateLimitStatus({"codex": windows}).spent_until("codex", NOW) == until
    assert RateLimitStatus({"codex": windows}).spent_until("other", NOW) is None


@rows("minutes, title", [(300, "5 hours"), (10_080, "Weekly"), (1440, "1 day"), (90, "90 minutes"), (None, "Window")])
def test_windows_are_called_by_their_length(minutes: int | None, title: str) -> None:
    assert Window(1, minutes).title == title
