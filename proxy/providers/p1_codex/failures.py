"""P1's failures as errors for the client."""

from __future__ import annotations

from functools import partial

from proxy.core.responses_events import is_last
from proxy.providers.p1_codex.catalog import LABEL
from proxy.providers.upstream import failures
from proxy.providers.upstream.transport import Wire

SERVICE = "codex"

upstream_error = partial(failures.upstream_error, LABEL)
final_error = partial(failures.final_error, LABEL, cure=f"sign in again: model-proxy auth login {LABEL}")

WIRE = Wire(LABEL, SERVICE, is_last, upstream_error)
