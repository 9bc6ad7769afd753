"""Messages to an upstream that speaks Messages itself: what has to be mended on the way up, and on the way back.

Third-party servers of this API know the form but not every extra of the official one, and refuse requests that have
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
from proxy.core.content import BILLING_PREFIX, blocks_of, media_type_of, reference_text, texts_of
from proxy.core.convert.chat_to_messages import STOP_REASONS
from proxy.core.messages import Event, MessageStream
from proxy.core.reducer import AnswerPolicy, BadAnswer
from proxy.core.sse import dump_json
from proxy.core.token_usage import count, usage_of
from proxy.core.tools.calls import (
    NO_RESULT,
    are_readable,
    client_tools,
    function_of,
    short_name,
    unique_id,
    upstream_id,
)
from proxy.core.tools.read_tool import MAX_ARGUMENTS
from proxy.core.tools.schema import format_in_words

#: Members that are valid only beside a beta header, which is not sent.
BETA_MEMBERS = ("context_management", "mcp_servers", "container", "thread", "betas")


def messages_to_messages(
    request: Mapping[str, Any], *, model: str, max_tokens: int, effort: str | None = None
) -> dict[str, Any]:
    """The upstream body; what is not understood is passed on for the upstream to judge. `effort` replaces that of the
    request.

    Raises InvalidRequest for a request that only a server tool could serve.
    """
    body = {key: value for key, value in request.items() if key not in BETA_MEMBERS}
    messages, instructions = _messages(request.get("messages") or [])
    body |= {"model": model, "stream": True, "max_tokens": max_tokens, "messages": _answered(_turns(messages))}
    form = format_in_words(request)
    system = _system(request.get("system"), [*instructions, form] if form else instructions)
    if system is not None:
        body["system"] = system
    else:
        body.pop("system", None)
    tools = client_tools(request)
    if tools:
        body["tools"] = [_tool(tool) for tool in tools]
    else:
        body.pop("tools", None)
        body.pop("tool_choice", None)
    body.pop("output_format", None)
    config = _output_config(body.pop("output_config", None), effort)
    return body | _choice(body.get("tool_choice")) | ({"output_config": config} if config else {})


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    function = function_of(tool)
    schema = function.pop("parameters")
    return {**tool, **function, "input_schema": schema}


def _output_config(config: Any, effort: str | None) -> dict[str, Any]:
    """Without the form of the answer, which is told in the system prompt, and with an effort that is known."""
    rest = (
        {key: config[key] for key in config if key not in ("format", "effort")} if isinstance(config, Mapping) else {}
    )
    return {**rest, "effort": effort} if effort else rest


def _choice(choice: Any) -> dict[str, Any]:
    """The choice of a tool with a long name."""
    name = choice.get("name") if isinstance(choice, Mapping) else None
    return {"tool_choice": {**choice, "name": short_name(name)}} if isinstance(name, str) and name else {}


def _system(system: Any, instructions: list[str]) -> Any:
    blocks = [{"type": "text", "text": text} for text in instructions]
    if isinstance(system, list):
        kept = [
            block
            for block in system
            if not (isinstance(block, Mapping) and str(block.get("text", "")).startswith(BILLING_PREFIX))
        ]
        return kept + blocks or None
    if isinstance(system, str) and system:
        return [{"type": "text", "text": system}, *blocks] if blocks else system
    return blocks or None


def _messages(messages: list[Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """The messages with role and content alone, system texts moved into user messages; and texts that found none."""
    out: list[dict[str, Any]] = []
    waiting: list[str] = []
    for message in messages:
        if message["role"] in ("system", "developer"):
            text = "\n".join(text for text in texts_of(message["content"]) if text)
            if text and out and out[-1]["role"] == "user":
                out[-1]["content"] = [*blocks_of(out[-1]["content"]), {"type": "text", "text": text}]
            elif text:
                waiting.append(text)
            continue
        content = message["content"]
        if message["role"] == "user" and waiting:
            content = _behind_results(blocks_of(content), [{"type": "text", "text": text} for text in waiting])
            waiting = []
        out.append({"role": message["role"], "content": _upstream_blocks(content)})
    return out, waiting


def _turns(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Neighbours of one role as one message, which is what they mean; results first."""
    out: list[dict[str, Any]] = []
    for message in messages:
        if out and out[-1]["role"] == message["role"]:
            blocks = [*blocks_of(out[-1]["content"]), *blocks_of(message["content"])]
            out[-1] = {**message, "content": sorted(blocks, key=lambda block: not _is_result(block))}
        else:
            out.append(message)
    return out


