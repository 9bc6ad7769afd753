"""Captures of runs, which outlive a request."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest
from cursor_talk import Talk, all_over, calls, result
from harness import Live, ask, watch_often
from stations import Recorded
from wires import PICTURE

from proxy.providers.p5_cursor.wire.protobuf import encode

LOGGED_IN = "connect 401 refused failed connect 200 events sent replied completed:200"
BROKEN = "connect 200 events failed replied failed:502"


@pytest.fixture
def live_options(recorded: Recorded) -> dict[str, Any]:
    return {"captures": recorded, "tuning": (watch_often(),)}


async def test_a_run_is_told_in_dicts(live: Live, recorded: Recorded) -> None:
    await live.post(ask("greet me", model="cursor"))
    request = await recorded.over()
    (attempt,) = request.attempts
    assert attempt.method == "POST" and attempt.url.endswith("/RunSSE") and attempt.details["number"] == 1
    assert isinstance(attempt.body, dict) and attempt.body["run_request"]["action"]["user_message_action"]
    assert encode("AgentClientMessage", attempt.body) and "authorization" in attempt.headers
    kinds = [next(iter(event)) for event in attempt.said]
    assert {"interaction_update", "exec_server_message"} <= set(kinds) and kinds[-1] == "end"
    assert any("exec_client_message" in message for message in attempt.messages)


async def test_a_run_that_goes_on_is_told_to_the_request_that_brings_the_result(live: Live, recorded: Recorded) -> None:
    talk = Talk(live, "use Bash: ls and then use Read: /etc/hosts")
    message = await talk.turn()
    for number in (1, 2):
        request = await recorded.over(number)
        assert request.ends[0][:2] == ("completed", 200)
        message = await talk.turn(result(calls(message)[0], f"result {number}"))
    request = await recorded.over(3)
    await all_over(live)
    assert [len(one.attempts) for one in recorded.requests] == [1, 1, 1]
    assert [one.attempts[0].details.get("resumed", False) for one in recorded.requests] == [False, True, True]
    assert len({one.attempts[0].details["run"] for one in recorded.requests}) == 1
    for number, one in enumerate(recorded.requests[1:], 1):
        (attempt,) = one.attempts
        assert one.way == "connect 200 events sent streamed completed:200"
        assert f"result {number}" in str(attempt.body) and attempt.answers[0][1]["Content-Type"]


def bytes_in(value: Any) -> Iterator[bytes]:
    if isinstance(value, bytes):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from bytes_in(one)


@pytest.mark.parametrize(
    ("step", "way"),
    [
        ({"status": 401}, LOGGED_IN),
        ({"events": [{"type": "end", "error": {"code": "internal", "message": "m"}}]}, BROKEN),
        ({"events": [{"type": "text_delta", "text": "Hi"}], "then": "cut"}, BROKEN),
    ],
    ids=["token refused once", "error", "cut"],
)
async def test_a_run_that_fails_is_captured(live: Live, recorded: Recorded, step: dict[str, Any], way: str) -> None:
    live.sandbox.p5.script.extend([{"provider": "p5", **step}])
    answer = await live.post(ask(model="cursor"))
    request = await recorded.over()
    assert request.way == way and request.raw == answer.raw and request.ends[0][1] == answer.status


async def test_of_a_picture_the_bytes_are_bytes(live: Live, recorded: Recorded) -> None:
    """So that whoever writes a capture sees that they are no text."""
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}}
    await live.post(ask([{"role": "user", "content": [picture]}], model="cursor"))
    body = (await recorded.over()).attempts[0].body
    assert isinstance(body, dict) and base64.b64decode(PICTURE) in bytes_in(body) and PICTURE not in str(body)
