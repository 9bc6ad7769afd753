"""P5 as the server sees it."""

from __future__ import annotations

import os
import platform
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from proxy.core.effort import effort_asked
from proxy.core.ingress import BridgedTools, IngressRules
from proxy.core.models import ModelFacts, word_in
from proxy.providers.base import SignedInProvider
from proxy.providers.contract import Call, Services, Target
from proxy.providers.p5_cursor.account.signin import cursor_credentials
from proxy.providers.p5_cursor.adapter import CursorAdapter, CursorState, CursorWire, Machine, owner_of_run
from proxy.providers.p5_cursor.bridge.open_runs import OpenRuns
from proxy.providers.p5_cursor.catalog import LABEL, known_ids
from proxy.providers.p5_cursor.conversations import Conversations
from proxy.providers.p5_cursor.entry import CURSOR
from proxy.providers.p5_cursor.models import select
from proxy.providers.p5_cursor.settings import CursorSettings
from proxy.providers.p5_cursor.wire.envelopes import call_headers
from proxy.providers.p5_cursor.wire.protobuf import decode
from proxy.providers.upstream.adapter import RequestCredential
from proxy.providers.upstream.attempts import AttemptRunner
from proxy.providers.upstream.event_reader import Batches
from proxy.providers.upstream.model_list import ListQuestion

#: Pictures go along with a run unchanged, and none is fetched. The service decides how long an answer may be.
INGRESS = IngressRules(
    image_urls=False, tools=BridgedTools("Cursor", frozenset({"Read", "Write", "Bash"})), honours=frozenset({"stop"})
)

_LIST_PATH = "/agent.v1.AgentService/GetUsableModels"
#: This endpoint refuses envelopes, and the content type of streams.
_LIST_TYPE = "application/proto"


class CursorProvider(SignedInProvider[CursorSettings]):
    """The Cursor subscription."""

    entry, section = CURSOR, CursorSettings

    def __init__(self, services: Services) -> None:
        settings = services.config().section(CursorSettings)
        credentials = cursor_credentials(services.lent, settings, services.client_for(settings.base_url))
        super().__init__(services, credentials)
        self._state = CursorState(
            OpenRuns(),
            Conversations(services.clock, services.new_id),
            machine_here(),
        )

    @property
    def open_runs(self) -> OpenRuns:
        """The runs that are answering, or waiting for a tool of their client."""
        return self._state.runs

    def ingress(self, model: str) -> IngressRules:
        return INGRESS

    def hosted_tools(self, model: str) -> frozenset[str]:
        return frozenset({"web_search", "web_fetch"})  # the model has both, even if a request does not ask for them

    def reports_cached(self, model: str) -> bool:
        return False

    def resolve(self, model: str, request: Mapping[str, Any], *, auto_review: bool) -> Target:
        added = self._settings.models
        selection = select(model, request, known_ids(added, self._offered), added)
        return Target(selection.model_id, effort=effort_asked(request, none=True), blind="results")

    async def count_tokens(self, call: Call) -> int:
        return await CursorWire(call, self._services).count()

    def stream(self, call: Call) -> Batches:
        adapter = CursorAdapter(call, self._services, self._state, RequestCredential(self._credentials, call.timings))
        return AttemptRunner(call, self._services, adapter).run()

    async def _model_question(self) -> ListQuestion:
        settings, call_id = self._settings, str(uuid.UUID(self._services.new_id()))
        access = (await self._credentials.get()).access
        headers = call_headers(access.reveal(), settings.client_version, call_id, call_id, _LIST_TYPE)
        url = settings.base_url + _LIST_PATH
        return ListQuestion(url, headers, _offered_model, "models", body=b"", rows=_list_rows)

    def served_elsewhere(self, call: Call) -> None:
        """Drops a waiting run whose tool result went to another provider, which has the conversation now."""
        owner = owner_of_run(call)
        for run in self._state.runs.answered_elsewhere(owner, call.request) if owner is not None else ():
            self._services.log.write("info", LABEL, "cursor_conversation_moved", reqId=call.request_id, run=run.id)

    async def close(self) -> None:
        await self._state.runs.close()
        await super().close()


def machine_here() -> Machine:
    """The machine that this process runs on."""
    system = f"{platform.system().lower()} {platform.machine()}"
    try:
        workspace = str(Path.cwd())
    except OSError:  # it was removed under a running process
        workspace = ""
    return Machine(system, os.environ.get("SHELL", ""), workspace)


def _list_rows(body: bytes) -> Iterator[Mapping[str, Any]]:
    """The rows of an answer as a message. Raises ValueError."""
    for row in decode("GetUsableModelsResponse", body).get("models", ()):
        yield {"modelId": row.get("model_id"), "displayName": row.get("display_name")}


def _offered_model(row: Mapping[str, Any]) -> tuple[Any, ModelFacts]:
    """A row of the service's list: id and facts.

    >>> _offered_model({"modelId": "gpt-5.5", "displayName": "GPT-5.5"})[1].title
    'GPT-5.5'
    """
    return row.get("modelId"), ModelFacts(title=word_in(row.get("displayName")) or "")
