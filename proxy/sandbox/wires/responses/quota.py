"""The used quota of a simulated account, in the backend's three forms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

POSITIONS = ("primary", "secondary")

#: The used share at which a window is exhausted.
EXHAUSTED_PERCENT = 100


@dataclass(slots=True)
class Quota:
    """The quota. `windows` are at most two, by their position: (percent used, length in minutes).

    `families` are further limits, by id: their headers are called `x-<id>-…` with hyphens for underscores."""

    windows: dict[str, tuple[float, int]] = field(
        default_factory=lambda: {"primary": (12, 300), "secondary": (3, 10_080)}
    )
    families: dict[str, Mapping[str, tuple[float, int]]] = field(default_factory=dict)
    reset_after_s: int = 600  # of every window
    has_credits: bool = False
    balance: str = "0"
    plan: str = "plus"

    @property
    def reached(self) -> bool:
        return any(percent >= EXHAUSTED_PERCENT for percent, _ in self.windows.values())

    def headers(self, now: float) -> dict[str, str]:
        """Headers of every answer; `reset-at` in epoch seconds."""
        headers = {
            "x-codex-credits-has-credits": str(self.has_credits).lower(),
            "x-codex-credits-unlimited": "false",
            "x-codex-credits-balance": self.balance,
        }
        for limit, windows in {"codex": self.windows, **self.families}.items():
            for name, (percent, minutes) in windows.items():
                window = f"x-{limit.replace('_', '-')}-{name}"
                headers[f"{window}-used-percent"] = f"{percent:.1f}"
                headers[f"{window}-window-minutes"] = str(minutes)
                headers[f"{window}-reset-after-seconds"] = str(self.reset_after_s)
                headers[f"{window}-reset-at"] = str(self._reset_at(now))
        return headers

    def usage(self, now: float) -> dict[str, Any]:
        """The body of the usage route."""
        return {
            "plan_type": self.plan,
            "rate_limit": {
                **self._state,
                **{f"{name}_window": self._window(name, now, limit_window_seconds=60) for name in POSITIONS},
            },
            "additional_rate_limits": [],
            "credits": self._credits,
            "rate_limit_reached_type": "rate_limit_reached" if self.reached else None,
        }

    def event(self, now: float) -> dict[str, Any]:
        """The event that precedes an answer on a socket."""
        return {
            "type": "codex.rate_limits",
            "plan_type": self.plan,
            "metered_limit_name": "codex",
            "rate_limits": {
                **self._state,
                **{name: self._window(name, now, window_minutes=1) for name in POSITIONS},
            },
            "credits": self._credits,
        }

    @property
    def _state(self) -> dict[str, bool]:
        return {"allowed": self.has_credits or not self.reached, "limit_reached": self.reached}

    @property
    def _credits(self) -> dict[str, Any]:
        return {"has_credits": self.has_credits, "unlimited": False, "balance": self.balance}

    def _window(self, name: str, now: float, **lengths: int) -> dict[str, Any] | None:
        """A window. `lengths` are names of the length, each with how many of its unit make a minute."""
        if name not in self.windows:
            return None
        percent, minutes = self.windows[name]
        return {
            "used_percent": percent,
            **{unit: minutes * count for unit, count in lengths.items()},
            "reset_after_seconds": self.reset_after_s,
            "reset_at": self._reset_at(now),
        }

    def _reset_at(self, now: float) -> int:
        return int(now) + self.reset_after_s
