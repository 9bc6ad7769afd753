"""Tools as clients declare them: names, members, types, what is required, and the telling part of descriptions. Taken
from their requests in November 2026."""

from __future__ import annotations

from plan_clients import Tool, tool

TEXT, NUMBER, WHOLE, FLAG = ({"type": kind} for kind in ("string", "number", "integer", "boolean"))


def said(words: str, **schema: object) -> dict[str, object]:
    return {**schema, "description": words}


_SAFE = {"minimum": -9007199254740991, "maximum": 9007199254740991}

#: Codex CLI 0.169
CODEX = (
    tool(
        "exec_command",
        {
            "cmd": said("Shell command to execute.", **TEXT),
            "justification": TEXT,
            "login": FLAG,
            "max_output_tokens": said("Output token budget. Defaults to 10000 tokens.", **NUMBER),
            "prefix_rule": {"type": "array", "items": TEXT},
            "sandbox_permissions": {**TEXT, "enum": ["use_default", "require_escalated"]},
            "shell": said("Shell binary to launch. Defaults to the user's default shell.", **TEXT),
            "tty": FLAG,
            "workdir": said("Working directory for the command. Defaults to the turn cwd.", **TEXT),
            "yield_time_ms": said("Wait before yielding output. Defaults to 10000 ms.", **NUMBER),
        },
        ["cmd"],
    ),
    tool(
        "write_stdin",
        {
            "chars": said("Bytes to write to stdin. Defaults to empty, which polls without writing.", **TEXT),
            "max_output_tokens": NUMBER,
            "session_id": said("Identifier of the running unified exec session.", **NUMBER),
            "yield_time_ms": NUMBER,
        },
        ["session_id"],
    ),
    tool("view_image", {"path": TEXT}, ["path"]),
    tool("request_user_input", {"questions": {"type": "array"}}, ["questions"]),
    tool("multi_agent_v1__spawn_agent", {"message": TEXT}),
)
#: Older versions of Codex CLI
CODEX_SHELL = (
    tool(
        "shell",
        {"command": {"type": "array", "items": TEXT}, "workdir": TEXT, "timeout_ms": NUMBER},
        ["command"],
    ),
)
#: opencode 1.18, on the Messages and the chat route
OPENCODE = (
    tool(
        "bash",
        {
            "command": said("The command to execute", **TEXT),
            "timeout": said("Optional timeout in milliseconds", exclusiveMinimum=0, **WHOLE, **_SAFE),
            "workdir": said("The working directory to run the command in.", **TEXT),
        },
        ["command"],
    ),
    tool("edit", {"filePath": TEXT, "oldString": TEXT, "newString": TEXT, "replaceAll": FLAG}, ["filePath"]),
    tool("glob", {"pattern": TEXT, "path": TEXT}, ["pattern"]),
    tool("grep", {"pattern": TEXT, "path": TEXT, "include": TEXT}, ["pattern"]),
    tool(
        "read",
        {
            "filePath": said("The absolute path to the file or directory to read", **TEXT),
            "offset": said("The line number to start reading from (1-indexed)", minimum=0, **WHOLE),
            "limit": said("The maximum number of lines to read (defaults to 2000)", minimum=0, **WHOLE),
        },
        ["filePath"],
    ),
    tool("todowrite", {"todos": {"type": "array"}}, ["todos"]),
    tool("write", {"content": TEXT, "filePath": TEXT}, ["content", "filePath"]),
)
_NULLABLE = {"type": ["integer", "null"]}
#: Qwen Code 0.24
QWEN = (
    tool("edit", {"file_path": TEXT, "old_string": TEXT, "new_string": TEXT}, ["file_path"]),
    tool("glob", {"pattern": TEXT, "path": TEXT}, ["pattern"]),
    tool("grep_search", {"pattern": TEXT, "glob": TEXT, "path": TEXT, "limit": WHOLE}, ["pattern"]),
    tool(
        "read_file",
        {
            "file_path": TEXT,
            "offset": said("Optional: For text files, the 0-based line number to start reading from.", **_NULLABLE),
            "limit": said("Optional: For text files, maximum number of lines to read.", **_NULLABLE),
            "pages": {"type": ["string", "null"]},
        },
        ["file_path"],
    ),
    tool(
        "run_shell_command",
        {
            "command": said("Exact bash command to execute as `bash -c <command>`", **TEXT),
            "is_background": FLAG,
            "timeout": said("Optional timeout in milliseconds (max 600000)", minimum=1, maximum=600000, **WHOLE),
            "description": TEXT,
            "directory": said("(OPTIONAL) The absolute path of the directory to run the command in.", **TEXT),
        },
        ["command"],
    ),
    tool("write_file", {"file_path": TEXT, "content": TEXT, "record_as_artifact": FLAG}, ["file_path", "content"]),
)
#: Continue 1.5
CONTINUE = (
    tool("Read", {"filepath": said("The path to the file to read", **TEXT)}, ["filepath"]),
    tool("Write", {"filepath": TEXT, "content": TEXT}, ["filepath", "content"]),
    tool("List", {"dirpath": said("The path to the directory to list", **TEXT)}, ["dirpath"]),
    tool(
        "Bash",
        {"command": TEXT, "timeout": said("Optional timeout in seconds (max 600).", **NUMBER)},
        ["command"],
    ),
    tool("MultiEdit", {"file_path": TEXT, "edits": {"type": "array"}}, ["file_path", "edits"]),
)
#: pi 1.6
PI = (
    tool(
        "read",
        {
            "path": said("Path to the file to read (relative or absolute)", **TEXT),
            "offset": said("Line number to start reading from (1-indexed)", **NUMBER),
            "limit": said("Maximum number of lines to read", **NUMBER),
        },
        ["path"],
    ),
    tool(
        "bash",
        {"command": TEXT, "timeout": said("Timeout in seconds (optional, no default timeout)", **NUMBER)},
        ["command"],
    ),
    tool("edit", {"path": TEXT, "edits": {"type": "array"}}, ["path", "edits"]),
    tool("write", {"path": TEXT, "content": TEXT}, ["path", "content"]),
)
_LINE = {"anyOf": [{"type": "integer", "exclusiveMinimum": 0}, {"type": "null"}]}
#: Cline 3.0
CLINE = (
    tool(
        "read_files",
        {
            "files": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "path": said("The absolute path of a text file to read content from", **TEXT),
                        "start_line": said("Optional one-based starting line number", **_LINE),
                        "end_line": said("Optional one-based ending line number", **_LINE),
                    },
                    "required": ["path"],
                },
            }
        },
        ["files"],
    ),
    tool("search_codebase", {"queries": {"type": "array", "items": TEXT}}, ["queries"]),
    tool("run_commands", {"commands": {"type": "array", "items": TEXT}}, ["commands"]),
    tool("editor", {"path": TEXT, "old_text": TEXT, "new_text": TEXT, "insert_line": WHOLE}, ["path", "new_text"]),
)
#: Claude Code 2.1
CLAUDE = (
    tool(
        "Bash",
        {
            "command": TEXT,
            "timeout": said("Optional timeout in milliseconds (max 600000)", **NUMBER),
            "description": TEXT,
            "run_in_background": FLAG,
            "dangerouslyDisableSandbox": FLAG,
        },
        ["command"],
    ),
    tool("Edit", {"file_path": TEXT, "old_string": TEXT, "new_string": TEXT}, ["file_path"]),
    tool("Glob", {"pattern": TEXT, "path": TEXT}, ["pattern"]),
    tool("Grep", {"pattern": TEXT, "path": TEXT, "glob": TEXT, "output_mode": TEXT}, ["pattern"]),
    tool(
        "Read",
        {
            "file_path": TEXT,
            "offset": {**WHOLE, "minimum": 0},
            "limit": {**WHOLE, "exclusiveMinimum": 0},
            "pages": TEXT,
        },
        ["file_path"],
    ),
    tool("Write", {"file_path": TEXT, "content": TEXT}, ["file_path", "content"]),
)

CLIENTS: dict[str, tuple[Tool, ...]] = {
    "codex": CODEX,
    "codex shell": CODEX_SHELL,
    "opencode": OPENCODE,
    "qwen": QWEN,
    "continue": CONTINUE,
    "pi": PI,
    "cline": CLINE,
    "claude": CLAUDE,
}
