"""P1's rate limits as the backend reports them: in headers, in events, and when asked.

They are kept for the log, the terminal and the monitor. They never stop a request: the backend decides, and credits
may pay.
"""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from proxy.auth.grant import number
from proxy.auth.text import printable
from proxy.core.allowances.rate_limits import FULL, Credits, RateLimitStatus, Window
from proxy.core.allowances.report import Allowance, AllowanceWindow
from proxy.core.allowances.words import utc_text
from proxy.errors import UpstreamError
from proxy.observe.lifecycle import Log
from proxy.providers.accounts.allowance_store import AllowanceSink
from proxy.providers.p1_codex.catalog import LABEL
from proxy.providers.p1_codex.failures import client_error

#: The limit of every model without one of its own.
MAIN = "codex"
#: More accounts and limits than one user has; the oldest go.
MAX_ACCOUNTS = 16
MAX_LIMITS = 16
MAX_WORD = 60

#: Seconds between two reports of the same content that are passed on: one comes with every answer.
REPEAT_S = 10.0

#: The log reports a window when its use passes one of these steps, in per cent.
LOG_STEP = 10

#: Positions, not durations: the length of a window is given beside it.
POSITIONS = ("primary", "secondary")
_USED = re.compile(rf"x-(.{{1,{MAX_WORD}}})-(?:{'|'.join(POSITIONS)})-used-percent")
_YES = frozenset({"true", "1"})


def of_headers(headers: Mapping[str, str], now: float) -> RateLimitStatus | None:
    """Rate limits in the headers of an answer, in any spelling; None when there are none."""
    known = {str(name).lower(): str(value) for name, value in headers.items()}
    limits: dict[str, tuple[Window, ...]] = {}
    for name in known:
        found = _USED.fullmatch(name)
        if found is not None and found[1] not in limits and len(limits) < MAX_LIMITS:
            windows = [_of_position(known, f"x-{found[1]}-{position}-", now) for position in POSITIONS]
            limits[found[1]] = tuple([window for window in windows if window is not None])
    active = known.get("x-codex-active-limit")
    if not limits and active is None:
        return None
    return RateLimitStatus(limits, _credits_of_headers(known), active=_limit_id(active) if active else None)


def _of_position(headers: Mapping[str, str], prefix: str, now: float) -> Window | None:
    return window_of(
        used=headers.get(f"{prefix}used-percent"),
        minutes=headers.get(f"{prefix}window-minutes"),
        resets_at=headers.get(f"{prefix}reset-at"),
        resets_after=headers.get(f"{prefix}reset-after-seconds"),
        now=now,
    )


def _credits_of_headers(headers: Mapping[str, str]) -> Credits | None:
    has, unlimited = headers.get("x-codex-credits-has-credits"), headers.get("x-codex-credits-unlimited")
    if has is None and unlimited is None:
        return None
    balance = headers.get("x-codex-credits-balance")
    return Credits(_is_yes(has), _is_yes(unlimited), printable(balance, MAX_WORD) if balance else None)


def _is_yes(value: str | None) -> bool:
    return value is not None and value.strip().lower() in _YES


def of_event(event: Mapping[str, Any], now: float) -> RateLimitStatus:
    """Rate limits in a `codex.rate_limits` event."""
    limit = event.get("metered_limit_name")
    name = _limit_id(limit) if isinstance(limit, str) and limit else MAIN
    windows = _windows(event.get("rate_limits"), POSITIONS, now)
    limits = {name: windows} if windows else {}
    return RateLimitStatus(limits, credits_of(event.get("credits")), _plan(event))


def of_usage(answer: Mapping[str, Any], now: float) -> RateLimitStatus:
    """Rate limits in an answer of the usage endpoint. Additional limits have the names that the backend shows to
    people."""
    members = tuple(f"{position}_window" for position in POSITIONS)
    limits = {MAIN: _windows(answer.get("rate_limit"), members, now)}
    more = answer.get("additional_rate_limits")
    for row in more[:MAX_LIMITS] if isinstance(more, list) else ():
        if isinstance(row, Mapping):
            name = row.get("limit_name") or row.get("metered_feature")
            windows = _windows(row.get("rate_limit"), members, now)
            limits |= {printable(name, MAX_WORD): windows} if isinstance(name, str) and windows else {}
    return RateLimitStatus(limits, credits_of(answer.get("credits")), _plan(answer))


def usage_allowance(answer: Mapping[str, Any], now: float) -> Allowance:
    """The allowance in an answer of the usage endpoint."""
    return allowance_of(of_usage(answer, now), now)


def allowance_of(status: RateLimitStatus, now: float, *, whole: bool = True) -> Allowance:
    """The allowance of these rate limits. `whole`: they are complete."""
    credits = status.credits
    return Allowance(
        tuple(
            AllowanceWindow(
                window.title,
                window.used,
                now,
                limit="" if limit == MAIN else limit,
                minutes=window.minutes,
                resets_at=window.resets_at,
            )
            for limit, windows in status.limits.items()
            for window in windows
        ),
        plan=status.plan or "",
        notes=() if credits is None else (f"Credits: {_credits_in_words(credits)}",),
        whole=whole,
        pays_on=credits is not None and (credits.available or credits.unlimited),
    )


def _credits_in_words(credits: Credits) -> str:
    if credits.unlimited:
        return "unlimited"
    return (credits.balance or "some") if credits.available else "none"


