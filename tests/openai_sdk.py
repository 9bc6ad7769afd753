"""What the official OpenAI SDK makes of events and chunks: every one is validated, and its own helper adds them up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from openai import omit
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

_EVENTS: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)


def read_response_events(events: Iterable[Mapping[str, Any]]) -> Response | None:
    """The response that the SDK's stream helper ends with; None when it was not completed. Keepalives are unknown to
    its types; it passes them through."""
    state: ResponseStreamState[None] = ResponseStreamState(input_tools=omit, text_format=omit)
    for event in events:
        if event["type"] != "keepalive":
            state.handle_event(_EVENTS.validate_python(event, strict=True))
    return state._completed_response


def read_chunks(chunks: Iterable[Mapping[str, Any]]) -> ChatCompletion:
    """The completion that the SDK's stream helper has at the end."""
    state: ChatCompletionStreamState[None] = ChatCompletionStreamState()
    for chunk in chunks:
        list(state.handle_chunk(ChatCompletionChunk.model_validate(chunk, strict=True)))
    return state.current_completion_snapshot


def read_completion(completion: Mapping[str, Any]) -> ChatCompletion:
    return ChatCompletion.model_validate(completion, strict=True)


def read_response(response: Mapping[str, Any]) -> Response:
    return Response.model_validate(response, strict=True)
