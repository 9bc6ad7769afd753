"""The events of a request's life, and the two protocols that receive what is observed: `Recorder` and `Log`.

A request gives a sequence of the events below, each a small frozen value. A monitor or a test implements
`Recorder`; a log of records implements `Log`. Both have a null implementation, which is the default everywhere, so no
layer asks whether there is a receiver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Started:
    """A request arrived. `endpoint` is one of messages, count_tokens, responses, chat_completions, …

    agent, parent  ids of a sub-agent of the session, and of the agent that began it
    client_id      the client's own id of this request, if any
    caller         the owner of its key, where callers have keys of their own
    """

    endpoint: str
    session: str | None
    agent: str | None = None
    parent: str | None = None
    client_id: str | None = None
    caller: str | None = None


@dataclass(frozen=True, slots=True)
class SessionFound:
    """The session of a request whose headers name none."""

    session: str


@dataclass(frozen=True, slots=True)
class ProjectResolved:
    """The project the client works in, found by the working directory in its prompt."""

    project: str


@dataclass(frozen=True, slots=True)
class Sequenced:
    """The request's number within its session, from 1."""

    number: int


@dataclass(frozen=True, slots=True)
class ProviderSelected:
    """Routing is done. `model` is "" for a service without a choice of models."""

    provider: str
    model: str
    effort: str | None


@dataclass(frozen=True, slots=True)
class ModelResolved:
    """The name the upstream will be asked for."""

    requested: str
    resolved: str


@dataclass(frozen=True, slots=True)
class CompactionStarted:
    """The request summarises a conversation."""


@dataclass(frozen=True, slots=True)
class UpstreamStarted:
    """A request left for the upstream; `attempt` counts from 1."""

    attempt: int


@dataclass(frozen=True, slots=True)
class GenerationStarted:
    """The first output of the model arrived."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The data of one upstream read was passed on: its size in bytes and its number of events."""

    bytes: int
    chunks: int


@dataclass(frozen=True, slots=True)
class InputEstimated:
    """Our own count of the input, until the upstream reports its count."""

    tokens: int


@dataclass(frozen=True, slots=True)
class UsageUpdated:
    """Token counts as far as known; None means unchanged. `cached_tokens`: how much of the input the upstream read from
    its cache; `thinking_tokens`: how much of the output is thinking; `searches`: searches of the web by the service."""

    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None = None
    thinking_tokens: int | None = None
    searches: int | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """The tool calls of an answer were judged before the client may run them.

    model     the judging model, "" when the rules alone decided
    outcomes  outcome -> number of calls
    input_tokens, output_tokens  the judge's cost
    """

    model: str
    outcomes: Mapping[str, int]
    input_tokens: int
    output_tokens: int
    ms: int


@dataclass(frozen=True, slots=True)
class PicturesDescribed:
    """Pictures of a request were described by another model, since the one that answers is not sent them.

    provider  the account of the model that describes
    outcomes  ok, or the reason why there is no description -> number of pictures
    input_tokens, output_tokens  what the descriptions cost
    """

    provider: str
    model: str
    outcomes: Mapping[str, int]
    input_tokens: int
    output_tokens: int
    ms: int


@dataclass(frozen=True, slots=True)
class Searched:
    """The proxy searched the web for the model.

    provider  the account that searched
    outcome   ok, or the word of the Messages API for the failure
    results   number of results that the model was shown
    input_tokens, output_tokens  what the search cost, as far as the service reports it
    """

    provider: str
    outcome: str
    results: int
    input_tokens: int
    output_tokens: int
    ms: int


@dataclass(frozen=True, slots=True)
class Timed:
    """The time of a request by span, reported before its end. Name of a span -> milliseconds, in the order of `SPANS`;
    a span that did not happen is missing."""

    spans: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class CacheChecked:
    """The use of the upstream's cache, reported before the end of a request.

    expected  the share of the input that the conversation's previous request has in common with this one, 0 to 1; None
              without one
    cached    the share that was read from the cache, 0 to 1
    reason    why it is less than expected, in words; "" when it is not
    """

    expected: float | None
    cached: float
    reason: str


@dataclass(frozen=True, slots=True)
class UpstreamAnswered:
    """The upstream's own id of the request, for its support."""

    upstream_id: str


@dataclass(frozen=True, slots=True)
class Captured:
    """The request is captured, and where."""

    place: str


@dataclass(frozen=True, slots=True)
class FellBack:
    """Another model serves in place of one that could not.

    kind  of the error, as in `errors.KINDS`
    """

    before: str
    instead: str
    kind: str


@dataclass(frozen=True, slots=True)
class Completed:
    """The whole body was sent. `stop`: why the model stopped, in the word of the Messages API; "" if unknown."""

    status: int
    stop: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """An error answer, or a stream that broke (then `status` is still 200). `kind`: that of the error, as in
    `errors.KINDS`."""

    status: int | None
    error: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The client left before the end."""

    error: str


#: The spans of a request's time, one after another, see `observe.timings`; all of them together end with the first
#: token.
SPANS = ("queue", "translate", "sign_in", "retry", "connect", "first_byte", "first_token")

Event = (
    Started
    | SessionFound
    | ProjectResolved
    | Sequenced
    | ProviderSelected
    | ModelResolved
    | CompactionStarted
    | UpstreamStarted
    | GenerationStarted
    | Progress
    | InputEstimated
    | UsageUpdated
    | Judged
    | PicturesDescribed
    | Searched
    | Timed
    | CacheChecked
    | UpstreamAnswered
    | Captured
    | FellBack
    | Completed
    | Failed
    | Abandoned
)


@dataclass(frozen=True, slots=True)
class SignInRenewed:
    """A provider's token was renewed, or could not be."""

    provider: str
    ok: bool


@dataclass(frozen=True, slots=True)
class SocketsOpen:
    """How many sockets a provider holds now."""

    provider: str
    count: int


#: Events that belong to no request.
ServiceEvent = SignInRenewed | SocketsOpen

#: Receives them. Called on the event loop, so it must return at once and never raise.
Happened = Callable[[ServiceEvent], None]


def unheard(event: ServiceEvent) -> None:
    """Ignores the event."""


class Recorder(Protocol):
    """Receives the events of requests. Called on the event loop, so it must return at once and never raise."""

    def record(self, request_id: str, event: Event) -> None: ...

    def happened(self, event: ServiceEvent) -> None:
        """Receives an event that belongs to no request."""
        ...

    @property
    def wants_project(self) -> bool:
        """Whether `ProjectResolved` is worth a look at the file system."""
        ...


class NullRecorder:
    """Ignores every event."""

    wants_project = False

    def record(self, request_id: str, event: Event) -> None:
        return None

    def happened(self, event: ServiceEvent) -> None:
        return None


class Log(Protocol):
    """Structured log: a service, a message, fields. It redacts, never raises and never blocks the loop."""

    def write(self, level: str, service: str, msg: str, **fields: Any) -> None:
        """Writes one record. `level` is debug, info, warn or error."""
        ...

    def capture_error(self, name: str, record: dict[str, Any]) -> str | None:
        """Keeps a failed answer in a file of its own; returns where, or None when captures are not kept."""
        ...


class NullLog:
    """Ignores every record."""

    def write(self, level: str, service: str, msg: str, **fields: Any) -> None:
        return None

    def capture_error(self, name: str, record: dict[str, Any]) -> str | None:
        return None
