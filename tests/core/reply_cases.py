"""Answers of the hub, on disk and made up, and what the OpenAI-style replies make of them.

hub_answers/<case>.json                      {"about", "include_usage", "echo", "namespaces", "customs",
                                             "encrypted_reasoning", "events"}: an answer
messages_to_chat_reply/<case>.jsonl          the chunks, one a line; a last line {"outcome"} when there is no good end
messages_to_chat_reply/<case>.reply.json     the completion, for cases that have an end
messages_to_responses_reply/<case>.*         the same for the Responses route, where a bad end is an event as well

A `ping` event stands for a silence: the Responses route fills it with a keepalive.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from core.vector_cases import VECTORS, lines, read, readable
from proxy.core.convert.messages_to_chat_reply import ChatReply
from proxy.core.convert.messages_to_responses_reply import ResponsesReply
from proxy.core.ingress import Ingress
from proxy.core.messages import Event, MessageStream
from proxy.core.reducer import BadAnswer
from proxy.core.sse import dump_json
from proxy.core.tokens.usage import usage_of

ANSWERS = VECTORS / "hub_answers"
CHAT = VECTORS / "messages_to_chat_reply"
RESPONSES = VECTORS / "messages_to_responses_reply"

ID = "0123456789abcdef0123456789abcdef"
CREATED = 1750000000
MODEL = "m"
NO_END = "the provider ended its answer without an end"


def chat_reply(ingress: Ingress | None = None, **limits: int) -> ChatReply:
    return ChatReply(ingress or Ingress({}), completion_id=f"chatcmpl-{ID}", created=CREATED, model=MODEL, **limits)


def responses_reply(ingress: Ingress | None = None, **limits: int) -> ResponsesReply:
    return ResponsesReply(ingress or Ingress({}), response_id=ID, created=CREATED, model=MODEL, **limits)


# -- answers


def answer(
    *blocks: tuple[Any, ...],
    stop: Any = "end_turn",
    usage: Mapping[str, Any] | None = None,
) -> list[Event]:
    """The events of an answer as the hub builds them.

    Blocks are ("text", *pieces), ("thinking", *pieces), ("call", id, name, *pieces), ("search", query),
    ("links", *urls), and ("cut", id, name, *pieces) for a call that does not end. A piece of a text that is a dict is a
    citation.
    """
    stream = MessageStream("msg_1", MODEL, input_tokens=2)
    stream.start()
    for key, (kind, *rest) in enumerate(blocks):
        _STARTS[kind](stream, key, *rest)
    stream.finish(stop, dict(usage) if usage is not None else usage_of(2, 1))
    return stream.take()


def _text(stream: MessageStream, key: int, *pieces: Any) -> None:
    stream.open(key, {"type": "text", "text": ""})
    for piece in pieces:
        cited = isinstance(piece, dict)
        stream.delta(
            key, {"type": "citations_delta", "citation": piece} if cited else {"type": "text_delta", "text": piece}
        )
    stream.close(key)


def _thinking(stream: MessageStream, key: int, *pieces: str) -> None:
    stream.open(key, {"type": "thinking", "thinking": "", "signature": ""})
    for piece in pieces:
        stream.delta(key, {"type": "thinking_delta", "thinking": piece})
    stream.delta(key, {"type": "signature_delta", "signature": "s"})
    stream.close(key)


def _cut(stream: MessageStream, key: int, call_id: str, name: str, *pieces: str) -> None:
    stream.open(key, {"type": "tool_use", "id": call_id, "name": name, "input": {}})
    for piece in pieces:
        stream.delta(key, {"type": "input_json_delta", "partial_json": piece})


def _call(stream: MessageStream, key: int, *rest: str) -> None:
    _cut(stream, key, *rest)
    stream.close(key)


def _search(stream: MessageStream, key: int, query: str | None) -> None:
    stream.open(key, {"type": "server_tool_use", "id": f"srvtoolu_{key}", "name": "web_search", "input": {}})
    if query is not None:
        stream.delta(key, {"type": "input_json_delta", "partial_json": dump_json({"query": query})})
    stream.close(key)


def _links(stream: MessageStream, key: int, *urls: str) -> None:
    content = [{"type": "web_search_result", "url": url, "title": url} for url in urls]
    stream.open(key, {"type": "web_search_tool_result", "tool_use_id": f"srvtoolu_{key - 1}", "content": content})
    stream.close(key)


_STARTS = {"text": _text, "thinking": _thinking, "cut": _cut, "call": _call, "search": _search, "links": _links}


_piece = st.text(max_size=5)
_citation = st.fixed_dictionaries(
    {"type": st.just("web_search_result_location"), "url": _piece, "title": _piece},
    optional={"start_index": st.integers(0, 9), "end_index": st.integers(0, 9)},
)
_call_id = st.sampled_from(["c1", "c2", "c1__u2", "x" * 70])
_name = st.sampled_from(["f", "ns__g", "n" * 70])
_arguments = st.sampled_from(
    [(), ("",), ("{}",), ('{"a":', "1}"), (" ", "{", '"ü":"😀"}'), ('{"input', '": "a\\', "n\\ud83d\\", 'ude00"', "}")]
)
_blocks = st.one_of(
    st.tuples(st.just("text"), st.lists(_piece | _citation, max_size=4)),
    st.tuples(st.just("thinking"), st.lists(_piece, max_size=3)),
    st.tuples(st.just("call"), st.tuples(_call_id, _name, _arguments).map(lambda call: [*call[:2], *call[2]])),
    st.tuples(st.just("search"), st.lists(st.none() | _piece, min_size=1, max_size=1)),
    st.tuples(st.just("links"), st.lists(_piece, max_size=2)),
).map(lambda block: (block[0], *block[1]))
_cut_call = st.tuples(_call_id, _name, st.lists(st.sampled_from(["{", '"', " ", "a"]), max_size=3)).map(
    lambda call: ("cut", *call[:2], *call[2])
)
_stops = st.sampled_from(["end_turn", "tool_use", "max_tokens", "refusal", "pause_turn"])
#: Whole answers of the hub, some of them cut inside a call.
answers = st.one_of(
    st.tuples(st.lists(_blocks, max_size=6), _stops),
    st.tuples(st.lists(_blocks, max_size=3), _cut_call).map(lambda pair: ([*pair[0], pair[1]], "max_tokens")),
).map(lambda pair: answer(*pair[0], stop=pair[1]))


def batches(events: list[Event], cuts: Iterable[int] = ()) -> list[list[Event]]:
    """The same events in pieces."""
    places = sorted(cut % (len(events) + 1) for cut in cuts)
    return [events[start:end] for start, end in zip([0, *places], [*places, len(events)], strict=True)]


# -- what becomes of them


def chat_result(pieces: Iterable[list[Event]], ingress: Ingress) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """The chunks, and the completion when there is one."""
    reply = chat_reply(ingress)
    out: list[dict[str, Any]] = []
    try:
        for piece in pieces:
            out += reply.feed(piece)
    except BadAnswer as error:
        return [*out, {"outcome": "bad answer", "message": str(error)}], None
    return (out, reply.completion) if reply.finished else ([*out, {"outcome": "no end"}], None)


def responses_result(pieces: Iterable[list[Event]], ingress: Ingress) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The events, and the response of the last one."""
    reply = responses_reply(ingress)
    out: list[dict[str, Any]] = []
    try:
        for piece in pieces:
            out += reply.feed(piece)
            out += [reply.keepalive() for event in piece if event["type"] == "ping" and not reply.finished]
    except BadAnswer as error:
        out += reply.fail("server_error", str(error))
    else:
        out += reply.fail("server_error", NO_END)
    return out, reply.response


