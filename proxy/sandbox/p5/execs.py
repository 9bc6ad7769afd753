"""The requests that a client executes: their numbers, their arguments, and how a result is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from proxy.sandbox.wires.connect.protobuf import Message

_SHELL = {"command": 1, "working_directory": 2, "timeout": 3, "call_id": 4, "is_background": 11, "description": 15}
_READ = {"path": 1, "call_id": 2, "offset": 4, "limit": 5}

CONTEXT, SHELL_STREAM = 10, 14

#: Kind -> its number, and the numbers of its arguments. A result has the same number.
EXECS: dict[str, tuple[int, Mapping[str, int]]] = {
    "shell": (2, _SHELL),
    "write": (3, {"path": 1, "text": 2, "call_id": 3, "return_content": 4, "file_bytes": 5}),
    "delete": (4, {"path": 1, "call_id": 2}),
    "grep": (5, {"pattern": 1, "path": 2, "call_id": 14}),
    "read": (7, _READ),
    "ls": (8, {"path": 1, "call_id": 3}),
    "diagnostics": (9, {"path": 1, "call_id": 2}),
    "context": (CONTEXT, {"notes_session_id": 2}),
    "mcp": (11, {"name": 1, "call_id": 3, "provider": 4, "tool": 5}),
    "shell_stream": (SHELL_STREAM, _SHELL),
    "background_shell": (16, {"command": 1, "working_directory": 2, "call_id": 3}),
    "list_mcp_resources": (17, {"server": 1}),
    "read_mcp_resource": (18, {"server": 1, "uri": 2}),
    "fetch": (20, {"url": 1, "call_id": 2}),
    "record_screen": (21, {}),
    "computer_use": (22, {}),
    "write_stdin": (23, {"shell_id": 1, "chars": 2}),
    "hook": (27, {}),
    "subagent": (28, {}),
    "redacted_read": (29, _READ),
    "force_background_shell": (30, {}),
    "force_background_subagent": (31, {}),
    "mcp_state": (36, {}),
    "subagent_await": (37, {}),
    "classifier": (38, {}),
}

#: Number of a result -> its arms, each with the fields that say something, and whether it is a success.
_ARMS: dict[int, dict[int, tuple[bool, tuple[int, ...]]]] = {
    2: {1: (True, (5, 6)), 2: (False, (5, 6)), 3: (False, (2,)), 4: (False, (3,)), 5: (False, (3,)), 7: (False, (3,))},
    3: {1: (True, (1,)), 3: (False, (4,)), 4: (False, (1,)), 5: (False, (2,)), 6: (False, (2,))},
    4: {number: (number == 1, (2,)) for number in range(1, 8)},
    5: {1: (True, (1,)), 2: (False, (1,))},
    7: {1: (True, (2, 5)), **dict.fromkeys(range(2, 7), (False, (2,)))},
    8: {1: (True, ()), 2: (False, (2,)), 3: (False, (2,)), 4: (False, ())},
    9: {1: (True, ()), 2: (False, (2,)), 3: (False, (2,)), 4: (False, ()), 5: (False, ())},
    CONTEXT: {1: (True, ()), 2: (False, (1,)), 3: (False, (1,))},
    11: {1: (True, ()), 2: (False, (1,)), 3: (False, (1,)), 4: (False, (1,)), 5: (False, (1,)), 6: (False, ())},
    16: {1: (True, ()), 2: (False, (3,)), 3: (False, (3,)), 4: (False, (3,))},
    17: {1: (True, ()), 2: (False, (1,)), 3: (False, (1,))},
    18: {1: (True, ()), 2: (False, (2,)), 3: (False, ()), 4: (False, (1,))},
    20: {1: (True, (2,)), 2: (False, (2,))},
    23: {1: (True, ()), 2: (False, (1,))},
}
_ARMS[29] = _ARMS[7]

#: Arms of a piece of a shell's stream, and those of them that end it.
_STREAM_ARMS, _STREAM_ENDS = range(1, 8), (3, 5, 6, 7)


class Outcome(NamedTuple):
    """How a request went, in words."""

    ok: bool
    text: str


def ends(number: int, message: Message) -> bool:
    """Whether this result is the last one of its request."""
    return number != SHELL_STREAM or any(arm in _STREAM_ENDS for arm in _arms(message, number))


def _arms(message: Message, number: int) -> list[int]:
    result = message.sub(number)
    return [] if result is None else list(result.fields)


def odd(number: int, message: Message) -> str:
    """What is wrong with the form of a result; empty for nothing."""
    arms = [arm for arm in _arms(message, number) if arm < 100]
    known = _STREAM_ARMS if number == SHELL_STREAM else _ARMS.get(number)
    if known is None:
        return "" if arms else "a result without an arm"
    if len(arms) != 1 or arms[0] not in known:
        return f"result {number} has the arms {arms}"
    return ""


def outcome(number: int, messages: list[Message]) -> Outcome:
    """What the results of one request say together."""
    if number == SHELL_STREAM:
        return _streamed(messages)
    for message in messages:
        for arm, (ok, places) in _ARMS.get(number, {}).items():
            if message.has(number, arm):
                return Outcome(ok, "".join(message.text(number, arm, place) for place in places))
    return Outcome(False, "")


def _streamed(messages: list[Message]) -> Outcome:
    said = "".join(one.text(SHELL_STREAM, arm, 1) for one in messages for arm in (1, 2))
    for one in messages:
        for arm in (5, 6):
            if one.has(SHELL_STREAM, arm):
                return Outcome(False, one.text(SHELL_STREAM, arm, 3))
    return Outcome(not any(one.number(SHELL_STREAM, 3, 1) for one in messages), said)