def _answered(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same with a result for every call, in the message behind it."""
    out: list[dict[str, Any]] = []
    calls: list[str] = []
    for turn in turns:
        results = _ids(turn["content"], "tool_result", "tool_use_id")
        missing = [_no_result(call_id) for call_id in calls if call_id not in results]
        calls = _ids(turn["content"], "tool_use", "id")
        out.append({**turn, "content": _behind_results(blocks_of(turn["content"]), missing)} if missing else turn)
    return [*out, {"role": "user", "content": list(map(_no_result, calls))}] if calls else out


def _ids(content: Any, kind: str, member: str) -> list[str]:
    """Ids of the blocks of a kind, each once."""
    blocks = [block for block in blocks_of(content) if isinstance(block, Mapping) and block.get("type") == kind]
    return list(dict.fromkeys(block[member] for block in blocks if isinstance(block.get(member), str)))


def _no_result(call_id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": NO_RESULT}


def _behind_results(blocks: list[Any], more: list[dict[str, Any]]) -> list[Any]:
    """Blocks before what the user says; tool results must stay first."""
    others = (at for at, block in enumerate(blocks) if not _is_result(block))
    results = next(others, len(blocks))
    return [*blocks[:results], *more, *blocks[results:]]


def _is_result(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "tool_result"


def _upstream_blocks(content: Any) -> Any:
    """The content in words that the upstream knows; the same object where it is."""
    if not isinstance(content, list):
        return content
    blocks = list(map(_upstream_block, content))
    return content if all(new is old for new, old in zip(blocks, content, strict=True)) else blocks


def _upstream_block(block: Any) -> Any:
    """Ids that were made unique for the client go back to what the upstream called them, names are short as they are
    offered, types of images have their one name, and a loaded tool is named in words."""
    if not isinstance(block, dict):
        return block
    kind = block.get("type")
    if kind == "tool_reference":
        return {"type": "text", "text": reference_text(block)}
    changes: dict[str, Any] = {}
    for key in ("id", "tool_use_id"):
        if isinstance(block.get(key), str) and "__u" in block[key]:
            changes[key] = upstream_id(block[key], shorten=False)
    if kind == "tool_use" and isinstance(block.get("name"), str):
        changes["name"] = short_name(block["name"])
    elif kind == "tool_result":
        changes["content"] = _upstream_blocks(block.get("content"))
    elif kind == "image" and isinstance(block.get("source"), Mapping):
        changes["source"] = _known_source(block["source"])
    return {**block, **changes} if any(value != block.get(key) for key, value in changes.items()) else block


def _known_source(source: Mapping[str, Any]) -> Mapping[str, Any]:
    named = source.get("media_type")
    return {**source, "media_type": media_type_of(named)} if isinstance(named, str) else source


#: How signatures begin that this proxy, or an earlier one, made for models of other services: plain, and as base64.
_FOREIGN_MARKS = ("model-proxy:", "ccp:", "bW9kZWwtcHJveHk6", "Y2NwO")


def without_foreign_thoughts(body: Mapping[str, Any]) -> dict[str, Any]:
    """An upstream body without the thoughts that another service had, or that nobody signed."""
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
    arguments  of a tool call: its name, and the pieces of its argument text
    """

    row: BlockType | None  # None for an unknown type
    given: dict[DeltaType, str] = field(default_factory=dict)
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class MessagesToMessages:
    """The reducer of native streams: events are passed on through a MessageStream, which keeps their order legal."""

    def __init__(self, stream: MessageStream, policy: AnswerPolicy) -> None:
        self._stream = stream
        self._policy = policy
        self._open: dict[int, _OpenBlock] = {}
        self._arguments_size = 0
        self._broken = False  # whether there is a call whose arguments are no JSON
        self._counts = usage_of(0, 0)
        self._stop: tuple[str, str | None] | None = None
        self.produced = False
        self.only_thinking = True
        self.finished = False
        self.incomplete = False

    def feed(self, event: Mapping[str, Any]) -> list[Event]:
        """The Messages events that this upstream event causes. Raises BadAnswer."""
        handler = self._HANDLERS.get(str(event.get("type")))
        if handler is not None and not self.finished:
            try:
                handler(self, event)
            except BadAnswer:
                raise
            except (KeyError, TypeError, ValueError, OverflowError) as error:
                raise BadAnswer(f"the upstream's stream is out of order ({type(error).__name__})") from None
        return self._stream.take()

    def end(self) -> list[Event]:
        """The end of the stream before its last event: it does no harm behind a stop reason, when no block is under
        way."""
        whole = self._limited or not self._open
        return self.feed({"type": "message_stop"}) if self._stop is not None and whole else []

    @property
    def _limited(self) -> bool:
        return self._stop is not None and self._stop[0] in _LIMITS

    def interrupt(self) -> list[Event]:
        """What can be said before an error."""
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

    def _block_start(self, event: Mapping[str, Any]) -> None:
        index, block = event["index"], event["content_block"]
        if not isinstance(index, int) or not isinstance(block, Mapping) or not isinstance(block.get("type"), str):
            raise BadAnswer("the upstream began a block of no kind")
        opened = self._open[index] = _OpenBlock(BLOCKS.get(block["type"]))
        if opened.row is None or not opened.row.deltas:
            self.produced, self.only_thinking = True, False
            self._stream.open(index, dict(block))
            return
        if opened.row is TOOL_USE:
            members = self._call(opened, block)
        else:
            members = {} if opened.row in (TEXT, THINKING) else dict(block)
        self._stream.open(index, opened.row.start(**members))
        self._start_content(index, opened.row, block)

    def _call(self, opened: _OpenBlock, block: Mapping[str, Any]) -> dict[str, Any]:
        """What names a tool call."""
        name = block.get("name")
        if not isinstance(name, str) or not name:
            raise BadAnswer("the upstream sent a tool call without a name")
        opened.name = name
        name = self._policy.names.get(name, name)
        return {"id": unique_id(str(block.get("id") or ""), self._policy.used_ids), "name": name}

    def _start_content(self, index: int, row: BlockType, block: Mapping[str, Any]) -> None:
        """What the start of a block holds already, as deltas: many clients read content from nothing else."""
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
            return  # of a later version of the API
        if opened is None or not isinstance(delta, Mapping):
            raise BadAnswer("the upstream sent a delta of no block")
        self._pass(index, dict(delta))

    def _pass(self, index: int, delta: dict[str, Any]) -> None:
        opened, kind = self._open[index], DELTAS.get(str(delta.get("type")))
        if kind is not None:
            value = delta.get(kind.carries)
            if value is None:
                return
            if kind.is_text and not isinstance(value, str):
                raise BadAnswer(f"the upstream sent a {kind.name} that is not a text")
            if value:
                opened.given.pop(kind, None)
            if kind is INPUT_DELTA and opened.row is TOOL_USE:
                self._argument(opened, value)
        self.produced = True
        self.only_thinking = self.only_thinking and opened.row is THINKING
        self._stream.delta(index, delta)

    def _argument(self, opened: _OpenBlock, text: str) -> None:
        opened.arguments.append(text)
        self._arguments_size += len(text)
        if self._arguments_size > MAX_ARGUMENTS:
            raise BadAnswer(f"the arguments of the tool calls passed {MAX_ARGUMENTS} bytes")

    def _block_stop(self, event: Mapping[str, Any]) -> None:
        index = event["index"]
        opened = self._open[index]
        for delta, value in list(opened.given.items()):
            self._pass(index, delta.of(value))
        del self._open[index]
        if opened.row is TOOL_USE and not are_readable("".join(opened.arguments)):
            self._broken = True  # the last event tells why
            return
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
        self._stream.finish(reason, {**self._counts}, stop_sequence=sequence)

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
#: What clients know; another word is taken for that of a chat upstream.
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