# -- on disk


def reply_cases() -> list[str]:
    return sorted(path.stem for path in ANSWERS.glob("*.json"))


def case_of(name: str) -> tuple[list[Event], Ingress]:
    vector = read(ANSWERS / f"{name}.json")
    namespaces = {flat: (space, short) for flat, (space, short) in vector.get("namespaces", {}).items()}
    members = {name: vector[name] for name in ("include_usage", "echo", "encrypted_reasoning") if name in vector}
    return vector["events"], Ingress({}, namespaces=namespaces, customs=frozenset(vector.get("customs", ())), **members)


def files_of(name: str) -> dict[Path, str]:
    """The expected files of a case and what the code says should stand in them."""
    events, ingress = case_of(name)
    singles = [[event] for event in events]
    files = {}
    for folder, result in ((CHAT, chat_result), (RESPONSES, responses_result)):
        out, reply = result(singles, ingress)
        files[folder / f"{name}.jsonl"] = lines(out)
        if reply is not None:
            files[folder / f"{name}.reply.json"] = readable(reply, 2)
    return files


def outputs() -> dict[Path, str]:
    """The expected files of all cases."""
    return {path: text for name in reply_cases() for path, text in files_of(name).items()}


def stale() -> list[Path]:
    """Expected files that belong to no case."""
    known = set(outputs())
    return sorted(path for folder in (CHAT, RESPONSES) for path in folder.glob("*.json*") if path not in known)
