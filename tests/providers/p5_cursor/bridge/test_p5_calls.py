"""Execs as calls of the client's tools."""

from __future__ import annotations

from typing import Any

from samples import rows

from proxy.providers.p5_cursor.bridge.calls import ExecRequest, is_an_aside, tool_input, tool_of

TOOLS: dict[str, dict[str, Any]] = {
    "Read": {"name": "Read", "input_schema": {"type": "object"}},
    "Write": {"name": "Write", "input_schema": {"type": "object"}},
    "Bash": {"name": "Bash", "input_schema": {"type": "object"}},
}
USUAL = {
    "timeout": 30000,
    "description": "Run Cursor-requested shell command",
    "run_in_background": False,
    "dangerouslyDisableSandbox": False,
}


def declared(*names: str) -> dict[str, Any]:
    return {"name": "T", "input_schema": {"type": "object", "properties": {name: {} for name in names}}}


@rows(
    "message, request_",
    [
        ({"exec_id": "e1", "read_args": {"path": "/a"}}, ExecRequest(0, "e1", "read_args", {"path": "/a"})),
        ({"id": 3, "shell_args": {}, "span_context": {"trace_id": "t"}}, ExecRequest(3, "", "shell_args", {})),
        ({"span_context": {}, "id": 3}, ExecRequest(3, "", "", {})),
        ({}, ExecRequest(0, "", "", {})),
        ({"id": 4, "subagent_args": b"\x0a"}, ExecRequest(4, "", "subagent_args", {})),
    ],
)
def test_what_an_exec_asks(message: dict[str, Any], request_: ExecRequest) -> None:
    assert ExecRequest.of(message) == request_


@rows(
    "kind, tool",
    [
        ("read_args", "Read"),
        ("redacted_read_args", "Read"),
        ("write_args", "Write"),
        ("shell_stream_args", "Bash"),
        ("shell_args", "Bash"),
        ("grep_args", None),
        ("delete_args", None),
        ("mcp_args", None),
        ("request_context_args", None),
        ("", None),
    ],
)
def test_each_tool_is_judged_by_itself(kind: str, tool: str | None) -> None:
    request = ExecRequest(1, "", kind, {"path": "/a", "command": "ls"})
    assert tool_of(request, TOOLS) == tool
    assert tool_of(request, {name: row for name, row in TOOLS.items() if name != tool}) is None
    assert tool_of(request, {name.lower(): row for name, row in TOOLS.items()}) is None


@rows(
    "kind, args, expected",
    [
        ("read_args", {"path": "/a"}, {"file_path": "/a"}),
        ("redacted_read_args", {"path": "/a"}, {"file_path": "/a"}),
        ("read_args", {"path": "/a", "offset": 0}, {"file_path": "/a", "offset": 0}),
        ("read_args", {"path": "/a", "limit": 5}, {"file_path": "/a", "limit": 5}),
        (
            "read_args",
            {"path": "/a", "offset": 10, "limit": 5, "tool_call_id": "t", "encoding_hint": "utf-8"},
            {"file_path": "/a", "offset": 10, "limit": 5},
        ),
        ("write_args", {"path": "/a", "file_text": "x"}, {"file_path": "/a", "content": "x"}),
        ("write_args", {"path": "/a"}, {"file_path": "/a", "content": ""}),
        ("write_args", {"path": "/a", "file_bytes": "ä\r\n".encode()}, {"file_path": "/a", "content": "ä\r\n"}),
        ("write_args", {"path": "/a", "file_text": "x", "file_bytes": b"y"}, {"file_path": "/a", "content": "x"}),
        ("write_args", {"path": "/a", "file_text": "x", "file_bytes": b"\xff"}, {"file_path": "/a", "content": "x"}),
        ("write_args", {"path": "/a", "file_bytes": b"\xef\xbb\xbfa"}, {"file_path": "/a", "content": "\ufeffa"}),
        ("shell_args", {"command": "ls"}, {"command": "ls", **USUAL}),
        ("shell_args", {"command": "ls", "working_directory": "/w"}, {"command": "ls", **USUAL}),
        ("shell_args", {"command": "ls", "working_directory": "/v"}, {"command": "cd '/v' && ls", **USUAL}),
        (
            "shell_stream_args",
            {"command": "ls", "working_directory": "/w/it's", "timeout": 0},
            {"command": "cd '/w/it'\\''s' && ls", **USUAL},
        ),
        (
            "shell_args",
            {"command": "ls", "timeout": 90_000, "description": "List", "is_background": True},
            {"command": "ls", **USUAL, "timeout": 90_000, "description": "List"},
        ),
        ("shell_args", {"command": "ls", "timeout": -1, "description": ""}, {"command": "ls", **USUAL}),
        ("shell_args", {}, {"command": "", **USUAL}),
    ],
)
def test_the_input_of_a_call(kind: str, args: dict[str, Any], expected: dict[str, Any]) -> None:
    request = ExecRequest(3, "e3", kind, args)
    tool = TOOLS[tool_of(request, TOOLS) or ""]
    assert tool_input(request, "/w", tool) == expected
    # the order is that of the document, since the client gets the JSON text
    assert list(tool_input(request, "/w", tool)) == list(expected)


