"""P1's failures as errors for the client: what each is called, and what the client should do."""

from __future__ import annotations

from proxy.core.responses_events import Failure
from proxy.errors import UpstreamError
from proxy.providers.p1_codex.catalog import LABEL
from proxy.providers.transport import Wire

SERVICE = "codex"
_LAST = frozenset({"response.completed", "response.done", "response.incomplete", "response.failed", "error"})

#: How long a client should wait after a failure that usually passes, when the upstream names no time.
TRANSIENT_WAIT_S = 2.0


def upstream_error(failure: Failure, upstream_id: str | None = None) -> UpstreamError:
    """A reported failure as the error to raise."""
    return UpstreamError(
        failure.message,
        kind=failure.kind,
        status=None if failure.kind in ("transient", "overloaded") else failure.status,
        retry_after=failure.retry_after,
        provider=LABEL,
        code=failure.code,
        upstream_id=upstream_id,
    )


def is_foreign_reasoning(error: UpstreamError) -> bool:
    """Encrypted reasoning is bound to an account; after a change of accounts the backend refuses it."""
    text = error.message.lower()
    return error.status == 400 and (
        error.code in ("thinking_signature_invalid", "invalid_encrypted_content")
        or ("encrypted content" in text and "verified" in text)
    )


def final_error(error: UpstreamError) -> UpstreamError:
    """The error as the client gets it, with a hint where waiting or signing in helps."""
    if error.kind in ("transient", "overloaded") and error.retry_after is None:
        error.retry_after = TRANSIENT_WAIT_S
    if error.kind == "usage_limit" and error.retry_after:
        error.message = f"{error.message} ({LABEL} is available again in {duration(error.retry_after)})"
    if error.status == 401:
        error.message = f"{error.message} (sign in again: model-proxy auth login {LABEL})"
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


WIRE = Wire(LABEL, SERVICE, lambda event: event.get("type") in _LAST, upstream_error)
