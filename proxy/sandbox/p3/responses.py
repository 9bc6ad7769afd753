"""`POST …/responses`: the checks, and the model's normal answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from proxy.sandbox.p3.answer import DONE, GrokAnswer, GrokWriter
from proxy.sandbox.p3.checks import check_body
from proxy.sandbox.p3.failures import HTTP_FAULTS
from proxy.sandbox.p3.faults import GROK_FAULTS
from proxy.sandbox.p3.headers import CONVERSATION, check_caller, check_format
from proxy.sandbox.p3.refusals import error_only, reworded
from proxy.sandbox.p3.state import P3
from proxy.sandbox.play.script import Place
from proxy.sandbox.upstream import Prepared, ServedWire
from proxy.sandbox.wires.refusal import Refused
from proxy.sandbox.wires.responses.write import Form, write_answer

RESPONSES = ServedWire(Place("p3", "responses"), HTTP_FAULTS, GROK_FAULTS)

_FORM = Form(GrokWriter, GrokAnswer, always_shown=True)


def prepare_responses(p3: P3, request: web.Request, body: Any) -> Prepared:
    check_caller(request.headers, p3.tokens, p3.options)
    check_format(request.headers)
    if not isinstance(body, dict):
        raise error_only(400, "Failed to parse the request body as JSON: expected an object")
    try:
        rules = check_body(body, p3.options.user_id)
    except Refused as refused:
        raise reworded(refused) from None
    conversation = request.headers.get(CONVERSATION)
    answer = write_answer(p3, body, rules.reader, _FORM, cache_key=conversation)
    options, model = p3.options, rules.model
    answer.tail, answer.linger_s = DONE if options.done else b"", options.linger_s
    limit = options.context_limit or model.context
    instead: tuple[str, Mapping[str, Any]] | None = None
    if answer.input_tokens > limit:
        instead = ("context_http", {"limit": limit, "tokens": answer.input_tokens})
    headers = {"x-grok-context-window": str(model.context), "x-grok-max-completion-tokens": str(model.most_output)}
    return Prepared(RESPONSES, answer, headers, instead)
