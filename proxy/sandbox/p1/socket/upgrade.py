"""The upgrade to a socket of P1: its checks, its answer, and its faults.

A fault is a function of its script step's parameters. It returns the answer (a 101 is the good one, altered by these
headers; an empty one is left out), or actions, or limits that refuse this upgrade only if it is one too many.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Callable
from http import HTTPStatus

from aiohttp import hdrs, web

from proxy.sandbox.p1.failures import HTTP_FAULTS
from proxy.sandbox.p1.headers import UPGRADE_HEADERS, check_account
from proxy.sandbox.p1.socket.connection import SocketSession
from proxy.sandbox.p1.socket.link import Limits
from proxy.sandbox.p1.state import P1
from proxy.sandbox.play.actions import Action, Cut, Pace, Reply, Stall, failure
from proxy.sandbox.play.player import play
from proxy.sandbox.play.script import Place
from proxy.sandbox.upstream import Socket
from proxy.sandbox.wires.field_checks import check
from proxy.sandbox.wires.refusal import Refused, detail, plain_reply

UpgradeFault = Callable[..., Reply | list[Action] | Limits]

#: The edge's answer to a burst: nothing.
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


UPGRADE = Place("p1", "upgrade", stream=False)

#: Hashed together with the key of an upgrade.
_ACCEPT_SALT = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


async def serve_upgrade(p1: P1, request: web.Request) -> web.StreamResponse:
    """Serves one GET; returns when the socket is closed."""
    seen = p1.sockets.register(request.headers)
    outcome = _decide(p1, request)
    if outcome is None:
        return await SocketSession(p1, request, seen).run()
    if isinstance(outcome, Reply):
        return await _answer(p1, request, seen, outcome)
    return await play(request, {}, outcome, Pace())


def _decide(p1: P1, request: web.Request) -> Reply | list[Action] | None:
    """The refusal or actions for an upgrade; None: accepted. The edge decides first, without the credentials."""
    if p1.sockets.over(p1.options.limits):
        return LIMITED
    try:
        _check(p1, request)
    except Refused as refused:
        return Reply(refused.status, refused.body, refused.headers)
    step = p1.script.take(UPGRADE, {}, "")
    if step is None or step.fault is None:
        return None if step is None else step.outcome
    outcome = UPGRADE_FAULTS[step.fault](**step.params)
    if isinstance(outcome, Limits):
        return LIMITED if p1.sockets.over(outcome) else None
    return outcome


def _check(p1: P1, request: web.Request) -> None:
    upgrade = request.headers.get(hdrs.UPGRADE, "").strip().lower()
    if not p1.options.accept_sockets or upgrade != "websocket":
        raise detail("Upgrade Required", 426)
    check_account(request.headers, p1.tokens)
    check(request.headers, UPGRADE_HEADERS)


async def _answer(p1: P1, request: web.Request, seen: Socket, reply: Reply) -> web.StreamResponse:
    seen.status = reply.status
    if reply.status != HTTPStatus.SWITCHING_PROTOCOLS:
        return plain_reply(reply.status, reply.body, {**p1.trace_headers(), **(reply.headers or {})})
    good = {"upgrade": "websocket", "connection": "upgrade", "sec-websocket-accept": accept(request)}
    headers = {name: value for name, value in {**good, **(reply.headers or {})}.items() if value}
    response = web.StreamResponse(status=reply.status, headers=headers)
    await response.prepare(request)
    # a client that trusts such a socket waits for ever
    await asyncio.Event().wait()
    return response


def accept(request: web.Request) -> str:
    """The `sec-websocket-accept` that proves that the key was read."""
    key = request.headers.get(hdrs.SEC_WEBSOCKET_KEY, "").encode()
    return base64.b64encode(hashlib.sha1(key + _ACCEPT_SALT, usedforsecurity=False).digest()).decode()
