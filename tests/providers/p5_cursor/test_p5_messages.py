"""What we say in a run as bytes: the documented vectors of our answers, and every other answer through the codec."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from samples import rows

from proxy.providers.p5_cursor.bridge.calls import ExecRequest
from proxy.providers.p5_cursor.bridge.plans import plan_for
from proxy.providers.p5_cursor.bridge.steps import Plan, Returned, Workplace
from proxy.providers.p5_cursor.bridge.tool_forms import ClientTools, client_tools
from proxy.providers.p5_cursor.run.opening import request_context
from proxy.providers.p5_cursor.run.replies import (
    CANCEL,
    HEARTBEAT,
    answered,
    context_answer,
    denial,
    exec_heartbeat,
    query_answer,
    throw,
)
from proxy.providers.p5_cursor.run.requests import Blobs
from proxy.providers.p5_cursor.wire.protobuf import decode, encode, members
from proxy.sandbox.p5.execs import EXECS, Outcome, ends, odd, outcome
from proxy.sandbox.wires.connect.protobuf import Message, write

Said = dict[str, Any]


def asked(payload: str) -> tuple[str, Any]:
    """The one member of a payload of the service."""
    ((name, value),) = members("AgentServerMessage", bytes.fromhex(payload))
    return name, value


def exec_of(payload: str) -> ExecRequest:
    return ExecRequest.of(asked(payload)[1])


def sent(messages: list[Said]) -> list[str]:
    return [encode("AgentClientMessage", message).hex() for message in messages]


def returned(request: ExecRequest, text: str, *, elapsed_ms: int = 12, is_error: bool = False) -> list[str]:
    plan = planned(request)
    next(plan)
    with pytest.raises(StopIteration) as done:
        plan.send(Returned(text, is_error, elapsed_ms))
    return sent(answered(request, done.value.value))


def planned(request: ExecRequest) -> Plan:
    """The plan with tools like Claude Code's, whose schemas are open."""
    plan = plan_for(request, Workplace(client_tools([{"name": name} for name in ("Read", "Write", "Bash")]), "/w"))
    assert plan is not None
    return plan


CONTEXT = "120a5204120263317a026530"
READ_1 = "121608013a0e0a082f772f612e747874120274317a026531"
WRITE_2 = "121d08021a150a082f772f622e7478741203780a791a02743220017a026532"
STREAM_3 = "1218080372100a026c7312022f7718b0ea01220274337a026533"
SHELL_4 = "1210080412080a026c7312022f777a026534"
READ_0 = "12143a0e0a082f772f612e747874120274307a026530"
KNOWN = {"os_version": "linux", "workspace_paths": ["/w"], "shell": "/bin/bash"}
PLACE = {"project_folder": "/w", "process_working_directory": "/w"}


