"""Execs as calls of the client's tools."""

from __future__ import annotations

from typing import Any

from plan_clients import OPEN, place_of, planned
from samples import rows

from proxy.providers.p5_cursor.bridge.calls import ExecRequest, is_an_aside
from proxy.providers.p5_cursor.bridge.plans import plan_for

USUAL = {
    "timeout": 30000,
    "description": "Run Cursor-requested shell command",
    "run_in_background": False,
    "dangerouslyDisableSandbox": False,
}


#: kind of a request -> the tool of Claude Code that serves it
OWN = {
    "read_args": "Read",
    "redacted_read_args": "Read",
    "write_args": "Write",
    "shell_stream_args": "Bash",
    "shell_args": "Bash",
}


def declared(*names: str) -> dict[str, Any]:
    """A schema with these members, of any type."""
    return {"input_schema": {"type": "object", "properties": {name: {} for name in names}}}


def asked(request: ExecRequest, *tools: dict[str, Any]) -> dict[str, Any]:
    """The input of the first call, which is for the tool that serves the request."""
    step = next(planned(request, place_of(*tools)))
    assert step.tool == OWN[request.kind]
    return step.input


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
        *OWN.items(),
        # what Claude Code has no tool for is done by a command
        ("ls_args", "Bash"),
        ("grep_args", "Bash"),
        ("delete_args", "Bash"),
        ("mcp_args", None),
        ("background_shell_spawn_args", None),
        ("request_context_args", None),
        ("", None),
    ],
)
def test_each_tool_is_judged_by_itself(kind: str, tool: str | None) -> None:
    request = ExecRequest(1, "", kind, {"path": "/a", "command": "ls"})
    all_tools = plan_for(request, place_of(*OPEN.values()))
    assert (None if all_tools is None else next(all_tools).tool) == tool
    if tool is not None:
        assert next(planned(request, place_of(OPEN[tool]))).tool == tool
        # a schema that names nothing is open for Claude Code's own names only
        assert plan_for(request, place_of({**OPEN[tool], "name": tool.lower()})) is None
    others = [row for name, row in OPEN.items() if name not in (tool, "Bash")]
    assert plan_for(request, place_of(*others)) is None
    assert plan_for(request, place_of()) is None


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
    found = asked(ExecRequest(3, "e3", kind, args), *OPEN.values())
    assert found == expected
    # the order is that of the document, since the client gets the JSON text
    assert list(found) == list(expected)


def test_bytes_that_are_no_text_are_not_written() -> None:
    request = ExecRequest(1, "", "write_args", {"path": "/a", "file_bytes": b"\xff\x00"})
    assert plan_for(request, place_of(*OPEN.values())) is None


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
        (READ, declared("path", "start_line", "end_line"), {"path": "/a", "start_line": 2, "end_line": 4}),
        (READ, declared("path", "end_line"), {"path": "/a"}),
        (READ, declared("filePath", "offset", "limit"), {"filePath": "/a", "offset": 2, "limit": 3}),
        (READ, declared("file_path", "path"), {"file_path": "/a"}),
        (WRITE, declared("path", "contents"), {"path": "/a", "contents": "x"}),
        # a schema that names nothing leaves everything open
        (READ, declared(), {"file_path": "/a", "offset": 2, "limit": 3}),
        (WRITE, declared(), {"file_path": "/a", "content": "x"}),
        (WRITE, {}, {"file_path": "/a", "content": "x"}),
        (WRITE, {"input_schema": None}, {"file_path": "/a", "content": "x"}),
        (WRITE, {"input_schema": {"properties": []}}, {"file_path": "/a", "content": "x"}),
    ],
)
def test_only_what_the_client_s_schema_names(
    request_: ExecRequest, tool: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert asked(request_, {"name": OWN[request_.kind], **tool}) == expected


@rows(
    "request_, tool",
    [
        (WRITE, declared("other")),
        (WRITE, declared("file_path")),
        (READ, declared("uri")),
        (BASH, declared("action")),
        (BASH, {"input_schema": {"properties": {"command": {"type": "integer"}}}}),
    ],
)
def test_a_tool_in_which_the_request_has_no_place_is_not_called(request_: ExecRequest, tool: dict[str, Any]) -> None:
    """Nobody could do anything with the call."""
    assert plan_for(request_, place_of({"name": OWN[request_.kind], **tool})) is None


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
    assert asked(request, tool) == {"file_path": "/a", **expected}


@rows(
    "required, expected",
    [
        (["file_path", "offset", "limit"], {"file_path": "/a", "offset": None, "limit": None}),
        (["file_path", "limit"], {"file_path": "/a", "limit": None}),
        (["file_path", None], {"file_path": "/a"}),
        # nobody knows what to say there
        (["file_path", "encoding"], None),
        (["file_path", "other"], None),
        ("file_path", {"file_path": "/a"}),
        (None, {"file_path": "/a"}),
    ],
)
def test_what_a_strict_schema_insists_on_may_be_null(required: Any, expected: dict[str, Any] | None) -> None:
    schema = {"type": "object", "properties": NULLABLE, "required": required, "additionalProperties": False}
    request = ExecRequest(1, "", "read_args", {"path": "/a"})
    tool = {"name": "Read", "input_schema": schema}
    if expected is None:
        assert plan_for(request, place_of(tool)) is None
    else:
        assert asked(request, tool) == expected


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
