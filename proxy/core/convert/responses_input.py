"""Converts `instructions` and `input` of a Responses body to a conversation.

The main client is Codex CLI: it repeats the whole conversation as items every turn, even those from another model, such
as custom calls, reasoning that only its own service can read, searches and compactions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proxy.core.convert.custom_input import CUSTOM_INPUT
from proxy.core.convert.openai_fields import (
    TEXTS,
    Block,
    Conversation,
    Members,
    PartRules,
    call_input,
    check_length,
    joined,
    merged,
    needed_text,
    objects_of,
    spoken,
    text_block,
)
from proxy.core.convert.openai_mode import Mode, invalid, is_text, not_one_of, unknown_reference
from proxy.core.convert.openai_tools import Declared, ToolSet, flat_name
from proxy.core.convert.responses.signatures import is_ours
from proxy.core.sse import dump_json

_PARTS = PartRules(TEXTS)
_ASSISTANT_PARTS = PartRules(TEXTS, refusals=True)
_USER_PARTS = PartRules(TEXTS, image="input_image")
#: Types of the parts of an output. A list of anything else is the output itself.
_OUTPUT_PARTS = TEXTS | {"input_image", "input_file", "input_audio", "refusal"}

#: Members that any item may have, about its origin, for the client and its own service.
_COMMON = frozenset({"type", "id", "status", "internal_chat_message_metadata_passthrough", "caller", "async"})
_MESSAGE_KEYS = _COMMON | {"role", "content", "phase"}
#: `parsed_arguments`: the SDK's parsed calls have it, and clients send them back.
_CALL_KEYS = _COMMON | {"call_id", "name", "arguments", "namespace", "parsed_arguments"}
_CUSTOM_CALL_KEYS = _COMMON | {"call_id", "name", "input", "namespace"}
_OUTPUT_KEYS = _COMMON | {"call_id", "output"}
_CUSTOM_OUTPUT_KEYS = _OUTPUT_KEYS | {"name"}
_REASONING_KEYS = _COMMON | {"summary", "content", "encrypted_content"}
_TOOLS_KEYS = _COMMON | {"role", "tools"}

_ROLES = ("user", "assistant", "system", "developer")


class InputReader:
    """Reads the input of a body.

    tools  lists of tools from the input, each with its path
    """

    def __init__(self, mode: Mode) -> None:
        self.conversation = Conversation(mode)
        self.tools: list[Declared] = []
        self._mode = mode
        self._grouped: list[tuple[Block, tuple[str, str]]] = []  # calls of functions in namespaces
        self._ids: set[str] = set()  # ids of the items

    def read(self, body: Members) -> None:
        """Reads `instructions` and `input`. Raises InvalidRequest."""
        if body.get("instructions") is not None:
            self.conversation.instruct(spoken(body["instructions"], "instructions", empty=self._mode.lenient))
        given = body.get("input")
        if isinstance(given, str) and (given or self._mode.lenient):
            self.conversation.user(given)
            return
        if not isinstance(given, list):
            raise invalid("input", "must be a non-empty string or a list of items")
        for path, item in objects_of(given, "input"):
            kind = item.get("type")
            reader = _KINDS.get(kind) if isinstance(kind, str) else InputReader._message
            if reader is None:
                self._mode.leave_out(f"{path}.type", kind)
                continue
            reader(self, item, path)
            if isinstance(item.get("id"), str):
                self._ids.add(item["id"])

    def rename(self, tools: ToolSet) -> None:
        """Renames earlier calls to the names of the functions in this request."""
        names = {key: name for name, key in tools.namespaces.items()}
        for block, key in self._grouped:
            block["name"] = names.get(key, block["name"])

    def _message(self, item: Members, path: str) -> None:
        self._mode.check_keys(item, _MESSAGE_KEYS, path)
        role, content = item.get("role"), item.get("content")
        if role not in _ROLES:
            raise not_one_of(f"{path}.role", _ROLES, role)
        if isinstance(content, str):
            blocks = [text_block(content)] if content else []
        elif isinstance(content, list):
            rules = {"user": _USER_PARTS, "assistant": _ASSISTANT_PARTS}.get(role, _PARTS)
            blocks = self.conversation.parts(content, f"{path}.content", rules)
        else:
            raise invalid(f"{path}.content", "must be a string or a list of parts")
        if role == "user":
            self.conversation.user(blocks)
        elif role == "assistant":
            self.conversation.assistant(blocks)
        else:
            self.conversation.instruct(joined(block["text"] for block in blocks))

    # -- calls

    def _call(self, item: Members, path: str) -> None:
        self._mode.check_keys(item, _CALL_KEYS, path)
        self._begin(item, path, lambda: call_input(item.get("arguments"), f"{path}.arguments"))

    def _custom_call(self, item: Members, path: str) -> None:
        self._mode.check_keys(item, _CUSTOM_CALL_KEYS, path)
        self._begin(item, path, lambda: {CUSTOM_INPUT: _needed_string(item, "input", path)})

    def _shell_call(self, item: Members, path: str) -> None:
        """Adds a call of the shell, which is a tool of its own for the models of some services."""
        action = item.get("action")
        self._begin({"name": "local_shell", **item}, path, lambda: action if isinstance(action, dict) else {})

    def _begin(self, item: Members, path: str, value: Callable[[], Any]) -> None:
        call_id = item.get("id") if item.get("call_id") is None else item["call_id"]
        if not isinstance(call_id, str) or not call_id:
            raise invalid(f"{path}.call_id", "must be a non-empty string")
        name, id_path = needed_text(item, "name", path), f"{path}.call_id"
        if item.get("namespace") is None:
            self.conversation.call(call_id, name, value(), id_path)
            return
        key = needed_text(item, "namespace", path), name
        self._grouped.append((self.conversation.call(call_id, flat_name(*key), value(), id_path), key))

    def _output(self, item: Members, path: str) -> None:
        custom = item.get("type") == "custom_tool_call_output"
        self._mode.check_keys(item, _CUSTOM_OUTPUT_KEYS if custom else _OUTPUT_KEYS, path)
        if "output" not in item:
            raise invalid(f"{path}.output", "is missing")
        output = item["output"]
        if isinstance(output, list):
            output = self._output_parts(output, f"{path}.output")
        elif not isinstance(output, str):
            output = dump_json(output)
        call_id = item.get("id") if item.get("call_id") is None else item["call_id"]
        self.conversation.result(call_id, output, f"{path}.call_id")

    def _output_parts(self, parts: list[Any], path: str) -> str | list[Block]:
        """Texts and pictures as blocks, other parts as the text of their JSON, as is a list that holds no parts."""
        check_length(parts, path)
        if not all(map(_is_part, parts)):
            return dump_json(parts)
        blocks: list[Block] = []
        for index, part in enumerate(parts):
            if part["type"] == "input_image":
                blocks.append(self.conversation.image(part, f"{path}[{index}]"))
            elif part["type"] in TEXTS and isinstance(part.get("text"), str):
                blocks += [text_block(part["text"])] if part["text"] else []
            else:
                blocks.append(text_block(dump_json(part)))
        return merged(blocks) or ""

    # -- the rest

    def _reasoning(self, item: Members, path: str) -> None:
        """Adds earlier reasoning, which some models want back with their calls. What another service encrypted cannot
        be read here."""
        self._mode.check_keys(item, _REASONING_KEYS, path)
        texts = [*_texts(item, "summary", "summary_text", path), *_texts(item, "content", "reasoning_text", path)]
        block: Block = {"type": "thinking", "thinking": "\n\n".join(texts)}
        signature = item.get("encrypted_content")
        if isinstance(signature, str) and is_ours(signature):
            block["signature"] = signature
        if texts or "signature" in block:
            self.conversation.assistant([block])

    def _more_tools(self, item: Members, path: str) -> None:
        self._mode.check_keys(item, _TOOLS_KEYS, path)
        self.tools.append((f"{path}.tools", item.get("tools")))

    def _reference(self, item: Members, path: str) -> None:
        """Ignores a reference to an earlier item of this input, and refuses any other, since nothing is kept."""
        if not isinstance(item.get("id"), str) or item["id"] not in self._ids:
            raise unknown_reference(f"{path}.type", item.get("id"))

    def _nothing(self, item: Members, path: str) -> None:
        """Ignores what another service did or kept, since its results are in other items."""

    def _lost(self, item: Members, path: str) -> None:
        """Leaves out and notes what only another service can read."""
        self._mode.drop(path)


def _needed_string(item: Members, name: str, path: str) -> str:
    if not isinstance(item.get(name), str):
        raise invalid(f"{path}.{name}", "must be a string")
    return str(item[name])


def _is_part(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("type"), str) and part["type"] in _OUTPUT_PARTS


def _texts(item: Members, name: str, kind: str, path: str) -> list[str]:
    """The non-empty texts of the parts of one type."""
    if item.get(name) is None:
        return []
    parts = [part for _, part in objects_of(item[name], f"{path}.{name}")]
    return [part["text"] for part in parts if part.get("type") == kind and is_text(part.get("text")) and part["text"]]


_KINDS: dict[str, Callable[[InputReader, Members, str], None]] = {
    "message": InputReader._message,
    "function_call": InputReader._call,
    "function_call_output": InputReader._output,
    "custom_tool_call": InputReader._custom_call,
    "custom_tool_call_output": InputReader._output,
    "local_shell_call": InputReader._shell_call,
    "local_shell_call_output": InputReader._output,
    "reasoning": InputReader._reasoning,
    "additional_tools": InputReader._more_tools,
    "item_reference": InputReader._reference,
    "web_search_call": InputReader._nothing,
    "tool_search_call": InputReader._nothing,
    "tool_search_output": InputReader._nothing,
    "configuration_update": InputReader._nothing,
    "compaction": InputReader._lost,
    "compaction_summary": InputReader._lost,
    "context_compaction": InputReader._lost,
    "image_generation_call": InputReader._lost,
}
