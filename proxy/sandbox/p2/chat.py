"""`POST …/chat/completions` of P2: the checks, the model's normal answer, and the failures as HTTP answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from proxy.sandbox.model.reply import Called
from proxy.sandbox.p2.catalog import MODELS, P2Model, rules_for, thinks
from proxy.sandbox.p2.issuer import NOT_AN_AGENT, check_caller
from proxy.sandbox.p2.state import P2
from proxy.sandbox.play.actions import FRONT_FAULTS, HttpFault, Values, failure
from proxy.sandbox.play.script import Place
from proxy.sandbox.play.stream_faults import WHOLE_FAULTS
from proxy.sandbox.upstream import CheckedRequest, ServedWire
from proxy.sandbox.wires.chat.answer import ChatAnswer
from proxy.sandbox.wires.chat.checks import check_chat
from proxy.sandbox.wires.chat.faults import CHAT_FAULTS
from proxy.sandbox.wires.chat.read import read_chat, write_chat
from proxy.sandbox.wires.refusal import Refused, invalid


def _error(kind: str, message: str = "") -> Callable[[Values], dict[str, Any]]:
    """`{"error":{"message","type","code"}}`, with `wrapped` inside of `{"type":"error", …}`; a step may replace the
    message."""

    def body(values: Values) -> dict[str, Any]:
        said = values.get("message", message)
        error = {"error": {"message": said, "type": kind, "code": None}}
        return {"type": "error", **error} if values.get("wrapped") else error

    return body


def _context(values: Values) -> dict[str, Any]:
    limit, tokens = values["limit"], values["tokens"]
    message = f"Invalid request: Your request exceeded model token limit: {limit} (requested: {tokens})"
    return _error("invalid_request_error", message)(values)


_RATE_LIMIT = _error(
    "rate_limit_reached_error", "Your request was rejected: rate limit reached. Please try again later."
)
_QUOTA = "You exceeded your current quota, please check your account balance."
_OVERLOADED = "The engine is currently overloaded, please try again later."

HTTP_FAULTS: dict[str, HttpFault] = {
    **FRONT_FAULTS,
    "rate_limit": failure(429, _RATE_LIMIT, seconds=1, status=429, wrapped=False),
    "usage_limit": failure(429, _error("exceeded_current_quota_error", _QUOTA), seconds=None),
    "huge_retry_after": failure(429, _RATE_LIMIT, seconds=86_400),
    "overloaded": failure(529, _error("engine_overloaded_error", _OVERLOADED), status=529, retry_after=None),
    "server_error": failure(500, _error("server_error", "Internal server error"), status=500),
    "unauthorized": failure(401, _error("invalid_authentication_error", "The access token is expired or was revoked.")),
    "payment_required": failure(
        402, _error("payment_required_error"), message="Your membership has ended. Please renew it."
    ),
    "forbidden": failure(403, _error("access_terminated_error"), message=NOT_AN_AGENT),
    "context_http": failure(400, _context, limit=262_144, tokens=300_000),
    "bad_request": failure(
        400,
        _error("invalid_request_error"),
        message="Invalid request: the body is not understood",
        status=400,
    ),
}


STREAM = ServedWire(Place("p2", "chat"), HTTP_FAULTS, CHAT_FAULTS)
WHOLE = ServedWire(Place("p2", "chat", stream=False), HTTP_FAULTS, WHOLE_FAULTS)


#: Members replaced by `max_completion_tokens` and `thinking.effort`.
OLDER_MEMBERS = ("max_tokens", "reasoning_effort")


def prepare_chat(p2: P2, request: web.Request, body: Any) -> CheckedRequest:
    try:
        check_caller(request.headers, p2.tokens, p2.options.agents)
        if request.content_type != "application/json" or not isinstance(body, dict):
            raise invalid("Invalid request: a JSON body is needed")
        model = _model(body)
        thinking = thinks(model, body) if isinstance(body.get("thinking"), dict | None) else True
        check_chat(body, rules_for(model, thinking=thinking, one_effort=p2.options.one_effort))
    except Refused as refused:
        raise _reworded(refused) from None
    p2.older_members.update(name for name in OLDER_MEMBERS if name in body)
    answer = _answer(p2, body, model, thinking=thinking)
    limit = p2.options.context_limit or model.context
    over = answer.input_tokens > limit
    wire = STREAM if body.get("stream") else WHOLE
    instead = ("context_http", {"limit": limit, "tokens": answer.input_tokens}) if over else None
    return CheckedRequest(wire, answer, instead=instead)


def _model(body: Mapping[str, Any]) -> P2Model:
    name = body.get("model")
    if not isinstance(name, str) or name not in MODELS:
        raise invalid(f"Not found the model {name} or Permission denied", status=404, kind="resource_not_found_error")
    return MODELS[name]


def _reworded(refused: Refused) -> Refused:
    """The refusal in the shape of this backend, without a parameter's name."""
    error = refused.body["error"]
    return Refused(refused.status, {"error": {"message": error["message"], "type": error["type"], "code": None}})


def _answer(p2: P2, body: dict[str, Any], model: P2Model, *, thinking: bool) -> ChatAnswer:
    asked = body.get("reasoning_effort") or (body.get("thinking") or {}).get("effort") or model.default_effort
    ask = read_chat(body, effort=asked if thinking else None)
    made = sum(isinstance(entry, Called) for entry in ask.entries)
    return write_chat(
        p2,
        body,
        ask,
        # the vendor's own form: the tool, and its number within the conversation
        new_id=lambda tool, number: f"{tool}:{made + number}",
        cache_key=body.get("prompt_cache_key"),
        usage_places=p2.options.usage_places,
    )
