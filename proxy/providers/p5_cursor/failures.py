"""P5's failures as errors for the client.

The service reports them in one shape, as the end of a stream or as the body of a refusal:

    {"code": "resource_exhausted", "message": "Error", "details": [{"debug": {"error": "ERROR_RATE_LIMITED",
     "details": {"title": "…", "detail": "…", "additionalInfo": {"chatMessage": "…"}}}}]}

Its code is one of the sixteen of Connect; the details have the message for people and the error's name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from proxy.core.error_bodies import error_of_body
from proxy.core.hiding.texts import masked
from proxy.errors import PROGRAM, UpstreamError
from proxy.providers.p5_cursor.catalog import LABEL
from proxy.providers.upstream import failures
from proxy.providers.upstream.failures import parse_retry_after
from proxy.providers.upstream.transport import Service

SERVICE = "cursor"

#: Characters of the service's message that are shown.
MAX_WORDS = 500
#: Entries of `details` that are read.
MAX_DETAILS = 16
#: A longer end is ignored: reading it would hold others up.
MAX_END_BYTES = 256 * 1024
#: Bytes that are read of an end that is not JSON.
MAX_TRAILERS = 16 * 1024
#: Seconds that a client waits after a limit without a time.
LIMIT_WAIT_S = 5.0
#: A request with more tokens than this fills half of most models' windows: a limit without a message then means its
#: size.
LARGE_INPUT = 100_000

#: Connect code -> kind and status.
_CODES: dict[str, tuple[str, int]] = {
    "resource_exhausted": ("rate_limit", 429),
    "unauthenticated": ("sign_in", 401),
    "permission_denied": ("permission", 403),
    "not_found": ("not_found", 404),
    "invalid_argument": ("invalid_request", 400),
    "failed_precondition": ("invalid_request", 400),
    "deadline_exceeded": ("upstream_timeout", 504),
    "unavailable": ("unavailable", 503),
}
_OTHER = ("upstream", 502)

#: gRPC's numbers of the same codes.
_GRPC = {
    "3": "invalid_argument",
    "4": "deadline_exceeded",
    "5": "not_found",
    "7": "permission_denied",
    "8": "resource_exhausted",
    "9": "failed_precondition",
    "13": "internal",
    "14": "unavailable",
    "16": "unauthenticated",
}

#: Name of an error -> kind and status, whatever the code.
_NAMES: dict[str, tuple[str, int]] = {
    "NOT_LOGGED_IN": ("sign_in", 401),
    "AUTH_TOKEN_EXPIRED": ("sign_in", 401),
    "BAD_MODEL_NAME": ("invalid_request", 400),
    "FREE_USER_USAGE_LIMIT": ("usage_limit", 429),
    "PRO_USER_USAGE_LIMIT": ("usage_limit", 429),
    "USAGE_PRICING_REQUIRED": ("usage_limit", 429),
    "CONVERSATION_TOO_LONG": ("context", 413),
    "MODEL_BLOCKED": ("permission", 403),
    "MAX_MODE_REQUIRED": ("invalid_request", 400),
    "UNSUPPORTED_REGION": ("permission", 403),
}

#: Some builds send the number instead of the name.
_NUMBERS = {
    2: "NOT_LOGGED_IN",
    5: "BAD_MODEL_NAME",
    7: "FREE_USER_RATE_LIMIT",
    8: "PRO_USER_RATE_LIMIT",
    9: "FREE_USER_USAGE_LIMIT",
    10: "PRO_USER_USAGE_LIMIT",
    12: "AUTH_TOKEN_EXPIRED",
    30: "OUTDATED_CLIENT",
    41: "RESOURCE_EXHAUSTED",
    43: "CONVERSATION_TOO_LONG",
    44: "USAGE_PRICING_REQUIRED",
    50: "RATE_LIMITED",
    57: "PROVIDER_ERROR",
    58: "MODEL_BLOCKED",
    59: "INTERNAL",
    60: "MAX_MODE_REQUIRED",
    64: "UNSUPPORTED_REGION",
}

_REGION = re.compile(r"\b(?:region|country|territory)\b", re.IGNORECASE)
_PLAN = re.compile(r"\b(?:plan|subscription|upgrade|team|tier)\b", re.IGNORECASE)
_QUOTA = re.compile(r"usage limit|quota|spend|billing|pricing", re.IGNORECASE)

UPDATE_CURE = (
    "the service refuses this build of its client: set PROXY_P5_CLIENT_VERSION, or p5.clientVersion in the config "
    "file, to a newer one"
)
HOST_CURE = (
    "an account that is bound to a region, or a team, may have an agent host of its own: set PROXY_P5_BASE_URL, or "
    "p5.baseUrl in the config file, to it"
)
ROUTE_CURE = (
    "something between here and the service changes the connection, or the address serves HTTP/2 only: reach "
    "*.cursor.sh directly, and look at p5.baseUrl"
)
MODEL_CURE = f"ask for it as cursor:<id> with an id of the account: `{PROGRAM} models` lists what is known"


@dataclass(frozen=True, slots=True)
class Report:
    """A failure as the service reports it.

    code   of Connect, "unknown" when there is none
    words  the message for people
    name   of the error, without `ERROR_`; "" when none is given
    bare   whether the message is only a placeholder
    """

    code: str
    words: str
    name: str = ""
    bare: bool = False

    @property
    def outdated(self) -> bool:
        return self.name == "OUTDATED_CLIENT" or "update required" in self.words.lower()

    @property
    def bad_model(self) -> bool:
        return self.name == "BAD_MODEL_NAME" or (self.code == "not_found" and "model" in self.words.lower())

    @property
    def unexplained_limit(self) -> bool:
        return self.code == "resource_exhausted" and self.bare and not self.name

    @property
    def region(self) -> bool:
        return self.name == "UNSUPPORTED_REGION" or _REGION.search(self.words) is not None


class RunError(UpstreamError):
    """A failure that the service reported, with its report."""

    def __init__(self, message: str, report: Report, **details: Any) -> None:
        super().__init__(message, provider=LABEL, **details)
        self.report = report


def report_of(error: Mapping[str, Any]) -> Report:
    """Reads an error object; one without code or message has the code "unknown"."""
    code, message = error.get("code"), error.get("message")
    name, detailed = "", ""
    for debug in _debugs(error.get("details")):
        name = name or _name(debug.get("error"))
        detailed = detailed or _words(debug.get("details"))
    plain = message.strip() if isinstance(message, str) else ""
    known = code if isinstance(code, str) and code and (plain or detailed) else "unknown"
    bare = not detailed and plain.lower() in ("", "error")
    words = masked(detailed or plain or "no explanation was given")
    return Report(known, words if len(words) <= MAX_WORDS else words[: MAX_WORDS - 1] + "…", name, bare)


def _debugs(details: Any) -> Iterator[Mapping[str, Any]]:
    for detail in details[:MAX_DETAILS] if isinstance(details, list) else ():
        debug = detail.get("debug") if isinstance(detail, Mapping) else None
        if isinstance(debug, Mapping):
            yield debug


def _name(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return _NUMBERS.get(value, "")
    return value.removeprefix("ERROR_") if isinstance(value, str) else ""


def _words(details: Any) -> str:
    """The first non-empty message for people."""
    if not isinstance(details, Mapping):
        return ""
    more = details.get("additionalInfo")
    chat = more.get("chatMessage") if isinstance(more, Mapping) else None
    texts = (chat, details.get("title"), details.get("detail"))
    return next((text.strip() for text in texts if isinstance(text, str) and text.strip()), "")


def end_error(payload: bytes) -> UpstreamError | None:
    """The failure in the end of a stream; None for a good end. An empty or unreadable end counts as good."""
    if len(payload) > MAX_END_BYTES:
        return run_error(report_of({"message": f"an end of {len(payload)} bytes; the limit is {MAX_END_BYTES}"}))
    try:
        document = json.loads(payload) if payload.strip() else {}
    except (ValueError, RecursionError):
        return _trailer_error(payload)
    error = document.get("error") if isinstance(document, dict) else None
    if error is None:
        return None
    return run_error(report_of(error if isinstance(error, Mapping) else {"message": error}))


def _trailer_error(payload: bytes) -> UpstreamError | None:
    """The failure in a grpc-web end with lines `grpc-status: N` and `grpc-message: …`; None for a good end."""
    lines = (line.partition(":") for line in payload[:MAX_TRAILERS].decode("utf-8", "replace").splitlines())
    fields = {name.strip().lower(): value.strip() for name, _, value in lines}
    status = fields.get("grpc-status", "0")
    if status == "0":
        return None
    words = unquote(fields.get("grpc-message", "")) or "Error"
    return run_error(report_of({"code": _GRPC.get(status, "unknown"), "message": words}))


def run_error(report: Report) -> RunError:
    """The error for a reported failure. We repeat only after a limit that is a failing network: an accepted run may
    have had effects."""
    kind, status = _NAMES.get(report.name) or _CODES.get(report.code, _OTHER)
    if report.bad_model:
        kind, status = "invalid_request", 400
    words = f"Cursor Run failed: {report.code}: {report.words}"
    cure = _cure(report)
    passing = report.code == "resource_exhausted" and "network error" in report.words.lower()
    return RunError(
        f"{words} ({LABEL}: {cure})" if cure else words,
        report,
        kind=kind,
        status=status,
        code="model_not_found" if report.bad_model else report.code,
        repeatable=kind == "rate_limit" and passing and not report.outdated,
        final=report.outdated,
    )


def _cure(report: Report) -> str:
    """The user's remedy."""
    if report.outdated:
        return UPDATE_CURE
    if report.bad_model:
        return MODEL_CURE
    if report.region:
        return HOST_CURE
    if report.name == "CONVERSATION_TOO_LONG":
        return "the prompt is too long for the context window of the model: compact the conversation or begin a new one"
    if report.unexplained_limit:
        return "a limit of the account, or a model that its plan does not have; the service gives no reason"
    return ""


