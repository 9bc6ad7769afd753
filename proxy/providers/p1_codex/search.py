"""Searches of P1's search service, which needs no model turn around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proxy.core.convert.messages_to_search import (
    count_search_input,
    count_search_output,
    forced_query,
    found_in,
    search_body,
)
from proxy.core.foreign_text import foreign
from proxy.core.messages import MessageStream
from proxy.core.reducer import BadAnswer
from proxy.core.search.blocks import search_events
from proxy.core.search.results import Found, bounded
from proxy.core.sse import dump_json
from proxy.core.tokens.counting import Length
from proxy.core.tokens.usage import usage_of
from proxy.errors import UpstreamError
from proxy.observe.lifecycle import UpstreamStarted
from proxy.providers.contract import Call, SearchCall, Services
from proxy.providers.p1_codex import request as p1_request
from proxy.providers.p1_codex.catalog import CATALOG
from proxy.providers.p1_codex.failures import PROFILE
from proxy.providers.p1_codex.settings import CodexSettings
from proxy.providers.p1_codex.signed import Signer
from proxy.providers.upstream.event_reader import Batches
from proxy.providers.upstream.transport import HttpTransport


@dataclass(frozen=True, slots=True)
class _SearchBody:
    """A search, ready to be sent; `search_id` is also in its headers."""

    body: dict[str, Any]
    search_id: str
    input_tokens: int


class CodexSearch:
    """The searches of one account."""

    def __init__(self, services: Services, signer: Signer, transport: HttpTransport) -> None:
        self._services = services
        self._signer = signer
        self._transport = transport

    async def search(self, call: SearchCall) -> Found:
        """Searches once. Raises ProxyError."""
        return await self._found(call, await self._prepare(call))

    async def reply(self, call: Call, tool: Mapping[str, Any]) -> Batches:
        """The answer to a request that forces the search: its beginning, so that a slow search is not silent, and then
        the rest."""
        query = forced_query(call.request, tool)
        places = call.recorder, call.capture, call.timings
        search = SearchCall(query, call.request_id, "", call.target.model, call.session, call.owner, *places)
        prepared = await self._prepare(search)
        stream = MessageStream(f"msg_{self._services.new_id()}", call.shown, input_tokens=prepared.input_tokens)
        stream.start()
        yield stream.take()
        found = bounded(await self._found(search, prepared), query)
        block_id, text = f"srvtoolu_ws_{self._services.new_id()}", foreign(found.answer)
        yield search_events(stream, found, query=query.text, block_id=block_id, text=text)

    async def _prepare(self, call: SearchCall) -> _SearchBody:
        tokenizer = self._services.tokenizer
        owner = p1_request.search_owner(call.owner, call.session, self._services.new_id())
        model = call.model or CATALOG.small

        def work(length: Length) -> _SearchBody:
            truncate = tokenizer.truncate
            body = search_body(call.query, model=model, search_id=owner, length=length, truncate=truncate)
            return _SearchBody(body, owner, count_search_input(body, length))

        return await tokenizer.run(work)

    async def _found(self, call: SearchCall, prepared: _SearchBody) -> Found:
        answer = await self._ask(call, dump_json(prepared.body).encode(), prepared.search_id)
        output_tokens = await self._services.tokenizer.run(lambda length: count_search_output(answer, length))
        try:
            found = found_in(answer)
        except BadAnswer as error:
            raise PROFILE.error(str(error), kind="bad_answer") from None
        usage = usage_of(prepared.input_tokens, output_tokens)
        return Found(found.results, found.answer, usage=usage)

    async def _ask(self, call: SearchCall, body: bytes, search_id: str) -> dict[str, Any]:
        """Asks the search service: one refresh after a 401, the usual retries for failures that pass."""
        config = self._services.config()
        headers = p1_request.search_headers(config, search_id)
        codex = config.section(CodexSettings)
        url = p1_request.search_url(codex.base_url)
        signed = self._signer.request(call.request_id, call.timings)

        async def send(number: int) -> dict[str, Any]:
            call.record(UpstreamStarted(number))
            await signed.locate()
            return await self._transport.json(signed.post(codex, headers, body, number, url=url, capture=call.capture))

        await signed.credential.get()
        try:
            return await signed.attempts().ask(send)
        except UpstreamError as error:
            raise signed.client_error(error) from None
