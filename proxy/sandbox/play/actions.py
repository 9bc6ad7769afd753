"""Actions of a simulator on an open answer, one after the other; and faults that replace it by an HTTP answer, as rows.

An event dict is sent as a frame; the classes below are everything else. An HTTP fault is a function of its script
step's parameters, which its signature lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter, Signature
from typing import Any, NamedTuple

from proxy.core.sse import dump_json

#: Events that share one write without a delay: fewer system calls, and still a visible stream.
EVENTS_PER_WRITE = 8


class Raw(NamedTuple):
    """Bytes that are sent unchanged, in their own write."""

    data: bytes


class Pause(NamedTuple):
    """Sends nothing for a while. As the first action it delays the head of the response as well."""

    seconds: float


class Cut(NamedTuple):
    """Ends the connection without the end of the body: closed, or reset."""

    reset: bool = False


class Stall(NamedTuple):
    """Sends nothing more, and keeps the connection open until the client leaves."""


def silence(seconds: float | None) -> Pause | Stall:
    """A silence of that length; None: for ever."""
    return Stall() if seconds is None else Pause(seconds)


class Until(NamedTuple):
    """Holds the answer until the client has done something: `ready` is checked after each of its messages."""

    ready: Callable[[], bool]


Action = dict[str, Any] | Raw | Pause | Cut | Stall | Until


class Reply(NamedTuple):
    """An answer that is not a stream: JSON, or text when `body` is a string."""

    status: int
    body: Any = ""
    headers: Mapping[str, str] | None = None


class Pace(NamedTuple):
    """The pace of an answer: `word_delay_s` precedes each delta. `events_per_write` None is 1 when delayed, else the
    default."""

    word_delay_s: float = 0.0
    events_per_write: int | None = None

    @property
    def batch(self) -> int:
        return self.events_per_write or (1 if self.word_delay_s > 0 else EVENTS_PER_WRITE)


class Framing(NamedTuple):
    """The form of events as frames, and which of them are deltas, for the pace."""

    encode: Callable[[Iterable[Mapping[str, Any]]], bytes]
    is_delta: Callable[[Mapping[str, Any]], bool]


def _encode_named(events: Iterable[Mapping[str, Any]]) -> bytes:
    # not the proxy's own encoder: that one writes known shapes by hand, and a fault may send any other
    return "".join([f"event: {event['type']}\ndata: {dump_json(event)}\n\n" for event in events]).encode()


def _encode_data(events: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join([f"data: {dump_json(event)}\n\n" for event in events]).encode()


#: Events named by their type; and unnamed chunks, whose text is in their choices.
NAMED = Framing(_encode_named, lambda event: event["type"].endswith((".delta", "block_delta")))
BARE = Framing(_encode_data, lambda event: any(one.get("delta") for one in event.get("choices") or ()))


HttpFault = Callable[..., Reply]

#: The parameters of a step, or their defaults.
Values = Mapping[str, Any]


def wait_header(values: Values) -> dict[str, str]:
    """`retry-after` from `seconds` or `retry_after`; no header for None."""
    seconds = values.get("seconds", values.get("retry_after"))
    return {} if seconds is None else {"retry-after": f"{seconds:g}"}


def failure(
    status: int, body: Any, headers: Callable[[Values], Mapping[str, str]] = wait_header, /, **params: Any
) -> HttpFault:
    """A row: status, body (perhaps a function of the values) and headers. `params` are the parameters of a step with
    their defaults; a `status` among them replaces that of the row."""

    def fault(**given: Any) -> Reply:
        values = {"status": status, **params, **given}
        return Reply(values["status"], body(values) if callable(body) else body, headers(values))

    parameters = [Parameter(name, Parameter.KEYWORD_ONLY, default=default) for name, default in params.items()]
    fault.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return fault


def _html_page(values: Values) -> str:
    title = values["status"]
    return f"<html><head><title>{title}</title></head><body><h1>{title}</h1><p>Bad gateway</p></body></html>"


def _error(values: Values) -> dict[str, Any]:
    return {"error": {"message": values["message"], "type": values["kind"], "code": values["code"]}}


FRONT_FAULTS: dict[str, HttpFault] = {
    # a gateway that should have sent a stream
    "json_error": failure(200, _error, message="boom", kind="invalid_request_error", code=None),
    # the page of a load balancer in front of the backend
    "html_error": failure(502, _html_page, status=502),
    # a client that follows it would send its credential there
    "redirect": failure(302, "", lambda values: {"location": values["location"]}, location="/elsewhere", status=302),
}
