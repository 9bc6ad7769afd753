"""Converts a Messages request to a chat-completions body.

Upstreams agree on the form but not on details: where system text may be, whether a tool result may hold images, whether
reasoning must accompany tool calls. They refuse what they do not like. Those details are data: a `ChatDialect`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any, Literal

from proxy.core.content import (
    blocks_of,
    clean_base64,
    document_blocks,
    image_url,
    media_type_of,
    omitted,
    reference_text,
    system_text,
    texts_of,
    without_billing,
)
from proxy.core.invalid import InvalidRequest, shown
from proxy.core.search.history import with_searches_told
from proxy.core.sse import dump_json
from proxy.core.tools.calls import CHOICES, NO_RESULT, OpenCalls, function_of, input_text, offered_tools, short_name
from proxy.core.tools.schema import format_in_words
from proxy.core.tools.step_budget import Steps, ToolSteps, ToolWalk
from proxy.core.tools.typed_schema import typed_schema

Message = dict[str, Any]

TOOL_ERROR = "[tool execution error]\n"
#: Replaces reasoning that a conversation lost, if the upstream wants some with every tool call.
NO_REASONING = "."


@dataclass(frozen=True, slots=True)
class ChatDialect:
    """The form of a conversation that an upstream wants.

    system        where system text goes: one message in `front`, or `in_place`
    tool_images   a tool message may hold images `inside`, or is one text and they go into a user message `after` all
                  results
    reasoning     reasoning of assistant messages: as `found`, with a placeholder on `calls` that have none, or `always`
                  (empty if there is none)
    bare_calls    whether an assistant message with calls and no text has no `content`, instead of an empty one
    keep_auto     whether `tool_choice: auto` is sent
    strict_input  whether invalid tools and tool choices are the caller's error instead of ignored
    typed         whether every property schema needs a `type`
    images        whether the model takes images
    limit         the member with the token limit of the answer
    omitted       the note for a block of a tool result that cannot be passed on; {} is its type
    """

    system: Literal["front", "in_place"] = "front"
    tool_images: Literal["inside", "after"] = "after"
    reasoning: Literal["found", "calls", "always"] = "found"
    bare_calls: bool = False
    keep_auto: bool = True
    strict_input: bool = True
    typed: bool = False
    images: bool = True
    limit: str = "max_tokens"
    omitted: str = "[unsupported content block omitted: {}]"


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """The provider's decisions about one request. `extra`: further members of the body."""

    model: str
    dialect: ChatDialect
    max_tokens: int
    extra: Mapping[str, Any]


def messages_to_chat(
    request: Mapping[str, Any], options: ChatOptions, simplified: list[str] | None = None
) -> dict[str, Any]:
    """The upstream body; always streamed, always with usage. Raises InvalidRequest.

    simplified  gets the names of tools whose schema is too much work to be sent in full
    """
    dialect = options.dialect
    written, steps = _typed_tool if dialect.typed else _plain_tool, ToolSteps(simplified)
    tools = [written(tool, steps) for tool in _functions(request, dialect)]
    messages = _ChatHistory(request, dialect).build()
    if not messages:
        raise InvalidRequest("`messages`: none of them has any content for this model", param="messages")
    body: dict[str, Any] = {"model": options.model, "messages": messages}
    if tools:
        body["tools"] = tools
    body |= _choice(request, dialect, has_tools=bool(tools))
    body |= {"stream": True, "stream_options": {"include_usage": True}, dialect.limit: options.max_tokens}
    return body | dict(options.extra)


# -- tools


def _functions(request: Mapping[str, Any], dialect: ChatDialect) -> list[dict[str, Any]]:
    """The tools that can be offered as functions. Raises InvalidRequest."""
    if dialect.strict_input:
        _check_tools(request.get("tools"))
    return [tool for tool in offered_tools(request) if tool["name"]]


def _check_tools(tools: Any) -> None:
    if tools is not None and not isinstance(tools, list):
        raise InvalidRequest("`tools` must be a list", param="tools")
    for index, tool in enumerate(tools or ()):
        name = tool.get("name") if isinstance(tool, Mapping) else None
        if not isinstance(name, str) or not name:
            raise InvalidRequest(f"`tools[{index}]` needs a `name`", param=f"tools[{index}].name")


