"""The wire of upstreams that speak the Responses API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from proxy.core.convert.responses_to_messages import ResponsesToMessages
from proxy.core.messages import MessageStream
from proxy.core.reducer import USUAL_RULES, AnswerPolicy, AnswerRules
from proxy.core.responses_events import ENDS, responses_failure
from proxy.core.tokens.counting import Length, count_responses, rough_length, rough_tokens
from proxy.core.tools.read_tool import ReadOffsets
from proxy.core.tools.schema import has_optional, output_format, restore_text
from proxy.errors import UpstreamError
from proxy.providers.contract import Call, Services
from proxy.providers.upstream.adapter import RequestBody, let_go, note_simplified
from proxy.providers.upstream.tokenizer import ALWAYS_INLINE_BYTES
from proxy.providers.upstream.transport import UpstreamProfile

#: Never a failure, and by far the most frequent: not checked further.
_DELTAS = frozenset(
    {
        "response.output_text.delta",
        "response.reasoning_summary_text.delta",
        "response.reasoning_text.delta",
        "response.function_call_arguments.delta",
    }
)

#: Kinds of failure that lie in the request, so that another body may be accepted.
_REFUSALS = frozenset({"invalid_request", "unprocessable", "not_found", "context", "too_large"})


class ResponsesWire:
    """One request over the Responses API.

    signatures      label under which the client gets encrypted reasoning; "" for none
    plain           the body to send when the first one is refused; None when there is none
    fell_back       whether that happened
    spoke           whether a delta of a text or of a call came, in this attempt
    rules           how this upstream's answers differ
    restores        whether an answer in strict form is fitted to the caller's schema: not when that is sent unchanged
    count           input tokens of a body, given the length of a text
    observe         called with each event, except deltas of texts and calls, before it is judged
    """

    def __init__(
        self,
        call: Call,
        services: Services,
        profile: UpstreamProfile,
        body: RequestBody,
        *,
        offsets: ReadOffsets | None,
        signatures: str = "p1",
        plain: dict[str, Any] | None = None,
        rules: AnswerRules = USUAL_RULES,
        restores: bool = True,
        count: Callable[[Mapping[str, Any], Length], int] = count_responses,
        observe: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> None:
        self._call = call
        self._services = services
        self._profile = profile
        self._offsets = offsets
        self._signatures = signatures
        self._plain = plain
        self._rules = rules
        self._restores = restores
        self._count = count
        self._observe = observe
        self._policy: AnswerPolicy | None = None  # of the last attempt
        self._stripped = False
        self.fell_back = self.spoke = False
        self.body = body
        note_simplified(call, services, profile)

    @property
    def after_tool_result(self) -> bool:
        items = self.body.members["input"]
        return bool(items) and items[-1].get("type") == "function_call_output"

    def reducer(self, stream: MessageStream) -> ResponsesToMessages:
        request = self._call.request
        restore = text_restorer(request) if self._restores else None
        self.spoke = False
        self._policy = AnswerPolicy(
            request, self._offsets, self._signatures, restore, self._rules, self._call.converted
        )
        return ResponsesToMessages(stream, self._policy)

    @property
    def estimates_at_once(self) -> bool:
        return self._call.size <= ALWAYS_INLINE_BYTES and self._services.tokenizer.loaded

    async def estimate(self) -> int:
        work = partial(self._count, self.body.members)
        return await self._services.tokenizer.run(work, size=self._call.size)

    def rough_estimate(self) -> int:
        return self._count(self.body.members, _rough_size if self._call.large else rough_length)

    def raise_for_event(self, event: Mapping[str, Any]) -> None:
        kind = event.get("type")
        if isinstance(kind, str) and kind in _DELTAS:
            self.spoke = True
            return
        if self._observe is not None:
            self._observe(event)
        if isinstance(kind, str) and kind not in ENDS and "error" not in event and "response" not in event:
            return
        failure = responses_failure(event, now=self._services.clock(), rules=self._rules)
        if failure is not None:
            raise self._profile.refusal(failure, None)

    def let_go(self) -> None:
        let_go(self._call, self._policy, self.body)

    def recover(self, error: UpstreamError) -> bool:
        """Falls back to the plain body, or drops reasoning when another account's is refused."""
        if self._plain is not None and error.kind in _REFUSALS:
            self.body.replace(self._plain)
            self._plain, self.fell_back = None, True
            return True
        if self._stripped or not is_foreign_reasoning(error):
            return False
        self._stripped = True
        body = self.body.members
        kept = [item for item in body["input"] if item.get("type") != "reasoning"]
        if len(kept) == len(body["input"]):
            return False
        self.body.replace({**body, "input": kept})
        return True


def _rough_size(text: str) -> int:
    """The rough length of a text that is not read."""
    return rough_tokens(len(text))


def text_restorer(request: Mapping[str, Any]) -> Callable[[str], str] | None:
    """Fits an answer in strict form to the caller's schema; None when it already fits."""
    wanted = output_format(request) or {}
    schema = wanted.get("schema") if wanted.get("type") == "json_schema" and "strict" not in wanted else None
    return partial(restore_text, schema=schema) if has_optional(schema) else None


def is_foreign_reasoning(error: UpstreamError) -> bool:
    """Whether the backend refuses encrypted reasoning, which it does after a change of accounts."""
    text = error.message.lower()
    return error.status == 400 and (
        error.code in ("thinking_signature_invalid", "invalid_encrypted_content")
        or ("encrypted content" in text and "verified" in text)
        or "encrypted_content" in text
    )
