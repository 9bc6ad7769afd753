"""The wire of upstreams that speak Messages themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from proxy.core.convert.messages_to_messages import MessagesToMessages, without_foreign_thoughts
from proxy.core.convert.whole_answers import message_events
from proxy.core.messages import LAST_EVENTS, MessageStream
from proxy.core.reducer import EOF, AnswerPolicy
from proxy.core.tokens.counting import rough_tokens
from proxy.core.upstream_failures import Failure, failure_of
from proxy.errors import UpstreamError
from proxy.providers.contract import Call, Services
from proxy.providers.upstream.adapter import RequestBody, let_go, note_simplified
from proxy.providers.upstream.chat_wire import heuristic_estimate, note_format
from proxy.providers.upstream.text_runs import MESSAGES_RUNS
from proxy.providers.upstream.tokenizer import ALWAYS_INLINE_BYTES
from proxy.providers.upstream.transport import UNKNOWN, UpstreamProfile


def messages_profile(
    label: str, service: str, refusal: Callable[[Failure, str | None], UpstreamError]
) -> UpstreamProfile:
    """The profile of a Messages upstream: a stream that ends after its stop reason is complete."""
    return UpstreamProfile(label, service, _is_last, refusal, eof=EOF, whole=message_events, runs=MESSAGES_RUNS)


def _is_last(event: Mapping[str, Any]) -> bool:
    kind = event.get("type")
    return isinstance(kind, str) and kind in LAST_EVENTS


class MessagesWire:
    """One request over the Messages API."""

    after_tool_result = False

    def __init__(self, call: Call, services: Services, profile: UpstreamProfile, body: dict[str, Any]) -> None:
        self._call = call
        self._services = services
        self._profile = profile
        self._policy: AnswerPolicy | None = None  # of the last attempt
        self.body = RequestBody(body, large=call.large)
        if "format" not in body.get("output_config", {}):
            note_format(call, services, profile)
        note_simplified(call, services, profile)

    def reducer(self, stream: MessageStream) -> MessagesToMessages:
        self._policy = AnswerPolicy(self._call.request, converted=self._call.converted)
        return MessagesToMessages(stream, self._policy)

    @property
    def estimates_at_once(self) -> bool:
        return self._call.size <= ALWAYS_INLINE_BYTES

    async def estimate(self) -> int:
        return await heuristic_estimate(self._services, self._call, native=True)

    def rough_estimate(self) -> int:
        return rough_tokens(self._call.size if self._call.large else len(self.body.payload))

    def raise_for_event(self, event: Mapping[str, Any]) -> None:
        if event.get("type") != "error" and ("type" in event or not event.get("error")):
            return
        raise self._profile.refusal(failure_of(event, now=self._services.clock(), unknown=UNKNOWN), None)

    def let_go(self) -> None:
        let_go(self._call, self._policy, self.body)

    def recover(self, error: UpstreamError) -> bool:
        """Removes thoughts of other models after a refusal of their signatures."""
        if error.status != 400 or "signature" not in error.message.lower():
            return False
        body = without_foreign_thoughts(self.body.members)
        if body == self.body.members:
            return False
        self.body.replace(body)
        return True
