"""Events of a Responses stream: which of them end it and how, the failures they report, the tokens they count.

Pure decisions about one event dict; the transport acts on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proxy.core.error_bodies import error_object
from proxy.core.reducer import USUAL_RULES, AnswerRules
from proxy.core.sse import load_json
from proxy.core.tokens.usage import (
    Usage,
    count,
    detail,
    reported_count,
    search_usage,
    usage_of,
    with_thinking,
    x_search_usage,
)
from proxy.core.upstream_failures import Failure, as_seconds, failure_of
from proxy.core.visible import Visible

#: Replaces an unreadable event. The answer is then whole only if its last event shows that nothing is missing.
UNREADABLE: dict[str, Any] = {"type": "unreadable"}

COMPLETE, FAILED = "complete", "failed"

#: type of a terminal event -> how it ends the stream. After a complete end the answer may still be incomplete, see
#: `incomplete_reason`.
ENDS = {
    "response.completed": COMPLETE,
    "response.done": COMPLETE,
    "response.incomplete": COMPLETE,
    "response.failed": FAILED,
    "response.error": FAILED,
    "error": FAILED,
}
#: The errors among them; the others report on a response.
_ERROR_EVENTS = frozenset({"response.error", "error"})

#: reason of an incomplete answer that ends normally -> its stop reason.
INCOMPLETE_STOPS = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}


#: Events that carry no word of the model.
_FRAMING = frozenset({"response.created", "response.in_progress", "response.queued", "keepalive", "codex.rate_limits"})


def visible_after(name: bytes, data: bytes) -> Visible:
    """The client's view after this first frame of a stream: a failure is no answer yet.

    name  the frame's event name, b"" if only its data has the type
    """
    kind = name.decode(errors="replace")
    if not kind:
        try:
            event: Any = load_json(data.decode())
        except (ValueError, RecursionError):
            event = None
        kind = str(event.get("type")) if isinstance(event, dict) else ""
    return Visible.FRAMING if kind in _FRAMING or ENDS.get(kind) == FAILED else Visible.CONTENT


def ends_as(event: Mapping[str, Any]) -> str | None:
    """The end that an event gives the stream: a value of `ENDS`, None if the stream continues.

    >>> ends_as({"type": "response.done"}), ends_as({"type": "error"}), ends_as({"type": "keepalive"})
    ('complete', 'failed', None)
    """
    kind = event.get("type")
    return ENDS.get(kind) if isinstance(kind, str) else None


def is_last(event: Mapping[str, Any]) -> bool:
    """Whether an event ends the stream."""
    kind = event.get("type")
    return isinstance(kind, str) and kind in ENDS


def incomplete_reason(event: Mapping[str, Any]) -> str | None:
    """Why an answer is incomplete: `max_output_tokens`, `content_filter`, …, "unknown"; None for a complete one."""
    if ends_as(event) != COMPLETE:
        return None
    response = event.get("response")
    response = response if isinstance(response, dict) else {}
    details = response.get("incomplete_details")
    if event["type"] != "response.incomplete" and response.get("status") != "incomplete" and details is None:
        return None
    reason = details.get("reason") if isinstance(details, Mapping) else None
    return reason if isinstance(reason, str) else "unknown"


def incomplete_stop(reason: str | None, rules: AnswerRules) -> str | None:
    """The stop reason of an incomplete answer; None if it is complete, or if the reason is a failure."""
    if reason is None:
        return None
    return INCOMPLETE_STOPS.get(reason, "max_tokens" if rules.any_limit else None)


def responses_failure(
    event: Mapping[str, Any], *, now: float = 0.0, rules: AnswerRules = USUAL_RULES
) -> Failure | None:
    """The failure that an event reports, or None.

    now  epoch seconds, for answers that name a moment
    """
    kind = event.get("type")
    if "type" not in event and error_object(event) is not None:
        kind = "error"
    if not isinstance(kind, str) or kind == "codex.rate_limits":
        return None
    response = event.get("response")
    response = response if isinstance(response, dict) else {}
    error = error_object(event) if event.get("error") is not None else None
    if error is None and response.get("error") is not None:
        error = error_object(response)
    if error is None:
        reason = incomplete_reason(event) if kind in ENDS else None
        if reason is not None and incomplete_stop(reason, rules) is None:
            return Failure("transient", 503, f"Incomplete response returned, reason: {reason}")
        if ENDS.get(kind) != FAILED and response.get("status") != "failed":
            return None
    known = event if error is None else {**event, "error": error}
    unnamed = rules.unnamed if kind in _ERROR_EVENTS else rules.unexplained
    return failure_of(known, now=now, unknown=unnamed, unexplained=unnamed)


def responses_usage(usage: Any, *, searches: int = 0) -> Usage:
    """Messages usage from `response.usage` of a Responses stream.

    The upstream's `input_tokens` include the cached ones, the result's do not. Reasoning is part of `output_tokens` in
    both.
    """
    usage = usage if isinstance(usage, Mapping) else {}
    details = _mapping(usage, "input_tokens_details")
    total, cached = count(usage.get("input_tokens")), count(details.get("cached_tokens"))
    written = min(count(details.get("cache_write_tokens")), max(0, total - cached))
    result = usage_of(
        max(0, total - cached - written),
        count(usage.get("output_tokens")),
        cache_read=cached,
        cache_creation=written,
    )
    if searches:
        result["server_tool_use"] = search_usage(searches)
    return with_thinking(result, _thought(usage))


def _thought(usage: Mapping[str, Any]) -> int | None:
    return detail(usage, "output_tokens_details", "reasoning_tokens")


def reported_usage(usage: Any, *, web: int, x: int) -> Usage:
    """Messages usage with the upstream's own counts only: an unreported input count is left out, so that the estimate
    stays. Searches are always counted.

    After searches `input_tokens` is the sum over several turns and may pass the window; `context_details` then has the
    size of the conversation.
    """
    usage = usage if isinstance(usage, Mapping) else {}
    context, details = _mapping(usage, "context_details"), _mapping(usage, "input_tokens_details")
    total, cached = reported_count(usage.get("input_tokens")), reported_count(details.get("cached_tokens"))
    last = reported_count(context.get("input_tokens"))
    total = total if last is None else last
    result: Usage = {}
    if total is not None:
        read = cached if cached is not None and cached <= total else None
        result["input_tokens"] = total - (read or 0)
        if read is not None:
            result["cache_read_input_tokens"] = read
    result["output_tokens"] = count(usage.get("output_tokens"))
    result["server_tool_use"] = x_search_usage(web, x)
    return with_thinking(result, _thought(usage))


def _mapping(holder: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = holder.get(name)
    return value if isinstance(value, Mapping) else {}


def spent_window(event: Mapping[str, Any]) -> float | None:
    """Seconds until the used-up rate limit of a `codex.rate_limits` event is reset, or None if none is used up.

    Only a hint: such an event never ends a stream by itself, and credits may still pay.
    """
    limits, credit = event.get("rate_limits"), event.get("credits")
    if not isinstance(limits, Mapping) or not limits.get("limit_reached"):
        return None
    if isinstance(credit, Mapping) and (credit.get("has_credits") or credit.get("unlimited")):
        return None
    windows = [window for key in ("primary", "secondary") if isinstance(window := limits.get(key), Mapping)]
    spent = [window for window in windows if (as_seconds(window.get("used_percent")) or 0) >= 100] or windows[:1]
    return max((as_seconds(window.get("reset_after_seconds")) or 0 for window in spent), default=0.0)
