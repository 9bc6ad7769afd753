"""Files as clients show them, as they were recorded."""

from __future__ import annotations

import json

import pytest
from client_declarations import CLIENTS
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_clients import OPEN, tool
from samples import examples, rows

from proxy.providers.p5_cursor.bridge.file_views import MAX_ERROR_CHARS, NoFile, file_view, may_be_error
from proxy.providers.p5_cursor.bridge.numbered_lines import FileText
from proxy.providers.p5_cursor.bridge.tool_forms import ClientTool, client_tools

#: client -> its tool that reads
READERS: dict[str, ClientTool] = {
    name: read
    for name, tools in {
        **CLIENTS,
        "open": (OPEN["Read"],),
        "editor": (tool("view", {"path": "string"}),),
    }.items()
    if (read := client_tools(tools).get("read")) is not None
}


def tagged(body: str, note: str) -> str:
    return f"<path>/w/nl.txt</path>\n<type>file</type>\n<content>\n{body}\n\n({note})\n</content>"


def listed(result: str, *, success: bool = True, **members: str) -> str:
    return json.dumps([{"query": "/w/nl.txt", "result": result, "success": success, **members}])


CUT = "[Showing lines 1-2 of 2502. Use offset=3 to continue.]"

RECORDED: list[tuple[str, str, FileText]] = [
    # opencode: the end of the last line is not known
    ("opencode", tagged("1: one\n2: two\n3: ", "End of file - total 3 lines"), FileText("one\ntwo\n\n")),
    ("opencode", tagged("1: one", "End of file - total 1 lines"), FileText("one\n")),
    ("opencode", tagged("1:   x  \n2: \t2: y", "End of file - total 2 lines"), FileText("  x  \n\t2: y\n")),
    ("opencode", tagged("", "End of file - total 0 lines"), FileText("")),
    (
        "opencode",
        tagged("1: one\n2: two", "Showing lines 1-2 of 2501. Use offset=3 to continue."),
        FileText("one\ntwo\n", truncated=True),
    ),
    ("opencode", tagged("7: one", "Output capped at 50 KB. Use offset=8 to continue."), FileText("one\n", True)),
    (
        "opencode",
        "<file>\n00001| one\n00002| two\n\n(End of file - total 2 lines)\n</file>",
        FileText("one\ntwo\n"),
    ),
    # pi: the file as it is
    ("pi", "one\ntwo", FileText("one\ntwo")),
    ("pi", "one\ntwo\n", FileText("one\ntwo\n")),
    ("pi", "1: one\n2: two\n", FileText("1: one\n2: two\n")),
    ("pi", "1\tone\n2\ttwo\n", FileText("1\tone\n2\ttwo\n")),
    ("pi", "(no tool output)", FileText("")),
    ("pi", f"one\ntwo\n\n{CUT}", FileText("one\ntwo\n", truncated=True)),
    ("pi", "one\n\n[2496 more lines in file. Use offset=7 to continue.]", FileText("one\n", truncated=True)),
    ("pi", f"one\n{CUT}\nmore", FileText(f"one\n{CUT}\nmore")),
    ("pi", "a\N{REPLACEMENT CHARACTER}b", FileText("a\N{REPLACEMENT CHARACTER}b", truncated=True)),
    # Continue: a title
    ("continue", "Content of /w/nl.txt:\nfirst\n", FileText("first\n")),
    ("continue", "Content of /w/nl.txt:\n", FileText("")),
    ("continue", "Content of /w/nl.txt:\nContent of /w/nl.txt:\n", FileText("Content of /w/nl.txt:\n")),
    ("continue", "Content of /w/other.txt:\nx", FileText("Content of /w/other.txt:\nx")),
    # Cline: a list of one
    ("cline", listed("1 | one\n2 | two\n3 | "), FileText("one\ntwo\n\n")),
    ("cline", listed("  9 | a\n 10 | b | c"), FileText("a\nb | c\n")),
    ("cline", listed(""), FileText("")),
    ("cline", listed(f"1 | one\n\n{CUT}"), FileText("one\n", truncated=True)),
    # Qwen Code, Gemini CLI
    ("qwen", "one\ntwo", FileText("one\ntwo")),
    ("qwen", "Showing lines 1-2 of 2502 total lines.\n\n---\n\none\ntwo", FileText("one\ntwo", truncated=True)),
    # Claude Code's forms, of a tool by the same name and by others
    ("claude", "     1→one\n     2→two", FileText("one\ntwo")),
    ("claude", "1\tone\n2\t", FileText("one\n")),
    ("open", "1\tone\n2\ttwo", FileText("one\ntwo")),
    ("editor", "     1\tone\n     2\ttwo", FileText("one\ntwo")),
    ("editor", "     1→one\n     2→two\n", FileText("one\ntwo\n")),
    ("editor", "1\tone", FileText("1\tone")),
    ("editor", "The file is empty", FileText("The file is empty")),
    ("editor", "(the file is empty)", FileText("")),
    ("editor", "", FileText("")),
]


