"""What a client's tool returned, as results of the exec."""

from __future__ import annotations

from typing import Any

import pytest
from samples import rows

from proxy.providers.p5_cursor.bridge.calls import ExecRequest
from proxy.providers.p5_cursor.bridge.results import find_result, has_new_words, result_messages, result_text

ID = "call_cursor_1"


def result(content: Any = "ok", tool_use_id: str = ID, **members: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": tool_use_id, "content": content, **members}


def sent(request: ExecRequest, block: dict[str, Any]) -> list[dict[str, Any]]:
    """The results without their ids, which have to be right, as has the close at the end."""
    *results, close = result_messages(request, block, workspace="/w", elapsed_ms=12)
    number = {"id": request.id} if request.id else {}
    name = {"exec_id": request.exec_id} if request.exec_id else {}
    assert close == {"exec_client_control_message": {"stream_close": number}}
    found = []
    for message in results:
        ids = {key: value for key, value in message["exec_client_message"].items() if key in ("id", "exec_id")}
        assert ids == {**number, **name}
        found.append({key: value for key, value in message["exec_client_message"].items() if key not in ids})
    return found


@rows(
    "content, text",
    [
        ("as it is\n", "as it is\n"),
        ([{"type": "text", "text": "a"}, {"type": "image", "source": {}}], "a\n[image result omitted]"),
        ([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": ""}], "hm\n"),
        ([{"type": "document", "title": "é"}], '{"type":"document","title":"é"}'),
        ([{"type": "text"}, "bare", None, 3], '{"type":"text"}\nbare\nnull\n3'),
        ([], ""),
        (None, ""),
        ({"type": "text", "text": "a"}, "a"),
    ],
)
def test_the_text_of_a_result(content: Any, text: str) -> None:
    assert result_text({"content": content}) == text
    assert result_text({}) == ""


def read(**args: Any) -> ExecRequest:
    return ExecRequest(1, "e1", "read_args", {"path": "/w/a.txt", **args})


def success(content: str, **members: Any) -> list[dict[str, Any]]:
    size = {"total_lines": len(content.split("\n")) if content else 0, "file_size": len(content.encode())}
    return [{"read_result": {"success": {"path": "/w/a.txt", "content": content, **size, **members}}}]


def failure(error: str) -> list[dict[str, Any]]:
    return [{"read_result": {"error": {"path": "/w/a.txt", "error": error}}}]


NUMBERED = "     1→one\n     2→two\n\n<system-reminder>x</system-reminder>"


@rows(
    "args, block, expected",
    [
        ({}, result(NUMBERED), success("one\ntwo")),
        ({}, result("1→one\n3→x"), success("1→one\n3→x")),
        ({}, result([{"type": "text", "text": NUMBERED}]), success("one\ntwo")),
        ({}, result("1\tä\n2\t"), success("ä\n")),
        (
            {},
            result("<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>"),
            success(""),
        ),
        ({}, result(None), success("")),
        ({}, {"type": "tool_result", "tool_use_id": ID}, success("")),
        ({"offset": 5}, result("5\tx"), success("x", range_applied=True)),
        ({"offset": 0}, result("1\tx"), success("x", range_applied=True)),
        ({"limit": 1}, result("1\tx"), success("x", range_applied=True)),
        ({"offset": 5, "limit": 1}, result("6\tx"), success("6\tx", range_applied=True)),
        ({}, result("1\tx\n\n[truncated]"), success("x", truncated=True)),
        ({}, result("no such file", is_error=True), failure("no such file")),
        ({}, result("no such file", is_error="yes"), failure("no such file")),
        ({}, result("1\tx", is_error=False), success("x")),
        ({}, result("1\tx", is_error=None), success("x")),
        ({}, result("", is_error=True), failure("The client's tool failed without saying why.")),
    ],
)
def test_read(args: dict[str, Any], block: dict[str, Any], expected: list[dict[str, Any]]) -> None:
    assert sent(read(**args), block) == expected


def test_a_redacted_read_has_a_result_of_its_own() -> None:
    request = ExecRequest(0, "e1", "redacted_read_args", {"path": "/w/a.txt"})
    assert sent(request, result("1\tx")) == [{"redacted_read_result": success("x")[0]["read_result"]}]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/w/a.ipynb", '<cell id="cell-0">print(1)</cell id="cell-0">'),
        ("/w/a.txt", "<persisted-output>\nOutput too large (2 MB). Preview (first 2KB):\n1\ta"),
    ],
)
def test_what_is_not_the_file_cannot_be_taken_for_it(path: str, text: str) -> None:
    """The model reads it all the same."""
    (found,) = sent(ExecRequest(1, "e", "read_args", {"path": path}), result([{"type": "text", "text": text}]))
    assert found["read_result"].keys() == {"error"}
    assert text in found["read_result"]["error"]["error"]
    assert sent(read(), result("<cell id=")) == success("<cell id=")


PLAIN: dict[str, Any] = {"name": "Read", "input_schema": {"properties": {"path": {}}}}
HALF: dict[str, Any] = {"name": "Read", "input_schema": {"properties": {"file_path": {}, "offset": {}}}}


@rows(
    "tool, args, text, expected",
    [
        (PLAIN, {"offset": 5, "limit": 1}, "one\ntwo", success("one\ntwo")),
        (PLAIN, {"offset": 5}, "1\tone\n2\ttwo", success("one\ntwo")),
        (PLAIN, {"offset": 5}, "5\tone", success("5\tone")),
        (HALF, {"offset": 5, "limit": 1}, "1\tone\n2\ttwo", success("one\ntwo")),
        (HALF, {"offset": 5, "limit": 1}, "5\tone\n6\ttwo", success("5\tone\n6\ttwo")),
        (HALF, {"offset": 5}, "5\tone\n6\ttwo", success("one\ntwo", range_applied=True)),
        ({"name": "Read"}, {"limit": 2}, "1\tone\n2\ttwo", success("one\ntwo", range_applied=True)),
    ],
)
def test_a_range_that_the_client_s_tool_does_not_take_is_not_applied(
    tool: dict[str, Any], args: dict[str, Any], text: str, expected: list[dict[str, Any]]
) -> None:
    """Else the service takes the first lines of the file for those that it asked for."""
    messages = result_messages(read(**args), result(text), workspace="/w", elapsed_ms=1, tool=tool)
    assert messages[0]["exec_client_message"] == {"id": 1, "exec_id": "e1", **expected[0]}


def write(**args: Any) -> ExecRequest:
    return ExecRequest(2, "e2", "write_args", {"path": "/w/b.txt", **args})


@rows(
    "args, expected",
    [
        ({"file_text": "x\ny"}, {"lines_created": 2, "file_size": 3}),
        (
            {"file_text": "x\ny", "return_file_content_after_write": True},
            {"lines_created": 2, "file_size": 3, "file_content_after_write": "x\ny"},
        ),
        ({"file_text": "x", "return_file_content_after_write": False}, {"lines_created": 1, "file_size": 1}),
        ({"file_text": "ä\n"}, {"lines_created": 2, "file_size": 3}),
        ({}, {"lines_created": 0, "file_size": 0}),
        (
            {"return_file_content_after_write": True},
            {"lines_created": 0, "file_size": 0, "file_content_after_write": ""},
        ),
        ({"file_bytes": b"a\nb\n"}, {"lines_created": 3, "file_size": 4}),
    ],
)
def test_write_is_computed_from_what_was_asked_for(args: dict[str, Any], expected: dict[str, Any]) -> None:
    found = sent(write(**args), result("File created successfully at: /w/b.txt"))
    assert found == [{"write_result": {"success": {"path": "/w/b.txt", **expected}}}]


@pytest.mark.parametrize(
    ("text", "error"), [("disk full", "disk full"), ("", "The client's tool failed without saying why.")]
)
def test_a_write_that_failed(text: str, error: str) -> None:
    found = sent(write(file_text="x"), result(text, is_error=True))
    assert found == [{"write_result": {"error": {"path": "/w/b.txt", "error": error}}}]


def stream(*parts: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"shell_stream": part} for part in parts]


