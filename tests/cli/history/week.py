"""Requests of a few days, as they may be in a history."""

from __future__ import annotations

from typing import Any

from observe.history.past import later

from proxy.observe.history.past_request import PastRequest

HOUR, DAY = 3600, 86_400
#: Names as a client may send them.
HOSTILE = "\x1b[2J\x1b]0;owned\x07名前が長い\u202eevil\nx\t" + "длинный" * 9


def session(number: int) -> str:
    return f"5f3a91c{number}-0000-4000-8000-000000000000"


def week() -> list[PastRequest]:
    """Three days, of different accounts, models and projects, with an unknown cache; a model that does not exist, and a
    request of long ago."""
    found = []
    for day in range(3):
        for hour in (0, 2):
            number = day * 2 + hour
            change: dict[str, Any] = {
                "account": ("p1", "p1/work", "p2")[day],
                "served": ("gpt-5.6", "gpt-5.6", "kimi-k3")[day],
                "project": ("shop", "search", None)[day],
                "session": session(day),
                "caller": None if hour else "anna",
                "first_ms": 500 * (number + 1),
                "total_ms": 9000 * (number + 1),
                "input": 1_000_000 * (day + 1),
                "cached": None if day == 2 else 750_000,
                "output": 10_000,
                "thinking": 4_000,
            }
            found.append(later(-day * DAY - hour * HOUR - 60, **change))
    unknown = {"input": None, "cached": None, "output": None, "thinking": None, "first_ms": None}
    found.append(later(-120, account=None, served="gtp-5", project="shop", outcome="failed", http=404, **unknown))
    found.append(later(-100 * DAY, project="old", session=session(9)))
    return found
