"""What a client's tool returned, as results of the exec."""

from __future__ import annotations

from typing import Any

import pytest
from plan_clients import ID, answers, result
from samples import rows

from proxy.providers.p5_cursor.bridge.calls import ExecRequest
from proxy.providers.p5_cursor.bridge.results import result_text
from proxy.providers.p5_cursor.run.replies import answered


def sent(request: ExecRequest, block: dict[str, Any], tool: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """The results without their ids, which have to be right, as has the close at the end."""
    *results, close = answered(request, answers(request, block, tool))
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
        # not as Claude Code numbers lines: it could be a table
        (PLAIN, {"offset": 5}, "1\tone\n2\ttwo", success("1\tone\n2\ttwo")),
        (PLAIN, {"offset": 5}, "     1\tone\n     2\ttwo", success("one\ntwo")),
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
    assert sent(read(**args), result(text), tool) == expected


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


def test_a_long_pause_fits_its_member() -> None:
    request = ExecRequest(1, "", "shell_stream_args", {"command": "ls"})
    leave = answers(request, result(), elapsed_ms=2**40)[-1]
    assert leave["shell_stream"]["exit"]["local_execution_time_ms"] == 2**31 - 1


UNCHANGED = (
    "File unchanged since last read. The content from the earlier Read tool_result in this conversation is still"
    " current — refer to that instead of re-reading."
)


def test_another_result_may_say_unchanged() -> None:
    command = ExecRequest(1, "", "shell_stream_args", {"command": "x"})
    assert {"shell_stream": {"stdout": {"data": UNCHANGED}}} in sent(command, result(UNCHANGED))
    assert sent(read(), result(UNCHANGED + "\n" + "x" * 500)) == success(UNCHANGED + "\n" + "x" * 500)


def test_half_a_character_is_no_reason_to_lose_a_file() -> None:
    [sent_back] = sent(read(), result("a\ud800"))
    assert sent_back["read_result"]["success"]["file_size"] == len("a\N{REPLACEMENT CHARACTER}".encode())
