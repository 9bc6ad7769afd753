"""Reduces chat-completion chunks to Messages events, for every chat upstream.

Chunks have no type and differ only by their members, and upstreams are careless with tool calls (see `chat_calls`).
What cannot be read without guessing is a BadAnswer.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

from proxy.core.blocks import (
    INPUT_DELTA,
    REFUSAL,
    SIGNATURE_DELTA,
    TEXT,
    TEXT_DELTA,
    THINKING,
    TOOL_USE,
    BlockType,
)
from proxy.core.convert.chat_calls import ToolCall, ToolCallFragment, ToolCalls, fragments_of
from proxy.core.messages import MAX_HELD_BYTES, Event, MessageStream
from proxy.core.reducer import DONE, EOF, AnswerPolicy, BadAnswer, CutAnswer
from proxy.core.tokens.usage import Usage, count, detail, reported_count, usage_of, with_thinking
from proxy.core.tools.calls import ArgumentStream, are_readable

#: upstream word -> stop reason; any other counts as `stop`.
STOP_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}
#: Stop reasons that may cut a call short.
_CUTTING = ("max_tokens", "refusal")


def chunk_error(chunk: Mapping[str, Any]) -> str | None:
    """The message of a chunk that is an error, else None.

    >>> chunk_error({"error": {"message": "overloaded"}}), chunk_error({"choices": [], "error": None})
    ('overloaded', None)
    """
    error = chunk.get("error")
    if not error:
        return None
    message = error.get("message") if isinstance(error, Mapping) else error
    return message if isinstance(message, str) and message else "the upstream reported an error"


class ChatToMessages:
    """The reducer. `feed` takes one chunk and returns the Messages events it causes; `end` handles the end of the
    stream.

    mark    first part of the signature of thinking blocks; chat upstreams have nothing to carry in it
    own_id  makes the id of a call from its number, for upstreams whose ids repeat; None keeps theirs
    """

    def __init__(
        self,
        stream: MessageStream,
        policy: AnswerPolicy,
        *,
        mark: str,
        own_id: Callable[[int], str] | None = None,
    ) -> None:
        self._stream = stream
        self._policy = policy
        self._mark = mark
        self._own_id = own_id
        self._blocks = 0  # number of opened blocks: the index of the next one, and its key
        self._open: tuple[BlockType, int] | None = None  # the open thinking or text block, and its key
        self._held: list[str] | None = None  # the open text of a structured answer, which is rewritten as a whole
        self._held_size = 0
        self._calls = ToolCalls(policy.request)
        self._refusal = REFUSAL if policy.converted else TEXT
        self._refused = False
        self._finish: str | None = None
        self._usage: Mapping[str, Any] | None = None
        self.produced = False
        self.finished = False
        self.incomplete = False
        self.usage: dict[str, Any] = {}

    # -- entry points

    def feed(self, chunk: Mapping[str, Any]) -> list[Event]:
        """Returns the Messages events of one chunk, DONE or EOF. At EOF an answer with a finish reason is complete.
        Raises BadAnswer, also for a chunk that is an error."""
        if chunk is DONE:
            return self.end(done=True)
        if chunk is EOF:
            return self.end(done=False) if self.has_reason else []
        if not self.finished:
            if chunk.get("error") and (error := chunk_error(chunk)):
                raise BadAnswer(error)
            if not self._stream.started:
                self._stream.start()
            if usage := chunk.get("usage"):
                self._note_usage(usage)
            choices = chunk.get("choices")
            if type(choices) is list and len(choices) == 1 and type(choices[0]) is dict:  # as nearly all are
                self._choice(choices[0])
            else:
                for choice in _choices(chunk):
                    self._choice(choice)
        return self._stream.take()

    def end(self, *, done: bool) -> list[Event]:
        """Handles the end of the stream. Raises BadAnswer, and CutAnswer if the answer is incomplete.

        done  whether the upstream marked the end
        """
        if not self.finished:
            if self._finish is None and not done:
                raise CutAnswer("the upstream cut the answer: it ended without a finish reason")
            self._complete()
        return self._stream.take()

    def interrupt(self) -> list[Event]:
        """The last events before an error."""
        try:
            self._close_block()
        except BadAnswer:
            pass  # after a call that never ended, so the client would not see it
        self._stream.interrupt()
        return self._stream.take()

    @property
    def has_reason(self) -> bool:
        """Whether there was a finish reason: then the answer is complete."""
        return self._finish is not None

    # -- chunks

    def _note_usage(self, usage: Any) -> None:
        if type(usage) is dict:
            self._usage = usage

    def _choice(self, choice: Mapping[str, Any]) -> None:
        if usage := choice.get("usage"):
            self._note_usage(usage)
        delta = choice.get("delta")
        if type(delta) is dict:
            thought = delta.get("reasoning_content") or delta.get("reasoning")
            if thought and type(thought) is str:
                self._say(THINKING, thought)
            if delta.get("content") and (text := _said(delta, "content")):
                self._say(TEXT, text)
            if delta.get("refusal") and (refusal := _said(delta, "refusal")):
                self._refused = True
                self._say(self._refusal, refusal)
            if calls := delta.get("tool_calls"):
                for fragment in fragments_of(calls):
                    self._fragment(fragment)
        elif delta:
            raise BadAnswer("the upstream sent a `delta` that is no object")
        reason = choice.get("finish_reason")
        if reason and type(reason) is str:
            if self._finish not in (None, reason):
                raise BadAnswer(f"the upstream ended the answer twice: {self._finish}, then {reason}")
            self._finish = reason

    def _say(self, kind: BlockType, text: str) -> None:
        self.produced = True
        if self._open is None or self._open[0] is not kind:
            self._close_block()
            self._close_whole()  # the text waits after calls that may still become complete
            self._open = (kind, self._open_block(kind.start()))
            self._held = [] if kind is TEXT and self._policy.restore is not None else None
            self._held_size = 0
        if self._held is None:
            self._stream.delta(self._open[1], kind.deltas[0].of(text))
            return
        self._held.append(text)
        self._held_size += len(text)
        if self._held_size > MAX_HELD_BYTES:
            raise BadAnswer(f"a structured answer passed {MAX_HELD_BYTES} bytes")

    def _open_block(self, block: dict[str, Any]) -> int:
        """Opens a block after all others. Its key is its index."""
        key, self._blocks = self._blocks, self._blocks + 1
        self._stream.open(key, block)
        return key

    def _close_block(self) -> None:
        if self._open is None:
            return
        (kind, key), self._open = self._open, None
        if kind is THINKING:
            self._stream.delta(key, SIGNATURE_DELTA.of(self._signature(key)))
        elif self._held is not None and self._policy.restore is not None:
            text, self._held = self._policy.restore("".join(self._held)), None
            self._stream.delta(key, TEXT_DELTA.of(text))
        self._stream.close(key)

    def _signature(self, index: int) -> str:
        """A stable signature without content, since clients want one."""
        text = f"{self._mark}:{self._stream.message_id}:{index}"
        return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()

    # -- tool calls

    def _fragment(self, fragment: ToolCallFragment) -> None:
        call = self._calls.find(fragment)
        if call is None:
            self._close_block()
            self._close_whole()
            call = self._calls.begin(fragment)
        elif call.repeated(fragment):
            return
        if call.done:
            if fragment.text.strip():
                raise BadAnswer(f"the upstream sent more arguments for tool {call.name} after they were complete")
            return
        self._close_block()
        call.label(fragment)
        if fragment.text:
            self.produced = True
            self._calls.append(call, fragment.text)
        self._advance()

    def _advance(self) -> None:
        """Passes on the first incomplete call as far as it is known; later ones wait for it."""
        call = next((call for call in self._calls if not call.done), None)
        if call is None:
            return
        if call.filter is not None or self._calls.can_be_shown(call, own_ids=self._own_id is not None):
            self._pass(call)

    def _pass(self, call: ToolCall) -> None:
        """Opens the block if it is not open, and sends the arguments so far."""
        if call.filter is None:
            self.produced = True
            name = self._policy.name(call.name)
            wanted = self._own_id(call.number) if self._own_id is not None else call.call_id
            call_id = self._policy.unique_id(wanted or f"call_{self._stream.message_id}_{call.number}")
            call.filter = ArgumentStream(self._policy.optional(name))
            call.key = self._open_block(TOOL_USE.start(id=call_id, name=name))
        if not call.blank:
            for text in call.text[call.passed :]:
                self._send(call, call.filter.feed(text))
            call.passed = len(call.text)

    def _send(self, call: ToolCall, text: str) -> None:
        if text:
            self._stream.delta(call.key, INPUT_DELTA.of(text))

    def _close_whole(self) -> None:
        """Closes the first calls that are certainly complete. One without arguments may still get some."""
        for call in self._calls:
            if not call.done:
                if not call.whole or not call.name:
                    return
                self._close(call)

    def _close(self, call: ToolCall) -> None:
        if not call.name:
            raise BadAnswer("the upstream sent a tool call without a name")
        if not call.whole and not are_readable("".join(call.text)):
            raise BadAnswer(f"the upstream sent arguments of tool {call.name} that are not JSON")
        self._pass(call)
        if call.filter is not None:
            self._send(call, call.filter.end())
        self._stream.close(call.key)
        call.done = True

    # -- the end

    def _complete(self) -> None:
        self._close_block()
        reason = STOP_REASONS.get(self._finish or "stop", "end_turn")
        for call in self._calls:
            if call.done:
                continue
            if reason in _CUTTING and self._is_cut(call):
                self._leave_out(call, reason)
            else:
                self._close(call)
        if reason in ("end_turn", "tool_use"):  # some upstreams say `stop` after calls, or `tool_calls` without any
            reason = "tool_use" if any(call.done for call in self._calls) else "end_turn"
            reason = "refusal" if self._refused and self._refusal is TEXT else reason
        self.usage = chat_usage(self._usage)
        self.finished = True
        self._stream.finish(reason, self.usage)

    def _is_cut(self, call: ToolCall) -> bool:
        """Whether a call was cut. The last call without arguments may have been cut before them."""
        return not call.name or not (call.whole or (call.blank and not self._calls.is_newest(call)))

    def _leave_out(self, call: ToolCall, reason: str) -> None:
        """Leaves out a cut call. One that the client has seen stays open after the token limit; after anything else the
        answer is broken. Raises BadAnswer."""
        if call.filter is not None and reason != "max_tokens":
            raise BadAnswer(f"the answer ended ({reason}) inside the arguments of tool {call.name}")
        call.done = True


_ODD_CHOICES = "the upstream sent `choices` that are not a list of objects"
#: The index of the first answer, which some upstreams leave out.
_FIRST = (0, None)


def _choices(chunk: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The choices of the first answer; one upstream puts content and finish reason into two entries. Raises BadAnswer,
    since an unreadable choice would leave a gap."""
    choices = chunk.get("choices") or []
    if type(choices) is not list:
        raise BadAnswer(_ODD_CHOICES)
    for choice in choices:
        if type(choice) is not dict:
            raise BadAnswer(_ODD_CHOICES)
    return [choice for choice in choices if choice.get("index") in _FIRST]


def _said(delta: Mapping[str, Any], member: str) -> str:
    """The text of a member, "" if it is missing. Raises BadAnswer."""
    text = delta.get(member) or ""
    if type(text) is not str:
        raise BadAnswer(f"the upstream sent a `{member}` that is no text")
    return text


def chat_usage(usage: Any) -> Usage:
    """Messages usage from `usage` of a chat-completions stream. Cached tokens and reasoning are in the details, or next
    to the totals."""
    usage = usage if isinstance(usage, Mapping) else {}
    details = usage.get("prompt_tokens_details")
    details = details if isinstance(details, Mapping) else {}
    cached = count(details.get("cached_tokens")) or count(usage.get("cached_tokens"))
    fresh = max(0, count(usage.get("prompt_tokens")) - cached)
    thought = detail(usage, "completion_tokens_details", "reasoning_tokens")
    thought = reported_count(usage.get("reasoning_tokens")) if thought is None else thought
    return with_thinking(usage_of(fresh, count(usage.get("completion_tokens")), cache_read=cached), thought)
