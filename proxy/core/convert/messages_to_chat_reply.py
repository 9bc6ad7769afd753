"""Converts Messages events to the answer of `POST /v1/chat/completions`: chunks, or one completion."""

from __future__ import annotations

from typing import Any

from proxy.core.convert.openai_replies import REFUSAL, AnswerReader, ReplyBlock
from proxy.core.ingress import Ingress
from proxy.core.messages import MAX_REPLY_CHARS


class ChatReply(AnswerReader):
    """The builder. `feed` returns `chat.completion.chunk` objects; the writer adds `[DONE]` once it is `finished`.

    completion_id  the whole id, `chatcmpl-…`
    created        Unix seconds
    model          the name that the client is shown
    """

    def __init__(
        self, ingress: Ingress, *, completion_id: str, created: int, model: str, max_chars: int = MAX_REPLY_CHARS
    ) -> None:
        super().__init__(max_chars)
        self._include_usage = ingress.include_usage
        self._functions = ingress.functions
        self._head = {"id": completion_id, "object": "chat.completion.chunk", "created": created, "model": model}
        self._calls = 0
        self._annotations: list[dict[str, Any]] = []
        self._text_size = 0  # characters of the texts before the open block
        self._newest: dict[str, ReplyBlock] = {}  # the newest text of each form

    @property
    def completion(self) -> dict[str, Any]:
        """The `chat.completion` object of a finished answer."""
        choice = {"index": 0, "message": self._message(), "finish_reason": self._reason, "logprobs": None}
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": self._usage()}

    @property
    def _reason(self) -> str:
        return FUNCTION_CALL if self._functions and self._finish == "tool_calls" else self._finish

    def _message(self) -> dict[str, Any]:
        content, refusal, reasoning = map(self._joined, ("text", REFUSAL, "thinking"))
        message: dict[str, Any] = {"role": "assistant", "content": content or None, "refusal": refusal or None}
        calls = [_call(block) for block in self._blocks if block.kind == "tool_use"]
        made = {FUNCTION_CALL: calls[0]["function"]} if calls and self._functions else {"tool_calls": calls}
        extras = {"reasoning_content": reasoning, **made, "annotations": self._annotations}
        return message | {name: value for name, value in extras.items() if value}

    def _joined(self, form: str) -> str:
        return "".join(block.lead + block.text for block in self._blocks if block.form == form)

    def _usage(self) -> dict[str, Any]:
        totals = self._totals()
        usage: dict[str, Any] = {
            "prompt_tokens": totals.input,
            "completion_tokens": totals.output,
            "total_tokens": totals.input + totals.output,
            "prompt_tokens_details": {"cached_tokens": totals.cached},
        }
        if totals.reasoning is not None:
            usage["completion_tokens_details"] = {"reasoning_tokens": totals.reasoning}
        return usage

    # -- chunks

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        chunk: dict[str, Any] = {**self._head, "choices": [choice]}
        if self._include_usage:
            chunk["usage"] = None
        self._out.append(chunk)

    def _begin(self) -> None:
        self._chunk({"role": "assistant", "content": ""})

    def _opened(self, block: ReplyBlock) -> None:
        """Shows a call. Role, id, type and name are sent once, since the SDK concatenates repeated ones."""
        if block.kind != "tool_use":
            return
        if self._functions and not self._calls:
            block.where, self._calls = _SEEN, 1
            self._chunk({FUNCTION_CALL: _call(block)["function"]})
        elif not self._functions:
            block.where, self._calls = {"index": self._calls}, self._calls + 1
            self._chunk({"tool_calls": [{**block.where, **_call(block)}]})

    def _said(self, block: ReplyBlock, text: str) -> None:
        member = _MEMBERS.get(block.form)
        if member is not None:
            if not block.where:
                text = self._begin_text(block, text)
            self._chunk({member: text})
        elif block.kind == "tool_use" and block.where:  # of `function_call`s only the first has a place
            function = {"arguments": text}
            self._chunk(
                {FUNCTION_CALL: function}
                if self._functions
                else {"tool_calls": [{**block.where, "function": function}]}
            )

    def _begin_text(self, block: ReplyBlock, text: str) -> str:
        """The first piece of a text. A text after another begins a new paragraph, unless the seam shows that it
        continues: services cut a sentence in two where they cite something."""
        block.where = _SEEN
        before, self._newest[block.form] = self._newest.get(block.form), block
        if before is None or before.text[-1:].isspace() or text[0] in _GOES_ON:
            return text
        if before.citations and before.index == block.index - 1:
            return text
        block.lead = _PARAGRAPH
        self._text_size += len(_PARAGRAPH) if block.form == "text" else 0
        return _PARAGRAPH + text

    def _cited(self, block: ReplyBlock, citation: dict[str, Any]) -> None:
        """Shows a citation, with places counted from the beginning of `content`. Without an index in each, a second
        annotation breaks the SDK's stream helper."""
        placed = citation
        if citation["end_index"]:
            places = ("start_index", "end_index")
            placed = {**citation, **{name: citation[name] + self._text_size for name in places}}
        annotation = {"type": "url_citation", "url_citation": placed}
        self._chunk({"annotations": [{"index": len(self._annotations), **annotation}]})
        self._annotations.append(annotation)

    def _closed(self, block: ReplyBlock) -> None:
        if block.form == "text":
            self._text_size += len(block.text)

    def _found(self, block: ReplyBlock) -> None:
        """Does nothing: only the citations of a search are shown."""

    def _ended(self) -> None:
        self._chunk({}, self._reason)
        if self._include_usage:
            self._out.append({**self._head, "choices": [], "usage": self._usage()})


#: The member with the call, and the finish reason, in answers to requests with `functions`.
FUNCTION_CALL = "function_call"
_PARAGRAPH = "\n\n"
#: Characters that do not begin a new paragraph.
_GOES_ON = frozenset(" \t\r\n,.;:!?)]}")
#: form -> the member of a delta that carries its text.
_MEMBERS = {"text": "content", REFUSAL: "refusal", "thinking": "reasoning_content"}
#: The `where` of texts, which have no names on this wire.
_SEEN = {"index": 0}


def _call(block: ReplyBlock) -> dict[str, Any]:
    return {"id": block.call_id, "type": "function", "function": {"name": block.name, "arguments": block.text}}
