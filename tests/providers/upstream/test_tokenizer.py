"""Counting: the right numbers, remembered within bounds, off the loop, and never a reason to fail."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from proxy.core.tokens.counting import Length, rough_length
from proxy.errors import BusyError
from proxy.providers.upstream import tokenizer as module
from proxy.providers.upstream.tokenizer import Tokenizer, TokenizerLimits


@pytest.fixture
def tuned() -> Iterator[Callable[..., Tokenizer]]:
    """`tuned(limits, load=…)`: a tokenizer other than the usual one."""
    made: list[Tokenizer] = []

    def make(limits: TokenizerLimits | None = None, **options: Any) -> Tokenizer:
        made.append(Tokenizer(limits, **options))
        return made[-1]

    yield make
    for tokenizer in made:
        tokenizer.close()


@pytest.fixture
def tokenizer(tuned: Callable[..., Tokenizer]) -> Tokenizer:
    return tuned()


@pytest.mark.parametrize(
    ("text", "count"),
    [
        *(("", 0), ("a" * 4096, 512), ("gpt-5.5", 6), ("gpt-5.6-sol", 7), ("gpt-5.6-luna", 8), ("<|endoftext|>", 7)),
        ("汉字测试上下文压缩" * 384, 2688),
        ("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo" * 112, 2240),
        ("function f(a){return a===0?1:a*f(a-1)};" * 96, 1632),
    ],
)
async def test_texts_have_the_known_number_of_tokens(tokenizer: Tokenizer, text: str, count: int) -> None:
    assert await tokenizer.run(lambda length: length(text)) == count
    assert await tokenizer.run(lambda length: length(text)) == count


@pytest.mark.parametrize("text", [" " * 3_000_000, "\t" * 2_000_000, "\n" * 2_000_000, "x" * 1_000_000, "\ud800" * 10])
async def test_texts_that_break_encoders_are_counted(tokenizer: Tokenizer, text: str) -> None:
    started = time.process_time()
    assert await tokenizer.run(lambda length: length(text)) > 0
    assert time.process_time() - started < 5


async def test_the_loop_goes_on_while_a_count_runs(tokenizer: Tokenizer) -> None:
    main = threading.get_ident()
    gate = threading.Event()
    counting = asyncio.ensure_future(tokenizer.run(lambda _: (gate.wait(5), threading.get_ident())[1]))
    await asyncio.sleep(0.01)
    assert not counting.done()
    gate.set()
    assert await counting != main


async def test_counts_that_do_not_get_their_turn_are_refused(tuned: Callable[..., Tokenizer]) -> None:
    tokenizer = tuned(TokenizerLimits(wait_s=0.05))
    gate = threading.Event()
    busy = [asyncio.ensure_future(tokenizer.run(lambda _: gate.wait(5))) for _ in range(module.WORKERS)]
    await asyncio.sleep(0)
    with pytest.raises(BusyError) as raised:
        await tokenizer.run(lambda length: length("x"))
    assert raised.value.status == 503 and raised.value.retry_after == 1
    gate.set()
    await asyncio.gather(*busy, return_exceptions=True)


async def test_a_vocabulary_that_cannot_be_read_costs_accuracy_only(tuned: Callable[..., Tokenizer]) -> None:
    def broken() -> None:
        raise ValueError("damaged")

    tokenizer = tuned(load=broken)
    text = "some text " * 100
    assert await tokenizer.run(lambda length: length(text)) == rough_length(text)
    assert tokenizer.problem == "ValueError: damaged"
    assert await tokenizer.run(lambda _: tokenizer.truncate("x" * 100, 10)) == "x" * 30


async def test_a_panic_of_the_encoder_costs_accuracy_only(tokenizer: Tokenizer) -> None:
    class PanicException(BaseException):
        pass

    class Encoder:
        def encode_ordinary(self, text: str) -> list[int]:
            raise PanicException

    tokenizer._encoding = Encoder()  # type: ignore[assignment]
    assert await tokenizer.run(lambda length: length("short")) == rough_length("short")
    assert await tokenizer.run(lambda length: length("x" * 1000)) == rough_length("x" * 1000)


async def test_what_is_remembered_is_bounded(tuned: Callable[..., Tokenizer]) -> None:
    tokenizer = tuned(TokenizerLimits(remembered=3))
    for number in range(10):
        await tokenizer.run(lambda length, number=number: length(f"{number} " * 100))
        await tokenizer.estimate(lambda length, number=number: length(f"{number} " * 100), size=1000)
    for counts in (tokenizer._counts, tokenizer._estimates):
        assert len(counts._newer) <= 3 and len(counts._older) <= 3


async def test_what_is_known_is_counted_on_the_loop_and_much_that_is_new_in_a_thread(tokenizer: Tokenizer) -> None:
    threads: list[int] = []

    def work(length: Length) -> int:
        threads.append(threading.get_ident())
        return sum(length(f"{number} " * 1000) for number in range(5))

    first = await tokenizer.run(work, size=10_000)  # the vocabulary is not there yet
    assert await tokenizer.run(work, size=10_000) == first
    here = threading.get_ident()
    assert [one == here for one in threads] == [False, True]
    more = [
        await tokenizer.run(lambda length: (length("y " * 10_000), threading.get_ident()), size=10_000) for _ in "ab"
    ]
    assert [thread == here for _, thread in more] == [False, True] and more[0][0] == more[1][0] > 1000
    _, thread = await tokenizer.run(
        lambda length: (length("z"), threading.get_ident()), size=module.MAX_INLINE_BYTES + 1
    )
    assert thread != here


async def test_what_takes_the_heuristic_long_is_estimated_in_a_thread(tokenizer: Tokenizer) -> None:
    """A single dash is enough: of 120 kB in French, or in English with one, it takes 10 to 20 ms."""
    here, texts = threading.get_ident(), {"ascii": "some words " * 9000, "dash": f"some words {'— and more ' * 9000}"}

    async def estimated(text: str) -> tuple[int, bool]:
        count, thread = await tokenizer.estimate(lambda length: (length(text), threading.get_ident()), size=100_000)
        return count, thread == here

    assert await estimated(texts["ascii"]) == (18_000, True)
    first = await estimated(texts["dash"])
    assert first == (27_002, False)
    assert await estimated(texts["dash"]) == (27_002, True)
    assert [(await estimated("é" * length))[1] for length in (8000, 9000)] == [True, False]


async def test_a_text_is_cut_at_whole_characters(tokenizer: Tokenizer) -> None:
    for text in ("hello world " * 100, "汉字测试" * 100, "😀" * 100):
        cut = await tokenizer.run(lambda _, text=text: tokenizer.truncate(text, 7))
        assert text.startswith(cut) and 0 < len(cut) < len(text)
        assert await tokenizer.run(lambda length, cut=cut: length(cut)) <= 8
    assert await tokenizer.run(lambda _: tokenizer.truncate("short", 7)) == "short"


def test_a_damaged_vocabulary_is_noticed() -> None:
    load = getattr(module.load_encoding, "__wrapped__", module.load_encoding)
    with pytest.raises(ValueError, match="damaged"):
        load("0" * 64)
