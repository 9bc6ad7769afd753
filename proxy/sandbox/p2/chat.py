"""`POST …/chat/completions` of P2: the checks, and the model's normal answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from proxy.sandbox.model.reply import Called
from proxy.sandbox.p2.catalog import MODELS, P2Model, rules_for, thinks
from proxy.sandbox.p2.failures import HTTP_FAULTS
from proxy.sandbox.p2.issuer import check_caller
from proxy.sandbox.p2.state import P2
from proxy.sandbox.play.script import Place
from proxy.sandbox.play.stream_faults import WHOLE_FAULTS
from proxy.sandbox.upstream import Prepared, ServedWire
from proxy.sandbox.wires.chat.answer import ChatAnswer
from proxy.sandbox.wires.chat.checks import check_chat
from proxy.sandbox.wires.chat.faults import CHAT_FAULTS
from proxy.sandbox.wires.chat.read import read_chat, write_chat
from proxy.sandbox.wires.refusal import Refused, invalid

STREAM = ServedWire(Place("p2", "chat"), HTTP_FAULTS, CHAT_FAULTS)
WHOLE = ServedWire(Place("p2", "chat", stream=False), HTTP_FAULTS, WHOLE_FAULTS)


#: `max_completion_tokens` and `thinking.effort` took their place.
OLDER_MEMBERS = ("max_tokens", "reasoning_effort")


def prepare_chat(p2: P2, request: web.Request, body: Any) -> Prepared:
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
    return Prepared(wire, answer, instead=instead)


def _model(body: Mapping[str, Any]) -> P2Model:
    name = body.get("model")
    if not isinstance(name, str) or name not in MODELS:
        raise invalid(f"Not found the model {name} or Permission denied", status=404, kind="resource_not_found_error")
    return MODELS[name]


def _reworded(refused: Refused) -> Refused:
    """The refusal in the shape of this backend, which names no parameter."""
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
