"""P5's credential in the life of requests: ending, refused, missing, set by the user; on every route of the proxy."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from cursor_talk import Talk, all_over, calls, result, said
from harness import Answer, Live, ask
from samples import each

from proxy.core.hiding.secret import Secret
from proxy.sandbox import Sandbox

#: Path, body. The OpenAI-style routes take streams of a session only.
ROUTES: list[tuple[str, dict[str, Any]]] = [
    ("/v1/messages", ask(model="cursor")),
    ("/v1/messages", {**ask(model="cursor"), "stream": True}),
    ("/v1/chat/completions", {"model": "cursor", "stream": True, "messages": [{"role": "user", "content": "hello"}]}),
    ("/v1/responses", {"model": "cursor", "stream": True, "input": "hello"}),
]
each_route = pytest.mark.parametrize("number", range(len(ROUTES)))


@pytest.fixture
def live_options() -> dict[str, Any]:
    return {"openai_routes": True}


async def post(live: Live, number: int = 0, session: str = "s1") -> Answer:
    path, body = ROUTES[number % len(ROUTES)]
    return await live.post(body, path, {"x-claude-code-session-id": session, "session-id": session})


def told(answer: Answer) -> str:
    """The message of a 401 that no retry cures."""
    error = answer.json["error"]
    assert (answer.status, answer.headers["x-should-retry"]) == (401, "false"), answer.raw
    assert (error["type"], error["provider"]) == ("authentication_error", "p5")
    message: str = error["message"]
    return message


async def test_a_token_that_ends_is_renewed_once_for_twenty_requests(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.write_credentials(tmp_path, lifetime_s=30)
    sandbox.p5.issuer.delay_s = 0.05
    async with Live(sandbox, tmp_path, signed_in=False, openai_routes=True) as live:
        answers = await asyncio.gather(*(post(live, number, f"s{number}") for number in range(20)))
        assert {answer.status for answer in answers} == {200}, answers
    assert sandbox.p5.issuer.refresh_requests == sandbox.p5.refreshes == 1


#: lifetime of the stored token, whether the service refuses it, the answer to the renewal -> words of the 401, runs
LOST: dict[str, tuple[int, bool, tuple[int, Any], str, int]] = {
    "it ends, and the renewal fails": (30, False, (500, "oops"), "500 oops", 0),
    "it is refused, and the renewal fails": (3600, True, (500, {"message": "no"}), "auth login p5", 1),
    "both are refused": (3600, True, (401, {"message": "no"}), "auth login p5", 1),
    "the new one is refused too": (3600, True, (200, {"accessToken": "opaque", "refreshToken": "r"}), "p5", 2),
}


@each(1)
@each_route
@pytest.mark.parametrize("name", LOST)
async def test_a_token_that_cannot_be_replaced_is_a_401(live: Live, number: int, name: str) -> None:
    lifetime_s, is_refused, renewal, words, runs = LOST[name]
    p5 = live.sandbox.p5
    live.sandbox.write_credentials(live.root, lifetime_s=lifetime_s)
    if is_refused:
        p5.revoke_access()
    p5.issuer.answer_with(*renewal)
    assert words in told(await post(live, number))
    assert p5.total_requests == runs and p5.issuer.refresh_requests == 1


@each_route
async def test_a_token_that_the_service_refuses_is_renewed_and_the_run_begun_again(live: Live, number: int) -> None:
    p5 = live.sandbox.p5
    p5.revoke_access()
    assert (await post(live, number)).status == 200
    first, second = p5.requests
    assert (p5.refreshes, len(p5.requests)) == (1, 2) and not live.sleeps
    assert first.headers["authorization"] != second.headers["authorization"]
    assert first.headers["x-request-id"] != second.headers["x-request-id"]


@pytest.mark.parametrize(("renewed_meanwhile", "runs"), [(True, 2), (False, 3)])
async def test_a_token_that_ends_while_a_run_waits_for_a_tool(live: Live, renewed_meanwhile: bool, runs: int) -> None:
    """The run goes on with the token of its beginning; another one, with the result in its prompt, takes its place."""
    p5, talk = live.sandbox.p5, Talk(live, "use Bash: ls -la")
    call = calls(await talk.turn())[0]
    p5.revoke_access()
    if renewed_meanwhile:
        live.sandbox.write_credentials(live.root)
    message = await talk.turn(result(call, "a.txt"))
    assert "a.txt" in said(message) and p5.total_requests == runs and p5.refreshes == runs - 2
    await all_over(live)


async def test_a_run_that_waits_is_not_renewed_for_ever(live: Live) -> None:
    p5, talk = live.sandbox.p5, Talk(live, "use Bash: ls -la")
    call = calls(await talk.turn())[0]
    p5.revoke_access()
    p5.issuer.answer_with(200, {"accessToken": "opaque", "refreshToken": "r"})
    talk.messages.append({"role": "user", "content": [result(call)]})
    told(await talk.ask())
    assert p5.total_requests == 3 and p5.issuer.refresh_requests == 1


#: fault -> status, renewals
REFUSALS: list[tuple[dict[str, Any], int, int]] = [
    ({"fault": "unauthorized"}, 200, 1),
    ({"fault": "unauthorized", "times": 2}, 401, 1),
    ({"fault": "forbidden", "message": "Forbidden"}, 200, 1),
    ({"fault": "end_error", "code": "unauthenticated"}, 200, 1),
    ({"fault": "end_error", "code": "unauthenticated", "times": 2}, 401, 1),
    ({"fault": "end_error", "code": "unknown", "error": "ERROR_AUTH_TOKEN_EXPIRED"}, 200, 1),
    ({"fault": "append_fails", "number": 0, "status": 401}, 200, 1),
    ({"fault": "append_fails", "number": 1, "status": 401}, 200, 1),
    ({"fault": "forbidden"}, 403, 0),
    ({"fault": "unsupported_region"}, 403, 0),
]


@each(1)
@each_route
@pytest.mark.parametrize(("fault", "status", "renewals"), REFUSALS, ids=str)
async def test_what_a_new_token_may_cure_is_asked_once_more(
    live: Live, number: int, fault: dict[str, Any], status: int, renewals: int
) -> None:
    live.sandbox.p5.script.replace([fault])
    assert (await post(live, number)).status == status
    assert live.sandbox.p5.refreshes == renewals and not live.sleeps


@pytest.mark.parametrize("number", [1, 2, 3])
async def test_nothing_is_renewed_once_something_was_said(live: Live, number: int) -> None:
    live.sandbox.p5.script.replace([{"fault": "end_error", "code": "unauthenticated", "after": "text"}])
    answer = await post(live, number)
    assert answer.status == 200 and b"sign in again" in answer.raw
    assert (live.sandbox.p5.refreshes, live.sandbox.p5.total_requests) == (0, 1)


@each_route
async def test_nobody_is_signed_in(live: Live, number: int) -> None:
    (live.root / "p5" / "auth.json").unlink()
    assert "p5 is not signed in; run `model-proxy auth login p5`" in told(await post(live, number))
    assert live.sandbox.p5.total_requests == 0


@pytest.mark.parametrize("stored", [False, True])
async def test_a_token_that_is_set_is_used_and_named_when_it_is_refused(
    sandbox: Sandbox, tmp_path: Path, stored: bool
) -> None:
    token = sandbox.p5.stored_credential()["accessToken"]
    async with Live(sandbox, tmp_path, signed_in=stored, p5_auth_token=Secret(token)) as live:
        assert (await post(live)).status == 200
        assert sandbox.p5.requests[-1].headers["authorization"] == f"Bearer {token}"
        sandbox.p5.revoke_access()
        assert "PROXY_P5_AUTH_TOKEN" in told(await post(live))
    assert sandbox.p5.issuer.refresh_requests == 0


async def test_another_process_signs_in(live: Live) -> None:
    path = live.root / "p5" / "auth.json"
    path.write_text(json.dumps({"accessToken": " "}))
    assert str(path) in told(await post(live))
    live.sandbox.write_credentials(live.root)
    assert (await post(live)).status == 200


async def test_no_token_comes_into_the_log(live: Live) -> None:
    p5, stored = live.sandbox.p5, json.loads((live.root / "p5" / "auth.json").read_text())
    p5.revoke_access()
    await post(live)
    p5.revoke_access()
    p5.issuer.answer_with(401, {"message": "no"})
    await post(live)
    now = json.loads((live.root / "p5" / "auth.json").read_text())
    written = json.dumps([live.notes.records, live.notes.captures], default=str)
    assert "sign-in refused" in written and not any(token in written for token in (*stored.values(), *now.values()))
