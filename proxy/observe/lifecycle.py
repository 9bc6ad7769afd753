"""The events of a request's life, and the two protocols that receive what is observed: `Recorder` and `Log`.

A request gives a sequence of the events below, each a small frozen value. A monitor or a test implements
`Recorder`; a log of records implements `Log`. Both have a null implementation, which is the default everywhere, so no
layer asks whether there is a receiver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Started:
    """A request arrived. `endpoint` is one of messages, count_tokens, responses, chat_completions, …"""

    endpoint: str
    session: str | None


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
class UsageUpdated:
    """Token counts as far as known; None means unchanged."""

    input_tokens: int | None
    output_tokens: int | None


@dataclass(frozen=True, slots=True)
class Judged:
    """The tool calls of an answer were judged before the client may run them.

    model     who judged, "" when the rules alone did
    outcomes  outcome -> number of calls
    input_tokens, output_tokens  what the judge cost
    """

    model: str
    outcomes: Mapping[str, int]
    input_tokens: int
    output_tokens: int
    ms: int


@dataclass(frozen=True, slots=True)
class Completed:
    """The whole body was sent."""

    status: int


@dataclass(frozen=True, slots=True)
class Failed:
    """An error answer, or a stream that broke (then `status` is still 200)."""

    status: int | None
    error: str


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The client left before the end."""

    error: str


Event = (
    Started
    | ProjectResolved
    | Sequenced
    | ProviderSelected
    | ModelResolved
    | CompactionStarted
    | UpstreamStarted
    | GenerationStarted
    | Progress
    | UsageUpdated
    | Judged
    | Completed
    | Failed
    | Abandoned
)


class Recorder(Protocol):
    """Receives the events of requests. Called on the event loop, so it must return at once and never raise."""

    def record(self, request_id: str, event: Event) -> None: ...

    @property
    def wants_project(self) -> bool:
        """Whether `ProjectResolved` is worth a look at the file system."""
        ...


class NullRecorder:
    """Ignores every event."""

    wants_project = False

    def record(self, request_id: str, event: Event) -> None:
        return None


class Log(Protocol):
    """Structured log: a service, a message, fields. It redacts, never raises and never blocks the loop."""

    def write(self, level: str, service: str, msg: str, **fields: Any) -> None:
        """One record. `level` is debug, info, warn or error."""
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
