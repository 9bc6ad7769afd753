"""The client APIs, one `Family` each, and the row of the table of routes.

A further client API is two converters in `core/convert` (its request to a hub request, the hub's events to its
answer), a renderer in `renderers.py`, a `Family` here and rows in `routes/table.py`, whose handler is the few lines
that pass the request converter to `routes/openai.py`. Nothing else in the server depends on the API of a request. If
the type words of its errors are those of neither known API, they are a further column of `errors.KINDS`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from proxy.core.identity import SESSION_HEADERS
from proxy.errors import ProxyError, final_word, media_body, messages_body, openai_body, openai_status
from proxy.server.request.guard import API_KEY, BEARER, PASSWORD, KeyPlace
from proxy.server.request.renderers import ChatRenderer, MessagesRenderer, RenderContext, Renderer, ResponsesRenderer

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Family:
    """One client API, as far as the server needs to know it.

    name             name of the API
    session_headers  names in lower case that may carry the session, in order of preference
    key_places       where the caller may put the key of this proxy
    key_cure         where its user puts it; never names `x-api-key`, since Claude Code replaces such a text
    error_status     the status of an answer that is an error
    error_body       the body of such an answer, given the request id; also of a 404 and a 405
    final_word       the error as this client gets it, given its `User-Agent`
    renderer         makes the renderer of one answer, which also formats errors inside a stream; None if answers are
                     passed on unchanged
    headers          headers of every answer
    challenge        what makes a browser ask its user for the key; "" where none should
    keeps_errors     whether an answer that is an error leaves a file in which the fault can be looked up
    """

    name: str
    session_headers: tuple[str, ...]
    key_places: tuple[KeyPlace, ...]
    key_cure: str
    error_status: Callable[[ProxyError], int]
    error_body: Callable[[ProxyError, str], dict[str, Any]]
    final_word: Callable[[ProxyError, str], ProxyError] = lambda error, _agent: error
    renderer: Callable[[RenderContext], Renderer] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    challenge: str = ""
    keeps_errors: bool = True


#: The endpoint of a count. It has no messages to answer, is no compaction and leaves no state.
COUNT = "count_tokens"

#: Codex CLI names its conversation in the last one.
_OPENAI_SESSION = (*SESSION_HEADERS, "session_id", "x-client-request-id")


_AS_BEARER = "it is sent as `Authorization: Bearer …`"
_MESSAGES_CURE = f"set ANTHROPIC_AUTH_TOKEN to it where the client runs; {_AS_BEARER}"
_OPENAI_CURE = f"set OPENAI_API_KEY to it where the client runs, for Codex CLI the variable of `env_key`; {_AS_BEARER}"


def _openai(name: str, renderer: Callable[[RenderContext], Renderer]) -> Family:
    """A family of OpenAI's API: Chat and Responses differ only in their answers."""
    return Family(
        name=name,
        session_headers=_OPENAI_SESSION,
        key_places=(BEARER, API_KEY),
        key_cure=_OPENAI_CURE,
        error_status=openai_status,
        error_body=lambda error, _request_id: openai_body(error),
        renderer=renderer,
    )


MESSAGES = Family(
    name="Messages",
    session_headers=SESSION_HEADERS,
    key_places=(BEARER, API_KEY),
    key_cure=_MESSAGES_CURE,
    error_status=lambda error: error.status,
    error_body=messages_body,
    final_word=final_word,
    renderer=MessagesRenderer,
)
CHAT = _openai("OpenAI chat", ChatRenderer)
RESPONSES = _openai("OpenAI Responses", ResponsesRenderer)

#: Kinds of errors about the path itself.
_OF_THE_PATH = frozenset({"no_route", "wrong_method"})


def _media_error(error: ProxyError, request_id: str) -> dict[str, Any]:
    """Path errors use the common shape, plus the members that clients of the other API read."""
    body = media_body(error)
    if error.kind not in _OF_THE_PATH:
        return body
    shape = messages_body(error, request_id)
    return shape | {"error": body["error"] | shape["error"]}


def _model_error(error: ProxyError, request_id: str) -> dict[str, Any]:
    """The members of both APIs, since clients of either ask for models."""
    shape = messages_body(error, request_id)
    return shape | {"error": openai_body(error)["error"] | shape["error"]}


MODELS = Family(
    name="models",
    session_headers=(),
    key_places=(BEARER, API_KEY),
    key_cure=f"set ANTHROPIC_AUTH_TOKEN or OPENAI_API_KEY to it where the client runs; {_AS_BEARER}",
    error_status=lambda error: error.status,
    error_body=_model_error,
)

#: Routes about the proxy itself: for a person with a browser, or a program that watches.
WATCHING = Family(
    name="watching",
    session_headers=(),
    key_places=(BEARER, API_KEY, PASSWORD),
    key_cure=f"a browser asks for it as a password; from a program {_AS_BEARER}",
    error_status=lambda error: error.status,
    error_body=messages_body,
    headers={
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Referrer-Policy": "no-referrer",
    },
    challenge='Basic realm="model-proxy", charset="UTF-8"',
)

MEDIA = Family(
    name="OpenAI images and audio",
    session_headers=_OPENAI_SESSION,
    key_places=(BEARER, API_KEY),
    key_cure=_OPENAI_CURE,
    error_status=lambda error: error.status,
    error_body=_media_error,
    headers={"Cache-Control": "no-store"},
    # Nothing of their bodies is ever kept, and an error may quote them.
    keeps_errors=False,
)


@dataclass(frozen=True, slots=True)
class ClientRoute:
    """A row of the table of routes.

    path           with `{id}` for anything, slashes included
    endpoint       the name of a model request in the log and in monitors; "" for what is no model request
    needs          a setting of `Config` that turns the route on; "" for none
    guarded        whether the guard checks requests
    keyless        whether the guard needs no caller key
    """

    methods: tuple[str, ...]
    path: str
    family: Family
    handler: Handler
    endpoint: str = ""
    needs: str = ""
    guarded: bool = True
    keyless: bool = False
