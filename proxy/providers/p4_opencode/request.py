"""P4's decisions about a request: dialect, effort, headers, body, and the rules of its models on the OpenAI-style
routes, which differ by wire. Pure; the settings come as arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proxy.core.convert.messages_to_chat import ChatDialect, ChatOptions, messages_to_chat
from proxy.core.convert.messages_to_messages import messages_to_messages
from proxy.core.convert.messages_to_responses import ResponsesOptions, messages_to_responses
from proxy.core.effort import effort_asked
from proxy.core.hiding.secret import Secret
from proxy.core.identity import fits_header
from proxy.core.ingress import IngressRules
from proxy.core.routing import is_auto_review
from proxy.core.tools.read_tool import ReadOffsets
from proxy.errors import SignInError
from proxy.providers.contract import Call
from proxy.providers.p4_opencode.catalog import LABEL, OpenCodeModel, Wire
from proxy.version import __version__

DEFAULT_MAX_TOKENS = 32_000
#: The only model of the Messages wire that supports a schema.
MINIMAX = "minimax-m3"
USER_AGENT = f"model-proxy/{__version__}"
_OMITTED = "[unsupported tool result block omitted: {}]"

#: part of the id -> effort requested -> effort sent. An effort that a model lacks becomes its nearest, since clients
#: choose from their own menus.
_EFFORTS: tuple[tuple[tuple[str, ...], dict[str, str]], ...] = (
    (
        ("glm-5.2", "glm-5-2", "glm-5p2"),
        {"low": "high", "medium": "high", "high": "high", "xhigh": "max", "max": "max"},
    ),
    (("deepseek-v4",), {"low": "low", "medium": "medium", "high": "high", "xhigh": "max", "max": "max"}),
    (("mimo",), {"low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}),
    (("qwen3.8",), {"low": "low", "medium": "medium", "high": "xhigh", "xhigh": "xhigh", "max": "xhigh"}),
)


#: part of the id -> the model's least effort, for the safety classifier, which must not think. Other models of the chat
#: and Messages wires have none, or that of the table above.
_LEAST_EFFORTS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("gpt-", "hy3", "hy4"), "none"),
    (("muse-",), "minimal"),
    (("grok-4.6", "longcat", "glm-5.3", "qwen3.8"), "low"),
)


def effort_of(row: OpenCodeModel, request: Mapping[str, Any]) -> str | None:
    """The effort to send: by table over chat, None when the model has none; one to one over the other wires. The
    Messages wire sends a thinking budget unchanged."""
    table = next((table for parts, table in _EFFORTS if any(part in row.id for part in parts)), {})
    if is_auto_review(request):
        least = next((effort for parts, effort in _LEAST_EFFORTS if any(part in row.id for part in parts)), None)
        return least or table.get("low")
    asked = effort_asked(request, budget=row.wire == "responses")
    return table.get(asked or "") if row.wire == "chat" else asked


def dialect_of(row: OpenCodeModel) -> ChatDialect:
    """The form in which a chat model wants its conversation."""
    name = row.id.lower()
    if "deepseek" in name:
        return ChatDialect(reasoning="always", images=row.sees, omitted=_OMITTED)
    if name.startswith("kimi-"):
        return ChatDialect(reasoning="calls", images=row.sees, typed=True, omitted=_OMITTED)
    return ChatDialect(images=row.sees, omitted=_OMITTED)


def _limit(request: Mapping[str, Any]) -> int | None:
    """The longest answer; None also for the safety classifier, since reasoning would use up the few tokens that it
    requests."""
    limit = request.get("max_tokens")
    return limit if isinstance(limit, int) and limit > 0 and not is_auto_review(request) else None


#: Sampling parameters that chat models take.
SAMPLING = ("temperature", "top_p")


def takes_sampling(row: OpenCodeModel) -> bool:
    """Whether a model leaves the sampling to the caller: those of one vendor have a single temperature each."""
    return not row.id.lower().startswith("kimi-")


def _sampling(call: Call, row: OpenCodeModel) -> dict[str, Any]:
    """The caller's sampling. Only callers of the OpenAI-style routes are known to mean it: Claude Code sends a
    temperature with small requests for any model."""
    request = call.request if call.converted and takes_sampling(row) else {}
    return {name: request[name] for name in SAMPLING if request.get(name) is not None}


def chat_body(call: Call, row: OpenCodeModel) -> dict[str, Any]:
    """The body for a chat model. Raises InvalidRequest."""
    extra = {"reasoning_effort": call.target.effort} if call.target.effort else {}
    extra |= _sampling(call, row)
    options = ChatOptions(row.id, dialect_of(row), _limit(call.request) or DEFAULT_MAX_TOKENS, extra)
    return messages_to_chat(call.request, options, call.simplified)


def native_body(call: Call, row: OpenCodeModel) -> dict[str, Any]:
    """The body for a model that speaks Messages."""
    limit = _limit(call.request) or DEFAULT_MAX_TOKENS
    effort = call.target.effort
    sees, schemas = row.sees, row.id == MINIMAX
    body = messages_to_messages(
        call.request,
        model=row.id,
        max_tokens=limit,
        effort=effort,
        images=sees,
        schemas=schemas,
        simplified=call.simplified,
    )
    body.pop("metadata", None)  # names the client's user
    if is_auto_review(call.request):
        body["thinking"] = {"type": "disabled"}
    elif row.id == MINIMAX:  # it thinks only on request
        body.setdefault("thinking", {"type": "adaptive"})
    return body


def responses_body(call: Call, row: OpenCodeModel, offsets: ReadOffsets, signs_as: str) -> dict[str, Any]:
    """The body for a model that speaks Responses. Raises InvalidRequest."""
    effort, key = call.target.effort, call.cache_key
    options = ResponsesOptions(row.id, effort=effort, cache_key=key, label=signs_as, offsets=offsets, strict=True)
    body = messages_to_responses(call.request, options, call.simplified)
    if call.converted:  # Codex CLI and others carry it, whether they name an effort or not
        body["include"] = ["reasoning.encrypted_content"]
    limit = _limit(call.request)
    return body | ({"max_output_tokens": limit} if limit else {})


def body_of(call: Call, row: OpenCodeModel, offsets: ReadOffsets, signs_as: str = LABEL) -> dict[str, Any]:
    """The body on the wire of the model. Raises InvalidRequest. `signs_as`: see `Services`."""
    if row.wire == "responses":
        return responses_body(call, row, offsets, signs_as)
    return chat_body(call, row) if row.wire == "chat" else native_body(call, row)


def headers(row: OpenCodeModel, key: Secret, session: str) -> dict[str, str]:
    """All headers of a request. The gateway refuses one without a session, and uses it to find caches."""
    common = {
        "Content-Type": "application/json",
        "Accept": "text/event-stream",
        "Accept-Encoding": "identity",
        "User-Agent": USER_AGENT,
        "x-opencode-session": session,
    }
    if row.wire == "messages":
        return {**common, "x-api-key": key.reveal(), "anthropic-version": "2023-06-01"}
    return {**common, "Authorization": f"Bearer {key.reveal()}"}


def session_of(call: Call, fallback: str) -> str:
    """The client's session, or its cache key, if it fits a header; else one for this request."""
    session = call.cache_key
    return session if session and fits_header(session) and " " not in session else fallback


