"""One request of a model route, from its arrival to its last byte: what is recorded, logged and answered when it
fails."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

from aiohttp import HttpVersion11, web

from proxy.core.allowances.accounts import account_key
from proxy.core.identity import agents_of, fits_header
from proxy.core.invalid import InvalidRequest, TooLarge, cut
from proxy.core.reducer import BadAnswer
from proxy.core.sse import encode_json
from proxy.errors import ProxyError, RequestError, headers
from proxy.observe.capture.contract import NULL_CAPTURE, RequestCapture
from proxy.observe.lifecycle import (
    Abandoned,
    CacheChecked,
    Completed,
    Event,
    Failed,
    Recorder,
    Started,
    Timed,
    UpstreamAnswered,
)
from proxy.observe.log.redact import shown_query
from proxy.server.accounts.pool import Serving
from proxy.server.cache_watch import CacheCheck
from proxy.server.callers.callers import CALLER, own_session
from proxy.server.callers.keys import CallerKey
from proxy.server.fallback.chain import HEADER, Chain
from proxy.server.families import COUNT, Family
from proxy.server.state import REQUEST_ID, ROUTE, STATE, TIMINGS, AppState

#: Tells where the time went, in the form that browsers and the tools of developers read.
TIMING_HEADER = "Server-Timing"
#: Names what a request asked for and did not get, by the paths of its members.
IGNORED_HEADER = "x-model-proxy-ignored"
#: Which account of its provider served a request, where it has several.
ACCOUNT_HEADER = "x-model-proxy-account"
#: The longest value of that header: a body may have any number of members.
MAX_IGNORED = 1000

#: Where a client may name the request itself, in order of preference; what is longer is no such name.
_CLIENT_IDS = ("x-client-request-id", "x-request-id")
_MAX_CLIENT_ID = 200

#: Linger on, for no time: a socket that is closed sends a reset.
_RESET = struct.pack("ii", 1, 0)

STOPPED = "Request ended before completion: the proxy was stopped"
LEFT = "Request ended before completion: the client left"


class Exchange:
    """Collects what is known about a request while it is served."""

    #: Who serves, and which of its models.
    provider: str | None = None
    model: str | None = None
    #: The name of the account that serves, "" where the provider has one only.
    account = ""
    #: The same with those who may serve instead of it, in order.
    accounts: tuple[Serving, ...] = ()
    #: What accounts are chosen by, None for a request without a session.
    session: str | None = None
    #: Whether an alias was asked for, whose provider a setting says.
    alias = False
    #: The answer once its head is out: then no other one can be given.
    response: web.StreamResponse | None = None
    #: The body, unpacked; kept only until the capture of the request begins, if there is one.
    received = b""
    capture: RequestCapture = NULL_CAPTURE
    #: What a client in auto mode says of its user's policy, taken out of the body.
    safeguards: Any = None
    #: What the request asked for and will not get, by path.
    ignored: tuple[str, ...] = ()
    #: What the client calls the request, where it does.
    client_id: str | None = None
    #: Bytes of the body, unpacked.
    size = 0
    #: What is known of the upstream's cache, where requests are compared.
    cache: CacheCheck | None = None
    _outcome: tuple[str, int | None, str | None] | None = None

    def __init__(self, request: web.Request) -> None:
        self.request = request
        self.family = request[ROUTE].family
        self.endpoint = request[ROUTE].endpoint
        self.state = request.app[STATE]
        self.id = request[REQUEST_ID]
        #: Whose key the request came with, where callers have keys of their own.
        self.caller: CallerKey | None = request.get(CALLER)
        #: Who serves it after all, where a setting declares other models.
        self.fallback = Chain()
        #: Gives back the place among the requests that are served at one time.
        self.leave: Callable[[], None] = lambda: None
        self.timings = request[TIMINGS]
        self.timings.tell = partial(_tell_upstream_id, self.state.monitor, self.id)
        self._spans: Mapping[str, float] = {}

    @property
    def head(self) -> dict[str, str]:
        """What every answer carries: the request's id under the names that the SDKs look for, where its time went until
        now, and what was ignored."""
        head = id_headers(self.id) | {TIMING_HEADER: self.timings.header()}
        if self.account:
            head[ACCOUNT_HEADER] = self.account
        if self.state.running.draining:
            head["Connection"] = "close"
        if self.fallback.went_on:
            head[HEADER] = self.fallback.header
        if self.ignored:
            head[IGNORED_HEADER] = cut(", ".join(self.ignored), MAX_IGNORED)
        return head

    @property
    def caller_name(self) -> str | None:
        """Of the key that the request came with."""
        return None if self.caller is None else self.caller.name

    def own_session(self, session: str) -> str:
        """The caller's session as the tables of this proxy and the services know it."""
        return own_session(self.caller, session)

    def ignore(self, paths: Iterable[str]) -> None:
        """Notes what is left out of the request although it asks for something. To be called before the answer begins;
        the log is told, too."""
        self.ignored = tuple(quote(cut(path), safe="[]_.: ") for path in paths)
        if self.ignored:
            self.log("info", "ignored", ignored=", ".join(self.ignored))

    @property
    def account_key(self) -> str:
        """The provider as monitors and metrics show it, with its account."""
        return account_key(self.provider or "", self.account)

    @property
    def left(self) -> bool:
        """Whether the client is gone."""
        return has_left(self.request)

    def break_off(self) -> None:
        """Ends the connection, so that what was sent does not look whole. To HTTP/1.0 a connection that is closed is
        the end of the answer, so it is reset."""
        transport = self.request.transport
        if transport is None:
            return
        if self.request.version < HttpVersion11 and (link := transport.get_extra_info("socket")) is not None:
            with contextlib.suppress(OSError):
                link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        transport.abort()

    def record(self, event: Event) -> None:
        self.state.monitor.record(self.id, event)

    def log(self, level: str, msg: str, **fields: Any) -> None:
        common = {"reqId": self.id, "endpoint": self.endpoint, "provider": self.provider, "model": self.model}
        common |= {"account": self.account or None}
        common |= {"caller": self.caller_name}
        known = {key: value for key, value in (common | fields).items() if value is not None}
        self.state.log.write(level, "server", msg, **known)

    def arrived(self, values: Mapping[str, list[str]], session: str | None) -> None:
        """Tells of the request, before anything is known of its body."""
        self.client_id = _client_id(values, session)
        self.record(Started(self.endpoint, session, *agents_of(values), self.client_id, self.caller_name))
        asked = {"method": self.request.method, "path": self.request.path, "clientId": self.client_id}
        if self.request.query_string:
            asked["query"] = shown_query(self.request.query_string)
        self.log("info", "request", **asked)

    def completed(self, status: int) -> None:
        """The whole answer was sent. Of this and the two below the first counts: a client may well leave between the
        last byte of its answer and the end of our work, or send its next request, which may be the only one of it."""
        self.leave()
        if not self._ends("completed", status):
            return
        if self.provider is not None and self.endpoint != COUNT and status < 400:
            self.state.allowances.served(self.account_key, self.model or "")
        shares = self._checked_cache()
        self.record(Completed(status))
        self.log("info", "request_completed", status=status, **self._known(), **shares)

    def failed(self, error: ProxyError, *, in_band: bool = False) -> None:
        """An error was answered: with a status, or `in_band` as an event of a stream that had begun."""
        status, message = 200 if in_band else self.family.error_status(error), _one_line(error.message)
        if not self._ends("failed", status, message):
            return
        self.record(Failed(status, message, error.kind))
        fields = self._known() | {"status": status, "message": message, "capture": self.capture.place}
        if error.upstream_id:
            fields["upstreamId"] = error.upstream_id
        if in_band:
            fields |= {"phase": "response_body", "inBandSse": True}
        elif self.family.keeps_errors:
            fields["errorFile"] = self._error_file(error)
        self.log("warn", "request_failed", **fields)

    def abandoned(self) -> None:
        """The client left, or the proxy stops; nobody reads what we would say."""
        reason = STOPPED if self.state.running.draining and not self.left else LEFT
        if not self._ends("abandoned", None if self.response is None else self.response.status, reason):
            return
        self.record(Abandoned(reason))
        self.log("info", "request_failed", message=reason, capture=self.capture.place, **self._known())

    def replied(self, response: web.Response) -> None:
        """Tells the capture of an answer that is sent whole."""
        if isinstance(response.body, bytes):
            self.capture.replied(response.body)

    def close(self) -> None:
        """All of it is over, the upstream released."""
        if self.cache is not None:
            self.cache.close()
        self.capture.ended(*(self._outcome or ("abandoned", None, None)))
        lost = self.request.content.exception()
        if lost is not None:  # the connection; it holds the frames that wrote to it, and those the request
            lost.with_traceback(None)

    def _ends(self, outcome: str, status: int | None, error: str | None = None) -> bool:
        """Notes the end, and tells where the time went; False when it was noted before."""
        if self._outcome is not None:
            return False
        self._outcome = outcome, status, error
        if outcome != "completed":
            self.timings.broken_off()
        self._spans = self.timings.spans
        self.record(Timed(self._spans))
        return True

    def _known(self) -> dict[str, Any]:
        """What the log keeps of every request that is over."""
        spans = {f"{_camel(span)}Ms": ms for span, ms in self._spans.items()}
        return {"ms": self._ms(), **spans, "upstreamId": self.timings.upstream_id, "clientId": self.client_id}

    def _checked_cache(self) -> dict[str, float | None]:
        """Tells what the upstream's cache did; its shares, for the log."""
        checked = self.cache.ended() if self.cache is not None else None
        if checked is None:
            return {}
        verdict = checked.verdict
        expected = None if verdict.expected is None else round(verdict.expected, 3)
        self.record(CacheChecked(expected, round(verdict.cached, 3), verdict.reason))
        shares = {"cachedShare": round(verdict.cached, 3), "expectedShare": expected}
        if checked.news:
            self.log("info", "cache_lost", reason=verdict.reason, **shares)
            message = f"{round(verdict.cached * 100)} % of the input came from the cache: {verdict.reason}"
            self.state.monitor.notice(checked.level, message, provider=self.provider, session=checked.session)
        return shares

    def _error_file(self, error: ProxyError) -> str | None:
        return self.state.log.capture_error(
            self.id,
            {
                "reqId": self.id,
                "provider": self.provider,
                "model": self.model,
                "countTokens": self.endpoint == "count_tokens",
                "status": self.family.error_status(error),
                "elapsedMs": self._ms(),
                "message": error.message,
                **({"capture": self.capture.place} if self.capture.place else {}),
                "response": {"json": self.family.error_body(error, self.id)},
            },
        )

    def _ms(self) -> int:
        return round(self.timings.total)


