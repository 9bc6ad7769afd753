"""Neighbouring events of a stream that are the same but for a piece of text, made one before they are parsed: what is
read at a time may be hundreds of them, and reducers would put their texts together again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from typing import Any

from proxy.core.blocks import TEXT_DELTA, THINKING_DELTA
from proxy.core.sse import load_json

#: As `SSEDecoder` gives it: the name of the event, and its data.
Frame = tuple[bytes, bytes]

#: Longer data are no piece of a text, as services send them.
MAX_DATA_BYTES = 16 * 1024

# Escapes of code points are left out: half of a surrogate pair would become whole.
_INSIDE = rb'(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt])++'
_LITERAL = re.compile(_INSIDE)
#: What each event of a Responses stream has of its own beside its text. No reducer reads it.
_COUNTED = re.compile(rb'"sequence_number":\s*\d+|"obfuscation":\s*"[^"\\]*"')
_SAME = b'"sequence_number":0'


class TextRuns:
    """How the events of a wire that are one piece of text are put together.

    members  the names of the members that hold the piece
    text_of  the text of an event that says nothing else, "" for another: repeating what stands beside it must not
             change what it means
    counted  whether each event has a number of its own
    """

    def __init__(self, members: str, text_of: Callable[[dict[str, Any]], str], *, counted: bool = False) -> None:
        self._piece = re.compile(rb'"(?:%b)"\s*:\s*"(%b)"' % (members.encode(), _INSIDE))
        self._text_of = text_of
        self._counted = counted

    def joined(self, frames: list[Frame]) -> list[Frame]:
        """The frames, with one in the place of each run."""
        last = len(frames) - 1
        if last < 1:
            return frames
        alike = self._alike(frames)
        out: list[Frame] = []
        start = 0
        while start < last:
            if alike[start][0] != alike[start + 1][0]:  # two kinds of event
                out.append(frames[start])
                start += 1
                continue
            pieces, before, behind = self._run(alike, start)
            whole = self._whole(pieces, before, behind) if len(pieces) > 1 else None
            end = start + max(1, len(pieces))
            out += frames[start:end] if whole is None else [(frames[start][0], whole)]
            start = end
        return out + frames[start:]

    def _alike(self, frames: list[Frame]) -> list[Frame]:
        """Without what each event has of its own, and without the data of what is too long to be a piece."""
        if not self._counted:
            return [(name, data if len(data) <= MAX_DATA_BYTES else b"") for name, data in frames]
        count = _COUNTED.sub
        return [(name, count(_SAME, data) if len(data) <= MAX_DATA_BYTES else b"") for name, data in frames]

    def _run(self, frames: list[Frame], start: int) -> tuple[list[bytes], bytes, bytes]:
        """The pieces of the frames from a place on that are alike, and what stands before and behind each."""
        name, first = frames[start]
        found = self._piece.search(first)
        if found is None:
            return [], b"", b""
        before, behind = first[: found.start(1)], first[found.end(1) :]
        pieces = [found[1]]
        for other, data in islice(frames, start + 1, None):
            piece = data[len(before) : -len(behind)]
            if other != name or not _LITERAL.fullmatch(piece) or data != before + piece + behind:
                break
            pieces.append(piece)
        return pieces, before, behind

    def _whole(self, pieces: list[bytes], before: bytes, behind: bytes) -> bytes | None:
        """The data of one frame in place of several; None where that would mean something else."""
        inside = b"".join(pieces)
        data = before + inside + behind
        try:
            for piece in pieces:
                piece.isascii() or piece.decode()  # a character that was cut is none
            text, event = load_json(f'"{inside.decode()}"'), load_json(data.decode())
        except (ValueError, RecursionError):
            return None
        return data if isinstance(event, dict) and self._text_of(event) == text else None


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
