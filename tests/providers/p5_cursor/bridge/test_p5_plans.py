"""How a request is answered by a client's tools: clients whose shell is a real one, and what they do to its output."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from client_declarations import CLAUDE, CLINE, CODEX, CONTINUE, OPENCODE, PI, QWEN
from plan_clients import Messages, Tool, driven, in_shell, place_of, planned, sent_to, shown, tool
from samples import each, rows

from proxy.providers.p5_cursor.bridge.calls import ExecRequest
from proxy.providers.p5_cursor.bridge.plans import plan_for
from proxy.providers.p5_cursor.bridge.steps import MAX_CALLS, Returned, Step

SHELL = tool("bash", {"command": "string"}, ["command"])

Show = Callable[[str], str]


def shell(folder: Path, show: Show = str, *, status: bool = True) -> Callable[[Step], Returned]:
    """A client that runs commands in a folder. `show`: what it does to their output; `status`: whether it tells how a
    command ended."""

    def run(step: Step) -> Returned:
        (command,) = (value for name, value in step.input.items() if name in ("command", "commands"))
        code, printed = in_shell(command if isinstance(command, str) else command[0], directory=folder)
        said = f"\n\nCommand exited with code {code}" if code and status else ""
        return Returned(show(printed) + said)

    return run


def cut_in_the_middle(text: str) -> str:
    return text if len(text) <= 10_000 else f"{text[:5000]}\n…{len(text) - 10_000} chars truncated…\n{text[-5000:]}"


def head_only(text: str) -> str:
    return text if len(text) <= 10_000 else f"{text[:10_000]}\n\n[Output truncated]"


def tail_only(text: str) -> str:
    return text if len(text) <= 10_000 else f"[Output truncated]\n{text[-10_000:]}"


SHOWS: dict[str, Show] = {
    "as it is": str,
    "cut in the middle": cut_in_the_middle,
    "the head only": head_only,
    "the tail only": tail_only,
    "without blanks at the end": lambda text: text.rstrip(),
    "without blanks around": lambda text: text.strip(),
    "without blanks at the ends of lines": lambda text: "\n".join(line.rstrip() for line in text.split("\n")),
    "other line ends": lambda text: text.replace("\n", "\r\n"),
    "one line end": lambda text: text.replace("\r\n", "\n"),
    "without control characters": lambda text: "".join(one for one in text if one.isprintable() or one in "\n\t"),
    "behind a greeting": lambda text: f"Welcome\n12 updates\n0\n{text}",
    "before a notice": lambda text: f"{text}\nShell cwd was reset to /w",
}
CONTENTS: dict[str, bytes] = {
    "empty": b"",
    "no line end": b"a",
    "blanks": b"  a \t\n \n\t\n\n",
    "CRLF": b"a\r\nb\r\n0\n",
    "marks": b"[end of file 1]\n[begin of file 1]\n1 3\n(no output)",
    "status": b"x\n\nCommand exited with code 9\n",
    "characters": "é中😀\u2028\n".encode(),
    "all bytes": bytes(range(256)),
    "half a character": b"\xf0\x9f\x98",
    "lines": b"".join(b"line %d \r\n" % number for number in range(3000)),
    "noise": bytes((number * 7919) % 256 for number in range(60_000)),
}


def read_of(path: Path | str, **args: Any) -> ExecRequest:
    return ExecRequest(1, "e1", "read_args", {"path": str(path), **args})


def write_of(path: Path | str, data: bytes) -> ExecRequest:
    return ExecRequest(2, "e2", "write_args", {"path": str(path), "file_bytes": data})


def content_of(results: Messages) -> bytes:
    (result,) = results
    success = result["read_result"]["success"]
    data = success["data"] if "data" in success else success["content"].encode()
    assert success["file_size"] == len(data) and "truncated" not in success
    return bytes(data)


def error_of(results: Messages) -> str:
    """The words of the only result."""
    (result,) = results
    ((_, outcome),) = result.items()
    words: str = outcome["error"]["error"]
    return words


# -- a shell only


@each(1)
@pytest.mark.parametrize("status", [True, False])
@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("show", SHOWS)
def test_a_file_comes_through_a_shell_byte_by_byte(show: str, name: str, status: bool, tmp_path: Path) -> None:
    path, data = tmp_path / "it's a file", CONTENTS[name]
    path.write_bytes(data)
    steps, results = driven(read_of(path), place_of(SHELL), shell(tmp_path, SHOWS[show], status=status))
    assert content_of(results) == data
    assert len(steps) <= 2 + len(data) // 1500 and {step.tool for step in steps} == {"bash"}
    assert list(tmp_path.iterdir()) == [path] and path.read_bytes() == data


@each(1)
@pytest.mark.parametrize("status", [True, False])
@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("show", SHOWS)
def test_a_file_goes_through_a_shell_byte_by_byte(show: str, name: str, status: bool, tmp_path: Path) -> None:
    path, data = tmp_path / "new" / "it's a file", CONTENTS[name]
    for tools in ((SHELL,), CLINE[2:3]):
        _, results = driven(write_of(path, data), place_of(*tools), shell(tmp_path, SHOWS[show], status=status))
        assert results[0]["write_result"].keys() == {"success"} and path.read_bytes() == data
        assert list(path.parent.iterdir()) == [path]
        path.write_bytes(b"old")


@rows("change", [lambda text: text.replace("\t", "    "), lambda text: text.replace(" \n", "\n"), str.strip])
def test_what_a_client_changes_on_the_way_to_its_shell_is_sent_as_base64(change: Show, tmp_path: Path) -> None:
    client = shell(tmp_path)

    def changing(step: Step) -> Returned:
        return client(step._replace(input={"command": change(step.input["command"])}))

    for data in (b"a\tb \nc\n", b" \n\n", b"x"):
        path = tmp_path / "a"
        path.write_bytes(b"old")
        steps, results = driven(write_of(path, data), place_of(SHELL), changing)
        assert "success" in results[0]["write_result"] and path.read_bytes() == data
        assert len(steps) <= 2 and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("status", [True, False])
def test_what_cannot_be_read_is_an_error(status: bool, tmp_path: Path) -> None:
    for path, words in ((tmp_path / "missing", "No such file"), (tmp_path, "directory")):
        for args in ({}, {"offset": 2, "limit": 3}):
            for show in SHOWS.values():
                client = shell(tmp_path, show, status=status)
                _, results = driven(read_of(path, **args), place_of(SHELL), client)
                assert words in error_of(results) and "[begin" not in error_of(results)


@pytest.mark.parametrize("status", [True, False])
def test_what_cannot_be_written_is_an_error(status: bool, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    for path, words in ((tmp_path, "not a file"), (tmp_path / "file" / "below", "mkdir: ")):
        for data in (b"x", b"x" * 30_000, b"\xff"):
            for tools in ((SHELL,), CLINE[2:3]):
                _, results = driven(write_of(path, data), place_of(*tools), shell(tmp_path, status=status))
                assert error_of(results).startswith(words)
                assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_a_part_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("1\n2\n3\n4\n5")
    for args, text in (({"offset": 2, "limit": 2}, "2\n3\n"), ({"offset": -2}, "4\n5"), ({"limit": 1}, "1\n")):
        for show in (str, SHOWS["without blanks at the ends of lines"], SHOWS["other line ends"]):
            _, ((result),) = driven(read_of(path, **args), place_of(SHELL), shell(tmp_path, show))
            success = result["read_result"]["success"]
            assert (success["content"], success["range_applied"]) == (text, True)


def test_a_file_that_is_no_text_comes_as_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"\xff\x00")
    _, results = driven(read_of(path), place_of(SHELL), shell(tmp_path))
    assert results == [{"read_result": {"success": {"path": str(path), "data": b"\xff\x00", "file_size": 2}}}]


def test_folders_searches_and_removals(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("needle\n")
    (tmp_path / "b").mkdir()
    client, place = shell(tmp_path), place_of(SHELL, folder=str(tmp_path))
    for args in ({"path": str(tmp_path)}, {}):
        _, (listed,) = driven(ExecRequest(1, "", "ls_args", args), place, client)
        root = listed["ls_result"]["success"]["directory_tree_root"]
        assert root["children_files"] == [{"name": "a.py"}]
        assert root["children_dirs"] == [{"abs_path": f"{tmp_path}/b"}]
    _, (found,) = driven(ExecRequest(1, "", "grep_args", {"pattern": "needle"}), place, client)
    ((folder, union),) = found["grep_result"]["success"]["workspace_results"].items()
    assert folder == str(tmp_path) and union["content"]["total_matched_lines"] == 1
    removal = ExecRequest(1, "", "delete_args", {"path": f"{tmp_path}/a.py"})
    _, (gone,) = driven(removal, place, client)
    assert gone["delete_result"]["success"] == {"path": f"{tmp_path}/a.py", "deleted_file": f"{tmp_path}/a.py"}
    assert "No such file" in error_of(driven(removal, place, client)[1])
    for kind, args in (("ls_args", {}), ("grep_args", {"pattern": "x"}), ("grep_args", {"glob": "*"})):
        missing = ExecRequest(1, "", kind, {"path": "/no/x", **args})
        assert "No such file" in error_of(driven(missing, place, client)[1])
    bad = ExecRequest(1, "", "grep_args", {"pattern": "("})
    assert "grep" in error_of(driven(bad, place, client)[1]) or "regex" in error_of(driven(bad, place, client)[1])


@rows("cut", [head_only, tail_only, cut_in_the_middle])
def test_a_list_that_the_client_cut_is_no_success(cut: Show, tmp_path: Path) -> None:
    for number in range(1500):
        (tmp_path / f"name {number}").touch()
    request = ExecRequest(1, "", "ls_args", {"path": str(tmp_path)})
    assert error_of(driven(request, place_of(SHELL), shell(tmp_path, cut))[1])
    (result,) = driven(request, place_of(SHELL), shell(tmp_path))[1]
    assert result["ls_result"]["success"]["directory_tree_root"]["num_files"] == 1500
    for path in tmp_path.iterdir():
        path.unlink()


# -- commands


@rows(
    "text, status, printed",
    [("hi\n", 0, "hi\n"), ("no\n\nCommand exited with code 3", 3, "no"), ("(no output)", 0, ""), ("", 0, "")],
)
def test_a_command_has_the_status_that_the_client_tells(text: str, status: int, printed: str) -> None:
    request = ExecRequest(1, "", "shell_args", {"command": "x"})
    _, (result,) = driven(request, place_of(SHELL), lambda _: text)
    arm, outcome = next(iter(result["shell_result"].items()))
    assert arm == ("failure" if status else "success")
    assert outcome.get("exit_code", 0) == status and outcome["stderr" if status else "stdout"] == printed
    streamed = ExecRequest(1, "", "shell_stream_args", {"command": "x"})
    *_, last = driven(streamed, place_of(SHELL), lambda _: text)[1]
    assert last["shell_stream"]["exit"].get("code", 0) == status


@pytest.mark.parametrize("text", ["Running\nProcess exited with code 1", "exit code: 3", "Command rejected"])
def test_what_a_command_prints_is_no_status_where_the_client_marks_errors(text: str) -> None:
    request = ExecRequest(1, "", "shell_args", {"command": "x"})
    (result,) = driven(request, place_of(*CLAUDE), lambda _: text)[1]
    assert result["shell_result"]["success"]["stdout"] == text
    (result,) = driven(request, place_of(*CLAUDE), lambda _: Returned(text, failed=True))[1]
    assert result["shell_result"]["failure"]["exit_code"] == 1


@rows(
    "command, directory, text",
    [
        ("ls -la", "/v", "cd '/v' && ls -la"),
        ("ls", "-v", "cd './-v' && ls"),
        ("ls", "/w", "ls"),
        ("ls", "", "ls"),
        *(
            (command, "/v", f"cd '/v' && {{ {command}\n}}")
            for command in ("a; b", "a || b", "a && b", "a | b", "a &", "a\nb", "cat <<E\nx\nE", "a; b # c")
        ),
    ],
)
def test_a_command_in_another_directory(command: str, directory: str, text: str) -> None:
    request = ExecRequest(1, "", "shell_args", {"command": command, "working_directory": directory})
    assert next(planned(request, place_of(SHELL))).input["command"] == text


@pytest.mark.parametrize(
    "command", ["touch a; touch b", "false || touch a", "true && touch a", "touch a &", "true\ntouch a"]
)
def test_no_part_of_a_command_runs_where_its_directory_is_not(command: str, tmp_path: Path) -> None:
    missing = ExecRequest(1, "", "shell_args", {"command": command, "working_directory": "/no/x"})
    (result,) = driven(missing, place_of(SHELL), shell(tmp_path))[1]
    assert list(tmp_path.iterdir()) == [] and result["shell_result"]["failure"]["exit_code"] != 0
    (tmp_path / "-v").mkdir()
    there = ExecRequest(1, "", "shell_args", {"command": f"{command}\nwait", "working_directory": "-v"})
    (result,) = driven(there, place_of(SHELL), shell(tmp_path))[1]
    assert (tmp_path / "-v" / "a").exists() and list(tmp_path.iterdir()) == [tmp_path / "-v"]


def test_each_request_has_a_tag_of_its_own_that_nobody_can_guess() -> None:
    requests = [read_of("/a"), ExecRequest(2, "e1", "read_args", {}), ExecRequest(1, "e2", "read_args", {})]
    tags = {place_of(SHELL, secret=secret).tag(request) for secret in ("one", "two") for request in requests}
    assert len(tags) == 6 and all(len(tag) == 12 and tag.isalnum() for tag in tags)
    assert place_of(SHELL).tag(requests[0]) == place_of(SHELL).tag(requests[0])
    assert f"[begin of file {place_of(SHELL).tag(requests[0])}]" in str(next(planned(requests[0], place_of(SHELL))))


def test_a_command_that_was_ended_for_its_time() -> None:
    request = ExecRequest(1, "", "shell_stream_args", {"command": "x"})
    *_, last = driven(request, place_of(*PI), lambda _: "so far\n\nCommand timed out after 1 seconds")[1]
    assert last["shell_stream"]["exit"].items() >= {"code": 124, "aborted": True, "abort_reason": 2}.items()


CODEX_HEAD = "Chunk ID: 927e36\nWall time: 1.0000 seconds\n"


def running(text: str, session: int = 9258) -> str:
    return f"{CODEX_HEAD}Process running with session ID {session}\nOriginal token count: 5\nOutput:\n{text}"


def exited(text: str, status: int = 0) -> str:
    return f"{CODEX_HEAD}Process exited with code {status}\nOriginal token count: 5\nOutput:\n{text}"


def answers(*said: str, each_ms: int = 1000) -> Callable[[Step], Returned]:
    """A client that says these, one after the other, and then the last again."""
    count = iter(range(10_000))

    def say(_step: Step) -> Returned:
        number = next(count)
        return Returned(said[min(number, len(said) - 1)], elapsed_ms=(number + 1) * each_ms)

    return say


def test_a_command_that_still_runs_is_waited_for() -> None:
    request = ExecRequest(1, "", "shell_stream_args", {"command": "make", "timeout": 45_000})
    client = answers(running("one\n"), running("two\n"), running(""), exited("three\n", 3))
    steps, results = driven(request, place_of(*CODEX), client)
    assert [step.tool for step in steps] == ["exec_command", *["write_stdin"] * 3]
    assert steps[0].input == {"cmd": "make", "yield_time_ms": 30_000, "max_output_tokens": 60_000}
    waits = [step.input["yield_time_ms"] for step in steps[1:]]
    assert waits == [30_000, 30_000, 30_000] and steps[1].input["session_id"] == 9258 and steps[1].input["chars"] == ""
    assert results[1] == {"shell_stream": {"stderr": {"data": "one\ntwo\nthree\n"}}}
    assert results[2]["shell_stream"]["exit"].items() >= {"code": 3, "local_execution_time_ms": 4000}.items()


@pytest.mark.parametrize(("tools", "calls"), [(CODEX, 3), (CODEX[:1], 1)])
def test_a_command_that_runs_longer_than_its_limit_goes_on_in_its_session(tools: tuple[Tool, ...], calls: int) -> None:
    request = ExecRequest(1, "", "shell_args", {"command": "make", "timeout": 25_000})
    steps, (result,) = driven(request, place_of(*tools), answers(running("x"), each_ms=10_000))
    assert len(steps) == calls
    failure = result["shell_result"]["failure"]
    assert failure["aborted"] and "session 9258" in failure["stderr"] and failure["stderr"].startswith("x" * calls)


def test_a_session_that_is_not_known_any_more_ends_the_wait() -> None:
    request = ExecRequest(1, "", "shell_args", {"command": "make"})
    steps, (result,) = driven(
        request, place_of(*CODEX), answers(running("x"), "write_stdin failed: Unknown process id")
    )
    assert len(steps) == 2 and "Unknown process id" in result["shell_result"]["failure"]["stderr"]


def test_each_command_of_a_plan_may_take_its_time(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"\xff" * 100_000)
    run = shell(tmp_path)
    printed: list[str] = []

    def client(step: Step) -> Returned:
        elapsed_ms = 20_000 * (len(printed) + 1)
        if step.tool == "write_stdin":
            return Returned(exited(printed[-1]), elapsed_ms=elapsed_ms)
        printed.append(run(Step("bash", {"command": step.input["cmd"]})).text)
        return Returned(running(""), elapsed_ms=elapsed_ms)

    steps, results = driven(read_of(path), place_of(*CODEX), client)
    assert content_of(results) == b"\xff" * 100_000 and len(steps) == 12


def test_a_file_that_codex_reads_slowly(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one\n\ntwo")
    printed = shown(next(planned(read_of(path), place_of(*CODEX))).input["cmd"], b"one\n\ntwo")
    client = answers(running(printed[:20]), running(""), exited(printed[20:]))
    assert content_of(driven(read_of(path), place_of(*CODEX), client)[1]) == b"one\n\ntwo"


# -- tools for files


def file_tools(step: Step) -> Returned:
    """A client with tools for files, such as pi's."""
    path = Path(step.input["path"])
    if "content" in step.input:
        path.write_text(step.input["content"], newline="")
        return Returned(f"Successfully wrote {len(step.input['content'])} bytes to {path}")
    if not path.exists():
        return Returned(f"ENOENT: no such file or directory, access '{path}'")
    return Returned(path.read_bytes().decode() or "(no tool output)")


