"""The vectors on disk and what the code makes of them. Tests compare, `scripts/vectors --write` refreshes.

messages_to_responses/<case>.json            {"about", "request", "settings", "session", "auto_review"}
messages_to_responses/<case>.expected.json   {"body", "lite", "tokens"} or {"error"}
responses_to_messages/<case>.sse             bytes of an upstream
responses_to_messages/<case>.json            what the answer belongs to: {"about", "request", "signatures", "rules"};
                                             optional; rules: a name of ANSWER_RULES, else p1
responses_to_messages/<case>.jsonl           the events, one a line; a last line {"outcome"} when there is no good end
responses_to_messages/<case>.reply.json      the same answer in one piece, for cases that have an end

messages_to_chat/<case>.json                 {"about", "request", "dialects"}: names of DIALECTS, all when absent
messages_to_chat/<case>.expected.json        dialect -> the body, or {"error"}
chat_to_messages/<case>.*                    as responses_to_messages; the .json has {"about", "request", "own_ids",
                                             "message_id"}

messages_to_grok/<case>.json                 {"about", "request", "settings", "constraints", "session"}
messages_to_grok/<case>.expected.json        {"body", "notes", "tokens"} or {"error"}

chat_request_to_messages/<case>.json         {"about", "body", "rules", "session", "lenient"}: a name of RULES,
                                             else p2
chat_request_to_messages/<case>.expected.json  the members of the Ingress that say something, or {"error"}
responses_request_to_messages/<case>.*       the same

described_pictures/<case>.json               {"about", "surface", "body", "results_only", "descriptions"}; surface:
                                             messages, chat, responses; a description for each picture, null for none
described_pictures/<case>.expected.json      {"questions", "request", "chat"}: what the model that sees is asked, the
                                             hub request, and the body of a chat model that takes no pictures

search_plans, search_rounds: see `search_cases`; model_lists: see `model_list_cases`
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

from harness import configured

from core.model_list_cases import list_result
from core.openai_bodies import PARSERS, RULES
from core.search_cases import plan_result, rounds_result
from proxy.config import Config
from proxy.core.bodies.decode import decode_body
from proxy.core.content import PictureCheck
from proxy.core.convert.chat_to_messages import ChatToMessages
from proxy.core.convert.messages_to_chat import ChatOptions, messages_to_chat
from proxy.core.convert.messages_to_responses import ResponsesOptions, messages_to_responses
from proxy.core.convert.responses_to_messages import ResponsesToMessages
from proxy.core.invalid import InvalidRequest
from proxy.core.media.descriptions import Described, blind_spots, in_place, question
from proxy.core.messages import Fold, MessageStream, check_request
from proxy.core.reducer import AnswerPolicy, AnswerRules, BadAnswer
from proxy.core.responses_events import responses_failure
from proxy.core.routing import normalise_model
from proxy.core.sse import SSEDecoder, load_json, mended_text
from proxy.core.stops import StopSequences, stops_of
from proxy.core.tokens.counting import Length, count_responses
from proxy.core.tools.read_tool import ReadOffsets
from proxy.core.tools.schema import has_optional, output_format, restore_text
from proxy.errors import ProxyError
from proxy.providers.contract import Call
from proxy.providers.p1_codex.request import prepare, resolve
from proxy.providers.p2_kimi.provider import DIALECT as P2_DIALECT
from proxy.providers.p3_grok import request as grok
from proxy.providers.p3_grok.provider import answer_rules
from proxy.providers.p3_grok.settings import GrokSettings
from proxy.providers.p4_opencode.catalog import MODELS
from proxy.providers.p4_opencode.request import dialect_of
from proxy.providers.upstream.tokenizer import Tokenizer

VECTORS = Path(__file__).parent.parent / "vectors"

#: The forms that chat upstreams want today, as the providers ask for them.
DIALECTS = {
    "p2": P2_DIALECT,
    "p4": replace(dialect_of(MODELS["hy3"]), images=True),
    "p4-deepseek": replace(dialect_of(MODELS["deepseek-v4-pro"]), images=True),
    "p4-kimi": dialect_of(MODELS["kimi-k2.6"]),
    "p4-blind": dialect_of(MODELS["hy3"]),
}
#: In what upstreams differ that answer over the Responses API.
ANSWER_RULES = {
    "p1": AnswerRules(),
    "p3": answer_rules(GrokSettings(), converted=False),
    "p3-native": answer_rules(GrokSettings(search_blocks="native"), converted=False),
    "p3-converted": answer_rules(GrokSettings(), converted=True),
}
MARK = "model-proxy:p2:v1"

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


def request_result(vector: Mapping[str, Any]) -> dict[str, Any]:
    """What becomes of a request: the upstream body, its lane and its size, or the refusal."""
    try:
        return translated(vector)
    except InvalidRequest as error:
        return {"error": {"status": 400, "message": error.message, "param": error.param}}
    except ProxyError as error:
        return {"error": {"status": error.status, "message": error.message}}


def translated(vector: Mapping[str, Any]) -> dict[str, Any]:
    request = decode_body(json.dumps(vector["request"]).encode())
    check_request(request)
    config = configured(Config(), **vector.get("settings", {}))
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


def grok_result(vector: Mapping[str, Any]) -> dict[str, Any]:
    """What becomes of a request on P3: the body, what the log is told, its size; or the refusal."""
    try:
        request = decode_body(json.dumps(vector["request"]).encode())
        check_request(request)
        written = grok_written(request, vector)
    except InvalidRequest as error:
        return {"error": {"status": 400, "message": error.message, "param": error.param}}
    return {"body": written.body, "notes": list(written.notes), "tokens": grok.count(written.body)}


def grok_written(request: Mapping[str, Any], vector: Mapping[str, Any]) -> grok.Written:
    model = normalise_model(request.get("model", "grok-4.5"))
    target = grok.target_of(model, request)
    call = Call(request=request, model=model, target=target, request_id="r", session=vector.get("session"))
    settings = GrokSettings(**vector.get("settings", {}))
    return grok.responses_body(call, settings, vector.get("constraints", "system_prompt"))


def grok_bodies(vector: Mapping[str, Any]) -> None:
    with suppress(InvalidRequest):
        grok_written(vector["request"], vector)


def chat_request_result(vector: Mapping[str, Any]) -> dict[str, Any]:
    """What becomes of a request in each dialect."""
    return {name: chat_translated(vector["request"], name) for name in vector.get("dialects", DIALECTS)}


def chat_translated(request: Mapping[str, Any], dialect: str) -> dict[str, Any]:
    body = decode_body(json.dumps(request).encode())
    try:
        check_request(body)
        max_tokens = body.get("max_tokens") or 32000
        return messages_to_chat(body, ChatOptions("m", DIALECTS[dialect], max_tokens, extra={}))
    except InvalidRequest as error:
        return {"error": {"status": 400, "message": error.message, "param": error.param}}


def ingress_result(vector: Mapping[str, Any], surface: str) -> dict[str, Any]:
    """What a parser makes of a client's body."""
    body = decode_body(json.dumps(vector["body"]).encode())
    try:
        ingress = PARSERS[surface](body, RULES[vector.get("rules", "p2")], **_reading(vector))
    except InvalidRequest as error:
        return {"error": {"message": error.message, "param": error.param, "code": error.code}}
    return json.loads(json.dumps({name: value for name, value in asdict(ingress).items() if value}, default=sorted))


