"""Faults of the server's requests during a run: executions, blobs, questions; and of the answers to appends."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import wraps
from itertools import chain, repeat
from typing import Any

from proxy.sandbox.model.reply import Say
from proxy.sandbox.p5.answer import AgentAnswer, AgentFault, at_work, is_event
from proxy.sandbox.p5.asked import BLOB, EXEC, QUERY
from proxy.sandbox.p5.execs import EXECS, reason
from proxy.sandbox.play.actions import Action, Pause, Reply

#: Default arguments of requests.
_ARGS: dict[str, Any] = {
    "path": "/sandbox/file.txt",
    "command": "echo 0",
    "pattern": "TODO",
    "url": "https://example.com/",
    "uri": "res://a",
    "name": "tool",
    "server": "server",
    "shell_id": 1,
    "chars": "y",
}


def _exec(
    answer: AgentAnswer,
    kind: str = "grep",
    number: int | None = None,
    id: int | None = None,
    exec_id: str | None = None,
    repeat: int = 1,
    args: Mapping[str, Any] | None = None,
    abort: float | None = None,
) -> Iterator[Action]:
    """Asks the client to execute this, and reports the outcome as text. A `number` instead of a kind: an unknown arm;
    0: none at all. `args` have the names of EXECS. `abort`: withdraws it after so many seconds."""
    place = answer.number(EXEC) if id is None else id
    given = {**_ARGS, "call_id": answer.ids.new("toolu"), **(args or {})}
    names = EXECS[kind][1] if number is None else ()
    what = {"kind": kind} if number is None else {"number": number}
    known = {name: given[name] for name in names if name in given}
    for _ in range(repeat):
        named = answer.ids.new("exec") if exec_id is None else exec_id
        yield {"type": "exec", **what, "id": place, "exec_id": named, **known}
        yield from _withdrawn(place, abort)
        yield answer.settled(EXEC, place)
    asked = answer.run.ledger.find(EXEC, place)
    if asked is not None:
        ok, text = asked.outcome
        words = f'{kind if number is None else number} {"succeeded" if ok else "failed"}: "{text}". '
        yield from answer.part(Say(words))


def _withdrawn(number: int, seconds: float | None) -> Iterator[Action]:
    """Withdraws an exec after so many seconds; None: never."""
    if seconds is not None:
        yield Pause(seconds)
        yield {"type": "abort", "id": number}


def _query(answer: AgentAnswer, kind: str = "web_search", text: str | None = None) -> Iterator[Action]:
    """Asks the user a question, and reports the answer as text."""
    number = answer.number(QUERY)
    yield {"type": "query", "kind": kind, "id": number, **({} if text is None else {"text": text})}
    yield answer.settled(QUERY, number)
    asked = answer.run.ledger.find(QUERY, number)
    if asked is not None:
        why = reason(asked.number, asked.answers[-1]) if asked.answers else ""
        yield from answer.part(Say(f'{kind} was answered with {asked.verdict}: "{why}". '))


def _get_blob(
    answer: AgentAnswer, known: bool = True, blob_id: str | None = None, then_error: str | None = None
) -> Iterator[Action]:
    """Asks for a blob: one of its own, or (`known` False) one with this id, which it never sent. A short id is its own
    content. `then_error`: the code with which the stream ends after that."""
    own = next(one for one in answer.run.ledger.asked if one.family == BLOB)
    wanted = own.args.bytes(1).hex() if known else blob_id or hashlib.sha256(b"unknown").hexdigest()
    number = answer.number(BLOB)
    yield {"type": "get_blob", "id": number, "blob_id": wanted}
    yield answer.settled(BLOB, number)
    if then_error is not None:
        yield {"type": "end", "error": {"code": then_error, "message": "Error"}}
        return
    asked = answer.run.ledger.find(BLOB, number)
    given = asked.answers[-1].bytes(2, 1) if asked is not None and asked.answers else b""
    yield from answer.part(Say(f"The blob has {len(given)} bytes. "))


def _blobs(answer: AgentAnswer, count: int = 3, size: int = 1_000) -> Iterator[Action]:
    """Gives the client this many blobs of that size to keep, all at once."""
    numbers = [answer.number(BLOB) for _ in range(count)]
    for number in numbers:
        data = number.to_bytes(4, "big") * (size // 4)
        yield {"type": "set_blob", "id": number, "blob_id": hashlib.sha256(data).hexdigest(), "data": data.hex()}
    for number in numbers:
        yield answer.settled(BLOB, number)
    found = [answer.run.ledger.find(BLOB, number) for number in numbers]
    refused = sum(1 for one in found if one is not None and one.answers and one.answers[-1].has(3, 1))
    yield from answer.part(Say(f"{count - refused} blobs were kept, {refused} refused. "))


def _together(
    answer: AgentAnswer,
    kinds: str = "shell_stream read",
    args: Sequence[Mapping[str, Any]] = (),
    abort: float | None = None,
) -> Iterator[Action]:
    """Sends several requests of these kinds before any is answered. `args` are those of the first ones; `abort`: the
    first one is withdrawn after so many seconds."""
    numbers = [answer.number(EXEC) for _ in kinds.split()]
    own_args: Iterator[Mapping[str, Any]] = chain(args, repeat({}))
    for number, kind, own in zip(numbers, kinds.split(), own_args, strict=False):
        usual = {"call_id": answer.ids.new("toolu"), "command": f"echo {number}", "path": f"/sandbox/{number}"}
        given = {**_ARGS, **usual, **own}
        known = {name: given[name] for name in EXECS[kind][1] if name in given}
        yield {"type": "exec", "kind": kind, "id": number, "exec_id": answer.ids.new("exec"), **known}
    yield from _withdrawn(numbers[0], abort)
    for number in numbers:
        yield answer.settled(EXEC, number)
    for number in numbers:
        asked = answer.run.ledger.find(EXEC, number)
        yield from answer.part(Say(f'Exec {number} said: "{asked.outcome.text if asked else ""}". '))


def _rewrite(answer: AgentAnswer, path: str, append: str = "", check: bool = False) -> Iterator[Action]:
    """Edits a file as the service does: reads it whole, and writes it back whole with text appended. `check`: reads it
    once more, and a file that came back otherwise is a violation."""
    number = answer.number(EXEC)
    yield from answer.asks("read", number, path=path, call_id=answer.ids.new("toolu"))
    asked = answer.run.ledger.find(EXEC, number)
    data = (asked.outcome.text if asked else "").encode(errors="surrogateescape") + append.encode()
    yield from answer.asks("write", path=path, **_content(data), call_id=answer.ids.new("toolu"))
    if check:
        yield from answer.asks("read", path=path, call_id=answer.ids.new("toolu"))


def _content(data: bytes) -> dict[str, Any]:
    """The arguments of a write: a text, or the bytes of another file."""
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"file_bytes": data}


def _working(asking: AgentFault) -> AgentFault:
    """Wraps a fault so that it asks before the model's output. Nothing follows an end."""

    @wraps(asking)
    def fault(answer: AgentAnswer, **params: Any) -> Iterator[Action]:
        for one in at_work(answer, asking(answer, **params)):
            yield one
            if is_event(one, "end"):
                return

    return fault


