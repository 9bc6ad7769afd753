"""Joins neighbouring events that are pieces of one text, before they are parsed: one read may bring hundreds of them,
and reducers would put their texts together again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from typing import Any

from proxy.core.blocks import TEXT_DELTA, THINKING_DELTA
from proxy.core.sse import frames_of, load_json

# Escapes of code points are excluded: half of a surrogate pair would become whole.
_INSIDE = rb'(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt])++'
_LITERAL = re.compile(_INSIDE)
#: Members that differ in each event of a Responses stream. No reducer reads them.
_COUNTED = re.compile(rb'"sequence_number":[ \t]*\d+|"obfuscation":[ \t]*"[^"\\\n]*"')
_SAME = b'"sequence_number":0'
#: Longer blocks are not one of the pieces of text that services send, and take long to search.
MAX_BLOCK_BYTES = 16 * 1024
#: Between two blocks of lines.
_END = b"\n\n"


class TextRuns:
    """Joins the events of a wire that are pieces of one text.

    members  the names of the members that hold the piece
    text_of  the text of an event that says nothing else, "" for another: repeating its other members must not change
             what it means
    counted  whether each event has its own number
    """

    def __init__(self, members: str, text_of: Callable[[dict[str, Any]], str], *, counted: bool = False) -> None:
        self._piece = re.compile(rb'"(?:%b)"[ \t]*:[ \t]*"(%b)"' % (members.encode(), _INSIDE))
        self._text_of = text_of
        self._counted = counted

    def joined(self, blocks: list[bytes]) -> list[bytes]:
        """The blocks of lines, each an event, with each run of them replaced by one."""
        if len(blocks) < 2:
            return blocks
        alike = [block if len(block) <= MAX_BLOCK_BYTES else b"" for block in blocks]
        if self._counted:
            alike = _COUNTED.sub(_SAME, _END.join(alike)).split(_END)
        out: list[bytes] = []
        place, last = 0, len(blocks) - 1
        while place < last:
            found = self._piece.search(alike[place])
            several = found is not None and alike[place + 1].startswith(alike[place][: found.start(1)])
            if found is None or not several:
                out.append(blocks[place])
                place += 1
                continue
            before, behind = alike[place][: found.start(1)], alike[place][found.end(1) :]
            pieces = _run(alike, place, before, behind)
            end = place + len(pieces)
            whole = self._whole(pieces, before, behind) if len(pieces) > 1 else None
            out += blocks[place:end] if whole is None else [whole]
            place = end
        return out + blocks[place:]

    def _whole(self, pieces: list[bytes], before: bytes, behind: bytes) -> bytes | None:
        """The block that replaces several; None when its meaning would differ."""
        if not before[before.rfind(b"\n") + 1 :].startswith(b"data:"):
            return None
        inside = b"".join(pieces)
        block = before + inside + behind
        try:
            b"\n".join(pieces).decode()  # fails for a character that was cut
            ((_, data),) = frames_of([block])
            text, event = load_json(f'"{inside.decode()}"'), load_json(data.decode())
        except (ValueError, RecursionError):
            return None
        return block if isinstance(event, dict) and self._text_of(event) == text else None


def _run(blocks: list[bytes], place: int, before: bytes, behind: bytes) -> list[bytes]:
    """The pieces of like events from `place` on, and what comes before and after each."""
    pieces: list[bytes] = []
    begin, end = len(before), -len(behind)
    for block in islice(blocks, place, None):
        piece = block[begin:end]
        if not (block.startswith(before) and block.endswith(behind) and _LITERAL.fullmatch(piece)):
            break
        pieces.append(piece)
    return pieces


_CHAT_MEMBERS = ("content", "reasoning_content", "reasoning")


def _chat_text(chunk: dict[str, Any]) -> str:
    choices = chunk.get("choices")
    if type(choices) is not list or len(choices) != 1 or type(choices[0]) is not dict or chunk.get("error"):
        return ""
    delta = choices[0].get("delta")
    if type(delta) is not dict or delta.get("tool_calls") or delta.get("refusal"):
        return ""
    texts = [text for member in _CHAT_MEMBERS if (text := delta.get(member))]
    return texts[0] if len(texts) == 1 and type(texts[0]) is str else ""


_RESPONSES_PIECES = frozenset(
    {"response.output_text.delta", "response.reasoning_summary_text.delta", "response.reasoning_text.delta"}
)


def _responses_text(event: dict[str, Any]) -> str:
    text = event.get("delta")
    return text if event.get("type") in _RESPONSES_PIECES and type(text) is str else ""


_MESSAGES_PIECES = {delta.name: delta.carries for delta in (TEXT_DELTA, THINKING_DELTA)}


def _messages_text(event: dict[str, Any]) -> str:
    delta = event.get("delta")
    if event.get("type") != "content_block_delta" or type(delta) is not dict:
        return ""
    kind = delta.get("type")
    text = delta.get(_MESSAGES_PIECES.get(kind, "")) if type(kind) is str else ""
    return text if type(text) is str else ""


CHAT_RUNS = TextRuns("|".join(_CHAT_MEMBERS), _chat_text)
RESPONSES_RUNS = TextRuns("delta", _responses_text, counted=True)
MESSAGES_RUNS = TextRuns("|".join(_MESSAGES_PIECES.values()), _messages_text)
