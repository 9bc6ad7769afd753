"""Adapts Messages requests, and the answers, for an upstream that speaks Messages itself.

Third-party servers of this API know the format but not every extra of the official service, and refuse requests with
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from proxy.core.blocks import (
    BLOCKS,
    DELTAS,
    INPUT_DELTA,
    TEXT,
    THINKING,
    TOOL_USE,
    BlockType,
    DeltaType,
    How,
)
from proxy.core.content import BILLING_PREFIX, blocks_of, without_billing
from proxy.core.convert.chat_to_messages import STOP_REASONS
from proxy.core.convert.history.messages import Block, MessagesHistory, mark_last, plainly_marked
from proxy.core.invalid import InvalidRequest
from proxy.core.messages import Event, MessageStream
from proxy.core.reducer import DONE, EOF, AnswerPolicy, BadAnswer
from proxy.core.sse import dump_json
from proxy.core.tokens.usage import count, thinking_tokens, usage_of, with_thinking
from proxy.core.tools.calls import are_readable, function_of, offered_tools, short_name
from proxy.core.tools.read_tool import MAX_ARGUMENTS
from proxy.core.tools.schema import answer_schema, format_in_words
from proxy.core.tools.step_budget import Steps, ToolSteps, ToolWalk

#: Members of a request that are generally available. Others need a beta header, which is not sent, or are meant for
#: the official service alone (`safeguards` describes the client's machine and its user).
MEMBERS = frozenset(
    {
        *("tool_choice", "temperature", "top_p", "top_k", "stop_sequences", "metadata", "thinking"),
        "service_tier",
    }
)
#: Members of `thinking` that are generally available.
_THINKING = ("type", "budget_tokens")


def messages_to_messages(
    request: Mapping[str, Any],
    *,
    model: str,
    max_tokens: int,
    effort: str | None = None,
    images: bool = True,
    schemas: bool = False,
    simplified: list[str] | None = None,
) -> dict[str, Any]:
    """The upstream body. Values that are not understood are passed on for the upstream to judge.

    effort      the request's effort, in the model's words
    images      whether the model takes images
    schemas     whether the upstream can enforce a schema; if not, the prompt describes it
    simplified  gets the names of tools whose schema is too much work to be sent in full

    Raises InvalidRequest for a request without any content, or that only a server tool could serve.
    """
    messages, instructions = MessagesHistory(images=images).build(request.get("messages") or [])
    if not messages:
        raise InvalidRequest("`messages`: none of them has any content for this model", param="messages")
    body = {key: value for key, value in request.items() if key in MEMBERS and value is not None}
    body |= {"model": model, "stream": True, "max_tokens": max_tokens, "messages": messages}
    schema = answer_schema(request) if schemas else None
    form = format_in_words(request) if schema is None else ""
    system = _system(request.get("system"), [*instructions, {"type": "text", "text": form}] if form else instructions)
    if system:
        body["system"] = system
    config: dict[str, Any] = {"effort": effort} if effort else {}
    if schema is not None:
        config["format"] = {"type": "json_schema", "schema": schema}
    if config:
        body["output_config"] = config
    if isinstance(body.get("thinking"), Mapping):
        body["thinking"] = {key: body["thinking"][key] for key in _THINKING if key in body["thinking"]}
    tools = _tools(request, ToolSteps(simplified))
    if tools:
        return body | {"tools": tools} | _choice(request.get("tool_choice"))
    body.pop("tool_choice", None)
    return body


def _system(system: Any, instructions: list[Block]) -> Any:
    """The system prompt without the billing line, followed by the instructions."""
    if isinstance(system, str):
        said = without_billing(system)
        return [{"type": "text", "text": said}, *instructions] if said and instructions else said or instructions
    kept: list[Block] = []
    for block in blocks_of(system):
        text = block.get("text") if isinstance(block, Mapping) else None
        if isinstance(text, str) and text and not text.startswith(BILLING_PREFIX):
            kept.append(plainly_marked({"type": "text", **block}))
        elif isinstance(block, Mapping):
            mark_last(kept, block)
    return kept + instructions


def _tools(request: Mapping[str, Any], steps: ToolSteps) -> list[dict[str, Any]]:
    """The tools, each with its generally available members."""
    tools, given = [tool for tool in offered_tools(request) if tool["name"]], request.get("tools")
    kept: list[dict[str, Any]] = []
    for one in given if isinstance(given, list) else ():
        known = one if isinstance(one, Mapping) else {}
        if len(kept) < len(tools) and known.get("name") == tools[len(kept)]["name"]:
            kept.append(_written(tools[len(kept)], steps))
        else:
            mark_last(kept, known)
    return kept


def _tool(tool: Mapping[str, Any], steps: Steps) -> dict[str, Any]:
    function = function_of(tool, steps)
    schema = function.pop("parameters")
    mark = {"cache_control": tool["cache_control"]} if tool.get("cache_control") else {}
    return plainly_marked({**function, "input_schema": schema, **mark})


_written = ToolWalk(_tool)


def _choice(choice: Any) -> dict[str, Any]:
    """`tool_choice` with the upstream's name of a tool; {} if it names none."""
    name = choice.get("name") if isinstance(choice, Mapping) else None
    return {"tool_choice": {**choice, "name": short_name(name)}} if isinstance(name, str) and name else {}


