"""Commands that stand in for tools for files: run for real, and what they print."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plan_clients import in_shell
from samples import each, examples, rows

from proxy.providers.p5_cursor.bridge.commands import (
    Script,
    Source,
    Sum,
    complaint,
    fits_shell,
    piece_back,
    piece_command,
    quoted,
    read_back,
    read_command,
    sum_command,
    sum_of,
    write_script,
)

SHELLS = ("bash", "dash", "sh")
#: In the marks and names of the commands.
TAG = "7f3a"
BEGIN, END = f"[begin of file {TAG}]", f"[end of file {TAG}]"
#: What may be lost or changed on the way.
CONTENTS: dict[str, bytes] = {
    "empty": b"",
    "no line end": b"a",
    "one line": b"a\n",
    "blank lines": b"\n\n\n",
    "blanks": b"  a \t\n \n\t",
    "CRLF": b"a\r\nb\r\n",
    "quotes": b"it's \"$HOME\" `id` $(id) \\n \\\n!! 'x'\n",
    "marks": b"EOF\nEND_OF_FILE\nEND_OF_FILE_\n[end of file]\n[begin of file]\n1 3\nEND_OF_FILE",
    "marks at the end": b"a\n[begin of file 1]\n4294967295 0\n[end of file 1]\n",
    "marks of pieces": b"[piece of file 1]\nYQ==\n[end of piece 1]\n[written 1]\n",
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
    return in_shell(read_command(Source(str(path), offset, limit), TAG), shell)[1]


@each(1)
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize("name", CONTENTS)
def test_a_file_is_written_byte_by_byte(name: str, encoded: bool, shell: str, tmp_path: Path) -> None:
    path, data = tmp_path / "new folder" / "it's $HOME `x` é.txt", CONTENTS[name]
    for most in (0, 11_000):
        script = write_script(str(path), data, TAG, encoded=encoded, most=most)
        assert all(len(command.encode()) < (most or 128 * 1024) for command in script.commands)
        assert script.done(run_all(script, shell))
        assert path.read_bytes() == data
        assert list(path.parent.iterdir()) == [path]
        path.write_bytes(b"the old one")


@each(1)
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("name", CONTENTS)
def test_a_file_is_read_byte_by_byte_or_not_at_all(name: str, shell: str, tmp_path: Path) -> None:
    path, data = tmp_path / "it's $HOME.txt", CONTENTS[name]
    path.write_bytes(data)
    printed = read(path, shell)
    is_text = name not in ("all bytes", "half a character")
    assert read_back(printed, TAG) == (data if is_text else None)
    assert sum_of(printed, TAG) == Sum.of(data)
    got = b""
    while len(got) < len(data):
        piece = piece_back(in_shell(piece_command(Source(str(path)), len(got), 30_000, TAG), shell)[1], TAG)
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
        # of the same size
        lambda text: text.replace("\r", "\n"),
        lambda text: text.replace("\t", " "),
        lambda text: text.replace("a", "b"),
        # the end of a file in place of its beginning
        lambda text: text[: len(BEGIN)] + text[-len(text) // 3 :],
    ],
)
@rows("name", CONTENTS)
def test_what_a_client_changed_is_no_file(change: Any, name: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(CONTENTS[name])
    assert read_back(change(read(path)), TAG) in (None, CONTENTS[name])


@rows("before", ["", "12\n", "5 packages can be updated\n", "Last login: today\n[x]\n", "\n\n", "bash: warning\r\n"])
@rows("after", ["", "\n", "\nShell cwd was reset to /w", "\r\n"])
def test_what_a_shell_prints_around_a_file_is_not_part_of_it(before: str, after: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    for data in (b"", b"x", b"7\nabc\n", b"0\n"):
        path.write_bytes(data)
        printed = before + read(path) + after
        assert (read_back(printed, TAG), sum_of(printed, TAG)) == (data, Sum.of(data))
        assert sum_of(before + in_shell(sum_command(Source(str(path)), TAG))[1], TAG) == Sum.of(data)


@rows(
    "printed",
    [
        "",
        "12\n",
        "1 12\nabc",
        f"{BEGIN}\n",
        f"{BEGIN}\n12",
        f"{BEGIN}\nsh: /w/a: No such file or directory\n",
        f"{BEGIN}\n1 -3\n",
        f"x{BEGIN}\n1 3\n",
        "[begin of file]\n1 3\n",
        "[begin of file 7f3b]\n1 3\n",
    ],
)
def test_what_names_no_sum(printed: str) -> None:
    assert sum_of(printed, TAG) is None and read_back(printed, TAG) is None


def test_the_sum_as_other_systems_print_it() -> None:
    checksum = Sum.of(b"a\nb\n").checksum
    for line in (f"{checksum} 4", f"{checksum} 4 ", f"  {checksum}\t4\r"):
        assert read_back(f"{BEGIN}\n{line}\na\nb\n{END}\n", TAG) == b"a\nb\n"
    assert read_back(f"{BEGIN}\n{checksum + 1} 4\na\nb\n{END}\n", TAG) is None


@pytest.mark.parametrize("shell", SHELLS)
def test_a_file_whose_end_imitates_the_marks_is_not_cut(shell: str, tmp_path: Path) -> None:
    """A file may hold all that was printed before, but not the tag of its own request."""
    path, earlier = tmp_path / "a", tmp_path / "earlier"
    earlier.write_text("short\n")
    forged = in_shell(read_command(Source(str(earlier)), "a1b2"), shell)[1]
    for data in (f"x\n{forged}".encode(), forged.encode(), f"{forged}{forged}".encode()):
        path.write_bytes(data)
        printed = read(path, shell)
        assert read_back(printed, TAG) == data and sum_of(printed, TAG) == Sum.of(data)
        shown = printed[printed.index("[begin of file a1b2]") :]  # of a client that shows the end only
        assert read_back(shown, TAG) is None and sum_of(shown, TAG) is None


@rows(
    "printed",
    [
        "",
        "YQ==",
        f"[piece of file {TAG}]\nYQ==\n",
        f"[piece of file {TAG}]\nY…==\n[end of piece {TAG}]",
        f"[end of piece {TAG}]",
        "[piece of file]\nYQ==\n[end of piece]",
        "[piece of file 7f3b]\nYQ==\n[end of piece 7f3b]",
    ],
)
def test_what_is_no_piece(printed: str) -> None:
    assert piece_back(printed, TAG) is None


def test_a_piece_behind_its_own_command() -> None:
    piece = f"[piece of file {TAG}]\r\nYW\r\nI=\r\n[end of piece {TAG}]"
    assert piece_back(f"$ {piece_command(Source('/a'), 0, 3, TAG)}\n{piece}", TAG) == b"ab"


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
        assert read_back(read(path, shell, offset, limit), TAG) == text.encode()
        assert (piece_back(in_shell(piece_command(source, 0, 99, TAG), shell)[1], TAG) or b"") == text.encode()


@pytest.mark.parametrize("shell", SHELLS)
def test_what_is_no_file_has_words(shell: str, tmp_path: Path) -> None:
    for path, words in ((tmp_path / "missing", "No such file"), (tmp_path, "directory")):
        printed = read(path, shell)
        assert read_back(printed, TAG) is None and (sum_of(printed, TAG) or Sum(0, 0)).size == 0
        assert words in complaint(printed) and "[begin" not in complaint(printed)


@each(1)
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
        script = write_script(str(place), name, TAG, most=most)
        assert script.done(run_all(script, shell))
        assert path.read_bytes() == name and path.stat().st_mode & 0o777 == 0o751
        assert link.is_symlink() and far.is_symlink() and not path.is_symlink()
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["far", "folder", "link", "run.sh"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_link_to_nothing_gets_its_file(shell: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("new")
    script = write_script(str(tmp_path / "link"), b"x", TAG)
    assert script.done(run_all(script, shell))
    assert (tmp_path / "link").is_symlink() and (tmp_path / "new").read_bytes() == b"x"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A folder of another file system, where there is one."""
    memory = Path("/dev/shm")
    other = memory.is_dir() and os.access(memory, os.W_OK) and memory.stat().st_dev != tmp_path.stat().st_dev
    with TemporaryDirectory(dir=memory if other else tmp_path) as folder:
        yield Path(folder)


