"""Classifies the failures of every upstream: turns a reported error into a kind, a status and a time to wait.

Events and bodies of all wires come here in one shape (see `failure_of`). Pure decisions; the transport acts on them.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from proxy.core.error_bodies import error_object, is_page, with_code
from proxy.core.hiding.texts import masked

#: status of a refusal, from any upstream -> kind. Any other 4xx is the request's fault, any other 5xx passes.
_KINDS_OF_STATUS = {
    401: "sign_in",
    402: "billing",
    403: "permission",
    404: "not_found",
    408: "upstream_timeout",
    409: "transient",
    413: "too_large",
    422: "unprocessable",
    425: "transient",
    429: "rate_limit",
    501: "upstream",
    504: "upstream_timeout",
    505: "upstream",
    529: "overloaded",
}
#: Kinds that usually pass.
PASSING_KINDS = frozenset({"transient", "upstream_timeout", "overloaded", "rate_limit"})


def is_refusal(status: int) -> bool:
    """Whether this is an HTTP error status. Any other that is no success counts as a bad answer."""
    return 400 <= status <= 599


def kind_of_status(status: int) -> str:
    """The kind, a row of proxy.errors.KINDS, of an answer by its status alone.

    >>> kind_of_status(418), kind_of_status(522), kind_of_status(999)
    ('invalid_request', 'transient', 'bad_answer')
    """
    if not is_refusal(status):
        return "bad_answer"
    return _KINDS_OF_STATUS.get(status, "invalid_request" if status < 500 else "transient")


def passes(status: int) -> bool:
    """Whether the same request may well succeed later."""
    return kind_of_status(status) in PASSING_KINDS


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
#: Phrases of an overflow with any status, and one that means it only with _REFUSALS: "too many tokens per minute" is a
#: rate limit.
_CONTEXT_PHRASES = (
    "prompt is too long",
    "context window",
    "context length",
    "maximum context",
    "maximum prompt length",
    "context_length_exceeded",
    "too long for this model",
    "model token limit",
)
_CONTEXT_PHRASE_OF_A_REFUSAL = "too many tokens"
_REFUSALS = (400, 413, 422)

#: code or type word -> (kind, status when the event names none). Kinds are rows of proxy.errors.KINDS.
_CODES: dict[str, tuple[str, int]] = {
    "usage_limit_reached": ("usage_limit", 429),
    "insufficient_quota": ("usage_limit", 429),
    "context_length_exceeded": ("context", 413),
    "context_too_large": ("context", 413),
    "cyber_policy": ("invalid_request", 400),
    "invalid_prompt": ("invalid_request", 400),
    "bio_policy": ("invalid_request", 400),
    "server_is_overloaded": ("overloaded", 529),
    "slow_down": ("overloaded", 529),
    # the socket is too old; a new one works
    "websocket_connection_limit_reached": ("transient", 503),
}
#: type word -> (kind, status when the event names none), for gateways without codes.
_WORDS: dict[str, tuple[str, int]] = {
    "exceeded_current_quota_error": ("usage_limit", 429),
    "GoUsageLimitError": ("usage_limit", 429),
    "FreeUsageLimitError": ("usage_limit", 429),
    "BlackUsageLimitError": ("usage_limit", 429),
}
#: code or type word -> (kind, status), whatever the reported status: a 401 that has nothing to do with signing in, a
#: server error that is the request's fault, what an account lacks and no waiting brings.
_VERDICTS: dict[str, tuple[str, int]] = {
    "usage_not_included": ("permission", 403),
    "ModelError": ("invalid_request", 400),
    "CreditsError": ("billing", 402),
    "MonthlyLimitError": ("billing", 402),
    "UserLimitError": ("billing", 402),
    "invalid_image": ("invalid_request", 400),
}
#: word of a code such as `a:b` -> (kind, status), whatever the reported status; the last known word decides.
_VERDICTS_OF_PARTS: dict[str, tuple[str, int]] = {
    "permission-denied": ("permission", 403),
    "personal-team-blocked": ("billing", 402),
    "spending-limit": ("billing", 402),
    "free-usage-exhausted": ("usage_limit", 429),
    "bad-credentials": ("sign_in", 401),
}
#: type word -> status where none is reported, as in a stream. A known code, or one that is a status, comes first.
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
    "api_error": 500,
}
#: part of any other word -> status where none is reported.
_STATUS_OF_PARTS: tuple[tuple[str, int], ...] = (
    *((part, 429) for part in ("rate_limit", "too_many_requests", "resource_exhausted", "throttl", "quota_exceeded")),
    *((part, 529) for part in ("overloaded", "at_capacity", "capacity_exceeded")),
    *((part, 401) for part in ("authentication", "unauthenticated", "unauthorized", "api_key")),
    *((part, 402) for part in ("payment_required", "insufficient_credit", "insufficient_balance")),
    *((part, 403) for part in ("permission", "forbidden")),
    *((part, 400) for part in ("image", "content_policy", "content_filter", "data_inspection", "policy_blocked")),
    *((part, 404) for part in ("not_found", "notfound")),
    ("unprocessable", 422),
    *((part, 400) for part in ("invalid_request", "invalid_argument", "invalid_param", "invalidparam")),
    *((part, 400) for part in ("bad_request", "badrequest", "unsupported_")),
    ("timeout", 504),
    ("deadline_exceeded", 504),
    ("unavailable", 503),
    ("internal", 500),
)
_USAGE_LIMIT_PHRASE = "usage limit"
_QUOTA_PHRASES = (
    "exceeded your current quota",
    "check your account balance",
    "insufficient balance",
    "recharge",
)
#: Phrases of an account that must be paid for, although the status only means "later".
_CREDIT_PHRASES = ("out of credits", "all available credits", "spending limit")
_BAD_IMAGE_PHRASE = "could not process image"
#: Phrases of a refused token; the status may be that of a missing permission.
_BAD_TOKEN_PHRASES = ("oauth2 access token", "validated")
#: Longest message, in characters.
_MAX_MESSAGE = 10_000
#: Characters that are read of a member of an error, which may be as long as an event.
_MAX_READ = 4 * _MAX_MESSAGE
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
    retry_after  seconds, if the upstream named a time
    """

    kind: str
    status: int
    message: str
    retry_after: float | None = None
    code: str | None = None