START: dict[str, Any] = {"start": {}}
TOOK = {"local_execution_time_ms": 12}


@pytest.mark.parametrize(
    ("directory", "cwd"), [({"working_directory": "/w/it's"}, "/w/it's"), ({}, "/w"), ({"working_directory": ""}, "/w")]
)
def test_a_streamed_command(directory: dict[str, str], cwd: str) -> None:
    request = ExecRequest(3, "e3", "shell_stream_args", {"command": "ls", **directory})
    content = [{"type": "text", "text": "a"}, {"type": "image", "source": {}}]
    printed = "a\n[image result omitted]"
    assert sent(request, result(content)) == stream(
        START, {"stdout": {"data": printed}}, {"exit": {"cwd": cwd, **TOOK}}
    )
    assert sent(request, result(content, is_error=True)) == stream(
        START, {"stderr": {"data": printed}}, {"exit": {"code": 1, "cwd": cwd, **TOOK}}
    )
    assert sent(request, result("")) == stream(START, {"exit": {"cwd": cwd, **TOOK}})
    assert sent(request, result(None, is_error=True)) == stream(START, {"exit": {"code": 1, "cwd": cwd, **TOOK}})


@pytest.mark.parametrize("directory", ["/w", ""])
def test_a_command(directory: str) -> None:
    request = ExecRequest(4, "e4", "shell_args", {"command": "ls", "working_directory": directory})
    command = {"command": "ls", "working_directory": directory}
    assert sent(request, result("a")) == [{"shell_result": {"success": {**command, "stdout": "a"}}}]
    assert sent(request, result("no", is_error=True)) == [
        {"shell_result": {"failure": {**command, "exit_code": 1, "stderr": "no"}}}
    ]


