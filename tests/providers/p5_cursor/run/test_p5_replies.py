"""What a run answers at once: denials, context, queries."""

from __future__ import annotations

from typing import Any

import pytest
from samples import rows

from proxy.providers.p5_cursor.bridge.calls import ExecRequest
from proxy.providers.p5_cursor.bridge.tool_forms import ClientTools, client_tools
from proxy.providers.p5_cursor.run.replies import (
    denial,
    numbered,
    plan_of,
    query_answer,
)
from proxy.providers.p5_cursor.wire.protobuf import decode, encode

Messages = list[dict[str, Any]]


def tools(*names: str) -> ClientTools:
    """Tools with open schemas, as far as their kind may have one."""
    return client_tools({"name": name, "input_schema": {"properties": _MEMBERS.get(name)}} for name in names)


_MEMBERS = {"List": {"path": {"type": "string"}}, "grep": {"pattern": {"type": "string"}}}


def written(message: dict[str, Any]) -> bytes:
    """The bytes of a message, which say the same when they are read."""
    data = encode("AgentClientMessage", message)
    assert decode("AgentClientMessage", data) == message
    return data


def results_of(messages: Messages, number: int, exec_id: str) -> Messages:
    """The results of an answer without their ids, which have to be right, as has the close at the end."""
    *results, close = messages
    assert close == {"exec_client_control_message": {"stream_close": numbered(number, {})}}
    assert results, "no answer"
    found = []
    for result in results:
        ((kind, message),) = result.items()
        message = dict(message)
        if kind == "exec_client_control_message":
            message = dict(message["throw"])
        assert message.pop("id", None) == (number or None)
        if kind == "exec_client_message":
            assert message.pop("exec_id", None) == (exec_id or None)
        found.append(message)
    return found


def words_in(value: Any, name: str) -> str:
    """Takes the text of a member out, wherever it stands."""
    if isinstance(value, dict):
        for key, child in value.items():
            if key == name and isinstance(child, str):
                value[key] = "…"
                return child
            if found := words_in(child, name):
                return found
    return ""


COMMAND = {"command": "ls", "working_directory": "/w/a"}
#: arm -> its arguments, the results of the denial, the member with the words
DENIALS: list[tuple[str, dict[str, Any], list[dict[str, Any]], str]] = [
    ("read_args", {"path": "/a"}, [{"read_result": {"error": {"path": "/a", "error": "…"}}}], "error"),
    (
        "redacted_read_args",
        {"path": "/a", "offset": 3},
        [{"redacted_read_result": {"error": {"path": "/a", "error": "…"}}}],
        "error",
    ),
    (
        "write_args",
        {"path": "/a", "file_text": "x"},
        [{"write_result": {"error": {"path": "/a", "error": "…"}}}],
        "error",
    ),
    (
        "shell_stream_args",
        COMMAND,
        [
            {"shell_stream": {"start": {}}},
            {"shell_stream": {"stderr": {"data": "…"}}},
            {"shell_stream": {"exit": {"code": 1, "cwd": "/w/a"}}},
        ],
        "data",
    ),
    (
        "shell_stream_args",
        {"command": "ls"},
        [
            {"shell_stream": {"start": {}}},
            {"shell_stream": {"stderr": {"data": "…"}}},
            {"shell_stream": {"exit": {"code": 1, "cwd": "/w"}}},
        ],
        "data",
    ),
    ("shell_args", COMMAND, [{"shell_result": {"rejected": {**COMMAND, "reason": "…"}}}], "reason"),
    ("delete_args", {"path": "/a"}, [{"delete_result": {"rejected": {"path": "/a", "reason": "…"}}}], "reason"),
    ("grep_args", {"pattern": "x"}, [{"grep_result": {"error": {"error": "…"}}}], "error"),
    ("ls_args", {"path": "/a"}, [{"ls_result": {"rejected": {"path": "/a", "reason": "…"}}}], "reason"),
    (
        "diagnostics_args",
        {"path": "/a"},
        [{"diagnostics_result": {"rejected": {"path": "/a", "reason": "…"}}}],
        "reason",
    ),
    ("mcp_args", {"name": "T"}, [{"mcp_result": {"tool_not_found": {"name": "T"}}}], ""),
    ("mcp_args", {"tool_name": "T"}, [{"mcp_result": {"tool_not_found": {"name": "T"}}}], ""),
    (
        "background_shell_spawn_args",
        COMMAND,
        [{"background_shell_spawn_result": {"rejected": {**COMMAND, "reason": "…"}}}],
        "reason",
    ),
    ("list_mcp_resources_exec_args", {}, [{"list_mcp_resources_exec_result": {"error": {"error": "…"}}}], "error"),
    (
        "read_mcp_resource_exec_args",
        {"server": "s", "uri": "u:1"},
        [{"read_mcp_resource_exec_result": {"not_found": {"uri": "u:1"}}}],
        "",
    ),
    (
        "fetch_args",
        {"url": "https://a.invalid"},
        [{"fetch_result": {"error": {"url": "https://a.invalid", "error": "…"}}}],
        "error",
    ),
    ("write_shell_stdin_args", {"shell_id": 1}, [{"write_shell_stdin_result": {"error": {"error": "…"}}}], "error"),
    # no result fits these
    ("record_screen_args", {}, [{"error": "…"}], "error"),
    ("subagent_args", {}, [{"error": "…"}], "error"),
    ("mcp_state_exec_args", {}, [{"error": "…"}], "error"),
    ("", {}, [{"error": "…"}], "error"),
]


