"""The table of all routes."""

from __future__ import annotations

from proxy.server.request.families import CHAT, COUNT, MEDIA, MESSAGES, MODELS, RESPONSES, WATCHING, ClientRoute
from proxy.server.routes.limits import PATHS as LIMITS
from proxy.server.routes.limits import get_limits
from proxy.server.routes.media import post_edit, post_generation, post_transcription
from proxy.server.routes.messages import post_count_tokens, post_messages
from proxy.server.routes.metrics import get_metrics
from proxy.server.routes.models import get_model, get_models
from proxy.server.routes.monitor import get_events, get_monitor
from proxy.server.routes.openai import get_responses, post_chat_completions, post_responses
from proxy.server.routes.page import FILES, get_page_file
from proxy.server.routes.probes import get_health, get_hello, get_readiness, post_telemetry

_READ = ("GET", "HEAD")
_POST = ("POST",)
_OPENAI, _IMAGES, _AUDIO = "openai_routes", "image_routes", "transcription_route"

ROUTES: tuple[ClientRoute, ...] = (
    ClientRoute(_READ, "/healthz", MESSAGES, get_health, guarded=False),
    ClientRoute(_READ, "/readyz", MESSAGES, get_readiness, guarded=False),
    ClientRoute(_READ, "/v1/models", MODELS, get_models),
    ClientRoute(_READ, "/v1/models/{id}", MODELS, get_model),
    ClientRoute(_READ, "/api/hello", MESSAGES, get_hello, keyless=True),
    *(ClientRoute(_POST, f"/v1/{kind}", MESSAGES, post_telemetry) for kind in ("metrics", "logs", "traces")),
    ClientRoute(_POST, "/v1/messages", MESSAGES, post_messages, "messages"),
    ClientRoute(_POST, "/v1/messages/count_tokens", MESSAGES, post_count_tokens, COUNT),
    ClientRoute(_POST, "/v1/chat/completions", CHAT, post_chat_completions, "chat_completions", needs=_OPENAI),
    ClientRoute(_POST, "/v1/responses", RESPONSES, post_responses, "responses", needs=_OPENAI),
    ClientRoute(("GET",), "/v1/responses", RESPONSES, get_responses, needs=_OPENAI),
    ClientRoute(_POST, "/v1/images/generations", MEDIA, post_generation, "generation", needs=_IMAGES),
    ClientRoute(_POST, "/v1/images/edits", MEDIA, post_edit, "edit", needs=_IMAGES),
    ClientRoute(_POST, "/v1/audio/transcriptions", MEDIA, post_transcription, "transcriptions", needs=_AUDIO),
    *(ClientRoute(_READ, path, WATCHING, get_limits, needs="limits_routes") for path in LIMITS),
    ClientRoute(_READ, FILES, WATCHING, get_page_file, needs="monitor_page"),
    ClientRoute(_READ, "/monitor", WATCHING, get_monitor),
    ClientRoute(_READ, "/monitor/events", WATCHING, get_events),
    ClientRoute(_READ, "/metrics", WATCHING, get_metrics, needs="metrics"),
)
