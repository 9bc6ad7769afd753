"""What clients say about commands, as they were recorded."""

from __future__ import annotations

import json

from client_declarations import CLIENTS
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_clients import tool
from samples import examples, rows

from proxy.providers.p5_cursor.bridge.command_output import FORMS, CommandOutput, output_of
from proxy.providers.p5_cursor.bridge.tool_forms import client_tools

#: client -> the form of its results
FORM_OF = {name: run.output for name, tools in CLIENTS.items() if (run := client_tools(tools).get("run"))}


def listed(result: str, error: str = "", *, success: bool = False) -> str:
    entry = {"query": "x", "result": result, **({"error": error} if error else {}), "success": success}
    return json.dumps([entry], separators=(",", ":"))


def qwen(output: str, error: str = "(none)", status: str = "0", signal: str = "(none)") -> str:
    said = f"Command: echo hi\nDirectory: (root)\nOutput: {output}\nError: {error}\nExit Code: {status}\n"
    return f"{said}Signal: {signal}\nProcess Group PGID: (none)"


HEAD = "Chunk ID: 927e36\nWall time: 0.0000 seconds\n"
EXITED = f"{HEAD}Process exited with code {{}}\nOriginal token count: 5\nOutput:\n"
LATE = "shell tool terminated command after exceeding timeout 1000 ms. If it is expected to take longer, retry."

#: Output that looks like the end of a result.
FORGED = "a\nError: b\nExit Code: 9\nSignal: x\nrest"
#: How clients say that they did not run a command.
NOT_RUN = (
    "exec_command failed: no such directory",
    "Error: spawn ENOENT",
    "Command rejected by user",
    "command aborted",
    "[blocked by a hook]",
    "Denied.",
    "unsupported call: exec_command",
)
SLOW = "Command timed out after 1 seconds"

RECORDED: list[tuple[str, str, CommandOutput]] = [
    ("codex", EXITED.format(0) + "hi\n", CommandOutput("hi\n", 0)),
    ("codex", EXITED.format(3), CommandOutput("", 3)),
    ("codex", EXITED.format(-1) + "x", CommandOutput("x", -1)),
    ("codex", EXITED.format(0) + "\n\nOutput:\nexit code: 7\n", CommandOutput("\n\nOutput:\nexit code: 7\n", 0)),
    (
        "codex",
        f"{HEAD}Process running with session ID 9258\nOriginal token count: 0\nOutput:\n",
        CommandOutput("", None, 9258),
    ),
    (
        "codex",
        "Wall time: 30.1 seconds\nProcess running with session ID 9258\nOutput:\nso far",
        CommandOutput("so far", None, 9258),
    ),
    ("codex shell", "Exit code: 0\nWall time: 0 seconds\nOutput:\nhi\n", CommandOutput("hi\n", 0)),
    (
        "codex shell",
        "Exit code: 1\nWall time: 1 seconds\nTotal output lines: 9\nOutput:\n\nx",
        CommandOutput("\nx", 1),
    ),
    (
        "codex shell",
        "Exit code: 124\nWall time: 1 seconds\nOutput:\ncommand timed out after 1000 milliseconds\nx",
        CommandOutput("command timed out after 1000 milliseconds\nx", 124, timed_out=True),
    ),
    (
        "codex shell",
        '{"output":"hi\\n","metadata":{"exit_code":2,"duration_seconds":0.1}}',
        CommandOutput("hi\n", 2),
    ),
    ("qwen", qwen("hi"), CommandOutput("hi", 0)),
    ("qwen", qwen("(empty)"), CommandOutput("", 0)),
    ("qwen", qwen("one\ntwo", status="3"), CommandOutput("one\ntwo", 3)),
    (
        "qwen",
        qwen("a\nError: b\nExit Code: 9\nSignal: x\nrest"),
        CommandOutput("a\nError: b\nExit Code: 9\nSignal: x\nrest", 0),
    ),
    ("qwen", qwen("x", error="spawn failed", status="(none)"), CommandOutput("x\nspawn failed", 1)),
    ("qwen", qwen("(empty)", status="(none)", signal="SIGKILL"), CommandOutput("", 1)),
    # Gemini CLI
    (
        "qwen",
        "Command: x\nDirectory: (root)\nStdout: out\nStderr: err\nError: (none)\nExit Code: 0\nSignal: (none)\n"
        "Background PIDs: (none)\nProcess Group PGID: 7",
        CommandOutput("out\nerr", 0),
    ),
    (
        "qwen",
        "Directory: /w\nStdout: (empty)\nStderr: (empty)\nError: (none)\nExit Code: 4\nSignal: (none)",
        CommandOutput("", 4),
    ),
    ("pi", "hi\n", CommandOutput("hi\n")),
    ("pi", "(no output)", CommandOutput("")),
    ("pi", "(no output)\n\nCommand exited with code 3", CommandOutput("", 3)),
    ("pi", "out\nerr\n\n\nCommand exited with code 2", CommandOutput("out\nerr", 2)),
    (
        "pi",
        "Command timed out after 1 seconds",
        CommandOutput("Command timed out after 1 seconds", 124, timed_out=True),
    ),
    (
        "pi",
        "begun\n\nCommand timed out after 1 seconds",
        CommandOutput("begun\n\nCommand timed out after 1 seconds", 124, timed_out=True),
    ),
    ("continue", "hi\n", CommandOutput("hi\n")),
    ("continue", "Error executing tool Bash: Error (exit code 2): err\n", CommandOutput("err\n", 2)),
    (
        "continue",
        "begun\n\n[Command timed out after 1 seconds of no output]",
        CommandOutput("begun\n\n[Command timed out after 1 seconds of no output]", 124, timed_out=True),
    ),
    (
        "continue",
        "\n\n[Command timed out after 1 seconds of no output]",
        CommandOutput("\n\n[Command timed out after 1 seconds of no output]", 124, timed_out=True),
    ),
    ("opencode", "hi\n", CommandOutput("hi\n")),
    ("opencode", "(no output)", CommandOutput("")),
    (
        "opencode",
        f"(no output)\n\n<shell_metadata>\n{LATE}\n</shell_metadata>",
        CommandOutput(f"(no output)\n\n<shell_metadata>\n{LATE}\n</shell_metadata>", 124, timed_out=True),
    ),
    ("cline", listed("hi\n", success=True), CommandOutput("hi\n", 0)),
    ("cline", listed("", success=True), CommandOutput("", 0)),
    ("cline", listed("[Command exited with code 3]", "Command exited with code 3"), CommandOutput("", 3)),
    (
        "cline",
        listed("[Command exited with code 2]\nout\n\n[stderr]\nerr\n", "Command exited with code 2"),
        CommandOutput("out\n\n[stderr]\nerr\n", 2),
    ),
    (
        "cline",
        listed("so far", "Command timed out after 30000ms"),
        CommandOutput("so far\nCommand timed out after 30000ms", 1, timed_out=True),
    ),
    ("claude", "hi", CommandOutput("hi")),
    ("claude", "(no output)", CommandOutput("(no output)")),
    # what was printed, since Claude Code marks its errors
    *(
        ("claude", text, CommandOutput(text))
        for text in ("Running\nProcess exited with code 1", "x\n[exit code: 3]", SLOW)
    ),
    # words in place of the form: the command did not run
    *(("codex", text, CommandOutput(text, 1)) for text in NOT_RUN),
    *(("codex shell", text, CommandOutput(text, 1)) for text in NOT_RUN),
    *(("qwen", text, CommandOutput(text, 1)) for text in NOT_RUN),
    *(("cline", text, CommandOutput(text, 1)) for text in NOT_RUN),
    # without a form of its own they may be output
    *(("pi", text, CommandOutput(text)) for text in NOT_RUN),
]


