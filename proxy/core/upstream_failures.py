"""Classifies the failures of every upstream: from the error it reports to a kind, a status and a time to wait.

Events and bodies of all wires come here in one shape (see `failure_of`). Pure decisions; the transport acts on them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proxy.core.error_bodies import error_object

_TRANSIENT_STATUSES = frozenset({500, 502, 503})
_TRANSIENT_WORDS = frozenset({"server_error", "internal_server_error", "internal_error"})
_TRANSIENT_PHRASES = (
    "server error",
    "service unavailable",
    "bad gateway",
    "gateway timeout",
    "temporarily unavailable",
    "you can retry your request",
    "socket connection was closed unexpectedly",
    "connection closed",
    "operation timed out",
    "connection reset",
    "timed out",
    "timeout",
    "econnreset",
    "epipe",
    "etimedout",
    "und_err_socket",
    "fetch failed",
    "unexpected eof",
)
#: Words of an overflow, whatever the status; and those that mean something else beside other statuses: "too many
#: tokens per minute" is a rate limit.
_CONTEXT_PHRASES = (
    "prompt is too long",
    "context window",
    "context length",
    "maximum context",
    "model token limit",
)
_CONTEXT_PHRASE_OF_A_REFUSAL = "too many tokens"
_REFUSALS = (400, 413, 422)

#: What an account does not have, no waiting brings, whatever the status.
_NOT_INCLUDED = "usage_not_included"
#: code or type word -> (kind, status when the event names none). Kinds are rows of proxy.errors.KINDS.
_CODES: dict[str, tuple[str, int]] = {
    "usage_limit_reached": ("usage_limit", 429),
    "insufficient_quota": ("usage_limit", 429),
    "context_length_exceeded": ("context", 413),
    "context_too_large": ("context", 413),
    _NOT_INCLUDED: ("permission", 403),
    "cyber_policy": ("invalid_request", 400),
    "invalid_prompt": ("invalid_request", 400),
    "bio_policy": ("invalid_request", 400),
    "server_is_overloaded": ("overloaded", 529),
    "slow_down": ("overloaded", 529),
    # the socket is too old; another one does
    "websocket_connection_limit_reached": ("transient", 503),
}
#: The same by the type word, for gateways that speak in types.
_WORDS: dict[str, tuple[str, int]] = {
    "exceeded_current_quota_error": ("usage_limit", 429),
    "GoUsageLimitError": ("usage_limit", 429),
    "FreeUsageLimitError": ("usage_limit", 429),
    "BlackUsageLimitError": ("usage_limit", 429),
    "CreditsError": ("billing", 402),
    "MonthlyLimitError": ("billing", 402),
    "UserLimitError": ("billing", 402),
    "ModelError": ("invalid_request", 400),
}
#: Words behind a 401 that has nothing to do with signing in: the status is ours.
_NO_SIGN_IN = frozenset({"ModelError", "CreditsError", "MonthlyLimitError", "UserLimitError"})
#: What a type word says where no status does: in a stream. A known code says more, and so does a code that is a status.
_STATUS_OF_WORDS: dict[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "invalid_authentication_error": 401,
    "AuthError": 401,
    "billing_error": 402,
    "payment_required_error": 402,
    "permission_error": 403,
    "access_terminated_error": 403,
    "EntitlementError": 403,
    "RegionError": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_reached_error": 429,
    "RateLimitError": 429,
    "service_unavailable_error": 503,
    "timeout_error": 504,
    "overloaded_error": 529,
    "engine_overloaded_error": 529,
}
_USAGE_LIMIT_PHRASE = "usage limit"
_QUOTA_PHRASES = (
    "exceeded your current quota",
    "check your account balance",
    "insufficient balance",
    "recharge",
)
_DEFAULT_MESSAGES = {
    "cyber_policy": "The request was refused by the upstream's cybersecurity policy.",
    "invalid_prompt": "Invalid request.",
    "bio_policy": "Invalid request.",
}


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure reported by the upstream.

    kind         a row of proxy.errors.KINDS
    status       HTTP status for the caller
    retry_after  seconds, when the upstream named a time
    """

    kind: str
    status: int
    message: str
    retry_after: float | None = None
    code: str | None = None


def failure_of(event: Mapping[str, Any], *, now: float = 0.0, unknown: tuple[str, int] = ("upstream", 500)) -> Failure:
    """The failure that an error event reports, or the body of an answer with an error status:
    `{"type": "error", "status": 429, "error": {"code", "type", "message"}, "headers": {}}`, any of them missing.

    now      epoch seconds, for answers that name a moment
    unknown  kind and status of a failure that names nothing known
    """
    error = error_object(event)
    if error is None:  # some put code and message at the top level
        error = {key: event[key] for key in ("code", "message", "param") if key in event}
    return _failure(event, error, now, unknown)


