"""Converts the body of `POST /v1/responses` to a Messages request.

See `openai_mode` for what is accepted and what is refused by name. The server has checked `model`. The main client is
Codex CLI: it repeats the whole conversation as items every turn, with hints, namespaces of tools and its reasoning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from proxy.core.convert.openai_fields import Members, hub_request, is_no_stream_option, optional_flag, token_limit
from proxy.core.convert.openai_formats import text_member
from proxy.core.convert.openai_mode import (
    CACHE_HINTS,
    KEPT_NOWHERE,
    Fits,
    Mode,
    anything,
    invalid,
    is_text,
    unsupported,
)
from proxy.core.convert.openai_tool_choice import check_rules, read_choice
from proxy.core.convert.openai_tools import read_tools
from proxy.core.convert.responses_input import InputReader
from proxy.core.ingress import Ingress, IngressRules
from proxy.core.invalid import shown
from proxy.core.tools.hosted import WEB_SEARCH

_FIELDS = frozenset(
    {
        "model",
        "input",
        "instructions",
        "stream",
        "max_output_tokens",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "reasoning",
        "store",
    }
)
_ENCRYPTED = "reasoning.encrypted_content"
#: Values of `include` that are accepted; the second if the provider can search.
_INCLUDES = (_ENCRYPTED, "web_search_call.action.sources")


def _is_known(rules: IngressRules, value: Any) -> bool:
    known = _INCLUDES if WEB_SEARCH in rules.hosted else _INCLUDES[:1]
    return isinstance(value, list) and all(entry in known for entry in value)


#: name -> whether its value can be left out without changing the answer
_HINTS: Mapping[str, Callable[[Any], bool]] = {
    **CACHE_HINTS,
    "background": lambda value: value is False,
    "client_metadata": lambda value: isinstance(value, dict),
    "service_tier": lambda value: value in ("auto", "default"),
    "stream_options": is_no_stream_option,
    "truncation": lambda value: value == "disabled",
}
#: Summaries are shown whenever the provider sends reasoning, in its own length.
_SUMMARIES = ("auto", "concise", "detailed", "none")
_REASONING: Mapping[str, Callable[[Any], bool]] = {
    "effort": anything,  # checked by the provider's rules
    "summary": lambda value: value in _SUMMARIES,
    "generate_summary": lambda value: value in _SUMMARIES,
    "context": is_text,
}


def responses_request_to_messages(
    body: Members, rules: IngressRules, *, session: str | None = None, lenient: bool = False
) -> Ingress:
    """The Messages request and what the reply needs to know. `session`: the caller's session id, if any.

    The body is not changed; tool schemas and picture data are shared with it. Raises InvalidRequest.
    """
    mode = Mode(rules, lenient=lenient)
    hints: dict[str, Fits] = {**_HINTS, "include": partial(_is_known, rules)}
    mode.check_fields(body, _FIELDS, hints, {"text": partial(text_member, mode)})
    stream = optional_flag(body.get("stream"), "stream") is True
    items = InputReader(mode)
    items.read(body)
    messages = items.conversation.messages("input")
    parallel = optional_flag(body.get("parallel_tool_calls"), "parallel_tool_calls")
    if optional_flag(body.get("store"), "store"):
        raise unsupported("store", True, KEPT_NOWHERE)
    limit = mode.limit("max_output_tokens", token_limit(body, "max_output_tokens"))
    tools = read_tools([("tools", body.get("tools")), *items.tools], mode, wrapped=False)
    items.rename(tools)
    choice = read_choice(body.get("tool_choice"), parallel, tools, mode, wrapped=False)
    effort = _effort(body.get("reasoning"), mode)
    check_rules(mode, items.conversation, tools, stream=stream, session=session)
    asked = {"max_tokens": limit, "tools": tools.tools, "tool_choice": choice, "effort": effort}
    return Ingress(
        hub_request(body["model"], items.conversation, messages, asked),
        stream=stream,
        echo=_echo(body, effort),
        namespaces=tools.namespaces,
        customs=frozenset(tools.customs),
        encrypted_reasoning=_ENCRYPTED in (body.get("include") or ()),
        ignored=tuple(mode.ignored),
    )


def _effort(reasoning: Any, mode: Mode) -> str | None:
    if reasoning is None:
        return mode.effort(None, "reasoning.effort")
    if not isinstance(reasoning, dict):
        raise invalid("reasoning", "must be an object")
    mode.check_keys(reasoning, frozenset(_REASONING), "reasoning")
    for name, accepts in _REASONING.items():
        if reasoning.get(name) is None or accepts(reasoning[name]):
            continue
        if not mode.lenient:
            raise invalid(f"reasoning.{name}", f"has the unknown value {shown(reasoning[name])}")
        mode.note(f"reasoning.{name}")
    return mode.effort(reasoning.get("effort"), "reasoning.effort")


def _echo(body: Members, effort: str | None) -> dict[str, Any]:
    """The members of the response object that repeat the request: the caller's values, before conversion."""
    parallel = body.get("parallel_tool_calls")
    echo = {
        "tools": body.get("tools") or [],
        "tool_choice": body.get("tool_choice") or "auto",
        "parallel_tool_calls": True if parallel is None else parallel,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "reasoning": {"effort": effort, "summary": None},
    }
    return echo if body.get("text") is None else {**echo, "text": body["text"]}
