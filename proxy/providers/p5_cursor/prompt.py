"""The whole request as one text, since the service accepts no conversation. Pure, and slow for megabytes of text: call
it in a thread.

    <system>
    Be brief.
    </system>

    <user>
    Q
    </user>

Nothing is escaped. A rendering is pieces of text that are joined once, so that deep results are not copied repeatedly.
One without pieces is left out, with the gap before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from proxy.core.content import (
    BILLING_PREFIX,
    TOOL_CHANGES,
    blocks_of,
    change_text,
    document_blocks,
    messages_of,
    omitted,
    texts_of,
)
from proxy.core.invalid import InvalidRequest
from proxy.core.sse import dump_json
from proxy.core.tools.calls import offered_tools
from proxy.core.tools.hosted import hosted_kind
from proxy.core.tools.schema import format_in_words
from proxy.providers.p5_cursor.images import picture_of

Block = Mapping[str, Any]
Pieces = Iterable[str]

_GAP = "\n\n"
#: Characters of a token, about.
_TOKEN = 4


def render(request: Mapping[str, Any]) -> str:
    """The prompt of a hub request."""
    sections = [_section("system", _system(request)), *_messages(request), _section("tools", _tools(request))]
    return "".join(_joined(sections))


def check_content(request: Mapping[str, Any]) -> None:
    """Raises InvalidRequest for a request without any content: an empty turn is no question."""
    if not any(True for message in _messages(request) for _ in message):
        raise InvalidRequest("`messages`: none of them has any content for this model", param="messages")


def estimate(prompt: str) -> int:
    """The approximate tokens of a prompt."""
    return len(prompt) // _TOKEN


def prompt_tools(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tools that the prompt names: those that the client runs, unless it wants no call. The service itself searches
    and fetches."""
    choice = request.get("tool_choice")
    if isinstance(choice, Mapping) and choice.get("type") == "none":
        return []
    return [tool for tool in offered_tools(request) if tool["name"] and hosted_kind(tool) is None]


# -- sections


def _section(name: str, body: Pieces) -> Iterator[str]:
    """A body between tags; nothing without a body."""
    pieces = iter(body)
    for first in pieces:
        yield f"<{name}>\n{first}"
        yield from pieces
        yield f"\n</{name}>"


def _joined(renderings: Iterable[Pieces], gap: str = _GAP) -> Iterator[str]:
    between = ""
    for rendering in renderings:
        pieces = iter(rendering)
        for first in pieces:
            yield between + first
            yield from pieces
            between = gap


def _system(request: Mapping[str, Any]) -> Iterator[str]:
    """The system texts without the client's billing text, and the required form of the answer."""
    texts = [text for text in texts_of(request.get("system")) if not text.startswith(BILLING_PREFIX)]
    return _joined(_text(text) for text in (*texts, format_in_words(request)))


def _messages(request: Mapping[str, Any]) -> Iterator[Iterator[str]]:
    for message in messages_of(request):
        yield _section(str(message.get("role")), _blocks(message.get("content")))


def _tools(request: Mapping[str, Any]) -> Iterator[str]:
    return _joined(([dump_json(_declared(tool))] for tool in prompt_tools(request)), "\n")


def _declared(tool: Block) -> dict[str, Any]:
    description, schema = tool.get("description"), tool.get("input_schema")
    return {
        "name": tool["name"],
        "description": description if isinstance(description, str) else "",
        "input_schema": schema if isinstance(schema, dict) else {},
    }


# -- blocks


def _blocks(content: Any) -> Iterator[str]:
    return _joined(_block(block) for block in blocks_of(content) if isinstance(block, Mapping))


def _block(block: Block) -> Pieces:
    return _BLOCKS.get(_kind(block), _unknown)(block)


def _kind(block: Any) -> str:
    kind = block.get("type") if isinstance(block, Mapping) else None
    return kind if isinstance(kind, str) else "unknown"


def _text(text: Any) -> Pieces:
    return [text] if isinstance(text, str) and text else ()


def _unknown(block: Block) -> Pieces:
    return _text(block.get("text"))


def _thinking(block: Block) -> Pieces:
    return _section("thinking", _text(block.get("thinking")))


def _image(block: Block) -> Pieces:
    return [picture_of(block).words]


def _document(block: Block) -> Pieces:
    """The readable parts of a document, or a note that it was left out."""
    readable = document_blocks(block)
    return _joined(map(_block, readable)) if readable else [omitted(block)]


def _call(block: Block) -> Pieces:
    kind, value = block["type"], block.get("input")
    head = f'<{kind} id="{_attribute(block, "id")}" name="{_attribute(block, "name")}">'
    return [f"{head}\n{dump_json({} if value is None else value)}\n</{kind}>"]


def _search_result(block: Block) -> Pieces:
    kind = block["type"]
    head = f'<{kind} tool_use_id="{_attribute(block, "tool_use_id")}">'
    return [f"{head}\n{dump_json(block.get('content'))}\n</{kind}>"]


def _result(block: Block) -> Iterator[str]:
    yield f'<tool_result tool_use_id="{_attribute(block, "tool_use_id")}"'
    yield ' is_error="true">\n' if block.get("is_error") else ">\n"
    yield from _joined(map(_child, blocks_of(block.get("content"))))
    yield "\n</tool_result>"


def _child(block: Any) -> Pieces:
    """A block of a result, where fewer types are known."""
    kind = _kind(block)
    return _CHILDREN[kind](block) if kind in _CHILDREN else [f"[unsupported tool result block: {kind}]"]


def _attribute(block: Block, name: str) -> str:
    value = block.get(name)
    return value if isinstance(value, str) else ""


_CHILDREN: Mapping[str, Callable[[Block], Pieces]] = {
    "text": _unknown,
    "thinking": _thinking,
    "image": _image,
    "tool_use": _call,
    "tool_result": _result,
}
_BLOCKS: Mapping[str, Callable[[Block], Pieces]] = {
    **_CHILDREN,
    "document": _document,
    "search_result": _document,
    "server_tool_use": _call,
    "web_search_tool_result": _search_result,
    **dict.fromkeys(TOOL_CHANGES, lambda block: [change_text(block)]),
}