def _reading(vector: Mapping[str, Any]) -> dict[str, Any]:
    return {"session": vector.get("session"), "lenient": vector.get("lenient", False)}


def described_result(vector: Mapping[str, Any]) -> dict[str, Any]:
    """What becomes of a request whose pictures were described."""
    body = decode_body(json.dumps(vector["body"]).encode())
    surface = vector["surface"]
    request = body if surface == "messages" else PARSERS[surface](body, RULES["p2"]).request
    messages = PictureCheck().in_messages(request["messages"])
    found = blind_spots(messages, results_only=vector.get("results_only", False))
    texts = zip(found, vector["descriptions"], strict=True)
    places = {spot: in_place(text, "seer") for spot, text in texts if text is not None}
    described = {**request, "messages": Described(places).in_messages(messages)}
    questions = {picture.digest: question(picture) for picture in found.values()}
    chat = messages_to_chat(described, ChatOptions("m", DIALECTS["p4-blind"], 32_000, extra={}))
    return {"questions": questions, "request": described, "chat": chat}


def chat_bodies(vector: Mapping[str, Any]) -> None:
    for dialect in DIALECTS.values():
        with suppress(InvalidRequest):
            messages_to_chat(vector["request"], ChatOptions("m", dialect, 1, {}))


def parsed(vector: Mapping[str, Any], surface: str) -> Any:
    return PARSERS[surface](vector["body"], RULES[vector.get("rules", "p2")], **_reading(vector))


