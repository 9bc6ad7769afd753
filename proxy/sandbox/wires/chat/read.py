"""Reads a checked chat completions body: an `Ask` for the model, its size in tokens, and the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from proxy.sandbox.model.pieces import estimate_tokens, media_type
from proxy.sandbox.model.reply import Ask, Called, Entry, Returned, Said, Tool, reply
from proxy.sandbox.upstream import Upstream
from proxy.sandbox.wires.chat.answer import ChatAnswer

_MEDIA = ("image_url", "video_url")


def read_chat(body: Mapping[str, Any], *, effort: str | None) -> Ask:
    """The request for the model."""
    entries: list[Entry] = []
    system: list[str] = []
    for message in body["messages"]:
        if message["role"] in ("system", "developer"):
            system.append(_content(message.get("content"))[0])
        else:
            entries += _entries(message)
    wanted = body.get("response_format") or {}
    return Ask(
        entries=entries,
        system="\n".join(system),
        tools=[_tool(tool["function"]) for tool in body.get("tools") or () if tool["type"] == "function"],
        choice=_choice(body.get("tool_choice")),
        parallel=body.get("parallel_tool_calls") is not False,
        effort=effort,
        schema=(wanted.get("json_schema") or {}).get("schema"),
        json_object=wanted.get("type") == "json_object",
    )


def prompt_tokens(body: Mapping[str, Any]) -> int:
    """A rough count of the request's tokens."""
    return estimate_tokens(body.get("messages"), body.get("tools"))


def prompt_parts(body: Mapping[str, Any]) -> list[Any]:
    """The request in the order in which the model reads it."""
    return [*(body.get("tools") or ()), *body["messages"]]


def _entries(message: Mapping[str, Any]) -> list[Entry]:
    text, media = _content(message.get("content"))
    if message["role"] == "tool":
        return [Returned(message["tool_call_id"], text, media)]
    calls = message.get("tool_calls") or ()
    said: list[Entry] = [Said(message["role"], text, media)] if text or media or not calls else []
    return [*said, *(Called(call["id"], call["function"]["name"]) for call in calls)]


def _content(content: Any) -> tuple[str, tuple[str, ...]]:
    """The texts joined by line ends, and the kinds of the pictures and films."""
    if not isinstance(content, list):
        return content or "", ()
    texts = [part["text"] for part in content if part["type"] == "text"]
    media = [media_type(part[part["type"]]["url"]) for part in content if part["type"] in _MEDIA]
    return "\n".join(texts), tuple(media)


def _tool(function: Mapping[str, Any]) -> Tool:
    return Tool(function["name"], function.get("parameters"))


def _choice(choice: Any) -> str:
    if isinstance(choice, dict):
        return str(choice["function"]["name"])
    return choice or "auto"


def write_chat(
    upstream: Upstream,
    body: dict[str, Any],
    ask: Ask,
    *,
    new_id: Callable[[str, int], str],
    cache_key: str | None = None,
    usage_places: Sequence[str] = ("own",),
) -> ChatAnswer:
    """The model's answer to `ask`, which was read from the body."""
    tokens = prompt_tokens(body)
    head = {
        "id": upstream.ids.new("chatcmpl"),
        "object": "chat.completion.chunk",
        "created": int(upstream.clock()),
        "model": body["model"],
    }
    answer = ChatAnswer(
        ask=ask,
        head=head,
        new_id=new_id,
        input_tokens=tokens,
        cached_tokens=upstream.cached_tokens(cache_key, body["model"], prompt_parts(body), tokens),
        usage_places=usage_places,
        asked_usage=bool((body.get("stream_options") or {}).get("include_usage")),
    )
    answer.say(reply(ask))
    return answer