@each(1)
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("most", [0, 2000])
def test_a_link_to_another_file_system_keeps_its_file(shell: str, most: int, tmp_path: Path, elsewhere: Path) -> None:
    """The file beside is beside the target: moving it there is one step."""
    folder, target = tmp_path / "folder", elsewhere / "target"
    folder.mkdir()
    link = folder / "link"
    link.symlink_to(target)
    for old in (None, b"old"):
        if old is not None:
            target.write_bytes(old)
        script = write_script(str(link), b"x" * 3000, TAG, most=most)
        for command in script.commands[:-1]:
            assert in_shell(command, shell)[0] == 0
            assert [one.name for one in elsewhere.iterdir() if one != target] == [f".link.{TAG}.part"]
            assert list(folder.iterdir()) == [link]
        assert script.done(in_shell(script.commands[-1], shell)[1])
        assert link.is_symlink() and target.read_bytes() == b"x" * 3000
        assert list(elsewhere.iterdir()) == [target] and list(folder.iterdir()) == [link]
    failing = write_script(str(link), b"new", TAG).commands[0].replace("mv -f", "false")
    in_shell(failing, shell)
    assert target.read_bytes() == b"x" * 3000 and list(elsewhere.iterdir()) == [target]


@each(1)
@pytest.mark.parametrize("most", [0, 2000])
@pytest.mark.parametrize("equal", [True, False])
def test_writers_at_the_same_time_leave_one_whole_file(equal: bool, most: int, tmp_path: Path) -> None:
    path, old = tmp_path / "a", b"old"
    contents = [b"same\n" * 3000, b"same\n" * 3000 if equal else b"other\n" * 3000]
    for _ in range(5):
        path.write_bytes(old)
        scripts = [write_script(str(path), data, f"{TAG}{at}", most=most) for at, data in enumerate(contents)]
        writers = [
            subprocess.Popen(["bash", "-c", "\n".join(one.commands)], stdout=subprocess.PIPE, text=True)
            for one in scripts
        ]
        while any(writer.poll() is None for writer in writers):
            assert path.read_bytes() in (old, *contents)
        for script, writer in zip(scripts, writers, strict=True):
            assert script.done(writer.communicate()[0]) and writer.returncode == 0
        assert path.read_bytes() in contents and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_name_beside_that_is_taken_is_left_alone(shell: str, tmp_path: Path) -> None:
    """Not even through a link that somebody else put there."""
    path, victim = tmp_path / "a", tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / f".a.{TAG}.part").symlink_to(victim)
    script = write_script(str(path), b"x", TAG)
    status, printed = in_shell(script.commands[0], shell)
    assert status != 0 and not script.done(printed) and victim.read_text() == "mine" and not path.exists()


