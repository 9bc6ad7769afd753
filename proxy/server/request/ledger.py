"""Reports the course of a request to log, monitor, metrics and captures, and compares it with the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

from aiohttp import web

from proxy.core.hiding.texts import shown_query
from proxy.core.identity import agents_of
from proxy.core.invalid import cut
from proxy.core.tokens.usage import CACHED, INPUTS, reported_count, search_count, thinking_tokens
from proxy.errors import ProxyError
from proxy.observe.capture.contract import NULL_CAPTURE, CapturedRequest, RequestCapture
from proxy.observe.lifecycle import (
    SPANS,
    Abandoned,
    CacheChecked,
    Captured,
    Completed,
    Event,
    Failed,
    FellBack,
    GenerationStarted,
    InputEstimated,
    ModelResolved,
    ProviderSelected,
    Recorder,
    Sequenced,
    Started,
    Timed,
    UpstreamAnswered,
    UsageUpdated,
)
from proxy.providers.contract import Target
from proxy.server.request.cache_watch import CacheCheck, ComparedRequest
from proxy.server.request.candidates import Candidate
from proxy.server.request.event_lines import EVENT_LINES
from proxy.server.request.inquiry import TIMING_HEADER, Inquiry, id_headers
from proxy.server.request.picture_memory import Descriptions
from proxy.server.request.replies import break_connection

#: Header with the paths of the members that a request asked for and did not get.
IGNORED_HEADER = "x-model-proxy-ignored"
#: Longest value of that header, since a body may have any number of members.
MAX_IGNORED = 1000
#: Header with the account that served a request, if its provider has several.
ACCOUNT_HEADER = "x-model-proxy-account"
#: Header with the models in `stands_in`, and the reason.
FALLBACK_HEADER = "x-model-proxy-fallback"
#: Headers with the account that searches the web for the model, and with that of the one that described pictures.
SEARCH_HEADER, VISION_HEADER = "x-model-proxy-search", "x-model-proxy-vision"

STOPPED = "Request ended before completion: the proxy was stopped"
LEFT = "Request ended before completion: the client left"


class Ledger:
    """The facts of one request, from its arrival to its last byte, and their reports.

    serving   the candidate that answers, or tries to; None before it is known
    label, model  the provider and model of the candidate; or those that the client named, which may not be served
    session   the session by which the account is chosen, None for a request without one
    response  the answer once its head is sent: then no other is possible
    size      bytes of the body, unpacked
    pictures  number of pictures in the request
    described     the descriptions of them, None before some are looked for
    names_directory  whether the body has words beside a working directory, so that it is worth looking for one
    searcher  the account that may search for the model, "" for the one that answers, None if none does
    searched  whether a search was made for the answer, so that no other model may begin anew
    """

    def __init__(self, inquiry: Inquiry, *, leave: Callable[[], None]) -> None:
        """`leave` frees the place among the requests that are served at one time."""
        self.inquiry = inquiry
        self.serving: Candidate | None = None
        self.label: str | None = None
        self.model: str | None = None
        self.session: str | None = None
        self.response: web.StreamResponse | None = None
        self.capture: RequestCapture = NULL_CAPTURE
        self.cache: CacheCheck | None = None
        self.size = self.pictures = 0
        self.described: Descriptions | None = None
        self.names_directory = self.searched = False
        self.searcher: str | None = None
        self._leave = leave
        self._state = inquiry.state
        self._monitor = inquiry.state.monitor
        self._timings = inquiry.timings
        self._timings.tell = partial(_upstream_answered, self._monitor, inquiry.id)
        self._received = b""
        self._number = 0
        self._ignored: tuple[str, ...] = ()
        self._stands_in = self._stop = ""
        self._earlier = 0
        self._first: tuple[Candidate | None, str | None, str | None] = None, None, None
        self._spans: Mapping[str, float] = {}
        self._outcome: tuple[str, int | None, str | None] | None = None

    @property
    def head(self) -> dict[str, str]:
        """The headers of every answer: the request's id under the names that the SDKs read, its times so far, the
        account and model that answer, and what was ignored."""
        head = id_headers(self.inquiry.id) | {TIMING_HEADER: self._timings.header()}
        if self.serving is not None and self.serving.account:
            head[ACCOUNT_HEADER] = self.serving.account
        if self._state.running.draining:
            head["Connection"] = "close"
        if self.described is not None and self.described.by:
            head[VISION_HEADER] = self.described.by
        if self.searcher is not None:
            head[SEARCH_HEADER] = self.searches_by
        if self._stands_in:
            head[FALLBACK_HEADER] = self._stands_in
        if self._ignored:
            head[IGNORED_HEADER] = cut(", ".join(self._ignored), MAX_IGNORED)
        return head

    # -- on the way

    def serves(self, candidate: Candidate) -> None:
        """Notes the candidate that answers, or tries to."""
        self.serving, self.label, self.model = candidate, candidate.label, candidate.model or None

    @property
    def account(self) -> str:
        """The name of the account that answers, "" if its provider has only one."""
        return "" if self.serving is None else self.serving.account

    @property
    def searches_by(self) -> str:
        """The account that may search for the model, as tables and logs show it."""
        return self.searcher or ("" if self.serving is None else self.serving.key)

    def blames_first(self) -> None:
        """Reports the end of the request under the model that was asked first."""
        self.serving, self.label, self.model = self._first

    def names(self, label: str | None, model: str | None) -> None:
        """Notes what the client asks for, which may not be served."""
        self.label, self.model = label, model

    def tell(self, event: Event) -> None:
        """Records an event in the monitor, and in the log if it has a line there."""
        self._monitor.record(self.inquiry.id, event)
        line = EVENT_LINES.get(type(event))
        if line is not None:
            level, msg, fields = line(event)
            self.note(level, msg, **fields)

    def generating(self) -> None:
        """Reports that the answer has begun."""
        self.tell(GenerationStarted())
        self._timings.generating()
        if self.cache is not None:
            self.cache.answer_began()

    def note(self, level: str, msg: str, **fields: Any) -> None:
        """Adds a record to the log only."""
        inquiry, serving = self.inquiry, self.serving
        known: dict[str, Any] = {
            "reqId": inquiry.id,
            "endpoint": inquiry.endpoint,
            "provider": self.label,
            "model": self.model,
            "account": (serving.account or None) if serving else None,
            "caller": inquiry.caller_name,
            **fields,
        }
        self._state.log.write(level, "server", msg, **{key: value for key, value in known.items() if value is not None})

    def notice(self, level: str, words: str) -> None:
        """Shows a line in the monitor."""
        self._monitor.notice(level, words, provider=self.label, session=self.session)

    def arrived(self) -> None:
        """Reports the arrival of the request's head."""
        inquiry, request = self.inquiry, self.inquiry.request
        agents = agents_of(inquiry.values)
        self.tell(Started(inquiry.endpoint, inquiry.session, *agents, inquiry.client_id, inquiry.caller_name))
        asked = {"method": request.method, "path": request.path, "clientId": inquiry.client_id}
        if request.query_string:
            asked["query"] = shown_query(request.query_string)
        self.note("info", "request", **asked)

    def read(self, body: bytes | bytearray) -> None:
        """Notes the unpacked body; a capture will begin with it."""
        self._timings.admitted()
        self.size = len(body)
        if self._state.captures.on:
            self._received = bytes(body)

    def forget_body(self) -> None:
        """Releases the body: no other model answers, so no other capture begins."""
        self._received = b""

    def ignores(self, paths: Iterable[str]) -> None:
        """Notes what is left out of the request although it asks for something, before the answer begins."""
        self._ignored = tuple(quote(cut(path), safe="[]_.: ") for path in paths)
        if self._ignored:
            self.note("info", "ignored", ignored=", ".join(self._ignored))

    def selected(
        self, candidate: Candidate, target: Target, session: str | None, converted: Mapping[str, Any] | None = None
    ) -> None:
        """Reports that a candidate is asked with a valid request: counts it in its session, and begins a capture.

        converted  the hub request that the body became, if it is different
        """
        if not self._stands_in:  # the same request counts once, and aliases follow what the client named
            explicit = not (candidate.alias or candidate.auto_review)
            number = self._state.sessions.routed(session, candidate.label, explicit=explicit)
            if number is not None:
                self._number = number
                self.tell(Sequenced(number))
        self.tell(ProviderSelected(candidate.key, candidate.model, target.effort))
        self.tell(ModelResolved(candidate.model, target.model))
        if self._state.captures.on:
            self._begin_capture(candidate, target, session, converted)

    def _begin_capture(
        self, candidate: Candidate, target: Target, session: str | None, converted: Mapping[str, Any] | None
    ) -> None:
        request = self.inquiry.request
        self.capture = self._state.captures.begin(
            CapturedRequest(
                request_id=self.inquiry.id,
                kind=self.inquiry.endpoint,
                provider=candidate.label,
                requested=candidate.asked,
                model=target.model,
                effort=target.effort,
                session=session,
                number=self._number,
                method=request.method,
                path=request.path,
                query=shown_query(request.query_string),
                headers=request.headers,
                body=self._received,
                converted=converted,
                earlier=self._earlier,
            )
        )
        if self.capture.place:
            self.tell(Captured(self.capture.place))

    def compares(self, asked: ComparedRequest) -> None:
        """Begins to compare the call with its owner's call before it, as an upstream's cache would."""
        said = () if self.described is None else self.described.said
        self.cache = CacheCheck(self._state.cache, asked, self._state.clock, said)

    def account_moves(self, before: Candidate, after: Candidate, effort: str | None, reason: str) -> None:
        """Reports that another account continues the request."""
        self.serves(after)
        if self.cache is not None:
            self.cache.moved(after.provider)
        self.note("warn", "account_moved", before=before.account, reason=reason)
        self.tell(ProviderSelected(after.key, after.model, effort))
        self.notice("warn", f"{before.key} is spent; {after.key} serves instead of it")

    def falls_back(self, before: str, instead: str, stands_in: str, error: ProxyError, reason: str) -> None:
        """Reports that another model answers the body, as if the client had named it."""
        if not self._earlier:
            self._first = self.serving, self.label, self.model
        self.note("warn", "fallback", before=before, instead=instead, reason=reason)
        self.tell(FellBack(before, instead, error.kind))
        self.notice("warn", f"{before} could not serve ({error.kind}); {instead} serves instead of it")
        self.capture.ended("failed", error.status, error.message)
        self.capture = NULL_CAPTURE
        if self.cache is not None:
            self.cache.close()
            self.cache = None
        self._timings.began_anew()
        self._ignored = ()
        if self.described is not None:
            self.described.begin_anew()
        self._stands_in = stands_in
        self._earlier += 1

    def used(self, event: Mapping[str, Any]) -> None:
        """Reports the token counts of a `message_start` or `message_delta`."""
        usage = event.get("usage") or event.get("message", {}).get("usage") or {}
        total: int | None = None
        for name in INPUTS:
            if name in usage and (count := reported_count(usage[name])) is not None:
                total = (total or 0) + count
        if event["type"] == "message_start":
            self.tell(InputEstimated(total or 0))
            return
        cached = reported_count(usage.get(CACHED))
        cached = cached if self.cache is None else self.cache.used(total, cached)
        self._stop = event.get("delta", {}).get("stop_reason") or self._stop
        output, thinking = reported_count(usage.get("output_tokens")), thinking_tokens(usage)
        self.tell(UsageUpdated(total, output, cached, thinking, search_count(usage)))

    def replied(self, response: web.Response) -> None:
        """Gives the capture an answer that is sent whole."""
        if isinstance(response.body, bytes):
            self.capture.replied(response.body)

    # -- the end: the first report counts. A client may leave between the last byte of its answer and the end of our
    # work, or send its next request, which may be its only one.

    def completed(self, status: int) -> None:
        """Reports that the whole answer was sent."""
        self._leave()
        if not self._ends("completed", status):
            return
        serving = self.serving
        if serving is not None and not self.inquiry.counts and status < 400:
            self._state.allowances.served(serving.key, serving.model)
        shares = {} if self.cache is None else self._check_cache(self.cache)
        self.tell(Completed(status, self._stop))
        self.note("info", "request_completed", status=status, **self._known(), **shares)

    def failed(self, error: ProxyError, *, in_band: bool = False) -> None:
        """Reports an error that was answered: with a status, or `in_band` as an event of a stream that had begun."""
        family = self.inquiry.family
        status, message = 200 if in_band else family.error_status(error), _one_line(error.message)
        if not self._ends("failed", status, message):
            return
        self.tell(Failed(status, message, error.kind))
        fields = self._known() | {"status": status, "message": message, "capture": self.capture.place}
        if error.upstream_id:
            fields["upstreamId"] = error.upstream_id
        if in_band:
            fields |= {"phase": "response_body", "inBandSse": True}
        elif family.keeps_errors:
            fields["errorFile"] = self._error_file(error, status)
        self.note("warn", "request_failed", **fields)

    def abandoned(self) -> None:
        """Reports that the client left or the proxy stops, so that there is no answer."""
        reason = STOPPED if self._state.running.draining and not self.inquiry.left else LEFT
        if not self._ends("abandoned", None if self.response is None else self.response.status, reason):
            return
        self.tell(Abandoned(reason))
        self.note("info", "request_failed", message=reason, capture=self.capture.place, **self._known())

    def break_off(self) -> None:
        """Ends the connection, so that what was sent does not look complete."""
        break_connection(self.inquiry.request)

    def close(self) -> None:
        """Ends comparison and capture, after the upstream was released."""
        if self.cache is not None:
            self.cache.close()
        self.capture.ended(*(self._outcome or ("abandoned", None, None)))
        lost = self.inquiry.request.content.exception()
        if lost is not None:  # the error of the lost connection holds the frames that wrote to it, and so the request
            lost.with_traceback(None)

    def _ends(self, outcome: str, status: int | None, error: str | None = None) -> bool:
        """Notes the end and the times; returns False if the end was noted before."""
        if self._outcome is not None:
            return False
        self._outcome = outcome, status, error
        if outcome != "completed":
            self._timings.broken_off()
        self._spans = self._timings.spans
        self.tell(Timed(self._spans))
        return True

    def _known(self) -> dict[str, Any]:
        """The log's fields of every finished request."""
        known: dict[str, Any] = {"ms": self._ms()}
        for span, ms in self._spans.items():
            known[_SPAN_FIELDS[span]] = ms
        return known | {"upstreamId": self._timings.upstream_id, "clientId": self.inquiry.client_id}

    def _check_cache(self, check: CacheCheck) -> dict[str, float | None]:
        """Reports on the upstream's cache; returns its shares for the log."""
        checked = check.ended()
        if checked is None:
            return {}
        verdict = checked.verdict
        expected = None if verdict.expected is None else round(verdict.expected, 3)
        self.tell(CacheChecked(expected, round(verdict.cached, 3), verdict.reason))
        shares = {"cachedShare": round(verdict.cached, 3), "expectedShare": expected}
        if checked.news:
            self.note("info", "cache_lost", reason=verdict.reason, **shares)
            message = f"{round(verdict.cached * 100)} % of the input came from the cache: {verdict.reason}"
            self._monitor.notice(checked.level, message, provider=self.label, session=checked.session)
        return shares

    def _error_file(self, error: ProxyError, status: int) -> str | None:
        inquiry = self.inquiry
        return self._state.log.capture_error(
            inquiry.id,
            {
                "reqId": inquiry.id,
                "provider": self.label,
                "model": self.model,
                "countTokens": inquiry.counts,
                "status": status,
                "elapsedMs": self._ms(),
                "message": error.message,
                **({"capture": self.capture.place} if self.capture.place else {}),
                "response": {"json": inquiry.family.error_body(error, inquiry.id)},
            },
        )

    def _ms(self) -> int:
        return round(self._timings.total)


def _upstream_answered(recorder: Recorder, request_id: str, upstream_id: str) -> None:
    recorder.record(request_id, UpstreamAnswered(upstream_id))


def _camel(name: str) -> str:
    """
    >>> _camel("first_token")
    'firstToken'
    """
    first, *others = name.split("_")
    return first + "".join(map(str.title, others))


#: span -> its field in the log
_SPAN_FIELDS = {span: f"{_camel(span)}Ms" for span in SPANS}


def _one_line(text: str, limit: int = 500) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[:limit] + "…"
