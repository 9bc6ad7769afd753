"""P1's failures as errors for the client."""

from __future__ import annotations

from functools import partial

from proxy.core.convert.whole_answers import response_events
from proxy.core.responses_events import is_last
from proxy.errors import PROGRAM
from proxy.providers.p1_codex.catalog import LABEL
from proxy.providers.upstream import failures
from proxy.providers.upstream.transport import UpstreamProfile

SERVICE = "codex"

upstream_error = partial(failures.upstream_error, LABEL)
SIGN_IN_HINT = f"sign in again: `{PROGRAM} auth login {LABEL}`"
client_error = partial(failures.client_error, sign_in_hint=SIGN_IN_HINT)

PROFILE = UpstreamProfile(LABEL, SERVICE, is_last, upstream_error, whole=response_events, empty_is_failure=True)
