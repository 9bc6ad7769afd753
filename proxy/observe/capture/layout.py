"""The folders and file names of captures, for their writer and their readers.

    <state>/traffic/<session or no-session>/<number, 6 digits>-<provider>-<request id>/
        001-000-metadata.json  002-010-anthropic-request.json  003-020-upstream-request.json …
        events/000001-040-upstream-event.json  events/000002-050-downstream-event.json …

Artifacts and events have running numbers of their own, so the order of names is the order of events. A station keeps
its number for every provider, route and transport; an attempt writes 020 to 033 again.
"""

from __future__ import annotations

from pathlib import Path

from proxy.observe.log.storage import safe_name

#: Below the state folder.
TRAFFIC = "traffic"
EVENTS = "events"
#: The folder of requests without a session.
NO_SESSION = "no-session"

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600

# The stations of a request.
METADATA = "000-metadata"
#: kind of a request -> what the client sent
RECEIVED = {
    "messages": "010-anthropic-request",
    "count_tokens": "010-anthropic-request",
    "responses": "010-openai-responses-request",
    "chat_completions": "010-openai-chat-completions-request",
}
CONVERTED = "015-anthropic-request"
RESOLUTION = "016-model-resolution"
REPLY = "051-downstream-response"
SUMMARY = "061-request-summary"

# Those of an attempt.
UPSTREAM_REQUEST = "020-upstream-request"
UPSTREAM_METADATA = "021-upstream-request-metadata"
ATTEMPT = "022-upstream-attempt"
UPSTREAM_HEADERS = "030-upstream-response-headers"
UPSTREAM_ERROR = "031-upstream-error-body"
UPSTREAM_BODY = "032-upstream-response-body"
UPSTREAM_KEPT = "033-upstream-response-capture"

# Events.
SENT_EVENT = "025-upstream-message"
UPSTREAM_EVENT = "040-upstream-event"
DOWNSTREAM_EVENT = "050-downstream-event"

#: Extensions of a body: server-sent events, JSON, other text; of an error also text.
EXTENSIONS = ("json", "sse", "bin", "txt")


def capture_path(state_root: Path, session: str | None, number: int, provider: str, request_id: str) -> Path:
    """The folder of one capture, always two levels below `traffic`.

    >>> str(capture_path(Path("/s"), "../a", 7, "p1", "id"))
    '/s/traffic/.._a/000007-p1-id'
    >>> str(capture_path(Path("/s"), " ", 0, "p1", "id"))
    '/s/traffic/no-session/000000-p1-id'
    """
    named = (session or "").strip()
    folder = safe_name(named) if named else NO_SESSION
    if not named:
        number = 0
    return state_root / TRAFFIC / folder / f"{number:06d}-{safe_name(provider)}-{safe_name(request_id)}"


def artifact_name(index: int, station: str, extension: str = "json") -> str:
    """`index` counts from 1.

    >>> artifact_name(1, METADATA)
    '001-000-metadata.json'
    """
    return f"{index:03d}-{station}.{extension}"


def event_name(index: int, station: str) -> str:
    """The name below the folder of a capture.

    >>> event_name(1, UPSTREAM_EVENT)
    'events/000001-040-upstream-event.json'
    """
    return f"{EVENTS}/{index:06d}-{station}.json"
