"""How the simulated P5 checks results, and words them: searches, folders, removed files, and files of bytes."""

from typing import Any

import pytest

from proxy.sandbox.p5.execs import EXECS, Outcome, odd, outcome
from proxy.sandbox.p5.shapes import MAX_LEVELS
from proxy.sandbox.wires.connect.protobuf import Malformed, Message, write

Fields = dict[int, Any]


def asked(kind: str, **args: Any) -> Message:
    return Message(write({EXECS[kind][1][name]: value for name, value in args.items()}))


def answer(kind: str, result: Fields | bytes) -> Message:
    return Message(write({1: 1, EXECS[kind][0]: result, 15: "e"}))


def problems(kind: str, args: dict[str, Any], result: Fields) -> list[str]:
    return odd(EXECS[kind][0], asked(kind, **args), answer(kind, result))


def said(kind: str, result: Fields) -> Outcome:
    return outcome(EXECS[kind][0], [answer(kind, result)])


TODO = {"pattern": "TODO", "path": "/w"}


def search(mode: str, *unions: Fields, **changes: Any) -> Fields:
    """A success of a search in these workspaces."""
    entries = [{1: f"/w{number or ''}", 2: union} for number, union in enumerate(unions)]
    return {1: {1: "TODO", 2: "/w", 3: mode, 4: entries, **{int(name[1:]): one for name, one in changes.items()}}}


def line(number: int, text: str = "TODO", *, context: bool = False) -> Fields:
    return {1: number, 2: text, 4: True if context else None}


def content(*lines: Fields, total: int, matched: int, **changes: Any) -> Fields:
    return {3: {1: [{1: "a.py", 2: list(lines)}], 2: total, 3: matched, **{int(k[1:]): v for k, v in changes.items()}}}


COUNTED = {1: {1: [{1: "a.py", 2: 2}, {1: "b.py", 2: 1}], 2: 2, 3: 3}}
FILES = {2: {1: ["a.py", "b.py"], 2: 2}}
LINES = content(line(3), line(4, "after", context=True), total=2, matched=1)

#: Arguments and result of a search -> its words.
FOUND: list[tuple[dict[str, Any], Fields, str]] = [
    ({}, search("count", COUNTED), "a.py:2\nb.py:1"),
    ({}, search("files_with_matches", FILES), "a.py\nb.py"),
    ({}, search("files_with_matches", FILES, {2: {1: "c.py", 2: 1}}), "a.py\nb.py\nc.py"),
    ({"context": 1}, search("content", LINES), "a.py:3:TODO\na.py-4-after"),
    ({"output_mode": "content"}, search("content", content(line(1, "a:b"), total=1, matched=1)), "a.py:1:a:b"),
    ({"output_mode": "strange"}, search("content", content(line(1), total=1, matched=1)), "a.py:1:TODO"),
    ({"multiline": True}, search("content", content(line(1, "a\nb"), total=1, matched=1)), "a.py:1:a\nb"),
    ({}, search("content", content(line(1), total=9, matched=7, f4=True)), "a.py:1:TODO"),
    ({"head_limit": 1}, search("files_with_matches", {2: {1: "a.py", 2: 5, 5: 1}}), "a.py"),
    ({}, search("content"), ""),
    ({}, search("content", {3: {}}), ""),
    ({}, search("count", f5=COUNTED), "a.py:2\nb.py:1"),
]


@pytest.mark.parametrize(("args", "result", "words"), FOUND)
def test_searches(args: dict[str, Any], result: Fields, words: str) -> None:
    assert problems("grep", {**TODO, **args}, result) == []
    assert said("grep", result) == (True, words)


def lines(*numbers: int, **changes: Any) -> Fields:
    return search("content", content(*map(line, numbers), total=len(numbers), matched=len(numbers)), **changes)


