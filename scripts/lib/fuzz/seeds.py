"""One well-formed request for each route and lane: what is mutated, and what every route must have."""

from __future__ import annotations

import base64
import json
from typing import Any

from fuzz_stub import FuzzCase, Step

from fuzz.requests import CHAT, COUNT, JSON, MESSAGES, MODELS, PNG, RESPONSES, compacting, full, searching

MODEL_LIST, LIMITS = "/v1/models", "/v1/account/limits"
READ = (
    *("/healthz", "/readyz", "/api/hello", MODEL_LIST, f"{MODEL_LIST}/gpt-5.5", LIMITS, "/.well-known/ccr/account"),
    *("/monitor", "/monitor/events", "/monitor/history", "/monitor/page/main.js", "/metrics"),
)
TELEMETRY = ("/v1/metrics", "/v1/logs", "/v1/traces")
GENERATION, EDIT, TRANSCRIPTION = "/v1/images/generations", "/v1/images/edits", "/v1/audio/transcriptions"
FORM = {"content-type": "multipart/form-data; boundary=b"}
IMAGE = {"model": "gpt-image-2", "prompt": "a cat", "size": "1024x1024", "n": 1, "quality": "low"}
#: The fields of the forms, and the name of the file in each.
FORMS: dict[str, tuple[dict[str, bytes], bytes]] = {
    EDIT: ({"model": b"gpt-image-2", "prompt": b"a cat", "n": b"1"}, b"image"),
    TRANSCRIPTION: ({"model": b"gpt-4o-transcribe", "language": b"en", "response_format": b"json"}, b"file"),
}
#: Takes members that no upstream honours.
LENIENT = {"openai_mode": "lenient"}
#: Names an agent, without which nothing is compacted.
SESSION = {"x-claude-code-session-id": "11111111-2222-4333-8444-555555555555"}


def form(path: str, fields: dict[str, bytes]) -> bytes:
    raw = b"".join(
        b'--b\r\ncontent-disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (name.encode(), value)
        for name, value in fields.items()
    )
    raw += b'--b\r\ncontent-disposition: form-data; name="%s"; filename="a.png"\r\n' % FORMS[path][1]
    kind = b"image/png" if path == EDIT else b"audio/wav"
    return raw + b"content-type: %s\r\n\r\n" % kind + base64.b64decode(PNG) + b"\r\n--b--\r\n"


def posted(path: str, body: Any, headers: dict[str, str] | None = None, **members: Any) -> FuzzCase:
    return FuzzCase(path, body=json.dumps(body), headers={**JSON, **(headers or {})}, **members)


def seeds() -> list[FuzzCase]:
    """All of them, each its own."""
    p1 = MODELS["p1-responses"]
    pairs = [(route, model) for route in (MESSAGES, CHAT, RESPONSES) for model in MODELS.values()]
    return [
        *(
            posted(route, {**full(route, model), "stream": True}, {"session_id": "s"}, config=LENIENT)
            for route, model in pairs
        ),
        posted(COUNT, full(MESSAGES, p1)),
        posted(MESSAGES, searching(p1)),
        posted(MESSAGES, compacting(p1), SESSION, config={"p1_server_compaction": True}),
        posted(GENERATION, IMAGE),
        *(FuzzCase(path, body=Step.of(form(path, fields)).body, headers=FORM) for path, (fields, _) in FORMS.items()),
        *(posted(path, {}) for path in TELEMETRY),
        *(FuzzCase(path, method) for path in READ for method in ("GET", "HEAD")),
        FuzzCase(RESPONSES, "GET"),
    ]