@pytest.mark.parametrize(("number", "exec_id"), [(0, "e1"), (7, "")])
def test_tool_result_ignored_model_waits(number: int, exec_id: str) -> None:
    """The result has the ids of its exec, without those that are none, and a close behind it: see `sent`."""
    for kind in ("read_args", "redacted_read_args", "write_args", "shell_args", "shell_stream_args"):
        request = ExecRequest(number, exec_id, kind, {"path": "/a", "command": "ls"})
        assert sent(request, result("x"))


def test_a_result_that_cannot_be_built_is_thrown() -> None:
    request = ExecRequest(5, "e5", "grep_args", {})
    thrown, close = result_messages(request, result(), workspace="/w", elapsed_ms=1)
    assert thrown["exec_client_control_message"]["throw"].keys() == {"id", "error"}
    assert close == {"exec_client_control_message": {"stream_close": {"id": 5}}}


def test_a_long_pause_fits_its_member() -> None:
    request = ExecRequest(1, "", "shell_stream_args", {"command": "ls"})
    *_, leave, _close = result_messages(request, result(), workspace="/w", elapsed_ms=2**40)
    assert leave["exec_client_message"]["shell_stream"]["exit"]["local_execution_time_ms"] == 2**31 - 1


def says(role: str, *blocks: Any) -> dict[str, Any]:
    return {"role": role, "content": blocks[0] if len(blocks) == 1 and isinstance(blocks[0], str) else list(blocks)}


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


REMINDER = words("<system-reminder>be brief</system-reminder>")
#: As Claude Code 2.1.197 (a message of the role system), older ones (a reminder) and 2.1.330 (a text) tell it.
MEANWHILE = "The user sent a new message while you were working:\nand the other file\n\nIMPORTANT: you MUST address it."
CALL = says("assistant", {"type": "tool_use", "id": ID, "name": "Read", "input": {"file_path": "/a"}})
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}


