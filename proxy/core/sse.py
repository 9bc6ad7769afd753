"""Server-sent events, both ways: an incremental decoder and an encoder.

The decoder takes bytes in any split and gives frames, and knows nothing of their data. The encoder gives bytes; of its
data it knows only the events that are one piece of text, which it writes faster.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from proxy.core.blocks import DELTAS

#: One frame may not exceed this. A `response.completed` repeats the whole answer, so it is generous; past it the
#: upstream is broken and the memory is ours.
MAX_FRAME_BYTES = 8 * 1024 * 1024
#: Events have two; each is looked at by itself.
MAX_FRAME_LINES = 10_000

_BOM = b"\xef\xbb\xbf"

_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_HALVES = re.compile("[\ud800-\udfff]")
_dumps_sorted = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode
# What JSON leaves as it is but a terminal or a line reader may act upon: DEL and C1 controls, line separators,
# changes of writing direction; and lone surrogates, which UTF-8 cannot express.
_UNPRINTABLE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_DELETE = "\x7f"
_quoted = json.encoder.encode_basestring

#: type of a delta that is a text -> its one member
_TEXT_MEMBERS = {delta.name: delta.carries for delta in DELTAS.values() if delta.is_text}
#: A delta without a member, and what a chunk says of its usage when there is such a member.
_NOTHING = (("", None),)
_NO_USAGE = ("", ',"usage":null')
#: Events of a Responses stream that are one piece of text, in the form that our replies give them -> their members, and
#: what stands before and behind the text. Ids of items are ours.
_PIECE = (
    '{{"type":"{}","sequence_number":%(sequence_number)d,"item_id":"%(item_id)s","output_index":%(output_index)d,{}'
)
_PIECES = {
    kind: (
        frozenset({"type", "sequence_number", "item_id", "output_index", "delta", *more}),
        _PIECE.format(kind, place + '"delta":'),
        tail,
    )
    for kind, place, tail, more in (
        (
            "response.output_text.delta",
            '"content_index":%(content_index)d,',
            ',"logprobs":[]}',
            ("content_index", "logprobs"),
        ),
        ("response.reasoning_summary_text.delta", '"summary_index":%(summary_index)d,', "}", ("summary_index",)),
        ("response.function_call_arguments.delta", "", "}", ()),
    )
}


class FrameTooLarge(ValueError):
    """A frame passed the limit."""


class TooManyLines(FrameTooLarge):
    """One that no event is, whatever stands in it."""


class SSEDecoder:
    """Bytes in any split to frames `(event, data)`.

    Line ends may be LF, CR or CRLF, also split over two chunks; comment lines, `id:` and `retry:` are skipped; several
    `data:` lines are joined by LF; a frame without data is dropped. A line whose field is
    not ASCII is taken as data, for the reader of the frame to refuse. `event` is b"" when the frame names none.
    Comments do not count against the limit.

    >>> decoder = SSEDecoder()
    >>> decoder.feed(b'event: a\\ndata: {"x"'), decoder.feed(b":1}\\r\\n\\r\\n")
    ([], [(b'a', b'{"x":1}')])
    """

    def __init__(self, max_frame: int = MAX_FRAME_BYTES) -> None:
        self._max = max_frame
        self._parts: list[bytes] = []  # the unfinished frame; joined only when its end is seen
        self._size = 0
        self._lines = 0
        self._after_cr = False
        self._head: bytes | None = b""  # the first bytes, as long as they may be a byte order mark

    @property
    def held(self) -> int:
        """Bytes of the frame that is not complete."""
        return self._size

    def feed(self, chunk: bytes) -> list[tuple[bytes, bytes]]:
        """The frames that this chunk completes. Raises FrameTooLarge."""
        chunk = self._with_plain_line_ends(chunk if self._head is None else self._without_bom(chunk))
        if not chunk:
            return []
        ends_here = b"\n\n" in chunk or (chunk[:1] == b"\n" and self._parts and self._parts[-1][-1:] == b"\n")
        if not ends_here:
            self._keep(chunk)
            return []
        self._parts.append(chunk)
        *blocks, rest = b"".join(self._parts).split(b"\n\n")
        self._parts, self._size, self._lines = [], 0, 0
        self._keep(rest)
        return _parsed([self._without_comments(block) if len(block) > self._max else block for block in blocks])

    def _keep(self, chunk: bytes) -> None:
        if chunk:
            self._parts.append(chunk)
            self._size += len(chunk)
            self._lines += chunk.count(b"\n")
            # the first half of the blank line that ends it may be here already
            if self._size > self._max + 1 or self._lines > MAX_FRAME_LINES:
                rest = self._without_comments(b"".join(self._parts))
                self._parts, self._size, self._lines = [rest], len(rest), rest.count(b"\n")

    def _without_comments(self, block: bytes) -> bytes:
        """What is left of a frame that is too long because of its comments: they may come without end, and without a
        blank line. A frame that is long as it is would have to be searched again and again. Raises FrameTooLarge."""
        rest = _COMMENTS.sub(b"", block)
        if len(rest) > self._max // 2:
            raise FrameTooLarge(f"a frame passed the limit of {self._max} bytes")
        if rest.count(b"\n") > MAX_FRAME_LINES // 2:
            raise TooManyLines(f"a frame passed the limit of {MAX_FRAME_LINES} lines")
        return rest

    def end(self) -> list[tuple[bytes, bytes]]:
        """The frame that the end of the body left without its blank line; whether it is whole is for its reader."""
        frames = _parsed([b"".join(self._parts)])
        self._parts, self._size, self._lines = [], 0, 0
        return frames

    def _without_bom(self, chunk: bytes) -> bytes:
        head = (self._head or b"") + chunk
        if len(head) < len(_BOM) and _BOM.startswith(head):
            self._head = head
            return b""
        self._head = None
        return head.removeprefix(_BOM)

    def _with_plain_line_ends(self, chunk: bytes) -> bytes:
        if not chunk:
            return chunk
        if self._after_cr and chunk[:1] == b"\n":
            chunk = chunk[1:]
        self._after_cr = chunk.endswith(b"\r")
        if b"\r" not in chunk:
            return chunk
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


#: All of those that have ended; of the last one its beginning stays.
_COMMENTS = re.compile(rb"^:[^\n]*\n|(?<=^:)[^\n]+\Z", re.MULTILINE)


def _parsed(blocks: list[bytes]) -> list[tuple[bytes, bytes]]:
    """The frames of blocks of lines, but for those without data. One call for all: a read may bring hundreds."""
    frames = []
    for block in blocks:
        event = b""
        data: list[bytes] = []
        for line in block.split(b"\n"):
            field, colon, value = line.partition(b":")
            if field == b"data":
                data.append(value.removeprefix(b" "))
            elif field == b"event":
                event = value.removeprefix(b" ")
            elif colon and not field.isascii():
                data.append(line)  # perhaps it was data: left out, its event would be missing unseen
        if data:
            frames.append((event, b"\n".join(data)))
    return frames


def dump_json(value: Any) -> str:
    """Compact JSON text, non-ASCII kept."""
    return _dumps(value)


def dump_sorted_json(value: Any) -> str:
    """The same with the keys of every object in order."""
    return _dumps_sorted(value)


def dump_printable(value: Any, *, indent: int | None = None) -> str:
    """JSON for a file or a terminal: readable in any language, without characters that move the cursor.

    Without `indent` it is one line.
    """
    text = _dumps(value) if indent is None else json.dumps(value, ensure_ascii=False, indent=indent)
    if text.isascii() and _DELETE not in text:  # JSON has escaped all else
        return text
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def load_json(text: str) -> Any:
    """The value of a JSON text. Raises ValueError also for what only Python takes for JSON: `NaN`, `Infinity`, and
    numbers so large that they would be written as that, whole ones among them: `float` fails with those."""
    # without the passes over blanks that `decode` adds to each of many small texts
    scan = scan_json if len(text) > _MAX_DIGITS else _scan_short
    value, end = scan(text, 0 if text[:1] == "{" else len(text) - len(text.lstrip(JSON_BLANKS)))
    if end != len(text) and text[end:].strip(JSON_BLANKS):
        raise json.JSONDecodeError("Extra data", text, end)
    return value


def mended_text(data: bytes) -> str:
    r"""The text of an event with U+FFFD in place of what is none: bytes that are no UTF-8, and escapes of half a
    surrogate pair.

    >>> mended_text(b'{"a": "\xff \\ud83d \\ud83d\\ude00"}')
    '{"a": "\ufffd \\ufffd \\ud83d\\ude00"}'
    """
    text = data.decode("utf-8", "replace")
    return _ESCAPES.sub(_mended, text) if _HALF.search(text) else text


_HALF = re.compile(r"\\u[dD][89a-fA-F]")
#: What can begin with a backslash, as far as it matters: one that is escaped, a pair, half of one.
_ESCAPES = re.compile(
    r"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)


def _mended(match: re.Match[str]) -> str:
    return r"\ufffd" if len(match[0]) == len(r"\ud800") else match[0]


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


#: Any whole number of so many digits is a float too.
_MAX_DIGITS = sys.float_info.max_10_exp


def _whole(text: str) -> int:
    return int(text) if len(text) <= _MAX_DIGITS else _refuse(text)


#: What may stand between the values of a JSON text.
JSON_BLANKS = " \t\r\n"
#: The value that begins at a place of a text, and the place behind it.
scan_json = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite, parse_int=_whole).raw_decode
#: The same for a text that is too short for such a number, as nearly all events are: a third faster.
_scan_short = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite).raw_decode


def encode_json(value: Any) -> bytes:
    """Compact JSON as UTF-8.

    Upstreams cut text anywhere, also between the two halves of a surrogate pair. Half a pair has no UTF-8 form, but an
    escape, and readers put the halves together again.

    >>> encode_json({"text": "\\ud83d"})
    b'{"text":"\\\\ud83d"}'
    """
    text = _dumps(value)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _with_escaped_halves(text).encode()


def _with_escaped_halves(text: str) -> str:
    return _HALVES.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def encode_events(events: Iterable[Mapping[str, Any]]) -> bytes:
    """Events that carry their name in `type`, as one piece of bytes for one write.

    >>> encode_events([{"type": "ping"}])
    b'event: ping\\ndata: {"type":"ping"}\\n\\n'
    """
    return _as_bytes(_event_texts(events))


def encode_data(values: Iterable[Mapping[str, Any]]) -> bytes:
    """The same without names, as chat streams have it.

    >>> encode_data([{"choices": []}])
    b'data: {"choices":[]}\\n\\n'
    """
    return _as_bytes([f"data: {_chunk_text(value)}\n\n" for value in values])


def _as_bytes(texts: list[str]) -> bytes:
    try:
        return "".join(texts).encode()
    except UnicodeEncodeError:  # see encode_json
        return "".join(map(_with_escaped_halves, texts)).encode()


# Nearly all that is written are small pieces of text. They are put together by hand, at a third of the price.


def _event_texts(events: Iterable[Mapping[str, Any]]) -> list[str]:
    """One call for all of them."""
    texts = []
    for event in events:
        kind = event["type"]
        piece = _PIECES.get(kind)
        delta = event["delta"] if kind == "content_block_delta" else None
        member = None if delta is None else _TEXT_MEMBERS.get(delta["type"])
        if delta is not None and member is not None:
            text = (
                f'{{"type":"{kind}","index":{event["index"]},"delta":{{"type":"{delta["type"]}",'
                f'"{member}":{_quoted(delta[member])}}}}}'
            )
        elif piece is not None and event.keys() == piece[0]:
            text = f"{piece[1] % event}{_quoted(event['delta'])}{piece[2]}"
        else:
            text = _dumps(event)
        texts.append(f"event: {kind}\ndata: {text}\n\n")
    return texts


def _chunk_text(chunk: Mapping[str, Any]) -> str:
    """By hand when the chunk is one piece of text."""
    choices = chunk.get("choices")
    delta = choices[0]["delta"] if choices and choices[0]["finish_reason"] is None else {}
    ((member, text),) = delta.items() if len(delta) == 1 else _NOTHING
    if type(text) is not str:
        return _dumps(chunk)
    return (
        f'{{"id":"{chunk["id"]}","object":"{chunk["object"]}","created":{chunk["created"]},'
        f'"model":{_quoted(chunk["model"])},"choices":[{{"index":0,"delta":{{"{member}":{_quoted(text)}}},'
        f'"finish_reason":null,"logprobs":null}}]{_NO_USAGE["usage" in chunk]}}}'
    )
