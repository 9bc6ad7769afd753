"""What can go wrong when a socket to P1 is opened: a status, a bad 101, no answer.

A fault is a function of the parameters of its script step. It gives the answer (a 101 is the good one, altered by these
headers; an empty one is left out), or actions, or limits that refuse this upgrade only if it is one too many.
"""

from __future__ import annotations

from collections.abc import Callable

from proxy.sandbox.p1.failures import HTTP_FAULTS
from proxy.sandbox.p1.socket.sockets import Limits
from proxy.sandbox.play.actions import Action, Cut, Reply, Stall
from proxy.sandbox.play.http_faults import failure

UpgradeFault = Callable[..., Reply | list[Action] | Limits]

#: What the edge says to a burst: nothing.
LIMITED = Reply(403, "")


def _bad(header: str, value: str) -> UpgradeFault:
    """A 101 with this header."""
    return failure(101, "", lambda _: {header: value})


UPGRADE_FAULTS: dict[str, UpgradeFault] = {
    "upgrade_unauthorized": HTTP_FAULTS["unauthorized"],
    "upgrade_forbidden": lambda: LIMITED,
    "upgrade_limits": Limits,
    "upgrade_not_found": failure(404, {"detail": "Not Found"}),
    "upgrade_required": failure(426, {"detail": "Upgrade Required"}),
    "upgrade_rate_limit": lambda seconds=1: HTTP_FAULTS["rate_limit"](seconds=seconds),
    "upgrade_usage_limit": HTTP_FAULTS["usage_limit"],
    "upgrade_server_error": HTTP_FAULTS["server_error"],
    "upgrade_overloaded": HTTP_FAULTS["overloaded"],
    "upgrade_html": HTTP_FAULTS["html_error"],
    "upgrade_redirect": lambda location="/elsewhere": HTTP_FAULTS["redirect"](location=location),
    "upgrade_hang": lambda: [Stall()],
    "upgrade_cut": lambda reset=False: [Cut(reset)],
    "upgrade_wrong_accept": _bad("sec-websocket-accept", "AAAAAAAAAAAAAAAAAAAAAAAAAAA="),
    "upgrade_no_accept": _bad("sec-websocket-accept", ""),
    "upgrade_other_protocol": _bad("upgrade", "h2c"),
    "upgrade_extension": _bad("sec-websocket-extensions", "permessage-deflate"),
    "upgrade_subprotocol": _bad("sec-websocket-protocol", "unasked"),
}