@rows("client, text, expected", RECORDED)
def test_files_as_clients_show_them(client: str, text: str, expected: FileText) -> None:
    assert file_view(READERS[client], "/w/nl.txt", text, None, None) == expected


@rows(
    "client, text, words",
    [
        (
            "continue",
            "Error executing tool Read: File does not exist: /w/missing.txt",
            "File does not exist: /w/missing.txt",
        ),
        ("cline", listed("", success=False, error="File not found"), "File not found"),
        ("cline", listed("No such file", success=False), "No such file"),
    ],
)
def test_errors_in_the_form_of_a_client(client: str, text: str, words: str) -> None:
    with pytest.raises(NoFile, match=words):
        file_view(READERS[client], "/w/nl.txt", text, None, None)


@rows("client", READERS)
@rows(
    "data",
    [
        "[{}]",
        "[" * 10_000,
        '[{"a": 1}]\n',
        '[{"query":"x"}]',
        '[{"query":"x","result":"not numbered\\nx"}]',
        "<file>\nx\n</file>\n",
        "<path>a</path>\n<type>file</type>\n<content>\nx\n</content>",
        "<file>\nx\n\n(note)\n</file>",
        "Showing lines 1-2 of 3\n",
        "a\n\n---\n\nb",
        "x\n\n[3 more lines]\n",
    ],
)
def test_a_file_that_looks_like_a_form_is_itself(client: str, data: str) -> None:
    found = file_view(READERS[client], "/w/nl.txt", data, None, None)
    assert found.content == data


@rows("data", [tagged("1: one", "End of file - total 1 lines"), listed("1 | one"), listed("", success=False)])
@rows("client", ["pi", "continue", "claude", "open", "editor"])
def test_a_file_in_the_form_of_another_client_is_itself(client: str, data: str) -> None:
    assert file_view(READERS[client], "/w/nl.txt", data, None, None).content == data


@rows(
    "text, expected",
    [
        ("ENOENT: no such file or directory, access '/w/missing.txt'", True),
        ("EISDIR: illegal operation on a directory, read", True),
        ("Error: File not found: /w/x", True),
        ("error: x", True),
        ("File /w/x.txt does not exist.", True),
        ("File not found: /w/x", True),
        ("Path /w is a directory, not a file", True),
        ("Permission denied", True),
        ("Cannot read /w/x", True),
        ("Failed to read file", True),
        ("The user rejected this call", True),
        ("<error>No such file</error>", True),
        ("errors = 3", False),
        ("def error(): ...", False),
        ("# File formats\n", False),
        ("one\nError: two", False),
        ("", False),
        ("Error: " + "x" * MAX_ERROR_CHARS, False),
    ],
)
def test_what_may_be_an_error(text: str, expected: bool) -> None:
    assert may_be_error(text) is expected


def numbered(form: str, lines: list[str]) -> str:
    return "\n".join(form.format(number, line) for number, line in enumerate(lines, 1))


_LINES = st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=("Cs",))), min_size=1, max_size=9)


@settings(max_examples=examples(400))
@given(_LINES)
def test_lines_lose_their_numbers_and_nothing_else(lines: list[str]) -> None:
    whole = FileText("\n".join(lines) + "\n")
    body = numbered("{}: {}", lines)
    shown = tagged(body, f"End of file - total {len(lines)} lines")
    assert file_view(READERS["opencode"], "/w/nl.txt", shown, None, None) == whole
    shown = listed(numbered("{} | {}", lines))
    assert file_view(READERS["cline"], "/w/nl.txt", shown, None, None) == whole


@settings(max_examples=examples(400))
@given(st.text(), st.sampled_from(sorted(READERS)))
def test_no_text_breaks_a_reader(text: str, client: str) -> None:
    for shown in (text, tagged(text, text), listed(text), f"Content of /w/nl.txt:\n{text}", f"{text}\n\n{CUT}"):
        assert isinstance(file_view(READERS[client], "/w/nl.txt", shown, None, None), FileText)


def test_long_texts_are_read_at_once() -> None:
    for text in ("\n" * 400_000, " " * 400_000, "1: \n" * 200_000, "<file>\n" + "x\n\n(" * 100_000):
        for reader in READERS.values():
            file_view(reader, "/w/nl.txt", text, None, None)
