"""The wire of upstreams that speak chat completions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import is_
from typing import Any

from proxy.core.convert.chat_to_messages import ChatToMessages
from proxy.core.convert.whole_answers import chat_events
from proxy.core.messages import MessageStream
from proxy.core.reducer import DONE, EOF, AnswerPolicy
from proxy.core.tokens.counting import rough_tokens
from proxy.core.tokens.heuristic import heuristic_count
from proxy.core.tools.schema import json_format
from proxy.core.upstream_failures import Failure, failure_of
from proxy.errors import UpstreamError
from proxy.providers.contract import Call, Services
from proxy.providers.upstream.adapter import RequestBody, let_go, note_simplified
from proxy.providers.upstream.text_runs import CHAT_RUNS
from proxy.providers.upstream.tokenizer import ALWAYS_INLINE_BYTES
from proxy.providers.upstream.transport import UNKNOWN, Batch, Service, UpstreamProfile


def chat_profile(label: str, service: str, refusal: Callable[[Failure, str | None], UpstreamError]) -> UpstreamProfile:
    """The profile of a chat upstream: a stream ends with DONE, though one without it may be complete too."""
    return UpstreamProfile(label, service, partial(is_, DONE), refusal, eof=EOF, whole=_whole, runs=CHAT_RUNS)


def _whole(answer: Mapping[str, Any]) -> Batch | None:
    chunks = chat_events(answer)
    return None if chunks is None else [*chunks, DONE]


@dataclass(frozen=True, slots=True)
class BodyFallback:
    """Another body for one that a status 400 refused; tried once.

    applies  whether the upstream's message, in lower case, is the expected one
    change   the other body, None when it would be the same
    """

    applies: Callable[[str], bool]
    change: Callable[[Mapping[str, Any]], dict[str, Any] | None]


class ChatWire:
    """One request over chat completions.

    own_ids    whether tool calls get our own ids, for an upstream whose ids repeat
    fallbacks  what may be sent when the body is refused
    """

    after_tool_result = False

    def __init__(
        self,
        call: Call,
        services: Services,
        profile: UpstreamProfile,
        body: dict[str, Any],
        *,
        own_ids: bool = False,
        fallbacks: Sequence[BodyFallback] = (),
    ) -> None:
        self._call = call
        self._services = services
        self._profile = profile
        self._own_ids = own_ids
        self._policy: AnswerPolicy | None = None  # of the last attempt
        self._fallbacks = list(fallbacks)
        self.body = RequestBody(body, large=call.large)
        note_format(call, services, profile)
        note_simplified(call, services, profile)

    def reducer(self, stream: MessageStream) -> ChatToMessages:
        def own_id(number: int) -> str:
            return f"toolu_{stream.message_id}_{number}"

        mark = f"model-proxy:{self._profile.label}:v1"
        self._policy = AnswerPolicy(self._call.request, converted=self._call.converted)
        return ChatToMessages(stream, self._policy, mark=mark, own_id=own_id if self._own_ids else None)

    @property
    def estimates_at_once(self) -> bool:
        return self._call.size <= ALWAYS_INLINE_BYTES

    async def estimate(self) -> int:
        return await heuristic_estimate(self._services, self._call)

    def rough_estimate(self) -> int:
        return rough_tokens(self._call.size if self._call.large else len(self.body.payload))

    def raise_for_event(self, event: Mapping[str, Any]) -> None:
        error = event.get("error")
        if not error:
            if "error" not in (event.get("type"), event.get("object")):
                return
            error = event  # some put its members at the top level
        failure = {**event, "error": error}
        raise self._profile.refusal(failure_of(failure, now=self._services.clock(), unknown=UNKNOWN), None)

    def let_go(self) -> None:
        let_go(self._call, self._policy, self.body)

    def recover(self, error: UpstreamError) -> bool:
        """Applies the first matching fallback that was not tried."""
        if error.status != 400:
            return False
        text = error.message.lower()
        for place, fallback in enumerate(self._fallbacks):
            if fallback.applies(text):
                del self._fallbacks[place]
                body = fallback.change(self.body.members)
                if body is not None:
                    self.body.replace(body)
                return body is not None
        return False


def note_format(call: Call, services: Services, profile: Service) -> None:
    """Notes in the log that only the prompt names the form of the answer."""
    if json_format(call.request) is not None:
        services.log.write("info", profile.label, f"{profile.service}_format_in_prompt", reqId=call.request_id)


async def heuristic_estimate(services: Services, call: Call, *, native: bool = False) -> int:
    """The heuristic count of a request, made without a vocabulary. `native`: see `heuristic_count`."""
    return await services.tokenizer.estimate(partial(heuristic_count, call.request, native=native), size=call.size)
