"""How the simulated P3 account behaves."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.sandbox.upstream import Options


@dataclass(slots=True)
class P3Options(Options):
    """All may be changed while it runs.

    `device_answers` are the OAuth errors with which the first polls of a sign-in are answered; with `watch_interval` a
    poll that comes too early is told to slow down; without `device_enabled` there is no such flow (404).

    `oldest_version` of the client is served, older ones get a 426. `done` says whether `[DONE]` comes behind the end of
    an answer, `linger_s` how long the connection stays open then. `gate` is why the account is not served: it signs in
    and is told so by the settings and with every request.
    """

    user_id: str = "user-sandbox"
    email: str = "sandbox@example.com"
    access_lifetime_s: int = 21_600
    device_answers: tuple[str, ...] = ("authorization_pending",)
    device_interval_s: int = 1
    device_lifetime_s: int = 1_800
    device_enabled: bool = True
    watch_interval: bool = False
    oldest_version: str = "0.1.202"
    done: bool = True
    linger_s: float = 0.02
    context_limit: int = 0
    gate: str = ""
