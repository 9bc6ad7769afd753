"""Reads a checked Responses body: an `Ask` for the model, its size in tokens, and the answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from proxy.sandbox.model.pieces import estimate_tokens, media_type
from proxy.sandbox.model.prompts import declared
from proxy.sandbox.model.reply import Ask, Called, Entry, HostedSearch, Returned, Said, Tool, reply
from proxy.sandbox.upstream import Upstream
from proxy.sandbox.wires.responses.answer import ResponsesAnswer
from proxy.sandbox.wires.responses.items import Writer
from proxy.sandbox.wires.responses.tool_checks import flat_tools

#: The beginning of call ids that a service made for its own tools.
_OWN_CALLS = "xs_"

_SEARCHES = ("web_search", "web_search_preview")


def read_ask(body: Mapping[str, Any], *, lite: bool) -> Ask:
    """The request for the model."""
    entries: list[Entry] = []
    system = [body.get("instructions") or ""]
    groups: list[Any] = [body.get("tools") or []]
    for item in body["input"]:
        if item.get("type") == "additional_tools":
            groups.append(item["tools"])
        elif item.get("role") in ("developer", "system"):
            system.append(_said(item).text)
        else:
            entries += _entry(item)
    offered = [(tool, namespace) for group in groups for tool, namespace in _flat(group)]
    tools = [_read_tool(tool, namespace) for tool, namespace in offered if "name" in tool]
    choice, allowed = _read_choice(body.get("tool_choice"))
    wanted = (body.get("text") or {}).get("format") or {}
    return Ask(
        entries=entries,
        system="\n".join(system),
        tools=[tool for tool in tools if allowed is None or tool.name in allowed],
        choice=choice,
        parallel=not lite and body.get("parallel_tool_calls") is not False,
        effort=(body.get("reasoning") or {}).get("effort"),
        schema=wanted.get("schema"),
        json_object=wanted.get("type") == "json_object",
        search=next((_read_search(tool) for tool, _ in offered if tool["type"] in _SEARCHES), None),
        x_search=any(tool["type"] == "x_search" for tool, _ in offered),
    )


def _entry(item: Mapping[str, Any]) -> list[Entry]:
    kind = item.get("type", "message")
    if kind == "message":
        return [_said(item)]
    if kind in ("function_call", "custom_tool_call") and not item["call_id"].startswith(_OWN_CALLS):
        return [Called(item["call_id"], item["name"])]
    if kind in ("function_call_output", "custom_tool_call_output"):
        text, images = _content(item["output"])
        return [Returned(item["call_id"], text, images)]
    return []


def _said(item: Mapping[str, Any]) -> Said:
    text, images = _content(item["content"])
    return Said(item["role"], text, images)


def _content(content: str | Iterable[Mapping[str, Any]]) -> tuple[str, tuple[str, ...]]:
    """The texts joined by line ends, and the kinds of the pictures."""
    if isinstance(content, str):
        return content, ()
    texts, images = [], []
    for part in content:
        if part["type"] == "input_image":
            images.append(media_type(part.get("image_url") or ""))
        else:
            texts.append(part.get("text") or part.get("refusal") or "")
    return "\n".join(texts), tuple(images)


def _flat(group: Iterable[Any]) -> Iterator[tuple[dict[str, Any], str | None]]:
    """Each tool with its namespace."""
    for outer in group:
        namespace = outer["name"] if outer["type"] == "namespace" else None
        for tool in flat_tools([outer]):
            yield tool, namespace


def _read_tool(tool: Mapping[str, Any], namespace: str | None) -> Tool:
    freeform = tool["type"] == "custom"
    runs = declared(tool.get("description") or "") if freeform else {}
    return Tool(tool["name"], tool.get("parameters"), freeform, namespace, runs)


def _read_search(tool: Mapping[str, Any]) -> HostedSearch:
    filters = tool.get("filters") or {}
    allowed, *blocked = (filters.get(name, ()) for name in ("allowed_domains", "blocked_domains", "excluded_domains"))
    return HostedSearch(allowed, [domain for domains in blocked for domain in domains])


def _read_choice(choice: Any) -> tuple[str, set[str] | None]:
    """The choice as one word or name, and the names to which it narrows the tools (None: all)."""
    if choice is None or isinstance(choice, str):
        return choice or "auto", None
    if choice["type"] == "allowed_tools":
        names = {one["name"] for one in choice["tools"] if "name" in one}
        if choice["mode"] == "required" and any(one["type"] in _SEARCHES for one in choice["tools"]):
            return "web_search", names
        return choice["mode"], names
    if choice["type"] in _SEARCHES:
        return "web_search", None
    return choice.get("name", "auto"), None


def prompt_tokens(body: Mapping[str, Any]) -> int:
    """A rough count of the request's tokens: all texts for the model, and its pictures."""
    return estimate_tokens(*(body.get(name) for name in ("instructions", "input", "tools", "text")))


def prompt_parts(body: Mapping[str, Any]) -> list[Any]:
    """The request in the order in which the model reads it."""
    return [*(body.get("tools") or ()), body.get("instructions"), *body["input"]]


A = TypeVar("A", bound=ResponsesAnswer)


class Form(NamedTuple, Generic[A]):
    """The classes with which a backend writes items and events. `always_shown`: summaries of thoughts come unasked."""

    writer: type[Writer]
    answer: type[A]
    always_shown: bool = False


PLAIN = Form(Writer, ResponsesAnswer)


def write_answer(
    upstream: Upstream,
    body: dict[str, Any],
    account_id: str,
    form: Form[A],
    *,
    lite: bool = False,
    cache_key: str | None = None,
) -> A:
    """The model's answer, with thoughts encrypted for the account. `cache_key` applies when the body names none."""
    ask = read_ask(body, lite=lite)
    include = body.get("include") or ()
    writer = form.writer(
        upstream.ids,
        account_id,
        summary=form.always_shown or (body.get("reasoning") or {}).get("summary") is not None,
        include=include,
    )
    tokens = prompt_tokens(body)
    answer = form.answer(
        ask=ask,
        envelope=_envelope(upstream, body),
        writer=writer,
        input_tokens=tokens,
        cached_tokens=upstream.cached_tokens(
            body.get("prompt_cache_key") or cache_key,
            body["model"],
            prompt_parts(body),
            tokens,
            account=account_id,
        ),
    )
    if body["input"][-1].get("type") == "compaction_trigger":
        answer.blocks = [writer.compaction()]
    else:
        answer.say(reply(ask))
    return answer


def _envelope(upstream: Upstream, body: dict[str, Any]) -> dict[str, Any]:
    """The response object without what is known only at the end. Tools and instructions are not repeated."""
    reasoning = body.get("reasoning") or {}
    return {
        "id": upstream.ids.new("resp"),
        "object": "response",
        "created_at": int(upstream.clock()),
        "model": body["model"],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "metadata": {},
        "parallel_tool_calls": body.get("parallel_tool_calls") is not False,
        "previous_response_id": None,
        "prompt_cache_key": body.get("prompt_cache_key"),
        "reasoning": {"effort": reasoning.get("effort"), "summary": reasoning.get("summary")},
        "service_tier": body.get("service_tier") or "default",
        "store": False,
        "temperature": 1.0,
        "text": body.get("text") or {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "user": None,
    }
