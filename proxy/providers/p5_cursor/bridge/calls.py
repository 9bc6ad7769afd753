"""A request of the service to run something, as a call of the client's tool. Pure.

Claude Code also asks questions aside from its conversation. They have its session, history and tools, but want only
words, while the conversation itself may be answered or have a tool at work. So each gets its own run, without tools.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proxy.core.content import messages_of, texts_of

#: arm of an exec -> the client's tool that runs it
TOOL_OF_KIND = {
    "read_args": "Read",
    "redacted_read_args": "Read",
    "write_args": "Write",
    "shell_stream_args": "Bash",
    "shell_args": "Bash",
}

#: Members of an exec message besides its arm.
_BESIDE = frozenset({"id", "exec_id", "span_context"})

#: Milliseconds for a command that names no limit.
USUAL_TIMEOUT_MS = 30_000
#: The reference's description of a command without one.
USUAL_DESCRIPTION = "Run Cursor-requested shell command"

#: member of Claude Code's tools -> its names in the tools of other clients
_OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    "file_path": ("path", "filePath", "filepath", "file", "filename", "target_file"),
    "content": ("contents", "text", "file_text"),
    "command": ("cmd", "script"),
    "offset": ("start_line", "startLine"),
    "timeout": ("timeout_ms", "timeoutMs"),
}
_RANGE = ("offset", "limit")
#: A call without these is useless, whatever members the tool's schema names.
_NEEDED = frozenset({"file_path", "content", "command"})


@dataclass(frozen=True)
class ExecRequest:
    """One `exec_server_message`.

    id       0 when the wire has none
    kind     the name of its arm such as "read_args"; "" for an unknown one
    args     the value of the arm; {} when it is not decoded
    """

    id: int
    exec_id: str
    kind: str
    args: Mapping[str, Any]

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> ExecRequest:
        """
        >>> ExecRequest.of({"exec_id": "e1", "read_args": {"path": "/a"}})
        ExecRequest(id=0, exec_id='e1', kind='read_args', args={'path': '/a'})
        """
        kind = next((name for name in message if name not in _BESIDE), "")
        args = message.get(kind)
        return cls(
            id=message.get("id") or 0,
            exec_id=message.get("exec_id") or "",
            kind=kind,
            args=args if isinstance(args, Mapping) else {},
        )

    @property
    def path(self) -> str:
        """The file of a read or write; "" for other kinds."""
        return _text(self.args, "path")

    @property
    def directory(self) -> str:
        """The directory of a command; "" for the workspace."""
        return _text(self.args, "working_directory")

    @property
    def written(self) -> str | None:
        """The text to write into the file; None when it is not UTF-8, since no client's tool takes bytes."""
        text, data = _text(self.args, "file_text"), self.args.get("file_bytes")
        if text or not isinstance(data, bytes):
            return text
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            return None


def _text(args: Mapping[str, Any], name: str) -> str:
    value = args.get(name)
    return value if isinstance(value, str) else ""


def tool_of(request: ExecRequest, tools: Mapping[str, Any]) -> str | None:
    """The client's tool that runs an exec, None when it has none. Names are case-sensitive.

    tools  name -> declaration
    """
    name = TOOL_OF_KIND.get(request.kind)
    if name == "Write" and request.written is None:
        return None
    return name if name in tools else None


def tool_input(request: ExecRequest, workspace: str, tool: Mapping[str, Any]) -> dict[str, Any]:
    """The input of the call.

    workspace  the directory named to the service
    tool       the declaration of the client's tool. Members that its schema lacks are left out: strict tools refuse
               unknown members, and require others
    """
    return _as_declared(_INPUTS[TOOL_OF_KIND[request.kind]](request, workspace, tool), tool)


def _read_input(request: ExecRequest, _workspace: str, tool: Mapping[str, Any]) -> dict[str, Any]:
    """The path; with the range only when the service asks for one, even from 0 on."""
    asked = zip(_RANGE, range_of(request, tool), strict=True)
    return {"file_path": request.path} | {name: value for name, value in asked if value is not None}


def _write_input(request: ExecRequest, _workspace: str, _tool: Mapping[str, Any]) -> dict[str, Any]:
    return {"file_path": request.path, "content": request.written}


