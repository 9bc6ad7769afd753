"""What a client's tools do, by their names and schemas."""

from __future__ import annotations

from typing import Any

import pytest
from client_declarations import CLAUDE, CLIENTS, CLINE, CODEX, CODEX_SHELL, CONTINUE, OPENCODE, PI, QWEN, TEXT
from plan_clients import Tool, place_of, planned, tool
from samples import rows

from proxy.core.tools.anthropic_tools import described
from proxy.providers.p5_cursor.bridge.calls import ExecRequest
from proxy.providers.p5_cursor.bridge.tool_forms import ROLES, ClientTools, Kind, client_tools, recognised

#: client -> kind of its tools -> name, and the member of each role
FORMS: dict[str, dict[Kind, tuple[str, dict[str, str]]]] = {
    "codex": {
        "run": (
            "exec_command",
            {"command": "cmd", "directory": "workdir", "wait": "yield_time_ms", "room": "max_output_tokens"},
        ),
        "poll": (
            "write_stdin",
            {"session": "session_id", "input": "chars", "wait": "yield_time_ms", "room": "max_output_tokens"},
        ),
    },
    "codex shell": {"run": ("shell", {"command": "command", "directory": "workdir", "timeout": "timeout_ms"})},
    "opencode": {
        "read": ("read", {"path": "filePath", "offset": "offset", "limit": "limit"}),
        "write": ("write", {"path": "filePath", "content": "content"}),
        "run": ("bash", {"command": "command", "directory": "workdir", "timeout": "timeout"}),
        "search": ("grep", {"pattern": "pattern", "path": "path"}),
    },
    "qwen": {
        "read": ("read_file", {"path": "file_path", "offset": "offset", "limit": "limit"}),
        "write": ("write_file", {"path": "file_path", "content": "content"}),
        "run": (
            "run_shell_command",
            {
                "command": "command",
                "directory": "directory",
                "timeout": "timeout",
                "description": "description",
                "background": "is_background",
            },
        ),
        "search": ("grep_search", {"pattern": "pattern", "path": "path"}),
    },
    "continue": {
        "read": ("Read", {"path": "filepath"}),
        "write": ("Write", {"path": "filepath", "content": "content"}),
        "run": ("Bash", {"command": "command", "timeout": "timeout"}),
        "list": ("List", {"path": "dirpath"}),
    },
    "pi": {
        "read": ("read", {"path": "path", "offset": "offset", "limit": "limit"}),
        "write": ("write", {"path": "path", "content": "content"}),
        "run": ("bash", {"command": "command", "timeout": "timeout"}),
    },
    "cline": {
        "read": ("read_files", {"path": "path", "offset": "start_line", "last": "end_line"}),
        "run": ("run_commands", {"command": "command"}),
    },
    "claude": {
        "read": ("Read", {"path": "file_path", "offset": "offset", "limit": "limit"}),
        "write": ("Write", {"path": "file_path", "content": "content"}),
        "run": (
            "Bash",
            {
                "command": "command",
                "timeout": "timeout",
                "description": "description",
                "background": "run_in_background",
                "sandboxed": "dangerouslyDisableSandbox",
            },
        ),
        "search": ("Grep", {"pattern": "pattern", "path": "path"}),
    },
}


def kinds(found: ClientTools) -> dict[Kind, tuple[str, dict[str, str]]]:
    return {kind: (one.name, dict(one.members)) for kind, one in found.by_kind.items()}


@pytest.mark.parametrize("client", CLIENTS)
def test_the_tools_of_real_clients(client: str) -> None:
    found = client_tools(CLIENTS[client])
    assert kinds(found) == FORMS[client] and found.unknown == ()


@rows(
    "client, lossy, alone, output",
    [
        ("opencode", True, False, ""),
        ("qwen", True, False, "labelled"),
        ("cline", True, True, "cline"),
        ("pi", False, False, ""),
        ("continue", False, False, ""),
        ("claude", False, False, "plain"),
    ],
)
def test_what_their_tools_return(client: str, lossy: bool, alone: bool, output: str) -> None:
    found = client_tools(CLIENTS[client])
    read, run = found.get("read"), found.get("run")
    assert read is not None and run is not None
    assert (read.form.lossy, read.form.alone, run.output) == (lossy, alone, output)


def test_the_forms_of_codex() -> None:
    for tools, output in ((CODEX, "session"), (CODEX_SHELL, "status")):
        run = client_tools(tools).get("run")
        assert run is not None and run.form.output == output and run.argv == (tools is CODEX_SHELL)