#: Arguments and result of a search -> the violation.
WRONG_SEARCH: list[tuple[dict[str, Any], Fields, str]] = [
    ({}, lines(1, f1="other"), "has 'other' in field 1, not 'TODO'"),
    ({}, lines(1, f2="/x"), "has '/x' in field 2, not '/w'"),
    ({}, lines(1, f9=1), "has the fields [9]"),
    ({}, lines(1, f3="found"), "has the output_mode 'found'"),
    ({"output_mode": "count"}, lines(1), "has the output_mode 'content', not 'count'"),
    ({}, search("count", FILES), "has the arms [2] for 'count'"),
    ({}, search("count", {}), "has the arms [] for 'count'"),
    ({}, search("count", {**COUNTED, **FILES}), "has the arms [1, 2] for 'count'"),
    ({}, search("content", LINES), "has a line of context, which was not asked for"),
    ({}, lines(0), "has the line numbers [0]"),
    ({}, lines(2, 2), "has the line numbers [2, 2] of one file"),
    ({}, lines(5, 2), "has the line numbers [5, 2] of one file"),
    ({}, lines(), "has the line numbers [] of one file"),
    ({"head_limit": 2}, lines(1, 2, 3), "lists 3, but the head_limit is 2"),
    ({}, search("content", content(line(1, "a\n"), total=1, matched=1)), "has a line with a line break"),
    ({}, search("content", content(line(1), total=2, matched=1)), "has 2 in field 2, and lists 1"),
    ({}, search("content", content(line(1), total=1, matched=2)), "has 2 in field 3, and lists 1"),
    ({}, search("content", content(line(1), total=0, matched=1, f4=True)), "has 0 in field 2, and lists 1"),
    ({}, search("content", {3: {1: [{2: line(1)}], 2: 1, 3: 1}}), "has a file without a name"),
    ({}, search("content", {3: {1: [{1: "a", 2: line(1)}] * 2, 2: 2, 3: 2}}), "has a file twice"),
    ({}, search("content", {3: {1: [{1: "a", 3: line(1)}], 2: 1, 3: 1}}), "4.2.3.1 has the fields [3]"),
    ({}, search("content", {3: {1: b"\x0a\x01\xff"}}), "4.2.3.1 has a text that is not UTF-8 in field 1"),
    ({}, search("files_with_matches", {2: {1: "a", 2: 2}}), "has 2 in field 2, and lists 1"),
    ({}, search("files_with_matches", {2: {1: ["a", ""], 2: 2}}), "has a file without a name"),
    ({}, search("files_with_matches", {2: {1: ["a", "a"], 2: 2}}), "has a file twice"),
    ({}, search("files_with_matches", {2: {1: {1: "a"}, 2: "1"}}), "4.2.2 has the wire type 2 in field 2"),
    ({"head_limit": 1}, search("files_with_matches", FILES), "lists 2, but the head_limit is 1"),
    ({}, search("count", {1: {1: [{1: "a"}], 2: 1}}), "counts a file without a match"),
    ({}, search("count", {1: {1: [{1: "a", 2: 2}], 2: 1, 3: 1}}), "has 1 in field 3, and lists 2"),
    ({"head_limit": 1}, search("count", COUNTED), "lists 2, but the head_limit is 1"),
    ({}, search("count", f4=[{1: "/w", 2: COUNTED}] * 2), "has a workspace twice"),
]


@pytest.mark.parametrize(("args", "result", "words"), WRONG_SEARCH)
def test_searches_that_do_not_add_up(args: dict[str, Any], result: Fields, words: str) -> None:
    [problem] = problems("grep", {**TODO, **args}, result)
    assert problem.removeprefix("result 5.1").lstrip(" .") == words


def test_a_search_without_a_path() -> None:
    assert problems("grep", {"pattern": "TODO"}, lines(1)) == []
    assert said("grep", {2: {1: "no rg"}}) == (False, "no rg")
    assert problems("grep", TODO, {2: {1: "no rg", 2: "x"}}) == ["result 5.2 has the fields [2]"]


def folder(path: str, *inside: Fields | str, total: int | None = None, opened: bool = True) -> Fields:
    files = [{1: one} for one in inside if isinstance(one, str)]
    total = len(files) if total is None else total
    return {1: path, 2: [one for one in inside if not isinstance(one, str)], 3: files, 4: opened or None, 6: total}


