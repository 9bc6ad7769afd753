"""Failures of upstreams as errors for the client: what each is called, and what the client should do."""

from __future__ import annotations

import re

from proxy.core.allowances.words import wait_text
from proxy.core.upstream_failures import Failure, passes
from proxy.errors import ProxyError, UpstreamError
from proxy.providers.upstream.retry import MAX_WAIT_S

#: How long a client should wait after a failure that usually passes, when the upstream names no time.
TRANSIENT_WAIT_S = 2.0
#: Kinds whose status says what the caller should do, whatever the upstream's was. Of what usually passes, the
#: upstream's is kept, unless it says that the request is wrong.
_OWN_STATUS = frozenset({"overloaded", "billing", "usage_limit"})
#: Words of a message that says when.
_TELLS_WHEN = re.compile(r"try again (?:in|at)|available again in|used up until|\breset", re.IGNORECASE)
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
    """The error as the client gets it, with a hint where waiting or signing in helps.

    sign_in_hint  what helps after a 401
    """
    if error.kind in _PASSING and error.retry_after is None and not error.final:
        error = error.replaced(retry_after=TRANSIENT_WAIT_S)
    if error.status == 401:
        error = error.replaced(message=f"{error.message} ({sign_in_hint})")
    return error


def with_long_wait(error: ProxyError) -> ProxyError:
    """The error with the time to wait in its words, where that is longer than ours and than that of clients: few show
    the header."""
    if error.retry_after is None or error.retry_after <= MAX_WAIT_S or _TELLS_WHEN.search(error.message):
        return error
    return error.replaced(message=f"{error.message.rstrip('. ')}; try again in {wait_text(error.retry_after)}")
