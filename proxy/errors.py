"""Every error the proxy raises on purpose, and the one table that says how callers see it.

    ProxyError
    ├── RequestError    the caller's fault: the request is wrong, too large, or asks for something unknown
    ├── SignInError     no usable credential: missing, refused, expired for good
    ├── UpstreamError   the model service (or the way to it) failed
    └── BusyError       a limit of this process was reached; trying again helps

An error carries a *kind*: a row of `KINDS`. The row gives the status and the type words of both API families.
No other module chooses a wire shape: `messages_body`, `messages_event`, `openai_body`, `responses_failure` and
`headers` are the only way out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from proxy.core.hiding.texts import shown


@dataclass(frozen=True, slots=True)
class Kind:
    """An error's kind, as callers see it.

    final    no retry cures it: sends `x-should-retry: false`, which Claude Code and the official SDKs honour. Without
             it Claude Code repeats a 401 eleven times over three minutes
    code     the OpenAI family's word when the error brings none of its own
    failure  the code in a Responses stream that broke. Codex CLI stops at some codes, waits at one, and runs the turn
             again at all others
    """

    status: int
    messages: str
    openai: str
    final: bool = False
    openai_status: int | None = None
    code: str | None = None
    failure: str = "server_error"


#: The code of an answer that breaks off or cannot be read, on the OpenAI-style routes.
PROTOCOL_ERROR = "upstream_protocol_error"

_INVALID = "invalid_request_error"
#: Codex CLI prints the message and stops.
_STOP = "invalid_prompt"

#: kind -> status, Messages type, OpenAI type. 529 does not exist in the OpenAI family, where 503 says the same.
KINDS: dict[str, Kind] = {
    "invalid_request": Kind(400, "invalid_request_error", _INVALID, final=True, failure=_STOP),
    # What Claude Code gets in place of some invalid requests, see `final_word`.
    "refused": Kind(400, "policy_blocked", _INVALID, final=True, failure=_STOP),
    "sign_in": Kind(401, "authentication_error", "authentication_error", final=True),
    "billing": Kind(402, "billing_error", "permission_error", final=True, failure="insufficient_quota"),
    "permission": Kind(403, "permission_error", "permission_error", final=True, failure=_STOP),
    "not_found": Kind(404, "not_found_error", _INVALID, final=True, failure=_STOP),
    # An unknown path has its own type word, so that clients and tests can tell it from a missing model.
    "no_route": Kind(404, "not_found", _INVALID, final=True),
    "wrong_method": Kind(405, "invalid_request_error", _INVALID, final=True),
    "slow_request": Kind(408, "timeout_error", _INVALID),
    "too_large": Kind(413, "request_too_large", _INVALID, final=True, code="request_too_large", failure=_STOP),
    # The prompt does not fit the model. Not marked final: Claude Code answers by compacting and asking again. The
    # OpenAI family says 400, and Codex CLI repeats a 413 five times.
    "context": Kind(
        413,
        "request_too_large",
        _INVALID,
        openai_status=400,
        code="context_length_exceeded",
        failure="context_length_exceeded",
    ),
    "media_type": Kind(415, "invalid_request_error", _INVALID, final=True),
    "unprocessable": Kind(422, "invalid_request_error", _INVALID, final=True, failure=_STOP),
    # A client that asks for a WebSocket then continues over HTTP at once.
    "no_upgrade": Kind(426, "invalid_request_error", _INVALID, final=True),
    "rate_limit": Kind(429, "rate_limit_error", "rate_limit_error", failure="rate_limit_exceeded"),
    # A spent allowance: the same status, but waiting a little does not help.
    "usage_limit": Kind(
        429, "rate_limit_error", "rate_limit_error", final=True, code="insufficient_quota", failure="insufficient_quota"
    ),
    # This process is full; the request was not tried at all.
    "busy": Kind(429, "overloaded_error", "rate_limit_error", failure="rate_limit_exceeded"),
    "internal": Kind(500, "api_error", "api_error"),
    "transport": Kind(502, "api_error", "api_error"),
    # A proxy between us and the upstream. If it wants a password, only the user can cure that.
    "outbound": Kind(502, "api_error", "api_error"),
    "outbound_auth": Kind(502, "api_error", "api_error", final=True),
    # TLS works but its certificate is not trusted: the user must name an authority, or the connection is intercepted.
    "certificate": Kind(502, "api_error", "api_error", final=True),
    "bad_answer": Kind(502, "api_error", "api_error", code=PROTOCOL_ERROR),
    "unavailable": Kind(503, "api_error", "api_error"),
    # This process ends before the answer is whole: the next one, or another replica, may give it.
    "stopping": Kind(503, "api_error", "api_error"),
    "upstream_timeout": Kind(504, "timeout_error", "api_error"),
    "overloaded": Kind(529, "overloaded_error", "api_error", openai_status=503),
    # The upstream failed in a way that usually passes: its 500, 502 or 503 is kept. The client may repeat it.
    "transient": Kind(503, "api_error", "api_error"),
    # Any other status of the upstream, kept as it is.
    "upstream": Kind(502, "api_error", "api_error"),
}


class ProxyError(Exception):
    """Base of all errors that a caller may see. Never changed once made: `replaced` makes another one.

    message      fit for a stranger: says what is wrong and what to do; no prompt, no traceback. This process's secrets
                 and quoted pictures are removed from it and from the other texts
    kind         a row of KINDS
    status       the upstream's own status where it is kept; otherwise the row's
    retry_after  seconds, when known
    provider     label of the provider concerned (p1 …), None when the proxy itself answers
    param, code  members of the OpenAI shape
    details      a member of the Messages shape that programs read: {"error_code": …}
    upstream_id  the upstream's request id, for the log
    final        no retry cures it: the upstream says so, though the kind does not
    passed       headers of the upstream's answer that the caller gets unchanged
    """

    default_kind = "internal"

    def __init__(
        self,
        message: str,
        *,
        kind: str | None = None,
        status: int | None = None,
        retry_after: float | None = None,
        provider: str | None = None,
        param: str | None = None,
        code: str | None = None,
        details: Mapping[str, Any] | None = None,
        upstream_id: str | None = None,
        final: bool = False,
        passed: Mapping[str, str] | None = None,
    ) -> None:
        message = shown(message)
        super().__init__(message)
        self.message = message
        self.kind = kind or self.default_kind
        row = KINDS[self.kind]
        self.status = status or row.status
        self.retry_after = retry_after
        self.provider = provider
        self.param = _shown(param)
        self.code = _shown(code)
        self.details = details
        self.upstream_id = _shown(upstream_id)
        self.final = final
        self.passed = passed and {name: shown(value) for name, value in passed.items()}

    @property
    def row(self) -> Kind:
        return KINDS[self.kind]

    def replaced(self, **changes: Any) -> Self:
        """A new error of the same class with some members changed. A status that was the kind's own becomes that of
        the new kind."""
        texts = {name: shown(value) if isinstance(value, str) else value for name, value in changes.items()}
        members = vars(self) | texts
        if len(members) != len(vars(self)):
            raise TypeError(f"{type(self).__name__} has no {sorted(changes.keys() - vars(self).keys())}")
        if self.status == self.row.status and "status" not in changes:
            members["status"] = KINDS[members["kind"]].status
        error = type(self).__new__(type(self), members["message"])  # subclasses differ in their arguments
        vars(error).update(members)
        return error


def _shown(text: str | None) -> str | None:
    return text if text is None else shown(text)


#: How texts for the user begin a command, within backticks.
PROGRAM = "model-proxy"


def as_typed(text: str, program: str) -> str:
    """The text with its commands written as this user starts the program.

    >>> as_typed("p1 is not signed in; run `model-proxy auth login p1`", "scripts/start")
    'p1 is not signed in; run `scripts/start auth login p1`'
    """
    return text.replace(f"`{PROGRAM} ", f"`{program} ")


class RequestError(ProxyError):
    """The caller's fault."""

    default_kind = "invalid_request"


