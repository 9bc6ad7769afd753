"""Files at the simulated P5: how its model finds, removes, reads and writes them, and that a written one comes back."""

from collections.abc import Iterable
from typing import Any

import pytest
from p5_sandbox_client import Fields, P5Client, rendered, run_request

from proxy.sandbox.p5.execs import EXECS
from proxy.sandbox.p5.ledger import ExecLedger
from proxy.sandbox.p5.options import P5Options
from proxy.sandbox.wires.connect.protobuf import Message, write

#: Native search, folder or removal -> number of the request, place of its call's id, and its other fields.
FINDING: list[tuple[str, int, int, Fields]] = [
    ("use cursor_grep: TODO", 5, 14, {1: "TODO"}),
    (
        'use cursor_grep: {"pattern": "x", "path": "/w", "glob": "*.py", "output_mode": "content", "head_limit": 5, '
        '"context": 2, "context_before": 1, "context_after": 3, "case_insensitive": true, "file_type": "py", '
        '"multiline": false, "sort": "path", "sort_ascending": true, "offset": 9}',
        5,
        14,
        {1: "x", 2: "/w", 3: "*.py", 4: "content", 5: 1, 6: 3, 7: 2, 8: 1, 9: "py", 10: 5, 11: 0, 12: "path", 13: 1}
        | {16: 9},
    ),
    ("use cursor_ls: /w", 8, 3, {1: "/w"}),
    (
        'use cursor_ls: {"path": "/w", "ignore": ["*.pyc", "dist"], "timeout_ms": 9}',
        8,
        3,
        {1: "/w", 2: ["*.pyc", "dist"], 5: 9},
    ),
    ("use cursor_delete: /w/a", 4, 2, {1: "/w/a"}),
]


@pytest.mark.parametrize(("prompt", "kind", "place", "fields"), FINDING)
async def test_files_are_found_and_removed_by_the_client(
    cursor: P5Client, prompt: str, kind: int, place: int, fields: Fields
) -> None:
    talk = await cursor.run(run_request(rendered(prompt, tools=["Grep", "LS", "cursor_grep"])))
    [asked] = talk.execs
    found = (asked.sub(kind) or Message(b"")).fields
    call_id = found.pop(place)
    assert found == Message(write(fields)).fields and call_id[0].startswith(b"toolu_")  # type: ignore[union-attr]
    assert '<tool_use id="' not in talk.text and cursor.p5.violations == []


async def test_what_the_client_found_reaches_the_model(cursor: P5Client) -> None:
    count = {1: {1: [{1: "a.py", 2: 3}], 2: 1, 3: 3}}
    cursor.results[5] = lambda args: [{1: {1: args.text(1), 3: "count", 4: {1: "/w", 2: count}}}]
    cursor.results[8] = lambda args: [{1: {1: {1: args.text(1), 3: {1: "a.py"}, 4: True, 6: 1}}}]
    cursor.results[4] = lambda args: [{1: {1: args.text(1)}}]
    talk = await cursor.run("use cursor_grep: x and use cursor_ls: /w and use cursor_delete: /w/a.py")
    assert talk.text.splitlines() == [
        'The tool cursor_grep returned: "a.py:3".',
        'The tool cursor_ls returned: "a.py".',
        'The tool cursor_delete returned: "/w/a.py".',
    ]
    assert cursor.p5.violations == []


async def test_a_file_that_is_not_utf8_is_read_and_written_as_it_is(cursor: P5Client) -> None:
    cursor.results[7] = lambda args: [{1: {1: args.text(1), 3: 1, 4: 3, 5: b"a\xff\xc3"}}]
    cursor.results[3] = lambda args: [{1: {1: args.text(1), 2: 1, 3: 2}}]
    talk = await cursor.run('use Read: /w/a and use Write: {"file_path": "/w/b", "file_hex": "ff00"}')
    assert talk.execs[1].bytes(3, 5) == b"\xff\x00" and not talk.execs[1].has(3, 2)
    assert talk.text.startswith(r'The tool Read returned: "a\xff\xc3".')
    assert cursor.p5.runs[-1].ledger.asked[3].outcome.text == "a\udcff\udcc3"
    assert cursor.p5.violations == []


class Service:
    """A run's requests, each answered by a good client unless told otherwise. `blames` are the violations."""

    def __init__(self) -> None:
        self.blames: list[str] = []
        self.ledger = ExecLedger(self.blames.append, P5Options(), lambda: 0.0)
        self.ledger.control(Message(write({3: {}})))
        self.count = 0

    def asks(self, kind: str, **args: Any) -> int:
        """Asks, and returns the id."""
        number, names = EXECS[kind]
        self.count += 1
        given = {place: args[name] for name, place in names.items() if name in args}
        self.ledger.note(write({2: {1: self.count, number: given}}))
        return self.count

    def hears(self, kind: str, id: int, result: Fields) -> None:
        self.ledger.exec_answer(Message(write({1: id, EXECS[kind][0]: result})))

    def reads(self, data: bytes, path: str = "/a", **args: Any) -> None:
        self.hears("read", self.asks("read", path=path, **args), read(data, path))

    def writes(self, data: bytes, path: str = "/a") -> None:
        self.hears("write", self.asks("write", path=path, file_bytes=data), wrote(data, path))

    def runs(self, **args: Any) -> None:
        self.hears("shell", self.asks("shell", command="x", **args), {1: {1: "x"}})


def read(data: bytes, path: str = "/a") -> Fields:
    return {1: {1: path, 3: data.count(b"\n") + 1, 4: len(data), 5: data}}


def wrote(data: bytes, path: str = "/a") -> Fields:
    return {1: {1: path, 2: data.count(b"\n") + 1, 3: len(data)}}


