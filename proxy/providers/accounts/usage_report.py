"""The command `usage`: one question about the account, its answer printed in words or as JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from proxy.auth.http import TokenResponse
from proxy.auth.refresh import Credential, Credentials, sign_in_hint
from proxy.core.sse import dump_printable
from proxy.errors import SignInError, UpstreamError, kind_of_status
from proxy.providers.contract import Say

#: Top-level members whose names begin so identify the user.
_IDENTITIES = ("user", "account", "workspace", "email")

#: What an answer leaves to say when no line could be made of it.
NOT_UNDERSTOOD = "  nothing that this version understands; --json prints the answer"

Usage = dict[str, Any]


async def show_usage(
    label: str,
    service: str,
    credentials: Credentials,
    ask: Callable[[Credential], Awaitable[TokenResponse]],
    lines: Callable[[Mapping[str, Any]], list[str]],
    *,
    as_json: bool,
    say: Say,
) -> None:
    """Asks with these credentials, which it closes, and prints. Raises ProxyError with a message for the terminal.

    service  what the user calls the upstream
    """
    try:
        usage = await ask_usage(label, service, credentials, ask)
    finally:
        await credentials.close()
    for line in [dump_printable(usage, indent=2)] if as_json else lines(usage):
        say(line)


async def ask_usage(
    label: str, service: str, credentials: Credentials, ask: Callable[[Credential], Awaitable[TokenResponse]]
) -> Usage:
    """The upstream's answer without the members that identify the user. A token that is refused is renewed once.

    Raises ProxyError.
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
    return usage


def invalid_usage(label: str, service: str) -> UpstreamError:
    """For an answer of another form."""
    return UpstreamError(f"{service} usage response was invalid.", kind="bad_answer", provider=label)