@rows(
    "messages, content",
    [
        ([says("user", "Q"), CALL, says("user", result("a"))], "a"),
        ([says("user", result("old")), CALL, says("user", result("new"))], "new"),
        ([CALL, says("user", result("a")), says("user", "and more")], "a"),
        ([CALL, says("user", result("a")), says("system", "Tools changed"), says("assistant", "ok")], "a"),
        ([CALL, says("user", result("x", "call_cursor_2"), result("a"), words("b"))], "a"),
        ([CALL, says("user", result("old"), result("new"))], "new"),
        ([CALL, says("assistant", result("a"))], None),
        ([CALL, says("user", result("a", "call_cursor_2"))], None),
        ([CALL, says("user", "tool_result")], None),
        ([CALL, {"role": "user", "content": None}, {"role": "user"}, "user", None], None),
        ([CALL, says("user", "x", {"type": "tool_result"})], None),
        (None, None),
        ({}, None),
    ],
)
def test_the_newest_result_of_a_call_is_found(messages: Any, content: str | None) -> None:
    found = find_result({"messages": messages}, ID)
    assert (found and found["content"]) == content


@rows(
    "messages, expected",
    [
        ([CALL, says("user", result())], False),
        ([says("user", "Q"), CALL, says("user", result())], False),
        ([CALL, says("user", result(), REMINDER)], False),
        ([CALL, says("user", REMINDER, result(), words("  "))], False),
        ([CALL, says("user", result(), result("x", "call_cursor_2"))], False),
        ([CALL, says("user", result()), says("system", "Tools changed")], False),
        ([CALL, says("user", result()), says("user", REMINDER)], False),
        ([CALL, says("user", result()), says("user", result("x", "call_cursor_2"))], False),
        # of the client's Read of a document
        ([CALL, says("user", result(), {"type": "document", "source": {}})], False),
        ([CALL, says("user", result()), says("system", "# Environment\n - while you were working: no")], False),
        ([CALL, says("user", result()), says("system", MEANWHILE)], True),
        ([CALL, says("user", result()), says("system", words(f"Tools changed\n\n{MEANWHILE}"))], True),
        ([CALL, says("user", result()), says("system", MEANWHILE), CALL, says("user", result())], False),
        ([CALL, says("user", result(), words(f"<system-reminder>\n{MEANWHILE}\n</system-reminder>"))], True),
        ([CALL, says("user", result(), words(MEANWHILE))], True),
        ([CALL, says("user", result(), words("Stop!"))], True),
        ([CALL, says("user", words("Stop!"), result())], True),
        ([CALL, says("user", result(), words("[Request interrupted by user for tool use]"))], True),
        ([CALL, says("user", result(), words("<system-reminder>a</system-reminder>Stop!"))], True),
        ([CALL, says("user", result()), says("user", "Stop!")], True),
        ([CALL, says("user", result()), says("user", PICTURE)], True),
        ([CALL, says("user", result()), says("assistant", "Done"), says("user", "More")], True),
        ([CALL, says("user", result()), says("assistant", "Done")], True),
    ],
)
def test_new_words_beside_or_behind_a_result(messages: list[Any], expected: bool) -> None:
    assert has_new_words({"messages": messages}, ID) is expected


UNCHANGED = (
    "File unchanged since last read. The content from the earlier Read tool_result in this conversation is still"
    " current — refer to that instead of re-reading."
)


def reads(number: int, content: Any, *, name: str = "Read", is_error: bool = False, **asked: Any) -> list[Any]:
    """A call and its result."""
    call_id = f"call_cursor_{number}"
    call = {"type": "tool_use", "id": call_id, "name": name, "input": {"file_path": "/w/a.txt", **asked}}
    return [says("assistant", call), says("user", result(content, call_id, is_error=is_error))]


