"""The model's normal answer to a Responses body that passed the checks."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

from proxy.sandbox.model.reply import reply
from proxy.sandbox.upstream import Upstream
from proxy.sandbox.wires.responses.answer import ResponsesAnswer
from proxy.sandbox.wires.responses.items import Writer
from proxy.sandbox.wires.responses.read import prompt_parts, prompt_tokens, read_ask

A = TypeVar("A", bound=ResponsesAnswer)


class Form(NamedTuple, Generic[A]):
    """How a backend writes: its items and its events. `always_shown`: summaries of thoughts come unasked."""

    writer: type[Writer]
    answer: type[A]
    always_shown: bool = False


PLAIN = Form(Writer, ResponsesAnswer)


def write_answer(
    upstream: Upstream,
    body: dict[str, Any],
    account_id: str,
    form: Form[A],
    *,
    lite: bool = False,
    cache_key: str | None = None,
) -> A:
    """What the model says, its thoughts encrypted for the account. `cache_key`: where the body names none."""
    ask = read_ask(body, lite=lite)
    include = body.get("include") or ()
    writer = form.writer(
        upstream.ids,
        account_id,
        summary=form.always_shown or (body.get("reasoning") or {}).get("summary") is not None,
        include=include,
    )
    tokens = prompt_tokens(body)
    answer = form.answer(
        ask=ask,
        envelope=_envelope(upstream, body),
        writer=writer,
        input_tokens=tokens,
        cached_tokens=upstream.cached_tokens(
            body.get("prompt_cache_key") or cache_key,
            body["model"],
            prompt_parts(body),
            tokens,
            account=account_id,
        ),
    )
    if body["input"][-1].get("type") == "compaction_trigger":
        answer.blocks = [writer.compaction()]
    else:
        answer.say(reply(ask))
    return answer


def _envelope(upstream: Upstream, body: dict[str, Any]) -> dict[str, Any]:
    """The response object without what is known at the end only. Tools and instructions are not repeated."""
    reasoning = body.get("reasoning") or {}
    return {
        "id": upstream.ids.new("resp"),
        "object": "response",
        "created_at": int(upstream.clock()),
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
