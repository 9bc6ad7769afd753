"""Recognises what a client's tools do, by their names and schemas. Pure.

Agents name their tools differently: `Read`, `read_file`, `exec_command`. A `Form` is a row for names that mean the
same; the members of the schema are found by role. A tool of a known name whose schema does not fit is not guessed at:
it is listed as unknown, and the model may call it as text. So it may call tools of MCP servers, whatever their names.

The rows were taken from requests of Claude Code 2.1, Codex CLI 0.169, opencode 1.18, Qwen Code 0.24, Continue 1.5,
pi 1.6 and Cline 3.0 in November 2026, and from the tools that Anthropic's API defines.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

Kind = Literal["read", "write", "run", "list", "search", "delete", "poll"]
Schema = Mapping[str, Any]

#: role of a value -> the members that hold it, Claude Code's first
ROLES: Mapping[str, tuple[str, ...]] = {
    "path": (
        "file_path",
        "path",
        "filePath",
        "filepath",
        "file",
        "filename",
        "target_file",
        "absolute_path",
        "dirpath",
        "dir_path",
    ),
    "content": ("content", "contents", "text", "file_text", "file_content", "new_text"),
    "command": ("command", "cmd", "script", "command_line"),
    "pattern": ("pattern", "query", "regex"),
    "offset": ("offset", "start_line", "startLine"),
    "limit": ("limit",),
    "last": ("end_line", "endLine"),
    "directory": ("workdir", "working_directory", "directory", "cwd", "workingDirectory"),
    "timeout": ("timeout", "timeout_ms", "timeoutMs", "timeout_seconds", "timeout_s"),
    "wait": ("yield_time_ms",),
    "room": ("max_output_tokens",),
    "session": ("session_id",),
    "input": ("chars",),
    "description": ("description",),
    "background": ("run_in_background", "is_background"),
    "sandboxed": ("dangerouslyDisableSandbox",),
}


@dataclass(frozen=True, slots=True)
class Form:
    """A row: tools that do the same and are asked in the same way.

    names   without case and separators, several in a text
    needs   roles that a tool of this kind has
    takes   roles that it may have
    list_of  the member that holds a list of what is asked for, of which one is asked
    fixed   further members of the input
    output  how the tool reports the end of a command, a key of `command_output.FORMS`
    lossy   whether it loses blanks, line ends or the end of the last line of a file
    alone   whether its client has no tool that writes a whole file, so that a command may
    most    characters that a command may have, 0 for no limit
    member  the member that must be there, where the same names also mean another form
    """

    kind: Kind
    names: str
    needs: tuple[str, ...]
    takes: tuple[str, ...] = ()
    list_of: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    output: str = ""
    lossy: bool = False
    alone: bool = False
    most: int = 0
    member: str = ""


_RANGE = ("offset", "limit", "last")
_COMMAND = ("directory", "timeout", "wait", "room", "description", "background", "sandboxed")
#: Roles that no tool of Claude Code takes.
_NOT_CLAUDES = frozenset({"last", "directory", "wait", "room"})
_READ_NAMES = "read readfile view viewfile cat openfile readtextfile"
_WRITE_NAMES = "write writefile createfile savefile editfile writetofile"
#: Names whose schema may be open.
_CLAUDES = frozenset({"Read", "Write", "Bash"})
_EDITOR_NAMES = "strreplacebasededittool strreplaceeditor"
_RUN_NAMES = (
    "bash shell exec execcommand runshellcommand executecommand runterminalcommand runterminalcmd terminal localshell "
    "runcommand executebash runinterminal shellcommand"
)

#: The first row that fits counts.
FORMS: tuple[Form, ...] = (
    # Cline: lists of files and commands; its editor makes new files, and changes pieces of others
    Form("read", "readfiles", ("path",), ("offset", "last"), list_of="files", lossy=True, alone=True),
    Form("run", "runcommands", ("command",), list_of="commands", output="cline", most=11_000),
    # the tools of Anthropic's API
    Form("read", _EDITOR_NAMES, ("path",), fixed={"command": "view"}, member="view_range"),
    Form("write", _EDITOR_NAMES, ("path", "content"), fixed={"command": "create"}, member="view_range"),
    # Codex CLI
    Form("run", "execcommand", ("command",), _COMMAND, output="session"),
    Form("poll", "writestdin", ("session",), ("input", "wait", "room"), output="session"),
    Form("run", "shell shellcommand exec localshell", ("command",), _COMMAND, output="status", member="workdir"),
    # opencode
    Form("read", "read", ("path",), _RANGE, lossy=True, member="filePath"),
    # Qwen Code, Gemini CLI
    Form("read", "readfile", ("path",), _RANGE, lossy=True, member="pages"),
    Form("read", "readfile", ("path",), _RANGE, lossy=True, member="absolute_path"),
    Form("write", "writefile", ("path", "content"), lossy=True, member="record_as_artifact"),
    Form("run", "runshellcommand", ("command",), _COMMAND, output="labelled"),
    # Claude Code, Continue, pi, and programs
    Form("read", _READ_NAMES, ("path",), _RANGE),
    Form("write", _WRITE_NAMES, ("path", "content")),
    Form("run", _RUN_NAMES, ("command",), _COMMAND),
    Form("list", "list ls listdir listdirectory listfiles", ("path",)),
    Form("search", "grep grepsearch searchfiles searchfilecontent ripgrep", ("pattern",), ("path",)),
    Form("delete", "delete deletefile rm removefile", ("path",)),
)
_BY_NAME: Mapping[str, tuple[Form, ...]] = {
    name: tuple(form for form in FORMS if name in form.names.split())
    for name in {name for form in FORMS for name in form.names.split()}
}

#: Tools of MCP servers are called as text, whatever they are called.
_MCP = re.compile(r"mcp(?:_|\b)", re.IGNORECASE)
#: A namespace and a name. Only these are of the client itself: the tools of others may work elsewhere.
_NAMESPACED = re.compile(r"(.*)(?:__|[./:])(.*)", re.DOTALL)
_OWN_NAMESPACES = frozenset(
    (
        *("functions", "function", "container", "developer", "local", "workspace", "shell", "terminal", "codex", "cli"),
        *(
            "fs",
            "filesystem",
            "files",
            "file",
            "editor",
            "system",
            "os",
            "default",
            "builtin",
            "tools",
            "tool",
            "agent",
        ),
    )
)
#: Words in the members of a tool that writes a part of a file, or behind it.
_PART = frozenset(
    (
        *("old", "edit", "edits", "insert", "append", "mode", "patch", "diff", "hunk", "hunks", "replace"),
        *("replacement", "line", "lines", "range", "position", "instruction", "instructions", "offset", "start"),
        *("begin", "end", "chunk", "part", "at"),
    )
)


@dataclass(frozen=True, slots=True)
class ClientTool:
    """A tool whose form is known.

    members  role -> its member; a role that the tool does not take is missing
    argv     whether the command is a list of words
    declared  the schemas of the members, None when they are open
    """

    name: str
    form: Form
    members: Mapping[str, str]
    argv: bool = False
    declared: Mapping[str, Any] | None = None
    required: tuple[str, ...] = ()
    description: str = ""

    @property
    def output(self) -> str:
        """How the tool reports the end of a command, a key of `command_output.FORMS`. Claude Code marks errors itself:
        what its `Bash` returns is what was printed."""
        plain = self.name == "Bash" and (self.declared is None or "background" in self.members)
        return "plain" if plain else self.form.output

    def input(self, **values: Any) -> dict[str, Any]:
        """The input with these values, by role. None, and a role that the tool does not take, are left out."""
        said = {
            self.members[role]: value for role, value in values.items() if role in self.members and value is not None
        }
        form = self.form
        if form.list_of:
            one = said if len(said) > 1 or form.kind == "read" else next(iter(said.values()), "")
            return {form.list_of: [one], **form.fixed}
        nulls = [name for name in self.required if name not in said and may_be_null((self.declared or {}).get(name))]
        return {**form.fixed, **said, **dict.fromkeys(nulls)}

    def takes(self, role: str, value: float | None) -> bool:
        """Whether a number may be sent in this role; None always may."""
        if value is None or self.declared is None:
            return True
        schema = self.declared.get(self.members.get(role, ""))
        if not isinstance(schema, Mapping):
            return False
        return value >= _bound(schema, "minimum") and value > _bound(schema, "exclusiveMinimum")

    def at_most(self, role: str, value: int) -> int:
        """The value, or the largest that the tool takes in this role."""
        schema = (self.declared or {}).get(self.members.get(role, ""))
        most = schema.get("maximum") if isinstance(schema, Mapping) else None
        return min(value, most) if isinstance(most, int) and not isinstance(most, bool) and most > 0 else value

    def words_of(self, role: str) -> str:
        """The description of the member of a role, with its name."""
        name = self.members.get(role, "")
        schema = (self.declared or {}).get(name)
        words = schema.get("description") if isinstance(schema, Mapping) else ""
        return f"{name} {words if isinstance(words, str) else ''}"


@dataclass(frozen=True, slots=True)
class ClientTools:
    """The tools of a request by kind, the first of each. `unknown`: names that are known, in a form that is not."""

    by_kind: Mapping[Kind, ClientTool] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.by_kind)

    def get(self, kind: Kind) -> ClientTool | None:
        return self.by_kind.get(kind)


def client_tools(declarations: Iterable[Mapping[str, Any]]) -> ClientTools:
    """The tools in the declarations of a request (`{"name", "input_schema", "description"}`). A name without a
    namespace comes first."""
    found: dict[Kind, ClientTool] = {}
    unknown: list[str] = []
    for tool in sorted(declarations, key=lambda tool: _plain(str(tool["name"])) != str(tool["name"])):
        forms = list(recognised(tool))
        for one in forms:
            found.setdefault(one.form.kind, one)
        if not forms and _rows(str(tool["name"])):
            unknown.append(str(tool["name"]))
    return ClientTools(found, tuple(unknown))


def recognised(tool: Mapping[str, Any]) -> Iterator[ClientTool]:
    """What a tool does: mostly one kind, or nothing that is known.

    >>> [(one.form.kind, one.members["path"]) for one in recognised({"name": "Read", "input_schema": {}})]
    [('read', 'file_path')]
    """
    kinds: set[str] = set()
    for form in _rows(str(tool["name"])):
        made = None if form.kind in kinds else _fitted(tool, form)
        if made is not None:
            kinds.add(form.kind)
            yield made


def _is_part(member: str) -> bool:
    """Whether a member says which part of a file is written.

    >>> _is_part("oldText"), _is_part("insert_line"), _is_part("create_folders")
    (True, True, False)
    """
    return not _PART.isdisjoint(word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", member))


def _rows(name: str) -> tuple[Form, ...]:
    if _MCP.match(name):
        return ()
    return _BY_NAME.get(re.sub(r"[_\-\s]", "", _plain(name)).lower(), ())


def _plain(name: str) -> str:
    """A name without its namespace, if that is the client's own."""
    found = _NAMESPACED.fullmatch(name)
    return found[2] if found is not None and found[1].lower() in _OWN_NAMESPACES else name