@rows("number, exec_id", [(0, "e1"), (6, "e6"), (8, "")])
@rows("kind, args, results, member", DENIALS)
def test_every_denial_is_one_result_and_one_close(
    kind: str, args: dict[str, Any], results: Messages, member: str, number: int, exec_id: str
) -> None:
    bridged = tools() if kind.startswith("shell") else tools("Bash")
    messages = denial(ExecRequest(number, exec_id, kind, args), bridged, "/w")
    found = results_of(messages, number, exec_id)
    if member:
        said = words_in(found[1 if len(found) == 3 else 0], member)
        assert ("No tool of this kind" if not bridged else "shell tool") in said
    assert found == results
    assert all(written(message) for message in messages)


@rows("kind", sorted({row[0] for row in DENIALS}))
def test_a_denial_without_arguments_is_still_an_answer(kind: str) -> None:
    results_of(denial(ExecRequest(1, "e1", kind, {}), tools(), ""), 1, "e1")


@rows("kind, args", [(row[0], row[1]) for row in DENIALS if row[3]])
@rows(
    "bridged, offered, not_offered",
    [
        (("Read",), ["the read tool"], ["shell tool", "write tool"]),
        (("Read", "Write"), ["the read tool or the write tool"], ["shell tool"]),
        ((), ["No tool"], ["read tool", "write tool", "shell tool"]),
    ],
)
def test_the_words_say_what_is_available(
    kind: str, args: dict[str, Any], bridged: tuple[str, ...], offered: list[str], not_offered: list[str]
) -> None:
    said = str(denial(ExecRequest(1, "", kind, args), tools(*bridged), "/w"))
    own = {"read_args": "Read", "redacted_read_args": "Read", "write_args": "Write"}.get(kind)
    if own in bridged:  # it could not take this request; the rows below
        return
    assert all(words in said for words in offered)
    assert not any(words in said for words in not_offered)


@rows("kind, args", [(row[0], row[1]) for row in DENIALS if row[3]])
def test_too_many_open_calls_are_no_matter_of_tools(kind: str, args: dict[str, Any]) -> None:
    said = str(denial(ExecRequest(1, "", kind, args), tools("Read", "Write", "Bash"), "/w", full=True))
    is_known = kind not in ("record_screen_args", "subagent_args", "mcp_state_exec_args", "")
    assert ("too many calls" in said, "the shell tool" in said) == (is_known, not is_known)


@rows("kind", [row[0] for row in DENIALS if row[3] and row[0] not in ("shell_args", "shell_stream_args")])
def test_what_no_tool_does_may_be_done_by_the_shell_tool(kind: str) -> None:
    assert "the shell tool" in str(denial(ExecRequest(1, "", kind, {}), tools("Bash"), "/w"))


@rows(
    "kind, names, posix, words",
    [
        # a client whose shell has other commands
        ("ls_args", ("Read", "Bash"), False, "commands of that shell"),
        ("read_args", ("Bash",), False, "commands of that shell"),
        ("read_args", ("Read", "Bash"), False, "commands of that shell"),
        # a tool of the client that is not mapped
        ("ls_args", ("List", "Read"), True, "own tool for it, List, can be called by writing the call as text"),
        ("grep_args", ("grep",), True, "own tool for it, grep"),
        # a command that does the same
        ("ls_args", ("Bash",), True, "Use the shell tool (ls) instead"),
        ("read_args", ("Bash",), True, "Use the shell tool (cat) instead"),
        ("write_args", ("Bash",), True, "cat with a here-document"),
        ("background_shell_spawn_args", ("Bash",), True, "a command that ends by itself"),
        ("diagnostics_args", ("Read",), True, "Use the read tool instead; no other tool is available"),
    ],
)
def test_the_words_name_the_way_that_is_left(kind: str, names: tuple[str, ...], posix: bool, words: str) -> None:
    assert words in str(denial(ExecRequest(1, "", kind, {}), tools(*names), "/w", posix=posix))