def test_bytes_that_are_no_text_are_not_written() -> None:
    request = ExecRequest(1, "", "write_args", {"path": "/a", "file_bytes": b"\xff\x00"})
    assert tool_of(request, TOOLS) is None


READ = ExecRequest(1, "", "read_args", {"path": "/a", "offset": 2, "limit": 3})
WRITE = ExecRequest(1, "", "write_args", {"path": "/a", "file_text": "x"})
BASH = ExecRequest(1, "", "shell_args", {"command": "ls"})


@rows(
    "request_, tool, expected",
    [
        (BASH, declared("command"), {"command": "ls"}),
        (BASH, declared("command", "timeout"), {"command": "ls", "timeout": 30000}),
        (BASH, declared("cmd", "workdir"), {"cmd": "ls"}),
        (READ, declared("file_path"), {"file_path": "/a"}),
        # a part that is not the one asked for could be taken for the file
        (READ, declared("path", "limit"), {"path": "/a"}),
        (READ, declared("path", "start_line", "end_line"), {"path": "/a"}),
        (READ, declared("filePath", "offset", "limit"), {"filePath": "/a", "offset": 2, "limit": 3}),
        (READ, declared("file_path", "path"), {"file_path": "/a"}),
        (WRITE, declared("path", "contents"), {"path": "/a", "contents": "x"}),
        # nobody could do anything with a call without these
        (WRITE, declared("other"), {"file_path": "/a", "content": "x"}),
        # a schema that names nothing leaves everything open
        (READ, declared(), {"file_path": "/a", "offset": 2, "limit": 3}),
        (WRITE, declared(), {"file_path": "/a", "content": "x"}),
        (WRITE, {"name": "Write"}, {"file_path": "/a", "content": "x"}),
        (WRITE, {"name": "Write", "input_schema": None}, {"file_path": "/a", "content": "x"}),
        (WRITE, {"name": "Write", "input_schema": {"properties": []}}, {"file_path": "/a", "content": "x"}),
    ],
)
def test_only_what_the_client_s_schema_names(
    request_: ExecRequest, tool: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert tool_input(request_, "/w", tool) == expected


NUMBER = {"type": "integer", "minimum": 0}
RANGED = {"file_path": {"type": "string"}, "offset": NUMBER, "limit": {"type": "integer", "exclusiveMinimum": 0}}
NULLABLE = {
    "file_path": {"type": "string"},
    "offset": {"type": ["integer", "null"]},
    "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    "encoding": {"type": "string"},
}


@rows(
    "range_, expected",
    [
        ({"offset": 0, "limit": 1}, {"offset": 0, "limit": 1}),
        ({"offset": -3}, {}),
        ({"offset": 4, "limit": 0}, {}),
        ({"limit": 0}, {}),
    ],
)
def test_a_range_that_the_schema_refuses_is_not_asked_for(range_: dict[str, int], expected: dict[str, int]) -> None:
    request = ExecRequest(1, "", "read_args", {"path": "/a", **range_})
    tool = {"name": "Read", "input_schema": {"type": "object", "properties": RANGED}}
    assert tool_input(request, "/w", tool) == {"file_path": "/a", **expected}


@rows(
    "required, expected",
    [
        (["file_path", "offset", "limit"], {"file_path": "/a", "offset": None, "limit": None}),
        (["file_path", "limit"], {"file_path": "/a", "limit": None}),
        (["file_path", "encoding", "other", None], {"file_path": "/a"}),
        ("file_path", {"file_path": "/a"}),
        (None, {"file_path": "/a"}),
    ],
)
def test_what_a_strict_schema_insists_on_may_be_null(required: Any, expected: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": NULLABLE, "required": required, "additionalProperties": False}
    request = ExecRequest(1, "", "read_args", {"path": "/a"})
    assert tool_input(request, "/w", {"name": "Read", "input_schema": schema}) == expected


SIDE = "<system-reminder>This is a side question from the user. You must answer it.</system-reminder>\n\n"


def says(role: str, *texts: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text} for text in texts]}


@rows(
    "messages, expected",
    [
        ([says("user", "Q", SIDE, "what is this?")], True),
        ([says("user", "Q"), says("assistant", "A"), says("user", SIDE), says("system", "# Environment")], True),
        ([says("user", "Q"), says("assistant", "A"), {"role": "user", "content": SIDE}], True),
        ([says("user", "[SUGGESTION MODE: Suggest what the user might naturally type next]")], True),
        ([says("user", "Describe your most recent action in 3-5 words using present tense")], True),
        ([says("user", "The user stepped away and is coming back. Recap in under 40 words")], True),
        ([says("user", SIDE), says("assistant", "A"), says("user", "and now?")], False),
        ([says("user", SIDE), says("assistant", "A")], False),
        ([says("user", "What does [SUGGESTION MODE: do?")], False),
        ([says("system", SIDE)], False),
        ([{"role": "user"}, None, {"role": "user", "content": [None, {"type": "text", "text": 3}]}], False),
        ([], False),
        (None, False),
    ],
)
def test_what_is_asked_beside_a_conversation(messages: Any, expected: bool) -> None:
    assert is_an_aside({"messages": messages}) is expected
