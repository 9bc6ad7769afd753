"""Numbers that no float holds: refused in the caller's form on every route, before anything is made of them."""

from __future__ import annotations

from typing import Any

from harness import Live, with_live
from samples import rows

HUGE = 10**400
MODELS = ["gpt-5.5", "kimi-k3", "grok-4.5", "minimax-m3", "glm-5", "cursor"]
SAID = [{"role": "user", "content": "hi"}]
ROUTES: dict[str, dict[str, Any]] = {
    "/v1/messages": {"max_tokens": 9, "messages": SAID},
    "/v1/chat/completions": {"messages": SAID},
    "/v1/responses": {"input": "hi"},
}
PLACES: list[dict[str, Any]] = [
    {"temperature": HUGE},
    {"max_tokens": HUGE},
    {"unknown": {"deep": [HUGE]}},
]


@with_live(openai_routes=True, openai_mode="lenient")
@rows("path", ROUTES)
async def test_a_number_that_no_float_holds_is_refused(live: Live, path: str) -> None:
    for model in MODELS:
        for place in PLACES:
            for stream in (False, True):
                answer = await live.post({**ROUTES[path], "model": model, "stream": stream, **place}, path)
                assert (answer.status, answer.json["error"]["type"]) == (400, "invalid_request_error"), (model, place)
                assert "number out of range" in answer.json["error"]["message"]


@with_live(openai_routes=True, openai_mode="lenient")
@rows("path", ROUTES)
async def test_other_odd_numbers_are_no_error_of_ours(live: Live, path: str) -> None:
    for model in MODELS:
        for name, value in {"temperature": 10**300, "top_p": -0.0, "unknown": [1e308, 10**300]}.items():
            answer = await live.post({**ROUTES[path], "model": model, name: value}, path)
            assert answer.status < 500, (model, name)
