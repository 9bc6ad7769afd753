"""How the simulated P2 account behaves."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.sandbox.upstream import Options

#: Programs that the gateway takes for coding agents, by how their user agent begins, in small letters.
AGENTS = ("kimicli/", "kimi-code-cli/", "claude-cli/", "claude-code/", "roo-code/", "roocode/", "kilo-code/")


@dataclass(slots=True)
class P2Options(Options):
    """All may be changed while it runs.

    `device_answers` are the OAuth errors with which the first polls of a sign-in are answered, `pending_status` the
    HTTP status of those that do not end it (some say 200 occurs); with `watch_interval` a poll that comes too early
    is told to slow down. `one_effort` refuses `thinking` beside `reasoning_effort`, as other front ends of this
    vendor do. `usage_places`: see ChatAnswer. `context_limit` 0 is the model's own.
    """

    user_id: str = "u_sandbox"
    device_id: str = "5a9d0b0c0ffee0123456789abcdef012"  # of the stored sign-in
    access_lifetime_s: int = 900
    device_answers: tuple[str, ...] = ("authorization_pending",)
    device_interval_s: int = 1
    device_lifetime_s: int = 900
    pending_status: int = 400
    watch_interval: bool = False
    agents: tuple[str, ...] = AGENTS
    one_effort: bool = False
    usage_places: tuple[str, ...] = ("choice", "own")
    context_limit: int = 0
