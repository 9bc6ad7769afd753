"""Failures of upstreams as errors for the client: what each is called, and what the client should do."""

from __future__ import annotations

from proxy.core.upstream_failures import Failure
from proxy.errors import UpstreamError

#: How long a client should wait after a failure that usually passes, when the upstream names no time.
TRANSIENT_WAIT_S = 2.0
#: Kinds whose status says what the caller should do, whatever the upstream's was. Of what usually passes, the
#: upstream's is kept, unless it says that the request is wrong.
_OWN_STATUS = frozenset({"overloaded", "billing", "usage_limit"})
#: Kinds that usually pass.
_PASSING = frozenset({"transient", "upstream_timeout", "overloaded"})


def upstream_error(label: str, failure: Failure, upstream_id: str | None = None) -> UpstreamError:
    """A reported failure as the error to raise."""
    own = failure.kind in _OWN_STATUS or (failure.kind in _PASSING and failure.status < 500)
    return UpstreamError(
        failure.message,
        kind=failure.kind,
        status=None if own else failure.status,
        retry_after=failure.retry_after,
        provider=label,
        code=failure.code,
        upstream_id=upstream_id,
    )


def client_error(label: str, error: UpstreamError, *, sign_in_hint: str) -> UpstreamError:
    """The error as the client gets it, with a hint where waiting or signing in helps.

    sign_in_hint  what helps after a 401
    """
    if error.kind in _PASSING and error.retry_after is None and not error.final:
        error = error.replaced(retry_after=TRANSIENT_WAIT_S)
    if error.kind == "usage_limit" and error.retry_after:
        wait = duration(error.retry_after)
        error = error.replaced(message=f"{error.message} ({label} is available again in {wait})")
    if error.status == 401:
        error = error.replaced(message=f"{error.message} ({sign_in_hint})")
    return error


def duration(seconds: float) -> str:
    """Words for a wait.

    >>> duration(7200), duration(90)
    ('2 h 0 min', '2 min')
    """
    minutes = -(-int(seconds) // 60)
    days, hours = minutes // 1440, minutes % 1440 // 60
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min"
