"""Checks the callers of the simulated P5, and words its refusals."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from proxy.sandbox.oauth.tokens import Tokens
from proxy.sandbox.play.actions import FRONT_FAULTS, HttpFault, Values, failure, wait_header
from proxy.sandbox.wires.connect.envelopes import FailedCall, connect_error
from proxy.sandbox.wires.refusal import Refused


def debug(
    error: str | None = None,
    title: str | None = None,
    *,
    detail: str | None = None,
    chat_message: str | None = None,
    retryable: bool = False,
) -> dict[str, Any]:
    """`{"error","details":{"title","detail","isRetryable","additionalInfo":{"chatMessage"}}}`, without members that are
    None."""
    details: dict[str, Any] = {"title": title, "detail": detail, "isRetryable": retryable}
    if chat_message is not None:
        details["additionalInfo"] = {"chatMessage": chat_message}
    found: dict[str, Any] = {"error": error, "details": {name: one for name, one in details.items() if one is not None}}
    return {name: one for name, one in found.items() if one is not None}


UPDATE_TITLE = "Update Required"
UPDATE_DETAIL = "Your version of Cursor is no longer supported. Please update to the latest version to continue."


_PLAIN = {"content-type": "text/plain"}


def update_required() -> dict[str, Any]:
    """The detail for an outdated client."""
    return debug("ERROR_OUTDATED_CLIENT", UPDATE_TITLE, detail=UPDATE_DETAIL)


def _unary(values: Values) -> dict[str, Any]:
    found = debug(values["error"], values["title"], detail=values["detail"], chat_message=values["chat_message"])
    return connect_error(values["code"], values["message"], found if values["error"] or values["title"] else None)


def _row(number: int, code: str, message: str, /, **params: Any) -> HttpFault:
    """A Connect error as an HTTP answer; a step may replace the message."""
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
    # a load balancer's answer to an unsupported transport
    "http2_only": failure(464, "", lambda _: {"server": "awselb/2.0", **_PLAIN}),
    "misdirected": failure(421, "Misdirected Request", lambda _: _PLAIN),
    "wrong_media_type": failure(415, "", lambda _: {"accept-post": "application/grpc-web+proto", **_PLAIN}),
    # a stream that ends at once, and a document instead
    "empty_body": failure(200, "", lambda _: {"content-type": "text/event-stream"}),
    "json_document": _row(200, "internal", "Error"),
    **FRONT_FAULTS,
}


STREAM_TYPE = "application/connect+proto"
PROTO_TYPE, JSON_TYPE = "application/proto", "application/json"

_VERSION = re.compile(r"cli-\d{4}\.\d{2}\.\d{2}-[0-9a-f]{7}")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def check_bearer(headers: Mapping[str, str], tokens: Tokens) -> None:
    """Raises Refused without a valid bearer."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme != "Bearer" or not tokens.accepts(token):
        words = "Error" if token else "missing authorization header"
        raise FailedCall("unauthenticated", words, debug("ERROR_NOT_LOGGED_IN", "Not logged in")).refused()


def check_type(headers: Mapping[str, str], *known: str) -> str:
    """The content type of a body. Raises Refused."""
    found = headers.get("content-type", "").partition(";")[0].strip().lower()
    if found not in known:
        raise Refused(415, "", {"accept-post": ", ".join(known), "content-type": "text/plain"})
    if headers.get("connect-protocol-version", "") not in ("1",) and found == STREAM_TYPE:
        words = 'missing required header: set Connect-Protocol-Version to "1"'
        raise FailedCall("invalid_argument", words).refused()
    return found


def check_version(headers: Mapping[str, str]) -> None:
    """Raises Failed for another client than the command line, or an unknown build of it."""
    version = headers.get("x-cursor-client-version", "")
    if headers.get("x-cursor-client-type") != "cli" or not version.startswith("cli-"):
        raise FailedCall("resource_exhausted", "Error", update_required())


def blame_headers(headers: Mapping[str, str], blame: Callable[[str], None], run_id: str | None = None) -> None:
    """Reports headers that the service accepts and a good client does not send. `run_id` is that of a run's calls."""
    for words in _odd(headers, run_id):
        blame(f"headers: {words}")


def _odd(headers: Mapping[str, str], run_id: str | None) -> Iterator[str]:
    if headers.get("connect-protocol-version") != "1":
        yield "no connect-protocol-version"
    if not _VERSION.fullmatch(headers.get("x-cursor-client-version", "")):
        yield "x-cursor-client-version is no build"
    if headers.get("x-ghost-mode") not in ("true", "false"):
        yield "no x-ghost-mode"
    if not _UUID.fullmatch(headers.get("x-request-id", "")):
        yield "x-request-id is no uuid"
    if run_id is not None and headers.get("x-original-request-id") != run_id:
        yield "x-original-request-id is not that of the run"
    if "x-cursor-checksum" in headers:
        yield "a checksum, which belongs to another client"
    accepted = headers.get("connect-accept-encoding", "gzip")
    if accepted.replace(" ", "") not in ("gzip", "identity", "gzip,identity"):
        yield f"connect-accept-encoding {accepted}"