def test_a_client_without_a_shell_reads_and_writes_with_its_tools(tmp_path: Path) -> None:
    path, place = tmp_path / "a", place_of(*(one for one in PI if one["name"] != "bash"))
    for data in (b"", b"x", b"a\r\n\r\n b \n", "é".encode() * 9000):
        steps, results = driven(write_of(path, data), place, file_tools)
        assert [step.tool for step in steps] == ["write"] and "success" in results[0]["write_result"]
        steps, results = driven(read_of(path), place, file_tools)
        assert [step.tool for step in steps] == ["read"] and content_of(results) == data == path.read_bytes()
    assert "ENOENT" in error_of(driven(read_of(tmp_path / "b"), place, file_tools)[1])
    for kind in ("ls_args", "grep_args", "delete_args", "shell_args", "shell_stream_args"):
        assert plan_for(ExecRequest(1, "", kind, {"path": "/a", "pattern": "x"}), place) is None
    assert plan_for(write_of(path, b"\xff"), place) is None


@pytest.mark.parametrize("tools", [OPENCODE, QWEN, CLINE])
def test_a_tool_that_loses_bytes_is_not_asked_where_there_is_a_shell(tools: tuple[Tool, ...], tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"a \r\nb")
    step = next(planned(read_of(path), place_of(*tools)))
    assert "cksum" in str(step.input)


