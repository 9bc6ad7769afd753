"""The vectors on disk and what the code makes of them. Tests compare, `scripts/vectors --write` refreshes.

messages_to_responses/<case>.json            {"about", "request", "settings", "session", "auto_review"}
messages_to_responses/<case>.expected.json   {"body", "lite", "tokens"} or {"error"}
responses_to_messages/<case>.sse             bytes of an upstream
responses_to_messages/<case>.json            what the answer belongs to: {"about", "request", "signatures"}; optional
responses_to_messages/<case>.jsonl           the events, one a line; a last line {"outcome"} when there is no good end
responses_to_messages/<case>.reply.json      the same answer in one piece, for cases that have an end
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from proxy.config import Config
from proxy.core.convert.messages_to_responses import output_format
from proxy.core.convert.responses_to_messages import ResponsesToMessages
from proxy.core.invalid import InvalidRequest
from proxy.core.messages import Fold, MessageStream, check_request, decode_body
from proxy.core.read_tool import ReadOffsets
from proxy.core.reducer import AnswerPolicy, BadAnswer
from proxy.core.responses_events import failure_of
from proxy.core.routing import normalise_model
from proxy.core.schema import has_optional, restore_text
from proxy.core.sse import SSEDecoder
from proxy.core.stops import StopSequences, stops_of
from proxy.core.tokens import Length, count_responses
from proxy.errors import ProxyError
from proxy.providers.base import Call
from proxy.providers.p1_codex.request import prepare, resolve
from proxy.providers.tokenizer import Tokenizer

VECTORS = Path(__file__).parent.parent / "vectors"
REQUESTS = VECTORS / "messages_to_responses"
ANSWERS = VECTORS / "responses_to_messages"

INPUT_TOKENS = 7
MODEL = "gpt-5.6-sol"


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


@cache
def real_length() -> Length:
    """Token counts with the shipped vocabulary."""

    async def borrow() -> Length:
        tokenizer = Tokenizer()
        try:
            return await tokenizer.run(lambda length: length)
        finally:
            tokenizer.close()

    return asyncio.run(borrow())


# -- requests


def request_cases() -> list[str]:
    return sorted(path.stem for path in REQUESTS.glob("*.json") if not path.stem.endswith(".expected"))


def request_result(case: str) -> dict[str, Any]:
    """What becomes of a request: the upstream body, its lane and its size, or the refusal."""
    vector = read(REQUESTS / f"{case}.json")
    try:
        return translated(vector)
    except InvalidRequest as error:
        return {"error": {"status": 400, "message": error.message, "param": error.param}}
    except ProxyError as error:
        return {"error": {"status": error.status, "message": error.message}}


def translated(vector: Mapping[str, Any]) -> dict[str, Any]:
    request = decode_body(json.dumps(vector["request"]).encode())
    check_request(request)
    config = Config(**vector.get("settings", {}))
    model = normalise_model(request["model"])
    auto_review = vector.get("auto_review", False)
    offsets = ReadOffsets()
    for call_id, (offset, path) in vector.get("offsets", {}).items():
        offsets.remember(call_id, offset, path)
    call = Call(
        request=request,
        model=model,
        target=resolve(model, request, config, auto_review=auto_review),
        request_id="r",
        session=vector.get("session"),
        auto_review=auto_review,
    )
    prepared = prepare(call, config, offsets)
    return {"body": prepared.body, "lite": prepared.lite, "tokens": count_responses(prepared.body, real_length())}


# -- answers


def answer_cases() -> list[str]:
    return sorted(path.stem for path in ANSWERS.glob("*.sse"))


def answer_context(case: str) -> dict[str, Any]:
    path = ANSWERS / f"{case}.json"
    return read(path) if path.exists() else {}


def answer_result(case: str, chunks: Iterable[bytes] | None = None) -> list[dict[str, Any]]:
    """The events that an upstream's bytes become. `chunks`: the same bytes in another split."""
    raw = (ANSWERS / f"{case}.sse").read_bytes()
    return drive([raw] if chunks is None else chunks, answer_context(case))


def drive(chunks: Iterable[bytes], context: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Bytes to events, as a provider does it, without transport and retries."""
    request = context.get("request", {})
    stream = MessageStream("msg_1", normalise_model(request.get("model", MODEL)), input_tokens=INPUT_TOKENS)
    reducer = ResponsesToMessages(stream, policy_of(context))
    stops = stops_of(request)
    cutter = StopSequences(stops, input_tokens=INPUT_TOKENS) if stops else None
    out: list[dict[str, Any]] = []

    def add(events: list[dict[str, Any]]) -> None:
        out.extend(cutter.feed(events) if cutter else events)

    decoder = SSEDecoder()
    for chunk in chunks:
        for _, data in decoder.feed(chunk):
            if data == b"[DONE]":
                continue
            event = json.loads(data)
            failure = failure_of(event)
            if failure is not None:
                said = reducer.produced
                add(reducer.interrupt())
                shape = {"kind": failure.kind, "status": failure.status, "message": failure.message}
                return [*out, {"outcome": "failure", "after_output": said, "retryable": failure.retryable, **shape}]
            try:
                add(reducer.feed(event))
            except BadAnswer as error:
                add(reducer.interrupt())
                return [*out, {"outcome": "bad answer", "message": str(error)}]
            if reducer.finished or (cutter and cutter.done):
                return out if reducer.produced else [*out, {"outcome": "empty"}]
    said = reducer.produced
    add(reducer.interrupt())
    return [*out, {"outcome": "truncated", "after_output": said, "partial_frame": decoder.has_partial}]


def policy_of(context: Mapping[str, Any]) -> AnswerPolicy:
    request = context.get("request", {})
    wanted = output_format(request) or {}
    schema = wanted.get("schema")
    return AnswerPolicy(
        request,
        offsets=ReadOffsets(),
        signatures=context.get("signatures", True),
        restore=partial(restore_text, schema=schema) if has_optional(schema) else None,
    )


def events_of(result: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line for line in result if "outcome" not in line]


def reply_of(result: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The answer in one piece, None when it has no end."""
    fold = Fold()
    fold.add(events_of(result))
    return fold.message if fold.complete else None


# -- on disk


def lines(result: list[dict[str, Any]]) -> str:
    return "".join(readable(line) for line in result)


def readable(value: Any, indent: int | None = None) -> str:
    """JSON for people; with escapes where a text has half a surrogate pair."""
    text = json.dumps(value, ensure_ascii=False, indent=indent) + "\n"
    return json.dumps(value, indent=indent) + "\n" if any("\ud800" <= char <= "\udfff" for char in text) else text


def outputs() -> dict[Path, str]:
    """Every expected file and what the code says should stand in it."""
    files = {REQUESTS / f"{case}.expected.json": readable(request_result(case), 2) for case in request_cases()}
    for case in answer_cases():
        result = answer_result(case)
        files[ANSWERS / f"{case}.jsonl"] = lines(result)
        reply = reply_of(result)
        if reply is not None:
            files[ANSWERS / f"{case}.reply.json"] = readable(reply, 2)
    return files


def stale() -> list[Path]:
    """Expected files that belong to no case."""
    known = set(outputs())
    found = [*REQUESTS.glob("*.expected.json"), *ANSWERS.glob("*.jsonl"), *ANSWERS.glob("*.reply.json")]
    return sorted(path for path in found if path not in known)