def _fitted(tool: Mapping[str, Any], form: Form) -> ClientTool | None:
    schema = tool.get("input_schema")
    declared, required = _members(schema)
    words = tool.get("description")
    make = partial(ClientTool, str(tool["name"]), form, description=words if isinstance(words, str) else "")
    if declared is None:  # an open schema takes what Claude Code's tools take
        if form.member or form.list_of or tool["name"] not in _CLAUDES:
            return None
        return make({role: ROLES[role][0] for role in (*form.needs, *form.takes) if role not in _NOT_CLAUDES})
    if form.member and form.member not in declared:
        return None
    if form.kind == "write" and not form.member and any(map(_is_part, declared)):
        return None
    if form.list_of:
        items = declared.get(form.list_of)
        if "array" not in _types(items):
            return None
        inner, required = _members(items.get("items") if isinstance(items, Mapping) else None)
        declared = {"command": {"type": "string"}} if inner is None and form.kind == "run" else inner or {}
    members = dict(_roles(declared, (*form.needs, *form.takes)))
    filled = {*members.values(), *form.fixed}
    missing = any(role not in members for role in form.needs)
    if missing or any(name not in filled and not may_be_null(declared.get(name)) for name in required):
        return None
    argv = "command" in members and "array" in _types(declared[members["command"]])
    return make(members, argv=argv, declared=declared, required=required)


