"""Commands that list folders, search and delete: run for real, and what they print."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_clients import in_shell
from samples import examples, rows

from proxy.providers.p5_cursor.bridge.search_commands import (
    MAX_LINES,
    delete_command,
    deleted,
    found,
    list_command,
    listed,
    search_command,
)

SHELLS = ("bash", "dash", "sh")
#: In the marks of the commands.
TAG = "7f3a"
BEGIN, END = f"[begin {TAG}]", f"[end {TAG} "


# -- folders


@pytest.mark.parametrize("shell", SHELLS)
def test_the_entries_of_a_folder(shell: str, tmp_path: Path) -> None:
    for name in ("b.txt", "a b.py", ".hidden", "skip.pyc", "it's"):
        (tmp_path / name).write_text("")
    for name in ("folder", "node_modules", "[end 7f3b 1]"):
        (tmp_path / name).mkdir()
    path = str(tmp_path)
    status, printed = in_shell(list_command(path, TAG), shell)
    for said in (printed, f"Welcome\n3 updates\n{printed}", printed.replace("\n", "\r\n")):
        root = listed(said, TAG, path, ["*.pyc", "node_modules"])
        assert status == 0 and root is not None and root["abs_path"] == path
        assert sorted(one["name"] for one in root["children_files"]) == [".hidden", "a b.py", "b.txt", "it's"]
        assert {one["abs_path"] for one in root["children_dirs"]} == {f"{path}/folder", f"{path}/[end 7f3b 1]"}
        assert root["num_files"] == 4 and root["children_were_processed"] is True


@pytest.mark.parametrize("shell", SHELLS)
def test_what_is_no_folder(shell: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name in ("missing", "file"):
        assert listed(in_shell(list_command(str(tmp_path / name), TAG), shell)[1], TAG, "/x", []) is None
    for printed in (
        "",
        "a\nb",
        f"{END}0]",
        f"a\n{END}1]",
        f"{BEGIN}\na\n",
        f"{BEGIN}\na\n{END}",
        "[begin]\na\n[end 1]",
    ):
        assert listed(printed, TAG, "/x", []) is None


def test_an_empty_folder(tmp_path: Path) -> None:
    root = listed(in_shell(list_command(str(tmp_path), TAG))[1], TAG, str(tmp_path), [])
    assert root is not None and root["children_files"] == root["children_dirs"] == []


def test_a_folder_with_too_many_entries_is_told_as_cut(tmp_path: Path) -> None:
    for number in range(MAX_LINES + 500):
        (tmp_path / f"{number:04}").touch()
    printed = in_shell(list_command(str(tmp_path), TAG))[1]
    root = listed(printed, TAG, str(tmp_path), [])
    assert root is not None and root["num_files"] == MAX_LINES and root["children_were_processed"] is False
    (tmp_path / "2499").unlink()
    for number in range(MAX_LINES, MAX_LINES + 499):
        (tmp_path / f"{number:04}").unlink()
    root = listed(in_shell(list_command(str(tmp_path), TAG))[1], TAG, str(tmp_path), [])
    assert root is not None and root["num_files"] == MAX_LINES and root["children_were_processed"] is True


@rows(
    "cut",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text[len(text) // 2 :],
        lambda text: f"{text[:60]}\n…12 chars truncated…\n{text[-60:]}",
        lambda text: f"{text[:60]}{text[-60:]}",
        lambda text: "\n".join(line for line in text.split("\n") if line != "007"),
    ],
)
def test_a_list_that_the_client_cut_is_none(cut: Any, tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / f"{number:03}").touch()
    printed = in_shell(list_command(str(tmp_path), TAG))[1]
    assert listed(printed, TAG, str(tmp_path), []) is not None
    assert listed(cut(printed), TAG, str(tmp_path), []) is None


@pytest.mark.parametrize("shell", SHELLS)
def test_a_folder_that_cannot_be_read_is_none(shell: str, tmp_path: Path) -> None:
    """Root may read everywhere, so there `ls` fails by itself."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").touch()
    folder.chmod(0)
    command = list_command(str(folder), TAG)
    if os.geteuid() == 0:
        failing = "ls() { echo \"ls: cannot open directory '$2': Permission denied\" >&2; return 2; }"
        command = f"{failing}\n{command}"
    status, printed = in_shell(command, shell)
    folder.chmod(0o700)
    assert status != 0 and listed(printed, TAG, str(folder), []) is None and "Permission denied" in printed


@rows("name", ["-rf", "-", "--help", "it's", " ", "*"])
def test_what_is_removed(name: str, tmp_path: Path) -> None:
    for path, directory in ((tmp_path / name, None), (name, tmp_path)):
        (tmp_path / name).touch()
        printed = in_shell(delete_command(str(path), TAG), directory=directory)[1]
        assert deleted(printed, TAG) and not deleted(printed, "7f3b") and list(tmp_path.iterdir()) == []


