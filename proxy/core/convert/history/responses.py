"""Converts a Messages conversation to the `input` of a Responses body.

Upstreams agree on the items but not on details, such as the role of system messages, pictures, and the order of calls
and results. They refuse what they do not like. Those details are data: see `responses_dialect.py`.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Mapping
from typing import Any

from proxy.core.content import (
    TOOL_CHANGES,
    blocks_of,
    change_text,
    document_blocks,
    omitted,
    pdf_data,
    reference_text,
    texts_of,
)
from proxy.core.convert.history.responses_dialect import (
    ImageConverter,
    Item,
    ResponsesDialect,
    input_text,
    message_item,
)
from proxy.core.convert.responses.signatures import decode_signature
from proxy.core.invalid import InvalidRequest, cut, shown
from proxy.core.search.history import RESULTS, search_text
from proxy.core.sse import dump_sorted_json
from proxy.core.tools.calls import NO_RESULT, WaitingCalls, arguments_text, short_id, short_name, unique_id, upstream_id
from proxy.core.tools.read_tool import NAME as READ
from proxy.core.tools.read_tool import result_notes

#: Blocks of a user with something to see, hear or read.
_MEDIA = frozenset({"video", "audio", "file", "container_upload"})
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_DOCUMENTS = frozenset({"document", "search_result"})
#: Blocks that a client sends back unchanged, and that mean nothing to this upstream.
_SILENT = _THOUGHTS | RESULTS.keys() | {"server_tool_use"}


def _kind_of(block: Any) -> str:
    """The type of a block, "" if it has none."""
    kind = block.get("type") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else ""


class ResponsesHistory:
    """Builds `input` from the messages, in order.

    left_out  types of the blocks that were left out, known once it is built
    """

    def __init__(self, dialect: ResponsesDialect, images: ImageConverter) -> None:
        self.left_out: dict[str, None] = {}
        self._dialect = dialect
        self._images = images
        self._items: list[Item] = []
        #: messages of the turn that come after its results
        self._after: list[Item] = [] if dialect.ordered else self._items
        self._pending: list[Item] = []  # content parts of the message item under way
        self._role = "user"
        self._calls: dict[str, Mapping[str, Any]] = {}  # tool_use blocks so far, by the client's id
        self._waiting = WaitingCalls()
        self._turn = 0  # where the newest assistant turn begins, if the dialect is `ordered`
        self._sent: set[str] = set()  # ids that calls were sent with
        self._counts: dict[str, int] = {}  # id -> how often it was used

    def build(self, messages: list[Any]) -> list[Item]:
        """The items of all messages. Raises InvalidRequest."""
        for index, message in enumerate(messages):
            role, content = self._checked(message, index)
            if role == "assistant":
                self._end_turn()
                self._role = role
                self._assistant(blocks_of(content))
            elif role == "user":
                self._role = role
                self._user(blocks_of(content))
            else:
                self._role = self._dialect.system
                self._system(content)
            self._flush()
        self._end_turn()
        if not self._items and messages:
            return [message_item("user", [input_text("")])]  # without input it would be refused
        return self._with_missing_results()

    def _checked(self, message: Mapping[str, Any], index: int) -> tuple[str, Any]:
        """The role and the content. Raises InvalidRequest."""
        role, content = message["role"], message["content"]
        if self._dialect.odd == "noted":
            return role if role in ("system", "user") else "assistant", content
        if role not in ("system", "developer", "user", "assistant"):
            raise InvalidRequest(
                f"`messages[{index}]` has the unknown role {shown(role)}", param=f"messages[{index}].role"
            )
        if content is not None and not isinstance(content, str | list):
            where = f"messages[{index}].content"
            raise InvalidRequest(f"`{where}` must be a string or a list of blocks", param=where)
        return role, content

    def _flush(self) -> None:
        if self._pending:
            place = self._items if self._role == "assistant" else self._after
            place.append(message_item(self._role, self._pending))
            self._pending = []

    def _end_turn(self) -> None:
        """Ends the turn, which is everything between two assistant messages."""
        if self._dialect.ordered:
            self._items += self._after
            self._after = []
            if self._items and _is_answer(self._items[-1]):
                self._turn = len(self._items)

    def _with_missing_results(self) -> list[Item]:
        """The items with results for calls of an interrupted client: the upstream refuses a call without one."""
        missing = self._waiting.unanswered()
        if not missing:
            return self._items
        end = _last_answer(self._items) if self._dialect.ordered else len(self._items)
        items: list[Item] = []
        for position, item in enumerate(self._items):
            items.append(item)
            if position in missing and position < end:
                items.append(_result_item(missing[position], NO_RESULT))
        return items

    def _leave_out(self, block: Any) -> None:
        kind = _kind_of(block)
        if kind not in _SILENT and kind != "text":
            self.left_out[cut(kind) or "unknown"] = None

    # user side

    def _user(self, blocks: list[Any]) -> None:
        alone = len(blocks) == 1 and self._dialect.odd == "noted"
        for block in blocks:
            if not isinstance(block, dict):
                self._leave_out(block)
            elif block.get("type") == "tool_result":
                self._result(block)
            else:
                self._pending += self._user_parts(block, alone=alone)

    def _user_parts(self, block: dict[str, Any], *, alone: bool) -> list[Item]:
        kind = _kind_of(block)
        if kind == "text":
            text = block.get("text")
            text = text if isinstance(text, str) else ""
            return [input_text(text)] if text or alone else []
        if kind == "image":
            return [self._images.in_message(block)]
        if kind in _THOUGHTS:
            return []
        if kind in _DOCUMENTS:
            return self._document(block)
        if kind == "tool_reference":
            return [input_text(reference_text(block))]
        if self._dialect.odd == "noted" or kind in _MEDIA:
            return [input_text(omitted(block))]
        self._leave_out(block)
        return []

    def _document(self, block: dict[str, Any]) -> list[Item]:
        parts, pdf = document_blocks(block), pdf_data(block)
        if parts:
            return [
                self._images.in_message(part) if part["type"] == "image" else input_text(part["text"]) for part in parts
            ]
        if pdf is None or not self._dialect.pdf:
            return [input_text(omitted(block))]
        title = block.get("title")
        name = title if isinstance(title, str) and title else "document.pdf"
        return [{"type": "input_file", "filename": name, "file_data": f"data:application/pdf;base64,{pdf}"}]

    # results

    def _result(self, block: dict[str, Any]) -> None:
        call_id = block.get("tool_use_id")
        call_id = call_id if isinstance(call_id, str) else ""
        parts, after = self._result_parts(block)
        if block.get("is_error") is True and self._dialect.error_mark:
            parts.insert(0, input_text(self._dialect.error_mark))
        if self._dialect.offsets is not None:
            parts += self._notes(call_id, parts, is_error=block.get("is_error") is True)
        sent_as = self._waiting.answer(call_id)
        if sent_as is None:  # no such call, or already answered: the upstream would refuse the result
            self._orphan(call_id, parts + after)
            return
        if not self._dialect.ordered:
            self._flush()
        self._items.append(_result_item(sent_as, self._output(parts)))
        if after:
            self._items.append(message_item("user", after))

    def _output(self, parts: list[Item]) -> str | list[Item]:
        if any(part["type"] == "input_image" for part in parts):
            return parts
        texts = (part["text"] for part in parts)
        return "\n".join(texts if self._dialect.lines else itertools.dropwhile(operator.not_, texts))

    def _orphan(self, call_id: str, parts: list[Item]) -> None:
        if self._dialect.odd == "read":
            parts = [part for part in parts if part.get("text") != ""]
            if not parts:
                return
        self._pending.append(input_text(f"[result of an earlier tool call {call_id}]"))
        self._pending += parts

    def _notes(self, call_id: str, parts: list[Item], *, is_error: bool) -> list[Item]:
        offsets, call = self._dialect.offsets, self._calls.get(call_id)
        if offsets is None or call is None or call.get("name") != READ:
            return []
        text = "\n".join(part["text"] for part in parts if part["type"] == "input_text")
        notes = result_notes(call_id, call, text, is_error=is_error, offsets=offsets)
        return [input_text(note) for note in notes]

    def _result_parts(self, block: Mapping[str, Any]) -> tuple[list[Item], list[Item]]:
        """The parts of the output, and those of a message after it."""
        content = block.get("content")
        if content is None or isinstance(content, str):
            return [input_text(content or "")], []
        if not isinstance(content, list):
            return ([] if self._dialect.odd == "noted" else [input_text(dump_sorted_json(content))]), []
        after: list[Item] = []
        return [part for member in content for part in self._member_parts(member, after)], after

    def _member_parts(self, member: Any, after: list[Item]) -> list[Item]:
        """Translates a member of a tool result."""
        kind = _kind_of(member)
        if kind in _DOCUMENTS and (parts := document_blocks(member)):
            return [self._member_part(part, after) for part in parts]
        return [self._member_part(member, after)]

    def _member_part(self, block: Any, after: list[Item]) -> Item:
        kind = _kind_of(block)
        if kind == "text" and isinstance(block.get("text"), str):
            return input_text(block["text"])
        if kind == "image":
            part, picture = self._images.in_result(block)
            after += [picture] if picture else []
            return part
        if kind == "tool_reference":
            return input_text(reference_text(block))
        if self._dialect.odd == "read":
            return input_text(block if isinstance(block, str) else omitted(block))
        return input_text(omitted({"type": kind} if kind else {}))

    # system

    def _system(self, content: Any) -> None:
        if self._dialect.odd == "noted":
            self._pending = [input_text(text) for text in texts_of(content) if text]
        else:
            self._pending = [input_text(text) for block in blocks_of(content) for text in self._in_words(block)]

    def _in_words(self, block: Any) -> list[str]:
        """The texts that replace a block where only text is allowed."""
        kind = _kind_of(block)
        if kind == "text" and isinstance(block.get("text"), str):
            return [block["text"]] if block["text"] else []
        if kind in TOOL_CHANGES:
            return [change_text(block)]
        if kind == "image":
            return [self._images.in_words(block)]
        if kind == "tool_reference":
            return [reference_text(block)]
        if kind in _DOCUMENTS:
            parts = document_blocks(block)
            found = [self._images.in_words(part) if part["type"] == "image" else part["text"] for part in parts]
            return found or [omitted(block)]
        if kind in _MEDIA:
            return [omitted(block)]
        self._leave_out(block)
        return []

    # assistant side

    def _assistant(self, blocks: list[Any]) -> None:
        for block in blocks:
            if not isinstance(block, dict):
                self._leave_out(block)
                continue
            kind = _kind_of(block)
            if kind == "text":
                self._say(block["text"] if isinstance(block.get("text"), str) else "")
            elif kind == "tool_use":
                self._flush()
                self._call(block)
            elif kind == "thinking":
                self._thinking(block)
            elif self._dialect.searches and (kind == "server_tool_use" or kind in RESULTS):
                self._say(search_text(block))
            elif self._dialect.odd == "read":
                for text in self._in_words(block):
                    self._say(text)

    def _say(self, text: str) -> None:
        if text:
            self._pending.append({"type": "output_text", "text": text})

    def _thinking(self, block: dict[str, Any]) -> None:
        known = decode_signature(self._dialect.label, block.get("signature")) if self._dialect.reasoning else None
        if known is None:
            return
        self._flush()
        text = block.get("thinking") if self._dialect.reasoning == "summary" else ""
        summary = [{"type": "summary_text", "text": text}] if isinstance(text, str) and text else []
        self._items.append({"type": "reasoning", "id": known[0], "summary": summary, "encrypted_content": known[1]})

    def _call(self, block: dict[str, Any]) -> None:
        call_id, name, value = block.get("id"), block.get("name"), block.get("input")
        nameless = not isinstance(name, str) or not name
        if not isinstance(call_id, str) or nameless or (self._dialect.ordered and not call_id):
            raise InvalidRequest("a `tool_use` block needs a string `id` and `name`", param="messages")
        sent_as = upstream_id(call_id)
        if self._dialect.ordered:
            sent_as = short_id(unique_id(sent_as, self._sent, self._counts))
        self._calls[call_id] = block
        self._waiting.add(call_id, sent_as, turn=self._turn, place=len(self._items))
        if self._dialect.odd == "read" and value is not None and not isinstance(value, dict):
            value = {"input": value}
        arguments = arguments_text(value)
        self._items.append(
            {"type": "function_call", "call_id": sent_as, "name": short_name(str(name)), "arguments": arguments}
        )


def _is_answer(item: Item) -> bool:
    """Whether an item is not the assistant's."""
    return item["type"] == "function_call_output" or bool(item.get("role", "assistant") != "assistant")


def _last_answer(items: list[Item]) -> int:
    """The position of the last item that is not the assistant's, -1 if there is none."""
    return next((at for at in range(len(items) - 1, -1, -1) if _is_answer(items[at])), -1)


def _result_item(call_id: str, output: str | list[Item]) -> Item:
    return {"type": "function_call_output", "call_id": call_id, "output": output}
