"""`captures diff`: which two are compared, by what, and what is said of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from captured import NOON, Run, responses_body, write_capture
from harness import ask, tool

from proxy.observe.capture.layout import DOWNSTREAM_EVENT, REPLY, artifact_name, event_name

HELLO = {"role": "user", "content": "hello"}
MORE = [HELLO, {"role": "assistant", "content": "hi"}, {"role": "user", "content": "go on"}]


def turn(state: Path, number: int, messages: list[dict[str, Any]], *, system: str = "Be brief.", **how: Any) -> Path:
    request = ask(messages, system=system, tools=[tool()])
    sent = {"sent": responses_body(request), **how}
    return write_capture(state, number=number, received=request, begun_s=NOON + number, **sent)


def named(out: str) -> list[str]:
    """The captures that were compared."""
    return [line.split()[1].rpartition("/")[2][:6] for line in out.splitlines()[:2]]


def test_a_conversation_that_goes_on(state: Path, captures: Run) -> None:
    turn(state, 1, [HELLO])
    turn(state, 2, MORE)
    status, out, err = captures("diff")
    assert (status, err) == (0, "")
    assert out.splitlines()[2] == "compared: what went to the upstream (020)"
    assert "all of A is the beginning of B" in out and "after it: 2 added" in out
    assert "+ input[1].content[0] assistant output_text" in out and "settings" not in out


def test_a_prompt_that_changes(state: Path, captures: Run) -> None:
    turn(state, 1, MORE, system="Be brief. It is 12:00.")
    turn(state, 2, MORE, system="Be brief. It is 12:01.", sent=None)
    _, out, _ = captures("diff", "--received")
    assert "first difference: system (system), byte" in out
    assert "  A …" in out or "  A {" in out
    assert "It is 12:00." in out and "It is 12:01." in out and "then: 1 changed" in out
    assert "common prefix: 1 block, " in out


def test_settings_that_change(state: Path, captures: Run) -> None:
    body = responses_body(ask([HELLO]))
    write_capture(state, number=1, received=ask([HELLO]), sent=body)
    write_capture(state, number=2, received=ask([HELLO]), sent={**body, "prompt_cache_key": "t"}, begun_s=NOON + 1)
    assert 'settings: 1 changed\n  ~ prompt_cache_key: "s" -> "t"\n' in captures("diff")[1]


def test_long_settings_are_shown_where_they_differ(state: Path, captures: Run) -> None:
    body = responses_body(ask([HELLO]))
    for number, turn_id in ((1, "first"), (2, "second")):
        write_capture(state, number=number, received={}, sent={**body, "meta": {"a": "x" * 100, "turn": turn_id}})
    line = captures("diff", "00000001", "00000002")[1].splitlines()[-1]
    assert line == '  ~ meta: …xxxxxxxxxx","turn":"first"} -> …xxxxxxxxxx","turn":"second"}'


#: arguments -> the numbers of the two in the session; 1 2 4 6 are the conversation, 3 a title, 5 an agent
CHOICES = [
    ("", "4 6"),
    ("00000002", "2 4"),
    ("00000001", "1 2"),
    ("00000001 00000006", "1 6"),
    ("000004 00000003", "4 3"),
]


def session(state: Path) -> None:
    turn(state, 1, [HELLO])
    turn(state, 2, MORE)
    turn(state, 3, [HELLO], model="gpt-5.6-luna")
    turn(state, 4, MORE)
    turn(state, 5, [HELLO], headers={"X-Claude-Code-Agent-Id": "[redacted len=8]"})
    turn(state, 6, MORE)
    turn(state, 7, MORE, kind="count_tokens", sent=None)
    turn(state, 8, MORE, session="other")


@pytest.mark.parametrize(("names", "numbers"), CHOICES)
def test_the_two_that_are_compared(names: str, numbers: str, state: Path, captures: Run) -> None:
    session(state)
    status, out, _ = captures("diff", *names.split())
    assert status == 0 and named(out) == [f"{int(number):06d}" for number in numbers.split()]


def test_nearly_all_is_not_all(state: Path, captures: Run) -> None:
    turn(state, 1, [HELLO], system="a" * 100_000)
    turn(state, 2, MORE, system="a" * 100_000)
    assert "99 % of B" in captures("diff")[1]


@pytest.mark.parametrize("names", [(1,), (1, 4)])
def test_paths_lead_anywhere(names: tuple[int, ...], tmp_path: Path, captures: Run) -> None:
    folders = {number: turn(tmp_path / "copy", number, MORE) for number in (1, 2, 4)}
    status, out, err = captures("diff", *(str(folders[name]) for name in names))
    assert (status, err) == (0, "") and named(out) == ["000001", f"{names[-1] if len(names) > 1 else 2:06d}"]


def test_tables_fit_a_terminal(state: Path, captures: Run) -> None:
    turn(state, 1, [HELLO], system="a" * 98_765)
    turn(state, 2, [HELLO, {"role": "user", "content": "b" * 98_765}], system="a" * 98_765)
    out = captures("diff")[1].splitlines()
    assert max(map(len, out[2:])) <= 80 and "98,790 B" in out[5]


@pytest.mark.parametrize("name", ["00000006", "00000008"])
def test_one_that_nothing_follows(name: str, state: Path, captures: Run) -> None:
    session(state)
    status, out, err = captures("diff", name)
    assert (status, out) == (1, "") and "name two" in err


def test_a_session_with_one_request(state: Path, captures: Run) -> None:
    turn(state, 1, [HELLO])
    status, out, err = captures("diff")
    assert (status, out) == (1, "") and "name two" in err


REASONS = [
    ({"sent": None}, "not both have a request to the upstream"),
    (
        {"sent": {**responses_body(ask(MORE)), "previous_response_id": "resp_1"}},
        "only the new part was sent",
    ),
    ({"sent": {"model": "m", "messages": MORE}}, "the two went over different wires"),
    ({"sent": {"exec_client_message": {}}}, "not both have a request to the upstream"),
]


@pytest.mark.parametrize(("how", "reason"), REASONS)
def test_what_tells_little_is_not_compared(how: dict[str, Any], reason: str, state: Path, captures: Run) -> None:
    turn(state, 1, [HELLO])
    turn(state, 2, MORE, **how)
    _, out, _ = captures("diff")
    assert f"compared: what the client sent (010), because {reason}" in out and "+ messages[1].content" in out


def test_requests_of_two_routes_are_compared_by_what_they_became(state: Path, captures: Run) -> None:
    chat = {"model": "m", "messages": [HELLO]}
    write_capture(state, number=1, kind="chat_completions", received=chat, converted=ask([HELLO]))
    write_capture(state, number=2, received=ask(MORE), begun_s=NOON + 1)
    _, out, _ = captures("diff", "00000001", "00000002")
    assert "all of A is the beginning of B" in out


def test_a_capture_without_a_request(state: Path, captures: Run) -> None:
    turn(state, 1, [HELLO])
    write_capture(state, number=2, begun_s=NOON + 2)
    status, _, err = captures("diff")
    assert status == 1 and "not both captures have a request" in err


def test_long_lists_are_cut(state: Path, captures: Run) -> None:
    turn(state, 1, [HELLO])
    turn(state, 2, [HELLO, *({"role": "user", "content": str(number)} for number in range(100))])
    short, whole = captures("diff", "--received")[1], captures("diff", "--received", "--all")[1]
    assert "… 60 more: --all" in short and short.count("\n  + ") == 40 and whole.count("\n  + ") == 100


USAGES = [
    # station, what stands there, what is said
    (REPLY, {"usage": {"input_tokens": 10, "cache_read_input_tokens": 90}}, "90 of 100"),
    (REPLY, {"usage": {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 80}}}, "80 of 100"),
    (REPLY, {"usage": {"input_tokens": 1000, "input_tokens_details": {"cached_tokens": 0}}}, "0 of 1,000"),
    (DOWNSTREAM_EVENT, {"usage": {"input_tokens": 7, "cache_read_input_tokens": 3}}, "3 of 10"),
    (DOWNSTREAM_EVENT, {"response": {"usage": {"input_tokens": 5, "input_tokens_details": None}}}, "0 of 5"),
    (REPLY, {"error": {}}, None),
    (REPLY, {"usage": {"input_tokens": "many"}}, None),
    (REPLY, [], None),
]  # fmt: skip


@pytest.mark.parametrize(("station", "value", "said"), USAGES)
def test_what_came_from_the_cache(station: str, value: Any, said: str | None, state: Path, captures: Run) -> None:
    turn(state, 1, [HELLO])
    folder = turn(state, 2, MORE, events=1)
    name = artifact_name(9, station) if station == REPLY else event_name(2, station)
    (folder / name).write_text(json.dumps(value))
    first, second = captures("diff")[1].splitlines()[:2]
    assert "cache" not in first
    assert second.endswith(f", {said} input tokens from the cache" if said else "gpt-5.5")
