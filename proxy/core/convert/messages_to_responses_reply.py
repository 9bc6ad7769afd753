"""Converts Messages events to the answer of `POST /v1/responses`: numbered events, the last with the whole response.

A block becomes an item: it is added, its parts come and are done, it is done. Clients are strict about that order, and
Codex keeps only items that are done.
"""

from __future__ import annotations

from typing import Any

from proxy.core.convert.custom_input import CustomInput
from proxy.core.convert.openai_replies import INCOMPLETE_REASONS, REFUSAL, AnswerReader, ReplyBlock
from proxy.core.convert.responses.signatures import is_ours
from proxy.core.ingress import Ingress
from proxy.core.messages import MAX_REPLY_CHARS
from proxy.core.tools.calls import parse_arguments

Item = dict[str, Any]

#: The form of a call of a custom tool, which takes a text.
CUSTOM = "custom"

#: form -> the item's type, the prefix of its id, and the members by which its events name their part of it.
_ITEMS: dict[str, tuple[str, str, dict[str, int]]] = {
    "text": ("message", "msg", {"content_index": 0}),
    REFUSAL: ("message", "msg", {"content_index": 0}),
    "thinking": ("reasoning", "rs", {"summary_index": 0}),
    "tool_use": ("function_call", "fc", {}),
    CUSTOM: ("custom_tool_call", "ctc", {}),
    "server_tool_use": ("web_search_call", "ws", {}),
}
#: Members of the response object for features that these routes do not have, unless they repeat the request.
_FIXED: dict[str, Any] = {
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "instructions": None,
    "max_output_tokens": None,
    "previous_response_id": None,
    "store": False,
    "reasoning": {"effort": None, "summary": None},
    "text": {"format": {"type": "text"}},
    "temperature": None,
    "top_p": None,
    "truncation": "disabled",
    "metadata": {},
    "background": False,
    "user": None,
}