@dataclass(frozen=True)
class RequestVectors:
    """A folder of requests.

    result     what should stand in the expected file of a vector
    translate  the same work on the vector itself, not on a copy of it
    """

    folder: Path
    result: Callable[[Mapping[str, Any]], Any]
    translate: Callable[[Mapping[str, Any]], object]

    def cases(self) -> list[str]:
        return sorted(path.stem for path in self.folder.glob("*.json") if not path.stem.endswith(".expected"))

    def vector(self, case: str) -> Any:
        return read(self.folder / f"{case}.json")


OTHERS = {"search_plans": plan_result, "search_rounds": rounds_result, "model_lists": list_result}
REQUESTS = {
    "messages_to_responses": RequestVectors(
        VECTORS / "messages_to_responses",
        request_result,
        lambda vector: messages_to_responses(vector["request"], ResponsesOptions("m", offsets=ReadOffsets())),
    ),
    "messages_to_grok": RequestVectors(VECTORS / "messages_to_grok", grok_result, grok_bodies),
    "messages_to_chat": RequestVectors(VECTORS / "messages_to_chat", chat_request_result, chat_bodies),
    "described_pictures": RequestVectors(VECTORS / "described_pictures", described_result, described_result),
    **{
        f"{surface}_request_to_messages": RequestVectors(
            VECTORS / f"{surface}_request_to_messages",
            partial(ingress_result, surface=surface),
            partial(parsed, surface=surface),
        )
        for surface in PARSERS
    },
    **{
        name: RequestVectors(VECTORS / name, result, result)
        for name, result in (
            ("search_plans", plan_result),
            ("search_rounds", rounds_result),
            ("model_lists", list_result),
        )
    },
}


# -- answers


def events_in(chunks: Iterable[bytes], *, lenient: bool) -> Iterator[dict[str, Any]]:
    """The events of an upstream as a transport reads them."""
    decoder = SSEDecoder()
    frames = chain.from_iterable(map(decoder.feed, chunks))
    for _, data in chain(frames, _whole_tail(decoder) if lenient else ()):
        if data.strip() not in (b"", b"[DONE]"):
            event = load_json(mended_text(data) if lenient else data.decode())
            if isinstance(event, dict):
                yield event


def _whole_tail(decoder: SSEDecoder) -> Iterator[tuple[bytes, bytes]]:
    """What the end of the body left without its blank line, when it is whole."""
    for frame in decoder.end():
        with suppress(ValueError):
            load_json(mended_text(frame[1]))
            yield frame