class SignInError(ProxyError):
    """No usable credential. The message names the command that cures it, see `as_typed`."""

    default_kind = "sign_in"


class UpstreamError(ProxyError):
    """The model service, or the way to it, failed.

    repeatable  whether we may send the same request again; False where the model may already be working on it
    """

    default_kind = "upstream"

    def __init__(self, message: str, *, repeatable: bool = True, **details: Any) -> None:
        super().__init__(message, **details)
        self.repeatable = repeatable


class BusyError(ProxyError):
    """A limit of this process was reached; the same request may succeed a second later."""

    default_kind = "busy"


def _shape(error: ProxyError, **members: Any) -> dict[str, Any]:
    """The inner error object. The provider has its own member, since an upstream's text is kept word for word."""
    if error.provider is not None:
        members["provider"] = error.provider
    return members


#: How the `User-Agent` of Claude Code, and of what is built on it, begins.
_PROBING = "claude-cli/"
#: kind -> the status of refusals after which Claude Code probes for a feature to leave out.
_PROBED = {"invalid_request": 400, "unprocessable": 422}
#: `param` of refusals to which the client has its own answer.
_ANSWERED = frozenset({"model", "safeguards"})


#: An upstream's words for a credential -> words that Claude Code leaves alone. It replaces the first by advice to
#: `/login`: that cures nothing here, and what does is lost with the text.
_OTHERWISE = {
    "x-api-key": "API key header",
    "OAuth token has been revoked": "OAuth token was revoked",
    "OAuth access token has been revoked": "OAuth access token was revoked",
    "OAuth authentication is currently not allowed": "OAuth authentication is not allowed at present",
    "API key authentication is disabled": "API key authentication is off",
}
_SWALLOWED = re.compile("|".join(f"({re.escape(words)})" for words in _OTHERWISE), re.IGNORECASE)