#: Prefixes of signatures that this proxy, or an earlier one, made for models of other services: plain, and in base64.
_FOREIGN_MARKS = ("model-proxy:", "ccp:", "bW9kZWwtcHJveHk6", "Y2NwO")


def without_foreign_thoughts(body: Mapping[str, Any]) -> dict[str, Any]:
    """The upstream body without thinking blocks that are unsigned or come from another service."""
    messages = []
    for message in body["messages"]:
        content = message["content"]
        if isinstance(content, list) and any(map(_is_foreign, content)):
            content = [block for block in content if not _is_foreign(block)]
        if content != []:
            messages.append({**message, "content": content})
    return {**body, "messages": messages}


def _is_foreign(block: Any) -> bool:
    return (
        isinstance(block, Mapping)
        and block.get("type") == "thinking"
        and (not block.get("signature") or str(block["signature"]).startswith(_FOREIGN_MARKS))
    )


@dataclass(slots=True)
class _OpenBlock:
    """A block that the upstream has begun.

    given      content of its start that is passed on when it stops, unless deltas replace it
    arguments  pieces of the argument text of a tool call
    stopped    whether a tool call was stopped without arguments: what follows shows if the limit came before them
    """

    row: BlockType | None  # None for an unknown type
    given: dict[DeltaType, str] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)
    stopped: bool = False


