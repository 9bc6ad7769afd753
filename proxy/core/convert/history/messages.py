"""The conversation of a Messages request as a third-party server of this API accepts it.

Such servers know the format and what is generally available. So system messages move into user messages, results come
directly after their calls, and blocks that only the official service knows become text or are left out. All else passes
unchanged, cache breakpoints included; that of a block that is left out moves to the last block that remains.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from proxy.core.content import IMAGE_TYPES, blocks_of, media_type_of, omitted, reference_text, texts_of, without_links
from proxy.core.invalid import InvalidRequest, shown
from proxy.core.search.history import is_search, search_text
from proxy.core.sse import dump_json
from proxy.core.tools.calls import NO_RESULT, OpenCalls

Block = dict[str, Any]

#: Members of a breakpoint (`cache_control`) that need no beta header.
_BREAKPOINT = frozenset({"type", "ttl"})
#: Most breakpoints that the API accepts.
MAX_BREAKPOINTS = 4
#: Blocks that cannot have a breakpoint.
_UNMARKABLE = frozenset({"thinking", "redacted_thinking"})
#: Members of a call that are sent; the official service may add its `caller`.
_CALL = ("type", "id", "name", "input", "cache_control")
#: Further blocks that a tool result may hold.
_IN_RESULTS = frozenset({"document", "search_result"})
#: Blocks that only an assistant message may hold.
_SPOKEN = frozenset({"thinking", "redacted_thinking", "tool_use"})


class MessagesHistory:
    """Builds the messages, in order.

    All messages between two of the assistant, a turn, become one: results first. Neighbours of one role become one
    message. A turn of system text alone waits for the next words of the user.
    """

    def __init__(self, *, images: bool) -> None:
        self._images = images
        self._out: list[dict[str, Any]] = []
        self._spoken: list[Block] = []  # blocks of the assistant message that is being built
        self._calls = OpenCalls()  # calls of that message
        self._results: list[Block] = []  # results of the turn after it
        self._said: list[Block] = []  # other blocks of that turn
        self._plain: list[Block] = []  # texts that were bare strings
        self._moved = 0  # breakpoints that were moved
        self._from_user = False  # whether any of `_said` is the user's

    def build(self, messages: Any) -> tuple[list[dict[str, Any]], list[Block]]:
        """The messages, and the system text that found no place among them. Raises InvalidRequest."""
        for message in messages:
            handler = self._ROLES.get(message["role"])
            if handler is None:
                raise InvalidRequest(f"`messages` has the unknown role {shown(message['role'])}", param="messages")
            handler(self, message["content"])
        self._end_turn(last=True)
        self._flush(self._spoken, "assistant")
        return self._out, self._said

    # turns

    def _end_turn(self, *, last: bool = False) -> None:
        """Writes the assistant message and the turn after it, if there is one; calls of the `last` one are answered."""
        if not (self._from_user or self._results or (last and self._calls.unanswered)):
            return  # stays cheap: there may be thousands of such turns in a row
        content = [*self._results, *map(_no_result, self._calls.unanswered), *self._said]
        self._flush(self._spoken, "assistant")
        self._flush(content, "user")
        self._spoken, self._results, self._said, self._from_user = [], [], [], False
        self._calls, self._plain = OpenCalls(), []

    def _flush(self, blocks: list[Block], role: str) -> None:
        if blocks and self._out and self._out[-1]["role"] == role:  # all between them was left out
            before = self._out[-1]
            before["content"] = blocks_of(before["content"])
            before["content"] += blocks
        elif blocks:
            plain = len(blocks) == 1 and any(blocks[0] is text for text in self._plain)
            self._out.append({"role": role, "content": blocks[0]["text"] if plain else blocks})

    def _mark(self, breakpoint_: Any) -> None:
        """Moves the breakpoint of a block that is left out to the last one that remains."""
        self._moved += isinstance(breakpoint_, Mapping)
        if not isinstance(breakpoint_, Mapping) or self._moved > MAX_BREAKPOINTS:
            return
        before = self._out[-1] if self._out else {}
        for blocks in (self._said, self._results, self._spoken, blocks_of(before.get("content"))):
            at = next((at for at in reversed(range(len(blocks))) if blocks[at].get("type") not in _UNMARKABLE), None)
            if at is not None:
                blocks[at] = {**blocks[at], "cache_control": _breakpoint(breakpoint_)}
                if blocks is not self._said and blocks is not self._results and blocks is not self._spoken:
                    before["content"] = blocks
                return

    def _add(self, to: list[Block], found: list[Block], block: Mapping[str, Any]) -> None:
        """Adds what a block became, and keeps its breakpoint."""
        to += found
        if "cache_control" in block and not (found and found[-1].get("cache_control")):
            self._mark(block["cache_control"])

    def _known(self, content: Any) -> Iterator[Block]:
        """Yields the blocks, with nothing in their breakpoints that needs a beta header."""
        for block in blocks_of(content):
            if isinstance(block, dict):
                known = plainly_marked(block)
                if isinstance(content, str):
                    self._plain.append(known)
                yield known

    # user side

    def _system(self, content: Any) -> None:
        text = "\n".join(text for text in texts_of(content) if text)
        marks = [block["cache_control"] for block in self._known(content) if block.get("cache_control")]
        found = [{"type": "text", "text": text}] if text else []
        self._add(self._said, found, {"cache_control": marks[-1]} if marks else {})

    def _user(self, content: Any) -> None:
        for block in self._known(content):
            kind = block.get("type")
            if kind == "tool_result":
                self._result(block)
            else:
                self._add(self._said, self._part(block), block)
            self._from_user = self._from_user or bool(self._said)

    def _part(self, block: Block) -> list[Block]:
        """Translates a user's block."""
        kind = block.get("type")
        if kind == "text":
            return [block] if isinstance(block.get("text"), str) and block["text"] else []
        if kind in ("image", "video"):
            return [self._media(block)]
        if kind == "tool_reference":
            return [_text(reference_text(block))]
        if not isinstance(kind, str) or kind in _SPOKEN:
            return []
        return [block] if kind in _IN_RESULTS and not _is_uploaded(block.get("source")) else [_text(omitted(block))]

    def _media(self, block: Block) -> Block:
        if not self._images:
            return _text(f"[{block['type']} omitted: model has no {block['type']} input]")
        if block["type"] == "video":
            return block
        source = block.get("source")
        if not isinstance(source, Mapping):
            return _text(omitted(block))
        if source.get("type") == "url":
            return block if isinstance(source.get("url"), str) and source["url"] else _text(omitted(block))
        given = source.get("media_type")
        media_type = media_type_of(given) if isinstance(given, str) else "image/png"
        if media_type not in IMAGE_TYPES or not (isinstance(source.get("data"), str) and source["data"]):
            return _text(omitted(block))
        if media_type == given and source.get("type") == "base64":
            return block
        return {**block, "source": {"type": "base64", "media_type": media_type, "data": source["data"]}}

    def _result(self, block: Block) -> None:
        """Adds the result of an open call; a result without one, or a second one, becomes text of the turn."""
        call_id = block.get("tool_use_id")
        content = self._result_content(block.get("content"))
        sent_as = self._calls.answer(call_id)
        if sent_as is None:
            head = _text(f"[result of an earlier tool call {call_id if isinstance(call_id, str) else ''}]\n")
            self._add(self._said, [head, *(part for part in blocks_of(content) if part.get("text") != "")], block)
            return
        known = {key: value for key, value in block.items() if key != "is_error" or isinstance(value, bool)}
        self._results.append({**known, "tool_use_id": sent_as, "content": content})

    def _result_content(self, content: Any) -> Any:
        """The content of a result: a text, or the blocks that are allowed there."""
        if not isinstance(content, list):
            return content if isinstance(content, str) else "" if content is None else dump_json(content)
        parts: list[Block] = []
        for block in content:
            kind = block.get("type") if isinstance(block, dict) else None
            known = kind in ("text", "image", "video", "tool_reference", *_IN_RESULTS)
            parts += self._part(block) if known else [_text(omitted(block))]
        return parts or ""

    # assistant side

    def _assistant(self, content: Any) -> None:
        self._end_turn()
        for block in self._known(content):
            self._add(self._spoken, self._spoken_part(block), block)

    def _spoken_part(self, block: Block) -> list[Block]:
        """Translates a block of the assistant. Raises InvalidRequest."""
        kind = block.get("type")
        if kind == "tool_use":
            return [self._call(block)]
        if kind == "text":
            return [without_links(block)] if isinstance(block.get("text"), str) and block["text"] else []
        if is_search(block):
            return [_text(search_text(block))]
        if kind == "thinking":
            signed = block if isinstance(block.get("signature"), str) else {**block, "signature": ""}
            return [signed] if isinstance(block.get("thinking"), str) else []
        return [block] if kind == "redacted_thinking" else []

    def _call(self, block: Block) -> Block:
        sent_as, name = self._calls.begin(block)
        given = block.get("input")
        arguments = given if isinstance(given, dict) else {} if given is None else {"input": given}
        known = {key: block[key] for key in _CALL if key in block}
        return {**known, "id": sent_as, "name": name, "input": arguments}

    _ROLES = {"user": _user, "assistant": _assistant, "system": _system, "developer": _system}  # noqa: RUF012


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _no_result(sent_as: str) -> Block:
    return {"type": "tool_result", "tool_use_id": sent_as, "content": NO_RESULT}


def _breakpoint(mark: Mapping[str, Any]) -> dict[str, Any]:
    return {key: mark[key] for key in mark if key in _BREAKPOINT}


def plainly_marked(block: Block) -> Block:
    """The block (or tool) with nothing in its breakpoint that needs a beta header."""
    mark = block.get("cache_control")
    if not isinstance(mark, Mapping) or mark.keys() <= _BREAKPOINT:
        return block
    return {**block, "cache_control": _breakpoint(mark)}


def _is_uploaded(source: Any) -> bool:
    """Whether a source refers to a file that only the official service has."""
    return isinstance(source, Mapping) and source.get("type") == "file"


def mark_last(blocks: list[Block], left_out: Mapping[str, Any]) -> None:
    """Moves the breakpoint of a block (or tool) that is left out to the last of those before it."""
    mark = left_out.get("cache_control")
    if blocks and isinstance(mark, Mapping):
        blocks[-1] = {**blocks[-1], "cache_control": _breakpoint(mark)}