READ = ExecRequest(1, "", "read_args", {"path": "/w/a", "offset": 3, "limit": 5})
WHOLE = ExecRequest(1, "", "read_args", {"path": "/w/a"})
WRITE = ExecRequest(1, "", "write_args", {"path": "/w/a", "file_text": "x"})
RUN = ExecRequest(1, "", "shell_args", {"command": "ls", "working_directory": "/v", "timeout": 90_500})
ROOM = {"yield_time_ms": 30_000, "max_output_tokens": 60_000}
ABOUT = "Run Cursor-requested shell command"


@rows(
    "tools, request, called",
    [
        (CODEX, RUN, ("exec_command", {"cmd": "ls", "workdir": "/v", **ROOM})),
        (CODEX_SHELL, RUN, ("shell", {"command": ["bash", "-lc", "ls"], "timeout_ms": 90_500, "workdir": "/v"})),
        (OPENCODE, RUN, ("bash", {"command": "ls", "timeout": 90_500, "workdir": "/v"})),
        (OPENCODE, WRITE, ("write", {"filePath": "/w/a", "content": "x"})),
        (
            QWEN,
            RUN,
            (
                "run_shell_command",
                {
                    "command": "ls",
                    "timeout": 90_500,
                    "description": ABOUT,
                    "is_background": False,
                    "directory": "/v",
                },
            ),
        ),
        (QWEN, WRITE, ("write_file", {"file_path": "/w/a", "content": "x"})),
        (CONTINUE, RUN, ("Bash", {"command": "cd '/v' && ls", "timeout": 91})),
        (CONTINUE, WHOLE, ("Read", {"filepath": "/w/a"})),
        (CONTINUE, WRITE, ("Write", {"filepath": "/w/a", "content": "x"})),
        (PI, RUN, ("bash", {"command": "cd '/v' && ls", "timeout": 91})),
        (PI, READ, ("read", {"path": "/w/a", "offset": 3, "limit": 5})),
        (CLINE, RUN, ("run_commands", {"commands": ["cd '/v' && ls"]})),
        (CLINE[:1], READ, ("read_files", {"files": [{"path": "/w/a", "start_line": 3, "end_line": 7}]})),
        (CLINE[:1], WHOLE, ("read_files", {"files": [{"path": "/w/a"}]})),
        # without a shell: what the tool takes is asked for, from its own first line on
        (QWEN[3:4], READ, ("read_file", {"file_path": "/w/a", "offset": 2, "limit": 5})),
        (OPENCODE[4:5], READ, ("read", {"filePath": "/w/a", "offset": 3, "limit": 5})),
        (CLAUDE, READ, ("Read", {"file_path": "/w/a", "offset": 3, "limit": 5})),
        (
            CLAUDE,
            RUN,
            (
                "Bash",
                {
                    "command": "cd '/v' && ls",
                    "timeout": 90_500,
                    "description": ABOUT,
                    "run_in_background": False,
                    "dangerouslyDisableSandbox": False,
                },
            ),
        ),
    ],
)
def test_the_calls_of_real_clients(tools: tuple[Tool, ...], request: Any, called: tuple[str, Any]) -> None:
    assert tuple(next(planned(request, place_of(*tools)))) == called


@rows(
    "tools",
    [OPENCODE, QWEN, CLINE, CODEX],
)
def test_files_are_read_by_the_shell_where_the_own_tool_loses_bytes_or_is_none(tools: tuple[Tool, ...]) -> None:
    assert "cksum" in str(next(planned(READ, place_of(*tools))))


# -- names


@rows(
    "name, kind",
    [
        *(
            (name, "read")
            for name in ("Read", "read", "READ", "read_file", "ReadFile", "read-file", "view", "open_file")
        ),
        *((name, "write") for name in ("Write", "write_file", "createFile", "save_file", "edit_file")),
        *((name, "run") for name in ("Bash", "bash", "shell", "exec", "execute_command", "run_terminal_cmd")),
        *((name, "run") for name in ("terminal", "local_shell", "runInTerminal", "run_command", "ExecCommand")),
        *((name, "list") for name in ("List", "ls", "list_dir", "list_directory", "list_files")),
        *((name, "search") for name in ("Grep", "grep_search", "search_files", "ripgrep")),
        *((name, "delete") for name in ("delete", "delete_file", "rm")),
        *(
            (name, None)
            for name in ("Edit", "Glob", "apply_patch", "WebFetch", "read_many_files", "bash_output", "create", "")
        ),
        # in a namespace of the client's own
        ("files__read_file", "read"),
        ("functions.read", "read"),
        ("fs/write_file", "write"),
        ("terminal:exec", "run"),
        ("Tools__Bash", "run"),
        # of others, which may work elsewhere
        *((name, None) for name in ("github__create_file", "browser.exec", "redis.exec", "my_mcp.bash", "db:delete")),
        *((name, None) for name in ("default_api:run_shell_command", "dev/shell", "a__b__Bash", "tools__git__write")),
        # of MCP servers
        *((name, None) for name in ("mcp__fs__read_file", "mcp__Read", "MCP__fs__write", "mcp.fs.read", "mcp_read")),
    ],
)
def test_names_in_any_case_and_with_any_separators(name: str, kind: str | None) -> None:
    found = list(recognised(tool(name, {"path": TEXT, "content": TEXT, "command": TEXT, "pattern": TEXT})))
    assert [one.form.kind for one in found] == ([] if kind is None else [kind])
    assert all(one.name == name for one in found)