def _notes(answer: AgentAnswer, notes_session_id: str = "notes-1") -> Iterator[Action]:
    """The server names the real conversation."""
    for one in answer.stream():
        named = isinstance(one, dict) and one["type"] == "exec" and one.get("kind") == "context"
        yield {**one, "notes_session_id": notes_session_id} if named and isinstance(one, dict) else one


def _bare(answer: AgentAnswer) -> Iterator[Action]:
    yield {"type": "step_started", "step_id": 1}
    yield from answer.work()
    yield from answer.ending()


def _append_fails(
    answer: AgentAnswer, number: int = 0, status: int = 502, body: Any = "", headers: dict[str, str] | None = None
) -> Iterator[Action]:
    """Accepts the append of that number, and answers it so."""
    answer.run.replies[number] = Reply(status, body, headers)
    return answer.stream()


def _append_waits(answer: AgentAnswer, number: int = 1, seconds: float = 1.0) -> Iterator[Action]:
    """Answers the append of that number late."""
    answer.run.waits[number] = seconds
    return answer.stream()


def _append_cut(answer: AgentAnswer, number: int = 1, reset: bool = False) -> Iterator[Action]:
    """Accepts the append of that number, and ends its connection without an answer."""
    answer.run.cuts[number] = reset
    return answer.stream()


ASKING_FAULTS: dict[str, AgentFault] = {
    "exec": _working(_exec),
    "query": _working(_query),
    "get_blob": _working(_get_blob),
    "set_blobs": _working(_blobs),
    "execs_together": _working(_together),
    "context_again": lambda answer: at_work(answer, answer.asks("context", number=0)),
    "rewrite": _working(_rewrite),
    "notes_session_id": _notes,
    "no_prelude": _bare,
    "append_fails": _append_fails,
    "append_waits": _append_waits,
    "append_cut": _append_cut,
}
