"""P3 as the server sees it, and as an upstream: how its requests, answers and failures differ from others'.

The service uses one status for several things: a 403 is a missing entitlement, a spent budget or a refused token, and a
bad image may come as a 500. The shared reading of failures knows its codes; this module knows its statuses and the
cures.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any

from proxy.auth.store import CredentialSource
from proxy.core.convert.responses.searches import reports_search, search_of
from proxy.core.convert.whole_answers import response_events
from proxy.core.effort import EFFORTS
from proxy.core.ingress import WEB_SEARCH, HostedTool, IngressRules
from proxy.core.invalid import cut
from proxy.core.messages import Fold
from proxy.core.reducer import AnswerRules
from proxy.core.responses_events import is_last
from proxy.core.search.results import Found
from proxy.core.upstream_failures import Failure
from proxy.core.visible import Visible
from proxy.errors import PROGRAM, UpstreamError
from proxy.observe.lifecycle import Log
from proxy.providers.accounts.usage_report import UsageReport
from proxy.providers.base import SignedInProvider
from proxy.providers.contract import Call, SearchCall, Services, Target
from proxy.providers.p3_grok.account import usage_windows
from proxy.providers.p3_grok.account.signin import p3_credentials
from proxy.providers.p3_grok.catalog import LABEL, MODELS, NEWEST, offered_model
from proxy.providers.p3_grok.entry import GROK
from proxy.providers.p3_grok.request import (
    SAMPLING,
    Written,
    answer_headers,
    client_headers,
    count,
    responses_body,
    target_of,
)
from proxy.providers.p3_grok.search import MAX_ANSWER_CHARS, WEB, X, found_in, search_request
from proxy.providers.p3_grok.settings import GrokSettings
from proxy.providers.upstream import failures
from proxy.providers.upstream.adapter import RequestBody, RequestCredential, translated
from proxy.providers.upstream.attempts import AttemptRunner
from proxy.providers.upstream.event_reader import Batches
from proxy.providers.upstream.model_list import ListQuestion
from proxy.providers.upstream.new_models import NewModels
from proxy.providers.upstream.responses_wire import ResponsesWire
from proxy.providers.upstream.transport import (
    HttpTimers,
    HttpTransport,
    Transport,
    UpstreamProfile,
    UpstreamRequest,
)

SERVICE = "grok"

#: Characters of the service's message that are shown.
MAX_WORDS = 280

#: Upstream's status -> ours: clients hide the words of a 404, and take a 426 for one about WebSockets.
_STATUSES = {404: 400, 426: 400}

#: Statuses that pass with other services. Here the model may be at work on the request, and a search would be made
#: twice.
_FINAL = frozenset({408, 409})

#: A test of a failure and its text in lower case -> the cure. The first match is shown.
_CURES: tuple[tuple[Callable[[Failure, str], bool], str], ...] = (
    (
        lambda failure, _: failure.status == 426,
        "set PROXY_P3_CLIENT_VERSION, or p3.clientVersion in the config file, to a version that it accepts",
    ),
    (
        lambda failure, words: failure.code == "invalid_image" or "could not process image" in words,
        "an image of this conversation is refused: leave images out with PROXY_P3_TOOL_IMAGE=omit, or begin a new "
        "conversation",
    ),
    (
        lambda failure, _: "free-usage-exhausted" in (failure.code or ""),
        "the free allowance counts the last 24 hours and comes back by and by; a subscription has a larger one: "
        "https://grok.com",
    ),
    (
        lambda failure, _: failure.kind == "billing",
        "no credits are left, or the spending limit is reached: see credits and plan at https://grok.com; signing in "
        "again does not help",
    ),
    (
        lambda failure, _: failure.kind == "permission",
        "the account, its plan, team or region has no access to this, or no credits; signing in again does not help",
    ),
    (
        lambda failure, words: failure.status in (400, 404) and "model" in words and "not exist" in words,
        "which models there are depends on the plan and the region of the account",
    ),
)


def upstream_error(failure: Failure, upstream_id: str | None = None) -> UpstreamError:
    """A reported failure as the error to raise."""
    words, lower = failure.message, failure.message.lower()
    if len(words) > MAX_WORDS:
        words = f"{words[: MAX_WORDS - 1]}…"
    if failure.kind == "context" and "prompt is too long" not in lower:
        words = f"prompt is too long: {words}"
    cure = next((cure for fits, cure in _CURES if fits(failure, lower)), None)
    worded = replace(failure, message=f"{words} ({LABEL}: {cure})" if cure else words)
    error = failures.upstream_error(LABEL, worded, upstream_id)
    if failure.status in _FINAL:
        return error.replaced(final=True)
    status = _STATUSES.get(failure.status)
    return error if status is None else error.replaced(kind="invalid_request", status=status)


client_error = partial(failures.client_error, sign_in_hint=f"sign in again: `{PROGRAM} auth login {LABEL}`")

#: Headers in which the service describes the model.
NOTED = ("x-grok-context-window", "x-grok-max-completion-tokens", "x-models-etag")

PROFILE = UpstreamProfile(
    LABEL, SERVICE, is_last, upstream_error, whole=response_events, empty_is_failure=True, lenient=True, noted=NOTED
)


#: A failure without a known name is not repeated: a search may have been made.
_UNNAMED = ("upstream", 502)


def answer_rules(grok: GrokSettings, *, converted: bool) -> AnswerRules:
    """The rules for one answer. `converted`: see `Call`; other APIs have items for searches, whatever the setting
    says."""
    return AnswerRules(
        search="blocks" if converted or grok.search_blocks == "native" else "text",
        cites=True,
        parts=True,
        exact=True,
        any_limit=True,
        reported_usage=True,
        unnamed=_UNNAMED,
        unexplained=_UNNAMED,
    )


#: Parts of an answer and their events, as the vendor's own client knows them.
_LIVES = {
    "output_item": "added done",
    "content_part": "added done",
    "output_text": "delta done annotation.added",
    "refusal": "delta done",
    "function_call_arguments": "delta done",
    "reasoning_summary_part": "added done",
    "reasoning_summary_text": "delta done",
    "reasoning_text": "delta done",
    "web_search_call": "in_progress searching completed",
    "x_search_call": "in_progress searching completed",
    "custom_tool_call_input": "delta done",
}
_WHOLE = "created queued in_progress completed failed incomplete doom_loop_check"
_KNOWN = frozenset(
    {
        *("error", "keepalive", "ping", "rate_limits.updated"),
        *(f"response.{name}" for name in _WHOLE.split()),
        *(f"response.{part}.{step}" for part, steps in _LIVES.items() for step in steps.split()),
    }
)


def not_shown(event: Mapping[str, Any]) -> str | None:
    """A part of an event that the client never sees, in words for the log; None for a part that is shown, or says
    nothing.

    >>> not_shown({"type": "response.mcp_call.completed"}), not_shown({"type": "response.created"})
    ('event response.mcp_call.completed', None)
    """
    kind, item = event.get("type"), event.get("item")
    if not isinstance(kind, str):
        return None
    if kind not in _KNOWN:
        return f"event {cut(kind)}"
    is_call = (
        kind == "response.output_item.done" and isinstance(item, Mapping) and item.get("type") == "custom_tool_call"
    )
    return f"call of {cut(str(item.get('name')))}" if is_call and item and search_of(item) is None else None


#: Options of the service that the hub has no words for.
X_SEARCH = HostedTool(
    {"type": "x_search", "name": "x_search"},
    refused=frozenset({"allowed_x_handles", "excluded_x_handles", "from_date", "to_date"}),
)

INGRESS = IngressRules(
    efforts=("none", *EFFORTS),
    hosted={"web_search": WEB_SEARCH, "x_search": X_SEARCH},
    honours=frozenset({"max_tokens", "stop", *SAMPLING}),
    formats=frozenset({"json_schema"}),
)


def responses_url(base_url: str) -> str:
    """The endpoint below a base; a base that is already the endpoint is kept.

    >>> responses_url("https://h/v1"), responses_url("https://h/custom/responses")
    ('https://h/v1/responses', 'https://h/custom/responses')
    """
    return base_url if base_url.endswith("/responses") else f"{base_url}/responses"


#: Most kinds of unseen parts of an answer that the log names.
MAX_NOTES = 10


class GrokEventNotes:
    """Side notes from the events of an answer. A separate object, so that no wire refers back to its adapter.

    searched  whether something was searched for
    """

    def __init__(self, request_id: str, log: Log) -> None:
        self._request_id = request_id
        self._log = log
        self._noted: set[str] = set()
        self.searched = False

    def observe(self, event: Mapping[str, Any]) -> None:
        self.searched = self.searched or reports_search(event)
        note = not_shown(event)
        if note is not None and note not in self._noted and len(self._noted) < MAX_NOTES:
            self._noted.add(note)
            self._log.write("info", LABEL, "grok_answer_reduced", reqId=self._request_id, note=note)


class GrokAdapter:
    """One request to P3."""

    profile = PROFILE

    def __init__(
        self, call: Call, services: Services, written: Written, *, transport: Transport, credentials: CredentialSource
    ) -> None:
        self._call = call
        self._grok = services.config().section(GrokSettings)
        self._transport = transport
        self._credential = RequestCredential(credentials, call.timings)
        self._notes = GrokEventNotes(call.request_id, services.log)
        self._turn = str(uuid.UUID(services.new_id()))
        if written.notes:
            services.log.write("info", LABEL, "grok_request_reduced", reqId=call.request_id, notes=list(written.notes))
        self.wire = ResponsesWire(
            call,
            services,
            PROFILE,
            RequestBody(written.body, large=call.large),
            offsets=None,
            signatures=services.signs_as(LABEL) if self._grok.encrypted_reasoning else "",
            rules=answer_rules(self._grok, converted=call.converted),
            restores=False,
            count=lambda body, _length: count(body),
            observe=self._notes.observe,
        )

    async def sign_in(self) -> None:
        await self._credential.get()

    def contact(self, number: int) -> Batches:
        sent = answer_headers(self._grok.client_version, self._call.session, self._turn)
        sent["authorization"] = f"Bearer {self._credential.current.access.reveal()}"
        call, url, payload = self._call, responses_url(self._grok.base_url), self.wire.body.written
        return self._transport(UpstreamRequest(url, sent, payload, call.request_id, number, call.capture, call.timings))

    def contextualise(self, error: UpstreamError, visible: Visible) -> UpstreamError:
        """Makes the error final once a search was made: it costs, and is not repeated for an answer that broke."""
        return error.replaced(repeatable=False) if self._notes.searched else error

    async def recover(self, error: UpstreamError) -> bool:
        """Renews a refused token; this service also refuses with a 403."""
        return error.kind == "sign_in" and await self._credential.renew()

    def client_error(self, error: UpstreamError) -> UpstreamError:
        return client_error(error)


class GrokProvider(SignedInProvider[GrokSettings]):
    """The Grok subscription."""

    entry, section = GROK, GrokSettings

    def __init__(self, services: Services) -> None:
        grok = services.config().section(GrokSettings)
        credentials = p3_credentials(services.lent, grok.issuer, services.client_for(grok.issuer))
        super().__init__(services, credentials)
        self._new_models = NewModels(services.log, LABEL)
        http, timers = services.client_for(grok.base_url), services.tuning.of(HttpTimers)
        self._transport = HttpTransport(PROFILE, http, services.log, services.clock, timers=timers)

    def ingress(self, model: str) -> IngressRules:
        return INGRESS

    def hosted_tools(self, model: str) -> frozenset[str]:
        return frozenset({WEB, X})

    def resolve(self, model: str, request: Mapping[str, Any], *, auto_review: bool) -> Target:
        settings, offered = self._settings, self._offered
        added, omits = settings.models, settings.tool_image == "omit"
        target = target_of(model, request, added, offered, blind="anywhere" if omits else "")
        known = target.model in MODELS or target.model in dict(added)
        if not known and (offered is None or target.model not in offered.models):
            self._new_models.met(target.model, NEWEST.id)
        return target

    async def _model_question(self) -> ListQuestion:
        access, grok = (await self._credentials.get()).access, self._settings
        headers = {**client_headers(grok.client_version), "Authorization": f"Bearer {access.reveal()}"}
        return ListQuestion(f"{grok.base_url.rstrip('/').removesuffix('/responses')}/models", headers, offered_model)

    async def count_tokens(self, call: Call) -> int:
        return await self._services.tokenizer.run(lambda _length: count(self._written(call).body))

    def stream(self, call: Call) -> Batches:
        return translated(call, lambda: self._written(call), partial(self._ask, call))

    def _written(self, call: Call) -> Written:
        constraints = self._services.config().search_constraints
        return responses_body(call, self._settings, constraints, self._services.signs_as(LABEL))

    def _ask(self, call: Call, written: Written) -> Batches:
        adapter = GrokAdapter(
            call, self._services, written, transport=self._transport.stream, credentials=self._credentials
        )
        return AttemptRunner(call, self._services, adapter).run()

    async def search(self, call: SearchCall) -> Found:
        """Searches once: a request with the hosted search alone, whose answer is read whole."""
        model = call.model or NEWEST.id
        request = search_request(call.query, model)
        target = self.resolve(model, request, auto_review=False)
        asked = Call(request, model, target, call.request_id, folded=True, converted=True)
        asked = replace(asked, recorder=call.recorder, capture=call.capture, timings=call.timings)
        fold = Fold(MAX_ANSWER_CHARS)
        async with aclosing(self.stream(asked)) as batches:
            async for batch in batches:
                try:
                    fold.add(batch)
                except OverflowError as error:
                    raise PROFILE.error(str(error), kind="bad_answer") from None
        return found_in(fold.message)

    async def ask_allowance(self) -> UsageReport:
        grok = self._settings
        http = self._services.client_for(grok.base_url)
        return await usage_windows.ask(self._credentials, grok, http, self._services.clock)