def _clean(service: Service) -> None:
    service.runs()
    service.writes(b"other", "/b")
    service.hears("delete", service.asks("delete", path="/b"), {1: {1: "/b"}})
    service.writes(b"earlier")
    service.writes(b"a\r\n\xff")
    service.hears("ls", service.asks("ls", path="/"), {2: {1: "/", 2: "no"}})
    service.hears("grep", service.asks("grep", pattern="a"), {2: {1: "no"}})
    service.reads(b"anything", "/b")


@pytest.mark.parametrize("path", ["/a", "/./a"])
@pytest.mark.parametrize(
    ("given", "words"),
    [
        (b"a\r\n\xff", None),
        (b"a\n\xff", "3 bytes of '/a' differ at 1 from the 4 that exec 5 wrote"),
        (b"a\r\n", "3 bytes of '/a' differ at 3 from the 4 that exec 5 wrote"),
        (b"a\r\n\xff\n", "5 bytes of '/a' differ at 4 from the 4 that exec 5 wrote"),
    ],
)
def test_what_was_written_comes_back(path: str, given: bytes, words: str | None) -> None:
    service = Service()
    _clean(service)
    service.reads(given, path)
    assert service.blames == ([] if words is None else [f"exec 9: {words}"])


def _between(service: Service, kind: str, result: Fields, **args: Any) -> None:
    service.hears(kind, service.asks(kind, **args), result)


#: What comes after a write of b"x" into /a, so that the file may be anything.
MEANWHILE: dict[str, Any] = {
    "a command": lambda service: service.runs(),
    "a streamed one": lambda service: _between(service, "shell_stream", {3: {2: "/w"}}, command="x"),
    "a write that fails": lambda service: _between(service, "write", {5: {1: "/a", 2: "no"}}, path="/a", text="y"),
    "a removal": lambda service: _between(service, "delete", {1: {1: "/a"}}, path="/a"),
    "an open command": lambda service: service.asks("shell", command="x"),
    "an open write": lambda service: service.asks("write", path="/a", text="y"),
    "an unknown request": lambda service: service.asks("hook"),
}


@pytest.mark.parametrize("name", MEANWHILE)
def test_a_file_that_something_else_may_have_changed_may_be_anything(name: str) -> None:
    service = Service()
    service.writes(b"x")
    MEANWHILE[name](service)
    service.reads(b"y")
    service.writes(b"z", "/b")
    assert service.blames == []


#: Commands before a write that go on after it.
BEFORE: list[tuple[str, dict[str, Any], list[Fields]]] = [
    ("shell", {}, []),
    ("shell", {"is_background": True}, [{1: {1: "x"}}]),
    ("shell_stream", {}, [{7: {1: 1}}]),
    ("background_shell", {}, [{1: {1: 1}}]),
]


@pytest.mark.parametrize(("kind", "args", "results"), BEFORE)
def test_a_command_that_goes_on_may_change_anything(kind: str, args: dict[str, Any], results: list[Fields]) -> None:
    service = Service()
    command = service.asks(kind, command="x", **args)
    for result in results:
        service.hears(kind, command, result)
    service.writes(b"x")
    service.reads(b"y")
    assert service.blames == []


@pytest.mark.parametrize("abort", [False, True])
def test_a_command_that_was_not_begun_changes_nothing(abort: bool) -> None:
    service = Service()
    command = service.asks("background_shell", command="x")
    if abort:
        service.ledger.note(write({5: {1: {1: command}}}))
    else:
        service.hears("background_shell", command, {3: {1: "x", 3: "no"}})
    service.writes(b"x")
    service.reads(b"y")
    assert bool(service.blames) is not abort, "what was withdrawn may go on"


def _asked_before() -> Iterable[str]:
    service = Service()
    reading = service.asks("read", path="/a")
    service.writes(b"x")
    service.hears("read", reading, read(b"y"))
    yield from service.blames


def _in_part() -> Iterable[str]:
    service = Service()
    service.writes(b"x\ny")
    service.reads(b"y", offset=2)
    service.hears("read", service.asks("read", path="/a"), {1: {1: "/a", 3: 1, 4: 1, 2: "x", 6: True}})
    service.hears("read", service.asks("read", path="/a"), {2: {1: "/a", 2: "no"}})
    service.hears("write", service.asks("write", path="/b", text="x"), {5: {1: "/b", 2: "no"}})
    service.reads(b"y", "/b")
    yield from service.blames


@pytest.mark.parametrize("blames", [_asked_before, _in_part])
def test_other_reads_may_have_other_content(blames: Any) -> None:
    assert list(blames()) == []


async def test_a_client_that_writes_something_else_is_blamed(cursor: P5Client) -> None:
    cursor.p5.script.replace([{"fault": "rewrite", "path": "/w/a", "append": "!", "check": True}])
    talk = await cursor.run("hello")
    await cursor.p5.idle()
    words = "exec 3: 7 bytes of '/w/a' differ at 7 from the 8 that exec 2 wrote"
    assert cursor.p5.violations == [f"{talk.run_id}: {words}"]


async def test_a_file_that_is_not_utf8_is_written_back_as_bytes(cursor: P5Client) -> None:
    files = {"/w/a": b"\xff\r\n"}
    cursor.results[7] = lambda args: [read(files[args.text(1)], args.text(1))]

    def keep(args: Message) -> list[Fields]:
        files[args.text(1)] = args.bytes(2) or args.bytes(5)
        return [wrote(files[args.text(1)], args.text(1))]

    cursor.results[3] = keep
    cursor.p5.script.replace([{"fault": "rewrite", "path": "/w/a", "append": "é", "check": True}])
    await cursor.run("hello")
    await cursor.p5.idle()
    assert files == {"/w/a": b"\xff\r\n\xc3\xa9"} and cursor.p5.violations == []
