"""`POST …/responses`: the checks, and the model's normal answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from proxy.sandbox.p1.checks import Seen, check_body
from proxy.sandbox.p1.failures import HTTP_FAULTS
from proxy.sandbox.p1.headers import check_account, check_format, is_lite
from proxy.sandbox.p1.state import P1
from proxy.sandbox.play.script import Place
from proxy.sandbox.upstream import Prepared, ServedWire
from proxy.sandbox.wires.refusal import detail
from proxy.sandbox.wires.responses.answer import ResponsesAnswer
from proxy.sandbox.wires.responses.faults import RESPONSES_FAULTS
from proxy.sandbox.wires.responses.write import PLAIN, write_answer

RESPONSES = ServedWire(Place("p1", "responses"), HTTP_FAULTS, RESPONSES_FAULTS)

#: How an overflow of the context is told -> the fault that tells it.
_OVERFLOWS: dict[str, tuple[str, dict[str, Any]]] = {
    "failed": ("failed", {"after": "nothing", "code": "context_length_exceeded"}),
    "error": ("error_event", {"status": 400, "code": "context_length_exceeded"}),
    "http": ("context_http", {}),
}


def prepare_responses(p1: P1, request: web.Request, body: Any) -> Prepared:
    check_account(request.headers, p1.tokens)
    check_format(request.headers, "text/event-stream")
    if not isinstance(body, dict):
        raise detail("Invalid JSON body")
    answer, instead = checked_answer(p1, request.headers, body, lite=is_lite(request.headers))
    return Prepared(RESPONSES, answer, {"openai-model": body["model"], **p1.account_headers()}, instead)


def checked_answer(
    p1: P1, headers: Mapping[str, str], body: dict[str, Any], *, lite: bool
) -> tuple[ResponsesAnswer, tuple[str, dict[str, Any]] | None]:
    """The answer to a whole body over whatever transport, and the fault that comes instead. Raises Refused."""
    check_body(Seen(headers, body, lite, p1.options.account_id, models=p1.options.models))
    answer = write_answer(p1, body, p1.options.account_id, PLAIN, lite=lite)
    over = answer.input_tokens > p1.options.context_limit
    return answer, _OVERFLOWS[p1.options.context_form] if over else None
