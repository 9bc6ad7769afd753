"""The model's normal answer to a chat completions body that passed the checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from proxy.sandbox.model.reply import Ask, reply
from proxy.sandbox.upstream import Upstream
from proxy.sandbox.wires.chat.answer import ChatAnswer
from proxy.sandbox.wires.chat.read import prompt_parts, prompt_tokens


def write_chat(
    upstream: Upstream,
    body: dict[str, Any],
    ask: Ask,
    *,
    new_id: Callable[[str, int], str],
    cache_key: str | None = None,
    usage_places: Sequence[str] = ("own",),
) -> ChatAnswer:
    """What the model says to `ask`, which was read from the body."""
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