#: Kind and status of a failure that names nothing at all: most likely it passes.
UNEXPLAINED = ("transient", 503)


def failure_of(
    event: Mapping[str, Any],
    *,
    now: float = 0.0,
    unknown: tuple[str, int] = ("upstream", 500),
    unexplained: tuple[str, int] = UNEXPLAINED,
) -> Failure:
    """The failure reported by an error event, or by the body of an answer with an error status.

    event        {"type": "error", "status": 429, "error": {"code", "type", "message"}, "headers": {}}; any may be
                 missing
    now          epoch seconds, for answers that name a moment
    unknown      kind and status of a failure that names nothing known
    unexplained  kind and status of a failure that names nothing at all
    """
    error = error_object(event)
    if error is None:  # some put code and message at the top level
        error = {key: event[key] for key in ("code", "message", "param") if key in event}
    return _failure(event, error, now, unknown if _names_anything(error) else unexplained)


def _names_anything(error: Mapping[str, Any]) -> bool:
    """Whether there is a code, a type or a message, even an unknown one."""
    return any(_word(error.get(name)).strip() not in ("", "error") for name in ("code", "type", "message"))


def _failure(event: Mapping[str, Any], error: Mapping[str, Any], now: float, unknown: tuple[str, int]) -> Failure:
    error = with_code({name: v[:_MAX_READ] if isinstance(v, str) else v for name, v in error.items()})
    code, word, message = _word(error.get("code")), _word(error.get("type")), _word(error.get("message"))
    status = _named_status(event, error) or _implied_status(error, code, word)
    if not message.strip() or is_page(message):
        words = code or (word if word != "error" else "")
        message = _DEFAULT_MESSAGES.get(code) or (f"Upstream error: {words}" if words else "Upstream error")
    text = message.lower()
    kind, default = verdict = _verdict(code, word, status, text)
    if verdict == _NONE:
        kind, default = _kind(code, word, status, text, unknown)
        default = status or default
    if kind == "context" and "context window" not in text:
        message = f"context window exceeded: {message}"
    wait = retry_after_of(event, error, now=now)
    if kind == "usage_limit":  # next to the end of the window, a retry-after only means the next try
        wait = max((seconds for seconds in (wait, _reset_of(error, now)) if seconds is not None), default=None)
    return Failure(
        kind,
        413 if kind == "context" else default,
        masked(message)[:_MAX_MESSAGE],
        wait,
        code or None,
    )


_STATUS_MEMBERS = ("status", "status_code", "http_status")


def _named_status(event: Mapping[str, Any], error: Mapping[str, Any]) -> int | None:
    named = (_status(holder.get(name)) for holder in (event, error) for name in _STATUS_MEMBERS)
    return next(filter(None, named), None)


def _status(value: Any) -> int | None:
    """An error status from a number or its digits, else None."""
    if isinstance(value, str) and len(value) == 3 and value.isascii() and value.isdecimal():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and is_refusal(value) else None


def _implied_status(error: Mapping[str, Any], code: str, word: str) -> int | None:
    """The status meant by an error object without one: its code is a status, or its code or type a word for one."""
    numeric = _status(error.get("code"))
    if numeric is not None or code in _CODES or code in _TRANSIENT_WORDS:
        return numeric
    return _status_in(code) or _STATUS_OF_WORDS.get(word) or (None if word in _CODES else _status_in(word))