def _bash_input(request: ExecRequest, workspace: str, _tool: Mapping[str, Any]) -> dict[str, Any]:
    timeout = request.args.get("timeout") or 0
    return {
        "command": _placed(_text(request.args, "command"), request.directory, workspace),
        "timeout": timeout if timeout > 0 else USUAL_TIMEOUT_MS,
        "description": _text(request.args, "description") or USUAL_DESCRIPTION,
        "run_in_background": False,
        "dangerouslyDisableSandbox": False,
    }


def _placed(command: str, directory: str, workspace: str) -> str:
    r"""The command with a change to its directory, when that is not the workspace.

    >>> _placed("ls", "/w/it's", "/w")
    "cd '/w/it'\\''s' && ls"
    """
    if directory in ("", workspace):
        return command
    quoted = directory.replace("'", "'\\''")
    return f"cd '{quoted}' && {command}"


def range_of(request: ExecRequest, tool: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """The offset and limit for the client's tool. Both are None when it does not take both: it would return another
    range, which the service could not tell from a whole file."""
    declared = _declared(tool)
    offset, limit = (request.args.get(name) for name in _RANGE)
    if declared is not None and not (_takes(declared, "offset", offset) and _takes(declared, "limit", limit)):
        return None, None
    return offset, limit


def _takes(declared: Mapping[str, Any], name: str, value: int | None) -> bool:
    if value is None:
        return True
    schema = declared.get(_name_in(declared, name) or "")
    if not isinstance(schema, Mapping):
        return False
    return value >= _bound(schema, "minimum") and value > _bound(schema, "exclusiveMinimum")


def _bound(schema: Mapping[str, Any], name: str) -> float:
    bound = schema.get(name)
    return bound if isinstance(bound, int | float) and not isinstance(bound, bool) else -math.inf


_INPUTS = {"Read": _read_input, "Write": _write_input, "Bash": _bash_input}


def _as_declared(values: Mapping[str, Any], tool: Mapping[str, Any]) -> dict[str, Any]:
    """The members by their names in the tool's schema; all of them when it names none."""
    declared = _declared(tool)
    if declared is None:
        return dict(values)
    named = ((_name_in(declared, name), value) for name, value in values.items())
    said = {name: value for name, value in named if name is not None}
    return said | {name: None for name in _nullable(tool, declared) if name not in said}


def _nullable(tool: Mapping[str, Any], declared: Mapping[str, Any]) -> list[str]:
    """Members that are required and may be null: strict schemas of OpenAI write optional ones so."""
    required = tool["input_schema"].get("required")
    names = required if isinstance(required, list) else []
    return [name for name in names if isinstance(name, str) and _may_be_null(declared.get(name))]


def _may_be_null(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return False
    forms = schema.get("anyOf")
    kinds = [form.get("type") for form in forms if isinstance(form, Mapping)] if isinstance(forms, list) else []
    kind = schema.get("type")
    return "null" in (*kinds, *(kind if isinstance(kind, list) else [kind]))


def _declared(tool: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The members in a tool's schema; None when it leaves them open."""
    schema = tool.get("input_schema")
    declared = schema.get("properties") if isinstance(schema, Mapping) else None
    return declared if isinstance(declared, Mapping) and declared else None


def _name_in(declared: Mapping[str, Any], name: str) -> str | None:
    if name in declared:
        return name
    other = next((other for other in _OTHER_NAMES.get(name, ()) if other in declared), None)
    return name if other is None and name in _NEEDED else other


#: How questions aside begin: a side question (`/btw`), the proposal of a next prompt, what an agent is doing, a recap.
#: The forms of versions 2.1.197 and 2.1.330.
_BEGINNINGS = (
    "<system-reminder>This is a side question from the user.",
    "[SUGGESTION MODE:",
    "Describe your most recent action in 3-5 words",
    "The user stepped away and is coming back. Recap",
)


def is_an_aside(request: Mapping[str, Any]) -> bool:
    """Whether the user's last message is a question aside.

    >>> is_an_aside({"messages": [{"role": "user", "content": "[SUGGESTION MODE: Suggest what the user might …]"}]})
    True
    """
    for message in reversed(messages_of(request)):
        if message.get("role") != "system":
            texts = texts_of(message.get("content")) if message.get("role") == "user" else ()
            return any(text.lstrip().startswith(_BEGINNINGS) for text in texts)
    return False