def _tell_upstream_id(recorder: Recorder, request_id: str, upstream_id: str) -> None:
    recorder.record(request_id, UpstreamAnswered(upstream_id))


def _camel(name: str) -> str:
    """
    >>> _camel("first_token")
    'firstToken'
    """
    first, *others = name.split("_")
    return first + "".join(map(str.title, others))


def has_left(request: web.BaseRequest) -> bool:
    """Whether the connection of a request is closed, or about to be."""
    transport = request.transport
    return transport is None or transport.is_closing()


def is_loss(error: BaseException, request: web.BaseRequest) -> bool:
    """Whether an error only says that the client left. The same error of a connection of ours is none of that."""
    return isinstance(error, ConnectionError) and has_left(request)


def _client_id(values: Mapping[str, list[str]], session: str | None) -> str | None:
    """What the client calls the request. Codex CLI names its conversation in the same place."""
    found = (value for name in _CLIENT_IDS for value in values.get(name, ()))
    fit = (value for value in found if 0 < len(value) <= _MAX_CLIENT_ID and fits_header(value) and value != session)
    return next(fit, None)


def _one_line(text: str, limit: int = 500) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[:limit] + "…"


def as_proxy_error(error: Exception) -> ProxyError | None:
    """An error that may be shown, or None for one that nobody foresaw."""
    if isinstance(error, ProxyError):
        return error
    if isinstance(error, InvalidRequest):
        kind = "too_large" if isinstance(error, TooLarge) else "invalid_request"
        return RequestError(error.message, kind=kind, param=error.param, code=error.code, details=error.details)
    if isinstance(error, BadAnswer):
        return ProxyError(str(error), kind="bad_answer")
    return None


