"""The shared parts of all answers: their form, errors in the caller's format, and whether the client has left."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Mapping
from typing import Any

from aiohttp import HttpVersion11, web

from proxy.core.invalid import InvalidRequest, TooLarge
from proxy.core.reducer import BadAnswer
from proxy.core.sse import encode_json
from proxy.errors import ProxyError, RequestError, headers
from proxy.observe.lifecycle import Log
from proxy.server.request.families import Family


def json_response(body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """A JSON answer in compact form."""
    return web.Response(body=encode_json(body), status=status, headers=headers, content_type="application/json")


def error_response(error: ProxyError, request_id: str, family: Family) -> web.Response:
    """The envelope of a client API, with status and retry hints."""
    body, status = family.error_body(error, request_id), family.error_status(error)
    response = json_response(body, status=status, headers=headers(error))
    if status == 401 and family.challenge:
        response.headers["WWW-Authenticate"] = family.challenge
    return response


def as_proxy_error(error: Exception) -> ProxyError | None:
    """The error as one that may be shown, or None if it is unforeseen."""
    if isinstance(error, ProxyError):
        return error
    if isinstance(error, InvalidRequest):
        kind = "too_large" if isinstance(error, TooLarge) else "invalid_request"
        return RequestError(error.message, kind=kind, param=error.param, code=error.code, details=error.details)
    if isinstance(error, BadAnswer):
        return ProxyError(str(error), kind="bad_answer")
    return None


def unforeseen(log: Log, request_id: str, error: Exception) -> ProxyError:
    """Logs a bug with the places in its traceback, never its text, which may hold a prompt; returns the error for the
    caller."""
    places = []
    trace = error.__traceback__
    while trace is not None:
        places.append(f"{trace.tb_frame.f_code.co_filename.rpartition('proxy/')[2]}:{trace.tb_lineno}")
        trace = trace.tb_next
    kind = type(error).__name__
    log.write("error", "server", "internal_error", reqId=request_id, error=kind, places=places[-12:])
    return ProxyError(f"internal error of the proxy ({kind}); the log has more under {request_id}", kind="internal")


def has_left(request: web.BaseRequest) -> bool:
    """Whether the connection of a request is closed, or about to be."""
    transport = request.transport
    return transport is None or transport.is_closing()


#: SO_LINGER with no time: closing the socket sends a reset.
_RESET = struct.pack("ii", 1, 0)


def break_connection(request: web.BaseRequest) -> None:
    """Ends the connection of a request at once. For HTTP/1.0, where closing would mean the end of the answer, it is
    reset."""
    transport = request.transport
    if transport is None:
        return
    if request.version < HttpVersion11 and (link := transport.get_extra_info("socket")) is not None:
        with contextlib.suppress(OSError):
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    transport.abort()


def is_loss(error: BaseException, request: web.BaseRequest) -> bool:
    """Whether an error only means that the client left, and not that a connection of ours broke."""
    return isinstance(error, ConnectionError) and has_left(request)