def test_the_check_tells_whether_the_file_is_there_as_it_was_meant(tmp_path: Path) -> None:
    path = tmp_path / "it's"
    script = write_script(str(path), b"one\ttwo\r", TAG)
    assert not script.done(in_shell(script.check)[1])
    for data, is_there in ((b"one\ttwo\r", True), (b"one two\r", False), (b"one\ttwo\n", False), (b"", False)):
        path.write_bytes(data)
        assert script.done(in_shell(script.check)[1]) is is_there
    for printed in (
        script.check,
        f"$ {script.check}\n",
        "[written]",
        "[written 7f3b]",
    ):  # a client may show the command
        assert not script.done(printed)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_link_that_leads_nowhere_is_not_replaced(shell: str, tmp_path: Path) -> None:
    link, ring = tmp_path / "link", tmp_path / "ring"
    link.symlink_to("new/file")
    ring.symlink_to("ring")
    for path in (link, ring):
        script = write_script(str(path), b"x", TAG)
        assert not script.done(in_shell(script.commands[0], shell)[1]) and path.is_symlink()
    assert sorted(tmp_path.iterdir()) == [link, ring]


@each(1)
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("most", [0, 2000])
def test_a_folder_is_not_replaced(shell: str, most: int, tmp_path: Path) -> None:
    folder, link = tmp_path / "folder", tmp_path / "link"
    folder.mkdir()
    link.symlink_to("folder")
    for path in (folder, link):
        script = write_script(str(path), b"x" * 3000, TAG, most=most)
        outcomes = [in_shell(command, shell) for command in script.commands]
        assert outcomes[0] == (1, "not a file\n") and not any(script.done(printed) for _, printed in outcomes)
        in_shell(script.undo, shell)
        assert folder.is_dir() and link.is_symlink() and sorted(tmp_path.rglob("*")) == [folder, link]


