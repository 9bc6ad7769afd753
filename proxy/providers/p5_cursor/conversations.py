"""The id of a run in the user's history at the service. Nothing else depends on it: every run carries the whole
conversation."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from proxy.core.identity import MAX_ID_BYTES, Owner

IDLE_S = 30 * 60.0
MAX_CONVERSATIONS = 10_000

#: Members of a request's metadata that name a conversation, by priority; and those of its member `cursor`.
_MEMBERS = ("cursor_chat_id", "cursorChatId", "cursor_resume", "cursorResume")
_INNER_MEMBERS = ("chat_id", "chatId", "resume", "resumeId")


@dataclass(slots=True)
class _Conversation:
    id: str
    seen: float


class Conversations:
    """A bounded table in memory. An entry expires 30 minutes after its last request; the oldest goes when the table is
    full.

    clock   seconds
    new_id  the hexadecimal digits of a new uuid
    """

    def __init__(
        self, clock: Callable[[], float], new_id: Callable[[], str], *, max_conversations: int = MAX_CONVERSATIONS
    ) -> None:
        self._clock = clock
        self._new_id = new_id
        self._max = max_conversations
        self._known: dict[Owner, _Conversation] = {}

    def id_for(self, owner: Owner | None, metadata: Any, own: Callable[[str], str] = str) -> str:
        """The id of a new run: the one in the request, else its owner's, else a new one. `own` turns an id that a
        caller names into the caller's own."""
        asked = named_conversation(metadata)
        named = None if asked is None else own(asked)
        known = named or self._recorded(owner) or str(uuid.UUID(self._new_id()))
        if owner is not None:
            self.record(owner, known)
        return known

    def record(self, owner: Owner | None, conversation_id: str) -> None:
        """Stores the id for the owner's next run, since the service may choose another one."""
        if owner is None or not _is_id(conversation_id):
            return
        now = self._clock()
        entry = self._known.get(owner)
        if entry is not None:  # it keeps its place
            entry.id, entry.seen = conversation_id, now
            return
        self._known[owner] = _Conversation(conversation_id, now)
        if len(self._known) > self._max:
            del self._known[next(iter(self._known))]

    def _recorded(self, owner: Owner | None) -> str | None:
        entry = self._known.get(owner) if owner is not None else None
        if entry is None or owner is None:
            return None
        if self._clock() - entry.seen > IDLE_S:
            del self._known[owner]
            return None
        return entry.id


def named_conversation(metadata: Any) -> str | None:
    """The conversation named in a request's metadata.

    >>> named_conversation({"cursor": {"chatId": "c1"}}), named_conversation({"cursor_chat_id": ""})
    ('c1', None)
    """
    if not isinstance(metadata, Mapping):
        return None
    inner = metadata.get("cursor")
    named = [metadata.get(member) for member in _MEMBERS]
    named += [inner.get(member) for member in _INNER_MEMBERS] if isinstance(inner, Mapping) else []
    return next((value for value in named if _is_id(value)), None)


def _is_id(value: Any) -> bool:
    """Whether this can be an id. A longer text is not the service's, and would only fill the table."""
    return isinstance(value, str) and bool(value.strip()) and len(value.encode("utf-8", "replace")) <= MAX_ID_BYTES