@pytest.mark.parametrize(
    ("tools", "data", "name"),
    [
        (OPENCODE, b"x", "write"),
        (QWEN, b"x", "write_file"),
        (QWEN, b"x\r\n", "run_shell_command"),  # it makes line ends alike
        (CONTINUE, b"x\r\n", "Write"),
        (PI, b"x", "write"),
        (CLINE, b"x", "run_commands"),
        (CODEX, b"x", "exec_command"),
        (CLAUDE, b"x\r\n", "Write"),
    ],
)
def test_with_which_tool_a_file_is_written(tools: tuple[Tool, ...], data: bytes, name: str) -> None:
    assert next(planned(write_of("/w/a", data), place_of(*tools))).tool == name


def test_a_client_that_only_reads_is_not_written_to() -> None:
    """Claude Code without `Write` may not write."""
    tools = [one for one in CLAUDE if one["name"] != "Write"]
    assert plan_for(write_of("/w/a", b"x"), place_of(*tools)) is None


@pytest.mark.parametrize(
    "shown",
    [
        "ENOENT: no such file or directory",
        "a\n\n[3 more lines in file. Use offset=2 to continue.]",
        "a\N{REPLACEMENT CHARACTER}",
        "Error: binary file",
    ],
)
def test_what_is_no_whole_file_is_read_again_by_the_shell(shown: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"Error: \xff")
    run = shell(tmp_path)
    steps, results = driven(read_of(path), place_of(*PI), lambda step: shown if step.tool == "read" else run(step))
    assert steps[0].tool == "read" and {step.tool for step in steps[1:]} == {"bash"}
    assert content_of(results) == b"Error: \xff"


