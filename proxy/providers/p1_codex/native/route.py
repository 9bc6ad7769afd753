"""One request of the native Responses route, from sign-in to the last byte."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import cast

from proxy.core.sse import encode_events, encode_json
from proxy.core.upstream_failures import is_refusal
from proxy.errors import UpstreamError
from proxy.observe.lifecycle import UpstreamStarted
from proxy.providers.contract import Call, NativeAnswer, NativeEnd
from proxy.providers.p1_codex import request as p1_request
from proxy.providers.p1_codex.catalog import LABEL, model_for
from proxy.providers.p1_codex.failures import PROFILE
from proxy.providers.p1_codex.native.body import native_body
from proxy.providers.p1_codex.native.refusal import Refusal
from proxy.providers.p1_codex.native.relay import RelayObserver, aggregated, passed_headers, relayed, unstreamed, whole
from proxy.providers.p1_codex.settings import CodexSettings
from proxy.providers.p1_codex.signed import Signer
from proxy.providers.upstream.adapter import RequestBody
from proxy.providers.upstream.transport import HttpTransport, OpenAnswer, unexpected

#: Names the model that serves a request in place of the one that was asked for.
SERVED_HEADER = "x-model-proxy-served"

_JSON = "application/json"

#: What came of one attempt: an answer to pass on, or a failure before any of it.
Outcome = NativeAnswer | Refusal | UpstreamError


class NativeRoute:
    """Always HTTP. What met a rate limit is sent again, since clients of this API do not wait for it, and so is what
    broke while an answer was put together; once what met a refused token. Other failures they repeat by themselves."""

    def __init__(self, signer: Signer, transport: HttpTransport) -> None:
        self._signer = signer
        self._services = signer.services
        self._transport = transport

    @asynccontextmanager
    async def answer(self, call: Call) -> AsyncGenerator[NativeAnswer, None]:
        """The answer, its body still to be read. Raises ProxyError."""
        config = self._services.config()
        codex = config.section(CodexSettings)
        shaped = native_body(call.request, call.target, model_for(call.target.model, codex.models))
        body = RequestBody(shaped.body, large=call.large)
        headers = p1_request.headers(config, lite=shaped.lite, session=call.session)
        signed = self._signer.request(call.request_id, call.timings)
        await signed.sign_in()
        post = partial(signed.post, codex, headers, body.written, capture=call.capture)
        refused, broke = cast(Refusal | None, None), False
        async with AsyncExitStack() as stack:  # in it the answer of the attempt that counts

            async def send(number: int) -> NativeAnswer:
                nonlocal refused, broke
                call.record(UpstreamStarted(number))
                refused, broke = None, False
                opened = await stack.enter_async_context(self._transport.open(post(number)))
                outcome = await self._outcome(call, opened)
                if isinstance(outcome, NativeAnswer):
                    return outcome
                try:  # no name of this frame may hold what is raised, which holds the frame
                    refused, broke = (outcome, False) if isinstance(outcome, Refusal) else (None, True)
                    told = outcome if isinstance(outcome, UpstreamError) else outcome.error
                    opened.capture.failed(told.message)
                    await stack.aclose()
                    raise told
                finally:
                    del outcome, told

            def repeats(error: UpstreamError) -> bool:
                return error.kind == "rate_limit" or (broke and call.request.get("stream") is not True)

            try:
                answer = await signed.attempts().ask(send, repeats)
            except UpstreamError as error:
                if refused is None or error is not refused.error:
                    raise
                error.with_traceback(None)
                answer = refused.answer()
            async with aclosing(answer.chunks):
                yield self._marked(call, answer)

    async def _outcome(self, call: Call, opened: OpenAnswer) -> Outcome:
        response = opened.response
        now, end = self._services.clock(), NativeEnd()
        if response.status != 200:
            if not is_refusal(response.status):
                return unexpected(PROFILE, response.status)
            return Refusal(response.status, response.headers, await opened.error_body(), now, call.request)
        headers, streams = passed_headers(response.headers), call.request.get("stream") is True
        try:
            if response.content_type == _JSON:
                events = await self._transport.whole(opened)
                body = unstreamed(events, end, now)
                if streams:
                    kind = {"content-type": "text/event-stream"}
                    return NativeAnswer(200, {**headers, **kind}, whole(encode_events(events)), end)
            elif streams:
                return NativeAnswer(200, headers, relayed(self._transport, opened, RelayObserver(end, now)), end)
            else:
                body, end.usage = await aggregated(self._transport, opened, now=now)
        except UpstreamError as error:
            return error
        return NativeAnswer(200, {**headers, "content-type": _JSON}, whole(encode_json(body)), end)

    def _marked(self, call: Call, answer: NativeAnswer) -> NativeAnswer:
        """An answer says so where another model than the one asked for gave it."""
        asked, served = (
            p1_request.native_target(call.model, call.request, self._services.config()).model,
            call.target.model,
        )
        if asked == served:
            return answer
        self._services.log.write("info", LABEL, "model_stood_in", reqId=call.request_id, asked=asked, served=served)
        return replace(answer, headers={**answer.headers, SERVED_HEADER: served})
