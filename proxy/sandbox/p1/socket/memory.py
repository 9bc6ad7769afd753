"""What one socket of P1 remembers: the last answer that it completed, and the conversation up to there.

Nothing is stored anywhere else, so no other socket and no HTTP request can go on from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from proxy.sandbox.wires.refusal import Refused, invalid

Item = dict[str, Any]


class Memory:
    """As long as a context window at most, since every request that adds to it is checked against that."""

    def __init__(self) -> None:
        self.last: str | None = None  # the id of the answer
        self._items: list[Item] = []

    def recall(self, previous: str | None) -> list[Item]:
        """The items to go on from; none for None. Raises Refused for what is not the last answer of this socket.

        What was recalled is forgotten: only a turn that completes leaves something to go on from.
        """
        if previous is None:
            return []
        if previous != self.last:
            raise not_found(previous)
        items, self.last, self._items = self._items, None, []
        return items

    def remember(self, response_id: str, items: Iterable[Item]) -> None:
        self.last = response_id
        self._items = [item for item in items if _is_kept(item)]


def _is_kept(item: Item) -> bool:
    """A trigger has done its work; a thought that went out without its encrypted content cannot be sent in again."""
    kind = item.get("type")
    return kind != "compaction_trigger" and not (kind == "reasoning" and "encrypted_content" not in item)


def not_found(previous: str) -> Refused:
    return invalid(
        f"Previous response with id '{previous}' not found.",
        code="previous_response_not_found",
        param="previous_response_id",
    )