class ResponsesReply(AnswerReader):
    """The builder. All its results are events to be written, in this order, with `sequence_number` 0, 1, 2 …

    response_id  32 hexadecimal digits, also part of the items' ids
    created      Unix seconds
    model        the name that the client is shown
    """

    def __init__(
        self, ingress: Ingress, *, response_id: str, created: int, model: str, max_chars: int = MAX_REPLY_CHARS
    ) -> None:
        super().__init__(max_chars)
        self._id = response_id
        self._namespaces = ingress.namespaces
        self._customs = ingress.customs
        self._carries_reasoning = ingress.encrypted_reasoning
        self._input = CustomInput()  # input of the open call of a custom tool
        self._head = {"id": f"resp_{response_id}", "object": "response", "created_at": created, "model": model}
        self._echo = {**_FIXED, **ingress.echo}
        self._sequence = 0
        self._items = 0
        self._output: list[Item] = []
        self._closing: ReplyBlock | None = None  # closed, but not announced yet
        self._response: dict[str, Any] = {}

    @property
    def response(self) -> dict[str, Any]:
        """The response object of the last event, once `finished`."""
        return self._response

    # -- entry points

    def keepalive(self) -> dict[str, Any]:
        """An event to fill a silence after the first batch: some clients do not count a comment as activity."""
        self._emit("keepalive")
        return self._out.pop()

    def fail(self, code: str, message: str) -> list[dict[str, Any]]:
        """The last events of an answer that failed, with those that `feed` could not return; [] if it has ended
        already. Unfinished items stay open, even if the hub closed them before the failure: only complete ones belong
        to the response."""
        if self.finished:
            return []
        self._begin_once()
        self.finished = True
        self._end("failed", error={"code": code, "message": message})
        return self._take()

    # -- events

    def _emit(self, kind: str, **members: Any) -> None:
        self._out.append({"type": kind, "sequence_number": self._sequence, **members})
        self._sequence += 1

    def _begin(self) -> None:
        response = self._object("in_progress", [])
        self._emit("response.created", response=response)
        self._emit("response.in_progress", response=response)

    def _opened(self, block: ReplyBlock) -> None:
        self._announce()
        if block.name in self._customs and block.kind == "tool_use":
            block.form, self._input = CUSTOM, CustomInput()
        if block.kind in ("tool_use", "server_tool_use"):
            self._add(block)

    def _add(self, block: ReplyBlock) -> None:
        """Adds an item. Texts and thoughts are added with their first piece, since empty ones are no items, except
        encrypted thoughts."""
        _, prefix, part = _ITEMS[block.form]
        place = {"item_id": f"{prefix}_{self._id}_{block.index}", "output_index": self._items}
        block.where = {**place, **part}
        self._items += 1
        self._emit(
            "response.output_item.added", output_index=place["output_index"], item=self._item(block, "in_progress")
        )
        if block.kind == "server_tool_use":
            self._emit("response.web_search_call.in_progress", **place)
            self._emit("response.web_search_call.searching", **place)

    def _add_part(self, block: ReplyBlock) -> None:
        self._add(block)
        if block.form in _PARTS:
            self._emit(f"response.{_PARTS[block.form]}.added", **block.where, part=_part(block))

    def _said(self, block: ReplyBlock, text: str) -> None:
        if not block.where:
            self._add_part(block)
        kind = _DELTAS.get(block.form)
        if kind is not None:
            event = {"type": kind, "sequence_number": self._sequence, **block.where, "delta": text}
            if block.form == "text":
                event["logprobs"] = []
            self._sequence += 1
            self._out.append(event)
        elif block.form == CUSTOM:
            self._say_input(block, self._input.feed(text))

    def _say_input(self, block: ReplyBlock, text: str) -> None:
        if text:
            self._emit("response.custom_tool_call_input.delta", **block.where, delta=text)

    def _cited(self, block: ReplyBlock, citation: dict[str, Any]) -> None:
        if not block.where:
            self._add_part(block)
        place = {**block.where, "annotation_index": len(block.citations)}
        self._emit("response.output_text.annotation.added", **place, annotation=_annotation(citation))

    def _closed(self, block: ReplyBlock) -> None:
        """Handles the end of a block. Calls are announced at once. Only what follows shows whether a text or thought is
        complete, and what a search found."""
        if block.form == CUSTOM:
            block.text, rest = self._input.end(block.text, cut=block.cut)
            self._say_input(block, rest)
        elif not block.where and self._encrypted(block):
            self._add(block)
        if not block.where:
            return
        self._closing = block
        if block.kind == "tool_use":
            self._announce()

    def _encrypted(self, block: ReplyBlock) -> dict[str, str]:
        """The encrypted content of a thought, which the caller sends back to the upstream. Other signatures mean
        nothing."""
        carried = self._carries_reasoning and is_ours(block.signature)
        return {"encrypted_content": block.signature} if carried else {}

    def _found(self, block: ReplyBlock) -> None:
        if self._closing is block:
            self._announce()

    def _announce(self) -> None:
        block, self._closing = self._closing, None
        if block is None:
            return
        if block.kind == "server_tool_use":
            self._emit("response.web_search_call.completed", **block.where)
        elif block.text or block.citations or block.kind == "tool_use":
            kind, member = _DONE[block.form]
            extra: Item = {"logprobs": []} if block.form == "text" else {}
            self._emit(kind, **block.where, **{member: block.text}, **extra)
        if (block.text or block.citations) and block.form in _PARTS:
            self._emit(f"response.{_PARTS[block.form]}.done", **block.where, part=_part(block))
        item = self._item(block, "incomplete" if block.cut else "completed")
        self._emit("response.output_item.done", output_index=block.where["output_index"], item=item)
        self._output.append(item)

    def _ended(self) -> None:
        reason = INCOMPLETE_REASONS.get(self._finish)
        last = self._closing
        if last is not None and last.form in _PARTS:
            last.cut = last.cut or reason is not None  # the text in which it ended is incomplete
        self._announce()
        self._end("incomplete" if reason else "completed", reason=reason)

    def _end(self, status: str, *, reason: str | None = None, error: dict[str, str] | None = None) -> None:
        self._response = self._object(status, self._output)
        self._response["error"] = error
        self._response["incomplete_details"] = {"reason": reason} if reason else None
        self._response["usage"] = None if error else self._usage()
        self._emit(f"response.{status}", response=self._response)

    # -- objects

    def _object(self, status: str, output: list[Item]) -> dict[str, Any]:
        details = {"error": None, "incomplete_details": None, "usage": None}
        return {**self._head, "status": status, "output": output, **details, **self._echo}

    def _usage(self) -> dict[str, Any]:
        totals = self._totals()
        return {
            "input_tokens": totals.input,
            "input_tokens_details": {"cached_tokens": totals.cached, "cache_write_tokens": totals.written},
            "output_tokens": totals.output,
            "output_tokens_details": {"reasoning_tokens": totals.reasoning or 0},  # the SDK needs a number
            "total_tokens": totals.input + totals.output,
        }

    def _item(self, block: ReplyBlock, status: str) -> Item:
        kind = _ITEMS[block.form][0]
        return {"id": block.where["item_id"], "type": kind, "status": status, **_CONTENTS[block.form](self, block)}

    def _message(self, block: ReplyBlock) -> Item:
        parts = [_part(block)] if block.text or block.citations else []
        return {"role": "assistant", "content": parts}

    def _reasoning(self, block: ReplyBlock) -> Item:
        return {"summary": [_part(block)] if block.text else [], **self._encrypted(block)}

    def _call(self, block: ReplyBlock) -> Item:
        """The members of a call. Codex runs a tool of a namespace only if the call names both."""
        found = self._namespaces.get(block.name)
        names = {"namespace": found[0], "name": found[1]} if found else {"name": block.name}
        return {"call_id": block.call_id, **names, _DONE[block.form][1]: block.text}

    def _search(self, block: ReplyBlock) -> Item:
        query = (parse_arguments(block.text) or {}).get("query")
        action: Item = {"type": "search", "query": query if isinstance(query, str) else ""}
        if block.sources:
            action["sources"] = [{"type": "url", "url": url} for url in block.sources]
        return {"action": action}


