"""Which run is closed when there are too many."""

from __future__ import annotations

import pytest
from cursor_talk import Talk, all_over, calls, open_runs, result, said
from harness import Live, until

BASH = "use Bash: ls -la"


async def test_of_too_many_the_one_that_waits_longest_is_closed(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_runs(live), "_most", 2)
    first, second, third = (Talk(live, BASH, session=f"s{number}") for number in range(3))
    first.messages[0]["content"] = f"{BASH} and then {BASH}"
    call = calls(await first.turn())[0]
    lost = calls(await second.turn())[0]
    call = calls(await first.turn(result(call)))[0]  # it began first, and has waited for a shorter time
    newest = calls(await third.turn())[0]
    await until(lambda: len(open_runs(live)) == 2)
    for talk, open_call in ((first, call), (third, newest)):
        assert "still open" in said(await talk.turn(result(open_call, "still open")))
    assert live.sandbox.p5.total_requests == 3 and live.sandbox.p5.runs[1].cancelled
    assert "told again" in said(await second.turn(result(lost, "told again")))
    assert live.sandbox.p5.total_requests == 4
    await all_over(live)


async def test_of_too_many_of_a_session_the_one_that_waits_longest_is_closed(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others of the caller are left alone, however many."""
    monkeypatch.setattr(open_runs(live), "_most_waiting", 2)
    elsewhere = Talk(live, BASH, session="s2")
    other = calls(await elsewhere.turn())[0]
    talks = [Talk(live, f"use Bash: ls {number}") for number in range(3)]
    open_calls = [calls(await talk.turn())[0] for talk in talks]
    await until(lambda: len(open_runs(live)) == 3)
    assert live.sandbox.p5.runs[1].cancelled
    for talk, call in ((elsewhere, other), *zip(talks[1:], open_calls[1:], strict=True)):
        assert "still open" in said(await talk.turn(result(call, "still open")))
    assert live.sandbox.p5.total_requests == 4
    await all_over(live)


async def test_a_call_of_another_session_is_not_found_by_its_id(live: Live) -> None:
    talk = Talk(live, BASH)
    call = calls(await talk.turn())[0]
    stranger = Talk(live, BASH, session="s2")
    stranger.messages = [*talk.messages]
    assert "a guess" in said(await stranger.turn(result(call, "a guess")))
    assert live.sandbox.p5.total_requests == 2 and len(open_runs(live)) == 1
    assert "the result" in said(await talk.turn(result(call, "the result")))
    assert live.sandbox.p5.total_requests == 2
    await all_over(live)


@pytest.mark.parametrize("blanks", [f"{BASH} ", f"\n{BASH}\n"])
async def test_blanks_around_what_was_said_are_no_edit(live: Live, blanks: str) -> None:
    talk = Talk(live, BASH)
    call = calls(await talk.turn())[0]
    talk.messages[0]["content"] = blanks
    assert "the result" in said(await talk.turn(result(call, "the result")))
    assert live.sandbox.p5.total_requests == 1
    await all_over(live)


@pytest.mark.parametrize("edited", ["I do not know.", "", None])
async def test_an_edited_answer_begins_a_new_run(live: Live, edited: str | None) -> None:
    talk = Talk(live, "hello there")
    talk.goes_on(f"{BASH} and then {BASH}")
    first = calls(await talk.turn())[0]
    call = calls(await talk.turn(result(first, "one")))[0]
    assert talk.messages[1]["content"] == "Well." and live.sandbox.p5.total_requests == 1
    if edited is not None:
        talk.messages[1]["content"] = edited
    assert "two" in said(await talk.turn(result(call, "two")))
    assert live.sandbox.p5.total_requests == (1 if edited is None else 2)
    assert live.sandbox.p5.runs[0].cancelled is (edited is not None)
    await all_over(live)


@pytest.mark.parametrize(("session", "left"), [("s1", False), (None, True)])
async def test_who_began_with_the_same_words_may_be_another_user(live: Live, session: str | None, left: bool) -> None:
    """Only a client that names its session is known to have gone on without its run."""
    talk, other = Talk(live, BASH, session=session), Talk(live, BASH, session=session)
    call = calls(await talk.turn())[0]
    other.messages += talk.messages[1:]
    other.goes_on("hello there")
    await other.turn()
    assert "the result" in said(await talk.turn(result(call, "the result")))
    assert live.sandbox.p5.total_requests == (2 if left else 3)
    await all_over(live)


@pytest.mark.parametrize("edited", ["use Bash: ls -la now", "use Bash: ls  -la"])
async def test_a_result_below_an_edited_history_begins_a_new_run(live: Live, edited: str) -> None:
    talk = Talk(live, BASH)
    call = calls(await talk.turn())[0]
    talk.messages[0]["content"] = edited
    assert "the result" in said(await talk.turn(result(call, "the result")))
    assert live.sandbox.p5.total_requests == 2 and live.sandbox.p5.runs[0].cancelled
    await all_over(live)


async def test_the_newest_of_several_results_goes_on(live: Live) -> None:
    """A conversation goes on with the call that its client has; older calls of it are answered already."""
    talk = Talk(live, f"{BASH} and then {BASH}")
    first = calls(await talk.turn())[0]
    second = calls(await talk.turn(result(first, "one")))[0]
    assert "two" in said(await talk.turn(result(second, "two"))) and live.sandbox.p5.total_requests == 1
    await all_over(live)
