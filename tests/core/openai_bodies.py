"""Messages requests written as the bodies of the OpenAI-style routes, and what a parsed one must look like.

The way there is the one that clients take; the parsers are the way back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from proxy.core.bodies.decode import decode_body
from proxy.core.content import blocks_of
from proxy.core.convert.chat_request_to_messages import chat_request_to_messages
from proxy.core.convert.messages_to_messages import messages_to_messages
from proxy.core.convert.messages_to_responses import ResponsesOptions, messages_to_responses
from proxy.core.convert.responses_request_to_messages import responses_request_to_messages
from proxy.core.ingress import Ingress, IngressRules
from proxy.core.invalid import InvalidRequest
from proxy.core.messages import check_request
from proxy.providers.p1_codex.chat import RULES as CODEX
from proxy.providers.p3_grok.provider import INGRESS as GROK
from proxy.providers.p4_opencode.catalog import MODELS as OPENCODE
from proxy.providers.p4_opencode.request import ingress_of
from proxy.providers.p5_cursor.provider import INGRESS as CURSOR

Json = dict[str, Any]

#: What the providers' differences amount to: the ordinary case, those that search, one that bridges three tools, and
#: models of the one that serves them on several wires.
RULES = {
    "p1": CODEX,
    "p2": IngressRules(),
    "p3": GROK,
    "p5": CURSOR,
    **{
        name: ingress_of(OPENCODE[name])
        for name in ("gpt-5.6-luna", "minimax-m3", "qwen3.8-flash", "glm-5.2", "kimi-k2.6")
    },
}
PARSERS: dict[str, Callable[..., Ingress]] = {
    "chat": chat_request_to_messages,
    "responses": responses_request_to_messages,
}
SURFACES = list(PARSERS)
#: The smallest body of each route.
MINIMAL: dict[str, Json] = {
    "chat": {"model": "m", "messages": [{"role": "user", "content": "x"}]},
    "responses": {"model": "m", "input": "x"},
}


def parse(
    surface: str, rules: str = "p2", session: str | None = None, *, lenient: bool = False, **members: Any
) -> Ingress:
    """The smallest body of a route with these members, as it comes from the network."""
    body = decode_body(json.dumps({**MINIMAL[surface], **members}).encode())
    return PARSERS[surface](body, RULES[rules], session=session, lenient=lenient)


def refusal(
    surface: str, rules: str = "p2", session: str | None = None, *, lenient: bool = False, **members: Any
) -> tuple[str | None, str | None]:
    """The param and the code that such a body is refused with."""
    with pytest.raises(InvalidRequest) as caught:
        parse(surface, rules, session, lenient=lenient, **members)
    assert (caught.value.param or "") in caught.value.message
    return caught.value.param, caught.value.code


def function_tool(surface: str, name: str, **members: Any) -> Json:
    function = {"name": name, **members}
    return {"type": "function", "function": function} if surface == "chat" else {"type": "function", **function}


# -- hub to body


def chat_body(request: Mapping[str, Any]) -> Json:
    body = _common(request, "chat")
    messages: list[Json] = [{"role": "system", "content": block["text"]} for block in request.get("system", ())]
    for message in request["messages"]:
        if message["role"] == "assistant":
            messages.append(_chat_assistant(message["content"]))
        elif isinstance(message["content"], str):
            messages.append(message)
        else:
            messages += _chat_user(message["content"])
    return body | {"messages": messages}


def _chat_user(blocks: list[Json]) -> list[Json]:
    results = [
        {"role": "tool", "tool_call_id": block["tool_use_id"], "content": _parts(block["content"], "text", _chat_image)}
        for block in blocks
        if block["type"] == "tool_result"
    ]
    said = [block for block in blocks if block["type"] != "tool_result"]
    return results + ([{"role": "user", "content": _parts(said, "text", _chat_image)}] if said else [])


def _chat_image(url: str) -> Json:
    return {"type": "image_url", "image_url": {"url": url, "detail": "auto"}}


def _chat_assistant(blocks: list[Json]) -> Json:
    message: Json = {"role": "assistant", "content": None}
    for block in blocks:
        if block["type"] == "thinking":
            message["reasoning_content"] = block["thinking"]
        elif block["type"] == "text":
            message["content"] = [*(message["content"] or []), block]
        else:
            call = {"name": block["name"], "arguments": json.dumps(block["input"])}
            calls = message.setdefault("tool_calls", [])
            calls.append({"id": block["id"], "type": "function", "function": call})
    return message


def responses_body(request: Mapping[str, Any]) -> Json:
    body = _common(request, "responses")
    system = request.get("system", ())
    if system:
        body["instructions"] = system[0]["text"]
    items: list[Json] = [{"role": "developer", "content": block["text"]} for block in system[1:]]
    for message in request["messages"]:
        blocks = blocks_of(message["content"])
        if message["role"] == "user" and blocks[0]["type"] != "tool_result":
            content = _parts(blocks, "input_text", _responses_image)
            items.append({"type": "message", "role": "user", "content": content})
        else:
            items += map(_item, blocks)
    return body | {"input": items}


def _item(block: Json) -> Json:
    kind = block["type"]
    if kind == "thinking":
        text = {"type": "summary_text", "text": block["thinking"]}
        return {"type": "reasoning", "id": "rs_1", "summary": [text], "content": None, "encrypted_content": None}
    if kind == "tool_use":
        arguments = json.dumps(block["input"])
        return {"type": "function_call", "call_id": block["id"], "name": block["name"], "arguments": arguments}
    if kind == "tool_result":
        output = _parts(block["content"], "input_text", _responses_image)
        return {"type": "function_call_output", "call_id": block["tool_use_id"], "output": output}
    part = {"type": "output_text", "text": block["text"], "annotations": [], "logprobs": []}
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}


def _responses_image(url: str) -> Json:
    return {"type": "input_image", "image_url": url, "detail": "high"}


def _parts(content: Any, text_type: str, image: Callable[[str], Json]) -> Any:
    if isinstance(content, str):
        return content
    return [
        {"type": text_type, "text": block["text"]} if block["type"] == "text" else image(_url(block["source"]))
        for block in content
    ]


def _url(source: Mapping[str, Any]) -> str:
    return source["url"] if source["type"] == "url" else f"data:{source['media_type']};base64,{source['data']}"


def _common(request: Mapping[str, Any], surface: str) -> Json:
    """What is the same on both routes but for the names."""
    body: Json = {"model": request["model"], "stream": True}
    if "max_tokens" in request:
        body["max_tokens" if surface == "chat" else "max_output_tokens"] = request["max_tokens"]
    if "tools" in request:
        body["tools"] = [_declared(tool, surface) for tool in request["tools"]]
    if "output_config" in request:
        effort = request["output_config"]["effort"]
        body |= {"reasoning_effort": effort} if surface == "chat" else {"reasoning": {"effort": effort}}
    return body


def _declared(tool: Mapping[str, Any], surface: str) -> Json:
    about = {"description": tool["description"]} if "description" in tool else {}
    return function_tool(surface, tool["name"], parameters=tool["input_schema"], strict=False, **about)


RENDERERS: dict[str, Callable[[Mapping[str, Any]], Json]] = {"chat": chat_body, "responses": responses_body}


# -- what every parsed request is


def check_hub(request: Json) -> None:
    """A parsed request is one that Messages upstreams take: calls answered directly behind their message, nothing
    empty, no two messages of the assistant in a row; and the other directions can read it."""
    check_request(request)
    assert request["stream"] is True
    waiting: set[str] = set()
    role = None
    for message in request["messages"]:
        blocks = blocks_of(message["content"])
        assert blocks and all(block.get("text") != "" for block in blocks)
        assert not (role == message["role"] == "assistant")
        role = message["role"]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert len(set(results)) == len(results) and set(results) <= waiting
        assert len(results) in (0, len(blocks))
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert len(set(calls)) == len(calls)
        waiting = set(calls)
    messages_to_responses(request, ResponsesOptions("m"))
    if all("input_schema" in tool for tool in request.get("tools", ())):
        messages_to_messages(request, model="m", max_tokens=1)