@rows(
    "change",
    [
        lambda text: text.replace("\r", "\n"),
        lambda text: text.replace("\t", " "),
        lambda text: text.replace("\r\n", "\n"),
        lambda text: text.replace("b", "c"),
        lambda text: text[:-1],
        lambda text: f"{text}\n",
        lambda text: f"Showing all lines\n{text}",
        lambda text: "",
    ],
)
@rows("args", [{}, {"offset": 2, "limit": 2}])
def test_what_a_tool_changed_is_noticed_and_read_by_the_shell(
    change: Show, args: dict[str, Any], tmp_path: Path
) -> None:
    """Also where the size is the same."""
    path, data = tmp_path / "a", b"a\n\tb\rb\n  c\r\nd\n"
    path.write_bytes(data)
    part = data if not args else b"\tb\rb\n  c\r\n"
    run = shell(tmp_path)

    def client(step: Step) -> Returned:
        return Returned(change(part.decode())) if step.tool == "read" else run(step)

    steps, (result,) = driven(read_of(path, **args), place_of(*PI), client)
    assert [step.tool for step in steps] == ["read", "bash", "bash"]
    assert result["read_result"]["success"]["content"] == part.decode()


@rows("args", [{}, {"offset": 2, "limit": 2}, {"offset": 3}, {"limit": 1}])
def test_what_a_tool_shows_as_it_is_takes_one_more_call(args: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"a\n\tb\n  c\r\nd\n")
    lines, first = path.read_bytes().decode().splitlines(keepends=True), args.get("offset", 1) - 1
    text = "".join(lines[first : first + args.get("limit", 9)])
    run = shell(tmp_path)
    steps, (result,) = driven(
        read_of(path, **args), place_of(*PI), lambda step: text if step.tool == "read" else run(step)
    )
    assert [step.tool for step in steps] == ["read", "bash"] and "cat " not in steps[1].input["command"]
    assert result["read_result"]["success"]["content"] == text


