"""What a simulator does with an open answer, one action after the other; and HTTP answers instead, as rows.

An event dict is sent as a frame; the classes below are everything else. An HTTP fault is a function of the parameters
of its script step; its signature is the list of those parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter, Signature
from typing import Any, NamedTuple

from proxy.core.sse import dump_json

#: Events that share one write when nothing is slowed down: fewer system calls, and still a visible stream.
EVENTS_PER_WRITE = 8


class Raw(NamedTuple):
    """Bytes as they are, in a write of their own."""

    data: bytes


class Pause(NamedTuple):
    """Silence. As the first action it delays the head of the response as well."""

    seconds: float


class Cut(NamedTuple):
    """The connection ends without the end of the body: closed, or reset."""

    reset: bool = False


class Stall(NamedTuple):
    """Nothing more comes, and the connection stays open until the client leaves."""


def silence(seconds: float | None) -> Pause | Stall:
    """None: for ever."""
    return Stall() if seconds is None else Pause(seconds)


class Until(NamedTuple):
    """Nothing more of the answer comes before the client has done something: `ready` is asked whenever it did."""

    ready: Callable[[], bool]


Action = dict[str, Any] | Raw | Pause | Cut | Stall | Until


class Reply(NamedTuple):
    """An answer that is no stream: JSON, or text when `body` is a string."""

    status: int
    body: Any = ""
    headers: Mapping[str, str] | None = None


class Pace(NamedTuple):
    """How fast: `word_delay_s` goes before each delta. `events_per_write` None is 1 when delayed, else the default."""

    word_delay_s: float = 0.0
    events_per_write: int | None = None

    @property
    def batch(self) -> int:
        return self.events_per_write or (1 if self.word_delay_s > 0 else EVENTS_PER_WRITE)


class Framing(NamedTuple):
    """How events become frames, and which of them are words of an answer, for the pace."""

    encode: Callable[[Iterable[Mapping[str, Any]]], bytes]
    is_delta: Callable[[Mapping[str, Any]], bool]


def _encode_named(events: Iterable[Mapping[str, Any]]) -> bytes:
    # not the proxy's own encoder: that one writes the shapes it knows by hand, and a fault may send any other
    return "".join([f"event: {event['type']}\ndata: {dump_json(event)}\n\n" for event in events]).encode()


def _encode_data(events: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join([f"data: {dump_json(event)}\n\n" for event in events]).encode()


#: Events with a name, which is their type; and chunks without one, whose words are in their choices.
NAMED = Framing(_encode_named, lambda event: event["type"].endswith((".delta", "block_delta")))
BARE = Framing(_encode_data, lambda event: any(one.get("delta") for one in event.get("choices") or ()))


HttpFault = Callable[..., Reply]

#: The parameters of a step, or their defaults.
Values = Mapping[str, Any]


def wait_header(values: Values) -> dict[str, str]:
    """`retry-after`, of `seconds` or `retry_after`; none for None."""
    seconds = values.get("seconds", values.get("retry_after"))
    return {} if seconds is None else {"retry-after": f"{seconds:g}"}


def failure(
    status: int, body: Any, headers: Callable[[Values], Mapping[str, str]] = wait_header, /, **params: Any
) -> HttpFault:
    """A row: status, body (perhaps a function of the values) and headers. `params` are what a step may give, with their
    defaults; a `status` among them replaces that of the row."""

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
    # a gateway that had promised a stream
    "json_error": failure(200, _error, message="boom", kind="invalid_request_error", code=None),
    # what a load balancer in front of the backend says
    "html_error": failure(502, _html_page, status=502),
    # a client that follows it would carry its credential there
    "redirect": failure(302, "", lambda values: {"location": values["location"]}, location="/elsewhere", status=302),
}
