"""Server-sent events, both ways: an incremental decoder and an encoder; and the JSON of both.

The decoder turns bytes, split anywhere, into frames, and knows nothing of their data. The encoder knows only the events
that are one piece of text, which it writes faster.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from proxy.core.blocks import DELTAS

#: Largest frame. Generous, since a `response.completed` repeats the whole answer; beyond it the upstream is broken.
MAX_FRAME_BYTES = 8 * 1024 * 1024
#: Most lines of a frame, each of which is parsed. Events have two.
MAX_FRAME_LINES = 10_000

_BOM = b"\xef\xbb\xbf"

_quoted = json.encoder.encode_basestring


def _dumper(*, sort_keys: bool = False) -> Callable[[Any], str]:
    """`encode` of a compact encoder, without the C encoder that `JSONEncoder.encode` makes anew for every value. Values
    are trees, so nothing looks for one that holds itself."""
    encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=sort_keys)
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return encoder.encode
    encode = make(None, encoder.default, _quoted, None, ":", ",", sort_keys, False, True)
    return lambda value: "".join(encode(value, 0))


_dumps, _dumps_sorted = _dumper(), _dumper(sort_keys=True)
_HALVES = re.compile("[\ud800-\udfff]")
#: What JSON does not escape but a terminal or a line reader may act upon: DEL and C1 controls, line separators,
#: changes of writing direction; and lone surrogates, which UTF-8 cannot express.
_UNPRINTABLE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_DELETE = "\x7f"

#: type of a delta that is a text -> its one member.
_TEXT_MEMBERS = {delta.name: delta.carries for delta in DELTAS.values() if delta.is_text}
#: The items of a delta that is not one piece of text.
_NOTHING = (("", None),)
#: What a chunk ends with, without and with a member `usage`.
_NO_USAGE = ("", ',"usage":null')
#: The JSON of an event of `_PIECES` before its text. Ids of items are ours, so they need no escapes.
_PIECE = (
    '{{"type":"{}","sequence_number":%(sequence_number)d,"item_id":"%(item_id)s","output_index":%(output_index)d,{}'
)
#: type of an event of a Responses stream that is one piece of text -> the members that our replies give it, and its
#: JSON before and after the text.
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
    """A frame passed the limit of lines, so it cannot be an event."""


class SSEDecoder:
    """Decodes bytes, split anywhere, to frames `(event, data)`.

    Line ends may be LF, CR or CRLF, also split over two chunks. Comment lines, `id:` and `retry:` are skipped; several
    `data:` lines are joined by LF; a frame without data is dropped. A line whose field is not ASCII counts as data, for
    the reader of the frame to refuse. `event` is b"" if the frame names none. Comments do not count against the limit.

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
        """Bytes of the incomplete frame."""
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
        text = b"".join(self._parts)
        *blocks, rest = text.split(b"\n\n")
        self._parts, self._size, self._lines = [], 0, 0
        self._keep(rest)
        if len(text) <= self._max:
            frames = _plain_frames(text)
            if len(frames) == len(blocks):
                return frames
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
        """The rest of a frame that is too long because of its comments, which may go on without a blank line. Raises
        FrameTooLarge already for half the limit: a longer rest would be searched again and again."""
        rest = _COMMENTS.sub(b"", block)
        if len(rest) > self._max // 2:
            raise FrameTooLarge(f"a frame passed the limit of {self._max} bytes")
        if rest.count(b"\n") > MAX_FRAME_LINES // 2:
            raise TooManyLines(f"a frame passed the limit of {MAX_FRAME_LINES} lines")
        return rest

    def end(self) -> list[tuple[bytes, bytes]]:
        """The last frame if the body ended without its blank line. Its reader decides whether it is whole."""
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


