"""A turn over chat completions: what every such upstream shares."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import replace
from typing import Any

from proxy.core.convert.chat_to_messages import ChatToMessages
from proxy.core.messages import Event, MessageStream
from proxy.core.reducer import AnswerPolicy
from proxy.core.sse import dump_json
from proxy.core.tokens.counting import rough_length
from proxy.core.tokens.heuristic import heuristic_count
from proxy.core.upstream_failures import Failure, failure_of
from proxy.errors import UpstreamError
from proxy.providers.contract import Call, Services
from proxy.providers.upstream.attempts import Turn
from proxy.providers.upstream.transport import DONE, EOF, Batch, Outgoing, Transport, Wire

#: Chat upstreams send their head at once; reasoning comes as events.
HEADER_TIMEOUT_S = 300.0


def chat_wire(label: str, service: str, refusal: Callable[[Failure, str | None], UpstreamError]) -> Wire:
    """The wire of a chat upstream: it ends with DONE, and a body that ends without may be complete all the same."""
    return Wire(label, service, lambda event: event is DONE, refusal, eof=EOF)


class _Reducer(ChatToMessages):
    """Takes the ends of the stream as events."""

    def feed(self, chunk: Mapping[str, Any]) -> list[Event]:
        if chunk is DONE:
            return self.end(done=True)
        if chunk is EOF:
            return self.end(done=False)
        return super().feed(chunk)


class ChatTurn(Turn):
    """Runs one call over chat completions. Use once."""

    #: First part of the signature of thinking blocks.
    mark: str

    def __init__(
        self, call: Call, services: Services, *, wire: Wire, transport: Transport, url: str, body: dict[str, Any]
    ) -> None:
        super().__init__(call, services)
        self._wire = wire
        self._transport = transport
        self._url = url
        self.body = body

    def headers(self) -> dict[str, str]:
        """All headers of a request, the credential among them."""
        raise NotImplementedError

    def own_id(self, number: int) -> str:
        """The id of the `number`th call, for an upstream whose ids repeat."""
        return f"toolu_{self._message_id}_{number}"

    #: Whether calls get ids of our own.
    own_ids = False

    def contact(self, number: int) -> AsyncGenerator[Batch, None]:
        return self._transport(
            Outgoing(
                url=self._url,
                headers=self.headers(),
                body=dump_json(self.body).encode(),
                header_timeout_s=HEADER_TIMEOUT_S,
                request_id=self._call.request_id,
                attempt=number,
            )
        )

    def reducer(self, stream: MessageStream) -> _Reducer:
        policy = AnswerPolicy(self._call.request)
        return _Reducer(stream, policy, mark=self.mark, own_id=self.own_id if self.own_ids else None)

    async def estimate(self) -> int:
        return await estimate_words(self._services, self._call)

    def rough_estimate(self) -> int:
        return rough_length(dump_json(self.body))

    def look(self, event: Mapping[str, Any]) -> None:
        if not event.get("error"):
            return
        failure = failure_of(event, now=self._services.clock())
        if failure.kind == "upstream":  # nobody named a status, and a gateway's own is the one for that
            failure = replace(failure, status=502)
        raise self._wire.refusal(failure, None)


async def estimate_words(services: Services, call: Call) -> int:
    """The heuristic count of a request, made in a thread: it knows no vocabulary."""
    return await services.tokenizer.run(lambda _length: heuristic_count(call.request))
