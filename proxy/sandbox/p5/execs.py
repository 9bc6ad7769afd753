"""The requests of a run to its client: executions, questions to the user, and how answers are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from proxy.sandbox.wires.connect.protobuf import Message

_SHELL = {"command": 1, "working_directory": 2, "timeout": 3, "call_id": 4, "is_background": 11, "description": 15}
_READ = {"path": 1, "call_id": 2, "offset": 4, "limit": 5}

CONTEXT, SHELL_STREAM = 10, 14

#: Kind -> its number, and the numbers of its arguments. Its result has that number.
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

#: Kinds that a client may pass on as calls: shell, write and read, in all their forms.
TOOLS = (2, 3, 7, SHELL_STREAM, 29)

#: Number of a result -> its arms, each with whether it is a success and its fields with text.
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

#: Number and arm of a result -> its highest field number.
_MOST = {
    **{(2, arm): most for arm, most in {1: 14, 2: 12, 3: 3, 4: 4, 5: 3, 7: 4}.items()},
    **{(3, arm): most for arm, most in {1: 4, 3: 5, 4: 1, 5: 2, 6: 2}.items()},
    **{(number, arm): most for number in (7, 29) for arm, most in {1: 8, 2: 2, 3: 2, 4: 1, 5: 1, 6: 2}.items()},
    **{(SHELL_STREAM, arm): most for arm, most in {1: 1, 2: 1, 3: 6, 4: 1, 5: 4, 6: 4, 7: 6}.items()},
    **dict.fromkeys([(5, 2), (11, 2), (17, 2), (18, 4), (23, 2), (CONTEXT, 1)], 1),
    **dict.fromkeys([(4, 6), (8, 2), (8, 3), (9, 2), (9, 3), (11, 3), (11, 5), (18, 2), (20, 2)], 2),
    (16, 2): 3,
    (16, 3): 4,
}

#: Fields of a result from here on are outside of its arm.
_BESIDE = 100

#: Arms of a piece of a shell's stream, and those that end it.
_STREAM_ARMS, _STREAM_ENDS = range(1, 8), (3, 5, 6, 7)


#: Arguments and the arm of a result -> the required values of its fields.
_Expect = Callable[[Message, Message], dict[int, Any]]


class Outcome(NamedTuple):
    """The result of a request, in words."""

    ok: bool
    text: str


def ends(number: int, message: Message) -> bool:
    """Whether this result is the last one of its request."""
    return number != SHELL_STREAM or any(arm in _STREAM_ENDS for arm in _arms(message, number))


def _arms(message: Message, number: int) -> list[int]:
    result = message.sub(number)
    return [] if result is None else list(result.fields)


def odd(number: int, args: Message, message: Message) -> list[str]:
    """The faults of a result."""
    arms = [arm for arm in _arms(message, number) if arm < _BESIDE]
    known = _STREAM_ARMS if number == SHELL_STREAM else _ARMS.get(number)
    if known is None:
        return [] if arms else ["a result without an arm"]
    if len(arms) != 1 or arms[0] not in known:
        return [f"result {number} has the arms {arms}"]
    said = message.sub(number, arms[0]) or Message(b"")
    strange = [place for place in said.fields if place > _MOST.get((number, arms[0]), place)]
    if strange:
        return [f"result {number}.{arms[0]} has the fields {strange}"]
    expect: _Expect = _EXPECTED.get((number, arms[0]), _anything)
    problems = []
    for place, value in expect(args, said).items():
        found = said.text(place) if isinstance(value, str) else said.number(place)
        if found != value:
            problems.append(f"result {number}.{arms[0]} has {found!r} in field {place}, not {value!r}")
    return problems


def _anything(_args: Message, _said: Message) -> dict[int, Any]:
    return {}


def _lines(text: str) -> int:
    return len(text.split("\n")) if text else 0


def _path(args: Message, _said: Message) -> dict[int, Any]:
    return {1: args.text(1)}


def _read(args: Message, said: Message) -> dict[int, Any]:
    ranged = 4 in args or 5 in args
    counted = {} if ranged else {3: _lines(said.text(2)), 4: len(said.bytes(2))}
    return {1: args.text(1), **counted}


def _written(args: Message, _said: Message) -> dict[int, Any]:
    text = args.text(2) or args.text(5)
    back = {4: text} if args.number(4) else {}
    return {1: args.text(1), 2: _lines(text), 3: len(text.encode()), **back}


def _in_shell(args: Message, _said: Message) -> dict[int, Any]:
    return {1: args.text(1), 2: args.text(2)}


def _where(args: Message, said: Message) -> dict[int, Any]:
    """A command ends in its starting directory; one without its own may end in any named one."""
    return {2: args.text(2) or said.text(2) or "a directory"}


#: Number and arm of a result -> the required values of its fields.
_EXPECTED: dict[tuple[int, int], _Expect] = {
    **{(number, 1): _read for number in (7, 29)},
    **{(number, arm): _path for number in (7, 29) for arm in range(2, 7)},
    (3, 1): _written,
    **{(3, arm): _path for arm in (3, 4, 5, 6)},
    **{(2, arm): _in_shell for arm in (1, 2, 3, 4, 5, 7)},
    (SHELL_STREAM, 3): _where,
    **{(SHELL_STREAM, arm): _in_shell for arm in (5, 6)},
    (4, 6): _path,
    (8, 3): _path,
    (9, 3): _path,
    (16, 3): _in_shell,
    (20, 2): _path,
}


def outcome(number: int, messages: list[Message]) -> Outcome:
    """The combined outcome of a request's results."""
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


