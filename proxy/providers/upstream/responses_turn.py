"""A turn over the Responses API: what every such upstream shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from proxy.core.convert.responses_to_messages import ResponsesToMessages
from proxy.core.messages import Event, MessageStream
from proxy.core.reducer import AnswerPolicy
from proxy.core.responses_events import responses_failure
from proxy.core.sizes import least_size
from proxy.core.sse import dump_json
from proxy.core.tokens.counting import count_responses, rough_length
from proxy.core.tools.read_tool import ReadOffsets
from proxy.errors import UpstreamError
from proxy.providers.contract import Call, Services
from proxy.providers.upstream.attempts import Turn, text_restorer
from proxy.providers.upstream.tokenizer import MAX_INLINE_BYTES
from proxy.providers.upstream.transport import EOF, Wire

#: Never a failure, and by far the most frequent: not looked at twice.
_DELTAS = frozenset(
    {
        "response.output_text.delta",
        "response.reasoning_summary_text.delta",
        "response.function_call_arguments.delta",
    }
)

#: Kinds of failure that lie in the request: another body may be taken.
_REFUSALS = frozenset({"invalid_request", "unprocessable", "not_found", "context", "too_large"})


class _Reducer(ResponsesToMessages):
    """Takes the early end of the stream as an event, where the wire tells of it."""

    def feed(self, event: Mapping[str, Any]) -> list[Event]:
        return self.cut() if event is EOF else super().feed(event)


class ResponsesTurn(Turn):
    """Runs one call over the Responses API. Use once.

    plain      the body to go back to when the first one is refused; None when there is none
    fell_back  whether that happened
    """

    #: Status of a failure inside a stream that is of no known kind; None leaves it as it is.
    unnamed_status: int | None = None

    def __init__(
        self,
        call: Call,
        services: Services,
        *,
        wire: Wire,
        body: dict[str, Any],
        offsets: ReadOffsets,
        signatures: bool,
    ) -> None:
        super().__init__(call, services)
        self._wire = wire
        self._offsets = offsets
        self._signatures = signatures
        self._stripped = False
        self.plain: dict[str, Any] | None = None
        self.fell_back = False
        self._body = body
        self._encoded: bytes | None = None

    def encode(self) -> bytes:
        """The body as it travels."""
        return dump_json(self._body).encode()

    @property
    def _payload(self) -> bytes:
        """The same, written when it is first needed: a turn that goes on from an earlier one sends only a part."""
        if self._encoded is None:
            self._encoded = self.encode()
        return self._encoded

    def reducer(self, stream: MessageStream) -> ResponsesToMessages:
        policy = AnswerPolicy(
            self._call.request,
            offsets=self._offsets,
            signatures=self._signatures,
            restore=text_restorer(self._call.request),
        )
        return _Reducer(stream, policy)

    async def estimate(self) -> int:
        work = partial(count_responses, self._body)
        size = least_size(self._body, MAX_INLINE_BYTES)
        if size <= MAX_INLINE_BYTES:
            size = len(self._payload)
        return await self._services.tokenizer.run(work, size=size)

    def rough_estimate(self) -> int:
        return count_responses(self._body, rough_length)

    @property
    def after_tool_result(self) -> bool:
        items = self._body["input"]
        return bool(items) and items[-1].get("type") == "function_call_output"

    def look(self, event: Mapping[str, Any]) -> None:
        kind = event.get("type")
        if not isinstance(kind, str) or kind in _DELTAS:
            return
        failure = responses_failure(event, now=self._services.clock())
        if failure is None:
            return
        if failure.kind == "upstream" and self.unnamed_status:
            failure = replace(failure, status=self.unnamed_status)
        raise self._wire.refusal(failure, None)

    async def cure(self, error: UpstreamError) -> bool:
        """The plain body; no reasoning where that of another account is refused."""
        if self.plain is not None and error.kind in _REFUSALS:
            self._send_instead(self.plain)
            self.plain, self.fell_back = None, True
            return True
        if self._stripped or not is_foreign_reasoning(error):
            return False
        self._stripped = True
        kept = [item for item in self._body["input"] if item.get("type") != "reasoning"]
        if len(kept) == len(self._body["input"]):
            return False
        self._send_instead({**self._body, "input": kept})
        return True

    def _send_instead(self, body: dict[str, Any]) -> None:
        """From the next attempt on the request has this body."""
        self._body = body
        self._encoded = None


def is_foreign_reasoning(error: UpstreamError) -> bool:
    """Encrypted reasoning is bound to an account; after a change of accounts the backend refuses it."""
    text = error.message.lower()
    return error.status == 400 and (
        error.code in ("thinking_signature_invalid", "invalid_encrypted_content")
        or ("encrypted content" in text and "verified" in text)
        or "encrypted_content" in text
    )
