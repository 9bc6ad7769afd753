"""A model request as it arrived. Nothing of it changes."""

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

#: header name in lower case -> all its values
HeaderValues = Mapping[str, list[str]]

#: Where a client may name the request itself, in order of preference; what is longer is no such name.
_CLIENT_IDS = ("x-client-request-id", "x-request-id")
_MAX_CLIENT_ID = 200

#: Tells where the time went, in the form that browsers and the tools of developers read.
TIMING_HEADER = "Server-Timing"


def id_headers(request_id: str) -> dict[str, str]:
    """The anthropic SDK reads the one, the openai SDK the other."""
    return {"request-id": request_id, "x-request-id": request_id}


@dataclass(frozen=True, slots=True)
class Inquiry:
    """
    id         ours: in the answer's headers, the log and the monitor
    caller     whose key it came with, where callers have keys of their own; `caller_name` is that key's name
    values     its headers, with sessions as the tables of this proxy and the services know them
    session    named by its headers
    client_id  what the client calls the request, where it does
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
        """A session that a body names, as the tables of this proxy and the services know it."""
        return own_session(self.caller, session)

    @property
    def left(self) -> bool:
        """Whether the client is gone."""
        return has_left(self.request)


def first_value(values: HeaderValues, names: Sequence[str]) -> str | None:
    """The first value that is more than blanks, trimmed."""
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
    """What the client calls the request. Codex CLI names its conversation in the same place."""
    for name in _CLIENT_IDS:
        for value in values.get(name, ()):
            if 0 < len(value) <= _MAX_CLIENT_ID and fits_header(value) and value != session:
                return value
    return None