def test_a_name_without_a_namespace_comes_first() -> None:
    names = ("tools__Bash", "Bash", "shell")
    run = {"command": TEXT}
    assert kinds(client_tools([tool(name, run) for name in names]))["run"][0] == "Bash"
    assert kinds(client_tools([tool(name, run) for name in names[::-1]]))["run"][0] == "shell"


# -- schemas


@rows(
    "declared",
    [
        tool("read_file", {"uri": TEXT}, ["uri"]),
        tool("read_file", {"path": TEXT, "encoding": TEXT}, ["path", "encoding"]),
        tool("read_file", {"path": {"type": "array"}}),
        tool("Read", {"paths": {"type": "array"}}),
        tool("read_files", {"files": {"type": "array", "items": TEXT}}, ["files"]),
        tool("read_files", {"paths": {"type": "array"}}),
        tool("write_file", {"path": TEXT, "patch": TEXT}),
        tool("write_file", {"path": TEXT, "content": TEXT, "mode": TEXT}, ["path", "content", "mode"]),
        # a part of a file, or behind it
        *(
            tool("write_file", {"path": TEXT, "content": TEXT, member: {}})
            for member in (
                "offset",
                "start",
                "mode",
                "append",
                "insert_line",
                "old_text",
                "range",
                "edits",
                "diff",
                "position",
            )
        ),
        # a choice, or what is described elsewhere
        *(
            tool("read", {"path": schema})
            for schema in (
                {**TEXT, "enum": ["a", "b"]},
                {"const": "a"},
                {"oneOf": [TEXT]},
                {"allOf": [{"$ref": "#/$defs/path"}]},
                {"anyOf": [{"const": "a"}, {"const": "b"}]},
                {"anyOf": [{**TEXT, "enum": ["a", "b"]}, {"type": "null"}]},
                {"$ref": "#/$defs/path"},
                {**TEXT, "$ref": "#/$defs/path"},
            )
        ),
        tool("shell", {"command": {**TEXT, "enum": ["start", "stop"]}}),
        tool("edit_file", {"path": TEXT, "content": TEXT, "instructions": TEXT}, ["instructions"]),
        tool("shell", {"command": {"type": "object"}}),
        tool("run_commands", {"commands": {"type": "array", "items": {"type": "object", "properties": {"argv": {}}}}}),
        tool("write_stdin", {"chars": TEXT}),
        tool("grep", {"path": TEXT}),
    ],
)
def test_a_form_that_is_not_known_is_listed_and_not_used(declared: Tool) -> None:
    found = client_tools([declared, {"name": "Edit"}])
    assert not found and found.by_kind == {} and found.unknown == (declared["name"],)


def test_another_tool_serves_where_the_first_has_an_unknown_form() -> None:
    found = client_tools([tool("read_file", {"uri": TEXT}), tool("view", {"path": TEXT})])
    assert kinds(found) == {"read": ("view", {"path": "path"})} and found.unknown == ("read_file",)


@rows(
    "schema",
    [
        None,
        {},
        [],
        "x",
        {"type": "object"},
        {"properties": {}},
        {"properties": []},
        {"properties": None, "required": 3},
    ],
)
def test_open_schemas_take_what_claude_code_s_tools_take(schema: Any) -> None:
    (read,) = recognised({"name": "Read", "input_schema": schema})
    assert dict(read.members) == {"path": "file_path", "offset": "offset", "limit": "limit"}
    (run,) = recognised({"name": "Bash", "input_schema": schema})
    assert dict(run.members) == {
        role: ROLES[role][0] for role in ("command", "timeout", "description", "background", "sandboxed")
    }
    # under any other name nobody knows what they take
    others = ("run_commands", "view", "shell", "terminal", "create", "bash", "write_file", "functions.Bash", "List")
    assert [name for name in others if list(recognised({"name": name, "input_schema": schema}))] == []


