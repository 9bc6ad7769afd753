"""The session and agent that a request belongs to.

Claude Code sends its session on every request, and an agent id on those of its subagents. Agents of one session run at
the same time, so state that outlives a request is keyed by both.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: Accepted names of each header, the neutral one first.
SESSION_HEADERS = ("x-agent-session-id", "x-claude-code-session-id")
AGENT_HEADERS = ("x-agent-id", "x-claude-code-agent-id")
PARENT_HEADERS = ("x-agent-parent-id", "x-claude-code-parent-agent-id")

#: No known client sends a longer id; it would only fill tables.
MAX_ID_BYTES = 512


@dataclass(frozen=True, slots=True)
class Owner:
    """The key of conversation state: a session's main conversation, or one of its agents."""

    session: str
    agent: str | None = None


def _single(values: Mapping[str, Sequence[str]], names: Sequence[str]) -> tuple[str | None, bool]:
    """The trimmed value of the one header present under these names, None if there is none; and whether it is valid."""
    found: list[str] = []
    for name in names:
        if name in values:
            found += values[name]
    if not found:
        return None, True
    value = found[0].strip(" \t")
    ok = (
        len(found) == 1 and 0 < len(value) <= MAX_ID_BYTES and all("!" <= char <= "~" and char != "," for char in value)
    )
    return value, ok


def owner_of(headers: Mapping[str, Sequence[str]]) -> Owner | None:
    """The owner named by the identity headers; None if nothing may be kept for the request.

    One invalid header spoils the whole identity: an agent with a broken id must not be taken for the main conversation.

    headers  lower-case name -> all values of that header

    >>> owner_of({"x-claude-code-session-id": [" s "], "x-claude-code-agent-id": ["a"]})
    Owner(session='s', agent='a')
    """
    session, session_ok = _single(headers, SESSION_HEADERS)
    if session is None:
        return None
    agent, agent_ok = _single(headers, AGENT_HEADERS)
    parent, parent_ok = _single(headers, PARENT_HEADERS)
    if not (session_ok and agent_ok and parent_ok):
        return None
    if agent is None and parent is not None:
        return None
    return Owner(session, agent)


def agents_of(headers: Mapping[str, Sequence[str]]) -> tuple[str | None, str | None]:
    """The sub-agent of a request and its parent agent, for display; (None, None) for the main conversation.

    >>> agents_of({"x-claude-code-agent-id": ["b"], "x-claude-code-parent-agent-id": ["a"]})
    ('b', 'a')
    """
    agent, agent_ok = _single(headers, AGENT_HEADERS)
    if agent is None or not agent_ok:
        return None, None
    parent, parent_ok = _single(headers, PARENT_HEADERS)
    return agent, parent if parent_ok else None


def session_of(headers: Mapping[str, Sequence[str]]) -> str | None:
    """The session id for caches, affinity and display: the header as sent."""
    for name in SESSION_HEADERS:
        for value in headers.get(name, ()):
            if value:
                return value
    return None


#: Characters of each message, and messages, of which a session is made.
_MAX_OPENING_CHARS, _MAX_OPENING = 8192, 32


def session_of_opening(messages: Any) -> str:
    """A session for a conversation that names none, made of the user's texts before the first answer. These stay the
    same in all requests of a conversation.

    messages  of any API: a text, or entries with a `role` and a `content` that is a text or a list of parts

    >>> a = session_of_opening("Hi")
    >>> a == session_of_opening([{"role": "user", "content": [{"text": "Hi"}]}, {"role": "assistant", "content": "A"}])
    True
    """
    digest = hashlib.sha256()
    entries = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
    for entry in entries[:_MAX_OPENING] if isinstance(entries, list) else ():
        role = entry.get("role") if isinstance(entry, Mapping) else None
        if role == "user":
            for text in _texts_in(entry.get("content")):
                digest.update(f"{len(text)}:{text[:_MAX_OPENING_CHARS]}".encode("utf-8", "surrogatepass"))
        elif role not in ("system", "developer"):  # an answer, or an item of one
            break
    return f"messages-{digest.hexdigest()[:32]}"


def _texts_in(content: Any) -> Iterator[str]:
    parts = content if isinstance(content, list) else [{"text": content}]
    for part in parts:
        text = part.get("text") if isinstance(part, Mapping) else part
        if isinstance(text, str):
            yield text


def fits_header(value: str) -> bool:
    """Whether a session id can be sent in a header. One from the body may hold anything."""
    return value.isascii() and value.isprintable()


def session_in_metadata(metadata: Any) -> str | None:
    """The session that Claude Code repeats in the body: in JSON text, in older versions as `user_…_session_<id>`."""
    user_id = metadata.get("user_id") if isinstance(metadata, Mapping) else None
    if not isinstance(user_id, str) or len(user_id) > 4 * MAX_ID_BYTES:
        return None
    _, marker, tail = user_id.partition("_session_")
    try:
        session = tail if marker else json.loads(user_id).get("session_id")
    except (ValueError, AttributeError, RecursionError):
        return None
    return session if isinstance(session, str) and session and session.isprintable() else None
