"""The wire of upstreams that speak Messages themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proxy.core.convert.messages_to_messages import MessagesToMessages, without_foreign_thoughts
from proxy.core.messages import LAST_EVENTS, MessageStream
from proxy.core.reducer import AnswerPolicy
from proxy.core.tokens.counting import rough_length
from proxy.core.upstream_failures import failure_of
from proxy.errors import UpstreamError
from proxy.providers.contract import Call, Services
from proxy.providers.upstream.adapter import RequestBody
from proxy.providers.upstream.chat_wire import heuristic_estimate, note_format
from proxy.providers.upstream.transport import UpstreamProfile


def is_last_message_event(event: Mapping[str, Any]) -> bool:
    """Whether an event ends the stream."""
    return event.get("type") in LAST_EVENTS


class MessagesWire:
    """One request over the Messages API."""

    after_tool_result = False

    def __init__(self, call: Call, services: Services, profile: UpstreamProfile, body: dict[str, Any]) -> None:
        self._call = call
        self._services = services
        self._profile = profile
        self.body = RequestBody(body)
        note_format(call, services, profile)

    def reducer(self, stream: MessageStream) -> MessagesToMessages:
        return MessagesToMessages(stream, AnswerPolicy(self._call.request))

    async def estimate(self) -> int:
        return await heuristic_estimate(self._services, self._call)

    def rough_estimate(self) -> int:
        return rough_length(self.body.payload.decode())

    def raise_for_event(self, event: Mapping[str, Any]) -> None:
        if event.get("type") != "error":
            return
        raise self._profile.refusal(failure_of(event, now=self._services.clock()), None)

    def recover(self, error: UpstreamError) -> bool:
        """No thoughts of other models where their signatures are refused."""
        if error.status != 400 or "signature" not in error.message.lower():
            return False
        body = without_foreign_thoughts(self.body.members)
        if body == self.body.members:
            return False
        self.body.replace(body)
        return True