Event = Mapping[str, Any]

CALL_ID = "toolu_query"

_OPTIONS = [{1: "a", 2: "First"}, {1: "b", 2: "Second"}]


def _question(event: Event) -> dict[int, Any]:
    question = {1: "q1", 2: event.get("text", "Which one?"), 3: _OPTIONS}
    return {1: {1: "A question", 2: [question]}, 2: CALL_ID}


#: Kind -> its number and arguments.
QUERIES: dict[str, tuple[int, Callable[[Event], dict[int, Any]]]] = {
    "web_search": (2, lambda event: {1: {1: event.get("text", "news"), 2: CALL_ID}}),
    "ask_question": (3, _question),
    "switch_mode": (4, lambda event: {1: {1: event.get("text", "plan"), 2: "A plan comes first.", 3: CALL_ID}}),
    "exa_search": (5, lambda _: {}),
    "exa_fetch": (6, lambda _: {}),
    "create_plan": (
        7,
        lambda event: {1: {1: event.get("text", "1. Look."), 2: "Overview", 3: "Plan"}, 2: CALL_ID},
    ),
    "setup_vm": (8, lambda _: {}),
    "web_fetch": (9, lambda event: {1: {1: event.get("text", "https://example.com/"), 2: CALL_ID}}),
    "pr_management": (10, lambda _: {}),
    "mcp_auth": (11, lambda event: {1: {1: event.get("text", "server"), 2: CALL_ID}}),
    "generate_image": (12, lambda _: {2: CALL_ID}),
    "replace_env": (13, lambda _: {}),
    "unknown": (99, lambda _: {}),
}


def verdict(number: int, response: Message) -> str:
    """The answer to the query of that number: approved, rejected, or nothing."""
    if number == 7:
        return "approved" if response.has(7, 1, 1) else "rejected" if response.has(7, 1, 2) else "nothing"
    if number == 3:
        return "approved" if response.has(3, 1, 1) else "rejected" if response.has(3, 1) else "nothing"
    return "approved" if response.has(number, 1) else "rejected" if response.has(number, 2) else "nothing"


def reason(number: int, response: Message) -> str:
    """The reason of a rejection."""
    return response.text(3, 1, 3, 1) if number == 3 else response.text(number, 2, 1)