def _windows(holder: Any, members: tuple[str, ...], now: float) -> tuple[Window, ...]:
    rows = [holder.get(member) for member in members] if isinstance(holder, Mapping) else []
    windows = [
        window_of(
            used=row.get("used_percent"),
            minutes=row.get("window_minutes", _minutes(row.get("limit_window_seconds"))),
            resets_at=row.get("reset_at"),
            resets_after=row.get("reset_after_seconds"),
            now=now,
        )
        for row in rows
        if isinstance(row, Mapping)
    ]
    return tuple(window for window in windows if window is not None)


def _minutes(seconds: Any) -> float | None:
    found = number(seconds)
    return None if found is None else found / 60


def window_of(*, used: Any, minutes: Any, resets_at: Any, resets_after: Any, now: float) -> Window | None:
    """Builds a window from numbers or texts; None without a used share. A wait is preferred to a moment: it is right
    whatever this machine's clock says."""
    share = _amount(used)
    if share is None:
        return None
    length, wait = _amount(minutes), _amount(resets_after)
    moment = _amount(resets_at) if wait is None else now + wait
    return Window(share, None if length is None else int(length), moment)


def _amount(value: Any) -> float | None:
    """A finite number within the range of dates; None for anything else."""
    found = number(value)
    return found if found is not None and 0 <= found < 1e11 else None


def credits_of(value: Any) -> Credits | None:
    """The credits in an event or an answer of the usage endpoint."""
    if not isinstance(value, Mapping):
        return None
    balance = value.get("balance")
    shown = printable(str(balance), MAX_WORD) if isinstance(balance, str | int | float) else None
    return Credits(value.get("has_credits") is True, value.get("unlimited") is True, shown or None)


def _plan(holder: Mapping[str, Any]) -> str | None:
    plan = holder.get("plan_type")
    return printable(plan, MAX_WORD) if isinstance(plan, str) and plan else None


def _limit_id(name: str) -> str:
    """A limit's name as written in headers."""
    return name[:MAX_WORD].lower().replace("_", "-")


class RateLimits:
    """The newest report of each account."""

    def __init__(self, log: Log, clock: Callable[[], float], allowances: AllowanceSink) -> None:
        self._log = log
        self._allowances = allowances
        self._clock = clock
        self._known: OrderedDict[str | None, RateLimitStatus] = OrderedDict()
        self._reported: dict[str | None, tuple[object, float]] = {}

    @property
    def known(self) -> Mapping[str | None, RateLimitStatus]:
        """Account -> its rate limits, the latest report last."""
        return MappingProxyType(self._known)

    def observe_headers(self, account: str | None, headers: Mapping[str, str]) -> None:
        """Stores the headers of an answer. The limit that refused an earlier answer is not blamed for this one."""
        found = of_headers(headers, self._clock())
        if found is not None:
            self._keep(account, found)
        elif (known := self._known.get(account)) is not None and known.active is not None:
            self._known[account] = replace(known, active=None)

    def observe_event(self, account: str | None, event: Mapping[str, Any]) -> None:
        """Stores a `codex.rate_limits` event."""
        self._keep(account, of_event(event, self._clock()))

    def client_error(self, account: str | None, error: UpstreamError) -> UpstreamError:
        """The error for the client. A spent limit's error has the time at which it really ends, since the backend may
        name another window: with the week used up it has named the end of the five hours."""
        known, now = self._known.get(account), self._clock()
        if error.kind == "usage_limit" and known is not None:
            moment = known.spent_until(known.active or MAIN, now)
            if moment is not None:
                error = error.replaced(retry_after=max(moment - now, error.retry_after or 0.0))
        return client_error(error)

    def _keep(self, account: str | None, fresh: RateLimitStatus) -> None:
        old = self._known.pop(account, RateLimitStatus())
        limits = {**{name: old.limits[name] for name in old.limits if name not in fresh.limits}, **fresh.limits}
        kept = dict(list(limits.items())[-MAX_LIMITS:])
        self._known[account] = replace(
            fresh,
            limits=kept,
            credits=fresh.credits or old.credits,
            plan=fresh.plan or old.plan,
        )
        if len(self._known) > MAX_ACCOUNTS:
            self._reported.pop(self._known.popitem(last=False)[0], None)
        self._tell(account, fresh)
        for limit, windows in fresh.limits.items():
            before = old.limits.get(limit, ())
            for place, window in enumerate(windows):
                old_use = before[place].used if place < len(before) else None
                if old_use != window.used and (old_use is None or _step(old_use) != _step(window.used)):
                    self._log_window(limit, window)

    def _tell(self, account: str | None, fresh: RateLimitStatus) -> None:
        """Passes a report on, unless only its end moved with the clock."""
        used = {limit: [window.used for window in windows] for limit, windows in fresh.limits.items()}
        now, said = self._clock(), (used, fresh.credits, fresh.plan)
        before = self._reported.get(account)
        if before is None or before[0] != said or not 0 <= now - before[1] < REPEAT_S:
            self._reported[account] = said, now
            self._allowances.tell(LABEL, account, allowance_of(fresh, now, whole=False))

    def _log_window(self, limit: str, window: Window) -> None:
        """Logs a window whose use passed a step or fell back."""
        self._log.write(
            "info",
            LABEL,
            "codex_allowance",
            limit=limit,
            window=window.title,
            usedPercent=window.used,
            resetsAt=None if window.resets_at is None else utc_text(window.resets_at),
        )


def _step(used: float) -> int:
    return math.floor(min(used, FULL) / LOG_STEP)
