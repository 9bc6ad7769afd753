"""A Messages request to a chat-completions body.

Upstreams agree on the form and disagree on details, and refuse what they do not like: where system text may stand, whether a
tool result may hold images, whether reasoning must accompany tool calls. Those details are data: a `ChatDialect`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from proxy.core.content import BILLING_PREFIX, blocks_of, document_text, system_text, texts_of
from proxy.core.invalid import InvalidRequest
from proxy.core.sse import dump_json
from proxy.core.tools import is_web_search, offered_tools, upstream_id
from proxy.core.typed_schema import typed_schema

Message = dict[str, Any]

TOOL_ERROR = "[tool execution error]\n"
#: What stands for reasoning that a conversation lost, where the upstream wants some with every tool call.
NO_REASONING = "."


@dataclass(frozen=True, slots=True)
class ChatDialect:
    """How an upstream wants a conversation.

    system        where system text goes: one message in `front`, `in_place`, or inside the next `user` message
    tool_images   images of a tool result: `inside` its message, or in a user message `after` all results
    reasoning     reasoning of assistant messages: as `found`, with a placeholder on `calls` that have none, or `always`
                  (empty when there is none)
    bare_calls    an assistant message with calls and no text has no `content` at all, instead of an empty one
    keep_auto     `tool_choice: auto` is sent
    strict_input  a tool choice that makes no sense is the caller's error, not ignored
    typed         every property schema needs a `type`
    images        whether the model takes images at all
    omitted       the words for a block that cannot be passed on; {} is its type
    """

    system: Literal["front", "in_place", "user"] = "front"
    tool_images: Literal["inside", "after"] = "after"
    reasoning: Literal["found", "calls", "always"] = "found"
    bare_calls: bool = False
    keep_auto: bool = True
    strict_input: bool = True
    typed: bool = False
    images: bool = True
    omitted: str = "[unsupported content block omitted: {}]"


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """What the provider decided about one request. `extra`: further members of the body, as they are."""

    model: str
    dialect: ChatDialect
    max_tokens: int
    extra: Mapping[str, Any]


def messages_to_chat(request: Mapping[str, Any], options: ChatOptions) -> dict[str, Any]:
    """The upstream body; always streamed, always with usage. Raises InvalidRequest."""
    dialect = options.dialect
    tools = [_tool(tool, dialect) for tool in offered_tools(request) if not is_web_search(tool)]
    body: dict[str, Any] = {"model": options.model, "messages": _Conversation(request, dialect).build()}
    if tools:
        body["tools"] = tools
    body |= _choice(request, dialect, has_tools=bool(tools))
    body |= {"stream": True, "stream_options": {"include_usage": True}, "max_tokens": options.max_tokens}
    return body | dict(options.extra)


# -- tools


def _tool(tool: Mapping[str, Any], dialect: ChatDialect) -> Message:
    function: Message = {"name": tool["name"]}
    if isinstance(tool.get("description"), str):
        function["description"] = tool["description"]
    schema = tool.get("input_schema")
    schema = schema if isinstance(schema, dict) else {}
    function["parameters"] = typed_schema(schema) if dialect.typed else schema
    return {"type": "function", "function": function}


_CHOICES = {"auto": "auto", "none": "none", "any": "required", "required": "required"}


def _choice(request: Mapping[str, Any], dialect: ChatDialect, *, has_tools: bool) -> dict[str, Any]:
    """`tool_choice` and `parallel_tool_calls`, as far as they are to be sent."""
    choice = request.get("tool_choice")
    if choice is None:
        return {}
    kind = choice.get("type") if isinstance(choice, Mapping) else choice
    wanted = _wanted(choice, kind, dialect)
    members: dict[str, Any] = {}
    parallel = choice.get("disable_parallel_tool_use") if isinstance(choice, Mapping) else None
    if isinstance(parallel, bool):
        members["parallel_tool_calls"] = not parallel
    elif parallel is not None and dialect.strict_input:
        raise InvalidRequest("`disable_parallel_tool_use` must be true or false", param="tool_choice")
    if not has_tools and dialect.strict_input:
        if wanted not in ("auto", "none", None):
            raise InvalidRequest("`tool_choice` requires at least one tool", param="tool_choice")
        return {}
    if wanted is not None and (wanted != "auto" or dialect.keep_auto):
        members["tool_choice"] = wanted
    return members


def _wanted(choice: Any, kind: Any, dialect: ChatDialect) -> Any:
    if kind == "tool" and isinstance(choice, Mapping):
        name = choice.get("name")
        if isinstance(name, str) and name:
            return {"type": "function", "function": {"name": name}}
        if dialect.strict_input:
            raise InvalidRequest("`tool_choice` of type tool needs a `name`", param="tool_choice.name")
        return "required"
    wanted = _CHOICES.get(kind) if isinstance(kind, str) else None
    if wanted is None and dialect.strict_input:
        raise InvalidRequest("`tool_choice` must be auto, any, none or tool", param="tool_choice")
    return wanted


# -- conversation


class _Conversation:
    """Builds `messages`, in order."""

    def __init__(self, request: Mapping[str, Any], dialect: ChatDialect) -> None:
        self._messages = request.get("messages") or []
        self._dialect = dialect
        self._out: list[Message] = []
        self._reasoning = ""  # the newest reasoning of the conversation, for messages that lost theirs
        self._calls: set[str] = set()  # calls that may still be answered
        text = system_text(request.get("system"))
        self._system = [text] if text and not text.startswith(BILLING_PREFIX) else []

    def build(self) -> list[Message]:
        if self._dialect.system == "front":
            self._system += [text for message in self._messages if (text := _system_of(message))]
        if self._dialect.system != "user" and self._system:
            self._out.append({"role": "system", "content": "\n\n".join(self._system)})
        for message in self._messages:
            role = message["role"]
            if role in ("system", "developer"):
                self._instruct(_system_of(message))
            elif role == "user":
                self._user(blocks_of(message["content"]))
            elif role == "assistant":
                self._assistant(blocks_of(message["content"]))
            else:
                raise InvalidRequest(f"`messages` has the unknown role {role!r}", param="messages")
        if self._dialect.system == "user" and self._system:
            self._out.append({"role": "user", "content": "\n\n".join(self._system)})
        return self._out

    def _instruct(self, text: str) -> None:
        if not text or self._dialect.system == "front":
            return
        if self._dialect.system == "user":
            self._system.append(text)
        else:
            self._out.append({"role": "system", "content": text})

    # user side

    def _user(self, blocks: list[Any]) -> None:
        """All tool results first, in order: a chat server wants the answers to its calls before anything else."""
        parts: list[Message] = []
        for block in blocks:
            if not isinstance(block, dict):
                continue
            if block.get("type") == "tool_result":
                parts += self._result(block)
            else:
                parts += self._part(block)
        if self._dialect.system == "user" and self._system:
            prefix, self._system = "\n\n".join(self._system), []
            texts = [part for part in parts if part["type"] == "text"]
            joined = "\n\n" if texts and len(texts) == len(parts) else ""
            parts = [{"type": "text", "text": prefix + joined}, *parts]
        if parts:
            self._out.append({"role": "user", "content": _content(parts)})

    def _part(self, block: dict[str, Any]) -> list[Message]:
        kind = block.get("type")
        if kind == "text":
            text = block.get("text")
            return [{"type": "text", "text": text}] if isinstance(text, str) and text else []
        if kind in ("image", "video"):
            return self._media(block)
        if kind in ("document", "search_result"):
            return [{"type": "text", "text": document_text(block) or self._dialect.omitted.format(kind)}]
        return []

    def _media(self, block: Mapping[str, Any]) -> list[Message]:
        source = block.get("source")
        if not isinstance(source, Mapping):
            return []
        if not self._dialect.images:
            return [{"type": "text", "text": f"[{block['type']} omitted: the model takes none]"}]
        kind = "image_url" if block["type"] == "image" else "video_url"
        if source.get("type") == "url":
            url = source.get("url")
        else:
            default = "image/png" if kind == "image_url" else "video/mp4"
            url = f"data:{source.get('media_type') or default};base64,{source.get('data') or ''}"
        return [{"type": kind, kind: {"url": url}}] if isinstance(url, str) and url else []

    def _result(self, block: dict[str, Any]) -> list[Message]:
        """Emits the tool message; returns what has to go into the user message behind it."""
        call_id = block.get("tool_use_id")
        call_id = upstream_id(call_id, shorten=False) if isinstance(call_id, str) else ""
        parts, media = self._result_parts(block)
        if call_id not in self._calls:  # a result without its call would be refused
            return [{"type": "text", "text": f"[result of an earlier tool call {call_id}]\n"}, *parts, *media]
        self._calls.discard(call_id)
        text_only = self._dialect.tool_images == "after"
        content = _content(parts) if text_only else _collapsed(parts)
        self._out.append({"role": "tool", "tool_call_id": call_id, "content": content})
        return media

    def _result_parts(self, block: Mapping[str, Any]) -> tuple[list[Message], list[Message]]:
        content = block.get("content")
        prefix = TOOL_ERROR if block.get("is_error") is True else ""
        if not isinstance(content, list):
            text = content if isinstance(content, str) else ""
            return [{"type": "text", "text": prefix + text}], []
        parts: list[Message] = [{"type": "text", "text": prefix}] if prefix else []
        media: list[Message] = []
        for member in content:
            found = self._result_part(member)
            keep = self._dialect.tool_images == "inside" or not found or found[0]["type"] == "text"
            (parts if keep else media).extend(found)
        return parts, media

    def _result_part(self, member: Any) -> list[Message]:
        kind = member.get("type") if isinstance(member, Mapping) else None
        if not isinstance(member, Mapping) or not isinstance(kind, str):
            return []
        if kind == "text":
            text = member.get("text")
            return [{"type": "text", "text": text}] if isinstance(text, str) and text else []
        if kind in ("image", "video") and isinstance(member.get("source"), Mapping):
            return self._media(member)
        if kind == "tool_reference" and isinstance(member.get("tool_name"), str):
            return [{"type": "text", "text": f"[tool reference: {member['tool_name']}]"}]
        return [{"type": "text", "text": document_text(member) or self._dialect.omitted.format(kind)}]

    # assistant side

    def _assistant(self, blocks: list[Any]) -> None:
        known = [block for block in blocks if isinstance(block, dict)]
        text = "".join(_strings(known, "text"))
        reasoning = "\n\n".join(_strings(known, "thinking"))
        calls = [self._call(block) for block in known if block.get("type") == "tool_use"]
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
        call_id, name = block.get("id"), block.get("name")
        if not isinstance(call_id, str) or not call_id or not isinstance(name, str) or not name:
            raise InvalidRequest("a `tool_use` block needs a string `id` and `name`", param="messages")
        call_id = upstream_id(call_id, shorten=False)
        self._calls.add(call_id)
        value = block.get("input")
        arguments = dump_json({} if value is None else value)
        return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _system_of(message: Mapping[str, Any]) -> str:
    if message["role"] not in ("system", "developer"):
        return ""
    return "\n".join(text for text in texts_of(message["content"]) if text)


def _strings(blocks: list[dict[str, Any]], kind: str) -> list[str]:
    """The non-empty texts of the blocks of one type; text and thinking blocks name their member like their type."""
    return [
        block[kind]
        for block in blocks
        if block.get("type") == kind and isinstance(block.get(kind), str) and block[kind]
    ]


def _content(parts: list[Message]) -> str | list[Message]:
    """Only text is one string, without anything in between; otherwise the parts."""
    if all(part["type"] == "text" for part in parts):
        return "".join(part["text"] for part in parts)
    return parts


def _collapsed(parts: list[Message]) -> str | list[Message]:
    """The content of a tool message: text alone is a string. Servers refuse an empty list."""
    if not parts:
        return ""
    if len(parts) == 1 and parts[0]["type"] == "text":
        return str(parts[0]["text"])
    return parts
