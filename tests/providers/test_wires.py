"""What the wires share in good times, and how they deal with credentials and sessions."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

from checks import check_message_stream
from harness import Live, ask, kinds
from samples import rows
from wires import BODY_WIRES, CHAT_WIRES, GO_WIRES, PICTURE, TOOLS, WIRES, Wire, blocks_of, message_of

from proxy.core.tokens.counting import count_responses
from proxy.core.tokens.heuristic import heuristic_count, heuristic_tokens
from proxy.sandbox import Sandbox

every_wire = rows("wire", WIRES)
every_body = rows("wire", BODY_WIRES)
both_forms = rows("stream", [True, False])
HIGH: dict[str, Any] = {"output_config": {"effort": "high"}, "thinking": {"type": "adaptive"}}
SESSION = {"x-claude-code-session-id": "session-1"}


async def told(live: Live, body: dict[str, Any], **headers: str) -> dict[str, Any]:
    """The message of an answer; a stream is checked."""
    answer = await live.post(body, headers=headers)
    assert answer.status == 200, answer.raw
    if body.get("stream"):
        check_message_stream(answer.events)
    return message_of(answer)


def shown(message: dict[str, Any]) -> list[dict[str, Any]]:
    return [block for block in message["content"] if block["type"] != "thinking"]


def talk(*contents: Any) -> list[dict[str, Any]]:
    """A conversation; the user begins."""
    return [{"role": ("user", "assistant")[n % 2], "content": content} for n, content in enumerate(contents)]


def result(call: dict[str, Any], content: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call["id"], "content": content}


async def round_trip(live: Live, prompt: str, **members: Any) -> tuple[dict[str, Any], str]:
    """The message with the calls, and the last text once each call was answered with the name of its tool."""
    first = await told(live, ask(prompt, **members))
    results = [result(block, block["name"]) for block in first["content"] if block["type"] == "tool_use"]
    second = await told(live, ask(talk(prompt, first["content"], results), **members))
    return first, shown(second)[-1]["text"]


@every_wire
@both_forms
async def test_a_plain_turn(live: Live, wire: Wire, stream: bool) -> None:
    message = await told(live, ask(model=f"{wire.model}[1m]", stream=stream))
    [block] = shown(message)
    assert block["type"] == "text" and '"hello"' in block["text"]
    assert (message["model"], message["stop_reason"]) == (wire.model, "end_turn")
    assert wire.sent(live)["model"] == wire.upstream and wire.sent(live).get("stream", wire.traits.run) is True


@every_wire
async def test_a_folded_answer_is_the_streamed_one(live: Live, wire: Wire) -> None:
    messages = []
    for stream in (True, False):
        message = await told(live, ask("use Bash: ls", model=wire.model, tools=TOOLS, stream=stream, **HIGH))
        assert message.pop("id").startswith("msg_")
        for block in message["content"]:
            block.pop("signature", None)
            block.pop("id", None)
        messages.append(message)
    assert messages[0] == messages[1]


LS, READ = ("Bash", {"command": "ls -la"}), ("Read", {"file_path": "/tmp/a"})


@every_body
@both_forms
@rows("prompt, calls", [("use Bash: ls -la", [LS]), ("use Bash: ls -la\nuse Read: /tmp/a", [LS, READ])])
async def test_a_tool_turn_goes_round(live: Live, wire: Wire, stream: bool, prompt: str, calls: list[Any]) -> None:
    first, text = await round_trip(live, prompt, model=wire.model, tools=TOOLS, stream=stream)
    assert [(block["type"], block["name"], block["input"]) for block in shown(first)] == [
        ("tool_use", *call) for call in calls
    ]
    assert first["stop_reason"] == "tool_use"
    assert all(f'The tool {name} returned: "{name}"' in text for name, _ in calls)


@every_body
@both_forms
async def test_a_thinking_turn_goes_round(live: Live, wire: Wire, stream: bool) -> None:
    first, text = await round_trip(live, "use Bash: ls", model=wire.model, tools=TOOLS, stream=stream, **HIGH)
    *thoughts, call = blocks_of(first)
    assert set(thoughts) == {"thinking"} and call == "tool_use" and 'returned: "Bash"' in text
    thought = first["content"][0]
    assert thought["thinking"] and bool(thought["signature"]) is wire.traits.signs
    if wire.kind == "chat":
        [spoken] = [one for one in wire.sent(live)["messages"] if one["role"] == "assistant"]
        assert spoken["reasoning_content"] == thought["thinking"]


CALL = {"type": "tool_use", "id": "a", "name": "Bash", "input": {"command": "ls"}}
OTHER = {**CALL, "id": "b"}
RESULT = result(CALL, "x")
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}}


@every_body
@rows("blocks", [[], [{"type": "text", "text": "never mind"}], [RESULT, {"type": "text", "text": "go on"}]])
async def test_a_call_without_a_result_ends_no_conversation(live: Live, wire: Wire, blocks: list[Any]) -> None:
    """An interrupted client leaves such calls in the middle and at the end."""
    history = talk("ls", [CALL, OTHER], blocks, [{**CALL, "id": "c"}, {**CALL, "id": "d"}])
    history = [message for message in history if message["content"]]
    await told(live, ask(history, model=wire.model, tools=TOOLS))
    missing = 3 if RESULT in blocks else 4
    at_the_end = 2 if blocks else 4  # messages of the assistant in a row are one turn
    expected = missing - at_the_end if wire.traits.waits else missing
    assert json.dumps(wire.sent(live)).count("[no tool result]") == expected


@every_wire
@both_forms
async def test_an_image_is_seen(live: Live, wire: Wire, stream: bool) -> None:
    content = [{"type": "text", "text": "what is this?"}, IMAGE]
    message = await told(live, ask(talk(content), model=wire.model, stream=stream))
    assert wire.traits.image in shown(message)[-1]["text"]


@every_wire
async def test_an_image_in_a_tool_result_is_seen(live: Live, wire: Wire) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "/a.png"}}
    history = talk("use Read: /a.png", [call], [result(call, [IMAGE])])
    message = await told(live, ask(history, model=wire.model, tools=TOOLS))
    assert "image/png" in shown(message)[-1]["text"]


@every_body
@both_forms
async def test_usage_is_that_of_the_upstream(live: Live, wire: Wire, stream: bool) -> None:
    """New and cached input add up to what the upstream says."""
    body = ask("x" * 8000, model=wire.model, stream=stream)
    first, second = [(await told(live, body, **SESSION))["usage"] for _ in range(2)]
    assert first["output_tokens"] == second["output_tokens"] > 0
    kinds_of_input = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    total, again = (sum(usage[kind] for kind in kinds_of_input) for usage in (first, second))
    assert total == again >= 1000
    assert first["cache_read_input_tokens"] == 0 and second["cache_read_input_tokens"] >= 1000


@rows("wire", CHAT_WIRES)
@rows("where", ["own", "finish", "choice"])
async def test_chat_usage_is_found_wherever_it_stands(live: Live, wire: Wire, where: str) -> None:
    usual = (await told(live, ask(model=wire.model)))["usage"]
    wire.sandbox(live).script.extend([{"fault": "usage", "where": where}])
    assert (await told(live, ask(model=wire.model, stream=True)))["usage"] == usual


# -- sessions


@every_body
async def test_the_session_stays_the_same_over_retries(live: Live, wire: Wire) -> None:
    wire.sandbox(live).script.extend([{"fault": "rate_limit"}, {"fault": "server_error"}])
    await told(live, ask(model=wire.model, stream=True), **SESSION)
    assert wire.sessions(live) == ["session-1"] * 3 and live.sleeps == [1.0, 3.0]


@rows("wire", [wire for wire in WIRES if wire.label in ("p2", "p4")])
async def test_a_count_is_that_of_the_heuristic(live: Live, wire: Wire) -> None:
    body = ask("foo_bar-baz, qux! 日本語、テキスト。", model=wire.model, system="Be brief.", tools=TOOLS)
    answer = await live.post(body, "/v1/messages/count_tokens")
    if wire.kind == "responses":  # of what goes up: the same texts, and what the wire writes around them
        await told(live, body)
        expected = count_responses(wire.sent(live), heuristic_tokens)
    else:
        expected = heuristic_count(body)
    assert answer.json == {"input_tokens": expected}


@rows("wire", [wire for wire in WIRES if wire not in GO_WIRES])
async def test_without_a_session_there_is_no_cache_key(live: Live, wire: Wire) -> None:
    await told(live, ask(model=wire.model))
    assert "prompt_cache_key" not in wire.sent(live) and wire.sessions(live) == [None]


@rows("wire", GO_WIRES)
@rows("session", [None, "has blanks", "ü"])
async def test_what_fits_no_header_gets_a_session_of_its_own(live: Live, wire: Wire, session: str | None) -> None:
    wire.sandbox(live).script.extend([{"fault": "rate_limit"}])
    metadata: dict[str, Any] = {"metadata": {"user_id": json.dumps({"session_id": session})}} if session else {}
    await told(live, ask(model=wire.model, **metadata))
    await told(live, ask(model=wire.model, **metadata))
    first, again, other = wire.sessions(live)
    assert first is not None and other is not None and first == again != other
    assert [str(uuid.UUID(each)) for each in (first, other)] == [first, other] and uuid.UUID(first).version == 4


# -- credentials


@every_wire
async def test_no_secret_and_no_content_reaches_the_log(live: Live, wire: Wire) -> None:
    secrets = [live.sandbox.p4.options.api_key]
    for _ in range(2):
        for label in ("p2", "p3", "p5"):
            stored = json.loads((live.root / label / "auth.json").read_text())
            secrets += [value for name, value in stored.items() if name.startswith(("access", "refresh"))]
        live.sandbox.p2.revoke_access()
        live.sandbox.p3.revoke_access()
        live.sandbox.p5.tokens.revoke_access()
        wire.sandbox(live).script.replace([{"fault": "server_error"}, {"fault": "cut_text"}])
        await live.stream(ask("the secret prompt", model=wire.model))
        wire.sandbox(live).script.replace([{"fault": "unauthorized", "times": 2}])
        await live.post(ask("the secret prompt", model=wire.model))
    log = str(live.notes.records) + str(live.notes.captures)
    assert "upstream_request_failed" in log and "secret prompt" not in log
    assert len([secret for secret in secrets if secret]) >= 7
    assert not [secret for secret in secrets if isinstance(secret, str) and len(secret) > 8 and secret in log]


@every_wire
@both_forms
async def test_a_missing_credential_is_told_without_asking_anybody(
    sandbox: Sandbox, tmp_path: Path, wire: Wire, stream: bool
) -> None:
    root = tmp_path / f"{wire}-{stream}"
    root.mkdir()
    async with Live(sandbox, root, **dict([wire.traits.signed_out])) as live:
        answer = await live.post(ask(model=wire.model, stream=stream))
    assert (answer.status, answer.error["type"]) == (401, "authentication_error")
    assert wire.traits.cure in answer.error["message"] and wire.sandbox(live).total_requests == 0


# -- what is sent


async def test_p2_gets_what_its_own_client_sends(live: Live) -> None:
    system = {"role": "system", "content": "S"}
    for model in ("kimi-k2.6", "k3"):
        body = ask([{"role": "user", "content": "hello"}, system], model=model, max_tokens=5, system="S", **HIGH)
        await told(live, body, **SESSION)
    coding, k3 = (seen.body for seen in live.sandbox.p2.requests)
    assert k3 == {**coding, "model": "k3"}
    assert coding == {
        "model": "kimi-for-coding",
        "messages": [system, {"role": "user", "content": "hello"}, system],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_completion_tokens": 5,
        "thinking": {"type": "enabled", "effort": "high", "keep": "all"},
        "prompt_cache_key": "session-1",
    }
    assert live.sandbox.p2.requests[-1].headers["accept"] == "application/json"
    assert not live.sandbox.p2.older_members


#: Model -> what is not sent to it of a request for a judgement, and what of thinking is.
REVIEWERS: list[tuple[str, dict[str, Any]]] = [
    ("kimi-for-coding", {"thinking": {"type": "disabled"}, "max_completion_tokens": 32_000}),
    ("k3", {"thinking": {"type": "enabled", "effort": "low", "keep": "all"}, "max_completion_tokens": 1_048_576}),
    ("opencode-go/kimi-k2.6", {"max_tokens": 32_000, "reasoning_effort": None}),
    ("hy3", {"max_tokens": 32_000, "reasoning_effort": "none"}),
    ("glm-5.2", {"max_tokens": 32_000, "reasoning_effort": "high"}),
    ("deepseek-v4-flash", {"max_tokens": 32_000, "reasoning_effort": "low"}),
    ("qwen3.8-max", {"max_tokens": 32_000, "reasoning_effort": "low"}),
    ("qwen3.8-flash", {"max_tokens": 32_000, "thinking": {"type": "disabled"}, "output_config": {"effort": "low"}}),
    ("minimax-m3", {"max_tokens": 32_000, "thinking": {"type": "disabled"}, "output_config": None}),
    ("opencode-go/gpt-5.6-luna", {"max_output_tokens": None, "reasoning": {"effort": "none"}}),
    ("grok-4.5", {"max_output_tokens": None, "reasoning": {"effort": "low"}}),
    ("opencode-go/grok-4.6", {"max_output_tokens": None, "reasoning": {"effort": "low", "summary": "auto"}}),
]
MONITOR = [{"type": "text", "text": "You are a security monitor for autonomous AI coding agents. Judge."}]


@rows("model, sent", REVIEWERS)
@rows("asked", [{"max_tokens": 64, "thinking": {"type": "disabled"}}, {"max_tokens": 2112}])
async def test_the_safety_classifier_has_room_and_does_not_think(
    live: Live, model: str, sent: dict[str, Any], asked: dict[str, Any]
) -> None:
    """Its few tokens would go into reasoning, and an empty answer denies the action."""
    message = await told(live, ask("ls", model=model, system=MONITOR, stop_sequences=["</block>"], **asked))
    assert (shown(message)[0]["text"], message["stop_sequence"]) == ("<block>no", "</block>")
    [seen] = [*live.sandbox.p2.requests, *live.sandbox.p3.requests, *live.sandbox.p4.requests]
    assert {name: seen.body.get(name) for name in sent} == sent


@rows("wire", [wire for wire in WIRES if wire.kind != "responses"])
@rows("content", ["", [], [{"type": "text", "text": ""}]])
async def test_a_conversation_without_content_is_refused_before_anybody_is_asked(
    live: Live, wire: Wire, content: Any
) -> None:
    answer = await live.post(ask(talk(content), model=wire.model))
    assert (answer.status, answer.error["type"]) == (400, "invalid_request_error")
    assert "content" in answer.error["message"] and wire.sandbox(live).total_requests == 0


# -- P4 Messages


async def test_thoughts_of_other_services_are_left_out_where_they_are_refused(live: Live) -> None:
    live.sandbox.p4.options.check_signatures = True
    foreign = (await told(live, ask(model="kimi-k2.6")))["content"][0]
    sealed = (await told(live, ask(**HIGH)))["content"][0]
    assert foreign["type"] == sealed["type"] == "thinking"
    history = talk("hello", [foreign, sealed, {"type": "text", "text": "Hi."}], "go on")
    assert shown(await told(live, ask(history, model="qwen3.8-flash")))
    assert live.sandbox.p4.total_requests == 2 and not live.sleeps
    bodies = [[block["type"] for block in seen.body["messages"][1]["content"]] for seen in live.sandbox.p4.requests]
    assert bodies == [["thinking", "thinking", "text"], ["text"]]


async def test_a_signature_that_nobody_can_mend_is_told(live: Live) -> None:
    live.sandbox.p4.options.check_signatures = True
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "other"}
    history = talk("a", [thought, {"type": "text", "text": "Hi."}], "go on")
    answer = await live.stream(ask(history, model="qwen3.8-flash"))
    assert answer.status == 400 and "signature" in answer.error["message"]
    assert live.sandbox.p4.total_requests == 1


# -- failures


@every_body
@rows("fault", ["cut_text", "end_before_output"])
async def test_nothing_of_an_attempt_that_was_given_up_is_left_in_a_whole_answer(
    live: Live, wire: Wire, fault: str
) -> None:
    body = ask(model=wire.model, tools=TOOLS, stop_sequences=["sandbox model"])
    good = await told(live, body)
    wire.sandbox(live).script.extend([{"fault": fault}])
    again = await told(live, body)
    for message in (good, again):
        assert message.pop("id") and message["stop_reason"] == "stop_sequence"
        for block in message["content"]:
            block.pop("signature", None)
    assert again == good and live.sleeps == [1.5]


@every_body
@both_forms
@rows("status", [500, 502, 503, 504])
async def test_a_failing_upstream_keeps_status_words_and_wait(
    live: Live, wire: Wire, stream: bool, status: int
) -> None:
    step = {"status": status, "headers": {"retry-after": "7"}, "body": {"error": {"message": "closed until noon"}}}
    wire.sandbox(live).script.extend([{**step, "times": 4}])
    answer = await live.post(ask(model=wire.model, stream=stream))
    assert (answer.status, answer.error["message"]) == (status, "closed until noon")
    assert answer.headers["Retry-After"] == "7" and live.sleeps == [7.0] * 3


#: A body -> the words of it that a client is shown.
SHOWN: list[tuple[Any, str]] = [
    ({"detail": [{"loc": ["body", "tools", 0], "msg": "bad tool"}]}, "tools[0]: bad tool"),
    ({"detail": {"code": "deactivated_workspace"}}, "the upstream refused: deactivated_workspace"),
    ("no such thing", "no such thing"),
    ("", "the upstream answered with status 422 and no explanation"),
]


@every_body
@rows("body, words", SHOWN)
async def test_a_refusal_is_shown_in_its_own_words(live: Live, wire: Wire, body: Any, words: str) -> None:
    wire.sandbox(live).script.extend([{"status": 422, "body": body}])
    answer = await live.post(ask(model=wire.model))
    assert answer.status == 422 and answer.error["message"].removeprefix(f"{wire.label}: ") == words


# -- time


@every_wire
async def test_words_are_passed_on_as_they_come(live: Live, wire: Wire) -> None:
    wire.sandbox(live).script.extend([{"fault": "silence_mid_text", "seconds": None}])
    async with live.open(ask(model=wire.model, stream=True)) as response:
        received = b""
        while b"text_delta" not in received:
            received += await response.content.readany()
    await wire.sandbox(live).idle()
    assert not live.notes.all("internal_error")


@every_wire
async def test_stop_sequences_release_the_upstream(live: Live, wire: Wire) -> None:
    answer = await live.stream(ask(model=wire.model, stop_sequences=["sandbox model"]))
    check_message_stream(answer.events)
    assert kinds(answer.events)[-1] == "message_stop"
    assert answer.events[-2]["delta"]["stop_reason"] == "stop_sequence"
    await wire.sandbox(live).idle()
