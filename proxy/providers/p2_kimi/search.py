"""Searches of P2: the service for the search tool of the vendor's own client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proxy.auth.store import CredentialSource
from proxy.core.search.results import Found, Result
from proxy.core.sse import dump_json
from proxy.errors import UpstreamError
from proxy.observe.lifecycle import UpstreamStarted
from proxy.providers.contract import SearchCall, Services
from proxy.providers.p2_kimi.account.device import device_headers, header_text, user_agent
from proxy.providers.p2_kimi.settings import KimiSettings
from proxy.providers.upstream.adapter import RequestCredential
from proxy.providers.upstream.attempts import Attempts
from proxy.providers.upstream.transport import HttpTransport, Service, UpstreamRequest

#: Names the call of the vendor's tool that a search belongs to.
CALL_HEADER = "X-Msh-Tool-Call-Id"


def found_in(answer: Mapping[str, Any]) -> Found | None:
    """What an answer found; None if it has no list of results.

    >>> found_in({"search_results": [{"title": "A", "url": "https://a.example", "snippet": "x"}]}).results
    (Result(title='A', url='https://a.example', text='x'),)
    """
    given = answer.get("search_results")
    if not isinstance(given, list):
        return None
    results = []
    for result in given:
        if isinstance(result, Mapping) and isinstance(url := result.get("url"), str):
            title, text, date = (_text(result.get(name)) for name in ("title", "snippet", "date"))
            results.append(Result(title or url, url, f"({date}) {text}" if date else text))
    return Found(tuple(results))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


class KimiSearch:
    """The searches of one account."""

    def __init__(
        self, services: Services, service: Service, credentials: CredentialSource, transport: HttpTransport
    ) -> None:
        self._services = services
        self._service = service
        self._credentials = credentials
        self._transport = transport

    async def search(self, call: SearchCall) -> Found:
        """Searches once: one renewal after a 401, the usual retries for failures that pass. Raises ProxyError."""
        services, config = self._services, self._services.config()
        url = f"{config.section(KimiSettings).base_url}/search"
        credential = RequestCredential(self._credentials, call.timings)
        await credential.get()
        device = await device_headers(services.config_dir, user_agent(config))
        body = dump_json({"text_query": call.query.text}).encode()

        async def recover(error: UpstreamError) -> bool:
            return error.status == 401 and await credential.renew()

        async def send(number: int) -> dict[str, Any]:
            call.record(UpstreamStarted(number))
            headers = {
                **device,
                "Authorization": f"Bearer {credential.current.access.reveal()}",
                "Content-Type": "application/json",
                "Accept-Encoding": "identity",
                CALL_HEADER: header_text(call.call_id),
            }
            request = UpstreamRequest(url, headers, body, call.request_id, number, call.capture, call.timings)
            return await self._transport.json(request)

        found = found_in(await Attempts(services, self._service, call.request_id, recover).ask(send))
        if found is None:
            raise UpstreamError(
                "the search answer has no list of results", kind="bad_answer", provider=self._service.label
            )
        return found
