"""P3's failures as errors for the client.

The service has one status for several things: a 403 is a missing entitlement, a spent budget or a refused token, and a
bad image may come as a 500. The shared reading of failures knows its codes; here are its statuses and what to do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from proxy.core.convert.whole_answers import response_events
from proxy.core.responses_events import is_last
from proxy.core.upstream_failures import Failure
from proxy.errors import PROGRAM, UpstreamError
from proxy.providers.p3_grok.catalog import LABEL
from proxy.providers.upstream import failures
from proxy.providers.upstream.transport import UpstreamProfile

SERVICE = "grok"

#: How much of the service's words is shown, in characters.
MAX_WORDS = 280

#: Upstream's status -> ours: clients hide the words of a 404, and take a 426 for one about WebSockets.
_STATUSES = {404: 400, 426: 400}

#: Statuses that pass elsewhere. Here the model may be at work on the request, and a search would be made twice.
_FINAL = frozenset({408, 409})

#: Whether a failure is of this sort, in lower case -> what to do about it. The first that fits is told.
_CURES: tuple[tuple[Callable[[Failure, str], bool], str], ...] = (
    (
        lambda failure, _: failure.status == 426,
        "set PROXY_P3_CLIENT_VERSION, or p3.clientVersion in the config file, to a version that it accepts",
    ),
    (
        lambda failure, words: failure.code == "invalid_image" or "could not process image" in words,
        "an image of this conversation is refused: leave images out with PROXY_P3_TOOL_IMAGE=omit, or begin a new "
        "conversation",
    ),
    (
        lambda failure, _: "free-usage-exhausted" in (failure.code or ""),
        "the free allowance counts the last 24 hours and comes back by and by; a subscription has a larger one: "
        "https://grok.com",
    ),
    (
        lambda failure, _: failure.kind == "billing",
        "no credits are left, or the spending limit is reached: see credits and plan at https://grok.com; signing in "
        "again does not help",
    ),
    (
        lambda failure, _: failure.kind == "permission",
        "the account, its plan, team or region has no access to this, or no credits; signing in again does not help",
    ),
    (
        lambda failure, words: failure.status in (400, 404) and "model" in words and "not exist" in words,
        "which models there are depends on the plan and the region of the account",
    ),
)


def upstream_error(failure: Failure, upstream_id: str | None = None) -> UpstreamError:
    """A reported failure as the error to raise."""
    words, lower = failure.message, failure.message.lower()
    if len(words) > MAX_WORDS:
        words = f"{words[: MAX_WORDS - 1]}…"
    if failure.kind == "context" and "prompt is too long" not in lower:
        words = f"prompt is too long: {words}"
    cure = next((cure for fits, cure in _CURES if fits(failure, lower)), None)
    told = replace(failure, message=f"{words} ({LABEL}: {cure})" if cure else words)
    error = failures.upstream_error(LABEL, told, upstream_id)
    if failure.status in _FINAL:
        return error.replaced(final=True)
    status = _STATUSES.get(failure.status)
    return error if status is None else error.replaced(kind="invalid_request", status=status)


client_error = partial(failures.client_error, sign_in_hint=f"sign in again: `{PROGRAM} auth login {LABEL}`")

#: What the service tells of the model beside an answer.
NOTED = ("x-grok-context-window", "x-grok-max-completion-tokens", "x-models-etag")

PROFILE = UpstreamProfile(
    LABEL, SERVICE, is_last, upstream_error, whole=response_events, empty_is_failure=True, lenient=True, noted=NOTED
)
