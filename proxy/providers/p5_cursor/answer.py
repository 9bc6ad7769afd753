"""The output of a run as Messages events (`CursorToMessages`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from proxy.core.blocks import INPUT_DELTA, TEXT, TEXT_DELTA, THINKING, THINKING_DELTA, TOOL_USE
from proxy.core.messages import Event, MessageStream
from proxy.core.reducer import BadAnswer
from proxy.core.sse import dump_json
from proxy.core.stops import CHARS_A_TOKEN
from proxy.core.tokens.usage import usage_of
from proxy.core.visible import Visible
from proxy.providers.p5_cursor.run.calls import OpenCall
from proxy.providers.p5_cursor.run.events import RunOutput
from proxy.providers.p5_cursor.xml_calls import XmlCall, XmlCalls


class CursorToMessages:
    """Reduces the events of one answer; a run may give several, one after each tool of the client.

    tools   names of the tools that the model may write a call of
    offer   called with the id of a client tool's call that ends the answer
    new_id  makes ids
    output  the run's output so far, in all its answers
    """

    incomplete = False

    def __init__(
        self,
        stream: MessageStream,
        tools: Collection[str],
        offer: Callable[[OpenCall, str], None],
        new_id: Callable[[], str],
        output: RunOutput,
    ) -> None:
        self._stream = stream
        self._xml = XmlCalls(tools)
        self._offer = offer
        self._new_id = new_id
        self._output = output
        self._open: str | None = None  # the type of the open block
        self._blocks = 0
        self.produced = False
        self.finished = False
        self.paused = False  # whether a call of a client's tool ended the answer

    def feed(self, event: Mapping[str, Any]) -> list[Event]:
        """The Messages events of one event. Raises BadAnswer for an answer without content."""
        self._HANDLERS[event["type"]](self, event)
        return self._stream.take()

    def interrupt(self) -> list[Event]:
        """Closes what is open, before an error. Held text is dropped, since it may be the beginning of a call."""
        self._stream.interrupt()
        return self._stream.take()

    # -- events

    def _thinking(self, event: Mapping[str, Any]) -> None:
        self._piece(THINKING.name, THINKING.start(signature=""), THINKING_DELTA.of(event["text"]))

    def _text(self, event: Mapping[str, Any]) -> None:
        for piece in self._xml.feed(event["text"]):
            if isinstance(piece, XmlCall):
                # what follows it is often a result that the model made up
                self._call(piece.name, piece.input, f"call_cursor_{self._new_id()}")
                return
            self._say(piece)

    def _tool(self, event: Mapping[str, Any]) -> None:
        self._flush()
        call, call_id = event["call"], f"call_cursor_{self._new_id()}"
        self.paused = True
        self._offer(call, call_id)
        self._call(call.step.tool, call.step.input, call_id)

    def _end(self, event: Mapping[str, Any]) -> None:
        self._flush()
        if event["parked"] and self._stream.visible < Visible.CONTENT:
            self._output.chars += len(event["parked"])
            self._text({"text": event["parked"]})
            self._flush()
        if self.finished:
            return
        if not self.produced:
            raise BadAnswer("the service ended its turn with an empty answer; repeating the request may help")
        self._finish("end_turn", event["output_tokens"])

    # -- blocks

    def _flush(self) -> None:
        self._say(self._xml.flush())

    def _say(self, text: str) -> None:
        if text:
            self._piece(TEXT.name, TEXT.start(), TEXT_DELTA.of(text))

    def _piece(self, kind: str, start: dict[str, Any], delta: dict[str, Any]) -> None:
        """Adds a piece to the open block of this kind, or to a new one."""
        if self._open != kind:
            self._close()
            self._blocks += 1
            self._open = kind
            self._stream.open(self._blocks, start)
        self._stream.delta(self._blocks, delta)
        self.produced = True

    def _close(self) -> None:
        if self._open is not None:
            self._stream.close(self._blocks)
            self._open = None

    def _call(self, name: str, arguments: Mapping[str, Any], call_id: str) -> None:
        """Ends the answer with a call that the client runs."""
        self._close()
        self._blocks += 1
        self._stream.open(self._blocks, TOOL_USE.start(id=call_id, name=name))
        self._stream.delta(self._blocks, INPUT_DELTA.of(dump_json(arguments)))
        self._stream.close(self._blocks)
        self.produced = True
        self._finish("tool_use", None)

    def _finish(self, reason: str, output_tokens: int | None) -> None:
        """Reports the new output tokens, since the service counts over the whole run."""
        output = self._output
        if output_tokens is None:
            output_tokens = output.tokens or output.chars // CHARS_A_TOKEN
        fresh = max(0, output_tokens - output.reported)
        self._close()
        output.reported += fresh
        self.finished = True
        self._stream.finish(reason, usage_of(self._stream.input_tokens, fresh))

    _HANDLERS = {  # noqa: RUF012 - a table, never changed
        "text": _text,
        "thinking": _thinking,
        "tool": _tool,
        "end": _end,
    }
