"""The requests of a run to its client: executions, questions to the user, and how answers are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from proxy.sandbox.p5.listings import SEARCH, TREE, odd_search, odd_tree, search_words, tree_words
from proxy.sandbox.p5.shapes import BYTES, NUMBER, TEXT, Shape, misshapen
from proxy.sandbox.wires.connect.protobuf import Message

_SHELL = {
    "command": 1,
    "working_directory": 2,
    "timeout": 3,
    "call_id": 4,
    "simple_commands": 5,
    "has_input_redirect": 6,
    "has_output_redirect": 7,
    "file_output_threshold_bytes": 10,
    "is_background": 11,
    "skip_approval": 12,
    "timeout_behavior": 13,
    "hard_timeout": 14,
    "description": 15,
    "close_stdin": 17,
}
_READ = {"path": 1, "call_id": 2, "offset": 4, "limit": 5, "encoding_hint": 6}
_WRITE = {
    "path": 1,
    "text": 2,
    "call_id": 3,
    "return_content": 4,
    "file_bytes": 5,
    "file_hex": 5,  # the bytes in hexadecimal, for scripts in JSON
    "encoding_hint": 6,
}
_GREP = {
    "pattern": 1,
    "path": 2,
    "glob": 3,
    "output_mode": 4,
    "context_before": 5,
    "context_after": 6,
    "context": 7,
    "case_insensitive": 8,
    "file_type": 9,
    "head_limit": 10,
    "multiline": 11,
    "sort": 12,
    "sort_ascending": 13,
    "call_id": 14,
    "offset": 16,
}
_BACKGROUND = {"command": 1, "working_directory": 2, "call_id": 3, "enable_stdin": 6, "description": 7}

WRITE, CONTEXT, SHELL_STREAM, BACKGROUND = 3, 10, 14, 16

#: Both forms of a read, and of a command.
READS, SHELLS = (7, 29), (2, SHELL_STREAM)

#: Kind -> its number, and the numbers of its arguments. Its result has that number.
EXECS: dict[str, tuple[int, Mapping[str, int]]] = {
    "shell": (2, _SHELL),
    "write": (WRITE, _WRITE),
    "delete": (4, {"path": 1, "call_id": 2}),
    "grep": (5, _GREP),
    "read": (7, _READ),
    "ls": (8, {"path": 1, "ignore": 2, "call_id": 3, "timeout_ms": 5}),
    "diagnostics": (9, {"path": 1, "call_id": 2}),
    "context": (CONTEXT, {"notes_session_id": 2}),
    "mcp": (11, {"name": 1, "call_id": 3, "provider": 4, "tool": 5}),
    "shell_stream": (SHELL_STREAM, _SHELL),
    "background_shell": (BACKGROUND, _BACKGROUND),
    "list_mcp_resources": (17, {"server": 1}),
    "read_mcp_resource": (18, {"server": 1, "uri": 2, "download_path": 3}),
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

#: Kinds that a client may pass on as calls: shell, write and read in all their forms, delete, grep and ls.
TOOLS = (*SHELLS, *READS, WRITE, 4, 5, 8)

#: Number of a result -> its arms, each with whether it is a success and its fields with text.
_ARMS: dict[int, dict[int, tuple[bool, tuple[int, ...]]]] = {
    2: {1: (True, (5, 6)), 2: (False, (5, 6)), 3: (False, (2,)), 4: (False, (3,)), 5: (False, (3,)), 7: (False, (3,))},
    3: {1: (True, (1,)), 3: (False, (4,)), 4: (False, (1,)), 5: (False, (2,)), 6: (False, (2,))},
    4: {number: (number == 1, (1,) if number < 3 else (2,)) for number in range(1, 8)},
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
    **{(number, arm): most for number in READS for arm, most in {1: 8, 2: 2, 3: 2, 4: 1, 5: 1, 6: 2}.items()},
    **{(SHELL_STREAM, arm): most for arm, most in {1: 1, 2: 1, 3: 6, 4: 1, 5: 4, 6: 4, 7: 6}.items()},
    **dict.fromkeys([(4, 2), (5, 2), (11, 2), (17, 2), (18, 4), (23, 2), (CONTEXT, 1)], 1),
    **dict.fromkeys([(4, 6), (4, 7), (8, 2), (8, 3), (9, 2), (9, 3), (11, 3), (11, 5), (18, 2), (20, 2)], 2),
    **dict.fromkeys([(4, 4), (16, 2)], 3),
    (16, 3): 4,
}

_READ_SUCCESS: Shape = {1: TEXT, 2: TEXT, 3: NUMBER, 4: NUMBER, 5: BYTES, 6: NUMBER, 7: BYTES, 8: NUMBER}

#: Number and arm of a result -> its fields, at every level.
_SHAPES: dict[tuple[int, int], Shape] = {
    (4, 1): {1: TEXT, 2: TEXT, 3: NUMBER, 4: TEXT},
    (5, 1): SEARCH,
    **dict.fromkeys([(number, 1) for number in READS], _READ_SUCCESS),
    **dict.fromkeys([(8, 1), (8, 4)], TREE),
}

#: Fields of a result from here on are outside of its arm.
_BESIDE = 100

#: Arms of a piece of a shell's stream, and those that end it.
_STREAM_ARMS, _STREAM_ENDS = range(1, 8), (3, 5, 6, 7)


#: Arguments and the arm of a result -> the required values of its fields.
_Expect = Callable[[Message, Message], dict[int, Any]]


class Outcome(NamedTuple):
    """The result of a request, in words. The words of a read are the file: `text.encode(errors="surrogateescape")` has
    its bytes, also where they are not UTF-8."""

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
    said, where = message.sub(number, arms[0]) or Message(b""), (number, arms[0])
    strange = [place for place in said.fields if place > _MOST.get(where, place)]
    if strange:
        return [f"result {number}.{arms[0]} has the fields {strange}"]
    if where in _SHAPES and (problems := list(misshapen(said, _SHAPES[where], f"result {number}.{arms[0]}"))):
        return problems
    check: _Check = _CHECKS.get(where, _nothing)
    problems = [*_unexpected(_EXPECTED.get(where, _anything)(args, said), said), *check(args, said)]
    return [f"result {number}.{arms[0]} {words}" for words in problems]


def _unexpected(expected: dict[int, Any], said: Message) -> Iterator[str]:
    for place, value in expected.items():
        found = said.text(place) if isinstance(value, str) else said.number(place)
        if found != value:
            yield f"has {found!r} in field {place}, not {value!r}"


def _anything(_args: Message, _said: Message) -> dict[int, Any]:
    return {}


def _nothing(_args: Message, _said: Message) -> Iterable[str]:
    return ()


def _lines(data: bytes) -> int:
    return data.count(b"\n") + 1 if data else 0


def _path(args: Message, _said: Message) -> dict[int, Any]:
    return {1: args.text(1)}


def _found(args: Message, _said: Message) -> dict[int, Any]:
    return {1: args.text(1), **({2: args.text(2)} if args.text(2) else {})}


def _read(args: Message, said: Message) -> dict[int, Any]:
    """Bytes that are not text need not be counted in lines."""
    if 4 in args or 5 in args:
        return _path(args, said)
    data = said.bytes(2) or said.bytes(5)
    lines = {} if 5 in said and not said.number(3) else {3: _lines(data)}
    return {1: args.text(1), **lines, 4: len(data)}


def _one_content(_args: Message, said: Message) -> Iterator[str]:
    """A read has text or bytes; or neither, when the content is in a blob."""
    contents = [place for place in (2, 5) if place in said]
    if len(contents) > 1 or (not contents and 7 not in said):
        yield f"has the contents {contents}"


def written(args: Message) -> bytes:
    """The bytes that a write is to leave in its file."""
    return args.bytes(2) or args.bytes(5)


def _written(args: Message, _said: Message) -> dict[int, Any]:
    """The content is given back, unless it is no text."""
    data = written(args)
    text = data.decode(errors="replace")
    back = {4: text} if args.number(4) and text.encode() == data else {}
    return {1: args.text(1), 2: _lines(data), 3: len(data), **back}


def _in_shell(args: Message, _said: Message) -> dict[int, Any]:
    return {1: args.text(1), 2: args.text(2)}


def _where(args: Message, said: Message) -> dict[int, Any]:
    """A command ends in its starting directory; one without its own may end in any named one."""
    return {2: args.text(2) or said.text(2) or "a directory"}


#: Number and arm of a result -> the required values of its fields.
_EXPECTED: dict[tuple[int, int], _Expect] = {
    **{(number, 1): _read for number in READS},
    **{(number, arm): _path for number in READS for arm in range(2, 7)},
    (3, 1): _written,
    **{(3, arm): _path for arm in (3, 4, 5, 6)},
    **{(2, arm): _in_shell for arm in (1, 2, 3, 4, 5, 7)},
    (SHELL_STREAM, 3): _where,
    **{(SHELL_STREAM, arm): _in_shell for arm in (5, 6)},
    **{(4, arm): _path for arm in (1, 2, 4, 6, 7)},
    (5, 1): _found,
    **{(8, arm): _path for arm in (2, 3)},
    (9, 3): _path,
    (16, 3): _in_shell,
    (20, 2): _path,
}

_Check = Callable[[Message, Message], Iterable[str]]

#: Number and arm of a result -> what else is wrong with it.
_CHECKS: dict[tuple[int, int], _Check] = {
    (5, 1): odd_search,
    **{(8, arm): odd_tree for arm in (1, 4)},
    **{(number, 1): _one_content for number in READS},
}


def _read_words(said: Message) -> str:
    return (said.bytes(2) or said.bytes(5)).decode(errors="surrogateescape")


#: Number and arm of a result -> its words, which are more than a field.
_WORDS: dict[tuple[int, int], Callable[[Message], str]] = {
    (5, 1): search_words,
    **{(8, arm): tree_words for arm in (1, 4)},
    **{(number, 1): _read_words for number in READS},
}


def outcome(number: int, messages: list[Message]) -> Outcome:
    """The combined outcome of a request's results."""
    if number == SHELL_STREAM:
        return _streamed(messages)
    for message in messages:
        for arm, (ok, places) in _ARMS.get(number, {}).items():
            said = message.sub(number, arm)
            if said is not None:
                words = _WORDS.get((number, arm))
                return Outcome(ok, "".join(map(said.text, places)) if words is None else words(said))
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
