"""Tool calls that wait for their results: those of the last assistant message, or of a whole conversation."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from proxy.core.invalid import InvalidRequest
from proxy.core.tools.calls import short_name, unique_id, upstream_id


class OpenCalls:
    """Calls by the ids of the client, of which two may be the same, and the ids that they are sent with."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[str]] = {}
        self._sent: set[str] = set()
        self._counts: dict[str, int] = {}

    def begin(self, block: Mapping[str, Any]) -> tuple[str, str]:
        """The id and the name that a `tool_use` block is sent with. Raises InvalidRequest.

        >>> OpenCalls().begin({"id": "call_1__u2", "name": "Bash"})
        ('call_1', 'Bash')
        """
        call_id, name = block.get("id"), block.get("name")
        if not isinstance(call_id, str) or not call_id or not isinstance(name, str) or not name:
            raise InvalidRequest("a `tool_use` block needs a string `id` and `name`", param="messages")
        # The upstream's own id, as long as no other call of this message has it.
        sent_as = unique_id(upstream_id(call_id, shorten=False), self._sent, self._counts)
        self._waiting.setdefault(call_id, deque()).append(sent_as)
        return sent_as, short_name(name)

    def answer(self, call_id: object) -> str | None:
        """The id that a result is sent with; None for one without its call, or for a second one."""
        sent_ids = self._waiting.get(call_id) if isinstance(call_id, str) else None
        return sent_ids.popleft() if sent_ids else None

    @property
    def unanswered(self) -> list[str]:
        """The ids, as they are sent, of the calls that still wait."""
        return [sent_as for sent_ids in self._waiting.values() for sent_as in sent_ids]


class WaitingCalls:
    """The calls of a conversation by the ids of the client, of which two may be the same: results belong to the newest
    turn that has such a call, and there to the first.

    >>> calls = WaitingCalls()
    >>> for place, turn in enumerate((0, 1, 1)):
    ...     calls.add("a", f"a{place}", turn=turn, place=place)
    >>> calls.answer("a"), calls.unanswered(), calls.answer("b")
    ('a1', {0: 'a0', 2: 'a2'}, None)
    """

    def __init__(self) -> None:
        self._turns: dict[str, list[tuple[int, deque[tuple[int, str]]]]] = {}

    def add(self, call_id: str, sent_as: str, *, turn: int, place: int) -> None:
        turns = self._turns.setdefault(call_id, [])
        if not turns or turns[-1][0] != turn:
            turns.append((turn, deque()))
        turns[-1][1].append((place, sent_as))

    def answer(self, call_id: str) -> str | None:
        """The id that a result is sent with; None for one without its call, or for a second one."""
        turns = self._turns.get(call_id)
        if not turns:
            return None
        calls = turns[-1][1]
        _, sent_as = calls.popleft()
        if not calls:
            turns.pop()
        return sent_as

    def unanswered(self) -> dict[int, str]:
        """Place of a call that still waits -> the id it is sent with."""
        return dict(call for turns in self._turns.values() for _, calls in turns for call in calls)