def key_of(key: Secret | None) -> Secret:
    """The configured key. Raises SignInError."""
    if key is None or not key:
        raise SignInError(
            f"{LABEL} has no API key; set PROXY_P4_API_KEY or OPENCODE_API_KEY, or p4.apiKey in config.json",
            provider=LABEL,
        )
    return key


_FORMATS = frozenset({"json_schema", "json_object"})
_ALWAYS = frozenset({"response_format"})
_RULES: dict[Wire, IngressRules] = {
    "chat": IngressRules(honours=frozenset({"max_tokens", "stop", *SAMPLING})),
    "messages": IngressRules(honours=frozenset({"max_tokens", "temperature", "top_p", "top_k", "stop"})),
    "responses": IngressRules(
        honours=frozenset({"max_tokens", "stop", "verbosity", "strict"}), formats=_FORMATS, always=_ALWAYS
    ),
}
#: Models that differ from others of their wire.
_MODELS = {
    MINIMAX: IngressRules(honours=_RULES["messages"].honours, formats=frozenset({"json_schema"}), always=_ALWAYS),
}


def ingress_of(row: OpenCodeModel | None) -> IngressRules:
    """The rules of a model; the ordinary ones for an unknown name."""
    if row is None or not takes_sampling(row):
        return IngressRules()
    return _MODELS.get(row.id, _RULES[row.wire])