SHUT = folder("/w/sub", opened=False)
SUB = folder("/w/sub", "b.txt")

#: Asked path, root -> the words.
TREES: list[tuple[str, Fields, str]] = [
    ("/w", folder("/w", "a.txt", ".env"), "a.txt\n.env"),
    ("/w/", folder("/w", SHUT, "a.txt"), "sub/\na.txt"),
    ("/w", folder("/w", folder("/w/back\\", opened=False), "a\\b"), "back\\/\na\\b"),
    ("/w", folder("/w", SUB, "a.txt"), "sub/\nsub/b.txt\na.txt"),
    ("/w", folder("/w", SUB, "a.txt", total=2), "sub/\nsub/b.txt\na.txt"),
    ("/w", folder("/w", SHUT, "a.txt", total=90), "sub/\na.txt"),
    ("/w", folder("/w", "a.txt", total=90, opened=False), "a.txt"),
    ("/w/../v", folder("/v"), ""),
    ("", folder("/anywhere"), ""),
    ("src", folder("/w/src"), ""),
    ("/", folder("/", folder("/usr", opened=False)), "usr/"),
    ("C:\\w\\", folder("C:\\w", folder("C:\\w\\sub"), "a"), "sub/\na"),
]


@pytest.mark.parametrize(("path", "root", "words"), TREES)
def test_folders(path: str, root: Fields, words: str) -> None:
    for arm in (1, 4):
        assert problems("ls", {"path": path}, {arm: {1: root}}) == []
        assert said("ls", {arm: {1: root}}) == (arm == 1, words)


#: Result of `ls /w` that ignores *.pyc and node_modules -> the violation.
WRONG_TREES: list[tuple[Fields, str]] = [
    ({}, "has the root '', not '/w'"),
    ({1: folder("/v")}, "has the root '/v', not '/w'"),
    ({1: folder("w")}, "has the root 'w', not '/w'"),
    ({1: folder("/w", folder("/v/sub"))}, "has the name '/v/sub' in '/w'"),
    ({1: folder("/w", folder("/w/sub/b"))}, "has the name 'sub/b' in '/w'"),
    ({1: folder("/w", folder("sub"), "sub")}, "has 'sub' twice in '/w'"),
    ({1: folder("/w", "")}, "has the name '' in '/w'"),
    ({1: folder("/w", "sub/a")}, "has the name 'sub/a' in '/w'"),
    ({1: folder("/w", "a", "a")}, "has 'a' twice in '/w'"),
    ({1: folder("/w", "a", total=0)}, "has 0 files in '/w', and lists 1"),
    ({1: folder("/w", SUB, "a", total=3)}, "has 3 files in '/w', and lists 1"),
    ({1: folder("/w", folder("/w/sub", "b", total=0))}, "has 0 files in '/w/sub', and lists 1"),
    ({1: folder("/w", "x.pyc")}, "has 'x.pyc', which was to be ignored"),
    ({1: folder("/w", folder("/w/node_modules"))}, "has 'node_modules', which was to be ignored"),
    ({1: {**folder("/w"), 7: 1}}, "1 has the fields [7]"),
    ({1: {**folder("/w"), 3: {9: 1}}}, "1.3 has the fields [9]"),
    ({2: "x"}, "has the fields [2]"),
]


@pytest.mark.parametrize(("result", "words"), WRONG_TREES)
def test_folders_that_do_not_add_up(result: Fields, words: str) -> None:
    args = {"path": "/w", "ignore": ["*.pyc", "**/node_modules/", "src/generated"]}
    [problem] = problems("ls", args, {1: result})
    assert problem.removeprefix("result 8.1").lstrip(" .") == words


def test_a_folder_of_too_many_levels_cannot_be_read() -> None:
    tree: Fields = {}
    for _ in range(MAX_LEVELS + 1):
        tree = {2: tree}
    with pytest.raises(Malformed, match="too deeply"):
        problems("ls", {"path": "/w"}, {1: {1: tree}})


