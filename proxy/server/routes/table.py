"""The table of routes. Their handlers are imported at the first request: a start needs the probes only."""

from __future__ import annotations

from proxy.later import Later
from proxy.server.request.families import CHAT, COUNT, MEDIA, MESSAGES, MODELS, RESPONSES, WATCHING, ClientRoute
from proxy.server.routes.probes import get_health, get_hello, get_readiness, post_telemetry

_READ = ("GET", "HEAD")
_POST = ("POST",)
_OPENAI, _IMAGES, _AUDIO = "openai_routes", "image_routes", "transcription_route"

#: Path of the files of the page, which names them relative to itself, so that it works under any prefix.
FILES = "/monitor/page/{id}"
LIMITS = ("/v1/account/limits", "/.well-known/ccr/account")

_GET_MODELS, _GET_MODEL = Later("proxy.server.routes.models:get_models"), Later("proxy.server.routes.models:get_model")
_MESSAGES = Later("proxy.server.routes.messages:post_messages")
_COUNT = Later("proxy.server.routes.messages:post_count_tokens")
_CHAT = Later("proxy.server.routes.openai:post_chat_completions")
_RESPONSES = Later("proxy.server.routes.openai:post_responses")
_GET_RESPONSES = Later("proxy.server.routes.openai:get_responses")
_GENERATION = Later("proxy.server.routes.media:post_generation")
_EDIT = Later("proxy.server.routes.media:post_edit")
_TRANSCRIPTION = Later("proxy.server.routes.media:post_transcription")
_GET_LIMITS = Later("proxy.server.routes.watching:get_limits")
_PAGE_FILE = Later("proxy.server.routes.watching:get_page_file")
_MONITOR = Later("proxy.server.routes.watching:get_monitor")
_EVENTS = Later("proxy.server.routes.watching:get_events")
_METRICS = Later("proxy.server.routes.watching:get_metrics")
_HISTORY = Later("proxy.server.routes.history:get_history")

ROUTES: tuple[ClientRoute, ...] = (
    ClientRoute(_READ, "/healthz", MESSAGES, get_health, guarded=False),
    ClientRoute(_READ, "/readyz", MESSAGES, get_readiness, guarded=False),
    ClientRoute(_READ, "/v1/models", MODELS, _GET_MODELS),
    ClientRoute(_READ, "/v1/models/{id}", MODELS, _GET_MODEL),
    ClientRoute(_READ, "/api/hello", MESSAGES, get_hello, keyless=True),
    *(ClientRoute(_POST, f"/v1/{kind}", MESSAGES, post_telemetry) for kind in ("metrics", "logs", "traces")),
    ClientRoute(_POST, "/v1/messages", MESSAGES, _MESSAGES, "messages"),
    ClientRoute(_POST, "/v1/messages/count_tokens", MESSAGES, _COUNT, COUNT),
    ClientRoute(_POST, "/v1/chat/completions", CHAT, _CHAT, "chat_completions", needs=_OPENAI),
    ClientRoute(_POST, "/v1/responses", RESPONSES, _RESPONSES, "responses", needs=_OPENAI),
    ClientRoute(("GET",), "/v1/responses", RESPONSES, _GET_RESPONSES, needs=_OPENAI),
    ClientRoute(_POST, "/v1/images/generations", MEDIA, _GENERATION, "generation", needs=_IMAGES),
    ClientRoute(_POST, "/v1/images/edits", MEDIA, _EDIT, "edit", needs=_IMAGES),
    ClientRoute(_POST, "/v1/audio/transcriptions", MEDIA, _TRANSCRIPTION, "transcriptions", needs=_AUDIO),
    *(ClientRoute(_READ, path, WATCHING, _GET_LIMITS, needs="limits_routes") for path in LIMITS),
    ClientRoute(_READ, FILES, WATCHING, _PAGE_FILE, needs="monitor_page"),
    ClientRoute(_READ, "/monitor", WATCHING, _MONITOR),
    ClientRoute(_READ, "/monitor/events", WATCHING, _EVENTS),
    ClientRoute(_READ, "/monitor/history", WATCHING, _HISTORY),
    ClientRoute(_READ, "/metrics", WATCHING, _METRICS, needs="metrics"),
)
