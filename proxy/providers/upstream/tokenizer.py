"""Counts tokens with the shipped o200k_base vocabulary: off the event loop, cached, bounded.

The vocabulary loads on first use, in a worker thread: 0.3 s and 45 MB that an idle proxy does not need. Passing it to
the encoder holds the interpreter for about a tenth of a second, once in the life of a process.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import io
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib import resources
from typing import TYPE_CHECKING, TypeVar

from proxy.core.tokens.counting import MAX_PIECE, Length, pieces, rough_length
from proxy.core.tokens.heuristic import heuristic_tokens
from proxy.errors import BusyError

if TYPE_CHECKING:
    import tiktoken

VOCABULARY = "o200k_base.tiktoken.gz"
VOCABULARY_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
#: How o200k_base splits text into words, from tiktoken's public definition of the encoding.
_PATTERN = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)

#: Counting is CPU work: more threads would only take cores away from the loop.
WORKERS = 2
#: Text that may be counted on the loop: at the encoder's worst, 3 MB/s, that is a few milliseconds. Cached counts do
#: not add to it.
MAX_INLINE_CHARS = 8_192
#: Larger requests are counted in a thread, even with cached counts: hashing their texts takes long enough. The
#: heuristic takes a millisecond for as much, and several times longer for text that is not all ASCII.
MAX_INLINE_BYTES = 128 * 1024
FOREIGN_PRICE = 16
#: Requests up to this size are never counted in a thread once the vocabulary is loaded.
ALWAYS_INLINE_BYTES = min(MAX_INLINE_CHARS, MAX_INLINE_BYTES // FOREIGN_PRICE)
#: Counts in each of two generations.
REMEMBERED = 10_000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TokenizerLimits:
    """Bounds of counting.

    wait_s      a count that waits longer is refused: the client estimates for itself
    remembered  counts kept in each of two generations, by text. A client sends the same history every turn
    """

    wait_s: float = 30.0
    remembered: int = REMEMBERED


class TextCounts:
    """Caches counts by text in two generations: a used count moves to the newer one, and the older one is dropped when
    that is full. Reading needs no lock, which matters with a hundred texts a request."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._lock = threading.Lock()
        self._newer: dict[tuple[int, int], int] = {}
        self._older: dict[tuple[int, int], int] = {}

    def count(self, text: str, counted: Length) -> int:
        """The count of a text, from the cache or made by `counted`."""
        key = (len(text), hash(text))
        count = self._newer.get(key)
        if count is None:
            count = self._older.get(key)
            if count is None:
                count = counted(text)
            with self._lock:
                if len(self._newer) >= self._remembered:
                    self._older, self._newer = self._newer, {}
                self._newer[key] = count
        return count


class _TooMuch(Exception):
    """There is more uncached text than may be counted on the loop."""