#: Result of a removal of /a -> the violations, and the outcome.
REMOVED: list[tuple[Fields, list[str], Outcome]] = [
    ({1: {1: "/a", 2: "a", 3: 5, 4: "hello"}}, [], Outcome(True, "/a")),
    ({1: {1: "/b"}}, ["result 4.1 has '/b' in field 1, not '/a'"], Outcome(True, "/b")),
    ({1: {1: "/a", 5: 1}}, ["result 4.1 has the fields [5]"], Outcome(True, "/a")),
    ({1: {1: "/a", 3: "5"}}, ["result 4.1 has the wire type 2 in field 3"], Outcome(True, "/a")),
    ({2: {1: "/a"}}, [], Outcome(False, "/a")),
    ({2: {1: "/b"}}, ["result 4.2 has '/b' in field 1, not '/a'"], Outcome(False, "/b")),
    ({4: {1: "/a", 2: "not yours"}}, [], Outcome(False, "not yours")),
    ({6: {1: "/a", 2: "no"}}, [], Outcome(False, "no")),
    ({7: {1: "/b", 2: "no"}}, ["result 4.7 has '/b' in field 1, not '/a'"], Outcome(False, "no")),
    ({7: {1: "/a", 3: "no"}}, ["result 4.7 has the fields [3]"], Outcome(False, "")),
]


@pytest.mark.parametrize(("result", "wrong", "found"), REMOVED)
def test_removals(result: Fields, wrong: list[str], found: Outcome) -> None:
    assert problems("delete", {"path": "/a"}, result) == wrong
    assert said("delete", result) == found


#: Success of a read of /a -> the violations.
READ: list[tuple[Fields, list[str]]] = [
    ({2: "", 3: 0, 4: 0}, []),
    ({2: "a\n", 3: 2, 4: 2}, []),
    ({5: b"\xff\n\x00", 3: 2, 4: 3}, []),
    ({5: b"\xff\n\x00", 3: 0, 4: 3}, []),
    ({5: b"\xff", 3: 2, 4: 1}, ["has 2 in field 3, not 1"]),
    ({5: b"\xff", 4: 3}, ["has 3 in field 4, not 1"]),
    ({2: "a", 5: b"a", 3: 1, 4: 1}, ["has the contents [2, 5]"]),
    ({3: 0, 4: 0}, ["has the contents []"]),
    ({7: b"blob"}, []),
    ({2: b"\xff", 3: 1, 4: 1}, ["has a text that is not UTF-8 in field 2"]),
]


@pytest.mark.parametrize("kind", ["read", "redacted_read"])
@pytest.mark.parametrize(("success", "wrong"), READ)
def test_reads_of_bytes(kind: str, success: Fields, wrong: list[str]) -> None:
    result = {1: {1: "/a", **success}}
    assert problems(kind, {"path": "/a"}, result) == [f"result {EXECS[kind][0]}.1 {words}" for words in wrong]
    ok, text = said(kind, result)
    data = success.get(2, "") or success.get(5, b"")
    assert ok and text.encode(errors="surrogateescape") == (data.encode() if isinstance(data, str) else data)


#: Arguments of a write, its success -> the violations.
WRITTEN: list[tuple[dict[str, Any], Fields, list[str]]] = [
    ({"file_bytes": b"\xff\n"}, {2: 2, 3: 2}, []),
    ({"file_bytes": b"\xff\n"}, {2: 2, 3: 4}, ["result 3.1 has 4 in field 3, not 2"]),
    ({"file_bytes": b"a"}, {2: 1, 3: 1, 4: "a"}, []),
    ({"file_bytes": b"a"}, {2: 1, 3: 1}, ["result 3.1 has '' in field 4, not 'a'"]),
]


@pytest.mark.parametrize(("args", "success", "wrong"), WRITTEN)
def test_writes_of_bytes(args: dict[str, Any], success: Fields, wrong: list[str]) -> None:
    assert problems("write", {"path": "/a", "return_content": True, **args}, {1: {1: "/a", **success}}) == wrong