@pytest.mark.parametrize("shown", ["Error: 3", "1\tone"])
def test_claude_code_s_read_says_all_that_there_is(shown: str) -> None:
    steps, results = driven(read_of("/w/a"), place_of(*CLAUDE), lambda _: shown)
    assert [step.tool for step in steps] == ["Read"]
    assert content_of(results).decode() == ("one" if shown.startswith("1") else shown)


def test_a_shell_that_is_no_posix_shell_gets_no_commands_of_ours() -> None:
    place = place_of(*CODEX, posix=False)
    for request in (read_of("/a"), write_of("/a", b"x"), ExecRequest(1, "", "ls_args", {"path": "/a"})):
        assert plan_for(request, place) is None
    command = ExecRequest(1, "", "shell_args", {"command": "dir"})
    assert next(planned(command, place)).input["cmd"] == "dir"
    assert next(planned(read_of("/a"), place_of(*PI, posix=False))).tool == "read"


@pytest.mark.parametrize("kind", ["read_args", "write_args", "shell_args", "ls_args", "grep_args", "delete_args", ""])
def test_without_tools_there_is_no_plan(kind: str) -> None:
    assert plan_for(ExecRequest(1, "", kind, {"path": "/a", "command": "ls"}), place_of()) is None


@pytest.mark.parametrize("path", ["", "/a\nb", "/a\x1b"])
def test_a_path_that_no_command_can_name_is_left_to_the_client_s_own_tool(path: str) -> None:
    for request in (read_of(path), write_of(path, b"x")):
        assert plan_for(request, place_of(SHELL)) is None
        assert next(planned(request, place_of(*PI))).tool in ("read", "write")