@rows(
    "messages, expected",
    [
        (sent([HEARTBEAT]), ["3a00"]),
        (sent([CANCEL]), ["22021a00"]),
        (sent([exec_heartbeat(0)]), ["2a021a00"]),
        (sent([exec_heartbeat(3)]), ["2a041a020803"]),
        (
            sent(context_answer(exec_of(CONTEXT), {"env": {**KNOWN, **PLACE}})),
            [
                "122b52250a230a21221f0a056c696e757812022f771a092f62696e2f626173685a022f77aa01022f777a026530",
                "2a020a00",
            ],
        ),
        (
            returned(exec_of(READ_1), "     1→one\n     2→two"),
            ["122108013a190a170a082f772f612e74787412076f6e650a74776f180220077a026531", "2a040a020801"],
        ),
        (
            returned(exec_of(READ_1), "no such file", is_error=True),
            ["122208013a1a12180a082f772f612e747874120c6e6f20737563682066696c657a026531", "2a040a020801"],
        ),
        (
            returned(exec_of(READ_0), "x", is_error=True),
            ["12153a0f120d0a082f772f612e7478741201787a026530", "2a020a00"],
        ),
        (
            returned(exec_of(WRITE_2), "done"),
            ["121d08021a150a130a082f772f622e747874100218032203780a797a026532", "2a040a020802"],
        ),
        (
            returned(exec_of(STREAM_3), "a.txt\n"),
            [
                "120a0803720222007a026533",
                "12120803720a0a080a06612e7478740a7a026533",
                "1210080372081a0612022f77300c7a026533",
                "2a040a020803",
            ],
        ),
        (
            returned(exec_of(SHELL_4), "a"),
            ["12150804120d0a0b0a026c7312022f772a01617a026534", "2a040a020804"],
        ),
        (
            returned(exec_of(SHELL_4), "no", is_error=True),
            ["121808041210120e0a026c7312022f77180132026e6f7a026534", "2a040a020804"],
        ),
        (
            sent(throw(exec_of("120408057a00"), "unsupported")),
            ["2a11120f0805120b756e737570706f72746564", "2a040a020805"],
        ),
        (
            sent(denial(ExecRequest(7, "e7", "mcp_args", {"name": "T"}), ClientTools(), "/w")),
            ["120d08075a052a030a01547a026537", "2a040a020807"],
        ),
        (sent([query_answer(asked("3a0d080912090a070a017112027439")[1])]), ["3206080912020a00"]),
        (sent([query_answer({"id": 7, "create_plan_request_query": {}})]), ["320808073a040a020a00"]),
        (sent([query_answer({"id": 11})]), ["3202080b"]),
        (sent([query_answer(asked("3a05080c9a0600")[1])]), ["3202080c"]),
        (sent([Blobs().answer(asked("220a1a080a02010212027b7d")[1])]), ["1a021a00"]),
        (sent([Blobs().answer({"id": 1, "set_blob_args": {}})]), ["1a0408011a00"]),
        (sent([Blobs().answer(asked("220812060a040a026869")[1])]), ["1a0812060a040a026869"]),
        (sent([Blobs().answer({"id": 4, "get_blob_args": {"blob_id": bytes(32)}})]), ["1a0408041200"]),
    ],
)
def test_our_answers_are_the_vectors_of_20_1(messages: list[str], expected: list[str]) -> None:
    assert messages == expected


@pytest.mark.parametrize("payload", ["120608087a026538", "120f08087a026538ea02060a042f772f61"])
def test_an_exec_without_a_known_arm_is_thrown(payload: str) -> None:
    thrown, close = sent(denial(exec_of(payload), client_tools([{"name": "Bash"}]), "/w"))
    assert decode("AgentClientMessage", bytes.fromhex(thrown))["exec_client_control_message"]["throw"]["id"] == 8
    assert close == "2a040a020808"


def round_trip(messages: list[Said]) -> None:
    """Each can be written, and says the same when it is read."""
    for message in messages:
        assert decode("AgentClientMessage", encode("AgentClientMessage", message)) == message


@rows("kind", sorted(EXECS.keys() - {"context"}))
@rows("number", [0, 3])
def test_the_simulator_reads_a_denial_as_one_failure_and_one_close(kind: str, number: int) -> None:
    """It has the numbers from the document in another form, so that a misreading on either side shows."""
    arm, places = EXECS[kind]
    words = {
        place: f"the {name}" for name, place in places.items() if name in ("path", "command", "url", "name", "uri")
    }
    request = exec_of(write({2: {1: number or None, arm: words, 15: "e"}}).hex())
    *results, close = [Message(bytes.fromhex(message)) for message in sent(denial(request, ClientTools(), "/w"))]
    assert close.has(5, 1)
    assert not close.has(5, 1, 1) if number == 0 else close.number(5, 1, 1) == number
    if results[0].has(5, 2):
        (thrown,) = results
        assert thrown.number(5, 2, 1) == number
        assert thrown.text(5, 2, 2)
        return
    answers = [found for result in results if (found := result.sub(2)) is not None]
    assert len(answers) == len(results)
    assert {(answer.number(1), answer.text(15)) for answer in answers} == {(number, "e")}
    assert [odd(arm, Message(write(words)), answer) for answer in answers] == [[]] * len(answers)
    assert [ends(arm, answer) for answer in answers] == [False] * (len(answers) - 1) + [True]
    assert not outcome(arm, answers).ok
    assert outcome(arm, answers).text or kind == "read_mcp_resource"


