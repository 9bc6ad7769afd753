"""One request of a model route, from its arrival to its last byte: what is recorded, logged and answered when it
fails."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from aiohttp import web

from proxy.core.invalid import InvalidRequest, TooLarge, cut
from proxy.core.reducer import BadAnswer
from proxy.core.sse import encode_json
from proxy.errors import ProxyError, RequestError, headers
from proxy.observe.capture.contract import NULL_CAPTURE, RequestCapture
from proxy.observe.lifecycle import Abandoned, Completed, Event, Failed, Started
from proxy.server.families import Family
from proxy.server.state import REQUEST_ID, ROUTE, STATE, AppState

#: Names what a request asked for and did not get, by the paths of its members.
IGNORED_HEADER = "x-model-proxy-ignored"
#: The longest value of that header: a body may have any number of members.
MAX_IGNORED = 1000

STOPPED = "Request ended before completion: the proxy was stopped"
LEFT = "Request ended before completion: the client left"


class Exchange:
    """Collects what is known about a request while it is served."""

    def __init__(self, request: web.Request) -> None:
        self.request = request
        self.family = request[ROUTE].family
        self.endpoint = request[ROUTE].endpoint
        self.state = request.app[STATE]
        self.id = request[REQUEST_ID]
        self.provider: str | None = None
        self.model: str | None = None
        #: Whether an alias was asked for, whose provider a setting says.
        self.alias = False
        #: The answer once its head is out: then no other one can be given.
        self.response: web.StreamResponse | None = None
        #: The body, unpacked; kept only until the capture of the request begins, if there is one.
        self.received = b""
        self.capture: RequestCapture = NULL_CAPTURE
        #: What a client in auto mode says of its user's policy, taken out of the body.
        self.safeguards: Any = None
        #: What the request asked for and will not get, by path.
        self.ignored: tuple[str, ...] = ()
        self._started = time.monotonic()
        self._outcome: tuple[str, int | None, str | None] | None = None

    @property
    def head(self) -> dict[str, str]:
        """What every answer carries: the request's id under the names that the SDKs look for, and what was ignored."""
        if not self.ignored:
            return id_headers(self.id)
        return id_headers(self.id) | {IGNORED_HEADER: cut(", ".join(self.ignored), MAX_IGNORED)}

    def ignore(self, paths: Iterable[str]) -> None:
        """Notes what is left out of the request although it asks for something. To be called before the answer begins;
        the log is told, too."""
        self.ignored = tuple(quote(cut(path), safe="[]_.: ") for path in paths)
        if self.ignored:
            self.log("info", "ignored", ignored=", ".join(self.ignored))

    @property
    def left(self) -> bool:
        """Whether the client is gone."""
        return has_left(self.request)

    def break_off(self) -> None:
        """Ends the connection, so that what was sent does not look whole."""
        if self.request.transport is not None:
            self.request.transport.abort()

    def record(self, event: Event) -> None:
        self.state.recorder.record(self.id, event)

    def log(self, level: str, msg: str, **fields: Any) -> None:
        common = {"reqId": self.id, "endpoint": self.endpoint, "provider": self.provider, "model": self.model}
        known = {key: value for key, value in (common | fields).items() if value is not None}
        self.state.log.write(level, "server", msg, **known)

    def arrived(self, session: str | None) -> None:
        """Tells of the request, before anything is known of its body."""
        self.record(Started(self.endpoint, session))
        asked = {"method": self.request.method, "path": self.request.path}
        if self.request.query_string:
            asked["query"] = self.request.query_string
        self.log("info", "request", **asked)

    def completed(self, status: int) -> None:
        """The whole answer was sent. Of this and the two below the first counts: a client may well leave between the
        last byte of its answer and the end of our work."""
        if not self._ends("completed", status):
            return
        self.record(Completed(status))
        self.log("info", "request_completed", status=status, ms=self._ms())

    def failed(self, error: ProxyError, *, in_band: bool = False) -> None:
        """An error was answered: with a status, or `in_band` as an event of a stream that had begun."""
        status, message = 200 if in_band else self.family.error_status(error), _one_line(error.message)
        if not self._ends("failed", status, message):
            return
        self.record(Failed(status, message))
        fields: dict[str, Any] = {"status": status, "ms": self._ms(), "message": message, "capture": self.capture.place}
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
        self.log("info", "request_failed", ms=self._ms(), message=reason, capture=self.capture.place)

    def replied(self, response: web.Response) -> None:
        """Tells the capture of an answer that is sent whole."""
        if isinstance(response.body, bytes):
            self.capture.replied(response.body)

    def close(self) -> None:
        """All of it is over, the upstream released."""
        self.capture.ended(*(self._outcome or ("abandoned", None, None)))

    def _ends(self, outcome: str, status: int | None, error: str | None = None) -> bool:
        """Notes the end; False when it was noted before."""
        if self._outcome is not None:
            return False
        self._outcome = outcome, status, error
        return True

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
        return round((time.monotonic() - self._started) * 1000)


def has_left(request: web.BaseRequest) -> bool:
    """Whether the connection of a request is closed, or about to be."""
    transport = request.transport
    return transport is None or transport.is_closing()


def is_loss(error: BaseException, request: web.BaseRequest) -> bool:
    """Whether an error only says that the client left. The same error of a connection of ours is none of that."""
    return isinstance(error, ConnectionError) and has_left(request)


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
    return json_response(body, status=status, headers=headers(error))
