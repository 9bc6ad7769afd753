"""Asks what is left of an account's allowance. The report has the service's own answer and the common form."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from proxy.auth.http import TokenResponse
from proxy.auth.refresh import sign_in_hint
from proxy.auth.store import Credential, CredentialSource
from proxy.core.allowances.report import Allowance, moved
from proxy.core.allowances.words import plain_lines
from proxy.core.sse import dump_printable
from proxy.core.upstream_failures import kind_of_status
from proxy.errors import SignInError, UpstreamError

#: Top-level members whose names begin like this identify the user.
_IDENTITIES = ("user", "account", "workspace", "email")

#: Shown when no line could be made of an answer.
NOT_UNDERSTOOD = "nothing that this version understands; --json prints the answer"

#: A smaller difference of two clocks is due to the answer's way.
SAME_CLOCK_S = 60.0

Usage = dict[str, Any]
#: Reads an allowance from an answer: `(answer, epoch seconds now)`.
Read = Callable[[Mapping[str, Any], float], Allowance]


@dataclass(frozen=True, slots=True)
class UsageReport:
    """The answer of a service.

    service  what the user calls it
    answer   its JSON, without what identifies the user
    known    what this version understands of it
    account  distinguishes the accounts of the provider, None when nothing does
    """

    service: str
    answer: Mapping[str, Any]
    known: Allowance
    account: str | None = None

    @property
    def title(self) -> str:
        """The heading of the lines."""
        return f"{self.service} usage ({self.known.plan} plan):" if self.known.plan else f"{self.service} usage:"

    def lines(self) -> list[str]:
        """The report in words, one line a window."""
        return [self.title, *(f"  {line}" for line in plain_lines(self.known) or [NOT_UNDERSTOOD])]

    def json_text(self) -> str:
        """The answer, indented."""
        return dump_printable(self.answer, indent=2)


@asynccontextmanager
async def closing_after(credentials: CredentialSource) -> AsyncIterator[CredentialSource]:
    """Credentials that are closed after one question."""
    try:
        yield credentials
    finally:
        await credentials.close()


async def ask_usage(
    label: str,
    service: str,
    credentials: CredentialSource,
    ask: Callable[[Credential], Awaitable[TokenResponse]],
    read: Read,
    clock: Callable[[], float],
    *,
    moments: bool = True,
) -> UsageReport:
    """Asks with these credentials, and renews a refused token once. Raises ProxyError with a message for the terminal.

    moments  whether windows end at moments of the service's clock, and not after a wait
    """
    credential = await credentials.get()
    answer = await ask(credential)
    if answer.status == 401:
        credential = await credentials.renew(credential.access)
        answer = await ask(credential)
    if not answer.ok:
        message = f"{service} did not report the usage: {answer.reason(credential.access)}."
        kind = kind_of_status(answer.status)
        if kind == "sign_in":
            raise SignInError(f"{message} To sign in again, {sign_in_hint(label)}.", provider=label)
        raise UpstreamError(message, kind=kind, provider=label, retry_after=answer.retry_after)
    usage = {name: value for name, value in answer.data.items() if not name.lower().startswith(_IDENTITIES)}
    if not usage:
        raise invalid_usage(label, service)
    now = clock()
    known = read(usage, now)
    known = with_ends_of_ours(known, answer, now) if moments else known
    return UsageReport(service, usage, known, credential.account_id)


def with_ends_of_ours(known: Allowance, answer: TokenResponse, now: float) -> Allowance:
    """The allowance with its moments converted from the service's clock to ours."""
    ahead = 0.0 if answer.date is None else now - answer.date
    return moved(known, ahead) if abs(ahead) >= SAME_CLOCK_S else known


def invalid_usage(label: str, service: str) -> UpstreamError:
    """The error for an answer of an unknown form."""
    return UpstreamError(f"{service} usage response was invalid.", kind="bad_answer", provider=label)
