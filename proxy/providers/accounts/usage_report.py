"""The question what is left of an account's allowance, and its answer: as the service gave it, and in the form that all
of them have."""

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

#: Top-level members whose names begin so identify the user.
_IDENTITIES = ("user", "account", "workspace", "email")

#: What an answer leaves to say when no line could be made of it.
NOT_UNDERSTOOD = "nothing that this version understands; --json prints the answer"

#: Clocks that differ by less differ by the way of the answer.
SAME_CLOCK_S = 60.0

Usage = dict[str, Any]
#: Makes an allowance of an answer: `(answer, epoch seconds now)`.
Read = Callable[[Mapping[str, Any], float], Allowance]


@dataclass(frozen=True, slots=True)
class UsageReport:
    """What a service answered.

    service  what the user calls it
    answer   its JSON, without what identifies the user
    known    what this version understands of it
    account  what distinguishes the accounts of the provider, None where nothing does
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
        """In words, one line a window."""
        return [self.title, *(f"  {line}" for line in plain_lines(self.known) or [NOT_UNDERSTOOD])]

    def json_text(self) -> str:
        """The answer, indented."""
        return dump_printable(self.answer, indent=2)


@asynccontextmanager
async def closing_after(credentials: CredentialSource) -> AsyncIterator[CredentialSource]:
    """Credentials for one question."""
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
    """Asks with these credentials. A token that is refused is renewed once. Raises ProxyError with a message for the
    terminal.

    moments  whether the ends of windows are moments of the service's clock, and not times to wait
    """
    credential = await credentials.get()
    answer = await ask(credential)
    if answer.status == 401:
        credential = await credentials.renew(credential.access)
        answer = await ask(credential)
    if not answer.ok:
        message = f"{service} did not tell the usage: {answer.reason(credential.access)}."
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
    """An allowance whose moments are those of the service's clock, by ours."""
    ahead = 0.0 if answer.date is None else now - answer.date
    return moved(known, ahead) if abs(ahead) >= SAME_CLOCK_S else known


def invalid_usage(label: str, service: str) -> UpstreamError:
    """For an answer of another form."""
    return UpstreamError(f"{service} usage response was invalid.", kind="bad_answer", provider=label)
