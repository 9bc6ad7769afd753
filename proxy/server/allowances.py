"""The allowances of the accounts, for those who are told of them: whoever watches, and a caller who is refused."""

from __future__ import annotations

from dataclasses import replace

from proxy.core.allowances.accounts import account_key, for_account
from proxy.core.allowances.report import FULL, Allowance, AllowanceWindow, spent_window
from proxy.core.allowances.words import FRESH_S, spent_text, wait_text
from proxy.errors import ProxyError, as_typed
from proxy.observe.monitor.snapshot import AllowanceRow
from proxy.providers.accounts.allowance_store import AllowanceStore
from proxy.providers.upstream.failures import with_long_wait
from proxy.server.state import AppState

#: The window of a limit of which nothing is known but when it ends.
_UNNAMED = "Usage limit"


def watched_rows(state: AppState) -> tuple[AllowanceRow, ...]:
    """For a monitor that somebody looks at: what is old is asked for."""
    state.questions.look()
    return allowance_rows(state.allowances, state.clock())


def allowance_rows(allowances: AllowanceStore, now: float) -> tuple[AllowanceRow, ...]:
    """For the monitor: every window with a share, provider by provider."""
    return tuple(
        AllowanceRow(
            provider,
            window.title,
            0.0 if window.is_over(now) else window.used,
            window.as_of,
            limit=window.limit,
            resets_at=None if window.is_over(now) else window.resets_at,
            reset=window.is_over(now),
        )
        for provider, known in allowances.current.items()
        for window in known.windows
        if window.used is not None
    )


def explained(state: AppState, error: ProxyError, account: str = "") -> ProxyError:
    """The error with what is known of the window that refuses, with a long time to wait in words, and with commands as
    the user types them.

    account  the name of the account that was asked, where the provider has several
    """
    typed = as_typed(error.message, state.command)
    if typed != error.message:
        error = error.replaced(message=typed)
    if error.provider is None:
        return with_long_wait(error)
    told = with_long_wait(_with_window(state, error, account_key(error.provider, account)))
    if not account:
        return told
    message = for_account(told.message, error.provider, account)
    return told.replaced(message=f"{message} (account {account} of {error.provider})")


def _with_window(state: AppState, error: ProxyError, key: str) -> ProxyError:
    """Which window refuses, and when it begins again. What the service says of the time to wait is not contradicted."""
    if error.kind not in ("usage_limit", "rate_limit"):
        return error
    now = state.clock()
    known = state.allowances.of(key) or Allowance()
    window = spent_window(known, now, error.retry_after)
    if error.kind == "rate_limit":
        return error if window is None or not _explains_rate(known, window, now) else _named(error, window, now, key)
    if window is not None:
        return _named(error, window, now, key)
    state.questions.ask(key)
    if not error.retry_after:
        return error
    _note_end(state, key, known, now + error.retry_after)
    wait = wait_text(error.retry_after)
    return error.replaced(message=f"{error.message} ({key} is available again in {wait})")


def _named(error: ProxyError, window: AllowanceWindow, now: float, key: str) -> ProxyError:
    ends = (window.resets_at or now) - now
    words = spent_text(key, window, now)
    return error.replaced(message=f"{error.message} ({words})", retry_after=max(ends, error.retry_after or 0.0))


def _explains_rate(known: Allowance, window: AllowanceWindow, now: float) -> bool:
    """A rate limit may have other reasons: where something pays for more, or the window was told of long ago."""
    return not known.pays_on and now - window.as_of <= FRESH_S


def _note_end(state: AppState, provider: str, known: Allowance, ends: float) -> None:
    """Keeps what a refusal tells: some limit is used up until then."""
    now = state.clock()
    others = tuple(window for window in known.windows if window.title != _UNNAMED)
    window = AllowanceWindow(_UNNAMED, FULL, now, resets_at=ends)
    state.allowances.tell_current(provider, replace(known, windows=(*others, window), whole=True))
