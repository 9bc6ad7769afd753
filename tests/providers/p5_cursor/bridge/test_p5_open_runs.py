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
