"""The failures of P5: the readable detail of an error, and answers that come instead of a stream."""

from __future__ import annotations

from typing import Any

from proxy.sandbox.play.http_faults import FRONT_FAULTS, HttpFault, Values, failure, wait_header
from proxy.sandbox.wires.connect.envelopes import connect_error


def debug(
    error: str | None = None,
    title: str | None = None,
    *,
    detail: str | None = None,
    chat_message: str | None = None,
    retryable: bool = False,
) -> dict[str, Any]:
    """`{"error","details":{"title","detail","isRetryable","additionalInfo":{"chatMessage"}}}`; what is None is not
    there."""
    details: dict[str, Any] = {"title": title, "detail": detail, "isRetryable": retryable}
    if chat_message is not None:
        details["additionalInfo"] = {"chatMessage": chat_message}
    found: dict[str, Any] = {"error": error, "details": {name: one for name, one in details.items() if one is not None}}
    return {name: one for name, one in found.items() if one is not None}


UPDATE_TITLE = "Update Required"
UPDATE_DETAIL = "Your version of Cursor is no longer supported. Please update to the latest version to continue."


_PLAIN = {"content-type": "text/plain"}


def update_required() -> dict[str, Any]:
    """The detail for a client that is too old."""
    return debug("ERROR_OUTDATED_CLIENT", UPDATE_TITLE, detail=UPDATE_DETAIL)


def _unary(values: Values) -> dict[str, Any]:
    found = debug(values["error"], values["title"], detail=values["detail"], chat_message=values["chat_message"])
    return connect_error(values["code"], values["message"], found if values["error"] or values["title"] else None)


def _row(number: int, code: str, message: str, /, **params: Any) -> HttpFault:
    """A Connect error as an HTTP answer; a step may have other words."""
    known = {"code": code, "message": message, "error": None, "title": None, "detail": None, "chat_message": None}
    return failure(number, _unary, wait_header, **{**known, **params})


HTTP_FAULTS: dict[str, HttpFault] = {
    "unauthorized": _row(401, "unauthenticated", "Error", error="ERROR_NOT_LOGGED_IN", title="Not logged in"),
    "forbidden": _row(403, "permission_denied", "Your plan does not include this."),
    "unsupported_region": _row(
        403, "permission_denied", "This region is not yet available for your team", error="ERROR_UNSUPPORTED_REGION"
    ),
    "rate_limit": _row(429, "resource_exhausted", "Error", error="ERROR_RATE_LIMITED", title="Slow down", seconds=1),
    "usage_limit": _row(
        429, "resource_exhausted", "Error", error="ERROR_PRO_USER_USAGE_LIMIT", title="You've hit your usage limit"
    ),
    "outdated": _row(
        429, "resource_exhausted", "Error", error="ERROR_OUTDATED_CLIENT", title=UPDATE_TITLE, detail=UPDATE_DETAIL
    ),
    "server_error": _row(500, "internal", "Internal server error", status=500, seconds=None),
    "overloaded": _row(503, "unavailable", "The service is overloaded", status=503, seconds=None),
    # what a load balancer says to a transport that it does not carry
    "http2_only": failure(464, "", lambda _: {"server": "awselb/2.0", **_PLAIN}),
    "misdirected": failure(421, "Misdirected Request", lambda _: _PLAIN),
    "wrong_media_type": failure(415, "", lambda _: {"accept-post": "application/grpc-web+proto", **_PLAIN}),
    # a stream that ends at once, and a document in its place
    "empty_body": failure(200, "", lambda _: {"content-type": "text/event-stream"}),
    "json_document": _row(200, "internal", "Error"),
    **FRONT_FAULTS,
}
