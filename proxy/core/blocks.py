"""The content blocks of the Messages format, in one table.

A new type of block is one row of `BLOCKS`, and a row of `DELTAS` for each type of delta that only it has. The rows
decide how a block starts, how its deltas are folded into a whole reply (`messages.Fold`), how they are written (`sse`),
which empty delta keeps a silent connection alive, and on which routes an answer shows the block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any


class How(Enum):
    """How deltas fill a member of their block."""

    APPEND = "append"  # pieces of a text, after what the member held at the start
    REPLACE = "replace"  # the value of the last delta
    COLLECT = "collect"  # entries of a list
    PARSE = "parse"  # pieces of JSON text; their object replaces the member when the block stops


#: The value of a member before the first delta, where the start of the block must have it.
_EMPTY: Mapping[How, type] = {How.APPEND: str, How.REPLACE: str, How.PARSE: dict}


@dataclass(frozen=True, slots=True)
class DeltaType:
    """A type of delta.

    carries  its member with the value
    fills    the member of the block that gets the value
    """

    name: str
    carries: str
    fills: str
    how: How

    def of(self, value: Any) -> dict[str, Any]:
        """
        >>> TEXT_DELTA.of("Hi")
        {'type': 'text_delta', 'text': 'Hi'}
        """
        return {"type": self.name, self.carries: value}

    @property
    def is_text(self) -> bool:
        """Whether the value is a text."""
        return self.how is not How.COLLECT


TEXT_DELTA = DeltaType("text_delta", "text", "text", How.APPEND)
THINKING_DELTA = DeltaType("thinking_delta", "thinking", "thinking", How.APPEND)
SIGNATURE_DELTA = DeltaType("signature_delta", "signature", "signature", How.REPLACE)
INPUT_DELTA = DeltaType("input_json_delta", "partial_json", "input", How.PARSE)
CITATIONS_DELTA = DeltaType("citations_delta", "citation", "citations", How.COLLECT)

DELTAS: Mapping[str, DeltaType] = {
    delta.name: delta for delta in (TEXT_DELTA, THINKING_DELTA, SIGNATURE_DELTA, INPUT_DELTA, CITATIONS_DELTA)
}

#: The wires of upstreams; the routes of clients.
WIRES = ROUTES = frozenset({"messages", "chat", "responses"})
_NONE: frozenset[str] = frozenset()
_MESSAGES = frozenset({"messages"})


@dataclass(frozen=True)
class BlockType:
    """A type of block.

    deltas    types of its deltas, the one with its main content first; () if the block is whole from its start
    content   members of which one must be non-empty for the block to belong in a reply; () if it always does
    requests  wires whose requests can carry it; on the others it is left out or replaced by a note
    answers   routes whose answers show it; empty for blocks that only requests have
    marks     members that its start always has, with the value true
    """

    name: str
    deltas: tuple[DeltaType, ...] = ()
    content: tuple[str, ...] = ()
    requests: frozenset[str] = WIRES
    answers: frozenset[str] = _NONE
    marks: tuple[str, ...] = ()

    @cached_property
    def takes(self) -> frozenset[str]:
        """The types of its deltas."""
        return frozenset(delta.name for delta in self.deltas)

    def start(self, **members: Any) -> dict[str, Any]:
        """The block as `content_block_start` carries it: with these members, and empty ones for deltas to fill.

        >>> TOOL_USE.start(id="call_1", name="Bash")
        {'type': 'tool_use', 'id': 'call_1', 'name': 'Bash', 'input': {}}
        """
        empty = {delta.fills: _EMPTY[delta.how]() for delta in self.deltas if delta.how in _EMPTY}
        return {"type": self.name, **members, **empty, **dict.fromkeys(self.marks, True)}


TEXT = BlockType("text", (TEXT_DELTA, CITATIONS_DELTA), ("text", "citations"), answers=ROUTES)
REFUSAL_MARK = "refusal"
#: A text in which the model refuses, for readers whose API marks it. Those of the Messages API see an ordinary text and
#: the stop reason.
REFUSAL = replace(TEXT, marks=(REFUSAL_MARK,))
#: Other wires send back their own reasoning from the signature, or the text.
THINKING = BlockType("thinking", (THINKING_DELTA, SIGNATURE_DELTA), ("thinking", "signature"), answers=ROUTES)
REDACTED_THINKING = BlockType("redacted_thinking", requests=_MESSAGES, answers=_MESSAGES)
#: The client runs the call when the block stops.
TOOL_USE = BlockType("tool_use", (INPUT_DELTA,), answers=ROUTES)
SERVER_TOOL_USE = BlockType(
    "server_tool_use",
    (INPUT_DELTA,),
    requests=frozenset({"messages", "responses"}),
    answers=frozenset({"messages", "responses"}),
)
#: The result of any tool that runs on the server; its type ends in `_tool_result`.
SERVER_TOOL_RESULT = BlockType(
    "web_search_tool_result", requests=frozenset({"messages", "responses"}), answers=_MESSAGES
)
#: The result of a search of X, which one service has in addition to the web search.
X_SEARCH_RESULT = BlockType("x_search_tool_result", requests=SERVER_TOOL_RESULT.requests, answers=_MESSAGES)

BLOCKS: Mapping[str, BlockType] = {
    block.name: block
    for block in (
        TEXT,
        THINKING,
        REDACTED_THINKING,
        TOOL_USE,
        SERVER_TOOL_USE,
        SERVER_TOOL_RESULT,
        X_SEARCH_RESULT,
        BlockType("tool_result"),
        BlockType("image"),
        BlockType("document"),
        BlockType("search_result"),
        BlockType("video", requests=frozenset({"messages", "chat"})),
    )
}

#: type of an open block -> an empty delta that changes nothing but counts as activity for every client.
KEEPALIVES: Mapping[str, dict[str, Any]] = {
    block.name: block.deltas[0].of("") for block in BLOCKS.values() if block.deltas
}


def answer_block(name: str) -> BlockType | None:
    """The row of a block in an answer; None for a type that is unknown or occurs only in requests.

    >>> answer_block("web_fetch_tool_result") is SERVER_TOOL_RESULT, answer_block("image"), answer_block("future")
    (True, None, None)
    """
    row = BLOCKS.get(name) or (SERVER_TOOL_RESULT if name.endswith("_tool_result") else None)
    return row if row is not None and row.answers else None


def has_content(block: Mapping[str, Any]) -> bool:
    """Whether a whole block belongs in a reply.

    >>> has_content({"type": "text", "text": ""}), has_content({"type": "redacted_thinking", "data": ""})
    (False, True)
    """
    row = BLOCKS.get(block["type"])
    return row is None or not row.content or any(block.get(member) for member in row.content)
