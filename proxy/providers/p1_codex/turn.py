"""One answer of P1: what the general turn does not know."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from functools import partial
from typing import Any

from proxy.auth.refresh import Credentials
from proxy.auth.store import Credential
from proxy.config import Config
from proxy.core.convert.responses_to_messages import ResponsesToMessages
from proxy.core.messages import MessageStream
from proxy.core.read_tool import ReadOffsets
from proxy.core.reducer import AnswerPolicy
from proxy.core.responses_events import failure_of, spent_window
from proxy.core.sse import dump_json
from proxy.core.tokens import count_responses, rough_length
from proxy.errors import UpstreamError
from proxy.providers.base import Call, Services
from proxy.providers.p1_codex import request as p1_request
from proxy.providers.p1_codex.catalog import LABEL
from proxy.providers.p1_codex.failures import SERVICE, final_error, is_foreign_reasoning, upstream_error
from proxy.providers.p1_codex.request import Prepared
from proxy.providers.transport import Batch, Outgoing, Transport
from proxy.providers.turn import Turn, text_restorer

#: Never a failure, and by far the most frequent: not looked at twice.
_DELTAS = frozenset(
    {
        "response.output_text.delta",
        "response.reasoning_summary_text.delta",
        "response.function_call_arguments.delta",
    }
)


class CodexTurn(Turn):
    """Runs one call. Use once."""

    label = LABEL
    service = SERVICE
    empty_is_failure = True

    def __init__(
        self,
        call: Call,
        prepared: Prepared,
        *,
        config: Config,
        services: Services,
        credentials: Credentials,
        transport: Transport,
        offsets: ReadOffsets,
    ) -> None:
        super().__init__(call, services)
        self._prepared = prepared
        self._config = config
        self._credentials = credentials
        self._credential: Credential | None = None
        self._transport = transport
        self._offsets = offsets
        self._renewed = False
        self._stripped = False
        self._body = prepared.body
        self._payload = dump_json(prepared.body).encode()
        self._responded = False
        self._spent: float | None = None  # an allowance that is spent, in case the stream ends without a word

    async def sign_in(self) -> None:
        self._credential = await self._credentials.get()

    def contact(self, number: int) -> AsyncGenerator[Batch, None]:
        if self._credential is None:
            raise RuntimeError("contacted before sign-in")
        self._responded, self._spent = False, None
        headers = p1_request.headers(self._config, lite=self._prepared.lite, session=self._call.session)
        return self._transport(
            Outgoing(
                url=self._config.p1_base_url,
                headers=p1_request.with_credential(headers, self._credential),
                body=self._payload,
                header_timeout_s=self._config.p1_header_timeout_ms / 1000,
                request_id=self._call.request_id,
                attempt=number,
            )
        )

    def reducer(self, stream: MessageStream) -> ResponsesToMessages:
        policy = AnswerPolicy(
            self._call.request,
            offsets=self._offsets,
            signatures=self._config.p1_reasoning_signatures,
            restore=text_restorer(self._call.request),
        )
        return ResponsesToMessages(stream, policy)

    async def estimate(self) -> int:
        work = partial(count_responses, self._body)
        return await self._services.tokenizer.run(work, size=len(self._payload))

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
        if kind == "codex.rate_limits":
            self._spent = spent_window(event)
            return
        failure = failure_of(event, now=self._services.clock())
        if failure is not None:
            raise upstream_error(failure)
        self._responded = self._responded or kind.startswith("response.")

    def explain(self, error: UpstreamError) -> UpstreamError:
        """A cut stream after a spent allowance and nothing else was a refusal."""
        if error.kind != "transport" or self._responded or self._spent is None:
            return error
        message = "The usage limit has been reached"
        return UpstreamError(message, kind="usage_limit", retry_after=self._spent, provider=LABEL)

    async def cure(self, error: UpstreamError) -> bool:
        """A new token after a 401; no reasoning where that of another account is refused."""
        if error.status == 401 and not self._renewed and self._credential is not None:
            self._renewed = True
            self._credential = await self._credentials.renew(self._credential.access)
            return True
        if not self._stripped and is_foreign_reasoning(error):
            self._stripped = True
            kept = [item for item in self._body["input"] if item.get("type") != "reasoning"]
            if len(kept) < len(self._body["input"]):
                self._body = {**self._body, "input": kept}
                self._payload = dump_json(self._body).encode()
                return True
        return False

    def final(self, error: UpstreamError) -> UpstreamError:
        return final_error(error)