def test_tools_that_take_other_arguments_are_named() -> None:
    schema = {"properties": {"uri": {"type": "string"}}, "required": ["uri"]}
    unknown = client_tools({"name": name, "input_schema": schema} for name in ("read_file", "Bash"))
    assert not unknown and unknown.unknown == ("read_file", "Bash")
    said = str(denial(ExecRequest(1, "", "read_args", {}), unknown, "/w"))
    assert "Its tools (read_file, Bash) take other arguments" in said and "as text" in said


def test_bytes_that_no_tool_can_write_are_not_written() -> None:
    request = ExecRequest(1, "e", "write_args", {"path": "/a", "file_bytes": b"\xff"})
    (found,) = results_of(denial(request, tools("Bash"), "/w"), 1, "e")
    assert "UTF-8" not in words_in(found, "error")
    (found,) = results_of(denial(request, tools("Write", "Bash"), "/w"), 1, "e")
    assert "UTF-8" in words_in(found, "error")


class Broken(dict[str, Any]):
    """Arguments that cannot be read."""

    def get(self, key: str, default: Any = None) -> Any:
        raise RuntimeError(key)


def test_a_denial_that_cannot_be_built_is_thrown() -> None:
    thrown, close = denial(ExecRequest(5, "e5", "ls_args", Broken()), tools(), "/w")
    assert thrown["exec_client_control_message"]["throw"].keys() == {"id", "error"}
    assert close == {"exec_client_control_message": {"stream_close": {"id": 5}}}


REJECTED = {"rejected": {"reason": "…"}}
#: the table of 5.6
QUERIES: list[tuple[str, Any, dict[str, Any]]] = [
    (
        "web_search_request_query",
        {"args": {"search_term": "q", "tool_call_id": "t9"}},
        {"web_search_request_response": {"approved": {}}},
    ),
    (
        "web_fetch_request_query",
        {"args": {"url": "https://a.invalid"}},
        {"web_fetch_request_response": {"approved": {}}},
    ),
    ("exa_search_request_query", b"", {"exa_search_request_response": {"approved": b""}}),
    ("exa_fetch_request_query", b"", {"exa_fetch_request_response": {"approved": b""}}),
    ("generate_image_request_query", {}, {"generate_image_request_response": REJECTED}),
    (
        "ask_question_interaction_query",
        {"args": {"title": "t"}},
        {"ask_question_interaction_response": {"result": REJECTED}},
    ),
    ("switch_mode_request_query", {}, {"switch_mode_request_response": REJECTED}),
    (
        "create_plan_request_query",
        {"args": {"plan": "p"}},
        {"create_plan_request_response": {"result": {"success": {}}}},
    ),
    ("mcp_auth_request_query", {}, {"mcp_auth_request_response": REJECTED}),
    ("setup_vm_environment_args", b"", {}),
    ("pr_management_request_query", b"", {}),
    ("replace_env_args", b"", {}),
]


@rows("query, value, response", QUERIES)
@rows("number", [9, 0])
def test_queries_are_answered_by_the_table(query: str, value: Any, response: dict[str, Any], number: int) -> None:
    answer = query_answer(numbered(number, {query: value}))
    asked = encode("AgentServerMessage", {"interaction_query": {query: value}})
    # behind the key and length of the message comes its arm, which has one number in both directions
    assert written(query_answer({query: value}))[2:3] in (asked[2:3], b"")
    said = {words for name in ("reason",) if (words := words_in(answer := _copied(answer), name))}
    assert answer == {"interaction_response": numbered(number, response)}
    assert bool(said) == ("…" in str(response))


def _copied(value: Any) -> Any:
    return {key: _copied(child) for key, child in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("query", [{"id": 12}, {"id": 12, "query_99": {}}])
def test_an_unknown_query_is_answered_and_not_approved(query: dict[str, Any]) -> None:
    assert query_answer(query) == {"interaction_response": {"id": 12}}


@rows(
    "query, plan",
    [
        ({"id": 7, "create_plan_request_query": {"args": {"plan": "1. a", "name": "n"}}}, "1. a"),
        ({"id": 7, "create_plan_request_query": {"args": {}}}, ""),
        ({"id": 7, "create_plan_request_query": {}}, ""),
        ({"id": 7, "web_search_request_query": {"args": {"plan": "no"}}}, ""),
        ({"id": 7}, ""),
    ],
)
def test_a_plan_becomes_text(query: dict[str, Any], plan: str) -> None:
    assert plan_of(query) == plan
