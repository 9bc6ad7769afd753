"""A Messages request to a Responses body.

Two forms exist, called lanes. On the full lane `instructions` and `tools` stand at the top level. On the lite lane,
the only one of some newer models, both travel as the first items of `input`, only function tools exist, and calls
come one at a time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proxy.core.content import (
    blocks_of,
    document_blocks,
    image_data_url,
    image_url,
    omitted,
    pdf_data,
    reference_text,
    system_text,
    texts_of,
)
from proxy.core.convert.responses_signatures import decode_signature
from proxy.core.invalid import InvalidRequest
from proxy.core.tools.calls import (
    NO_RESULT,
    arguments_text,
    function_of,
    is_web_search,
    offered_tools,
    short_key,
    short_name,
    upstream_id,
)
from proxy.core.tools.function_schema import legal_schema
from proxy.core.tools.read_tool import NAME as READ
from proxy.core.tools.read_tool import ReadOffsets, guided_definition, result_notes
from proxy.core.tools.schema import NotStrict, output_format, strict_schema

Item = dict[str, Any]

LITE_MARKER = "ws_request_header_x_openai_internal_codex_responses_lite"
TOOL_ERROR = "[tool execution error]"


@dataclass(frozen=True, slots=True)
class ResponsesOptions:
    """What the provider decided about one request.

    model      upstream model id
    lite       which lane
    effort     reasoning effort, None to leave it to the upstream
    summary    whether a summary of the reasoning is asked for
    tier       service tier, None for the ordinary one
    cache_key  prompt cache key, usually the session
    reasoning  whether encrypted reasoning is asked for and sent back
    label      whose encrypted reasoning that is: that of another provider cannot be read
    offsets    remembered Read offsets; None turns all handling of the Read tool off
    pdf        whether PDF documents are sent as files instead of a note
    bare_instructions  whether `instructions` are sent when there are none: one backend wants the member
    """

    model: str
    lite: bool = False
    effort: str | None = None
    summary: bool = True
    tier: str | None = None
    cache_key: str | None = None
    reasoning: bool = True
    label: str = "p1"
    offsets: ReadOffsets | None = None
    pdf: bool = False
    bare_instructions: bool = False


def messages_to_responses(request: Mapping[str, Any], options: ResponsesOptions) -> dict[str, Any]:
    """The upstream body. The request stays as it was, so a retry may translate again. Raises InvalidRequest."""
    instructions = system_text(request.get("system"))
    offered = offered_tools(request)
    tools = [_tool(tool, options) for tool in offered]
    items = _InputBuilder(request.get("messages") or [], options).build()
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
        prefix.append(_message("developer", [_input_text(instructions)]))
    return prefix


def _message(role: str, content: list[Item]) -> Item:
    return {"type": "message", "role": role, "content": content}


def _input_text(text: str) -> Item:
    return {"type": "input_text", "text": text}


# -- tools


def _tool(tool: Mapping[str, Any], options: ResponsesOptions) -> Item:
    if is_web_search(tool):
        return _search_tool(tool)
    function: Item = {"type": "function", **function_of(tool)}
    # Never strict: strict functions make the model fill every optional parameter.
    function["strict"] = False
    return guided_definition(function) if tool["name"] == READ and options.offsets is not None else function


def search_filters(tool: Mapping[str, Any]) -> dict[str, list[str]]:
    """`allowed_domains` and `blocked_domains` of a search tool, each only when it names something."""
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


#: The plain forms; a named tool is a case of its own.
_CHOICES = {"auto": "auto", "none": "none", "any": "required", "required": "required"}


def _tool_choice(request: Mapping[str, Any], offered: list[dict[str, Any]], *, lite: bool) -> Any:
    """A tool that cannot be offered cannot be forced either; hosted search does not exist on the lite lane."""
    choice = request.get("tool_choice")
    kind = choice.get("type", "auto") if isinstance(choice, Mapping) else choice
    if not isinstance(choice, Mapping) or kind != "tool":
        unknown = "auto" if isinstance(choice, str) else None
        word = _CHOICES.get(kind, unknown) if isinstance(kind, str) else None
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
    text: Item = {"verbosity": "low"}
    wanted = output_format(request)
    if wanted is None:
        return text
    if wanted["type"] != "json_schema":
        text["format"] = {"type": "json_object" if wanted["type"] == "json_object" else "text"}
    elif isinstance(wanted.get("schema"), dict):
        text["format"] = _schema_format(wanted)
    return text


#: What the backend takes for the name of a schema.
_FORMAT_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def _schema_format(wanted: Mapping[str, Any]) -> Item:
    name = wanted.get("name")
    form: Item = {"type": "json_schema", "name": name if isinstance(name, str) and name else "response"}
    if "strict" in wanted:  # the caller knows this backend's rules and decided: chat clients write the schema for it
        strict = wanted["strict"]
        return {**form, "schema": wanted["schema"], **({} if strict is None else {"strict": strict})}
    form["name"] = form["name"] if _FORMAT_NAME.fullmatch(form["name"]) else "response"
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


# -- conversation


class _InputBuilder:
    """Builds `input` out of the messages, in order."""

    def __init__(self, messages: list[Any], options: ResponsesOptions) -> None:
        self._messages = messages
        self._options = options
        self._items: list[Item] = []
        self._pending: list[Item] = []  # content parts of the message item under way
        self._role = "user"
        self._calls: dict[str, Mapping[str, Any]] = {}  # tool_use blocks so far, by the client's id
        self._unanswered: dict[str, list[int]] = {}  # the client's id -> positions of its calls without a result

    def build(self) -> list[Item]:
        for message in self._messages:
            role = message["role"]
            blocks = blocks_of(message["content"])
            if role == "system":
                self._start("developer")
                self._pending = [_input_text(text) for text in texts_of(message["content"]) if text]
            elif role == "user":
                self._start("user")
                self._user(blocks)
            else:
                self._start("assistant")
                self._assistant(blocks)
            self._flush()
        if not self._items and self._messages:
            return [_message("user", [_input_text("")])]  # without input it would be refused
        return self._with_missing_results()

    def _start(self, role: str) -> None:
        self._role, self._pending = role, []

    def _flush(self) -> None:
        if self._pending:
            self._items.append(_message(self._role, self._pending))
            self._pending = []

    def _with_missing_results(self) -> list[Item]:
        """The upstream refuses a call without a result; an interrupted client leaves some."""
        missing = {
            position: upstream_id(call_id) for call_id, positions in self._unanswered.items() for position in positions
        }
        if not missing:
            return self._items
        items: list[Item] = []
        for position, item in enumerate(self._items):
            items.append(item)
            if position in missing:
                items.append({"type": "function_call_output", "call_id": missing[position], "output": NO_RESULT})
        return items

    # user side

    def _user(self, blocks: list[Any]) -> None:
        alone = len(blocks) == 1
        for block in blocks:
            if not isinstance(block, dict):
                continue
            if block.get("type") == "tool_result":
                self._result(block)
            else:
                self._pending += self._user_parts(block, alone=alone)

    def _user_parts(self, block: dict[str, Any], *, alone: bool) -> list[Item]:
        kind = block.get("type")
        if kind == "text":
            text = block.get("text")
            text = text if isinstance(text, str) else ""
            return [_input_text(text)] if text or alone else []
        if kind == "image":
            return [_user_image(block)]
        if kind in ("thinking", "redacted_thinking"):
            return []
        if kind in ("document", "search_result"):
            return self._document(block)
        return [_input_text(reference_text(block) if kind == "tool_reference" else omitted(block))]

    def _document(self, block: dict[str, Any]) -> list[Item]:
        parts, pdf = document_blocks(block), pdf_data(block)
        if parts:
            return [_user_image(part) if part["type"] == "image" else _input_text(part["text"]) for part in parts]
        if pdf is None or not self._options.pdf:
            return [_input_text(omitted(block))]
        title = block.get("title")
        name = title if isinstance(title, str) and title else "document.pdf"
        return [{"type": "input_file", "filename": name, "file_data": f"data:application/pdf;base64,{pdf}"}]

    def _result(self, block: dict[str, Any]) -> None:
        call_id = block.get("tool_use_id")
        call_id = call_id if isinstance(call_id, str) else ""
        call = self._calls.get(call_id)
        parts = _result_parts(block.get("content"), present="content" in block)
        if block.get("is_error") is True:
            parts.insert(0, _input_text(TOOL_ERROR))
        if self._options.offsets is not None:
            parts += self._notes(call_id, call, parts, is_error=block.get("is_error") is True)
        waiting = self._unanswered.get(call_id)
        if not waiting:  # not called in this history, or answered already: as a result the upstream would refuse it
            self._pending.append(_input_text(f"[result of an earlier tool call {call_id}]"))
            self._pending += parts
            return
        self._flush()
        del waiting[0]
        self._items.append({"type": "function_call_output", "call_id": upstream_id(call_id), "output": _output(parts)})

    def _notes(self, call_id: str, call: Mapping[str, Any] | None, parts: list[Item], *, is_error: bool) -> list[Item]:
        offsets = self._options.offsets
        if offsets is None or call is None or call.get("name") != READ:
            return []
        text = "\n".join(part["text"] for part in parts if part["type"] == "input_text")
        notes = result_notes(call_id, call, text, is_error=is_error, offsets=offsets)
        return [_input_text(note) for note in notes]

    # assistant side

    def _assistant(self, blocks: list[Any]) -> None:
        for block in blocks:
            if not isinstance(block, dict):
                continue
            kind = block.get("type")
            if kind == "text" and isinstance(block.get("text"), str) and block["text"]:
                self._pending.append({"type": "output_text", "text": block["text"]})
            elif kind == "tool_use":
                self._flush()
                self._call(block)
            elif kind == "thinking":
                self._thinking(block)
            elif kind in ("server_tool_use", "web_search_tool_result"):
                self._pending.append({"type": "output_text", "text": _search_text(block)})

    def _thinking(self, block: dict[str, Any]) -> None:
        known = decode_signature(self._options.label, block.get("signature")) if self._options.reasoning else None
        if known is not None:
            self._flush()
            self._items.append({"type": "reasoning", "id": known[0], "summary": [], "encrypted_content": known[1]})

    def _call(self, block: dict[str, Any]) -> None:
        call_id, name = block.get("id"), block.get("name")
        if not isinstance(call_id, str) or not isinstance(name, str) or not name:
            raise InvalidRequest("a `tool_use` block needs a string `id` and `name`", param="messages")
        self._calls[call_id] = block
        self._unanswered.setdefault(call_id, []).append(len(self._items))
        arguments = arguments_text(block.get("input"))
        self._items.append(
            {"type": "function_call", "call_id": upstream_id(call_id), "name": short_name(name), "arguments": arguments}
        )


def _user_image(block: Mapping[str, Any]) -> Item:
    url = image_url(block.get("source"), default_type="image/png")
    # A broken image would be refused, and with it every later turn of the conversation.
    return {"type": "input_image", "image_url": url} if url else _input_text(omitted(block))


def _result_parts(content: Any, *, present: bool) -> list[Item]:
    if isinstance(content, str) or not present or content is None:
        return [_input_text(content or "")]
    return [part for member in content for part in _parts_of(member)] if isinstance(content, list) else []


def _parts_of(member: Any) -> list[Item]:
    """What stands for a member of a tool result."""
    kind = member.get("type") if isinstance(member, Mapping) else None
    if kind in ("document", "search_result") and (parts := document_blocks(member)):
        return list(map(_result_part, parts))
    return [_result_part(member)]


def _result_part(block: Any) -> Item:
    kind = block.get("type") if isinstance(block, Mapping) else None
    if kind == "text" and isinstance(block.get("text"), str):
        return _input_text(block["text"])
    if kind == "image":
        source = block.get("source")
        url = image_data_url(source)
        if url is not None:
            return {"type": "input_image", "image_url": url}
        if isinstance(source, Mapping) and source.get("type") == "url" and isinstance(source.get("url"), str):
            return _input_text("[image omitted: url]")
    if kind == "tool_reference":
        return _input_text(reference_text(block))
    return _input_text(omitted({"type": kind} if isinstance(kind, str) else {}))


def _output(parts: list[Item]) -> str | list[Item]:
    if any(part["type"] == "input_image" for part in parts):
        return parts
    return "\n".join(part["text"] for part in parts)


def _search_text(block: Mapping[str, Any]) -> str:
    """An earlier hosted search, as text: the upstream has no way to take it back."""
    if block.get("type") == "server_tool_use":
        query = block.get("input")
        query = query.get("query") if isinstance(query, Mapping) else None
        return f"[web search: {query}]" if isinstance(query, str) else "[web search]"
    content = block.get("content")
    links = [
        f"- {link.get('title') or link['url']}: {link['url']}"
        for link in (content if isinstance(content, list) else ())
        if isinstance(link, Mapping) and isinstance(link.get("url"), str)
    ]
    return "\n".join(["[web search results]", *links])