class Tokenizer:
    """`await run(work)` calls `work(length)`, where `length(text)` is the token count of a text: on the loop when there
    is little to count, else in a worker thread."""

    def __init__(
        self, limits: TokenizerLimits | None = None, load: Callable[[], tiktoken.Encoding] | None = None
    ) -> None:
        self._limits = limits or TokenizerLimits()
        self._load = load or load_encoding
        self._executor = ThreadPoolExecutor(max_workers=WORKERS, thread_name_prefix="tokens")
        self._lock = threading.Lock()
        self._encoding: tiktoken.Encoding | None = None
        self._broken: str | None = None
        self._counts = TextCounts(self._limits.remembered)
        self._estimates = TextCounts(self._limits.remembered)

    @property
    def loaded(self) -> bool:
        """Whether the vocabulary is loaded."""
        return self._encoding is not None

    async def run(self, work: Callable[[Length], T], *, size: int | None = None) -> T:
        """The result of `work(length)`. Raises BusyError when the workers do not reach it in time.

        size  about how many bytes of text in all, when known: little is counted at once, since going to a thread and
              back costs more. `work` may then be called twice
        """
        if size is not None and size <= MAX_INLINE_BYTES and self._encoding is not None:
            try:
                return work(
                    partial(self._counted, encode=_little(partial(_encode, self._encoding), MAX_INLINE_CHARS, len))
                )
            except _TooMuch:
                pass
        return await self._in_thread(work, self._length)

    async def estimate(self, work: Callable[[Length], T], *, size: int) -> T:
        """The result of `work(length)`, where `length(text)` is the heuristic count. Raises BusyError, and may call
        `work` twice, as `run` does."""
        if size <= MAX_INLINE_BYTES:
            try:
                return work(partial(self._estimates.count, counted=_little(heuristic_tokens, MAX_INLINE_BYTES, _price)))
            except _TooMuch:
                pass
        return await self._in_thread(work, partial(self._estimates.count, counted=heuristic_tokens))

    async def _in_thread(self, work: Callable[[Length], T], length: Length) -> T:
        future = asyncio.get_running_loop().run_in_executor(self._executor, work, length)
        try:
            return await asyncio.wait_for(future, self._limits.wait_s)
        except TimeoutError:
            raise BusyError(
                "token counting is busy; try again or estimate locally", kind="unavailable", retry_after=1
            ) from None

    def truncate(self, text: str, limit: int) -> str:
        """The longest beginning of at most `limit` tokens, in whole characters. For use inside `run`."""
        encoding = self._loaded()
        if encoding is None:
            return text[: limit * 3]
        tokens: list[int] = []
        for piece in pieces(text):
            tokens += encoding.encode_ordinary(piece)
            if len(tokens) >= limit:
                break
        else:
            return text
        return encoding.decode_bytes(tokens[:limit]).decode("utf-8", "ignore")

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)

    @property
    def problem(self) -> str | None:
        """Why estimates are used instead of the vocabulary, None when all is well."""
        return self._broken

    def _length(self, text: str) -> int:
        encoding = self._loaded()
        return rough_length(text) if encoding is None else self._counted(text, partial(_encode, encoding))

    def _counted(self, text: str, encode: Length) -> int:
        if len(text) <= MAX_PIECE:
            return self._counts.count(text, encode)
        # by piece, since hashing a text holds the interpreter too
        return sum(self._counts.count(piece, encode) for piece in pieces(text))

    def _loaded(self) -> tiktoken.Encoding | None:
        if self._encoding is None and self._broken is None:
            with self._lock:
                if self._encoding is None and self._broken is None:
                    try:
                        self._encoding = self._load()
                    except Exception as error:  # a missing or damaged file must not fail requests
                        self._broken = f"{type(error).__name__}: {error}"
        return self._encoding


def _little(counted: Length, most: int, price: Length) -> Length:
    """Wraps `counted`; raises _TooMuch once the total cost exceeds `most`."""
    left = most

    def count(text: str) -> int:
        nonlocal left
        left -= price(text)
        if left < 0:
            raise _TooMuch
        return counted(text)

    return count


def _price(text: str) -> int:
    return len(text) if text.isascii() else len(text) * FOREIGN_PRICE


def _encode(encoding: tiktoken.Encoding, piece: str) -> int:
    """`encode_ordinary`: texts like `<|endoftext|>` are ordinary text here. Pieces are short, so it should never panic;
    if it does, its exception derives from BaseException."""
    try:
        return len(encoding.encode_ordinary(piece))
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return rough_length(piece)


def load_encoding(sha256: str = VOCABULARY_SHA256) -> tiktoken.Encoding:
    """The shipped vocabulary, checked against its SHA-256. Raises ValueError for another file."""
    import tiktoken

    packed = resources.files("proxy.data").joinpath(VOCABULARY).read_bytes()
    raw = gzip.decompress(packed)
    if hashlib.sha256(raw).hexdigest() != sha256:
        raise ValueError(f"{VOCABULARY} is damaged; reinstall the package")
    ranks = {}
    for line in io.BytesIO(raw):
        token, _, rank = line.partition(b" ")
        ranks[base64.b64decode(token)] = int(rank)
    encoding = tiktoken.Encoding("o200k_base", pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens={})
    ranks.clear()  # the encoder has its own table, and does not need these 29 MB
    return encoding