@rows(
    "name, members, roles",
    [
        ("read", {"file": TEXT, "start_line": {}, "end_line": {}}, {"path": "file", "offset": "start_line"}),
        ("read", {"path": {"type": ["string", "null"]}}, {"path": "path"}),
        ("read", {"path": {"anyOf": [{"type": "null"}, TEXT]}}, {"path": "path"}),
        ("read", {"path": True}, {"path": "path"}),
        ("read", {"path": TEXT, "offset": TEXT, "limit": {"type": "object"}}, {"path": "path"}),
        ("shell", {"cmd": {"type": ["array", "string"]}, "timeout": {"type": "boolean"}}, {"command": "cmd"}),
        ("shell", {"script": TEXT, "cwd": TEXT}, {"command": "script", "directory": "cwd"}),
    ],
)
def test_members_are_found_by_their_names_and_types(name: str, members: Any, roles: dict[str, str]) -> None:
    (found,) = recognised(tool(name, members))
    assert {**found.members, **roles} == dict(found.members)
    assert set(found.members) - set(roles) <= {"last"}


@rows(
    "schema, words, limit",
    [
        (TEXT, "in milliseconds", None),  # of another type
        ({"type": "number"}, "Optional timeout in milliseconds", 1500),
        ({"type": "number"}, "Timeout in ms", 1500),
        ({"type": "number"}, "Up to 600000ms", 1500),
        ({"type": "integer"}, "Timeout in milliseconds (the default is 120 seconds)", 1500),
        ({"type": "number"}, "Timeout in seconds", 2),
        ({"type": "number"}, "Timeout in seconds; more for slow programs", 2),
        ({"type": "number"}, "How long to wait", None),
        ({"type": "number"}, "", None),
        ({"type": "integer", "maximum": 1000}, "In milliseconds", 1000),
        ({"type": "integer", "maximum": 1}, "In seconds", 1),
    ],
)
def test_the_unit_of_a_limit_is_what_the_schema_says(schema: Any, words: str, limit: int | None) -> None:
    """A limit in the wrong unit would end each command at once, or never."""
    request = ExecRequest(1, "", "shell_args", {"command": "ls", "timeout": 1500})
    declared = tool("shell", {"command": TEXT, "timeout": {**schema, "description": words}})
    assert next(planned(request, place_of(declared))).input.get("timeout") == limit


@rows("name, limit", [("timeout_ms", 1500), ("timeoutMs", 1500), ("timeout_seconds", 2), ("timeout_s", 2)])
def test_the_unit_of_a_limit_may_be_in_its_name(name: str, limit: int) -> None:
    request = ExecRequest(1, "", "shell_args", {"command": "ls", "timeout": 1500})
    declared = tool("shell", {"command": TEXT, name: {"type": "number"}})
    assert next(planned(request, place_of(declared))).input == {"command": "ls", name: limit}


@rows(
    "members, required, input_",
    [
        (
            {"command": TEXT, "workdir": {"type": ["string", "null"]}, "login": {"type": ["boolean", "null"]}},
            ["command", "workdir", "login"],
            {"command": "ls", "workdir": None, "login": None},
        ),
        (
            {"command": TEXT, "timeout": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
            ["command", "timeout"],
            {"command": "ls", "timeout": None},
        ),
        (
            {"command": TEXT, "sandbox": {"type": ["string", "null"], "enum": ["on", "off", None]}},
            ["command", "sandbox"],
            {"command": "ls", "sandbox": None},
        ),
        ({"command": TEXT, "workdir": {"type": ["string", "null"]}}, ["command"], {"command": "ls"}),
    ],
)
def test_what_a_strict_schema_insists_on_may_be_null(members: Any, required: list[str], input_: dict[str, Any]) -> None:
    request = ExecRequest(1, "", "shell_args", {"command": "ls"})
    assert next(planned(request, place_of(tool("functions__bash", members, required)))).input == input_


# -- tools of Anthropic's API


@rows("kind, name", [("bash_20241022", "bash"), ("bash_20250124", "bash")])
def test_the_bash_tool_of_the_api(kind: str, name: str) -> None:
    found = client_tools([described({"type": kind, "name": name})])
    assert kinds(found) == {"run": (name, {"command": "command"})}
    assert tuple(next(planned(RUN, place_of(described({"type": kind, "name": name}))))) == (
        name,
        {"command": "cd '/v' && ls"},
    )


@rows(
    "kind, name",
    [
        ("text_editor_20241022", "str_replace_editor"),
        ("text_editor_20250124", "str_replace_editor"),
        ("text_editor_20250429", "str_replace_based_edit_tool"),
        ("text_editor_20250728", "str_replace_based_edit_tool"),
    ],
)
def test_the_text_editor_of_the_api(kind: str, name: str) -> None:
    place = place_of(described({"type": kind, "name": name}))
    assert tuple(next(planned(READ, place))) == (name, {"command": "view", "path": "/w/a"})
    assert tuple(next(planned(WRITE, place))) == (name, {"command": "create", "path": "/w/a", "file_text": "x"})


def test_other_tools_of_the_api_are_no_tools_for_files() -> None:
    others = [{"type": "memory_20250818", "name": "memory"}, {"type": "computer_20250124", "name": "computer"}]
    assert not client_tools(map(described, others))