def _tool(tool: Mapping[str, Any], steps: Steps, *, typed: bool) -> Message:
    function = function_of(tool, steps)
    if typed:
        function["parameters"] = typed_schema(function["parameters"], steps)
    return {"type": "function", "function": function}


_plain_tool = ToolWalk(partial(_tool, typed=False))
_typed_tool = ToolWalk(partial(_tool, typed=True))


def _choice(request: Mapping[str, Any], dialect: ChatDialect, *, has_tools: bool) -> dict[str, Any]:
    """`tool_choice` and `parallel_tool_calls`, if they are sent. Raises InvalidRequest."""
    choice = request.get("tool_choice")
    if choice is None:
        return {}
    wanted = _strict_choice(choice) if dialect.strict_input else _loose_choice(choice)
    if dialect.strict_input and not has_tools:
        if wanted not in ("auto", "none") and not request.get("tools"):
            raise InvalidRequest("`tool_choice` requires at least one tool", param="tool_choice")
        return {"tool_choice": "none"} if wanted == "none" else {}
    if not has_tools and wanted != "none":
        wanted = None  # what is not offered cannot be forced
    members: dict[str, Any] = {}
    if wanted is not None and (wanted != "auto" or dialect.keep_auto):
        members["tool_choice"] = wanted
    disabled = choice.get("disable_parallel_tool_use") if isinstance(choice, Mapping) else None
    if isinstance(disabled, bool):
        members["parallel_tool_calls"] = not disabled
    return members


def _strict_choice(choice: Any) -> Any:
    kind = choice.get("type") if isinstance(choice, Mapping) else None
    wanted = CHOICES.get(kind) if isinstance(kind, str) else None
    if kind == "tool":
        name = choice.get("name")
        if not isinstance(name, str) or not name:
            raise InvalidRequest("`tool_choice` of type tool needs a `name`", param="tool_choice.name")
        wanted = _named(name)
    if wanted is None:
        raise InvalidRequest("`tool_choice` must be an object of type auto, any, none or tool", param="tool_choice")
    if not isinstance(choice.get("disable_parallel_tool_use", False), bool):
        raise InvalidRequest("`disable_parallel_tool_use` must be true or false", param="tool_choice")
    return wanted


def _loose_choice(choice: Any) -> Any:
    """The chat form of a tool choice; None if it is unknown."""
    kind = choice.get("type") if isinstance(choice, Mapping) else choice
    if kind == "tool" and isinstance(choice, Mapping):
        name = choice.get("name")
        return _named(name) if isinstance(name, str) and name else "required"
    return CHOICES.get(kind) if isinstance(kind, str) else None


def _named(name: str) -> Any:
    return {"type": "function", "function": {"name": short_name(name)}}


# -- conversation


