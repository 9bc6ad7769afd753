"""Commands that stand in for tools for files: run for real, and what they print."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plan_clients import in_shell
from samples import examples, rows

from proxy.providers.p5_cursor.bridge.commands import (
    MAX_LINES,
    Script,
    Source,
    complaint,
    delete_command,
    deleted,
    fits_shell,
    found,
    list_command,
    listed,
    piece_back,
    piece_command,
    quoted,
    read_back,
    read_command,
    search_command,
    size_command,
    size_of,
    write_script,
)

SHELLS = ("bash", "dash", "sh")
#: What may be lost or changed on the way.
CONTENTS: dict[str, bytes] = {
    "empty": b"",
    "no line end": b"a",
    "one line": b"a\n",
    "blank lines": b"\n\n\n",
    "blanks": b"  a \t\n \n\t",
    "CRLF": b"a\r\nb\r\n",
    "quotes": b"it's \"$HOME\" `id` $(id) \\n \\\n!! 'x'\n",
    "marks": b"EOF\nEND_OF_FILE\nEND_OF_FILE_\n[end of file]\n[begin of file]\n3\nEND_OF_FILE",
    "marks of pieces": b"[piece of file]\nYQ==\n[end of piece]\n[written: 3 bytes]\n",
    "a size as the last line": b"x\r\n0\n",
    "characters": "é中😀\u2028\ufeff\n".encode(),
    "control characters": b"\x01\x1b[31m\x07\x7f\n",
    "all bytes": bytes(range(256)),
    "NUL": b"a\x00b",
    "half a character": b"\xf0\x9f\x98 \xe4\xb8",
    "the sign for none": "\ufffd\n".encode(),
    "long": ("x" * 79 + "\n").encode() * 13_107,
    "long line": "é".encode() * 100_001,
}


def run_all(script: Script, shell: str) -> str:
    """The output of the last command; no command fails."""
    printed = ""
    for command in script.commands:
        status, printed = in_shell(command, shell)
        assert status == 0, printed
    return printed


def read(path: Path, shell: str = "bash", offset: int | None = None, limit: int | None = None) -> str:
    return in_shell(read_command(Source(str(path), offset, limit)), shell)[1]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize("name", CONTENTS)
def test_a_file_is_written_byte_by_byte(name: str, encoded: bool, shell: str, tmp_path: Path) -> None:
    path, data = tmp_path / "new folder" / "it's $HOME `x` é.txt", CONTENTS[name]
    for most in (0, 11_000):
        script = write_script(str(path), data, encoded=encoded, most=most)
        assert all(len(command.encode()) < (most or 128 * 1024) for command in script.commands)
        assert script.done(run_all(script, shell))
        assert path.read_bytes() == data
        assert list(path.parent.iterdir()) == [path]
        path.write_bytes(b"the old one")


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("name", CONTENTS)
def test_a_file_is_read_byte_by_byte_or_not_at_all(name: str, shell: str, tmp_path: Path) -> None:
    path, data = tmp_path / "it's $HOME.txt", CONTENTS[name]
    path.write_bytes(data)
    printed = read(path, shell)
    is_text = name not in ("all bytes", "half a character", "the sign for none")
    assert read_back(printed) == (data if is_text else None)
    assert size_of(printed) == len(data)
    got = b""
    while len(got) < len(data):
        piece = piece_back(in_shell(piece_command(Source(str(path)), len(got), 30_000), shell)[1])
        assert piece
        got += piece
    assert got == data


@rows(
    "change",
    [
        lambda text: text.replace("\r\n", "\n"),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\n".join(line.rstrip() for line in text.split("\n")),
        lambda text: text[: len(text) // 2],
        lambda text: text[len(text) // 2 :],
        lambda text: text[:8] + "…" + text[12:],
        lambda text: text.replace("$HOME", "/home/me"),
        lambda text: "",
    ],
)
@rows("name", CONTENTS)
def test_what_a_client_changed_is_no_file(change: Any, name: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(CONTENTS[name])
    assert read_back(change(read(path))) in (None, CONTENTS[name])


@rows("before", ["", "12\n", "5 packages can be updated\n", "Last login: today\n[x]\n", "\n\n", "bash: warning\r\n"])
@rows("after", ["", "\n", "\nShell cwd was reset to /w", "\r\n"])
def test_what_a_shell_prints_around_a_file_is_not_part_of_it(before: str, after: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    for data in (b"", b"x", b"7\nabc\n", b"0\n"):
        path.write_bytes(data)
        printed = before + read(path) + after
        assert (read_back(printed), size_of(printed)) == (data, len(data))
        assert size_of(before + in_shell(size_command(Source(str(path))))[1]) == len(data)


@rows(
    "printed",
    [
        "",
        "12\n",
        "12 /w/a\nabc",
        "[begin of file]\n",
        "[begin of file]\n12",
        "[begin of file]\nwc: /w/a: No such file or directory\n",
        "[begin of file]\n-3 /w/a\n",
        "x[begin of file]\n3\n",
    ],
)
def test_what_names_no_size(printed: str) -> None:
    assert size_of(printed) is None and read_back(printed) is None


def test_the_size_as_other_systems_print_it() -> None:
    for line in ("       4 /w/a", "4", "4\r", "\t4 /w/a b"):
        assert read_back(f"[begin of file]\n{line}\na\nb\n[end of file]\n") == b"a\nb\n"


@rows("printed", ["", "YQ==", "[piece of file]\nYQ==\n", "[piece of file]\nY…==\n[end of piece]", "[end of piece]"])
def test_what_is_no_piece(printed: str) -> None:
    assert piece_back(printed) is None


def test_a_piece_behind_its_own_command() -> None:
    assert piece_back(f"$ {piece_command(Source('/a'), 0, 3)}\n[piece of file]\r\nYW\r\nI=\r\n[end of piece]") == b"ab"


@pytest.mark.parametrize("shell", SHELLS)
def test_a_part_of_a_file(shell: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("1\n2\n3\n4\n5")
    for offset, limit, text in (
        (2, 2, "2\n3\n"),
        (None, 2, "1\n2\n"),
        (0, 1, "1\n"),
        (4, None, "4\n5"),
        (1, None, "1\n2\n3\n4\n5"),
        (9, 3, ""),
        (-2, None, "4\n5"),
        (-3, 1, "3\n"),
        (-9, None, "1\n2\n3\n4\n5"),
    ):
        source = Source(str(path), offset, limit)
        assert read_back(read(path, shell, offset, limit)) == text.encode()
        assert (piece_back(in_shell(piece_command(source, 0, 99), shell)[1]) or b"") == text.encode()


@pytest.mark.parametrize("shell", SHELLS)
def test_what_is_no_file_has_words(shell: str, tmp_path: Path) -> None:
    for path, words in ((tmp_path / "missing", "No such file"), (tmp_path, "directory")):
        printed = read(path, shell)
        assert read_back(printed) is None and not size_of(printed)
        assert words in complaint(printed) and "[begin" not in complaint(printed)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("most", [0, 2000])
def test_a_file_keeps_its_mode_and_a_link_its_file(shell: str, most: int, tmp_path: Path) -> None:
    path, link, name = tmp_path / "run.sh", tmp_path / "link", b"#!/bin/sh\n" * 300
    path.write_text("old")
    path.chmod(0o751)
    link.symlink_to("run.sh")
    (tmp_path / "folder").mkdir()
    far = tmp_path / "folder" / "far"
    far.symlink_to("../link")
    for place in (path, link, far):
        path.write_text("old")
        script = write_script(str(place), name, most=most)
        assert script.done(run_all(script, shell))
        assert path.read_bytes() == name and path.stat().st_mode & 0o777 == 0o751
        assert link.is_symlink() and far.is_symlink() and not path.is_symlink()
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["far", "folder", "link", "run.sh"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_link_to_nothing_gets_its_file(shell: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("new")
    script = write_script(str(tmp_path / "link"), b"x")
    assert script.done(run_all(script, shell))
    assert (tmp_path / "link").is_symlink() and (tmp_path / "new").read_bytes() == b"x"


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("most", [0, 2000])
def test_a_folder_is_not_replaced(shell: str, most: int, tmp_path: Path) -> None:
    folder, link = tmp_path / "folder", tmp_path / "link"
    folder.mkdir()
    link.symlink_to("folder")
    for path in (folder, link):
        script = write_script(str(path), b"x" * 3000, most=most)
        outcomes = [in_shell(command, shell) for command in script.commands]
        assert outcomes[0] == (1, "not a file\n") and not any(script.done(printed) for _, printed in outcomes)
        in_shell(script.undo, shell)
        assert folder.is_dir() and link.is_symlink() and sorted(tmp_path.rglob("*")) == [folder, link]


def test_a_file_that_is_read_only_is_not_replaced(tmp_path: Path) -> None:
    """The check stands before anything is made. Root may write everywhere, so there it has no effect."""
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(0o444)
    script = write_script(str(path), b"new")
    (command,) = script.commands
    lines = command.split("\n")
    check = next(number for number, line in enumerate(lines) if '[ -w "$f" ] || { echo' in line and "exit 1" in line)
    assert check < min(number for number, line in enumerate(lines) if '>"$t"' in line or "cp -p" in line)
    if os.geteuid() != 0:
        status, printed = in_shell(command)
        assert status == 1 and "read-only" in printed
        assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("shell", SHELLS)
def test_what_was_changed_on_the_way_is_not_written(shell: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    for data, was, became in (
        (b"one \ntwo\n", "one \n", "one\n"),  # the line end before the mark makes up for it
        (b"one\ttwo", "one\t", "one "),
        (b"one\r\ntwo", "\r", ""),
        (b"one\ntwo", "one\n", "one\r\n"),
        (b"$HOME", "$HOME", "/root"),
        (b"one two", "one two", "one"),
    ):
        script = write_script(str(path), data)
        status, printed = in_shell(script.commands[0].replace(was, became), shell)
        assert status == 1 and printed == "[bytes differ]\n" and not script.done(printed)
        assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_file_that_was_written_in_part_is_removed(shell: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    script = write_script(str(path), b"x" * 5000, most=2000)
    assert len(script.commands) > 3
    for command in script.commands[:2]:
        assert in_shell(command, shell)[0] == 0
    assert path.read_text() == "old" and len(list(tmp_path.iterdir())) == 2
    assert in_shell(script.undo, shell) == (0, "")
    assert list(tmp_path.iterdir()) == [path]
    # the end without the beginning writes nothing
    status, printed = in_shell(script.commands[-1], shell)
    assert status == 1 and not script.done(printed) and list(tmp_path.iterdir()) == [path]
    assert path.read_text() == "old" and in_shell(script.undo, shell) == (0, "")


def test_a_shell_goes_on_as_it_was(tmp_path: Path) -> None:
    """A client may keep its shell: neither an error nor a variable may stay."""
    (command,) = write_script(str(tmp_path), b"x").commands
    status, printed = in_shell(f'f=mine\n{command}\necho "$f $?"\nfalse\necho still here')
    assert (status, printed.splitlines()) == (0, ["not a file", "mine 1", "still here"])


def test_the_file_is_not_written_where_moving_fails_and_nobody_minds(tmp_path: Path) -> None:
    script = write_script(str(tmp_path / "a"), b"x")
    command = script.commands[0].replace("mv -f", "false")
    assert not script.done(in_shell(f"{command} && echo done")[1]) and list(tmp_path.iterdir()) == []


@rows("name", ["x" * 255, "é" * 127, "中" * 85, "😀" * 63, "-rf", "-", ".hidden", " ", "a b  c", "*", "~"])
def test_names_that_a_folder_may_hold(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    script = write_script(str(path), b"x")
    assert script.done(run_all(script, "bash")) and path.read_bytes() == b"x"
    assert read_back(read(path)) == b"x"
    assert deleted(in_shell(delete_command(str(path)))[1]) and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["-rf", "--help", "a", "./b", "c/d", "-x/y"])
def test_names_without_a_folder(name: str, tmp_path: Path) -> None:
    script = write_script(name, b"x")
    assert script.done(in_shell(script.commands[0], directory=tmp_path)[1])
    assert (tmp_path / name).read_bytes() == b"x"
    assert read_back(in_shell(read_command(Source(name)), directory=tmp_path)[1]) == b"x"
    assert deleted(in_shell(delete_command(name), directory=tmp_path)[1]) and not (tmp_path / name).exists()


@rows("path, expected", [("/a b", True), *((path, False) for path in ("", "a\nb", "a\tb", "a\rb", "\x1b"))])
def test_which_paths_can_be_named(path: str, expected: bool) -> None:
    assert fits_shell(path) is expected


# -- folders


@pytest.mark.parametrize("shell", SHELLS)
def test_the_entries_of_a_folder(shell: str, tmp_path: Path) -> None:
    for name in ("b.txt", "a b.py", ".hidden", "skip.pyc", "it's"):
        (tmp_path / name).write_text("")
    for name in ("folder", "node_modules", "[end of file]"):
        (tmp_path / name).mkdir()
    path = str(tmp_path)
    status, printed = in_shell(list_command(path), shell)
    for said in (printed, f"Welcome\n3 updates\n{printed}", printed.replace("\n", "\r\n")):
        root = listed(said, path, ["*.pyc", "node_modules"])
        assert status == 0 and root is not None and root["abs_path"] == path
        assert sorted(one["name"] for one in root["children_files"]) == [".hidden", "a b.py", "b.txt", "it's"]
        assert {one["abs_path"] for one in root["children_dirs"]} == {f"{path}/folder", f"{path}/[end of file]"}
        assert root["num_files"] == 4 and root["children_were_processed"] is True


@pytest.mark.parametrize("shell", SHELLS)
def test_what_is_no_folder(shell: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name in ("missing", "file"):
        assert listed(in_shell(list_command(str(tmp_path / name)), shell)[1], "/x", []) is None
    for printed in ("", "a\nb", "[end of file]", "a\n[end of file]"):
        assert listed(printed, "/x", []) is None


def test_an_empty_folder(tmp_path: Path) -> None:
    root = listed(in_shell(list_command(str(tmp_path)))[1], str(tmp_path), [])
    assert root is not None and root["children_files"] == root["children_dirs"] == []


def test_what_cannot_be_removed(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        status, printed = in_shell(delete_command(str(path)))
        assert status != 0 and not deleted(printed) and printed.startswith("rm: ")


# -- searches


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("one\nNeedle 1\nthree\n")
    (tmp_path / "report-2024-01.txt").write_text("x\nneedle = d[1:5:2]\ny-7-z\n")
    (tmp_path / "none.ts").write_text("nothing\n")
    return tmp_path


def search(tree: Path, shell: str = "bash", **args: Any) -> dict[str, Any]:
    printed = in_shell(search_command(args, str(tree)), shell)[1]
    success = found(printed, args, str(tree))
    assert success is not None, printed
    assert success["path"] == str(tree)
    if success["output_mode"] != "content":  # a client may have line ends of its own
        assert found(printed.replace("\n", "\r\n"), args, str(tree)) == success
    union: dict[str, Any] = success["workspace_results"][str(tree)][_ARMS[success["output_mode"]]]
    return union


_ARMS = {"files_with_matches": "files", "count": "count", "content": "content"}


@pytest.mark.parametrize("shell", SHELLS)
def test_the_lines_that_a_search_finds(shell: str, tree: Path) -> None:
    union = search(tree, shell, pattern="[n]eedle", case_insensitive=True)
    assert sorted(union["matches"], key=lambda one: one["file"]) == [
        {
            "file": f"{tree}/report-2024-01.txt",
            "matches": [{"line_number": 2, "content": "needle = d[1:5:2]"}],
        },
        {"file": f"{tree}/src/a.py", "matches": [{"line_number": 2, "content": "Needle 1"}]},
    ]
    assert (union["total_lines"], union["total_matched_lines"]) == (2, 2) and "client_truncated" not in union


@pytest.mark.parametrize("shell", SHELLS)
def test_lines_beside_those_that_a_search_finds(shell: str, tree: Path) -> None:
    (tree / "src" / "a.py").write_text("x = d[1:5:2]\nneedle\nthree\n")
    union = search(tree, shell, pattern="needle", context=1)
    assert {one["file"]: one["matches"] for one in union["matches"]} == {
        f"{tree}/report-2024-01.txt": [
            {"line_number": 1, "content": "x", "is_context_line": True},
            {"line_number": 2, "content": "needle = d[1:5:2]"},
            {"line_number": 3, "content": "y-7-z", "is_context_line": True},
        ],
        f"{tree}/src/a.py": [
            {"line_number": 1, "content": "x = d[1:5:2]", "is_context_line": True},
            {"line_number": 2, "content": "needle"},
            {"line_number": 3, "content": "three", "is_context_line": True},
        ],
    }
    assert (union["total_lines"], union["total_matched_lines"]) == (6, 2)
    before = search(tree, pattern="needle", context_before=1, glob="*.py")
    assert [one["line_number"] for one in before["matches"][0]["matches"]] == [1, 2]


@rows(
    "args, files",
    [
        ({"pattern": "needle", "output_mode": "files_with_matches"}, ["report-2024-01.txt"]),
        ({"glob": "*.py"}, ["src/a.py"]),
        ({"glob": "**/*.{py,ts}"}, ["none.ts", "src/a.py"]),
        ({"glob": "src/**"}, ["none.ts", "report-2024-01.txt", "src/a.py"]),
        ({"glob": "*.rs"}, []),
        ({}, ["none.ts", "report-2024-01.txt", "src/a.py"]),
        ({"pattern": "n", "glob": "*.{ts,rs}", "output_mode": "files_with_matches"}, ["none.ts"]),
    ],
)
def test_the_files_that_a_search_finds(args: dict[str, Any], files: list[str], tree: Path) -> None:
    union = search(tree, **args)
    assert sorted(union["files"]) == [f"{tree}/{name}" for name in files] and union["total_files"] == len(files)


def test_the_counts_of_a_search(tree: Path) -> None:
    union = search(tree, pattern="e", output_mode="count")
    counts = {one["file"]: one["count"] for one in union["counts"]}
    assert counts == {f"{tree}/src/a.py": 3, f"{tree}/report-2024-01.txt": 1}
    assert (union["total_files"], union["total_matches"]) == (2, 4)


def test_a_search_that_finds_nothing_and_one_that_cannot_be(tree: Path) -> None:
    assert search(tree, pattern="not there")["matches"] == []
    for args, path in (({"pattern": "("}, tree), ({"pattern": "x"}, tree / "missing"), ({"glob": "*"}, tree / "no")):
        assert found(in_shell(search_command(args, str(path)))[1], args, str(path)) is None
    assert found("", {"pattern": "x"}, str(tree)) is None


def test_a_search_that_finds_too_much_says_so(tree: Path) -> None:
    (tree / "long").write_text("needle\n" * (MAX_LINES + 10))
    union = search(tree, pattern="needle", glob="long")
    assert union["client_truncated"] is True and union["total_matched_lines"] == MAX_LINES


def test_a_pattern_is_a_pattern_and_nothing_else(tree: Path) -> None:
    (tree / "odd").write_text("it's $HOME -e `x`\n")
    for pattern in ("it's", "-e", "[$]HOME", "`x`"):
        assert search(tree, pattern=pattern)["total_matched_lines"] == 1


# -- properties


@settings(max_examples=examples(200), deadline=None)
@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00")))
def test_any_word_can_be_quoted(word: str) -> None:
    printed = subprocess.run(["sh", "-c", f"printf %s {quoted(word)}"], capture_output=True, check=True).stdout
    assert printed == word.encode()


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")), st.booleans())
def test_what_is_written_is_read(tmp_path: Path, data: bytes, encoded: bool) -> None:
    path = tmp_path / "a"
    script = write_script(str(path), data, encoded=encoded)
    assert script.done(run_all(script, "sh")) and path.read_bytes() == data
    printed = read(path, "sh")
    assert read_back(printed) in (None, data) and size_of(printed) == len(data)
    if data:
        assert piece_back(in_shell(piece_command(Source(str(path)), 0, len(data)), "sh")[1]) == data


@settings(max_examples=examples(500))
@given(st.text(), st.text())
def test_no_text_breaks_a_reader(printed: str, path: str) -> None:
    for text in (printed, f"[begin of file]\n{printed}[end of file]", f"[piece of file]{printed}[end of piece]"):
        read_back(text), size_of(text), piece_back(text), deleted(text), complaint(text)
        listed(text, path, ["*"])
        for mode in ("content", "count", "files_with_matches"):
            found(f"{path}{text}", {"pattern": "x", "output_mode": mode}, path)
