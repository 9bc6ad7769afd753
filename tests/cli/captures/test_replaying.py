"""`captures replay`: what was captured of a real proxy goes through another one once more."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from captured import Run, write_capture
from harness import Live, ask, tool
from openai_live import CHAT, RESPONSES, body_for
from pictures import png
from samples import each
from wires import TOOLS, WIRES, message_of

from proxy.observe.capture.writing.files import CaptureLimits
from proxy.observe.capture.writing.queued import QueuedCaptures
from proxy.observe.capture.writing.writer import CaptureWriter
from proxy.sandbox import Sandbox

MODELS = {"p1": "gpt-5.5", "p1-lite": "gpt-5.6-sol", **{str(wire): wire.model for wire in WIRES}}
KINDS = {wire.model: wire.kind for wire in WIRES}
MESSAGES, COUNT = "/v1/messages", "/v1/messages/count_tokens"
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": png()}}
URL = f"data:image/png;base64,{png()}"
SESSION = {"x-claude-code-session-id": "s", "x-claude-code-agent-id": "a"}


def captures_below(state: Path) -> QueuedCaptures:
    """Captures that are written at once."""
    writer = CaptureWriter(state, CaptureLimits(10**9, 10**6, 10**8, 10**5), lambda *_: None)
    return QueuedCaptures(state, lambda message, _size: writer.take(message) or True)


def conversation(first: dict[str, Any]) -> list[dict[str, Any]]:
    """Goes on from an answer with a call, with a picture in the result."""
    call = next(block for block in first["content"] if block["type"] == "tool_use")
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": [{"type": "text", "text": "a b"}, IMAGE]}
    return [
        {"role": "user", "content": [{"type": "text", "text": "use Bash: ls"}, IMAGE]},
        {"role": "assistant", "content": first["content"]},
        {"role": "user", "content": [result]},
    ]


async def captured(live: Live, body: dict[str, Any], path: str = MESSAGES) -> Any:
    answer = await live.post(body, path, headers=SESSION)
    assert answer.status == 200, answer.raw
    return answer


@each(1, lambda model, stream: [stream, KINDS.get(model, model)])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
async def test_a_conversation_is_answered_again(
    model: str, stream: bool, sandbox: Sandbox, tmp_path: Path, state: Path, captures: Run
) -> None:
    async with Live(sandbox, tmp_path / "live", captures=captures_below(state)) as live:
        body = ask("use Bash: ls", model=model, tools=TOOLS, thinking={"type": "enabled", "budget_tokens": 1024})
        first = message_of(await captured(live, {**body, "max_tokens": 2048, "stream": True}))
        history = ask(conversation(first), model=model, tools=TOOLS, max_tokens=2048, thinking=body["thinking"])
        await captured(live, {**history, "stream": stream})
    status, out, err = await asyncio.to_thread(captures, "replay")
    assert (status, err) == (0, ""), out + err
    assert out.splitlines()[0].startswith(f"POST {MESSAGES} to a proxy in front of a simulated p")
    assert "replaced by a stand-in" in out and ("stream of" in out) == stream and "The tool Bash returned" in out
    assert "end: end_turn" in out


async def test_a_conversation_that_was_continued_over_a_socket(
    sandbox: Sandbox, tmp_path: Path, state: Path, captures: Run
) -> None:
    options: dict[str, Any] = {"p1_transport": "websocket", "p1_previous_response_id": True}
    session = {"x-claude-code-session-id": "s"}
    async with Live(sandbox, tmp_path / "live", captures=captures_below(state), **options) as live:
        first = message_of(await live.stream(ask("hello"), headers=session))
        turns = [("user", "hello"), ("assistant", first["content"]), ("user", "go on")]
        await live.stream(ask([{"role": role, "content": content} for role, content in turns]), headers=session)
    _, out, _ = await asyncio.to_thread(captures, "diff")
    assert "(010), because only the new part was sent; the connection already had the rest" in out
    assert "all of A is the beginning of B" in out
    status, out, err = await asyncio.to_thread(captures, "replay")
    assert (status, err) == (0, ""), out + err


def parts(path: str) -> list[dict[str, Any]]:
    """A question with a picture."""
    if path == CHAT:
        return [{"type": "text", "text": "hello"}, {"type": "image_url", "image_url": {"url": URL}}]
    return [{"type": "input_text", "text": "hello"}, {"type": "input_image", "image_url": URL}]


@each(1, lambda path, model, form: [(path, form == "--streamed"), model, form])
@pytest.mark.parametrize("form", ["as it was", "--streamed", "--whole"])
@pytest.mark.parametrize(
    ("path", "model"), [(CHAT, "kimi-for-coding"), (RESPONSES, "kimi-for-coding"), (RESPONSES, "gpt-5.5")]
)
async def test_the_openai_routes(
    path: str, model: str, form: str, sandbox: Sandbox, tmp_path: Path, state: Path, captures: Run
) -> None:
    body = body_for(path, model=model)
    body["messages" if path == CHAT else "input"] = [{"role": "user", "content": parts(path)}]
    async with Live(sandbox, tmp_path / "live", captures=captures_below(state), openai_routes=True) as live:
        await captured(live, body, path)
    status, out, err = await asyncio.to_thread(captures, "replay", *([form] if form.startswith("-") else []))
    assert (status, err) == (0, ""), out + err
    assert ("stream of" in out) == (form == "--streamed") and 'You asked: "hello"' in out and "1 image" in out
    assert f"end: {'stop' if path == CHAT else 'completed'}" in out


async def test_a_count_and_a_prefix_of_another_application(
    sandbox: Sandbox, tmp_path: Path, state: Path, captures: Run
) -> None:
    async with Live(sandbox, tmp_path / "live", captures=captures_below(state), mount="/models") as live:
        await captured(live, ask(), COUNT)
    status, out, _ = await asyncio.to_thread(captures, "replay")
    assert status == 0 and f"POST {COUNT} to" in out and " tokens\nend: counted" in out


async def test_an_alias_goes_where_it_went(sandbox: Sandbox, tmp_path: Path, state: Path, captures: Run) -> None:
    async with Live(sandbox, tmp_path / "live", captures=captures_below(state), alias_provider="p2") as live:
        await captured(live, ask(model="claude-opus-5"))
    status, out, _ = await asyncio.to_thread(captures, "replay", "--raw")
    answer = json.loads(out.splitlines()[-1])
    assert status == 0 and "a simulated p2" in out and answer["content"][-1]["text"].startswith("You asked")


def test_an_answer_that_is_none_has_a_status(state: Path, captures: Run, tmp_path: Path) -> None:
    write_capture(state, number=1, request_id="refused", received=ask(max_tokens="many"))
    write_capture(state, number=2, request_id="cut", received=ask(stream=True))
    status, out, _ = captures("replay", "refused")
    assert status == 1 and out.splitlines()[1].startswith("400, ") and "max_tokens" in out
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"fault": "cut_text"}]))
    status, out, _ = captures("replay", "cut", "--script", str(script))
    assert status == 1 and "200, stream of" in out and "error: " in out


UNUSABLE = [
    ({"received": None}, "this capture has no request"),
    ({"provider": "p9"}, "there is no simulator of p9"),
    ({"kind": "messages", "request_id": "broken"}, "metadata cannot be read"),
]


@pytest.mark.parametrize(("how", "expected"), UNUSABLE)
def test_what_cannot_be_replayed_says_why(how: dict[str, Any], expected: str, state: Path, captures: Run) -> None:
    folder = write_capture(state, **{"received": ask(), **how})
    if how.get("request_id"):
        (folder / "001-000-metadata.json").write_text("{")
    status, out, err = captures("replay")
    assert (status, out) == (1, "") and expected in err


OWN = [
    ({"p1": {"baseUrl": "https://example.com/x"}, "apiKey": "secret", "bindAddress": "0.0.0.0"}, "p1", "gpt-5.5"),
    ({"p4": {"apiKey": "mine", "baseUrl": "https://example.com/x"}}, "p4", "opencode-go/glm-5.2"),
    ({"p5": {"websiteUrl": "https://example.com"}}, "p5", "cursor:gpt-5.5"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "provider", "model"), OWN)
def test_settings_of_the_user_lead_nowhere_else(
    content: dict[str, Any], provider: str, model: str, state: Path, captures: Run, tmp_path: Path
) -> None:
    (tmp_path / "config" / "config.json").write_text(json.dumps(content))
    write_capture(state, provider=provider, received=ask(model=model, tools=[tool()]))
    status, out, err = captures("replay")
    assert (status, err) == (0, ""), out
