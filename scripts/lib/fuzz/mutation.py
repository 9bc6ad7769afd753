"""Mutations of JSON values, of lists of events and of bytes. All chance comes from the generator that is given."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from random import Random
from typing import Any

#: A number of JSON that no parser gives: written in place of this mark.
HUGE_MARK = "\x00huge\x00"
HUGE = "1" + "0" * 400
#: So deep that no encoder here writes it: likewise.
DEEP_MARKS = {"\x00lists\x00": "[" * 20_000 + "]" * 20_000, "\x00objects\x00": '{"a":' * 20_000 + "1" + "}" * 20_000}
#: What stands in a text that cannot be read back.
LONG = (HUGE, "[" * 20_000, '{"a":' * 20_000)

TEXTS = (
    *(
        "",
        " ",
        "\x00",
        "\x1b[2J",
        "\u202e\u2066",
        "\ud800",
        "\udfff\ud83d",
        "\ufeff",
        "\r\n\r\ndata: x",
        "data: [DONE]",
    ),
    *("null", "{}", "[]", '{"a":', "NaN", "1e999", "../../etc/passwd", "a" * 70_000, "\u00e9\U0001f600" * 300, "-1"),
    *("__proto__", "tool_use", "error", "response.completed", "response.failed", "stop", "length", "assistant"),
    *("content_filter", "tool_calls", "thinking", "refusal", "custom", "web_search_call", "data:image/png;base64,!"),
)
_NUMBERS: tuple[Any, ...] = (
    *(0, -0.0, -1, 1, 2, 1.5, 1e308, -1e308, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 10**30),
    HUGE_MARK,
)
_KEYS = ("type", "id", "index", "content", "error", "text", "name", "unknown", "k" * 70_000, "\ud800", "\x00", "")
#: Members that tie events, items and calls together.
_TIES = frozenset({"id", "index", "output_index", "content_index", "summary_index", "item_id", "call_id"}) | {
    "tool_use_id",
    "tool_call_id",
    "sequence_number",
    "previous_response_id",
}
_OTHERS: tuple[Any, ...] = (None, True, False, [], {}, [None], {"": None}, {"type": "unknown"}, [[[]]], {"text": "x"})
_ODD_BYTES = (
    b"\xff",
    b"\x00",
    b"\n",
    b"\r",
    b"\n\n",
    b"data: {\n\n",
    b": \n",
    b"\xed\xa0\x80",
    b"event: x\n",
    b"}",
    b"]",
)


def any_value(rng: Random) -> Any:
    group = rng.choice((TEXTS, TEXTS, _NUMBERS, _NUMBERS, _OTHERS, _OTHERS, None, tuple(DEEP_MARKS)))
    if group is not None:
        return _fresh(group, rng)
    return nested(rng.choice((3, 40, 300)), rng.random() < 0.5)


def _fresh(group: tuple[Any, ...], rng: Random) -> Any:
    return copy.deepcopy(rng.choice(group))


def nested(depth: int, lists: bool) -> Any:
    value: Any = "deep"
    for _ in range(depth):
        value = [value] if lists else {"a": value}
    return value


def places_of(value: Any) -> list[tuple[Any, Any]]:
    """(container, key or index) of everything inside."""
    places: list[tuple[Any, Any]] = []
    found = [value]
    while found:
        one = found.pop()
        inner = one.items() if isinstance(one, dict) else enumerate(one) if isinstance(one, list) else ()
        for key, child in inner:
            places.append((one, key))
            found.append(child)
    return places


def mutate(value: Any, rng: Random) -> Any:
    """One change somewhere inside; `value` is its own afterwards."""
    places = places_of(value)
    if not places:
        return any_value(rng)
    container, key = rng.choice(places)
    rng.choice(_CHANGES)(container, key, places, rng)
    return value


def _replace(container: Any, key: Any, _places: list[Any], rng: Random) -> None:
    container[key] = any_value(rng)


def _delete(container: Any, key: Any, _places: list[Any], _rng: Random) -> None:
    del container[key]


def _same_kind(container: Any, key: Any, _places: list[Any], rng: Random) -> None:
    old = container[key]
    container[key] = _fresh(TEXTS if isinstance(old, str) else _NUMBERS if isinstance(old, int) else _OTHERS, rng)


def _copy_from(container: Any, key: Any, places: list[Any], rng: Random) -> None:
    other, there = rng.choice(places)
    if there in (other if isinstance(other, dict) else range(len(other))):
        container[key] = copy.deepcopy(other[there])


def _repeat(container: Any, key: Any, _places: list[Any], rng: Random) -> None:
    if isinstance(container, list):
        container[key:key] = [copy.deepcopy(container[key]) for _ in range(rng.choice((1, 1, 2, 50)))]
    else:
        container[f"{key}_x"] = copy.deepcopy(container[key])


def _wrap(container: Any, key: Any, _places: list[Any], rng: Random) -> None:
    old = container[key]
    container[key] = rng.choice(([old], {"type": "unknown", "value": old}, [old, copy.deepcopy(old)]))


def _cut_text(container: Any, key: Any, _places: list[Any], rng: Random) -> None:
    if isinstance(container[key], str):
        container[key] = container[key][: rng.randrange(len(container[key]) + 1)]
    else:
        container[key] = json.dumps(container[key])


def _add_member(container: Any, key: Any, _places: list[Any], rng: Random) -> None:
    if isinstance(container, dict):
        container[rng.choice(_KEYS)] = any_value(rng)
    else:
        container.insert(key, any_value(rng))


def _shuffle(container: Any, _key: Any, _places: list[Any], rng: Random) -> None:
    if isinstance(container, list):
        rng.shuffle(container)


def _retie(_container: Any, _key: Any, places: list[Any], rng: Random) -> None:
    """One of the ties leads elsewhere, or all to the same."""
    ties = [(one, key) for one, key in places if isinstance(one, dict) and key in _TIES and key in one]
    if not ties:
        return
    values = [copy.deepcopy(one[key]) for one, key in ties]
    value = rng.choice((rng.choice(values), rng.choice(values), rng.randrange(9), f"x_{rng.randrange(3)}"))
    for one, key in ties if rng.random() < 0.3 else [rng.choice(ties)]:
        one[key] = copy.deepcopy(value)


_CHANGES: tuple[Callable[[Any, Any, list[Any], Random], None], ...] = (
    *(_replace, _replace, _delete, _delete, _same_kind, _same_kind, _copy_from, _repeat, _wrap, _cut_text),
    *(_add_member, _shuffle, _retie),
)


def dumped(value: Any) -> bytes:
    """JSON; lone surrogates are written as escapes."""
    text = json.dumps(value).replace(json.dumps(HUGE_MARK), HUGE)
    for mark, written in DEEP_MARKS.items():
        text = text.replace(json.dumps(mark), written)
    return text.encode()


def mutate_frames(frames: list[str], rng: Random) -> list[str]:
    """One change of the order of frames or of what is in one."""
    frames = list(frames)
    at = rng.randrange(len(frames))
    kind = rng.random()
    if kind < 0.55:
        frames[at] = _changed_frame(frames[at], rng)
    elif kind < 0.63:
        del frames[at]
    elif kind < 0.71:
        other = rng.randrange(len(frames) + 1)
        frames[other:other] = [frames[at]] * rng.choice((1, 1, 1, 30))
    elif kind < 0.79:
        other = rng.randrange(len(frames))
        frames[at], frames[other] = frames[other], frames[at]
    elif kind < 0.86:
        del frames[at:]
    elif kind < 0.93:
        frames[at:at] = frames[-rng.choice((1, 2, 3, 100)) :]  # an end, or all of it, a second time
    else:
        frames.insert(at, rng.choice((": hi", "data: {", "data: [DONE]", "event: error\ndata: {}", "data: 1", "x: y")))
    return frames or [": nothing"]


def _changed_frame(frame: str, rng: Random) -> str:
    head, mark, data = frame.partition("data: ")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return frame
    for _ in range(rng.choice((1, 1, 2, 4))):
        value = mutate(value, rng)
    if head and isinstance(value, dict) and isinstance(value.get("type"), str) and rng.random() < 0.8:
        name = json.dumps(value["type"])[1:-1][:100]
        head = f"event: {name}\n"
    return head + mark + dumped(value).decode()


def mutate_bytes(data: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    kind = rng.random()
    if kind < 0.4:
        return data[:at]
    if kind < 0.7:
        return data[:at] + rng.choice(_ODD_BYTES) + data[at:]
    return data[:at] + data[at + rng.choice((1, 2, 7, 40)) :]
