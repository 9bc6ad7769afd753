"""Immediate answers to the requests of a run, and messages that need no request. Pure.

The service waits for each answer and sends only heartbeats meanwhile, so every request gets one: exactly one result and
one `stream_close` for an exec, one response for a query. Nothing is ever run here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from proxy.providers.p5_cursor.bridge.calls import ExecRequest
from proxy.providers.p5_cursor.bridge.tool_forms import ClientTools, Kind

Message = dict[str, Any]

HEARTBEAT: Message = {"client_heartbeat": {}}
CANCEL: Message = {"conversation_action": {"cancel_action": {}}}


def numbered(number: int, members: Mapping[str, Any]) -> Message:
    """The members with an id, which is not written when it is 0.

    >>> numbered(0, {}), numbered(3, {})
    ({}, {'id': 3})
    """
    return {"id": number, **members} if number else dict(members)


def exec_heartbeat(number: int) -> Message:
    """Reports that an exec is still worked on; 0 before the first answer of a run."""
    return _control("heartbeat", numbered(number, {}))


def _control(name: str, value: Mapping[str, Any]) -> Message:
    return {"exec_client_control_message": {name: dict(value)}}


def answered(request: ExecRequest, results: Iterable[Mapping[str, Any]]) -> list[Message]:
    """The messages of an answer in order: its results, each an arm and its value, and the close."""
    name = {"exec_id": request.exec_id} if request.exec_id else {}
    messages = [{"exec_client_message": numbered(request.id, {**result, **name})} for result in results]
    return [*messages, _control("stream_close", numbered(request.id, {}))]


def throw(request: ExecRequest, words: str) -> list[Message]:
    """The answer to an exec that no result fits; it refers to the exec by id, not by kind."""
    return [
        _control("throw", numbered(request.id, {"error": words})),
        _control("stream_close", numbered(request.id, {})),
    ]


def unbuilt(request: ExecRequest) -> list[Message]:
    """The answer when building one failed: an unanswered exec would block its run for good."""
    return throw(request, "The answer to this request could not be built. Go on without it.")


def guarded(request: ExecRequest, results: Callable[[], Iterable[Mapping[str, Any]]]) -> list[Message]:
    """The answer, or a throw when building it fails."""
    try:
        return answered(request, results())
    except Exception:
        return unbuilt(request)


def context_answer(request: ExecRequest, context: Mapping[str, Any]) -> list[Message]:
    """The answer to `request_context_args`, which may come more than once in a run."""
    return answered(request, [{"request_context_result": {"success": {"request_context": dict(context)}}}])


Results = Callable[[ExecRequest, str, str], list[Message]]


class Denial(NamedTuple):
    """The denial of an exec: `results` makes the results from it, the words for the model, and the workspace. The words
    say what is not available (`asked`), and name a shell command that does the same, "" for none."""

    asked: str
    command: str
    results: Results


def _at_path(result: str, arm: str, member: str) -> Results:
    return lambda request, words, _workspace: [{result: {arm: {"path": request.path, member: words}}}]


def _only(result: str, members: Callable[[Mapping[str, Any], str], Message]) -> Results:
    return lambda request, words, _workspace: [{result: members(request.args, words)}]


def _at_command(result: str) -> Results:
    return lambda request, words, _workspace: [{result: {"rejected": {**command_of(request), "reason": words}}}]


def command_of(request: ExecRequest) -> Message:
    """The members that each result of a command repeats."""
    return {"command": request.args.get("command", ""), "working_directory": request.directory}


def streamed(request: ExecRequest, outcome: Mapping[str, Any], workspace: str, leaving: Mapping[str, Any]) -> list[Any]:
    """The results of a streamed command: its start, its output (`outcome`, {} for none), its exit."""
    parts: tuple[Mapping[str, Any], ...] = (
        {"start": {}},
        outcome,
        {"exit": {**leaving, "cwd": request.directory or workspace}},
    )
    return [{"shell_stream": dict(part)} for part in parts if part]


def _streamed_denial(request: ExecRequest, words: str, workspace: str) -> list[Message]:
    return streamed(request, {"stderr": {"data": words}}, workspace, {"code": 1})


_READ = ("reading files", "cat")
_RUN = ("running commands", "")
_RUN_BEHIND = ("running commands in the background", "a command that ends by itself")

#: arm of an exec -> its denial. Other kinds are thrown.
_DENIALS: Mapping[str, Denial] = {
    "read_args": Denial(*_READ, _at_path("read_result", "error", "error")),
    "redacted_read_args": Denial(*_READ, _at_path("redacted_read_result", "error", "error")),
    "write_args": Denial("writing files", "cat with a here-document", _at_path("write_result", "error", "error")),
    "shell_stream_args": Denial(*_RUN, _streamed_denial),
    "shell_args": Denial(*_RUN, _at_command("shell_result")),
    "background_shell_spawn_args": Denial(*_RUN_BEHIND, _at_command("background_shell_spawn_result")),
    "write_shell_stdin_args": Denial(
        "writing to a running command",
        "a command that reads its input from a file",
        _only("write_shell_stdin_result", lambda _, words: {"error": {"error": words}}),
    ),
    "delete_args": Denial("deleting files", "rm", _at_path("delete_result", "rejected", "reason")),
    "grep_args": Denial(
        "searching files",
        "grep -rn, or find for names",
        _only("grep_result", lambda _, words: {"error": {"error": words}}),
    ),
    "ls_args": Denial("listing folders", "ls", _at_path("ls_result", "rejected", "reason")),
    "diagnostics_args": Denial(
        "reading diagnostics", "the project's own checker", _at_path("diagnostics_result", "rejected", "reason")
    ),
    "fetch_args": Denial(
        "fetching web pages",
        "curl",
        _only("fetch_result", lambda args, words: {"error": {"url": args.get("url", ""), "error": words}}),
    ),
    "mcp_args": Denial(
        "calling MCP tools",
        "",
        _only(
            "mcp_result", lambda args, _: {"tool_not_found": {"name": args.get("name") or args.get("tool_name", "")}}
        ),
    ),
    "list_mcp_resources_exec_args": Denial(
        "listing MCP resources",
        "",
        _only("list_mcp_resources_exec_result", lambda _, words: {"error": {"error": words}}),
    ),
    "read_mcp_resource_exec_args": Denial(
        "reading MCP resources",
        "",
        _only("read_mcp_resource_exec_result", lambda args, _: {"not_found": {"uri": args.get("uri", "")}}),
    ),
}
#: kind of a client's tool -> the model's name for it
_KNOWN_AS: Mapping[Kind, str] = {"run": "the shell tool", "read": "the read tool", "write": "the write tool"}
#: arm of an exec -> the kind of the client's tool that serves it
_SERVED_BY: Mapping[str, Kind] = {
    "read_args": "read",
    "redacted_read_args": "read",
    "write_args": "write",
    "shell_stream_args": "run",
    "shell_args": "run",
    "ls_args": "list",
    "grep_args": "search",
    "delete_args": "delete",
}


def denial(
    request: ExecRequest, tools: ClientTools, workspace: str, *, full: bool = False, posix: bool = True
) -> list[Message]:
    """The answer to an exec that is not run.

    tools      the client's tools that could be called instead
    workspace  the directory named to the service
    full       whether only the number of open calls forbids it
    posix      whether the client's shell is a POSIX shell
    """
    row = _DENIALS.get(request.kind)
    if row is None:
        return throw(request, f"Not available to this client: this kind of request. {_instead('', tools)}")
    words = _FULL if full else _words(request, row, tools, posix)
    return guarded(request, lambda: row.results(request, words, workspace))


_FULL = "This client has too many calls open at once. Wait for their results, then ask again."


def _words(request: ExecRequest, row: Denial, tools: ClientTools, posix: bool) -> str:
    """The text for the model: what is not available, and what is."""
    kind = _SERVED_BY.get(request.kind)
    own = tools.get(kind) if kind is not None else None
    if own is not None and request.kind == "write_args":
        return f"This client can only write UTF-8 text. {_instead('base64 -d', tools)}"
    said = f"Not available to this client: {row.asked}."
    if tools.get("run") is not None and not posix:
        return f"{said} Its shell is not a POSIX shell. Use the shell tool instead, with commands of that shell."
    if own is not None:
        return f"{said} Its own tool for it, {own.name}, can be called by writing the call as text."
    return f"{said} {_instead(row.command, tools)}"


def _instead(command: str, tools: ClientTools) -> str:
    if tools.get("run") is not None:
        return f"Use the shell tool ({command}) instead." if command else "Use the shell tool instead."
    known = [words for kind, words in _KNOWN_AS.items() if tools.get(kind) is not None]
    if known:
        return f"Use {' or '.join(known)} instead; no other tool is available."
    if tools.unknown:
        named = ", ".join(tools.unknown)
        return (
            f"Its tools ({named}) take other arguments: write a call of one as text, with the arguments that it takes."
        )
    return "No tool of this kind is available; go on with what the conversation holds."


_ASK_IN_TEXT = "This client cannot show questions of its own. Ask in plain text and end the turn."
_KEEP_MODE = "This client cannot change the mode. Go on in this one."
_NO_IMAGES = "This client cannot show generated images. Answer in text."
_NO_SIGN_IN = "This client has no MCP servers to sign in to."

#: arm of a query -> its response. Other queries are answered without one, since approving an unknown query could permit
#: anything.
_RESPONSES: Mapping[str, tuple[str, Message]] = {
    "web_search_request_query": ("web_search_request_response", {"approved": {}}),
    "web_fetch_request_query": ("web_fetch_request_response", {"approved": {}}),
    # opaque in the tables, hence bytes
    "exa_search_request_query": ("exa_search_request_response", {"approved": b""}),
    "exa_fetch_request_query": ("exa_fetch_request_response", {"approved": b""}),
    "generate_image_request_query": ("generate_image_request_response", {"rejected": {"reason": _NO_IMAGES}}),
    "ask_question_interaction_query": (
        "ask_question_interaction_response",
        {"result": {"rejected": {"reason": _ASK_IN_TEXT}}},
    ),
    "switch_mode_request_query": ("switch_mode_request_response", {"rejected": {"reason": _KEEP_MODE}}),
    "create_plan_request_query": ("create_plan_request_response", {"result": {"success": {}}}),
    "mcp_auth_request_query": ("mcp_auth_request_response", {"rejected": {"reason": _NO_SIGN_IN}}),
}


def query_answer(query: Mapping[str, Any]) -> Message:
    """The answer to an `interaction_query`.

    >>> query_answer({"id": 12})
    {'interaction_response': {'id': 12}}
    """
    response = next((_RESPONSES[arm] for arm in query if arm in _RESPONSES), None)
    return {"interaction_response": numbered(query.get("id") or 0, dict([response] if response else []))}


def plan_of(query: Mapping[str, Any]) -> str:
    """The plan in a query, which the client is shown as text; "" when it has none."""
    asked = query.get("create_plan_request_query") or {}
    plan = (asked.get("args") or {}).get("plan")
    return plan if isinstance(plan, str) else ""