def unforeseen(state: AppState, request_id: str, error: Exception) -> ProxyError:
    """Logs a bug by the places it went through, never by its text, which may hold a prompt; returns what to tell."""
    places = []
    trace = error.__traceback__
    while trace is not None:
        places.append(f"{trace.tb_frame.f_code.co_filename.rpartition('proxy/')[2]}:{trace.tb_lineno}")
        trace = trace.tb_next
    kind = type(error).__name__
    state.log.write("error", "server", "internal_error", reqId=request_id, error=kind, places=places[-12:])
    return ProxyError(f"internal error of the proxy ({kind}); the log has more under {request_id}", kind="internal")


def id_headers(request_id: str) -> dict[str, str]:
    """The anthropic SDK reads the one, the openai SDK the other."""
    return {"request-id": request_id, "x-request-id": request_id}


def json_response(body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """A JSON answer in compact form."""
    return web.Response(body=encode_json(body), status=status, headers=headers, content_type="application/json")


def error_response(error: ProxyError, request_id: str, family: Family) -> web.Response:
    """The envelope of a client API, with status and retry hints."""
    body, status = family.error_body(error, request_id), family.error_status(error)
    response = json_response(body, status=status, headers=headers(error))
    if status == 401 and family.challenge:
        response.headers["WWW-Authenticate"] = family.challenge
    return response