def _joined(messages: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yields the messages. Neighbouring ones of the assistant with calls become one, as these are answered together."""
    for role, group in itertools.groupby(messages, key=itemgetter("role")):
        members = list(group)
        if role != "assistant" or not any(map(_has_calls, members[:-1])):
            yield from members
        else:
            yield {"role": role, "content": [block for member in members for block in blocks_of(member["content"])]}


def _has_calls(message: Mapping[str, Any]) -> bool:
    blocks = blocks_of(message["content"])
    return any(isinstance(block, Mapping) and block.get("type") == "tool_use" for block in blocks)


class _ChatHistory:
    """Builds `messages`, in order.

    Chat servers want the results of all calls directly after their assistant message. So of each turn, which is
    everything between two assistant messages, the tool results come first, then the rest.
    """

    def __init__(self, request: Mapping[str, Any], dialect: ChatDialect) -> None:
        self._messages = request.get("messages") or []
        self._dialect = dialect
        self._out: list[Message] = []
        self._reasoning = ""  # the newest reasoning of the conversation, for messages that lost theirs
        self._calls = OpenCalls()  # calls of the last assistant message
        self._after: list[Message] = []  # messages of the turn that come after its results
        texts = without_billing(system_text(request.get("system"))), format_in_words(request)
        self._system = [text for text in texts if text]

    def build(self) -> list[Message]:
        if self._dialect.system == "front":
            self._system += [text for message in self._messages if (text := _system_of(message))]
        if self._system:
            self._out.append({"role": "system", "content": "\n\n".join(self._system)})
        for message in _joined(self._messages):
            role = message["role"]
            if role in ("system", "developer"):
                self._instruct(_system_of(message))
            elif role == "user":
                self._user(blocks_of(message["content"]))
            elif role == "assistant":
                self._end_turn()
                self._assistant(blocks_of(message["content"]))
            else:
                raise InvalidRequest(f"`messages` has the unknown role {shown(role)}", param="messages")
        self._end_turn()
        return self._out

    def _end_turn(self) -> None:
        for sent_as in self._calls.unanswered:
            self._out.append({"role": "tool", "tool_call_id": sent_as, "content": NO_RESULT})
        self._out += self._after
        self._calls, self._after = OpenCalls(), []

    def _instruct(self, text: str) -> None:
        if text and self._dialect.system == "in_place":
            self._after.append({"role": "system", "content": text})

    # user side

    def _user(self, blocks: list[Any]) -> None:
        parts: list[Message] = []
        for block in blocks:
            if not isinstance(block, dict):
                continue
            if block.get("type") == "tool_result":
                parts += self._result(block)
            else:
                parts += self._part(block)
        if parts:
            self._after.append({"role": "user", "content": _content(parts)})

    def _part(self, block: dict[str, Any]) -> list[Message]:
        kind = block.get("type")
        if kind == "text":
            text = block.get("text")
            return [_text(text)] if isinstance(text, str) and text else []
        if kind in ("image", "video"):
            return self._media(block) or [_text(omitted(block))]
        if kind in ("document", "search_result"):
            return self._document(block) or [_apart(omitted(block))]
        return [_text(reference_text(block))] if kind == "tool_reference" else []

    def _document(self, block: Mapping[str, Any]) -> list[Message]:
        """The parts of a document; [] if none can be read."""
        return [
            part
            for found in document_blocks(block)
            for part in ([_apart(found["text"])] if found["type"] == "text" else self._part(found))
        ]

    def _media(self, block: Mapping[str, Any]) -> list[Message]:
        """The part of an image or video; [] if it holds nothing that could be sent."""
        kind, source = block["type"], block.get("source")
        if not isinstance(source, Mapping):
            return []
        if not self._dialect.images:
            return [_text(f"[{kind} omitted: model has no {kind} input]")]
        url = _address(source) if source.get("type") == "url" else _data_url(kind, source)
        return [{"type": f"{kind}_url", f"{kind}_url": {"url": url}}] if url else []

    def _omitted(self, kind: Any) -> str:
        return self._dialect.omitted.format(kind)

    def _result(self, block: dict[str, Any]) -> list[Message]:
        """Adds the tool message; returns the parts for the user message after it."""
        call_id = block.get("tool_use_id")
        call_id = call_id if isinstance(call_id, str) else ""
        parts, media = self._result_parts(block)
        sent_as = self._calls.answer(call_id)
        if sent_as is None:  # a result without its call, or a second one, would be refused
            head = f"[result of an earlier tool call {call_id}]\n"
            return [_text(head), *(part for part in parts if part.get("text") != ""), *media]
        content = _content(parts) if self._dialect.tool_images == "after" else _collapsed(parts)
        self._out.append({"role": "tool", "tool_call_id": sent_as, "content": content})
        return media

    def _result_parts(self, block: Mapping[str, Any]) -> tuple[list[Message], list[Message]]:
        """The parts of the tool message, and those that must go elsewhere."""
        content = block.get("content", "")
        prefix = TOOL_ERROR if block.get("is_error") is True else ""
        one_text = self._dialect.tool_images == "after"
        if not isinstance(content, list):
            text = content if isinstance(content, str) else dump_json(content) if one_text else ""
            return [_text(prefix + text)], []
        parts: list[Message] = [_text(prefix)] if prefix else []
        media: list[Message] = []
        for member in content:
            for part in self._result_part(member):
                (media if one_text and part["type"] != "text" else parts).append(part)
        return parts, media

    def _result_part(self, member: Any) -> list[Message]:
        kind = member.get("type") if isinstance(member, Mapping) else None
        if not isinstance(member, Mapping) or not isinstance(kind, str):
            one_text = self._dialect.tool_images == "after"
            return [_text(self._omitted("").replace(": ]", "]"))] if one_text else []
        if kind == "text":
            text = member.get("text")
            return [_text(text)] if isinstance(text, str) and text else []
        if kind == "tool_reference" and isinstance(member.get("tool_name"), str):
            return [_apart(reference_text(member), "\n")]
        media = self._media(member) if kind in ("image", "video") else []
        return media or self._document(member) or [_text(self._omitted(kind))]

    # assistant side

    def _assistant(self, blocks: list[Any]) -> None:
        said: dict[str, list[str]] = {"text": [], "thinking": []}
        calls: list[Message] = []
        for block in with_searches_told([block for block in blocks if isinstance(block, dict)]):
            kind = block.get("type")
            if kind == "tool_use":
                calls.append(self._call(block))
            elif kind in _SAID and isinstance(block.get(kind), str) and block[kind]:
                said[kind].append(block[kind])
        text, reasoning = "".join(said["text"]), "\n\n".join(said["thinking"])
        if not (text or reasoning or calls):
            return
        self._reasoning = reasoning or self._reasoning
        message: Message = {"role": "assistant"}
        if text or not calls or not self._dialect.bare_calls:
            message["content"] = text
        if reasoning or self._dialect.reasoning == "always":
            message["reasoning_content"] = reasoning
        elif calls and self._dialect.reasoning == "calls":
            message["reasoning_content"] = self._reasoning or text or NO_REASONING
        if calls:
            message["tool_calls"] = calls
        self._out.append(message)

    def _call(self, block: Mapping[str, Any]) -> Message:
        sent_as, name = self._calls.begin(block)
        value = block.get("input")
        arguments = input_text({} if value is None else value)
        return {"id": sent_as, "type": "function", "function": {"name": name, "arguments": arguments}}


def _system_of(message: Mapping[str, Any]) -> str:
    if message["role"] not in ("system", "developer"):
        return ""
    return "\n".join(text for text in texts_of(message["content"]) if text)


#: Blocks of the assistant that are one text, whose member is named like their type.
_SAID = ("text", "thinking")


def _text(text: str) -> Message:
    return {"type": "text", "text": text}


#: A member of a part that is not sent: the separator between it and other texts.
_GAP = "gap"


def _apart(text: str, gap: str = "\n\n") -> Message:
    """A text part that is separated from its neighbours."""
    return {**_text(text), _GAP: gap}


def _address(source: Mapping[str, Any]) -> str | None:
    """An address that a server could fetch, or that of a file which was uploaded to it; None for any other."""
    url = source.get("url")
    if isinstance(url, str) and url.startswith(("ms://", "data:video/")):
        return url
    return image_url(source)


def _data_url(kind: str, source: Mapping[str, Any]) -> str | None:
    media_type, data = source.get("media_type"), source.get("data")
    default = "image/png" if kind == "image" else "video/mp4"
    media_type = media_type_of(media_type) if isinstance(media_type, str) and media_type else default
    clean = clean_base64(data)
    if clean is None or not isinstance(data, str):
        return None
    # Unchanged if it has no blanks: prompt caches need the same bytes every turn.
    return f"data:{media_type};base64,{data if len(data) <= len(clean) else clean}"


def _content(parts: list[Message]) -> str | list[Message]:
    """The content of a message: parts that are all texts as one string, documents separated by gaps; else the parts."""
    if all(part["type"] == "text" for part in parts):
        texts = [part["text"] for part in parts[:1]]
        for before, part in itertools.pairwise(parts):
            texts += [max(before.get(_GAP, ""), part.get(_GAP, "")), part["text"]]
        return "".join(texts)
    return _sendable(parts)


def _collapsed(parts: list[Message]) -> str | list[Message]:
    """The content of a tool message: a single text as a string, "" for no parts, since servers refuse an empty list."""
    if not parts:
        return ""
    if len(parts) == 1 and parts[0]["type"] == "text":
        return str(parts[0]["text"])
    return _sendable(parts)


def _sendable(parts: list[Message]) -> list[Message]:
    return [{key: value for key, value in part.items() if key != _GAP} for part in parts]
