"""Failures of upstreams: when a request is sent again, and the error that a client gets otherwise.

Decisions are values; only the runner of attempts acts on them.

The rule is the table `RETRY_BUDGETS`, for every provider and every transport: nothing is replayed once the client has
seen a part of the answer, with one exception (a stream that only produced thinking may start over once), and a failure
after which the client itself repeats is not repeated here for long. A client sees nothing of an answer that is sent
whole before its end.
"""

from __future__ import annotations

from dataclasses import dataclass

from proxy.core.upstream_failures import PASSING_KINDS, Failure, as_seconds, moment_of_http_date, passes
from proxy.core.visible import Visible
from proxy.errors import ProxyError, UpstreamError

#: Attempts after the first.
MAX_RETRIES = 3
#: Repetitions after an empty answer, at most: the model may intend it.
MAX_EMPTY_RETRIES = 2
#: Repetitions of a stream that broke while only thinking was shown.
MAX_THINKING_RETRIES = 1


@dataclass(frozen=True, slots=True)
class RetryBudget:
    """The retries that remain after a failed attempt.

    recovery  whether its cause may be removed and the request sent again at once: a new token, the whole conversation
    failures  how many attempts may be repeated in all
    empties   how many empty answers may be requested again
    """

    recovery: bool
    failures: int
    empties: int


#: What the client has seen -> what is allowed.
RETRY_BUDGETS: dict[Visible, RetryBudget] = {
    **dict.fromkeys(
        (Visible.NOTHING, Visible.FRAMING, Visible.BUFFERED), RetryBudget(True, MAX_RETRIES, MAX_EMPTY_RETRIES)
    ),
    Visible.THINKING: RetryBudget(False, MAX_THINKING_RETRIES, 0),
    Visible.CONTENT: RetryBudget(False, 0, 0),
}

BASE_S = 2.0
CAP_S = 30.0
#: A longer wait is left to the client, which can show it to its user.
MAX_WAIT_S = 30.0
MIN_WAIT_S = 0.1

RETRYABLE = PASSING_KINDS | {"transport"}


@dataclass(frozen=True, slots=True)
class Retry:
    """Try again after `after` seconds."""

    after: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Report the error to the client."""


Decision = Retry | GiveUp


def backoff(attempt: int, chance: float) -> float:
    """Seconds before retry `attempt` (0, 1, 2 …): between half of and the whole step of 2, 4, 8 … at most 30 s."""
    step = min(CAP_S, BASE_S * float(2**attempt))
    return step * (0.5 + 0.5 * chance)


def decide(error: ProxyError, *, attempt: int, visible: Visible, chance: float) -> Decision:
    """Decides what follows a failed attempt.

    attempt  how many attempts were repeated already
    chance   a random number from 0 to 1
    """
    if not isinstance(error, UpstreamError) or error.kind not in RETRYABLE or not error.repeatable or error.final:
        return GiveUp()
    if attempt >= RETRY_BUDGETS[visible].failures:
        return GiveUp()
    if error.retry_after is None:
        return Retry(backoff(attempt, chance))
    return Retry(max(MIN_WAIT_S, error.retry_after)) if error.retry_after <= MAX_WAIT_S else GiveUp()


def decide_empty(*, attempt: int, visible: Visible, after_tool_result: bool, chance: float) -> Decision:
    """Decides what follows an empty answer. After a tool result the call itself may have been the answer, so one more
    attempt is enough."""
    allowed = RETRY_BUDGETS[visible].empties
    if attempt >= (min(1, allowed) if after_tool_result else allowed):
        return GiveUp()
    return Retry(backoff(attempt, chance))


def parse_retry_after(value: str | None, *, now: float) -> float | None:
    """Seconds of a `Retry-After` header: a number, or an HTTP date; None for anything else.

    >>> parse_retry_after("1.5", now=0), parse_retry_after("soon", now=0)
    (1.5, None)
    """
    seconds = as_seconds(value)
    if seconds is not None or value is None:
        return seconds
    moment = moment_of_http_date(value)
    return None if moment is None else as_seconds(moment - now)


#: How long a client should wait after a failure that usually passes, without a time from the upstream.
TRANSIENT_WAIT_S = 2.0
#: Kinds that have our status, whatever the upstream's was. Failures that usually pass keep the upstream's, unless it
#: says that the request is wrong.
_OWN_STATUS = frozenset({"overloaded", "billing", "usage_limit"})
#: Kinds that usually pass.
_PASSING = frozenset({"transient", "upstream_timeout", "overloaded"})


def upstream_error(label: str, failure: Failure, upstream_id: str | None = None) -> UpstreamError:
    """A reported failure as the error to raise."""
    says_later = failure.status >= 500 or passes(failure.status)
    own = failure.kind in _OWN_STATUS or (failure.kind in _PASSING and not says_later)
    return UpstreamError(
        failure.message,
        kind=failure.kind,
        status=None if own else failure.status,
        retry_after=failure.retry_after,
        provider=label,
        code=failure.code,
        upstream_id=upstream_id,
    )


def client_error(error: UpstreamError, *, sign_in_hint: str) -> UpstreamError:
    """The error for the client, with a hint when waiting or signing in helps.

    sign_in_hint  what helps after a 401
    """
    if error.kind in _PASSING and error.retry_after is None and not error.final:
        error = error.replaced(retry_after=TRANSIENT_WAIT_S)
    if error.status == 401:
        error = error.replaced(message=f"{error.message} ({sign_in_hint})")
    return error
