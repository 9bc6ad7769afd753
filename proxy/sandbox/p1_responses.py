"""`POST …/responses`: the checks, then the script's step for the request or the model's normal answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import web

from proxy.sandbox.model import last_prompt, reply
from proxy.sandbox.moves import Move, Pace, Reply, play
from proxy.sandbox.p1_account import quota_headers
from proxy.sandbox.p1_answer import Answer
from proxy.sandbox.p1_checks import Seen, check_body
from proxy.sandbox.p1_failures import HTTP_FAULTS
from proxy.sandbox.p1_faults import STREAM_FAULTS
from proxy.sandbox.p1_headers import check_account, check_format, is_lite
from proxy.sandbox.p1_item_faults import ITEM_FAULTS
from proxy.sandbox.p1_items import Writer
from proxy.sandbox.p1_read import estimate_tokens, read_ask
from proxy.sandbox.received import receive
from proxy.sandbox.refusal import Refused, detail, plain_reply
from proxy.sandbox.script import Step
from proxy.sandbox.stream import number

if TYPE_CHECKING:
    from proxy.sandbox.p1 import P1

#: How an overflow of the context is told -> the fault that tells it.
_OVERFLOWS: dict[str, tuple[str, dict[str, Any]]] = {
    "failed": ("failed", {"after": "nothing"}),
    "error": ("error_event", {"status": 400}),
    "http": ("context_http", {}),
}


async def serve_responses(p1: P1, request: web.Request) -> web.StreamResponse:
    """One request for an answer."""
    with p1.at_work():
        if request.method != "POST":
            # no sockets here: a client in its automatic mode goes on over HTTP when it hears this
            return detail("Upgrade Required", 426).response()
        seen = await receive(request)
        p1.total_requests += 1
        p1.requests.append(seen)
        try:
            outcome, step = _decide(p1, request, seen.body)
        except Refused as refused:
            seen.status = refused.status
            return refused.response()
        if isinstance(outcome, Reply):
            seen.status = outcome.status
            return plain_reply(outcome.status, outcome.body, {**_trace_headers(p1), **(outcome.headers or {})})
        seen.status = 200
        headers = {**_trace_headers(p1), **_stream_headers(p1, seen.body)}
        return await play(request, headers, outcome, _pace(p1, step))


def _decide(p1: P1, request: web.Request, body: Any) -> tuple[Reply | list[Move], Step | None]:
    """What to do, and the script's step that says so, if any. Raises Refused."""
    check_account(request.headers, p1.tokens)
    check_format(request.headers, "text/event-stream")
    if not isinstance(body, dict):
        raise detail("Invalid JSON body")
    lite = is_lite(request.headers)
    check_body(Seen(request.headers, body, lite, p1.options.account_id))
    answer = _answer(p1, body, lite=lite)
    step = p1.script.take(body, last_prompt(answer.ask))
    if step is not None and step.reply is not None:
        return step.reply, step
    if step is not None and step.moves is not None:
        return step.moves, step
    if step is not None and step.fault is not None:
        return _apply(answer, step.fault, step.params), step
    if answer.input_tokens > p1.options.context_limit:
        fault, params = _OVERFLOWS[p1.options.context_form]
        code = {} if fault in HTTP_FAULTS else {"code": "context_length_exceeded"}
        return _apply(answer, fault, {**params, **code}), step
    return [*number(answer.events())], step


def _apply(answer: Answer, fault: str, params: Any) -> Reply | list[Move]:
    if fault in HTTP_FAULTS:
        return HTTP_FAULTS[fault](**params)
    table = STREAM_FAULTS if fault in STREAM_FAULTS else ITEM_FAULTS
    moves = table[fault](answer, **params)
    place = 0
    for move in moves:
        if isinstance(move, dict):
            move["sequence_number"] = place
            place += 1
    return moves


def _answer(p1: P1, body: dict[str, Any], *, lite: bool) -> Answer:
    """The normal answer of the model to a body that passed the checks."""
    ask = read_ask(body, lite=lite)
    reasoning = body.get("reasoning") or {}
    include = body.get("include") or ()
    writer = Writer(
        p1.ids,
        p1.options.account_id,
        summary=reasoning.get("summary") is not None,
        sealed="reasoning.encrypted_content" in include,
        sources="web_search_call.action.sources" in include,
    )
    tokens = estimate_tokens(body)
    compacting = body["input"][-1].get("type") == "compaction_trigger"
    items = [writer.compaction()] if compacting else writer.items(reply(ask))
    return Answer(
        ask,
        _envelope(p1, body),
        items,
        writer,
        tokens,
        p1.cached_tokens(body.get("prompt_cache_key"), tokens),
    )


def _envelope(p1: P1, body: dict[str, Any]) -> dict[str, Any]:
    """The response object without what is known at the end only. Tools and instructions are not repeated."""
    reasoning = body.get("reasoning") or {}
    return {
        "id": p1.ids.new("resp"),
        "object": "response",
        "created_at": int(p1.clock()),
        "model": body["model"],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "metadata": {},
        "parallel_tool_calls": body.get("parallel_tool_calls") is not False,
        "previous_response_id": None,
        "prompt_cache_key": body.get("prompt_cache_key"),
        "reasoning": {"effort": reasoning.get("effort"), "summary": reasoning.get("summary")},
        "service_tier": body.get("service_tier") or "default",
        "store": False,
        "temperature": 1.0,
        "text": body.get("text") or {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "user": None,
    }


def _pace(p1: P1, step: Step | None) -> Pace:
    delay, batch = p1.options.word_delay_s, p1.options.events_per_write
    if step is not None:
        delay = delay if step.word_delay_s is None else step.word_delay_s
        batch = step.events_per_write or batch
    return Pace(delay, batch)


def _trace_headers(p1: P1) -> dict[str, str]:
    request_id = p1.ids.new("req")
    return {"x-request-id": request_id, "x-oai-request-id": request_id, "cf-ray": f"{request_id[-16:]}-SBX"}


def _stream_headers(p1: P1, body: dict[str, Any]) -> dict[str, str]:
    return {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-cache",
        "openai-model": body["model"],
        "x-codex-turn-state": p1.ids.new("turn"),
        "x-models-etag": '"sandbox"',
        "x-reasoning-included": "true",
        **quota_headers(p1.clock()),
    }