@rows(
    "before, asked, expected",
    [
        (reads(5, "1\told"), {}, success("old")),
        ([*reads(5, "1\told"), *reads(6, "1\tnew"), *reads(7, UNCHANGED)], {}, success("new")),
        ([*reads(5, "1\told"), *reads(6, "[Old tool result content cleared]")], {}, success("old")),
        ([*reads(5, "1\told"), *reads(6, "1\tx", is_error=True)], {}, success("old")),
        (reads(5, "1\told", offset=1), {}, success("old")),
        (reads(5, "7\told", offset=7, limit=1), {"offset": 7, "limit": 1}, success("old", range_applied=True)),
        (reads(5, "1\told", limit=1), {}, None),
        (reads(5, "1\told", file_path="/w/b.txt"), {}, None),
        (reads(5, "1\told", name="Bash"), {}, None),
        (reads(5, "[Old tool result content cleared]"), {}, None),
        (reads(5, "1\told", file_path=None), {"file_path": None}, None),
        ([], {}, None),
    ],
)
def test_a_file_that_the_client_does_not_send_again(
    before: list[Any], asked: dict[str, Any], expected: list[dict[str, Any]] | None
) -> None:
    """Else these words would be the content, and be written back."""
    block = find_result({"messages": [*before, *reads(1, UNCHANGED, **asked)]}, ID)
    assert block is not None
    found = sent(read(**asked), dict(block))
    if expected is None:
        assert "shell tool" in found[0]["read_result"]["error"]["error"]
    else:
        assert found == expected


#: What Claude Code 2.1.330 says of a file that it did not show whole; 2.1.197 says it in a reminder in the result.
PARTIAL = "[Truncated: PARTIAL view — /w/a.txt: showing lines 1-2 of 3501 total. Call Read with offset=3 for the rest.]"
READ_CALL, READ_RESULT = reads(1, "1\tone\n2\ttwo")


@rows(
    "messages, truncated",
    [
        ([READ_CALL, READ_RESULT, says("system", PARTIAL)], True),
        ([READ_CALL, READ_RESULT, says("system", words(f"# Environment\n\n{PARTIAL}\nMore."))], True),
        (
            [
                READ_CALL,
                says("user", READ_RESULT["content"][0], words(f"<system-reminder>{PARTIAL}</system-reminder>")),
            ],
            True,
        ),
        ([READ_CALL, READ_RESULT, says("user", words(f"<system-reminder>\n{PARTIAL}\n</system-reminder>"))], True),
        ([READ_CALL, says("user", result(f"<system-reminder>{PARTIAL}</system-reminder>\n\n1\tone\n2\ttwo"))], True),
        ([*reads(5, "1\tone\n2\ttwo"), says("system", PARTIAL), *reads(1, UNCHANGED)], True),
        ([*reads(5, "1\tx"), says("system", PARTIAL), READ_CALL, READ_RESULT], False),
        ([READ_CALL, READ_RESULT, says("system", "Tools changed")], False),
        ([READ_CALL, READ_RESULT, says("assistant", PARTIAL)], False),
    ],
)
def test_a_note_beside_a_result_that_it_is_not_the_whole_file(messages: list[Any], truncated: bool) -> None:
    """Else the service writes back what there is, and the rest of the user's file is lost."""
    block = find_result({"messages": messages}, ID)
    assert block is not None
    assert sent(read(), dict(block)) == success("one\ntwo", **({"truncated": True} if truncated else {}))


def test_a_file_that_is_in_the_context_is_not_empty() -> None:
    words = "<system-reminder>This file is already in your context; no need to read it again.</system-reminder>"
    block = find_result({"messages": [*reads(5, "1\told"), *reads(1, words)]}, ID)
    assert block is not None and sent(read(), dict(block)) == success("old")
    assert sent(read(), result(words))[0]["read_result"].keys() == {"error"}


def test_another_result_may_say_unchanged() -> None:
    command = ExecRequest(1, "", "shell_stream_args", {"command": "x"})
    assert {"shell_stream": {"stdout": {"data": UNCHANGED}}} in sent(command, result(UNCHANGED))
    assert sent(read(), result(UNCHANGED + "\n" + "x" * 500)) == success(UNCHANGED + "\n" + "x" * 500)


def test_half_a_character_is_no_reason_to_lose_a_file() -> None:
    [sent_back] = sent(read(), result("a\ud800"))
    assert sent_back["read_result"]["success"]["file_size"] == len("a\N{REPLACEMENT CHARACTER}".encode())