_CONTENTS = {
    "text": ResponsesReply._message,
    REFUSAL: ResponsesReply._message,
    "thinking": ResponsesReply._reasoning,
    "tool_use": ResponsesReply._call,
    CUSTOM: ResponsesReply._call,
    "server_tool_use": ResponsesReply._search,
}
#: form -> the event with a piece of its text, for texts that are shown as they come.
_DELTAS = {
    "text": "response.output_text.delta",
    REFUSAL: "response.refusal.delta",
    "thinking": "response.reasoning_summary_text.delta",
    "tool_use": "response.function_call_arguments.delta",
}
#: form -> the event with its whole text, and the member that carries it
_DONE = {
    "text": ("response.output_text.done", "text"),
    REFUSAL: ("response.refusal.done", "refusal"),
    "thinking": ("response.reasoning_summary_text.done", "text"),
    "tool_use": ("response.function_call_arguments.done", "arguments"),
    CUSTOM: ("response.custom_tool_call_input.done", "input"),
}
#: form -> the events around the only part of its item
_PARTS = {"text": "content_part", REFUSAL: "content_part", "thinking": "reasoning_summary_part"}


def _annotation(citation: dict[str, Any]) -> dict[str, Any]:
    return {"type": "url_citation", **citation}


def _part(block: ReplyBlock) -> Item:
    if block.form == REFUSAL:
        return {"type": "refusal", "refusal": block.text}
    if block.form == "thinking":
        return {"type": "summary_text", "text": block.text}
    annotations = [_annotation(citation) for citation in block.citations]
    return {"type": "output_text", "text": block.text, "annotations": annotations, "logprobs": []}