# -- what a tool that writes says


def tells(text: str, failed: bool = False, *, writes: bool, folder: Path) -> Callable[[Step], Returned]:
    """A client of pi's tools whose tool says this. `writes`: whether it writes the file as well."""
    run = shell(folder)

    def client(step: Step) -> Returned:
        if step.tool == "bash":
            return run(step)
        if writes:
            Path(step.input["path"]).write_text(step.input["content"], newline="")
        return Returned(text, failed)

    return client


@rows(
    "text, failed, calls",
    [
        ("Wrote file successfully.", False, 1),
        ("File created successfully at: /w/a", False, 1),
        ("Successfully overwrote file: /w/a", False, 1),
        ("The file has been updated.", False, 1),
        ("ok", False, 1),
        ("", False, 1),
        ("null", False, 1),
        # what is not clear is looked at
        ("The file /w/a has been updated.", False, 2),
        ('{"success": true}', False, 2),
        ("Hm.", False, 2),
        ("42", False, 2),
    ],
)
def test_a_file_that_was_written(text: str, failed: bool, calls: int, tmp_path: Path) -> None:
    client = tells(text, failed, writes=True, folder=tmp_path)
    steps, (result,) = driven(write_of(tmp_path / "a", b"x\r\ty"), place_of(*PI), client)
    assert "success" in result["write_result"] and len(steps) == calls


