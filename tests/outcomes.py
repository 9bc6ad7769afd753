"""What may become of a request, for the tables of faults."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Good:
    """A whole answer; `blocks` without thoughts."""

    attempts: int = 1
    stop: str = "end_turn"
    blocks: tuple[str, ...] = ("text",)
    waits: tuple[float, ...] = ()


@dataclass(frozen=True)
class Refused:
    """An HTTP error; `words` stand in its message."""

    status: int
    type: str
    attempts: int = 1
    headers: dict[str, str] = field(default_factory=dict)
    words: str = ""


@dataclass(frozen=True)
class Broken:
    """An error event behind a beginning; without a stream a status. Never another attempt once text or a call began."""

    status: int = 502
    type: str = "api_error"
    open: str | None = None
    words: str = ""
    attempts: int = 1


@dataclass(frozen=True)
class CallCut:
    """A tool call that the token limit cut: an error event behind the open call; without a stream the answer without
    it, which says so itself."""

    words: str = "(max_tokens) inside the arguments"
    attempts: int = 1


Outcome = Good | Refused | Broken | CallCut
