"""A request as an upstream's cache sees it: its blocks from the front, each as a digest and a weight.

The order is that of a prompt: tools, then system texts, then messages. Left out is what clients change with every
request and no model reads: cache marks, the client's billing line, ids of items.
"""

from __future__ import annotations

import marshal
from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from proxy.core.content import BILLING_PREFIX, blocks_of, without_billing

#: Blocks with a digest of their own; after them CHUNK blocks share one, up to MAX_DIGESTS in all.
MAX_SINGLE = 3072
CHUNK = 64
MAX_DIGESTS = 4096
#: Number and length of tool names that are kept, to name removed tools in a reason.
MAX_NAMES = 512
MAX_NAME_CHARS = 80
#: Weight of a picture in characters of text, however long its data are: about 1,500 tokens.
PICTURE_WEIGHT = 6_000
#: Longer data of a picture or a file are identified by length and samples: the middle of a picture is never edited
#: alone.
MAX_DATA_CHARS = 65_536
_SAMPLES = 4_096


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The blocks of a request, as three arrays of one length in the order of the prompt.

    digests   the digest of each block
    weights   its size in characters
    places    the number of its tool, system text or message, from 0
    tools, system  number of blocks that are tools, and of those after them that are system texts
    names     of the tools, in order
    messages  number of messages
    total     the sum of the weights
    """

    digests: array[int]
    weights: array[int]
    places: array[int]
    tools: int
    system: int
    names: tuple[str, ...]
    messages: int
    total: int

    @property
    def head(self) -> int:
        """Number of blocks before the conversation."""
        return self.tools + self.system


def of_messages(request: Mapping[str, Any]) -> Fingerprint:
    """The fingerprint of a hub request."""
    messages = request.get("messages")
    messages = messages if isinstance(messages, list) else []
    system = request.get("system")
    texts = blocks_of(without_billing(system) if isinstance(system, str) else system)
    return _fingerprint(request, texts, messages, _message)


def of_responses(body: Mapping[str, Any]) -> Fingerprint:
    """The fingerprint of a body of the Responses API."""
    given, instructions = body.get("input"), body.get("instructions")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    return _fingerprint(body, blocks_of(instructions), items if isinstance(items, list) else [], _item)


#: A block: its digest, its weight, its place.
_Found = tuple[int, int, int]


def _fingerprint(
    request: Mapping[str, Any], texts: Iterable[Any], messages: list[Any], role_of: Callable[[Any], tuple[str, Any]]
) -> Fingerprint:
    tools = request.get("tools")
    tools = tools if isinstance(tools, list) else []
    kept = [text for text in texts if not _is_billing(text)]
    found = [(*_whole("tool", tool), place) for place, tool in enumerate(tools)]
    found += [(*_block("system", text), place) for place, text in enumerate(kept)]
    for place, message in enumerate(messages):
        role, content = role_of(message)
        if type(content) is str:
            found.append((hash((role, content)), len(content), place))
        else:
            found += [(*_block(role, block), place) for block in content]
    if len(found) > MAX_SINGLE:
        found = _with_chunks(found)
    digests, weights, places = zip(*found, strict=True) if found else ((), (), ())
    return Fingerprint(
        array("q", digests),
        array("Q", weights),
        array("I", places),
        tools=min(len(tools), len(found)),
        system=max(0, min(len(kept), len(found) - len(tools))),
        names=tuple(map(_name, tools[:MAX_NAMES])),
        messages=len(messages),
        total=sum(weights),
    )


def _with_chunks(found: list[_Found]) -> list[_Found]:
    """The blocks, with those after the first MAX_SINGLE in chunks, the last of which takes all that remain."""
    kept = found[:MAX_SINGLE]
    while len(kept) < MAX_DIGESTS - 1 and MAX_SINGLE + (len(kept) - MAX_SINGLE) * CHUNK < len(found):
        start = MAX_SINGLE + (len(kept) - MAX_SINGLE) * CHUNK
        kept.append(_one_of(found[start : start + CHUNK]))
    rest = found[MAX_SINGLE + (len(kept) - MAX_SINGLE) * CHUNK :]
    return [*kept, _one_of(rest)] if rest else kept


def _one_of(chunk: list[_Found]) -> _Found:
    return hash(tuple(digest for digest, _, _ in chunk)), sum(weight for _, weight, _ in chunk), chunk[0][2]


# -- messages: (role, content)


def _message(message: Any) -> tuple[str, Any]:
    """Role and content of a hub message."""
    content = message.get("content")
    return _word(message.get("role")), content if type(content) in (str, list) else ()


def _item(item: Any) -> tuple[str, Any]:
    """Role and content of an item of the Responses API, where calls and results are items like messages."""
    if type(item) is dict and "role" in item and type(item.get("content")) in (str, list):
        return _word(item["role"]), item["content"]
    return _ITEM, (item,)


# -- blocks: (digest, weight)


def _block(role: str, block: Any) -> tuple[int, int]:
    kind = block.get("type") if type(block) is dict else None
    if type(kind) is not str:
        return _whole(role, block)
    if kind in _TEXTS and type(text := block.get("text")) is str:
        return hash((role, text)), len(text)
    if kind not in _LARGE:
        return _whole(role, block)
    member, other = _LARGE[kind]
    value, said = block.get(member), (kind, role, _word(block.get(other)))
    if type(value) is dict:
        value = value.get("data")
    if type(value) is str:
        if kind in _RESULTS:
            return hash((said, value)), len(value)
        return hash((said, _sampled(value))), PICTURE_WEIGHT
    if type(value) is list:
        inner = [_block(role, one) for one in value]
        return hash((said, *[one for one, _ in inner])), sum([weight for _, weight in inner])
    return _whole(role, block)


#: The role of an item without one.
_ITEM = "item"
_TEXTS = frozenset({"text", "input_text", "output_text"})
#: Kinds whose content is text, or blocks.
_RESULTS = frozenset({"tool_result", "function_call_output", "custom_tool_call_output"})
#: kind of block or item -> the member that may be long (its content, or the data of a picture or a file), and the other
#: member that a model reads.
_LARGE = {
    "tool_result": ("content", "tool_use_id"),
    "function_call_output": ("output", "call_id"),
    "custom_tool_call_output": ("output", "call_id"),
    "image": ("source", ""),
    "document": ("source", "title"),
    "input_image": ("image_url", ""),
    "input_file": ("file_data", "filename"),
    "image_generation_call": ("result", ""),
}
#: Members of a block, and of an item, that are no part of a prompt or change with every request.
_BLOCK_EXTRAS = frozenset({"cache_control"})
_ITEM_EXTRAS = frozenset({"id", "status"})


def _sampled(data: str) -> int:
    if len(data) <= MAX_DATA_CHARS:
        return hash(data)
    return hash((len(data), data[:_SAMPLES], data[-_SAMPLES:], data[:: len(data) // _SAMPLES]))


def _whole(role: str, value: Any) -> tuple[int, int]:
    """Digest and weight of any JSON value. `marshal` takes a fifth of the time of JSON; its version 2 has no
    references, so equal values have equal bytes."""
    extras = _ITEM_EXTRAS if role is _ITEM else _BLOCK_EXTRAS
    if type(value) is dict and not extras.isdisjoint(value):
        value = {name: member for name, member in value.items() if name not in extras}
    data = marshal.dumps(value, 2)
    return hash((role, data)), len(data)


def _word(value: Any) -> str:
    """A kind or a role, "" for an invalid one, which is refused elsewhere."""
    return value if type(value) is str else ""


def _is_billing(block: Any) -> bool:
    text = block.get("text") if isinstance(block, dict) else None
    return isinstance(text, str) and text.startswith(BILLING_PREFIX)


def _name(tool: Any) -> str:
    """The name of a tool, or its type if it has no name, as hosted ones."""
    found = (tool.get("name") or tool.get("type")) if isinstance(tool, dict) else None
    return found[:MAX_NAME_CHARS] if isinstance(found, str) else "?"
