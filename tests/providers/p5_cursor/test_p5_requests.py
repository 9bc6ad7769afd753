"""What the service gets of a request, from each route."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from core.openai_bodies import function_tool
from harness import Live, ask
from openai_live import BOTH, CHAT, RESPONSES, body_for, error_of
from samples import rows

from proxy.providers.p5_cursor.prompt import estimate, render
from proxy.providers.p5_cursor.provider import machine_here
from proxy.sandbox import Sandbox

MESSAGES = "/v1/messages"
COUNT = "/v1/messages/count_tokens"
SESSION = "x-claude-code-session-id"


@pytest.fixture
def live_options() -> dict[str, Any]:
    return {"openai_routes": True}


async def opened(live: Live, body: dict[str, Any], path: str = MESSAGES, **session: str) -> dict[str, Any]:
    """What the service read in the first message of the run."""
    before = live.sandbox.p5.total_requests
    answer = await live.post(body, path, session)
    assert answer.status == 200, answer.raw
    assert live.sandbox.p5.total_requests == before + 1 and live.sandbox.p5.violations == []
    read: dict[str, Any] = live.sandbox.p5.requests[-1].body
    return read


@rows(
    "model, effort, sent, parameters, mode",
    [
        ("cursor", None, "default", {}, 1),
        ("cursor-plan", None, "default", {}, 3),
        ("cursor-ask:gpt-5.5", "max", "gpt-5.5-extra-high", {}, 2),
        ("composer-2.5", "high", "composer-2.5", {"fast": "false"}, 1),
        (" cursor:claude-sonnet-4-6-fast[1m]", None, "claude-sonnet-4-6", {"fast": "true"}, 1),
    ],
)
async def test_the_model_of_a_request(
    live: Live, model: str, effort: str | None, sent: str, parameters: dict[str, str], mode: int
) -> None:
    """Composer runs (and bills) in fast mode when nobody says no."""
    wanted = {} if effort is None else {"output_config": {"effort": effort}}
    chat = body_for(CHAT, model=model, **({} if effort is None else {"reasoning_effort": effort}))
    responses = body_for(RESPONSES, model=model, **({} if effort is None else {"reasoning": {"effort": effort}}))
    for path, body in ((MESSAGES, ask(model=model, **wanted)), (CHAT, chat), (RESPONSES, responses)):
        read = await opened(live, body, path)
        assert (read["model"], read["parameters"], read["mode"]) == (sent, parameters, mode)
        assert read["subagent_models"] == ["default", sent]
    assert live.sandbox.p5.billed_fast == 0


async def test_metadata_may_say_the_mode_and_the_conversation(live: Live) -> None:
    metadata = {"cursor_mode": "plan", "cursor_chat_id": "chat-7"}
    read = await opened(live, ask(model="cursor", metadata=metadata))
    assert (read["mode"], read["conversation_id"]) == (3, "chat-7")


async def test_runs_of_a_session_stand_in_one_conversation(live: Live) -> None:
    body = ask(model="cursor")
    first = (await opened(live, body, **{SESSION: "s"}))["conversation_id"]
    assert (await opened(live, body, **{SESSION: "s"}))["conversation_id"] == first
    named = ask(model="cursor", metadata={"cursor_chat_id": "Y"})
    assert [(await opened(live, one, **{SESSION: "s"}))["conversation_id"] for one in (named, body)] == ["Y", "Y"]
    chat = body_for(CHAT, model="cursor")
    assert (await opened(live, chat, CHAT, session_id="s"))["conversation_id"] == "Y"
    alone = [(await opened(live, body))["conversation_id"] for _ in range(2)]
    assert len({first, "Y", *alone}) == 4


PNG_HEAD = b"\x89PNG\r\n\x1a\n"


def pictures(*texts: str) -> list[dict[str, Any]]:
    data = [base64.b64encode(PNG_HEAD + text.encode()).decode() for text in texts]
    return [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": one}} for one in data]


async def test_pictures_of_the_last_turn_go_along(live: Live) -> None:
    messages = [
        {"role": "user", "content": pictures("a")},
        {"role": "assistant", "content": "a cat"},
        {"role": "user", "content": [*pictures("b", "c"), {"type": "text", "text": "and these?"}]},
    ]
    read = await opened(live, ask(messages, model="cursor"))
    assert [base64.b64decode(one["data"]) for one in read["selected_images"]] == [PNG_HEAD + b"b", PNG_HEAD + b"c"]
    assert [one["path"] for one in read["selected_images"]] == ["claude-image-1.png", "claude-image-2.png"]
    assert read["prompt"] == render(ask(messages))
    assert (await opened(live, ask([*messages[:2], {"role": "user", "content": "thanks"}], model="cursor")))[
        "images"
    ] == 0


async def test_the_prompt_is_what_is_counted(live: Live) -> None:
    body = ask("hello " * 1000, model="cursor", system="Be brief.", tools=[{"name": "Read", "input_schema": {}}])
    read = await opened(live, body)
    assert read["prompt"] == render(body)
    counted = (await live.post(body, COUNT)).json
    assert counted == {"input_tokens": len(read["prompt"]) // 4} == {"input_tokens": estimate(render(body))}
    assert (await live.post({"model": "cursor", "messages": []}, COUNT)).json == {"input_tokens": 0}
    silent = await live.post(ask([{"role": "user", "content": []}], model="cursor"))
    assert silent.status == 400 and "none of them has any content" in silent.error["message"]


# -- refusals of the OpenAI-style routes, as they arrive


@rows("path", BOTH)
@rows(
    "names, members, headers, param",
    [
        (["Read"], {}, {"session_id": "s"}, "stream"),
        (["Read"], {"stream": True}, {}, "tools"),
        (["Read"], {"stream": True}, {"session_id": " "}, "tools"),
        (["Read", "Grep"], {"stream": True}, {"session_id": "s"}, "tools[1].function.name"),
        (["Read", "Grep"], {"stream": True}, {"x-client-request-id": "s"}, "tools[1].function.name"),
        (["Read"], {"stream": True}, {"x-agent-session-id": "", "session_id": "k"}, None),
        (["Read", "Write", "Bash"], {"stream": True}, {"x-agent-session-id": "a"}, None),
        ([], {}, {}, None),
    ],
)
async def test_a_request_of_an_openai_route(
    live: Live, path: str, names: list[str], members: dict[str, Any], headers: dict[str, str], param: str | None
) -> None:
    surface = "chat" if path == CHAT else "responses"
    tools = [function_tool(surface, name) for name in names]
    answer = await live.post(body_for(path, model="cursor:gpt-5.5", tools=tools, **members), path, headers)
    if param is None:
        assert answer.status == 200 and live.sandbox.p5.total_requests == 1
        return
    error = error_of(answer)
    assert answer.status == 400 and (error["param"], error["type"]) == (param, "invalid_request_error")
    assert live.sandbox.p5.total_requests == 0


async def test_a_directory_that_was_removed_keeps_nobody_from_starting(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    with monkeypatch.context() as moved:
        moved.chdir(gone)
        gone.rmdir()
        assert machine_here().workspace == ""
        async with Live(sandbox, tmp_path / "config") as live:
            assert (await live.post(ask(model="cursor"))).status == 200