@rows(
    "kind, args, text, is_error, expected",
    [
        ("read", {"path": "/a"}, "1\tone\n2\ttwo", False, Outcome(True, "one\ntwo")),
        ("redacted_read", {"path": "/a"}, "1\tone", False, Outcome(True, "one")),
        ("read", {"path": "/a"}, "no such file", True, Outcome(False, "no such file")),
        ("write", {"path": "/a", "text": "x"}, "done", False, Outcome(True, "/a")),
        ("write", {"path": "/a", "text": "x"}, "full", True, Outcome(False, "full")),
        ("shell", {"command": "ls"}, "a", False, Outcome(True, "a")),
        ("shell", {"command": "ls"}, "no", True, Outcome(False, "no")),
        ("shell_stream", {"command": "ls"}, "a", False, Outcome(True, "a")),
        ("shell_stream", {"command": "ls"}, "no", True, Outcome(False, "no")),
        ("shell_stream", {"command": "ls"}, "", False, Outcome(True, "")),
    ],
)
def test_the_simulator_reads_a_result_as_it_was_meant(
    kind: str, args: dict[str, str], text: str, is_error: bool, expected: Outcome
) -> None:
    arm, places = EXECS[kind]
    asked = {places[name]: value for name, value in args.items()}
    request = exec_of(write({2: {1: 3, arm: asked, 15: "e"}}).hex())
    *results, close = [Message(bytes.fromhex(message)) for message in returned(request, text, is_error=is_error)]
    answers = [found for result in results if (found := result.sub(2)) is not None]
    assert close.number(5, 1, 1) == 3
    assert [odd(arm, Message(write(asked)), answer) for answer in answers] == [[]] * len(answers)
    assert [ends(arm, answer) for answer in answers] == [False] * (len(answers) - 1) + [True]
    assert outcome(arm, answers) == expected


@given(content=st.text(st.one_of(st.sampled_from("\n\n\t→ 123<>"), st.characters(codec="utf-8")), min_size=1))
@example(content="1\tone\n2\ttwo\n")
@example(content="text\n<system-reminder>mine</system-reminder>")
def test_a_file_that_is_read_and_written_back_is_the_same(content: str) -> None:
    """The service edits a file so: it reads all of it, and writes all of it."""
    for separator in "→\t":
        shown = "\n".join(f"{number:6}{separator}{line}" for number, line in enumerate(content.split("\n"), 1))
        for after in ("", "\n\n<system-reminder>\nBe careful.\n</system-reminder>\n"):
            said = decode("AgentClientMessage", bytes.fromhex(returned(exec_of(READ_1), shown + after)[0]))
            read = said["exec_client_message"]["read_result"]["success"]
            asked_back = {"id": 2, "write_args": {"path": read["path"], "file_text": read["content"]}}
            request = exec_of(encode("AgentServerMessage", {"exec_server_message": asked_back}).hex())
            assert next(planned(request)).input == {"file_path": "/w/a.txt", "content": content}


def test_the_whole_context_can_be_written() -> None:
    context = request_context("/w", os_version="linux x86_64", shell="/bin/bash")
    round_trip(context_answer(ExecRequest(0, "e0", "request_context_args", {}), context))


def test_a_refused_blob_can_be_written() -> None:
    blobs = Blobs()
    blobs.answer({"set_blob_args": {"blob_id": b"a", "blob_data": bytes(32 * 1024 * 1024)}})
    blobs.answer({"set_blob_args": {"blob_id": b"b", "blob_data": bytes(32 * 1024 * 1024)}})
    round_trip([blobs.answer({"id": 3, "set_blob_args": {"blob_id": b"c", "blob_data": b"x"}})])
