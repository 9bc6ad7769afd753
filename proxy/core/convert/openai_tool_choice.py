"""Reads which tools of an OpenAI-style body the model may or must use, and checks what a provider with few tools
allows."""

from __future__ import annotations

from typing import Any

from proxy.core.convert.openai_fields import Block, Conversation
from proxy.core.convert.openai_mode import UNSUPPORTED, Mode, invalid, unsupported
from proxy.core.convert.openai_tools import DISPENSABLE, ToolSet, hosted_type
from proxy.core.ingress import BridgedTools, IngressRules
from proxy.core.invalid import InvalidRequest, shown

_NOT_THERE = "it would run upstream, and this model has no such tool"
#: word of a body -> the hub's word
_CHOICES = {"auto": "auto", "none": "none", "required": "any"}


def read_choice(value: Any, parallel: bool | None, tools: ToolSet, mode: Mode, *, wrapped: bool) -> Block | None:
    """The hub's `tool_choice` from `tool_choice` and `parallel_tool_calls`; None to send neither.

    Without tools both mean nothing, and strict upstreams refuse them, but Codex CLI sends them anyway.
    """
    choice = _choice(value, tools, mode.rules, wrapped=wrapped)
    if not tools.tools:
        if choice is not None and choice["type"] == "any":
            raise invalid("tool_choice", _none_left(tools))
        if choice is None or choice["type"] != "none":
            _check_not_alone(tools)
        return None
    if parallel is None:
        return choice
    return {**(choice or {"type": "auto"}), "disable_parallel_tool_use": not parallel}


def _check_not_alone(tools: ToolSet) -> None:
    """Refuses a request whose only tools are hosted ones that the upstream lacks: it needs them for an answer."""
    for word, path in tools.left_out.items():
        if word not in DISPENSABLE:
            raise unsupported(path, word, f"{_NOT_THERE}, and there is no other tool")


def _none_left(tools: ToolSet) -> str:
    if not tools.left_out:
        return "needs at least one tool"
    return f"needs a tool that this model has: {', '.join(sorted(tools.left_out))} would run upstream, where it is not"


def _choice(value: Any, tools: ToolSet, rules: IngressRules, *, wrapped: bool) -> Block | None:
    if value is None:
        return None
    if isinstance(value, str):
        if value not in _CHOICES:
            raise unsupported("tool_choice", value)
        return {"type": _CHOICES[value]}
    if not isinstance(value, dict):
        raise invalid("tool_choice", "must be a string or an object")
    kind = value.get("type")
    if (word := hosted_type(kind)) in rules.hosted:
        if word not in tools.hosted:
            raise invalid("tool_choice", f"must name one of the tools in `tools`, not {shown(kind)}")
        return {"type": "tool", "name": tools.hosted[word]}
    named = value.get("function") if wrapped else value
    flat = _chosen(named, tools)
    if kind != "function" and (kind != "custom" or flat not in tools.customs):
        advice = _NOT_THERE if word in tools.left_out else ""
        raise unsupported("tool_choice.type", kind, advice)
    if flat is None:
        name = named.get("name") if isinstance(named, dict) else None
        raise invalid("tool_choice", f"must name one of the functions in `tools`, not {shown(name)}")
    return {"type": "tool", "name": flat}


def _chosen(named: Any, tools: ToolSet) -> str | None:
    """The name of the chosen function, None if it is unknown. One in a namespace is chosen by both names."""
    name, namespace = (named.get("name"), named.get("namespace")) if isinstance(named, dict) else (None, None)
    if isinstance(name, str) and namespace is None and name in tools.functions:
        return name
    return next((flat for flat, key in tools.namespaces.items() if key == (namespace, name)), None)


# -- providers with few tools


def check_rules(mode: Mode, conversation: Conversation, tools: ToolSet, *, stream: bool, session: str | None) -> None:
    """Refuses what the provider cannot do, once everything else is valid; in lenient mode it takes any tools, with or
    without a stream and a session. Raises InvalidRequest."""
    rules = mode.rules
    if conversation.linked_image is not None and not rules.image_urls:
        raise _linked(conversation.linked_image)
    if rules.tools is None or not tools.tools or mode.lenient:
        return
    product = rules.tools.product
    if not stream:
        raise InvalidRequest(f"{product} tools require 'stream' to be true", param="stream")
    if not session:
        rule = "send the same `session_id` header with every request of a conversation"
        raise InvalidRequest(f"{product} tools require a stable session header: {rule}", param="tools")
    for tool, path in zip(tools.tools, tools.paths, strict=True):
        if tool["name"] not in rules.tools.names:
            raise _unbridged(rules.tools, tool["name"], path)


def _linked(path: str) -> InvalidRequest:
    message = f"`{path}` is not supported with an http(s) address: send the picture as a data URL in base64"
    return InvalidRequest(message, param=path, code=UNSUPPORTED)


def _unbridged(bridged: BridgedTools, name: str, path: str) -> InvalidRequest:
    """The error for a tool that cannot be bridged. It uses the path of the chat form on both routes."""
    place = f"{path.rpartition('.')[0].removesuffix('.function')}.function.name"
    rule = f"`{place}` must be one of {', '.join(sorted(bridged.names))}"
    return InvalidRequest(f"{bridged.product} cannot bridge tool {shown(name)}: {rule}", param=place)
