"""The account's models as the service names them. They are asked for in the background; requests never wait for them.

Until the service has answered, or if it does not, the snapshot is used. Failures are only logged.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from proxy.auth.store import CredentialSource
from proxy.core.bodies.decode import load_long_json
from proxy.core.hiding.secret import Secret
from proxy.core.routing import Added, Catalog
from proxy.errors import ProxyError, SignInError
from proxy.providers.contract import Services
from proxy.providers.p5_cursor.catalog import LABEL, MAX_ID, catalog_of
from proxy.providers.p5_cursor.settings import CursorSettings
from proxy.providers.p5_cursor.snapshot import SNAPSHOT
from proxy.providers.p5_cursor.wire.envelopes import call_headers
from proxy.providers.p5_cursor.wire.protobuf import decode

PATH = "/agent.v1.AgentService/GetUsableModels"
#: This endpoint refuses envelopes, and the content type of streams.
CONTENT_TYPE = "application/proto"

#: A longer answer is rejected; the service names some hundred models.
MAX_BODY_BYTES = 1024 * 1024
MAX_MODELS = 1000
#: The first question, and one more when it did not get through.
ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class CatalogTimers:
    """Seconds that one question may take, and that its answer is valid."""

    answer: float = 8.0
    fresh: float = 300.0


class _NoCatalog(Exception):
    """There is no list; the text is the reason for the log."""


class LiveCatalog:
    """The catalogue of one application; `close` it at the end."""

    def __init__(self, services: Services, credentials: CredentialSource) -> None:
        self._services = services
        self._credentials = credentials
        self._timers = services.tuning.of(CatalogTimers)
        self._ids: tuple[str, ...] = SNAPSHOT
        self._asked_with: Secret | None = None
        self._fresh_until = 0.0
        self._refreshing: asyncio.Task[None] | None = None
        self._noted = ""

    def ids(self) -> tuple[str, ...]:
        """Ids of the service: the latest it named, else the snapshot."""
        return self._ids

    def catalog(self, added: Added = ()) -> Catalog:
        """The catalogue with these ids, and with those of the settings."""
        return catalog_of(added, self._ids)

    def refresh_soon(self) -> None:
        """Asks the service in the background, unless it was asked for this account within the last minutes."""
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._refresh())

    async def close(self) -> None:
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.wait([self._refreshing])

    async def _refresh(self) -> None:
        try:
            access = (await self._credentials.get()).access
            if access == self._asked_with and self._services.clock() < self._fresh_until:
                return
            self._asked_with, self._fresh_until = access, self._services.clock() + self._timers.fresh
            self._adopt(await self._ask(access))
        except SignInError:
            return  # the current request reports the failure
        except (ProxyError, _NoCatalog) as error:
            self._tell("warn", "cursor_models_not_listed", str(error))

    def _adopt(self, ids: tuple[str, ...]) -> None:
        if ids != self._ids:
            self._ids = ids
        self._tell("info", "cursor_models_listed", f"{len(ids)} models")

    def _tell(self, level: str, msg: str, detail: str) -> None:
        """Logs a note once until it changes: the service is asked every few minutes."""
        if self._noted != msg + detail:
            self._noted = msg + detail
            self._services.log.write(level, LABEL, msg, detail=detail)

    async def _ask(self, access: Secret) -> tuple[str, ...]:
        """Asks the service. Raises _NoCatalog."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                async with asyncio.timeout(self._timers.answer):
                    return await asyncio.to_thread(model_ids, await self._answer(access))
            except (TimeoutError, aiohttp.ClientError, OSError) as error:
                if attempt == ATTEMPTS:
                    raise _NoCatalog(f"no answer ({type(error).__name__})") from None
        raise AssertionError("unreachable")

    async def _answer(self, access: Secret) -> bytes:
        settings = self._services.config().section(CursorSettings)
        call_id = str(uuid.UUID(self._services.new_id()))
        headers = call_headers(access.reveal(), settings.client_version, call_id, call_id, CONTENT_TYPE)
        session = self._services.client_for(settings.base_url)
        url = settings.base_url + PATH
        async with session.post(url, data=b"", headers=headers, allow_redirects=False) as response:
            if response.status != 200:
                raise _NoCatalog(f"status {response.status}")
            body = bytearray()
            while chunk := await response.content.readany():
                body += chunk
                if len(body) > MAX_BODY_BYTES:
                    raise _NoCatalog(f"the answer passed {MAX_BODY_BYTES} bytes")
            return bytes(body)


def model_ids(body: bytes) -> tuple[str, ...]:
    """The ids in an answer, each once and in its order. Raises _NoCatalog when there are none.

    >>> model_ids(b'{"models": [{"modelId": "gpt-5.5"}, {"modelId": "auto"}]}')
    ('gpt-5.5', 'auto')
    """
    try:
        rows = list(_json_rows(body) if body[:1] == b"{" else _proto_rows(body))
    except (ValueError, RecursionError) as error:
        raise _NoCatalog(f"the answer cannot be read ({type(error).__name__})") from None
    ids = tuple(dict.fromkeys(_fit(rows)))[:MAX_MODELS]
    if not ids:
        raise _NoCatalog("the answer names no model")
    return ids


def _json_rows(body: bytes) -> Iterator[Any]:
    answer = load_long_json(body)
    models = answer.get("models") if isinstance(answer, Mapping) else None
    for model in models if isinstance(models, list) else ():
        yield model.get("modelId") if isinstance(model, Mapping) else None


def _proto_rows(body: bytes) -> Iterator[Any]:
    for model in decode("GetUsableModelsResponse", body).get("models", ()):
        yield model.get("model_id")


def _fit(ids: Iterable[Any]) -> Iterator[str]:
    """The ids that may follow a prefix."""
    for model in ids:
        if isinstance(model, str) and 0 < len(model) <= MAX_ID and model.isprintable() and " " not in model:
            yield model
