"""The allowances of the accounts as monitors show them, and in the words of errors for a caller who is refused."""

from __future__ import annotations

import re

from proxy.core.allowances.accounts import account_key, for_account
from proxy.core.allowances.report import Allowance, AllowanceWindow, spent_window, with_noted
from proxy.core.allowances.words import FRESH_S, spent_text, wait_text
from proxy.core.invalid import cut
from proxy.core.routing import model_family, proposal
from proxy.errors import ProxyError, UpstreamError, as_typed
from proxy.observe.monitor.snapshot import AllowanceRow
from proxy.providers.accounts.allowance_store import AllowanceStore
from proxy.providers.upstream.failures import MAX_WAIT_S
from proxy.server.request.state import AppState

#: Words of a message that names a time.
_NAMES_TIME = re.compile(r"try again (?:in|at)|available again in|used up until|\breset", re.IGNORECASE)

_NOT_LISTED = "Your plan does not list"


def watched_rows(state: AppState) -> tuple[AllowanceRow, ...]:
    """The rows for a monitor in use; asks for what is old."""
    state.questions.look()
    return allowance_rows(state.allowances, state.clock())


def allowance_rows(allowances: AllowanceStore, now: float) -> tuple[AllowanceRow, ...]:
    """The monitor's rows: every window with a share, provider by provider."""
    return tuple(row for provider, known in allowances.current.items() for row in rows_of(provider, known, now))


def rows_of(provider: str, known: Allowance, now: float) -> tuple[AllowanceRow, ...]:
    """The rows of one provider."""
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
        for window in known.windows
        if window.used is not None
    )


def explained(state: AppState, error: ProxyError, account: str = "", model: str | None = None) -> ProxyError:
    """The error with the window that refuses, if known, with a long wait in words, and with commands as the user types
    them.

    account  the name of the account that was asked, if the provider has several
    model    the model that was asked for
    """
    typed = as_typed(error.message, state.command)
    if typed != error.message:
        error = error.replaced(message=typed)
    if error.provider is None:
        return with_long_wait(error)
    key = account_key(error.provider, account)
    known = with_long_wait(_with_window(state, error, key, model_family(model or "")))
    known = _with_plan(state, known, key, model or "")
    if not account:
        return known
    message = for_account(known.message, error.provider, account)
    return known.replaced(message=f"{message} (account {account} of {error.provider})")


def _with_plan(state: AppState, error: ProxyError, key: str, model: str) -> ProxyError:
    """The error with near names, if a service refuses a model that it does not list for the account."""
    if not isinstance(error, UpstreamError) or error.kind not in ("invalid_request", "not_found", "permission"):
        return error
    catalog = state.accounts.lacks(key, model, state.config())
    if catalog is None or _NOT_LISTED in error.message:
        return error
    meant = catalog.resolved(model)
    if error.kind != "not_found" and "model" not in error.message.lower():  # refused for something else
        return error
    near = proposal(meant, [catalog], "")
    words = f"{_NOT_LISTED} {cut(meant)} ({key}). {near}`{state.command} models` shows what it lists."
    return error.replaced(message=f"{error.message.rstrip('. ')}. {words}")


def _with_window(state: AppState, error: ProxyError, key: str, family: str) -> ProxyError:
    """The error with the window that refuses, and its reset. The service's time to wait is not contradicted: a limit
    that passes sooner is another one."""
    if error.kind not in ("usage_limit", "rate_limit"):
        return error
    now = state.clock()
    known = state.allowances.of(key) or Allowance()
    window = spent_window(known, now, error.retry_after, family)
    if error.kind == "rate_limit":
        passes = error.retry_after is not None or window is None or not _explains_rate(known, window, now)
        return error if passes or window is None else _named(error, window, now, key)
    if window is not None:
        return _named(error, window, now, key)
    state.questions.ask(key)
    if not error.retry_after:
        return error
    # the choice of an account uses this, too
    state.allowances.tell_current(key, with_noted(known, family, now + error.retry_after, now))
    wait = wait_text(error.retry_after)
    return error.replaced(message=f"{error.message} ({key} is available again in {wait})")


def _named(error: ProxyError, window: AllowanceWindow, now: float, key: str) -> ProxyError:
    ends = (window.resets_at or now) - now
    words = spent_text(key, window, now)
    return error.replaced(message=f"{error.message} ({words})", retry_after=max(ends, error.retry_after or 0.0))


def _explains_rate(known: Allowance, window: AllowanceWindow, now: float) -> bool:
    """Whether a window explains a rate limit. It may not if something pays for more, or if its report is old."""
    return not known.pays_on and now - window.as_of <= FRESH_S


def with_long_wait(error: ProxyError) -> ProxyError:
    """The error with the time to wait in its message, if that is longer than we and clients wait: few show the
    header."""
    if error.retry_after is None or error.retry_after <= MAX_WAIT_S or _NAMES_TIME.search(error.message):
        return error
    return error.replaced(message=f"{error.message.rstrip('. ')}; try again in {wait_text(error.retry_after)}")