def final_word(error: ProxyError, agent: str) -> ProxyError:
    """The error as a client gets it; only Claude Code's differ. It replaces some words by its own. It repeats an
    unknown 400 or 422 five times, each time with fewer features. That cures nothing, since we take them all, and may
    ask the upstream each time. It stops at status 400 with a type that no other client knows. In auto mode it repeats
    a 422 of that type too, without `safeguards`, which loses the mode for the session.

    agent  the client's `User-Agent`
    """
    if not agent.startswith(_PROBING):
        return error
    if _SWALLOWED.search(error.message):
        words = (*_OTHERWISE.values(),)
        shown = _SWALLOWED.sub(lambda found: words[(found.lastindex or 1) - 1], error.message)
        error = error.replaced(message=shown)
    probed = error.status == _PROBED.get(error.kind) and error.details is None and error.param not in _ANSWERED
    return error.replaced(kind="refused") if probed else error


def messages_body(error: ProxyError, request_id: str) -> dict[str, Any]:
    """The Messages envelope, for an answer with a status."""
    shape = _shape(error, type=error.row.messages, message=error.message)
    if error.details is not None:
        shape["details"] = error.details
    return {"type": "error", "error": shape, "request_id": request_id}


_TOO_LONG = "prompt is too long"


def messages_event(error: ProxyError) -> dict[str, Any]:
    """The `error` event of a stream that has begun.

    There the status is spent, so the words carry the meaning: Claude Code compacts after an in-stream overflow
    only when the message begins with `_TOO_LONG`.
    """
    if error.kind == "context":
        words = "" if error.message.lower().startswith(_TOO_LONG) else f"{_TOO_LONG}: "
        shape = _shape(error, type="invalid_request_error", message=words + error.message)
    else:
        shape = _shape(error, type=error.row.messages, message=error.message)
    return {"type": "error", "error": shape}


def openai_status(error: ProxyError) -> int:
    """The status on the OpenAI-style routes."""
    return error.row.openai_status or error.status


def openai_body(error: ProxyError) -> dict[str, Any]:
    """The OpenAI envelope: an answer with a status, and the last chunk of a chat stream that broke."""
    code = error.code or error.row.code
    return {"error": _shape(error, message=error.message, type=error.row.openai, param=error.param, code=code)}


#: kind -> the code on the routes of images and audio, for errors that do not come from an upstream.
MEDIA_CODES: dict[str, str] = {
    "invalid_request": "invalid_request",
    "sign_in": "authentication_error",
    "permission": "permission_error",
    "no_route": "not_found",
    "wrong_method": "method_not_allowed",
    "slow_request": "request_timeout",
    "too_large": "request_too_large",
    "media_type": "unsupported_media_type",
    "busy": "local_capacity_exceeded",
    "stopping": "local_capacity_exceeded",
    "internal": "internal_error",
}
#: The codes of an upstream's errors there: of an unreadable answer, and of all others, refusals included.
MEDIA_BAD_ANSWER, MEDIA_UPSTREAM = "invalid_upstream_response", "upstream_error"
#: status -> type on those routes. Any other 4xx is the request's fault, the rest the service's.
_MEDIA_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def media_body(error: ProxyError) -> dict[str, Any]:
    """The OpenAI envelope of images and audio: the type follows the status, and every error has a code."""
    kind = _MEDIA_TYPES.get(error.status, _INVALID if error.status < 500 else "api_error")
    return {"error": openai_body(error)["error"] | {"type": kind, "code": error.code or _media_code(error)}}


def _media_code(error: ProxyError) -> str:
    if error.kind == "bad_answer":
        return MEDIA_BAD_ANSWER
    return MEDIA_UPSTREAM if isinstance(error, UpstreamError) else MEDIA_CODES.get(error.kind, MEDIA_UPSTREAM)


def responses_failure(error: ProxyError) -> tuple[str, str]:
    """`(code, message)` of a Responses stream that broke. Codex CLI reads the time to wait out of the message."""
    message = error.message
    if error.row.failure == "rate_limit_exceeded" and error.retry_after and "try again in" not in message.lower():
        message = f"{message} Please try again in {math.ceil(error.retry_after)}s."
    return error.row.failure, message


def headers(error: ProxyError) -> dict[str, str]:
    """Retry hints. `Retry-After` is a whole number of seconds: clients ignore dates and cut fractions."""
    hints = dict(error.passed or {})
    if error.retry_after is not None:
        hints["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    if error.final or error.row.final:
        hints["x-should-retry"] = "false"
    return hints
