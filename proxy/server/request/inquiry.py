"""A model request as it arrived, which never changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aiohttp import web

from proxy.core.identity import SESSION_HEADERS, fits_header
from proxy.observe.timings import Timings
from proxy.server.callers.callers import CALLER, own_session
from proxy.server.callers.keys import CallerKey
from proxy.server.request.families import COUNT, Family
from proxy.server.request.replies import has_left
from proxy.server.request.state import REQUEST_ID, ROUTE, STATE, TIMINGS, AppState, header_values

#: header name in lower case -> all its values.
HeaderValues = Mapping[str, list[str]]

#: Headers in which a client may name the request, in order of preference; and the longest such name.
_CLIENT_IDS = ("x-client-request-id", "x-request-id")
_MAX_CLIENT_ID = 200

#: Tells where the time went, in the form that browsers and the tools of developers read.
TIMING_HEADER = "Server-Timing"


def id_headers(request_id: str) -> dict[str, str]:
    """The anthropic SDK reads the one, the openai SDK the other."""
    return {"request-id": request_id, "x-request-id": request_id}


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A model request.

    id         our id, in the answer's headers, the log and the monitor
    caller     the caller's key, if callers have keys of their own; `caller_name` is that key's name
    values     its headers, with sessions in the form of this proxy's tables and the services
    session    the session that its headers name
    client_id  the client's name for the request, if there is one
    counts     whether only a count of tokens is asked for: no service is asked, and no state is kept
    """

    request: web.Request
    state: AppState
    id: str
    family: Family
    endpoint: str
    timings: Timings
    caller: CallerKey | None
    caller_name: str | None
    values: HeaderValues
    session: str | None
    client_id: str | None
    counts: bool

    @classmethod
    def of(cls, request: web.Request) -> Inquiry:
        route, caller = request[ROUTE], request.get(CALLER)
        names = route.family.session_headers
        values = header_values(request)
        if caller is not None:
            values = _own_sessions(caller, values, {*SESSION_HEADERS, *names})
        session = first_value(values, names)
        return cls(
            request,
            request.app[STATE],
            request[REQUEST_ID],
            route.family,
            route.endpoint,
            request[TIMINGS],
            caller,
            None if caller is None else caller.name,
            values,
            session,
            _client_id(values, session),
            route.endpoint == COUNT,
        )

    def own_session(self, session: str) -> str:
        """A session that a body names, in the form of this proxy's tables and the services."""
        return own_session(self.caller, session)

    @property
    def left(self) -> bool:
        """Whether the client is gone."""
        return has_left(self.request)


def first_value(values: HeaderValues, names: Sequence[str]) -> str | None:
    """The first non-blank value, trimmed."""
    for name in names:
        for value in values.get(name, ()):
            if text := value.strip():
                return text
    return None


def _own_sessions(caller: CallerKey, values: HeaderValues, names: set[str]) -> HeaderValues:
    own = {
        name: [own_session(caller, one.strip()) for one in found if one.strip()]
        for name, found in values.items()
        if name in names
    }
    return {**values, **own}


def _client_id(values: HeaderValues, session: str | None) -> str | None:
    """The client's name for the request. Codex CLI sends the name of its conversation there."""
    for name in _CLIENT_IDS:
        for value in values.get(name, ()):
            if 0 < len(value) <= _MAX_CLIENT_ID and fits_header(value) and value != session:
                return value
    return None
