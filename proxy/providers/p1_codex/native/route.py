"""One request of the native Responses route, from sign-in to the last byte."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace

from proxy.auth.refresh import Credentials
from proxy.auth.store import Credential
from proxy.core.sse import encode_events, encode_json
from proxy.core.upstream_failures import is_refusal
from proxy.errors import UpstreamError
from proxy.observe.lifecycle import UpstreamStarted
from proxy.providers.contract import Call, NativeAnswer, NativeEnd, Services
from proxy.providers.p1_codex import request as p1_request
from proxy.providers.p1_codex.account.workspace import Workspaces
from proxy.providers.p1_codex.catalog import LABEL, model_for
from proxy.providers.p1_codex.failures import PROFILE
from proxy.providers.p1_codex.native.body import NativeBody, native_body
from proxy.providers.p1_codex.native.refusal import Refusal
from proxy.providers.p1_codex.native.relay import RelayObserver, aggregated, passed_headers, relayed, unstreamed, whole
from proxy.providers.p1_codex.settings import CodexSettings
from proxy.providers.upstream.adapter import RequestBody
from proxy.providers.upstream.credential import RequestCredential
from proxy.providers.upstream.retry import Retry, Visibility, decide
from proxy.providers.upstream.transport import HttpTransport, OpenAnswer, UpstreamRequest, unexpected

#: Names the model that serves a request in place of the one that was asked for.
SERVED_HEADER = "x-model-proxy-served"

_JSON = "application/json"

#: What came of one attempt: an answer to pass on, or a failure before any of it.
Outcome = NativeAnswer | Refusal | UpstreamError


class NativeRoute:
    """Always HTTP. What met a rate limit is sent again, since clients of this API do not wait for it, and so is what
    broke while an answer was put together; once what met a refused token. Other failures they repeat by themselves."""

    def __init__(
        self, services: Services, credentials: Credentials, workspaces: Workspaces, transport: HttpTransport
    ) -> None:
        self._services = services
        self._credentials = credentials
        self._workspaces = workspaces
        self._transport = transport

    @asynccontextmanager
    async def answer(self, call: Call) -> AsyncGenerator[NativeAnswer, None]:
        """The answer, its body still to be read. Raises ProxyError."""
        added = self._services.config().section(CodexSettings).models
        shaped = native_body(call.request, call.target, model_for(call.target.model, added))
        body = RequestBody(shaped.body, large=call.large)
        credential = RequestCredential(self._credentials)
        call.timings.signing_in()
        await credential.get()
        call.timings.signed_in()
        number, repeated = 0, 0
        while True:
            number += 1
            call.record(UpstreamStarted(number))
            request = await self._request(call, shaped, body, credential.current, number)
            async with self._transport.open(request) as opened:
                outcome = await self._outcome(call, opened)
                if isinstance(outcome, NativeAnswer):
                    async with aclosing(outcome.chunks):
                        yield self._marked(call, outcome)
                    return
                error = outcome if isinstance(outcome, UpstreamError) else outcome.error
                opened.capture.failed(error.message)
            if error.status == 401 and await credential.renew():
                continue
            wait = self._wait(call, error, repeated, broke=outcome is error)
            if wait is not None:
                repeated += 1
                await self._services.sleep(wait)
                continue
            if isinstance(outcome, UpstreamError):
                raise outcome
            yield self._marked(call, outcome.answer())
            return

    async def _request(
        self, call: Call, shaped: NativeBody, body: RequestBody, credential: Credential, number: int
    ) -> UpstreamRequest:
        config, workspace = self._services.config(), await self._workspaces.of(credential)
        headers = p1_request.headers(config, lite=shaped.lite, session=call.session)
        signed = workspace.headers(p1_request.with_credential(headers, credential))
        url = workspace.url(config.section(CodexSettings).base_url)
        return p1_request.post(
            config,
            signed,
            body.written,
            request_id=call.request_id,
            attempt=number,
            url=url,
            capture=call.capture,
            timings=call.timings,
        )

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

    def _wait(self, call: Call, error: UpstreamError, repeated: int, *, broke: bool) -> float | None:
        """Seconds until a request that failed is sent again; None: it is not. `broke`: in an answer with status 200."""
        if error.kind != "rate_limit" and (not broke or call.request.get("stream") is True):
            return None
        decision = decide(error, attempt=repeated, visible=Visibility.BUFFERED, chance=self._services.random())
        if not isinstance(decision, Retry):
            return None
        fields = {"reqId": call.request_id, "attempt": repeated + 1, "kind": error.kind, "retryInS": decision.after}
        self._services.log.write("warn", LABEL, "native_repeated", **fields)
        return decision.after

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