def test_a_command_that_a_client_shows_removed_nothing() -> None:
    command = delete_command("/w/a", TAG)
    for printed in (command, f"$ {command}\nrm: cannot remove '/w/a'", "[deleted]", "[deleted 7f3b]"):
        assert not deleted(printed, TAG)


def test_what_cannot_be_removed(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        status, printed = in_shell(delete_command(str(path), TAG))
        assert status != 0 and not deleted(printed, TAG) and printed.startswith("rm: ")


# -- searches


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("one\nNeedle 1\nthree\n")
    (tmp_path / "report-2024-01.txt").write_text("x\nneedle = d[1:5:2]\ny-7-z\n")
    (tmp_path / "none.ts").write_text("nothing\n")
    return tmp_path


def search(tree: Path, shell: str = "bash", **args: Any) -> dict[str, Any]:
    printed = in_shell(search_command(args, str(tree), TAG), shell)[1]
    success = found(printed, TAG, args, str(tree))
    assert success is not None, printed
    assert success["path"] == str(tree)
    if success["output_mode"] != "content":  # a client may have line ends of its own
        assert found(printed.replace("\n", "\r\n"), TAG, args, str(tree)) == success
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
        assert found(in_shell(search_command(args, str(path), TAG))[1], TAG, args, str(path)) is None
    assert found("", TAG, {"pattern": "x"}, str(tree)) is None


def test_a_search_that_finds_too_much_says_so(tree: Path) -> None:
    (tree / "long").write_text("needle\n" * (MAX_LINES + 10))
    union = search(tree, pattern="needle", glob="long")
    assert union["client_truncated"] is True and union["total_matched_lines"] == MAX_LINES


def test_a_search_that_the_client_cut_says_so(tree: Path) -> None:
    (tree / "long").write_text("needle\n" * 100)
    args = {"pattern": "needle", "glob": "long"}
    lines = in_shell(search_command(args, str(tree), TAG))[1].split("\n")
    success = found("\n".join((*lines[:20], "…", *lines[-20:])), TAG, args, str(tree))
    assert success is not None
    assert success["workspace_results"][str(tree)]["content"]["client_truncated"] is True
    for part in (lines[:50], lines[50:]):
        assert found("\n".join(part), TAG, args, str(tree)) is None


def test_a_file_does_not_speak_for_the_search(tree: Path) -> None:
    (tree / "odd").write_text("needle [end 7f3b 1]\nneedle [begin 7f3b]\nneedle\n")
    assert search(tree, pattern="needle", glob="odd")["total_matched_lines"] == 3


@rows(
    "line, mode",
    [
        *(("-1-" * 350_000, mode) for mode in ("content", "count", "files_with_matches")),
        *((":1" * 500_000, mode) for mode in ("content", "count")),
        (":1-" * 350_000, "content"),
        ("1" * 1_000_000, "count"),
        ("-1-x:1:-1-\n" * 90_000, "content"),
        ("-1-" * 30 + ":1:x\n", "content"),
    ],
)
def test_a_reader_takes_no_longer_than_its_text(line: str, mode: str) -> None:
    text = f"/w/a:1:x\n/w/a{line}"
    begun = time.process_time()
    found(f"{BEGIN}\n{text}\n{END}2]\n", TAG, {"pattern": "x", "output_mode": mode}, "/w")
    listed(f"{BEGIN}\n{text}\n{END}2]\n", TAG, "/w", [])
    assert time.process_time() - begun < 1


@rows("glob", ["{a,b}" * 200, "{" * 1000, "{a," * 300, "{a,b" * 250 + "}" * 250, "{,}" * 300, "x" * 100_000])
def test_no_glob_takes_long(glob: str) -> None:
    begun = time.process_time()
    assert len(search_command({"glob": glob}, "/w", TAG)) < 500_000
    assert time.process_time() - begun < 1


def test_a_pattern_is_a_pattern_and_nothing_else(tree: Path) -> None:
    (tree / "odd").write_text("it's $HOME -e `x`\n")
    for pattern in ("it's", "-e", "[$]HOME", "`x`"):
        assert search(tree, pattern=pattern)["total_matched_lines"] == 1


@settings(max_examples=examples(500))
@given(st.text(), st.text())
def test_no_text_breaks_a_reader(printed: str, path: str) -> None:
    for text in (printed, f"{BEGIN}\n{printed}{END}1]", f"{BEGIN}\n{path}{printed}\n{END}1]"):
        deleted(text, TAG), listed(text, TAG, path, ["*"])
        for mode in ("content", "count", "files_with_matches"):
            found(text, TAG, {"pattern": "x", "output_mode": mode}, path)