class MessagesToMessages:
    """The reducer of native streams: passes events on through a MessageStream, which keeps their order legal."""

    def __init__(self, stream: MessageStream, policy: AnswerPolicy) -> None:
        self._stream = stream
        self._policy = policy
        self._open: dict[int, _OpenBlock] = {}
        self._stopped: list[int] = []  # open blocks that were stopped without arguments
        self._arguments_size = 0
        self._called = False  # whether there is a call
        self._broken = False  # whether there is a call whose arguments are no JSON
        self._counts = usage_of(0, 0)
        self._thought: int | None = None
        self._stop: tuple[str, str | None] | None = None
        self.produced = False
        self.finished = False
        self.incomplete = False

    def feed(self, event: Mapping[str, Any]) -> list[Event]:
        """Returns the Messages events that an upstream event, EOF or DONE, causes. Raises BadAnswer."""
        if event is EOF or event is DONE:
            return self.end()
        handler = self._HANDLERS.get(str(event.get("type")))
        if handler is not None and not self.finished:
            try:
                handler(self, event)
            except BadAnswer:
                raise
            except (KeyError, TypeError, ValueError) as error:
                raise BadAnswer(f"the upstream's stream is out of order ({type(error).__name__})") from None
        return self._stream.take()

    def end(self) -> list[Event]:
        """Handles the end of the stream before its last event: that is harmless after a stop reason, if no block is
        unfinished."""
        whole = self._limited or all(opened.stopped for opened in self._open.values())
        return self.feed({"type": "message_stop"}) if self._stop is not None and whole else []

    @property
    def _limited(self) -> bool:
        return self._stop is not None and self._stop[0] in _LIMITS

    def interrupt(self) -> list[Event]:
        """The last events before an error."""
        self._stream.interrupt()
        return self._stream.take()

    def _start(self, event: Mapping[str, Any]) -> None:
        message = event.get("message")
        self._count(message.get("usage") if isinstance(message, Mapping) else None)
        self._stream.start()

    def _count(self, usage: Any) -> None:
        if isinstance(usage, Mapping):
            for key in self._counts:
                self._counts[key] = count(usage.get(key)) or self._counts[key]
            thought = thinking_tokens(usage)
            self._thought = self._thought if thought is None else thought

    def _block_start(self, event: Mapping[str, Any]) -> None:
        index, block = event["index"], event["content_block"]
        if not isinstance(index, int) or not isinstance(block, Mapping) or not isinstance(block.get("type"), str):
            raise BadAnswer("the upstream began a block of no kind")
        self._close_stopped()
        opened = self._open[index] = _OpenBlock(BLOCKS.get(block["type"]))
        if opened.row is None or not opened.row.deltas:
            self.produced = True
            self._stream.open(index, dict(block))
            return
        members = {} if opened.row in (TEXT, THINKING) else dict(block)
        named = self._call(block) if opened.row is TOOL_USE else members
        self._stream.open(index, opened.row.start(**named))
        self._start_content(index, opened.row, block)

    def _call(self, block: Mapping[str, Any]) -> dict[str, Any]:
        """The id and name of a tool call. Raises BadAnswer."""
        name = block.get("name")
        if not isinstance(name, str) or not name:
            raise BadAnswer("the upstream sent a tool call without a name")
        return {"id": self._policy.unique_id(str(block.get("id") or "")), "name": self._policy.name(name)}

    def _start_content(self, index: int, row: BlockType, block: Mapping[str, Any]) -> None:
        """Passes content in the start of a block on as deltas, since many clients read no other content."""
        for delta in row.deltas:
            value = block.get(delta.fills)
            if delta.how is How.COLLECT:
                for entry in value if isinstance(value, list) else ():
                    self._pass(index, delta.of(entry))
            elif value and delta.how is How.APPEND:
                self._pass(index, delta.of(value))
            elif value:
                self._open[index].given[delta] = dump_json(value) if delta.how is How.PARSE else str(value)

    def _block_delta(self, event: Mapping[str, Any]) -> None:
        index, delta = event["index"], event["delta"]
        opened = self._open.get(index)
        has_known = opened is None or (opened.row is not None and opened.row.deltas)
        if has_known and isinstance(delta, Mapping) and delta.get("type") not in DELTAS:
            return  # from a later version of the API
        if opened is None or not isinstance(delta, Mapping):
            raise BadAnswer("the upstream sent a delta of no block")
        self._pass(index, dict(delta))

    def _pass(self, index: int, delta: dict[str, Any]) -> None:
        opened, kind = self._open[index], DELTAS.get(str(delta.get("type")))
        if kind is not None:
            value = delta.get(kind.carries)
            if value is None:
                return
            if not isinstance(value, str if kind.is_text else Mapping):
                raise BadAnswer(f"the upstream sent a {kind.name} of another form")
            if kind.how is How.REPLACE:  # the last one counts
                opened.given[kind] = str(value)
                return
            if value:
                opened.given.pop(kind, None)
        self._tell(index, opened, kind, delta)

    def _tell(self, index: int, opened: _OpenBlock, kind: DeltaType | None, delta: dict[str, Any]) -> None:
        if kind is INPUT_DELTA and opened.row is TOOL_USE:
            self._argument(opened, delta[kind.carries])
        self.produced = True
        self._stream.delta(index, delta)

    def _argument(self, opened: _OpenBlock, text: str) -> None:
        opened.arguments.append(text)
        self._arguments_size += len(text)
        if self._arguments_size > MAX_ARGUMENTS:
            raise BadAnswer(f"the arguments of the tool calls passed {MAX_ARGUMENTS} bytes")

    def _block_stop(self, event: Mapping[str, Any]) -> None:
        index = event["index"]
        opened = self._open[index]
        for delta, value in opened.given.items():
            self._tell(index, opened, delta, delta.of(value))
        if opened.row is TOOL_USE and not "".join(opened.arguments).strip():
            opened.stopped = True
            self._stopped.append(index)
        else:
            self._close(index)

    def _close_stopped(self) -> None:
        stopped, self._stopped = self._stopped, []
        for index in stopped:
            if index in self._open and self._open[index].stopped:
                self._close(index)

    def _close(self, index: int) -> None:
        opened = self._open.pop(index)
        if opened.row is TOOL_USE and not are_readable("".join(opened.arguments)):
            self._broken = True  # the last event has the reason
            return
        self._called = self._called or opened.row is TOOL_USE
        self.produced = True
        self._stream.close(index)

    def _delta(self, event: Mapping[str, Any]) -> None:
        self._count(event.get("usage"))
        delta = event.get("delta")
        if isinstance(delta, Mapping) and isinstance(delta.get("stop_reason"), str):
            sequence = delta.get("stop_sequence")
            reason = delta["stop_reason"]
            reason = reason if reason in _STOPS else STOP_REASONS.get(reason, "end_turn")
            self._stop = (reason, sequence if isinstance(sequence, str) else None)

    def _finish(self, _event: Mapping[str, Any]) -> None:
        if not self._limited:
            self._close_stopped()
        if any(not self._limited or opened.row is not TOOL_USE for opened in self._open.values()):
            raise BadAnswer("the upstream ended its answer inside a block")
        if self._broken and not self._limited:
            raise BadAnswer("the upstream sent tool arguments that are not JSON")
        for index, opened in list(self._open.items()):  # a call that the limit cut stays open
            arguments = "".join(opened.arguments)
            if not arguments.strip():
                self._pass(index, INPUT_DELTA.of("{"))  # nothing would be a call without arguments
            elif are_readable(arguments):
                self._stream.close(index)
        self.finished = True
        reason, sequence = self._stop or ("end_turn", None)
        # calls and the stop reason must agree, since clients act on the stop reason
        words = {"end_turn": "tool_use"} if self._called else {"tool_use": "end_turn"}
        usage = with_thinking({**self._counts}, self._thought)
        self._stream.finish(words.get(reason, reason), usage, stop_sequence=sequence)

    _HANDLERS = {  # noqa: RUF012 - a table, never changed
        "message_start": _start,
        "content_block_start": _block_start,
        "content_block_delta": _block_delta,
        "content_block_stop": _block_stop,
        "message_delta": _delta,
        "message_stop": _finish,
    }


#: Stop reasons that may cut a call short.
_LIMITS = ("max_tokens", "model_context_window_exceeded")
#: Stop reasons that clients know; any other is read as that of a chat upstream.
_STOPS = frozenset(
    {
        "end_turn",
        "max_tokens",
        "stop_sequence",
        "tool_use",
        "pause_turn",
        "refusal",
        "model_context_window_exceeded",
    }
)