def _failure(event: Mapping[str, Any], error: Mapping[str, Any], now: float, unknown: tuple[str, int]) -> Failure:
    code, word = _word(error.get("code")), _word(error.get("type"))
    named = (event.get("status"), event.get("status_code"), error.get("status"))
    status = next((value for value in map(_status, named) if value), None) or _implied_status(error, code, word)
    if word in _NO_SIGN_IN or _NOT_INCLUDED in (code, word):
        status = None
    message = error.get("message")
    if not isinstance(message, str) or not message.strip():
        words = code or (word if word != "error" else "")
        message = _DEFAULT_MESSAGES.get(code) or (f"Upstream error: {words}" if words else "Upstream error")
    kind, default = _kind(code, word, status, message.lower(), unknown)
    if kind == "context" and "context window" not in message.lower():
        message = f"context window exceeded: {message}"
    wait = retry_after_of(event, error, now=now)
    if kind == "usage_limit":  # a retry-after beside the end of the window is for the next try
        wait = max((seconds for seconds in (wait, _reset_of(error, now)) if seconds is not None), default=None)
    return Failure(kind, 413 if kind == "context" else status or default, message, wait, code or None)


def _status(value: Any) -> int | None:
    """An error status, as a number or as its digits."""
    if isinstance(value, str) and len(value) == 3 and value.isdecimal():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599 else None


def _implied_status(error: Mapping[str, Any], code: str, word: str) -> int | None:
    """The status that an error object without one means: its code is a status, or its type word is that of one."""
    numeric = _status(error.get("code"))
    if numeric is not None or code in _CODES or code in _TRANSIENT_WORDS or code == _RATE_LIMITED:
        return numeric
    return _STATUS_OF_WORDS.get(word)


def _kind(code: str, word: str, status: int | None, text: str, unknown: tuple[str, int]) -> tuple[str, int]:
    """`(kind, default status)`; the order of the tests matters."""
    if "usage_limit_reached" in (code, word) or "insufficient_quota" in (code, word):
        return "usage_limit", 429
    if word in _NO_SIGN_IN:  # whatever its words: "insufficient balance" is no rate limit there
        return _WORDS[word]
    if _tells_of_quota(status, text):
        return "usage_limit", 429
    if _tells_of_overflow(status, text):
        return "context", 413
    known = _CODES.get(code) or _CODES.get(word) or _WORDS.get(word)
    if known is not None:
        return known
    if status is not None and status < 500 and status not in _PASSING:  # the message may have words of the caller
        text = ""
    if "model is at capacity" in text:
        return "overloaded", 529
    if status == 429 or "rate limit" in text or code == _RATE_LIMITED:
        return "rate_limit", 429
    if status == 529 or "overloaded_error" in (code, word) or "overloaded" in text:
        return "overloaded", 529
    if status == 504:
        return "upstream_timeout", 504
    if status in _TRANSIENT_STATUSES or _TRANSIENT_WORDS & {code, word}:
        return "transient", 503
    if any(phrase in text for phrase in _TRANSIENT_PHRASES):
        return "transient", 503
    if status is None:
        return unknown
    return _PERMANENT.get(status, "invalid_request" if status < 500 else "upstream"), 500


def _tells_of_quota(status: int | None, text: str) -> bool:
    """Whether the words are about a spent allowance. Beside a refusal they are the caller's, and a server that fails
    tells of no quotas but the plan's; a 402 is clear as it is."""
    if status in _PERMANENT and status != 403:
        return False
    if _USAGE_LIMIT_PHRASE in text:
        return True
    return status in (None, 403, 429) and any(phrase in text for phrase in _QUOTA_PHRASES)


def _tells_of_overflow(status: int | None, text: str) -> bool:
    if any(phrase in text for phrase in _CONTEXT_PHRASES):
        return True
    return status in _REFUSALS and _CONTEXT_PHRASE_OF_A_REFUSAL in text


_RATE_LIMITED = "rate_limit_exceeded"
#: Statuses below 500 that say "later".
_PASSING = frozenset({425, 429})
#: A 413 is a prompt that does not fit, whatever the words: the client's cure is the same.
_PERMANENT = {
    400: "invalid_request",
    401: "sign_in",
    402: "billing",
    403: "permission",
    404: "not_found",
    408: "slow_request",
    413: "context",
    422: "unprocessable",
}


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""


_TRY_AGAIN = re.compile(r"try again in (\d+(?:\.\d+)?)\s*(ms|s\b|seconds?)", re.IGNORECASE)


def retry_after_of(event: Mapping[str, Any], error: Mapping[str, Any], *, now: float) -> float | None:
    """Seconds to wait as the event names them, in any of the places where they occur."""
    headers = event.get("headers")
    headers = {str(key).lower(): value for key, value in headers.items()} if isinstance(headers, Mapping) else {}
    for value in (
        error.get("retry_after"),
        error.get("retry_after_seconds"),
        event.get("retry_after_seconds"),
        headers.get("retry-after"),
    ):
        seconds = as_seconds(value)
        if seconds is not None:
            return seconds
    reset = _reset_of(error, now)
    if reset is not None:
        return reset
    message = error.get("message")
    match = _TRY_AGAIN.search(message) if isinstance(message, str) else None
    if match is None:
        return None
    return float(match[1]) / (1000 if match[2].lower() == "ms" else 1)


def _reset_of(error: Mapping[str, Any], now: float) -> float | None:
    """Seconds until a window begins anew."""
    seconds = as_seconds(error.get("resets_in_seconds"))
    if seconds is not None:
        return seconds
    moment = as_seconds(error.get("resets_at"))
    return max(0.0, moment - now) if moment is not None and now else None


def as_seconds(value: Any) -> float | None:
    """A sane number of seconds (or per cent) out of JSON, else None."""
    if isinstance(value, bool):
        return None
    try:
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if 0 <= seconds < 1e12 else None
