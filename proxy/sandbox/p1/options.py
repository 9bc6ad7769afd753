"""The behaviour of the simulated P1 account."""

from __future__ import annotations

from dataclasses import dataclass, field

from proxy.sandbox.p1.catalog import MODELS, P1Model
from proxy.sandbox.p1.socket.link import Limits, Link
from proxy.sandbox.upstream import Options
from proxy.sandbox.wires.responses.quota import Quota

#: Marks a workspace without a fixed place.
UNCONSTRAINED = "NO_CONSTRAINT"


@dataclass(slots=True)
class P1Options(Options):
    """Switches of the account. All may be changed while it runs.

    `context_form` is the form of an overflow of `context_limit` (tokens, at four characters each): "failed" (a
    `response.failed` as the only event), "error" (an event of type `error`) or "http" (a 400).

    Without `accept_sockets` every upgrade is refused with 426; one beyond the `limits` with an empty 403. A socket
    older than `socket_age_s` accepts no more requests. `announced`: account events come before each answer there.
    `link`: speed and breaks of sockets, and whether the server pings. It applies to sockets that are opened afterwards.

    `models`: the known models; any other is refused.

    `picture_bytes` is the minimum length of a generated picture."""

    account_id: str = "acct-sandbox"
    email: str = "sandbox@example.com"
    access_lifetime_s: int = 864_000  # ten days, as with the real issuer
    context_limit: int = 272_000
    context_form: str = "failed"
    device_pending_polls: int = 1
    device_interval_s: int = 1
    quota: Quota = field(default_factory=Quota)
    accept_sockets: bool = True
    limits: Limits = Limits()
    socket_age_s: float = 3_600
    announced: bool = True
    link: Link = Link()
    workspace_origin: str = UNCONSTRAINED
    routing_override: str = UNCONSTRAINED
    picture_bytes: int = 0
    models: dict[str, P1Model] = field(default_factory=lambda: dict(MODELS))
