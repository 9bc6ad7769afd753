"""Under which id a run stands in the user's history."""

from __future__ import annotations

import itertools
import uuid
from typing import Any

from core.strategies import json_values
from cursor_talk import Talk, fault
from harness import Live
from hypothesis import given
from samples import rows

from proxy.core.identity import Owner
from proxy.providers.p5_cursor.conversations import IDLE_S, MAX_CONVERSATIONS, Conversations, named_conversation

S = Owner("s")


class Made:
    def __init__(self, **options: int) -> None:
        self.now = 1000.0
        numbers = itertools.count(1)
        self.table = Conversations(lambda: self.now, lambda: f"{next(numbers):032x}", **options)

    def id(self, owner: Owner | None = S, metadata: Any = None) -> str:
        return self.table.id_for(owner, metadata)


def test_the_rows_of_the_wire_document() -> None:
    made = Made()
    first = made.id()
    assert uuid.UUID(first) and made.id() == first
    assert made.id(S, {"cursor_chat_id": "Y"}) == "Y" and made.id() == "Y"
    made.table.record(S, "Z")
    assert made.id() == "Z"
    assert made.id(None) != made.id(None)


def test_agents_of_a_session_have_conversations_of_their_own() -> None:
    made = Made()
    assert len({made.id(S), made.id(Owner("s", "a")), made.id(Owner("t"))}) == 3


@rows(
    "metadata, named",
    [
        ({"cursor_chat_id": "1", "cursorChatId": "2"}, "1"),
        ({"cursorChatId": "2", "cursor_resume": "3"}, "2"),
        ({"cursor_resume": "3", "cursorResume": "4"}, "3"),
        ({"cursorResume": "4", "cursor": {"chat_id": "5"}}, "4"),
        ({"cursor": {"chat_id": "5", "chatId": "6"}}, "5"),
        ({"cursor": {"chatId": "6", "resume": "7"}}, "6"),
        ({"cursor": {"resume": "7", "resumeId": "8"}}, "7"),
        ({"cursor": {"resumeId": "8"}}, "8"),
        ({"cursor_chat_id": "", "cursorChatId": None, "cursor_resume": 3, "cursorResume": " "}, None),
        ({"cursor_chat_id": "x" * 513, "cursor": {"chat_id": "5"}}, "5"),
        ({"cursor": "5"}, None),
        ({}, None),
        ("c", None),
        (None, None),
    ],
)
def test_the_metadata_names_a_conversation(metadata: Any, named: str | None) -> None:
    assert named_conversation(metadata) == named
    assert named is None or Made().id(None, metadata) == named


@given(json_values)
def test_any_metadata_is_survived(metadata: Any) -> None:
    named_conversation(metadata)


def test_a_conversation_goes_half_an_hour_after_its_last_request() -> None:
    made = Made()
    first = made.id()
    for _ in range(3):
        made.now += IDLE_S
        assert made.id() == first
    made.now += IDLE_S + 1
    assert made.id() != first


def test_the_one_that_was_made_first_makes_room_whatever_happened_to_it_since() -> None:
    made = Made(max_conversations=2)
    first, second = made.id(), made.id(Owner("2"))
    assert made.id() == first
    made.table.record(S, "Z")  # keeps its place
    made.id(Owner("3"))
    assert made.id(Owner("2")) == second
    assert made.id() not in (first, "Z")
    assert MAX_CONVERSATIONS == 10_000


def test_what_is_no_id_is_not_recorded() -> None:
    made = Made()
    first = made.id()
    made.table.record(S, "")
    made.table.record(S, "x" * 513)
    made.table.record(None, "Z")
    assert made.id() == first


async def test_the_service_names_the_conversation_that_it_uses(live: Live) -> None:
    """All runs of the session have that name from then on; those of others do not."""
    fault(live, "notes_session_id", notes_session_id="Z")
    for session in ("s", "s", "other"):
        await Talk(live, "hello", session=session).turn()
    first, second, other = (request.body["conversation_id"] for request in live.sandbox.p5.requests)
    assert second == "Z" and "Z" not in (first, other)
