"""A request body as blocks, in the order in which a prompt cache compares them: tools, system, conversation. Settings
come last: they are no part of the prompt, but another model or cache key is another cache.

Pure. The three wires (Messages, chat, Responses) and the run request of P5 differ in where the parts are, not in what
they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from proxy.core.sse import dump_json

TOOLS, SYSTEM, CONVERSATION, SETTINGS = PARTS = ("tools", "system", "conversation", "settings")

#: part -> the members of a body that hold it, whatever the wire
_MEMBERS = {TOOLS: ("tools", "functions"), SYSTEM: ("instructions", "system"), CONVERSATION: ("messages", "input")}
_PROMPT = frozenset(name for names in _MEMBERS.values() for name in names)

#: Marks where a cache may end; it is no content, and clients move it with every request.
_MARKER = "cache_control"

#: Prefixes of the members that hold a message's thinking; it comes before the content, and calls after it.
_THOUGHTS = "reasoning"

#: An item that brings tools into a conversation.
_TOOL_ITEM = "additional_tools"

#: Suffix of the place of a content that is one text, not a list.
_WHOLE_TEXT = ".content"

#: part -> its place in a run request of P5
_RUN_PLACES = {
    TOOLS: ("mcp_tools", "mcp_tools"),
    SYSTEM: ("custom_system_prompt",),
    CONVERSATION: ("action", "user_message_action", "user_message"),
}


#: Where a turn begins in the text of a run.
_SECTION = re.compile(r"\n\n(?=<[a-z_]{1,32}>\n)")
_TAG = re.compile(r"<([a-z_]{1,32})>")

#: Messages of these at the beginning of a conversation are its system prompt.
_SYSTEM_ROLES = frozenset({"system", "developer"})


@dataclass(frozen=True, slots=True)
class Block:
    """The smallest unit of comparison.

    part   one of PARTS
    place  where in the body: `messages[3].content[0]`
    kind   what it is, for a reader: `user tool_result`
    value  the value at that place
    text   the compact JSON that is compared; members keep their order, since upstreams write them into the prompt as
           they come
    """

    part: str
    place: str
    kind: str
    value: Any
    text: str

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.text.encode("utf-8", "surrogatepass"))


def blocks_of(body: Mapping[str, Any]) -> list[Block]:
    """The blocks of a body of any wire.

    >>> [one.place for one in blocks_of({"model": "m", "messages": [{"role": "user", "content": "a"}]})]
    ['messages[0].content', 'model']
    """
    run = body.get("run_request")
    blocks = _run_blocks(run) if isinstance(run, Mapping) else _with_system(_body_blocks(body))
    return sorted(blocks, key=lambda block: PARTS.index(block.part))


def _body_blocks(body: Mapping[str, Any]) -> Iterator[Block]:
    for part, names in _MEMBERS.items():
        for name in names:
            for place, value in _entries(name, body.get(name)):
                yield from _MAKERS[part](place, value)
    for name, value in body.items():
        if name not in _PROMPT:
            yield _block(SETTINGS, name, "setting", value)


def _with_system(blocks: Iterable[Block]) -> Iterator[Block]:
    begins = True
    for block in blocks:
        role = block.kind.partition(" ")[0] if block.part == CONVERSATION else ""
        begins = begins and (not role or role in _SYSTEM_ROLES)
        yield replace(block, part=SYSTEM) if begins and role else block


def _run_blocks(run: Mapping[str, Any]) -> Iterator[Block]:
    for place, value in _entries("mcp_tools.mcp_tools", _at(run, _RUN_PLACES[TOOLS])):
        yield from _tool(place, value)
    for place, value in _entries("custom_system_prompt", _at(run, _RUN_PLACES[SYSTEM])):
        yield from _system(place, value)
    message = _at(run, _RUN_PLACES[CONVERSATION])
    for name, value in message.items() if isinstance(message, Mapping) else ():
        if name == "text" and isinstance(value, str):
            yield from _sections("user_message.text", value)
        elif name != "message_id":  # a new one with every request
            yield _block(SETTINGS, f"user_message.{name}", "setting", value)
    for name, value in run.items():
        if name not in ("mcp_tools", "custom_system_prompt", "action"):
            yield _block(SETTINGS, name, "setting", value)


def _sections(place: str, text: str) -> Iterator[Block]:
    """A conversation that is written as one text, turn by turn."""
    for number, section in enumerate(_SECTION.split(text)):
        tag = _TAG.match(section)
        part = SYSTEM if tag and tag[1] == "system" and number == 0 else CONVERSATION
        yield _block(part, f"{place}[{number}]", tag[1] if tag else "text", section)


def _at(value: Any, way: tuple[str, ...]) -> Any:
    for name in way:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _entries(name: str, value: Any) -> list[tuple[str, Any]]:
    """The elements of a member, each with its place; what is no list is one."""
    if value is None:
        return []
    return [(f"{name}[{i}]", one) for i, one in enumerate(value)] if isinstance(value, list) else [(name, value)]


def _tool(place: str, tool: Any) -> Iterator[Block]:
    inner = tool.get("function") if isinstance(tool, Mapping) else None
    name = next((one["name"] for one in (tool, inner) if isinstance(one, Mapping) and "name" in one), None)
    yield _block(TOOLS, place, str(name or _type(tool)), tool)


def _system(place: str, value: Any) -> Iterator[Block]:
    if isinstance(value, str):
        yield Block(SYSTEM, place, "system", value, dump_json({"type": "text", "text": value}))
    else:
        yield _block(SYSTEM, place, "system", value)


def _turn(place: str, value: Any) -> Iterator[Block]:
    """A message block by block, an item of tools tool by tool; other items of a conversation whole."""
    if isinstance(value, Mapping) and value.get("type") == _TOOL_ITEM and isinstance(value.get("tools"), list):
        yield from _item_of_tools(place, value)
        return
    for where, piece in _pieces(place, value):
        role = piece.get("role") if isinstance(piece, Mapping) else None
        kind = " ".join(str(word) for word in (role, _type(piece)) if word)
        block = _block(CONVERSATION, where, kind, piece)
        yield replace(block, value=piece["text"]) if where.endswith(_WHOLE_TEXT) else block


def _item_of_tools(place: str, item: Mapping[str, Any]) -> Iterator[Block]:
    rest = {name: one for name, one in item.items() if name != "tools"}
    role = str(rest.get("role", ""))
    for where, tool in _entries(f"{place}.tools", item["tools"]):
        for block in _tool(where, tool):
            yield replace(block, part=CONVERSATION, kind=f"{role} {block.kind}".strip())
    yield _block(CONVERSATION, place, f"{role} {_TOOL_ITEM}".strip(), rest)


_MAKERS = {TOOLS: _tool, SYSTEM: _system, CONVERSATION: _turn}


def _pieces(place: str, value: Any) -> list[tuple[str, Any]]:
    """A content that is a text is the same prompt as a list of this one text: clients write it either way."""
    if not isinstance(value, Mapping) or "role" not in value or "content" not in value:
        return [(place, value)]
    role, content = {"role": value["role"]}, value["content"]
    thoughts = {name: one for name, one in value.items() if name.startswith(_THOUGHTS)}
    pieces: list[tuple[str, Any]] = [(place, {**role, **thoughts})] if thoughts else []
    if isinstance(content, str):
        pieces.append((place + _WHOLE_TEXT, {**role, "type": "text", "text": content}))
    elif isinstance(content, list):
        for where, part in _entries(f"{place}.content", content):
            pieces.append((where, {**role, **part} if isinstance(part, Mapping) else {**role, "part": part}))
    apart = {"role", "type", *thoughts, *(("content",) if not content or isinstance(content, str | list) else ())}
    rest = {name: one for name, one in value.items() if name not in apart}
    if rest or not pieces:
        pieces.append((place, {**role, **rest}))
    return pieces


def _type(value: Any) -> str:
    found = value.get("type") if isinstance(value, Mapping) else None
    return found if isinstance(found, str) else ""


def _block(part: str, place: str, kind: str, value: Any) -> Block:
    if part != SETTINGS:
        value = _unmarked(value)
    return Block(part, place, kind, value, dump_json(value))


def _unmarked(value: Any) -> Any:
    """Without the markers of the value and of the parts of its content, as a result of a tool has them."""
    if not isinstance(value, Mapping):
        return value
    found = {name: one for name, one in value.items() if name != _MARKER}
    if isinstance(value.get("content"), list):
        found["content"] = [_unmarked(one) for one in value["content"]]
    return found
