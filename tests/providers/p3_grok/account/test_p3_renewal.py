"""P3's credential in the life of requests, as far as no table has it: refused for many at once, of little scope, or
missing; on every route of the proxy."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from harness import Answer, Live, ask

MODEL = "grok-4.6"
CHAT = {"model": MODEL, "messages": [{"role": "user", "content": "hello"}]}
RESPONSES = {"model": MODEL, "input": "hello"}

#: Path, body.
ROUTES: list[tuple[str, dict[str, Any]]] = [
    ("/v1/messages", ask(model=MODEL)),
    ("/v1/chat/completions", CHAT),
    ("/v1/responses", RESPONSES),
]


@pytest.fixture
def live_options() -> dict[str, Any]:
    return {"openai_routes": True}


async def post(live: Live, number: int = 0, *, stream: bool = False) -> Answer:
    path, body = ROUTES[number % len(ROUTES)]
    return await live.post({**body, "stream": stream}, path)


async def test_a_refused_token_is_renewed_once_for_twenty_requests(live: Live) -> None:
    """Over all routes, every other one streamed."""
    p3 = live.sandbox.p3
    p3.revoke_access()
    p3.issuer.delay_s = 0.05
    answers = await asyncio.gather(*(post(live, number, stream=number % 2 == 0) for number in range(20)))
    assert {answer.status for answer in answers} == {200}
    assert p3.issuer.refresh_requests == 1 and not live.sleeps


async def test_a_scope_that_is_missing_renews_nothing(live: Live) -> None:
    p3 = live.sandbox.p3
    p3.tokens.scope = "openid offline_access"
    live.sandbox.write_credentials(live.root)
    answer = await post(live)
    assert (answer.status, answer.error["type"]) == (403, "permission_error")
    assert "grok-cli:access" in answer.error["message"] and p3.refreshes == 0


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
