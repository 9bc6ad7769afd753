"""P3's credential in the life of requests: expired, refused, over, missing; on every route of the proxy."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from harness import Answer, Live, ask
from samples import rows

from proxy.sandbox import Sandbox

MODEL = "grok-4.6"
CHAT = {"model": MODEL, "messages": [{"role": "user", "content": "hello"}]}
RESPONSES = {"model": MODEL, "input": "hello"}

#: Path, body.
ROUTES: list[tuple[str, dict[str, Any]]] = [
    ("/v1/messages", ask(model=MODEL)),
    ("/v1/chat/completions", CHAT),
    ("/v1/responses", RESPONSES),
]
both_forms = pytest.mark.parametrize("stream", [True, False])


@pytest.fixture
def live_options() -> dict[str, Any]:
    return {"openai_routes": True}


async def post(live: Live, number: int = 0, *, stream: bool = False) -> Answer:
    path, body = ROUTES[number % len(ROUTES)]
    return await live.post({**body, "stream": stream}, path)


async def all_at_once(live: Live) -> set[int]:
    """The statuses of twenty requests over all routes, every other one streamed."""
    answers = await asyncio.gather(*(post(live, number, stream=number % 2 == 0) for number in range(20)))
    return {answer.status for answer in answers}


async def test_an_expired_token_is_renewed_once_for_twenty_requests(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.write_credentials(tmp_path, lifetime_s=-60)
    sandbox.p3.issuer.delay_s = 0.05
    async with Live(sandbox, tmp_path, signed_in=False, openai_routes=True) as live:
        assert await all_at_once(live) == {200}
    assert (sandbox.p3.issuer.refresh_requests, sandbox.p3.total_requests) == (1, 20)


async def test_a_refused_token_is_renewed_once_for_twenty_requests(live: Live) -> None:
    p3 = live.sandbox.p3
    p3.revoke_access()
    p3.issuer.delay_s = 0.05
    assert await all_at_once(live) == {200}
    assert p3.issuer.refresh_requests == 1 and not live.sleeps


REFUSED = ("unauthorized", "bad_credentials", "bad_credentials_nested", "bad_credentials_text")


@both_forms
@pytest.mark.parametrize("fault", REFUSED)
async def test_a_refused_token_is_renewed_and_the_request_sent_again(live: Live, fault: str, stream: bool) -> None:
    p3 = live.sandbox.p3
    p3.script.replace([{"fault": fault}])
    assert (await post(live, stream=stream)).status == 200
    first, second = p3.requests
    assert (p3.refreshes, p3.total_requests) == (1, 2) and not live.sleeps
    assert first.body == second.body and first.headers["authorization"] != second.headers["authorization"]


@both_forms
@pytest.mark.parametrize("fault", REFUSED)
async def test_a_token_that_is_refused_again_is_told(live: Live, fault: str, stream: bool) -> None:
    p3 = live.sandbox.p3
    p3.script.replace([{"fault": fault, "times": 2}])
    answer = await post(live, stream=stream)
    assert (answer.status, answer.error["type"]) == (401, "authentication_error")
    assert "auth login p3" in answer.error["message"] and answer.headers["x-should-retry"] == "false"
    assert (p3.refreshes, p3.total_requests) == (1, 2)


@rows("fault", ["forbidden", "spending_limit", "payment_required"])
async def test_what_a_new_token_cannot_cure_renews_nothing(live: Live, fault: str) -> None:
    p3 = live.sandbox.p3
    p3.script.replace([{"fault": fault}])
    assert (await post(live)).status in (402, 403)
    assert (p3.refreshes, p3.total_requests) == (0, 1)


async def test_a_scope_that_is_missing_renews_nothing(live: Live) -> None:
    p3 = live.sandbox.p3
    p3.tokens.scope = "openid offline_access"
    live.sandbox.write_credentials(live.root)
    answer = await post(live)
    assert (answer.status, answer.error["type"]) == (403, "permission_error")
    assert "grok-cli:access" in answer.error["message"] and p3.refreshes == 0


@both_forms
async def test_a_renewal_that_fails_for_now_loses_nothing(live: Live, stream: bool) -> None:
    p3, stored = live.sandbox.p3, (live.root / "p3" / "auth.json").read_bytes()
    p3.revoke_access()
    p3.issuer.answer_with(500, "broken")
    answer = await post(live, stream=stream)
    assert (answer.status, answer.error["type"]) == (503, "api_error") and "x-should-retry" not in answer.headers
    assert (live.root / "p3" / "auth.json").read_bytes() == stored and p3.issuer.refresh_requests == 3
    p3.issuer.recover()
    assert (await post(live)).status == 200


@both_forms
async def test_a_sign_in_that_is_over_is_told_with_its_cure(live: Live, stream: bool) -> None:
    p3, stored = live.sandbox.p3, (live.root / "p3" / "auth.json").read_bytes()
    p3.tokens.revoke_refresh()
    p3.revoke_access()
    for _ in range(2):
        answer = await post(live, stream=stream)
        assert answer.status == 401 and answer.headers["x-should-retry"] == "false"
        assert "invalid_grant" in answer.error["message"] and "auth login p3" in answer.error["message"]
    assert p3.issuer.refresh_requests == 1 and (live.root / "p3" / "auth.json").read_bytes() == stored
    live.sandbox.write_credentials(live.root)  # another process signs in
    assert (await post(live)).status == 200


#: What lies in place of the credential's members -> what is told.
UNUSABLE: list[tuple[dict[str, str] | None, str]] = [
    (None, "is not signed in"),
    ({"scope": "s"}, "cannot be read"),
    ({"issuer": "https://auth.x.ai"}, "was made at https://auth.x.ai, not at"),
    ({"client_id": "else"}, "was made by another client"),
]


@pytest.mark.parametrize(("members", "words"), UNUSABLE)
@pytest.mark.parametrize("number", range(len(ROUTES)))
async def test_without_a_usable_sign_in_nobody_is_asked(
    live: Live, members: dict[str, str] | None, words: str, number: int
) -> None:
    path = live.root / "p3" / "auth.json"
    stored = json.loads(path.read_text())
    path.unlink()
    if members is not None:
        path.write_text(json.dumps({**stored, **members}))
    answer = await post(live, number)
    message = answer.json["error"]["message"]
    assert answer.status == 401 and words in message and "auth login p3" in message
    assert live.sandbox.p3.total_requests == 0 and live.sandbox.p3.issuer.discoveries == 0