def test_a_file_that_is_read_only_is_not_replaced(tmp_path: Path) -> None:
    """The check stands before anything is copied. Root may write everywhere, so there it is made to fail."""
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(0o444)
    for data, most in ((b"new", 0), (b"new" * 1000, 2000)):
        script = write_script(str(path), data, TAG, most=most)
        command = script.commands[0]
        assert command.index("permission denied") < command.index("cp -p") < command.index("<<")
        if os.geteuid() == 0:
            command = command.replace('[ -w "$f" ]', "false")
        status, printed = in_shell(command)
        assert status == 1 and "read-only" in printed and not script.done(printed)
        in_shell(script.undo)
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
        script = write_script(str(path), data, TAG)
        status, printed = in_shell(script.commands[0].replace(was, became), shell)
        assert status == 1 and printed == "[bytes differ]\n" and not script.done(printed)
        assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_file_that_was_written_in_part_is_removed(shell: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    script = write_script(str(path), b"x" * 5000, TAG, most=2000)
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
    (command,) = write_script(str(tmp_path), b"x", TAG).commands
    status, printed = in_shell(f'f=mine\n{command}\necho "$f $?"\nfalse\necho still here')
    assert (status, printed.splitlines()) == (0, ["not a file", "mine 1", "still here"])


def test_the_file_is_not_written_where_moving_fails_and_nobody_minds(tmp_path: Path) -> None:
    script = write_script(str(tmp_path / "a"), b"x", TAG)
    command = script.commands[0].replace("mv -f", "false")
    assert not script.done(in_shell(f"{command} && echo done")[1]) and list(tmp_path.iterdir()) == []


@rows("name", ["x" * 255, "é" * 127, "中" * 85, "😀" * 63, "-rf", "-", ".hidden", " ", "a b  c", "*", "~"])
def test_names_that_a_folder_may_hold(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    script = write_script(str(path), b"x", TAG)
    assert script.done(run_all(script, "bash")) and path.read_bytes() == b"x"
    assert read_back(read(path), TAG) == b"x"
    assert list(tmp_path.iterdir()) == [path]
    path.unlink()


@pytest.mark.parametrize("name", ["-rf", "--help", "a", "./b", "c/d", "-x/y"])
def test_names_without_a_folder(name: str, tmp_path: Path) -> None:
    script = write_script(name, b"x", TAG)
    assert script.done(in_shell(script.commands[0], directory=tmp_path)[1])
    assert (tmp_path / name).read_bytes() == b"x"
    assert read_back(in_shell(read_command(Source(name), TAG), directory=tmp_path)[1], TAG) == b"x"
    assert (tmp_path / name).is_file() and not list(tmp_path.rglob("*.part"))


@rows("path, expected", [("/a b", True), *((path, False) for path in ("", "a\nb", "a\tb", "a\rb", "\x1b"))])
def test_which_paths_can_be_named(path: str, expected: bool) -> None:
    assert fits_shell(path) is expected


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
    script = write_script(str(path), data, TAG, encoded=encoded)
    assert script.done(run_all(script, "sh")) and path.read_bytes() == data
    printed = read(path, "sh")
    assert read_back(printed, TAG) in (None, data) and sum_of(printed, TAG) == Sum.of(data)
    if data:
        assert piece_back(in_shell(piece_command(Source(str(path)), 0, len(data), TAG), "sh")[1], TAG) == data


@settings(max_examples=examples(200))
@given(st.binary(max_size=400))
def test_the_checksum_is_that_of_the_program(data: bytes) -> None:
    printed = subprocess.run(["cksum"], input=data, capture_output=True, check=True).stdout
    assert Sum.of(data) == tuple(map(int, printed.split()))


@settings(max_examples=examples(500))
@given(st.text())
def test_no_text_breaks_a_reader(printed: str) -> None:
    for text in (printed, f"{BEGIN}\n{printed}{END}", f"[piece of file {TAG}]{printed}[end of piece {TAG}]"):
        read_back(text, TAG), sum_of(text, TAG), piece_back(text, TAG), complaint(text)