def _status_in(word: str) -> int | None:
    plain = word.lower().replace("-", "_")
    return next((status for part, status in _STATUS_OF_PARTS if part in plain), None)


_NONE = ("", 0)


def _verdict(code: str, word: str, status: int | None, text: str) -> tuple[str, int]:
    """`(kind, status)` of an error whose words mean more than its reported status; `_NONE` for any other."""
    known = _VERDICTS.get(code) or _VERDICTS.get(word)
    for part in code.split(":"):
        known = _VERDICTS_OF_PARTS.get(part, known)
    if known is not None:
        return known
    if code in _CODES or word in _CODES or word in _WORDS:  # these are more exact than phrases
        return _NONE
    if _BAD_IMAGE_PHRASE in text:
        return _VERDICTS["invalid_image"]
    if status in (None, 401, 403) and all(phrase in text for phrase in _BAD_TOKEN_PHRASES):
        return _VERDICTS_OF_PARTS["bad-credentials"]
    if status in (None, 429) and any(phrase in text for phrase in _CREDIT_PHRASES):
        return _VERDICTS_OF_PARTS["spending-limit"]
    return _NONE


def _kind(code: str, word: str, status: int | None, text: str, unknown: tuple[str, int]) -> tuple[str, int]:
    """`(kind, default status)`; the order of the tests matters."""
    if "usage_limit_reached" in (code, word) or "insufficient_quota" in (code, word) or _means_quota(status, text):
        return "usage_limit", 429
    if _means_overflow(status, text):
        return "context", 413
    known = _CODES.get(code) or _CODES.get(word) or _WORDS.get(word)
    if known is not None:
        return known
    if status is not None and status < 500 and not passes(status):  # the message may have words of the caller
        text = ""
    if "model is at capacity" in text:
        return "overloaded", 529
    if status == 429 or "rate limit" in text:
        return "rate_limit", 429
    if status == 529 or "overloaded_error" in (code, word) or "overloaded" in text:
        return "overloaded", 529
    if status is not None and passes(status):
        return kind_of_status(status), status
    if _TRANSIENT_WORDS & {code, word} or any(phrase in text for phrase in _TRANSIENT_PHRASES):
        return "transient", 503
    if status is None:
        return unknown
    # too large means a prompt that does not fit, whatever the words: the client's cure is the same
    return "context" if status == 413 else kind_of_status(status), status


def _means_quota(status: int | None, text: str) -> bool:
    """Whether the text is about a spent allowance. With a refusal it may quote the caller, and a server that fails
    names no quotas but the plan's; a 402 is clear by itself."""
    if status in _CLEAR:
        return False
    if _USAGE_LIMIT_PHRASE in text:
        return True
    return status in (None, 403, 429) and any(phrase in text for phrase in _QUOTA_PHRASES)


def _means_overflow(status: int | None, text: str) -> bool:
    if any(phrase in text for phrase in _CONTEXT_PHRASES):
        return True
    return status in _REFUSALS and _CONTEXT_PHRASE_OF_A_REFUSAL in text


#: Statuses that need no words to explain them.
_CLEAR = frozenset({400, 401, 402, 404, 408, 413, 422})


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""


_TRY_AGAIN = re.compile(r"try again in (\d+(?:\.\d+)?)\s*(ms|s\b|seconds?)", re.IGNORECASE)


def retry_after_of(event: Mapping[str, Any], error: Mapping[str, Any], *, now: float) -> float | None:
    """Seconds to wait, from any place where an event names them; None without any."""
    headers = event.get("headers")
    headers = {str(key).lower(): value for key, value in headers.items()} if isinstance(headers, Mapping) else {}
    for value in (
        error.get("retry_after"),
        error.get("retry_after_seconds"),
        event.get("retry_after"),
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
    seconds = as_seconds(match[1]) if match is not None else None
    return seconds if match is None or seconds is None or match[2].lower() != "ms" else seconds / 1000


def _reset_of(error: Mapping[str, Any], now: float) -> float | None:
    """Seconds until the window is reset, None if the error does not say."""
    seconds = as_seconds(error.get("resets_in_seconds"))
    if seconds is not None:
        return seconds
    moment = _number(error.get("resets_at"))
    return as_seconds(max(0.0, moment - now)) if moment is not None and now else None


#: Longer times (thirty years) are nonsense.
_LONGEST_S = 1e9


def as_seconds(value: Any) -> float | None:
    """A sane number of seconds (or per cent) from JSON or a header, else None."""
    seconds = _number(value)
    return seconds if seconds is not None and 0 <= seconds < _LONGEST_S else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def moment_of_http_date(value: str) -> float | None:
    """An HTTP date as epoch seconds; None for anything else, and for an impossible date."""
    try:
        moment = parsedate_to_datetime(value)
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError, OSError):
        return None
