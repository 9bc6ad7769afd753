"""Asking whether the page of a sign-in was confirmed. There is no other way to learn it: nothing calls back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from proxy.auth.device import MAX_FAILURES
from proxy.auth.http import TokenResponse
from proxy.core.secret import Secret
from proxy.errors import ProxyError, SignInError, UpstreamError
from proxy.providers.p5_cursor.catalog import LABEL

#: As the vendor's client does it: about 24 minutes in all.
ATTEMPTS = 150
FIRST_DELAY_MS, GROWTH, LONGEST_DELAY_MS = 1000.0, 1.2, 10_000.0

#: The page was not confirmed yet.
PENDING = 404

#: These do not pass.
FINAL = {400, 401, 403, 410}


def delay_s(attempt: int) -> float:
    """How long after this attempt, counted from 0, the next one comes.

    >>> delay_s(0), delay_s(1), delay_s(20)
    (1.0, 1.2, 10.0)
    """
    return min(FIRST_DELAY_MS * GROWTH**attempt, LONGEST_DELAY_MS) / 1000


async def tokens_of_page(
    ask: Callable[[], Awaitable[TokenResponse]], *, hide: Secret, sleep: Callable[[float], Awaitable[None]]
) -> TokenResponse:
    """The answer with status 200. `hide` does not show in errors.

    Raises SignInError, and UpstreamError when the service is not reached; both after MAX_FAILURES in a row if they may
    pass.
    """
    failures = 0
    for attempt in range(ATTEMPTS):
        if attempt:
            await sleep(delay_s(attempt - 1))
        outcome = await _asked(ask, hide)
        if isinstance(outcome, TokenResponse):
            return outcome
        failures = 0 if outcome is None else failures + 1
        if outcome is not None and (failures >= MAX_FAILURES or outcome.final):
            raise outcome
    raise SignInError("The page was not confirmed in time; start the sign-in again.", provider=LABEL)


async def _asked(ask: Callable[[], Awaitable[TokenResponse]], hide: Secret) -> TokenResponse | ProxyError | None:
    """The answer with the tokens, a failure (`final`: it does not pass), or None: not yet."""
    try:
        answer = await ask()
    except UpstreamError as error:
        return error.replaced(final=error.kind != "unavailable")
    if answer.status == PENDING:
        return None
    if answer.status != 200:
        message = f"The sign-in service refused the sign-in: {answer.reason(hide)}."
        return SignInError(message, provider=LABEL, final=answer.status in FINAL)
    if not answer.data:
        return SignInError(
            "The sign-in failed: the answer is no JSON object, or an empty one.", provider=LABEL, final=True
        )
    return answer
