"""Well-formed requests for every route."""

from __future__ import annotations

import copy
from typing import Any

Body = dict[str, Any]
JSON = {"content-type": "application/json"}

#: Wire -> a model that is asked over it.
MODELS = {
    "p1-responses": "gpt-5.5",
    "p2-chat": "kimi-for-coding",
    "p3-responses": "grok-4.6",
    "p4-chat": "opencode-go/kimi-k2.6",
    "p4-messages": "qwen3.8-flash",
    "p4-responses": "opencode-go/grok-4.6",
    "p5-connect": "cursor:gpt-5.5",
}
MESSAGES, CHAT, RESPONSES = "/v1/messages", "/v1/chat/completions", "/v1/responses"
COUNT = f"{MESSAGES}/count_tokens"
ROUTES = (MESSAGES, CHAT, RESPONSES)
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_SCHEMA = {
    "type": "object",
    "properties": {"command": {"type": "string"}},
    "required": ["command"],
    "additionalProperties": False,
}
_OTHER = {
    "type": "object",
    "properties": {"path": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/p"}]}, "line": {"type": "integer"}},
    "$defs": {"p": {"type": "array", "items": {"enum": ["a", 1, None]}}},
}


def prompted(route: str, model: str, prompt: str, **members: Any) -> Body:
    """A short request with two tools."""
    functions = [("Bash", _SCHEMA), ("Read", _OTHER)]
    if route == MESSAGES:
        tools: list[Body] = [{"name": name, "description": "d", "input_schema": one} for name, one in functions]
        return {**_messages(model, [{"role": "user", "content": prompt}]), "tools": tools, **members}
    if route == CHAT:
        tools = [{"type": "function", "function": {"name": name, "parameters": one}} for name, one in functions]
        return {"model": model, "messages": [{"role": "user", "content": prompt}], "tools": tools, **members}
    tools = [{"type": "function", "name": name, "parameters": one} for name, one in functions]
    return {"model": model, "input": prompt, "tools": tools, **members}


def _messages(model: str, messages: list[Body]) -> Body:
    return {"model": model, "max_tokens": 100, "messages": messages}


def searching(model: str) -> Body:
    """A forced search, for which a provider may ask a service of its own."""
    tool = {"type": "web_search_20250305", "name": "web_search"}
    query = [{"role": "user", "content": "Perform a web search for the query: rust"}]
    return {**_messages(model, query), "tools": [tool], "tool_choice": {"type": "tool", "name": "web_search"}}


def compacting(model: str) -> Body:
    """Asks for a summary that replaces the conversation."""
    system = "You are a helpful AI assistant tasked with summarizing conversations"
    return {**_messages(model, [{"role": "user", "content": "hello"}]), "system": system, "stream": True}


def full(route: str, model: str) -> Body:
    """One that uses as many members as possible, all its own."""
    return copy.deepcopy({MESSAGES: _full_messages, CHAT: _full_chat, RESPONSES: _full_responses}[route](model))


def _full_messages(model: str) -> Body:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    pdf = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}, "title": "t"}
    use = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls", "n": 1.5}}
    other = {"type": "tool_use", "id": "toolu_2", "name": "Read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "a"}, picture]}
    failed = {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no", "is_error": True}
    thought = {"type": "thinking", "thinking": "so", "signature": "c2ln"}
    marked = {"type": "text", "text": "hello", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    messages: list[Body] = [
        {"role": "user", "content": [marked, picture, pdf]},
        {"role": "assistant", "content": [thought, {"type": "text", "text": "yes"}, use, other]},
        {"role": "user", "content": [result, failed, {"type": "text", "text": "go on"}]},
        {
            "role": "assistant",
            "content": [{"type": "redacted_thinking", "data": "eA=="}, {"type": "text", "text": "x"}],
        },
        {"role": "user", "content": "hello"},
    ]
    return {
        **prompted(MESSAGES, model, "x"),
        **_messages(model, messages),
        "system": [{"type": "text", "text": "be kind", "cache_control": {"type": "ephemeral"}}],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": _SCHEMA}},
        "metadata": {"user_id": "user_1_account_2_session_3"},
        "stop_sequences": ["END"],
        "temperature": 1,
        "top_p": 0.9,
        "top_k": 5,
    }


def _full_chat(model: str) -> Body:
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}}
    call = {"id": "call_1", "type": "function", "function": {"name": "Bash", "arguments": '{"command": "ls"}'}}
    return {
        **prompted(CHAT, model, "x"),
        "messages": [
            {"role": "system", "content": "be kind"},
            {"role": "developer", "content": [{"type": "text", "text": "be short"}]},
            {"role": "user", "content": [{"type": "text", "text": "hello"}, picture]},
            {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "so"},
            {"role": "tool", "tool_call_id": "call_1", "content": "a.txt"},
            {"role": "user", "content": "hello"},
        ],
        "tool_choice": {"type": "function", "function": {"name": "Bash"}},
        "parallel_tool_calls": False,
        "reasoning_effort": "high",
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": _SCHEMA, "strict": True}},
        "stop": ["END", "STOP"],
        "temperature": 0.5,
        "max_completion_tokens": 100,
        "n": 1,
        "stream_options": {"include_usage": True},
        "user": "u",
        "metadata": {"a": "b"},
        "prompt_cache_key": "k",
    }


def _full_responses(model: str) -> Body:
    picture = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"}
    summary = [{"type": "summary_text", "text": "so"}]
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "Bash"}]}
    said = [{"type": "output_text", "text": "yes", "annotations": []}]
    return {
        **prompted(RESPONSES, model, "x"),
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}, picture]},
            {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "ZW5j"},
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": said},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "Bash", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "a.txt"},
            {"type": "custom_tool_call", "call_id": "call_2", "name": "patch", "input": "*** Begin"},
            {"type": "custom_tool_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "ok"}]},
            {"role": "user", "content": "hello"},
        ],
        "instructions": "be kind",
        "tool_choice": allowed if model == MODELS["p1-responses"] else "auto",
        "reasoning": {"effort": "high", "summary": "auto"},
        "text": {"format": {"type": "json_schema", "name": "n", "schema": _SCHEMA}, "verbosity": "low"},
        "include": ["reasoning.encrypted_content"],
        "store": False,
        "max_output_tokens": 100,
        "prompt_cache_key": "k",
        "metadata": {"a": "b"},
        "truncation": "disabled",
    }
