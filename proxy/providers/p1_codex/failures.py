"""P1's failures: what is special about them."""

from __future__ import annotations

from functools import partial

from proxy.errors import UpstreamError
from proxy.providers import failures
from proxy.providers.p1_codex.catalog import LABEL
from proxy.providers.transport import Wire

SERVICE = "codex"
_LAST = frozenset({"response.completed", "response.done", "response.incomplete", "response.failed", "error"})

upstream_error = partial(failures.upstream_error, LABEL)
final_error = partial(failures.final_error, LABEL, cure=f"sign in again: model-proxy auth login {LABEL}")

WIRE = Wire(LABEL, SERVICE, lambda event: event.get("type") in _LAST, upstream_error)


def is_foreign_reasoning(error: UpstreamError) -> bool:
    """Encrypted reasoning is bound to an account; after a change of accounts the backend refuses it."""
    text = error.message.lower()
    return error.status == 400 and (
        error.code in ("thinking_signature_invalid", "invalid_encrypted_content")
        or ("encrypted content" in text and "verified" in text)
    )