def refusal(status: int, retry_after: str | None, body: bytes, content_types: str, *, now: float) -> UpstreamError:
    """The error for a non-success response.

    content_types  the sent and received types, for a refusal of the sent one
    """
    report = _body_report(body)
    if status in (401, 403):
        return _no_access(status, report)
    if status == 429:
        error = run_error(Report("resource_exhausted", report.words, report.name, report.bare))
        wait = parse_retry_after(retry_after, now=now)
        limited = error.kind == "usage_limit" or error.final or _QUOTA.search(report.words) is not None
        return error.replaced(retry_after=wait, repeatable=not limited)
    words = f"{LABEL}: the service answered with status {status}: {report.words}"
    if status == 413:
        words = f"{words}; start a new conversation, or drop large attachments"
        return RunError(words, report, kind="too_large", status=413, repeatable=False)
    if status in (421, 464):
        words = f"{LABEL}: the service refuses this kind of connection (status {status}): {ROUTE_CURE}"
    if status == 415:
        words = f"{words} ({content_types})"
    return RunError(words, report, kind="upstream", status=502, repeatable=False)


def _body_report(body: bytes) -> Report:
    """The report in the body of a refusal of any form."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    found = value.get("error") if isinstance(value, Mapping) else None
    error = found if isinstance(found, Mapping) else value
    known = isinstance(error, Mapping) and ("message" in error or "details" in error)
    return report_of(error if known else error_of_body(body))


def _no_access(status: int, report: Report) -> UpstreamError:
    """The error of a 401 or 403. A 403 that signing in again does not cure stays one."""
    barred = status == 403 and bool(report.region or report.outdated or _PLAN.search(report.words))
    cure = _cure(report)
    words = f"{LABEL}: the service refused the request: {report.words}"
    kind, status = ("permission", 403) if barred else ("sign_in", 401)
    return RunError(f"{words} ({cure})" if cure else words, report, kind=kind, status=status, repeatable=False)


def document_error(body: bytes) -> UpstreamError:
    """The error for an answer with status 200 that is not a stream."""
    report = _body_report(body)
    if report.code in _CODES:
        return run_error(report)
    words = report.words
    if report.bare:
        words = f"the answer is not a stream of the service ({report.code}): {ROUTE_CURE}"
    return RunError(f"{LABEL}: {words}", report, kind="upstream", status=502, repeatable=False)


def client_error(error: UpstreamError, input_tokens: int) -> UpstreamError:
    """The error as the client gets it."""
    if isinstance(error, RunError) and error.report.unexplained_limit and input_tokens > LARGE_INPUT:
        words = "prompt is too long: the service refused a request of this size, which may be over the context window"
        error = error.replaced(message=f"{words} ({error.message})", kind="context", code=None, final=True)
    if error.kind == "rate_limit" and error.retry_after is None and not error.final:
        error = error.replaced(retry_after=LIMIT_WAIT_S)
    return failures.client_error(error, sign_in_hint=f"sign in again: `{PROGRAM} auth login {LABEL}`")


PROFILE = Service(LABEL, SERVICE)