NOT_WRITTEN = [
    ("Done", True),
    ("", True),
    ("Error: disk full", False),
    ("error writing file, not created", False),
    ("EACCES: permission denied", False),
    ("Permission denied", False),
    ("The user rejected this write; nothing was saved", False),
    ("File /w/a already exists. It was not overwritten", False),
    ('{"success": false}', False),
    ('{"isError":true,"message":"not created"}', False),
    ("The file could not be created: disk full", False),
    ("Nothing was written.", False),
    ("Write was unsuccessful", False),
    ("Not ok", False),
    ("Skipped: it exists", False),
    ("User declined the change", False),
    ("Waiting for approval of the change", False),
    ("Hm.", False),
    # good words that are taken back
    *((words, False) for words in ("success: false", "OK: false", "Created 0 files", "ok, but not written")),
    *((words, False) for words in ("Saved nothing", "Done with errors: disk full", "File updated: no")),
]


@rows("old", [None, b"old", b"y"])
@rows("text, failed", NOT_WRITTEN)
def test_a_file_that_was_not_written(text: str, failed: bool, old: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "a"
    if old is not None:
        path.write_bytes(old)
    client = tells(text, failed, writes=False, folder=tmp_path)
    _, (result,) = driven(write_of(path, b"x"), place_of(*PI), client)
    assert (text or "without saying why") in error_of([result])
    # without a shell
    _, (result,) = driven(write_of(path, b"x"), place_of(*PI[:1], *PI[2:]), client)
    assert (text or "without saying why") in error_of([result])
    if not failed and text:  # another tool of the name of Claude Code's
        _, (result,) = driven(write_of(path, b"x"), place_of(CONTINUE[1]), lambda _: text)
        assert text in error_of([result])
    path.unlink(missing_ok=True)


def test_the_words_of_the_check_may_be_in_the_command_that_a_client_shows(tmp_path: Path) -> None:
    def client(step: Step) -> str:
        if step.tool == "write":
            return "Hm."
        return f"$ {step.input['command']}\n{in_shell(step.input['command'])[1]}"

    _, (result,) = driven(write_of(tmp_path / "a", b"x"), place_of(*PI), client)
    assert "did not say" in error_of([result]) or "Hm." in error_of([result])
    (tmp_path / "a").write_bytes(b"x")
    _, (result,) = driven(write_of(tmp_path / "a", b"x"), place_of(*PI), client)
    assert "success" in result["write_result"]


@pytest.mark.parametrize("name", ["not.txt", "errors", "no", "0"])
def test_a_name_is_no_word_of_the_tool(name: str, tmp_path: Path) -> None:
    path, place = tmp_path / name, place_of(*(one for one in PI if one["name"] != "bash"))
    _, (result,) = driven(write_of(path, b"x"), place, file_tools)
    assert "success" in result["write_result"]


def test_words_that_nobody_knows_are_told_and_are_no_success() -> None:
    (result,) = driven(write_of("/w/a", b"x"), place_of(*PI[2:]), lambda _: "Hm.")[1]
    assert "did not say whether it wrote" in error_of([result])
    # Claude Code's tool, which says so when it fails
    (result,) = driven(write_of("/w/a", b"x"), place_of(*CLAUDE), lambda _: "Hm.")[1]
    assert "success" in result["write_result"]


UNREAD = "You must read file /w/a before overwriting it. Use the Read tool first"


def test_a_tool_that_insists_on_a_read_gets_it() -> None:
    seen = []

    def client(step: Step) -> Returned:
        seen.append(step.tool)
        if step.tool == "read":
            return Returned("<file>…</file>")
        return Returned("Wrote file successfully.") if "read" in seen else Returned(UNREAD, failed=True)

    steps, results = driven(write_of("/w/a", b"x"), place_of(*OPENCODE), client)
    assert [step.tool for step in steps] == ["write", "read", "write"]
    assert steps[1].input == {"filePath": "/w/a"} and steps[2] == steps[0]
    assert "success" in results[0]["write_result"]


def test_a_tool_that_insists_for_ever_is_not_asked_for_ever() -> None:
    steps, results = driven(write_of("/w/a", b"x"), place_of(*OPENCODE), lambda _: Returned(UNREAD, failed=True))
    assert len(steps) == 3 and error_of(results) == UNREAD


# -- sizes


def test_a_file_that_takes_too_many_calls_is_not_read_in_part(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x\r\n" * 200_000)

    def tiny(text: str) -> str:
        return text if len(text) < 2500 else text[:1000]

    steps, results = driven(read_of(path), place_of(SHELL), shell(tmp_path, tiny))
    assert "did not show the whole file" in error_of(results) and len(steps) <= MAX_CALLS + 2


def test_a_file_that_is_too_large_is_not_begun(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with path.open("wb") as file:
        file.truncate(5 * 1024 * 1024)
    steps, results = driven(read_of(path), place_of(SHELL), shell(tmp_path, head_only))
    assert str(5 * 1024 * 1024) in error_of(results) and len(steps) <= 2
    assert plan_for(write_of(path, b"x" * (4 * 1024 * 1024 + 1)), place_of(SHELL)) is None
    # short commands hold less
    for data, fits in ((b"x" * 1_300_000, True), (b"x" * 2_500_000, False)):
        plan = plan_for(write_of(path, data), place_of(*CLINE))
        assert (plan is not None) is fits
        assert plan is None or len(next(plan).input["commands"][0]) < 12_000


def test_a_shell_that_shows_nothing_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    steps, results = driven(read_of(path), place_of(SHELL), lambda _: "")
    assert len(steps) == 4 and "without saying why" in error_of(results)
    _, results = driven(write_of(path, b"x"), place_of(SHELL), lambda _: "")
    assert "without saying why" in error_of(results)


@pytest.mark.parametrize("lost", [0, 1])
def test_a_shell_that_loses_what_a_command_printed_is_asked_again(tmp_path: Path, lost: int) -> None:
    path = tmp_path / "a"
    seen: list[str] = []

    def loses(step: Step) -> str:
        seen.append(step.input["command"])
        printed = in_shell(step.input["command"])[1]
        return "" if len(seen) - 1 == lost else printed

    _, results = driven(write_of(path, b"new"), place_of(SHELL), loses)
    assert path.read_bytes() == b"new" and "success" in results[0]["write_result"]
    _, results = driven(read_of(path), place_of(SHELL), loses)
    assert results[0]["read_result"]["success"]["content"] == "new"


def test_a_plan_is_over_when_it_has_results() -> None:
    plan = planned(read_of("/w/a"), place_of(*CLAUDE))
    next(plan)
    assert isinstance(sent_to(plan, Returned("1\tx")), list)
    assert sent_to(plan, Returned("again")) is None
