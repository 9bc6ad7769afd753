"""The command `usage`, as far as providers that sign in share it: one question with a credential, printed."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from proxy.auth.http import Answer
from proxy.auth.refresh import Credential, Credentials, sign_in_hint
from proxy.errors import SignInError, UpstreamError, kind_of_status
from proxy.providers.contract import Say

#: Top-level members whose names begin so tell who is asking.
_WHO = ("user", "account", "workspace", "email")

Usage = dict[str, Any]


async def ask_usage(
    label: str, service: str, credentials: Credentials, ask: Callable[[Credential], Awaitable[Answer]]
) -> Usage:
    """The upstream's answer without the members that tell who is asking. A token that is refused is renewed once.

    service  what the user calls the upstream

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
    usage = {name: value for name, value in answer.data.items() if not name.lower().startswith(_WHO)}
    if not usage:
        raise UpstreamError(f"{service} usage response was invalid.", kind="bad_answer", provider=label)
    return usage


def print_usage(usage: Usage, lines: Callable[[Mapping[str, Any]], list[str]], *, as_json: bool, say: Say) -> None:
    """As JSON, or in words."""
    for line in [json.dumps(usage, indent=2, ensure_ascii=False)] if as_json else lines(usage):
        say(line)
