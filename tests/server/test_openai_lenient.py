"""Lenient mode over the sandbox: what P1 takes of other clients' bodies on both routes, and what they are told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from harness import Fake, Live, played, use, with_live
from openai_live import CHAT, P2, P3, RESPONSES, ask_both, error_of, function
from samples import rows
from sdk import openai_client, validate

from proxy.core.convert.openai_mode import LENIENT_TAKES_IT
from proxy.errors import UpstreamError
from proxy.server.request.ledger import IGNORED_HEADER

FULL, LITE = "gpt-5.5", "gpt-5.6-sol"
PICTURE = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAAAElFTkSuQmCC"
#: What agents send whatever the model is.
AGENT: dict[str, Any] = {
    "max_tokens": 100,
    "temperature": 0.2,
    "top_p": 0.9,
    "stop": ["END"],
    "seed": 1,
    "user": "me",
    "metadata": {"a": "b"},
    "store": False,
    "n": 1,
    "logprobs": False,
}
TOLD = ["max_tokens", "metadata", "seed", "temperature", "top_p", "user"]

Client = openai.AsyncOpenAI


@pytest.fixture
def live_options() -> dict[str, Any]:
    return {"openai_routes": True, "openai_mode": "lenient"}


@pytest.fixture
async def client(live: Live) -> AsyncIterator[Client]:
    async with openai_client(live.url) as running:
        yield running


def ignored(headers: Any) -> list[str]:
    return sorted(headers[IGNORED_HEADER].split(", ")) if IGNORED_HEADER in headers else []


def sent(live: Live) -> Any:
    return live.sandbox.p1.requests[-1].body


# -- chat


@pytest.mark.parametrize("model", [FULL, LITE])
async def test_tools_go_round_on_p1s_chat(client: Client, live: Live, model: str) -> None:
    messages: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "use Bash: ls -la"}]
    asked: Any = {"model": model, "tools": [function(CHAT)], "parallel_tool_calls": True, **AGENT}
    raw = await client.chat.completions.with_raw_response.create(messages=messages, **asked)
    assert ignored(raw.headers) == TOLD
    whole = raw.parse()
    validate(whole)
    (call,) = whole.choices[0].message.tool_calls or []
    assert (call.function.name, call.function.arguments) == ("Bash", '{"command":"ls -la"}')
    assert sent(live)["reasoning"]["effort"] == "medium"
    messages += [whole.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "total 0"}]
    async with client.chat.completions.stream(messages=messages, **asked) as stream:
        final = (await stream.get_final_completion()).choices[0]
    assert 'The tool Bash returned: "total 0"' in (final.message.content or "") and final.finish_reason == "stop"


@pytest.mark.parametrize("model", [FULL, LITE, P2, P3, "minimax-m3", "opencode-go/gpt-5.6-luna"])
async def test_functions_go_round_in_the_older_form(client: Client, model: str) -> None:
    """Somebody who never heard of tools: no answer has any."""
    bash = function(CHAT)["function"]
    messages: list[Any] = [{"role": "user", "content": "use Bash: ls -la"}]
    asked: Any = {"model": model, "functions": [bash], "function_call": {"name": "Bash"}}
    whole = await client.chat.completions.create(messages=messages, **asked)
    validate(whole)
    [choice] = whole.choices
    call: Any = choice.message.function_call
    assert (choice.finish_reason, choice.message.tool_calls) == ("function_call", None)
    assert (call.name, call.arguments) == ("Bash", '{"command":"ls -la"}')
    deltas = []
    async for chunk in await client.chat.completions.create(messages=messages, stream=True, **asked):
        validate(chunk)
        assert chunk.choices[0].delta.tool_calls is None
        deltas += [part for part in [chunk.choices[0].delta.function_call] if part]
        reason = chunk.choices[0].finish_reason
    assert [part.name for part in deltas] == ["Bash", *[None] * (len(deltas) - 1)]
    assert ("".join(part.arguments for part in deltas), reason) == ('{"command":"ls -la"}', "function_call")
    messages += [choice.message, {"role": "function", "name": "Bash", "content": "total 0"}]
    final = (await client.chat.completions.create(messages=messages, model=model, functions=[bash])).choices[0]
    assert 'The tool Bash returned: "total 0"' in (final.message.content or "") and final.finish_reason == "stop"


async def test_pictures_and_choices_reach_p1(client: Client, live: Live) -> None:
    content = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": PICTURE}}]
    choice: Any = {"type": "function", "function": {"name": "Bash"}}
    message: Any = {"role": "user", "content": content}
    await client.chat.completions.create(
        model=FULL, messages=[message], tools=[function(CHAT)], tool_choice=choice, parallel_tool_calls=False
    )
    body = sent(live)
    assert body["tool_choice"] == {"type": "function", "name": "Bash"} and body["parallel_tool_calls"] is False
    assert [part["type"] for part in body["input"][-1]["content"]] == ["input_text", "input_image"]


@rows(
    "members, reasoning",
    [({}, "medium"), ({"reasoning_effort": "high"}, "high"), ({"reasoning_effort": "minimal"}, "low")],
)
async def test_p1_is_asked_for_the_same_as_in_strict_mode(live: Live, members: Any, reasoning: str) -> None:
    assert (await ask_both(live, CHAT, model=FULL, **members)).status == 200
    assert sent(live)["reasoning"]["effort"] == reasoning


@with_live(openai_routes=True)
async def test_strict_mode_names_the_way_out(live: Live) -> None:
    for path, model, members in ((CHAT, FULL, {"max_tokens": 5}), (RESPONSES, P2, {"temperature": 1})):
        answer = await ask_both(live, path, model=model, **members)
        (name,) = members
        assert answer.status == 400 and error_of(answer)["param"] == name
        assert error_of(answer)["message"].endswith(LENIENT_TAKES_IT)
    assert LENIENT_TAKES_IT not in error_of(await ask_both(live, RESPONSES, model=P2, store=True))["message"]


async def test_an_error_says_what_was_left_out_as_well(live: Live) -> None:
    use(live, Fake("p2", played(UpstreamError("slow down", kind="rate_limit", status=429))))
    for path in (CHAT, RESPONSES):
        answer = await ask_both(live, path, model=P2, seed=1)
        assert answer.status == 429 and ignored(answer.headers) == ["seed"]


# -- native

#: A body as agents write it for the vendor's own service.
FOREIGN: dict[str, Any] = {
    "max_output_tokens": 100,
    "temperature": 0.2,
    "metadata": {"a": "b"},
    "user": "me",
    "truncation": "disabled",
    "stream_options": {"include_obfuscation": False},
    "prompt_cache_options": {"ttl": "1h"},
    "safety_identifier": "s",
    "service_tier": "auto",
    "client_metadata": {"a": 1},
    "reasoning": {"effort": "minimal", "summary": "none"},
}


@pytest.mark.parametrize("model", [FULL, LITE])
@pytest.mark.parametrize("stream", [True, False])
async def test_the_backend_takes_what_is_left(live: Live, model: str, stream: bool) -> None:
    answer = await ask_both(live, RESPONSES, model=model, stream=stream, **FOREIGN)
    assert answer.status == 200, answer.raw
    told = ["client_metadata", "max_output_tokens", "metadata", "prompt_cache_options", "safety_identifier"]
    assert ignored(answer.headers) == sorted([*told, "temperature", "user"])
    assert sent(live)["reasoning"] == {"effort": "low"}


async def test_forms_of_other_services_are_fitted(live: Live) -> None:
    items = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "use Bash: ls", "cache_control": {"type": "ephemeral"}}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "model-proxy:p4:v1:cg:e"},
        {"role": "assistant", "id": "x1", "content": [{"type": "input_text", "text": "Yes.", "annotations": []}]},
        {"type": "item_reference", "id": "x1"},
        {"type": "function_call", "id": "call-1", "call_id": "c", "name": "Bash", "arguments": "{}", "caller": None},
        {"type": "function_call_output", "call_id": "c", "output": "total 0", "name": "Bash"},
    ]
    answer = await live.post({"model": FULL, "input": items, "tools": [function(RESPONSES)]}, RESPONSES)
    assert answer.status == 200, answer.raw
    assert ignored(answer.headers) == ["input[1].content[0].cache_control", "input[6].name"]
    assert sent(live)["input"] == [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "input_text", "text": "use Bash: ls"}]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Yes.", "annotations": []}]},
        {"type": "function_call", "call_id": "c", "name": "Bash", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "total 0"},
    ]


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"store": True}, "store"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"background": True}, "background"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input[0].type"),
    ],
)
async def test_what_nobody_kept_is_refused_before_it_is_sent(live: Live, members: Any, param: str) -> None:
    before = len(live.sandbox.p1.requests)
    answer = await live.post({"model": FULL, "input": "hello", **members}, RESPONSES)
    assert answer.status == 400 and error_of(answer)["param"] == param
    assert len(live.sandbox.p1.requests) == before


@with_live(openai_routes=True)
async def test_strict_mode_leaves_it_to_the_backend(live: Live) -> None:
    for member, taken in ((("user", "me"), True), (("max_output_tokens", 5), True), (("background", True), False)):
        answer = await ask_both(live, RESPONSES, model=FULL, **dict([member]))
        assert answer.status == 400 and error_of(answer)["param"] == member[0]
        assert error_of(answer)["message"].endswith(LENIENT_TAKES_IT) is taken
        assert ignored(answer.headers) == []


#: What the backend says of a member of an image that it does not know, and whether lenient mode takes the body.
IMAGE = {"type": "input_image", "image_url": PICTURE, "cache_control": {}}


@with_live(openai_routes=True)
@pytest.mark.parametrize(
    ("members", "param", "taken"),
    [
        ({"input": [{"role": "user", "content": [IMAGE]}]}, "input[0].content[0].cache_control", True),
        ({"reasoning": {"budget": 1}}, "reasoning.budget", True),
        ({"input": [{"role": "user", "content": "x"}]}, "input[0].content", False),
    ],
)
async def test_the_backends_own_words_name_the_way_out(live: Live, members: Any, param: str, taken: bool) -> None:
    words = f"Unknown parameter: '{param}'."
    standard = {"message": words, "type": "invalid_request_error", "param": param, "code": "unknown_parameter"}
    for body in ({"error": standard}, {"detail": words}):
        live.sandbox.p1.script.replace([{"status": 400, "body": body}])
        answer = await live.post({"model": FULL, "input": "x", **members}, RESPONSES)
        assert answer.status == 400 and error_of(answer)["param"] == param
        assert error_of(answer)["message"].startswith(words)
        assert error_of(answer)["message"].endswith(LENIENT_TAKES_IT) is taken


# -- p4


@pytest.mark.parametrize(
    ("model", "sampling", "told"),
    [
        ("glm-5.2", {"temperature": 0, "top_p": 0.9}, []),
        ("qwen3.8-flash", {"temperature": 0, "top_p": 0.9}, []),
        ("opencode-go/kimi-k2.6", {}, ["temperature", "top_p"]),
        ("opencode-go/gpt-5.6-luna", {}, ["temperature", "top_p"]),
        (P3, {"temperature": 0, "top_p": 0.9}, []),
        (P2, {}, ["temperature", "top_p"]),
    ],
)
@pytest.mark.parametrize("path", [CHAT, RESPONSES])
async def test_upstreams_get_the_sampling_that_a_model_takes(
    live: Live, path: str, model: str, sampling: Any, told: list[str]
) -> None:
    answer = await ask_both(live, path, model=model, temperature=0, top_p=0.9)
    assert answer.status == 200 and ignored(answer.headers) == told
    (request,) = (*live.sandbox.p2.requests, *live.sandbox.p3.requests, *live.sandbox.p4.requests)
    assert {name: request.body[name] for name in ("temperature", "top_p") if name in request.body} == sampling


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


@with_live(openai_routes=True)
@pytest.mark.parametrize("model", ["minimax-m3", "opencode-go/gpt-5.6-luna"])
async def test_p4s_models_are_held_to_a_form_in_strict_mode(client: Client, model: str) -> None:
    form: Any = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}}
    whole = await client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": "how many?"}], response_format=form
    )
    assert whole.choices[0].message.content == '{"n": 1}'
    flat: Any = {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}}
    assert (await client.responses.create(model=model, input="how many?", text=flat)).output_text == '{"n": 1}'


async def test_others_are_told_of_the_form_and_the_caller_too(client: Client, live: Live) -> None:
    form: Any = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
    raw = await client.chat.completions.with_raw_response.create(
        model=P2, messages=[{"role": "user", "content": "how many?"}], response_format=form
    )
    assert ignored(raw.headers) == ["response_format"]
    assert raw.parse().choices[0].message.content
    assert any("Answer with JSON" in str(message) for message in live.sandbox.p2.requests[-1].body["messages"])


@pytest.mark.parametrize("model", [FULL, LITE, "kimi-for-coding", "glm-5.2", "opencode-go/gpt-5.6-luna", "grok-4.6"])
async def test_an_answer_ends_at_what_it_is_to_stop_at(client: Client, model: str) -> None:
    asked: Any = [{"role": "user", "content": "say <<<one two END three>>>"}]
    answer = await client.chat.completions.with_raw_response.create(model=model, messages=asked, stop=["END"])
    [choice] = answer.parse().choices
    assert (choice.message.content, choice.finish_reason) == ("one two ", "stop")
    assert "stop" not in ignored(answer.headers)
