"""What is remembered of tools, and for how long."""

from __future__ import annotations

from typing import Any

from proxy.core.long_json import Remembered


def test_what_differs_in_json_is_told_apart() -> None:
    made: list[Any] = []
    remembered = Remembered(made.append)
    values = [1, 1.0, True, "1", [1], {"a": 1, "b": 2}, {"b": 2, "a": 1}, None, "\ud800"]
    for value in [*values, *values]:
        remembered(value)
    assert made == values and [*map(type, made)] == [*map(type, values)]


def test_it_holds_two_generations_and_nothing_that_is_larger_than_one() -> None:
    made: list[str] = []
    remembered = Remembered(made.append, max_bytes=100)
    for number in range(50):
        remembered(f"{number:020}")
        remembered("asked for again and again")
    assert made.count("asked for again and again") == 1
    assert remembered.known <= 8
    for _ in range(2):
        remembered("x" * 101)
    assert made.count("x" * 101) == 2


def test_what_becomes_long_counts_as_long() -> None:
    """References of a schema may double with every step: a thousand bytes of a tool became 84,000."""
    made: list[str] = []

    def written_out(value: str) -> list[str]:
        made.append(value)
        return [value] * 10

    remembered = Remembered(written_out, max_bytes=1000)
    for number in range(100):
        remembered(f"{number:020}")
    assert remembered.known <= 2 * 4
    assert remembered("x" * 101) == remembered("x" * 101) and made.count("x" * 101) == 2


def test_what_is_more_than_json_is_worked_on_each_time() -> None:
    class Word(str):
        pass

    made: list[Any] = []
    remembered = Remembered(made.append)
    for _ in range(2):
        remembered({"a": Word("b")})
    assert made == [{"a": "b"}, {"a": "b"}] and remembered.known == 0
