"""Runs of texts: what is put together, and what stays as it came."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from proxy.core.convert.chat_to_messages import ChatToMessages
from proxy.core.convert.messages_to_messages import MessagesToMessages
from proxy.core.convert.responses_to_messages import ResponsesToMessages
from proxy.core.messages import Event, MessageStream, merged
from proxy.core.reducer import AnswerPolicy, BadAnswer
from proxy.core.sse import frames_of, load_json
from proxy.providers.upstream.text_runs import CHAT_RUNS, MAX_BLOCK_BYTES, MESSAGES_RUNS, RESPONSES_RUNS, TextRuns


def blocks(*data: str | bytes, name: bytes = b"") -> list[bytes]:
    head = b"event: %b\n" % name if name else b""
    return [head + b"data: " + (one.encode() if isinstance(one, str) else one) for one in data]


def chunk(delta: dict[str, Any], **members: Any) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    return json.dumps({"id": "c", "choices": [choice], **members}, ensure_ascii=False)


def response(text: str, number: int, kind: str = "output_text", **members: Any) -> str:
    hidden = "x" * (number % 5)
    event = {"type": f"response.{kind}.delta", "item_id": "i", "delta": text, "obfuscation": hidden}
    return json.dumps({**event, "sequence_number": number, **members}, ensure_ascii=False)


def message(text: str, kind: str = "text_delta", member: str = "text", index: int = 0) -> str:
    return json.dumps(
        {"type": "content_block_delta", "index": index, "delta": {"type": kind, member: text}}, ensure_ascii=False
    )


def say(text: str) -> str:
    return chunk({"content": text})


def think(text: str) -> str:
    return chunk({"reasoning_content": text})


FIRST = chunk({"role": "assistant", "content": "a"})
#: What each has of its own is gone.
NUMBERLESS = (
    '{"type": "response.output_text.delta", "item_id": "i", "delta": "ab", "sequence_number":0, "sequence_number":0}'
)
THOUGHTS = [message(text, "thinking_delta", "thinking") for text in ("a", "b", "ab")]
REASONING = [chunk({"content": "", "reasoning": text}) for text in ("a", "b", "ab")]

JOINED = [
    (CHAT_RUNS, [say("a"), say("ü\n"), say('"\\')], [say('aü\n"\\')]),
    (CHAT_RUNS, [think("a"), think("b"), say("c"), say("d")], [think("ab"), say("cd")]),
    (CHAT_RUNS, REASONING[:2], REASONING[2:]),
    (CHAT_RUNS, [FIRST, say("b"), say("c")], [FIRST, say("bc")]),
    (CHAT_RUNS, [say("a"), "[DONE]", say("b"), say("c"), "[DONE]"], [say("a"), "[DONE]", say("bc"), "[DONE]"]),
    (RESPONSES_RUNS, [response("a", 7), response("b", 8)], [NUMBERLESS]),
    (MESSAGES_RUNS, [message("a"), message("b")], [message("ab")]),
    (MESSAGES_RUNS, THOUGHTS[:2], THOUGHTS[2:]),
]


@rows("runs, given_, expected", JOINED)
def test_texts_that_stand_together_become_one(runs: TextRuns, given_: list[str], expected: list[str]) -> None:
    assert runs.joined(blocks(*given_)) == blocks(*expected)


KEPT = [
    (CHAT_RUNS, [say("a")]),
    (CHAT_RUNS, []),
    (CHAT_RUNS, [say("a"), chunk({"content": "b"}, id="d")]),
    (CHAT_RUNS, [say(""), say("")]),
    (CHAT_RUNS, [chunk({"content": text, "reasoning_content": "x"}) for text in "ab"]),
    (CHAT_RUNS, [chunk({"content": text, "refusal": "x"}) for text in "ab"]),
    (CHAT_RUNS, [chunk({"content": text, "tool_calls": [{"index": 0}]}) for text in "ab"]),
    (CHAT_RUNS, [chunk({"content": text}, error={"message": "x"}) for text in "ab"]),
    (CHAT_RUNS, [chunk({"content": text}, choices=[]) for text in "ab"]),
    (CHAT_RUNS, [chunk({}, content=text) for text in "ab"]),
    # half of a pair of surrogates, of a character, of an escape; what JSON does not allow; two members of one name
    (CHAT_RUNS, [json.dumps(json.loads(say(half))) for half in ("\ud83d", "\ude00")]),
    (CHAT_RUNS, [say("X").encode().replace(b"X", half) for half in (b"\xc3", b"\xbc")]),
    (CHAT_RUNS, [say("X").replace("X", half) for half in ("a\\", "nb")]),
    (CHAT_RUNS, [say("X").replace("X", text) for text in ("a\tb", "c\td")]),
    (CHAT_RUNS, [chunk({"content": text}).replace("}", ', "content": "z"}', 1) for text in "ab"]),
    (CHAT_RUNS, [say(text).rstrip("}") for text in "ab"]),
    (CHAT_RUNS, [say("a" * MAX_BLOCK_BYTES), say("b" * MAX_BLOCK_BYTES)]),
    (RESPONSES_RUNS, [response("a" * MAX_BLOCK_BYTES, 1), response("b", 2), response("c" * MAX_BLOCK_BYTES, 3)]),
    (RESPONSES_RUNS, [response("a", 1), response("b", 2, "reasoning_summary_text")]),
    (RESPONSES_RUNS, [response("a", 1), response("b", 2, output_index=1)]),
    # a call may be complete in the middle of a run, and what is behind it is none of its arguments
    (RESPONSES_RUNS, [response(text, 1, "function_call_arguments") for text in "{}"]),
    (RESPONSES_RUNS, [response("a", 1).replace("{", '{"sequence_number": 1, '), "{}"]),
    (MESSAGES_RUNS, [message("a"), message("b", index=1)]),
    (MESSAGES_RUNS, [message(text, "input_json_delta", "partial_json") for text in "{}"]),
    (MESSAGES_RUNS, [message(text, "signature_delta", "text") for text in "ab"]),
    (MESSAGES_RUNS, ["[]", "[]", '"text": "a"', '"text": "b"', '["text", {"text": "a"}]', '["text", {"text": "b"}]']),
]


@rows("runs, given_", KEPT)
def test_what_says_anything_else_stays_as_it_is(runs: TextRuns, given_: list[str | bytes]) -> None:
    assert runs.joined(blocks(*given_)) == blocks(*given_)


def test_names_of_events_are_told_apart() -> None:
    both = [*blocks(message("a"), name=b"content_block_delta"), *blocks(message("b"))]
    assert MESSAGES_RUNS.joined(both) == both


def test_text_in_a_comment_is_no_text_of_an_event() -> None:
    commented = [b': "content": "%b"\n%b' % (text, *blocks(say("ab"))) for text in (b"a", b"b")]
    assert CHAT_RUNS.joined(commented) == commented


def test_a_run_that_ends_at_each_second_event_takes_no_more_time_than_others() -> None:
    """Each event is looked at for two runs at most."""
    looked = 0

    class Counted(bytes):
        def startswith(self, *given: Any) -> bool:
            nonlocal looked
            looked += 1
            return super().startswith(*given)

    odd = [Counted(blocks(say("X").replace("X", text))[0]) for text in ("a", "\\u0041") * 500]
    assert CHAT_RUNS.joined(odd) == odd
    assert looked <= 3 * len(odd)


# -- a reducer notices nothing

texts = st.sampled_from(["a", "ü", "\n", "\\", "", "😀", "\ud83d", "\ude00", '"x": "y"', "content"])


def chat_events(rows: list[tuple[int, str]]) -> list[str]:
    kinds = ("content", "reasoning_content", "reasoning", "refusal")
    return [chunk({kinds[kind % 4]: text}, created=kind // 8) for kind, text in rows]


def responses_events(rows: list[tuple[int, str]]) -> list[str]:
    kinds = ("output_text", "reasoning_summary_text", "refusal", "function_call_arguments")
    return [response(text, place, kinds[kind % 4], output_index=kind // 8) for place, (kind, text) in enumerate(rows)]


def messages_events(rows: list[tuple[int, str]]) -> list[str]:
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    deltas = [
        message(text, *(("text_delta", "text") if kind < 14 else ("thinking_delta", "thinking"))) for kind, text in rows
    ]
    return [json.dumps(start), *deltas]


WIRES = {
    "chat": (CHAT_RUNS, chat_events, lambda stream, policy: ChatToMessages(stream, policy, mark="m")),
    "responses": (RESPONSES_RUNS, responses_events, ResponsesToMessages),
    "messages": (MESSAGES_RUNS, messages_events, MessagesToMessages),
}


def reduced(reducer: Any, read: list[bytes]) -> tuple[list[Event], str]:
    out: list[Event] = []
    try:
        for _, data in frames_of(read):
            out += reducer.feed(load_json(data.decode()))
    except BadAnswer as error:
        return merged([*out, *reducer.interrupt()]), str(error)
    return merged([*out, *reducer.interrupt()]), ""


@pytest.mark.parametrize("wire", WIRES)
@given(rows=st.lists(st.tuples(st.integers(0, 15), texts), max_size=24))
def test_what_comes_out_is_the_same(wire: str, rows: list[tuple[int, str]]) -> None:
    runs, events, reducer = WIRES[wire]
    read = blocks(*map(written, events(rows)))

    def made() -> Any:
        return reducer(MessageStream("msg_1", "m"), AnswerPolicy({"messages": []}))

    assert reduced(made(), runs.joined(read)) == reduced(made(), read)


def written(event: str) -> bytes:
    """As services write it: UTF-8, and an escape of what has no such form."""
    return event.encode("utf-8", "backslashreplace")