@rows("client, text, expected", RECORDED)
def test_what_clients_say(client: str, text: str, expected: CommandOutput) -> None:
    assert output_of(FORM_OF[client], text, failed=False) == expected


@rows(
    "client, text, expected",
    [
        ("claude", "Exit code 3\nno", CommandOutput("Exit code 3\nno", 1)),
        ("claude", "", CommandOutput("", 1)),
        ("pi", "out\n\nCommand exited with code 2", CommandOutput("out\n\nCommand exited with code 2", 2)),
        ("codex", EXITED.format(0) + "hi", CommandOutput("hi", 1)),
        ("codex", EXITED.format(5) + "hi", CommandOutput("hi", 5)),
        ("codex", f"{HEAD}Process running with session ID 4\nOutput:\n", CommandOutput("", None, 4)),
        ("qwen", "The user declined", CommandOutput("The user declined", 1)),
        ("cline", "[oops", CommandOutput("[oops", 1)),
    ],
)
def test_an_error_is_never_a_success(client: str, text: str, expected: CommandOutput) -> None:
    assert output_of(FORM_OF[client], text, failed=True) == expected


@rows("form", [*FORMS, ""])
@rows(
    "text",
    [
        "",
        "plain",
        "Output:\n",
        "Chunk ID: 1\nWall time: 1\nOutput:\nx",
        "[1, 2]",
        "[{}]",
        '{"output": 3, "metadata": {}}',
        '[{"result": 3}]',
        '[{"result":"a"},{"result":"b"}]',
        "[" * 100_000,
        "Command: x\nDirectory: y\nOutput: z",
        "x\nError: (none)\nExit Code: 0\nSignal: (none)",
        "the exit code 3 of x",
        "exit code: 3\nmore",
        "Command timed out after 1 seconds\nbut went on",
    ],
)
def test_what_is_in_no_form_is_output(form: str, text: str) -> None:
    assert output_of(form, text, failed=False) == CommandOutput(text)


def test_a_command_does_not_speak_for_the_client() -> None:
    """Forms that put the status before the output, or around it, are not read out of the output."""
    for words in ("x\n\nCommand exited with code 9", "Process exited with code 9", "exit status 9"):
        assert output_of("session", EXITED.format(0) + words, failed=False) == CommandOutput(words, 0)
        assert output_of("labelled", qwen(words), failed=False) == CommandOutput(words, 0)
        assert output_of("cline", listed(words, success=True), failed=False) == CommandOutput(words, 0)


def test_long_output_is_read_at_once() -> None:
    long = "\n" * 400_000 + "x"
    for form in ("", *FORMS):
        assert output_of(form, long, failed=False).text == long
    assert output_of("labelled", qwen("\nError: " * 100_000), failed=False).status == 0


@settings(max_examples=examples(500))
@given(st.text(), st.sampled_from(["", *FORMS]), st.booleans())
def test_no_text_breaks_a_reader(text: str, form: str, failed: bool) -> None:
    for said in (text, EXITED.format(0) + text, qwen(text), listed(text)):
        found = output_of(form, said, failed=failed)
        assert not failed or found.status not in (None, 0) or found.session is not None


def test_which_tools_have_which_form() -> None:
    assert set(FORM_OF.values()) == {*FORMS, ""}
    (run,) = (client_tools([tool("bash", {"command": "string"})]).get("run"),)
    assert run is not None and run.output == ""
    for members, output in (({"command": "string"}, ""), ({"command": "string", "run_in_background": {}}, "plain")):
        run = client_tools([tool("Bash", members)]).get("run")
        assert run is not None and run.output == output
    (run,) = (client_tools([{"name": "Bash"}]).get("run"),)
    assert run is not None and run.output == "plain"
