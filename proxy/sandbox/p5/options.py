"""How the simulated P5 account behaves."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.sandbox.upstream import Options


@dataclass(slots=True)
class P5Options(Options):
    """All may be changed while it runs.

    `poll_answers` are the statuses with which the first polls of a sign-in are answered; `api_key` is the key of the
    account that can be exchanged for tokens.
    """

    user_id: str = "auth0|user_sandbox"
    email: str = "sandbox@example.com"
    access_lifetime_s: int = 60 * 86_400
    poll_answers: tuple[int, ...] = ()
    api_key: str = "key_sandbox"
