"""Converts a Messages request to a Responses body.

There are two forms, called lanes. On the full lane `instructions` and `tools` are at the top level. On the lite lane,
the only one of some newer models, both are the first items of `input`, only function tools exist, and calls come one at
a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from proxy.core.content import system_text
from proxy.core.convert.history.responses import ResponsesHistory
from proxy.core.convert.history.responses_dialect import Item, ResponsesDialect, SentImages, input_text, message_item
from proxy.core.invalid import InvalidRequest
from proxy.core.tools.calls import CHOICES, function_of, is_web_search, offered_tools, short_key, short_name
from proxy.core.tools.function_schema import legal_schema
from proxy.core.tools.read_tool import NAME as READ
from proxy.core.tools.read_tool import ReadOffsets, guided_definition
from proxy.core.tools.schema import FORMAT_NAME, NotStrict, output_format, strict_as_asked, strict_schema
from proxy.core.tools.step_budget import Steps, ToolSteps, ToolWalk

VERBOSITIES = ("low", "medium", "high")
LITE_MARKER = "ws_request_header_x_openai_internal_codex_responses_lite"


@dataclass(frozen=True, slots=True)
class ResponsesOptions:
    """The provider's decisions about one request.

    model      upstream model id
    lite       whether the lite lane is used
    effort     reasoning effort, None to leave it to the upstream
    summary    whether a summary of the reasoning is asked for
    tier       service tier, None for the ordinary one
    cache_key  prompt cache key, usually the session
    reasoning  whether encrypted reasoning is asked for and sent back
    label      the provider of that reasoning: another provider's cannot be read
    offsets    remembered Read offsets; None turns all handling of the Read tool off
    pdf        whether PDF documents are sent as files instead of a note
    strict     whether functions that the caller made strict are sent as strict: the model then fills every parameter
    bare_instructions  whether empty `instructions` are sent: one backend wants the member
    """

    model: str
    lite: bool = False
    effort: str | None = None
    summary: bool = True
    tier: str | None = None
    cache_key: str | None = None
    reasoning: bool = True
    label: str = ""
    offsets: ReadOffsets | None = None
    pdf: bool = False
    strict: bool = False
    bare_instructions: bool = False


def messages_to_responses(
    request: Mapping[str, Any], options: ResponsesOptions, simplified: list[str] | None = None
) -> dict[str, Any]:
    """The upstream body. The request is not changed, so a retry may convert it again. Raises InvalidRequest.

    simplified  gets the names of tools whose schema is too much work to be sent in full
    """
    steps = ToolSteps(simplified)
    instructions = system_text(request.get("system"))
    offered = offered_tools(request)
    tools = [_tool(tool, options, steps) for tool in offered]
    dialect = ResponsesDialect(
        label=options.label,
        reasoning="bare" if options.reasoning else None,
        pdf=options.pdf,
        offsets=options.offsets,
    )
    items = ResponsesHistory(dialect, SentImages()).build(request.get("messages") or [])
    body: dict[str, Any] = {"model": options.model}
    if options.lite:
        items = _lite_prefix(tools, instructions) + items
    elif instructions or options.bare_instructions:
        body["instructions"] = instructions
    body["input"] = items
    if tools and not options.lite:
        body["tools"] = tools
    choice = _tool_choice(request, offered, lite=options.lite)
    if choice is not None:
        body["tool_choice"] = choice
    body["parallel_tool_calls"] = not options.lite and _parallel(request)
    body |= {"store": False, "stream": True, "text": _text(request)}
    body |= _reasoning(options)
    if options.lite:
        body["client_metadata"] = {LITE_MARKER: "true"}
    if options.tier:
        body["service_tier"] = options.tier
    if options.cache_key:
        body["prompt_cache_key"] = short_key(options.cache_key)
    return body


def _lite_prefix(tools: list[Item], instructions: str) -> list[Item]:
    prefix: list[Item] = []
    if tools:
        prefix.append({"type": "additional_tools", "role": "developer", "tools": tools})
    if instructions:
        prefix.append(message_item("developer", [input_text(instructions)]))
    return prefix


# -- tools


def _tool(tool: Mapping[str, Any], options: ResponsesOptions, steps: ToolSteps) -> Item:
    if is_web_search(tool):
        return _search_tool(tool)
    asked = options.strict and tool.get("strict") is True
    function = (strict_function if asked else _function)(tool, steps)
    return guided_definition(function) if tool["name"] == READ and options.offsets is not None else function


def _function_as_asked(tool: Mapping[str, Any], steps: Steps, *, asked: bool) -> Item:
    """The function, strict if that is `asked` and possible: strict makes the model fill optional parameters, so there
    must be none."""
    function: Item = {"type": "function", **function_of(tool, steps)}
    strict = strict_as_asked(function["parameters"]) if asked else None
    return {**function, **({"strict": False} if strict is None else {"parameters": strict, "strict": True})}


_function = ToolWalk(partial(_function_as_asked, asked=False))
#: The upstream form of a function that its author wants strict; its member `strict` is whether it can be.
strict_function = ToolWalk(partial(_function_as_asked, asked=True))


def not_strict(request: Mapping[str, Any]) -> list[str]:
    """The paths of functions that their author wants strict, but whose schema does not allow it."""
    tools = request.get("tools")
    wanted = [
        (index, tool)
        for index, tool in enumerate(tools if isinstance(tools, list) else ())
        if isinstance(tool, dict) and tool.get("strict") is True and isinstance(tool.get("name"), str)
    ]
    steps = ToolSteps()
    return [f"tools[{index}].strict" for index, tool in wanted if not strict_function(tool, steps)["strict"]]


def search_filters(tool: Mapping[str, Any]) -> dict[str, list[str]]:
    """The non-empty lists among `allowed_domains` and `blocked_domains` of a search tool."""
    filters = {}
    for key in ("allowed_domains", "blocked_domains"):
        value = tool.get(key)
        domains = [domain for domain in value if isinstance(domain, str)] if isinstance(value, list) else []
        if domains:
            filters[key] = domains
    return filters


def _search_tool(tool: Mapping[str, Any]) -> Item:
    search: Item = {"type": "web_search", "external_web_access": True, "search_content_types": ["text", "image"]}
    filters = search_filters(tool)
    return {**search, "filters": filters} if filters else search


def _tool_choice(request: Mapping[str, Any], offered: list[dict[str, Any]], *, lite: bool) -> Any:
    """The upstream's tool choice, None to send none. A tool that is not offered cannot be forced, and the lite lane has
    no hosted search."""
    choice = request.get("tool_choice")
    kind = choice.get("type", "auto") if isinstance(choice, Mapping) else choice
    if not isinstance(choice, Mapping) or kind != "tool":
        unknown = "auto" if isinstance(choice, str) else None
        word = CHOICES.get(kind, unknown) if isinstance(kind, str) else None
        return "auto" if word == "required" and not offered else word
    name = choice.get("name")
    if not isinstance(name, str):
        raise InvalidRequest("`tool_choice` of type tool needs a `name`", param="tool_choice.name")
    chosen = next((tool for tool in offered if tool["name"] == name), None)
    if chosen is None and _is_dropped(request, name):
        return "auto"
    if chosen is not None and is_web_search(chosen):
        if lite:
            return "auto"
        return {"type": "allowed_tools", "mode": "required", "tools": [{"type": "web_search"}]}
    return {"type": "function", "name": short_name(name)}


def _is_dropped(request: Mapping[str, Any], name: str) -> bool:
    tools = request.get("tools")
    return isinstance(tools, list) and any(isinstance(tool, dict) and tool.get("name") == name for tool in tools)


def _parallel(request: Mapping[str, Any]) -> bool:
    choice = request.get("tool_choice")
    disabled = choice.get("disable_parallel_tool_use") if isinstance(choice, Mapping) else None
    return disabled is not True


# -- answer form


def _text(request: Mapping[str, Any]) -> Item:
    asked = request.get("output_config")
    asked = asked.get("verbosity") if isinstance(asked, Mapping) else None
    text: Item = {"verbosity": asked if asked in VERBOSITIES else "low"}
    wanted = output_format(request)
    if wanted is None:
        return text
    if wanted["type"] != "json_schema":
        text["format"] = {"type": "json_object" if wanted["type"] == "json_object" else "text"}
    elif isinstance(wanted.get("schema"), dict):
        text["format"] = _schema_format(wanted)
    return text


def _schema_format(wanted: Mapping[str, Any]) -> Item:
    name = wanted.get("name")
    form: Item = {"type": "json_schema", "name": name if isinstance(name, str) and name else "response"}
    if "strict" in wanted:  # the caller decides: chat clients write the schema by this backend's rules
        strict = wanted["strict"]
        return {**form, "schema": wanted["schema"], **({} if strict is None else {"strict": strict})}
    form["name"] = form["name"] if FORMAT_NAME.fullmatch(form["name"]) else "response"
    schema = legal_schema(wanted["schema"])
    try:
        return {**form, "schema": strict_schema(schema), "strict": True}
    except NotStrict:
        return {**form, "schema": schema, "strict": False}


def _reasoning(options: ResponsesOptions) -> dict[str, Any]:
    reasoning: Item = {}
    members: dict[str, Any] = {}
    thinks = options.effort is not None and options.effort != "none"
    if options.effort is not None:
        reasoning["effort"] = options.effort
    if thinks and options.summary:
        reasoning["summary"] = "auto"
    if options.lite:
        reasoning["context"] = "all_turns"
    if reasoning:
        members["reasoning"] = reasoning
    if thinks and options.reasoning:
        members["include"] = ["reasoning.encrypted_content"]
    return members