def drive(chunks: Iterable[bytes], context: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Bytes to events, as a provider does it, without transport and retries."""
    request = context.get("request", {})
    stream = MessageStream("msg_1", normalise_model(request.get("model", MODEL)), input_tokens=INPUT_TOKENS)
    policy = policy_of(context)
    reducer = ResponsesToMessages(stream, policy)
    stops = stops_of(request)
    cutter = StopSequences(stops, input_tokens=INPUT_TOKENS) if stops else None
    out: list[dict[str, Any]] = []

    def add(events: list[dict[str, Any]]) -> None:
        out.extend(cutter.feed(events) if cutter else events)

    for event in events_in(chunks, lenient=policy.rules != AnswerRules()):
        failure = responses_failure(event, rules=policy.rules)
        if failure is not None:
            said = reducer.produced
            add(reducer.interrupt())
            shape = {"kind": failure.kind, "status": failure.status, "message": failure.message}
            return [*out, {"outcome": "failure", "after_output": said, **shape}]
        try:
            add(reducer.feed(event))
        except BadAnswer as error:
            add(reducer.interrupt())
            return [*out, {"outcome": "bad answer", "message": str(error)}]
        if reducer.finished or (cutter and cutter.done):
            return out if reducer.produced else [*out, {"outcome": "empty"}]
    said = reducer.produced
    add(reducer.interrupt())
    return [*out, {"outcome": "truncated", "after_output": said}]


def chat_drive(chunks: Iterable[bytes], context: Mapping[str, Any]) -> list[dict[str, Any]]:
    message_id = context.get("message_id", "msg_1")
    own_id = (lambda number: f"toolu_{message_id}_{number}") if context.get("own_ids") else None
    stream = MessageStream(message_id, "m", input_tokens=INPUT_TOKENS)
    reducer = ChatToMessages(stream, policy_of(context), mark=MARK, own_id=own_id)
    out: list[dict[str, Any]] = []
    decoder = SSEDecoder()
    try:
        for chunk in chunks:
            for _, data in decoder.feed(chunk):
                if data == b"[DONE]":
                    out += reducer.end(done=True)
                elif (chunk := _chunk(data)) is not None:
                    out += reducer.feed(chunk)
        out += reducer.end(done=False)
    except BadAnswer as error:
        said = reducer.produced
        return [*out, *reducer.interrupt(), {"outcome": "bad answer", "after_output": said, "message": str(error)}]
    return out


def _chunk(data: bytes) -> dict[str, Any] | None:
    """What a transport passes on: garbage says nothing."""
    try:
        chunk = load_json(data.decode())
    except (ValueError, RecursionError):
        return None
    return chunk if isinstance(chunk, dict) else None


def policy_of(context: Mapping[str, Any]) -> AnswerPolicy:
    request, rules = context.get("request", {}), context.get("rules", "p1")
    is_p1 = rules == "p1"
    wanted = output_format(request) or {}
    schema = wanted.get("schema")
    return AnswerPolicy(
        request,
        offsets=ReadOffsets() if is_p1 else None,
        signatures=context.get("signatures", "p1" if is_p1 else "") or "",
        rules=ANSWER_RULES[rules],
        restore=partial(restore_text, schema=schema) if has_optional(schema) else None,
        converted=context.get("converted", rules == "p3-converted"),
    )


def events_of(result: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line for line in result if "outcome" not in line]


def reply_of(result: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The answer in one piece, None when it has no end."""
    fold = Fold()
    fold.add(events_of(result))
    return fold.message if fold.complete else None


@dataclass(frozen=True)
class AnswerVectors:
    """A folder of upstream answers. `drive`: bytes and their context to events, as a provider does it."""

    folder: Path
    drive: Callable[[Iterable[bytes], Mapping[str, Any]], list[dict[str, Any]]]

    def cases(self) -> list[str]:
        return sorted(path.stem for path in self.folder.glob("*.sse"))

    def raw(self, case: str) -> bytes:
        return (self.folder / f"{case}.sse").read_bytes()

    def result(self, case: str, chunks: Iterable[bytes] | None = None) -> list[dict[str, Any]]:
        """The events that an upstream's bytes become. `chunks`: the same bytes in another split."""
        path = self.folder / f"{case}.json"
        return self.drive([self.raw(case)] if chunks is None else chunks, read(path) if path.exists() else {})

    def files(self, case: str) -> dict[Path, str]:
        """The expected files of a case and what the code says should stand in them."""
        result = self.result(case)
        files = {self.folder / f"{case}.jsonl": lines(result)}
        reply = reply_of(result)
        return files if reply is None else {**files, self.folder / f"{case}.reply.json": readable(reply, 2)}


ANSWERS = {
    "responses_to_messages": AnswerVectors(VECTORS / "responses_to_messages", drive),
    "chat_to_messages": AnswerVectors(VECTORS / "chat_to_messages", chat_drive),
}


# -- on disk


def lines(result: list[dict[str, Any]]) -> str:
    return "".join(readable(line) for line in result)


def readable(value: Any, indent: int | None = None) -> str:
    """JSON for people; with escapes where a text has half a surrogate pair."""
    text = json.dumps(value, ensure_ascii=False, indent=indent) + "\n"
    return json.dumps(value, indent=indent) + "\n" if any("\ud800" <= char <= "\udfff" for char in text) else text


def outputs() -> dict[Path, str]:
    """Every expected file and what the code says should stand in it."""
    files = {
        family.folder / f"{case}.expected.json": readable(family.result(family.vector(case)), 2)
        for family in REQUESTS.values()
        for case in family.cases()
    }
    for answers in ANSWERS.values():
        for case in answers.cases():
            files |= answers.files(case)
    return files


def stale() -> list[Path]:
    """Expected files that belong to no case."""
    known = set(outputs())
    found = [path for family in REQUESTS.values() for path in family.folder.glob("*.expected.json")]
    for answers in ANSWERS.values():
        found += [*answers.folder.glob("*.jsonl"), *answers.folder.glob("*.reply.json")]
    return sorted(path for path in found if path not in known)