#: The frames of a text whose blocks are a line of data, with or without the line before it that names the event. Nearly
#: all are: one call for all of them takes half the time of `_parsed`, which reads any.
_plain_frames: Callable[[bytes], list[tuple[bytes, bytes]]] = re.compile(
    rb"(?:\A|(?<=\n\n))(?:event: ([^\n]*+)\n)?data: ([^\n]*+)\n\n"
).findall
#: Comment lines that have ended, and all but the colon of an unfinished one.
_COMMENTS = re.compile(rb"^:[^\n]*\n|(?<=^:)[^\n]+\Z", re.MULTILINE)


def _parsed(blocks: list[bytes]) -> list[tuple[bytes, bytes]]:
    """The frames of blocks of lines, without those that have no data. One call for all: a read may bring hundreds."""
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
    """Compact JSON text with the keys of every object sorted."""
    return _dumps_sorted(value)


def dump_printable(value: Any, *, indent: int | None = None) -> str:
    """JSON for a file or a terminal: readable in any language, without characters that move the cursor; one line unless
    there is an `indent`."""
    text = _dumps(value) if indent is None else json.dumps(value, ensure_ascii=False, indent=indent)
    if text.isascii() and _DELETE not in text:  # JSON has escaped all else
        return text
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def load_json(text: str) -> Any:
    """The value of a JSON text. Raises ValueError also for what only Python accepts: `NaN`, `Infinity`, and numbers too
    large for a float, whole ones included."""
    # without the passes over blanks that `decode` adds to each of many small texts
    scan = scan_json if len(text) > _MAX_DIGITS else _scan_short
    value, end = scan(text, 0 if text[:1] == "{" else len(text) - len(text.lstrip(JSON_BLANKS)))
    if end != len(text) and text[end:].strip(JSON_BLANKS):
        raise json.JSONDecodeError("Extra data", text, end)
    return value


def mended_text(data: bytes) -> str:
    r"""The text of an event with U+FFFD in place of invalid UTF-8 and of escapes of half a surrogate pair.

    >>> mended_text(b'{"a": "\xff \\ud83d \\ud83d\\ude00"}')
    '{"a": "\ufffd \\ufffd \\ud83d\\ude00"}'
    """
    text = data.decode("utf-8", "replace")
    return _ESCAPES.sub(_mended, text) if _HALF.search(text) else text


_HALF = re.compile(r"\\u[dD][89a-fA-F]")
#: Relevant escapes: a backslash, a surrogate pair, half of one.
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


#: Blanks between the values of a JSON text.
JSON_BLANKS = " \t\r\n"
#: The value that begins at a place of a text, and the place after it.
scan_json = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite, parse_int=_whole).raw_decode
#: `scan_json` for a text that is too short for such a whole number, as nearly all events are: a third faster.
_scan_short = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite).raw_decode


def encode_json(value: Any) -> bytes:
    """Compact JSON as UTF-8.

    Upstreams cut text anywhere, even within a surrogate pair. Half a pair has no UTF-8 form, so it is escaped, and
    readers put the halves together again.

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
    """Events, named by their `type`, as bytes for one write.

    >>> encode_events([{"type": "ping"}])
    b'event: ping\\ndata: {"type":"ping"}\\n\\n'
    """
    return _as_bytes(_event_texts(events))


def encode_data(values: Iterable[Mapping[str, Any]]) -> bytes:
    """Events without names, as in chat streams, as bytes for one write.

    >>> encode_data([{"choices": []}])
    b'data: {"choices":[]}\\n\\n'
    """
    return _as_bytes([f"data: {_chunk_text(value)}\n\n" for value in values])


def _as_bytes(texts: list[str]) -> bytes:
    try:
        return "".join(texts).encode()
    except UnicodeEncodeError:  # see encode_json
        return "".join(map(_with_escaped_halves, texts)).encode()


# Nearly all events are small pieces of text. Writing them by hand takes a third of the time.


def _event_texts(events: Iterable[Mapping[str, Any]]) -> list[str]:
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
    """The JSON of a chat chunk, written by hand if the chunk is one piece of text."""
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