def _members(schema: Any) -> tuple[Mapping[str, Any] | None, tuple[str, ...]]:
    """The declared members, None when they are open; and those that are required."""
    if not isinstance(schema, Mapping):
        return None, ()
    declared, required = schema.get("properties"), schema.get("required")
    names = tuple(name for name in required if isinstance(name, str)) if isinstance(required, list) else ()
    return (declared if isinstance(declared, Mapping) and declared else None), names


#: role -> the types that its member may have; another type is another form
_TYPES: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("path", "content", "pattern", "directory", "description", "input"), frozenset({"string"})),
    **dict.fromkeys(("offset", "limit", "last", "timeout", "wait", "room"), frozenset({"integer", "number"})),
    "session": frozenset({"integer", "number", "string"}),
    "command": frozenset({"string", "array"}),
    **dict.fromkeys(("background", "sandboxed"), frozenset({"boolean"})),
}


def _roles(declared: Mapping[str, Any], roles: Iterable[str]) -> Iterator[tuple[str, str]]:
    taken: set[str] = set()
    for role in roles:
        for name in ROLES[role]:
            kinds = _types(declared[name]) if name in declared and name not in taken else None
            if kinds is not None and (not kinds or kinds & _TYPES[role]):
                taken.add(name)
                yield role, name
                break


def _types(schema: Any) -> set[str]:
    """The types that a schema allows; empty when it does not say."""
    if not isinstance(schema, Mapping):
        return set()
    forms = schema.get("anyOf")
    parts = [schema, *(forms if isinstance(forms, list) else ())]
    if any(isinstance(part, Mapping) and part.keys() & _NARROWING for part in parts):
        return {"other"}
    return _named_types(schema)


#: Members of a schema that allow certain values only, or that lead elsewhere.
_NARROWING = frozenset({"enum", "const", "oneOf", "allOf", "not", "$ref", "pattern", "format"})


def _named_types(schema: Mapping[str, Any]) -> set[str]:
    forms = schema.get("anyOf")
    kinds = [form.get("type") for form in forms if isinstance(form, Mapping)] if isinstance(forms, list) else []
    kind = schema.get("type")
    kinds += kind if isinstance(kind, list) else [kind]
    return {kind for kind in kinds if isinstance(kind, str)}


def may_be_null(schema: Any) -> bool:
    """Whether a member may be null: strict schemas of OpenAI write optional ones so, and require them."""
    return isinstance(schema, Mapping) and "null" in _named_types(schema)


def _bound(schema: Schema, name: str) -> float:
    bound = schema.get(name)
    return bound if isinstance(bound, int | float) and not isinstance(bound, bool) else -math.inf
