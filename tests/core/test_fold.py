"""A streamed and a whole answer are one path: the folded reply is what a client's SDK adds up from the same stream."""

from __future__ import annotations

from typing import Any

from anthropic_sdk import read_message
from checks import BLOCK_DELTAS, check_message_stream
from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from core.hub_events import CALL, TEXT, THINKING, answer, begun, cited, ended, said, signed, text, thought, typed
from core.strategies import cut_places, json_objects, pieces, texts
from proxy.core.blocks import BLOCKS, KEEPALIVES
from proxy.core.convert.messages_to_messages import MessagesToMessages
from proxy.core.messages import Event, Fold, MessageStream
from proxy.core.reducer import AnswerPolicy
from proxy.core.sse import dump_json

Block = dict[str, Any]
#: A block as an upstream streams it: its start, and its deltas.
Streamed = tuple[Block, list[Block]]

CITATION = {"type": "web_search_result_location", "url": "u", "title": "t", "cited_text": "c", "encrypted_index": "e"}
LINK = {"type": "web_search_result", "url": "u", "title": "t", "encrypted_content": "", "page_age": None}
SAID = texts.map(text)
CITED = st.text(max_size=3).map(lambda title: cited({**CITATION, "title": title}))
SIGNED = st.text(min_size=1, max_size=3).map(signed)


def _block(kind: str, deltas: st.SearchStrategy[list[Block]], **start: st.SearchStrategy[Any]) -> Any:
    return st.tuples(st.fixed_dictionaries({"type": st.just(kind), **start}), deltas)


def _arguments(value: Any, cuts: list[int]) -> list[Block]:
    """The deltas of a tool's input; none when it is not streamed."""
    return [] if value is None else [typed(piece) for piece in pieces(dump_json(value), cuts)]


ARGUMENTS = st.builds(_arguments, st.none() | json_objects, cut_places)
CALLS = {"id": st.sampled_from(["a", "b", "c"]), "name": st.just("f"), "input": st.just({}) | json_objects}
NO_DELTAS = st.just([])
#: Blocks of every type, each with content in its start, in its deltas, or in both.
BLOCKS_STREAMED: dict[str, st.SearchStrategy[Streamed]] = {
    "text": _block(
        "text",
        st.lists(SAID | CITED, max_size=4),
        text=st.just("") | texts,
        citations=st.sampled_from([None, [], [CITATION]]),
    ),
    "thinking": _block(
        "thinking",
        st.builds(
            lambda said, signed: [*said, *signed],
            st.lists(texts.map(thought), max_size=3),
            st.lists(SIGNED, max_size=1),
        ),
        thinking=st.just("") | texts,
        signature=st.sampled_from(["", "given"]),
    ),
    "redacted_thinking": _block("redacted_thinking", NO_DELTAS, data=texts),
    "tool_use": _block("tool_use", ARGUMENTS, **CALLS),
    "server_tool_use": _block("server_tool_use", ARGUMENTS, **{**CALLS, "name": st.just("web_search")}),
    "mcp_tool_use": _block("mcp_tool_use", ARGUMENTS, **CALLS, server_name=st.just("s")),
    "web_search_tool_result": _block(
        "web_search_tool_result", NO_DELTAS, tool_use_id=st.just("a"), content=st.lists(st.just(LINK), max_size=2)
    ),
    "future_block": _block("future_block", st.just([{"type": "future_delta", "more": 1}]), content=json_objects),
}
ANSWERS = st.lists(st.one_of(*BLOCKS_STREAMED.values()), max_size=5)


def upstream(blocks: list[Streamed]) -> list[Event]:
    """The events with which a Messages service streams these blocks."""
    streams = [
        [begun(start, index), *(said(delta, index) for delta in deltas), ended(index)]
        for index, (start, deltas) in enumerate(blocks)
    ]
    return answer(*(event for stream in streams for event in stream))


def streamed(events: list[Event]) -> list[Event]:
    """The same answer as our client gets it."""
    reducer = MessagesToMessages(MessageStream("m", "m"), AnswerPolicy({}))
    return [out for event in events for out in reducer.feed(event)]


def folded(events: list[Event]) -> list[Block]:
    """Also of streams that are not ours."""
    fold = Fold()
    fold.add(events)
    assert fold.complete
    content: list[Block] = fold.message["content"]
    return content


def accumulated(events: list[Event]) -> list[Block]:
    content: list[Block] = read_message(events)["content"]
    return content


#: Members that may be missing as well as empty; and those of which one must hold something.
OPTIONAL = ("citations", "signature")
CONTENT = {"text": ("text", "citations"), "thinking": ("thinking", "signature")}


def essential(content: list[Block]) -> list[Block]:
    """The blocks with content, without members that are empty, and without ids: ours are unique."""
    content = [
        {name: value for name, value in block.items() if name != "id" and (value or name not in OPTIONAL)}
        for block in content
    ]
    return [block for block in content if any(block.get(name) for name in CONTENT.get(block["type"], ("type",)))]


@given(ANSWERS)
def test_a_folded_answer_is_what_a_client_adds_up(blocks: list[Streamed]) -> None:
    events = upstream(blocks)
    ours = streamed(events)
    if all(start["type"] in BLOCK_DELTAS for start, _ in blocks):
        check_message_stream(ours)
    assert essential(folded(events)) == essential(accumulated(events))
    assert essential(accumulated(ours)) == essential(accumulated(events))
    assert essential(folded(ours)) == essential(accumulated(ours))


CALLED = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
UNKNOWN = {"type": "mcp_tool_use", "id": "a", "name": "f", "server_name": "s", "input": {}}
PARTS = [typed('{"query":'), typed('"rust"}')]
RUST, GO = {"query": "rust"}, {"query": "go"}


@rows(
    "start, deltas, expected",
    [
        ({**TEXT, "text": "a"}, [text("b")], {"text": "ab"}),
        (TEXT, [text("a"), cited(CITATION), cited(CITATION)], {"text": "a", "citations": [CITATION] * 2}),
        ({**TEXT, "citations": [CITATION]}, [], {"citations": [CITATION]}),
        ({**THINKING, "signature": "given"}, [thought("hm")], {"thinking": "hm", "signature": "given"}),
        (
            {**THINKING, "thinking": "hm", "signature": "given"},
            [signed("later")],
            {"thinking": "hm", "signature": "later"},
        ),
        ({"type": "redacted_thinking", "data": "x"}, [], {}),
        (CALLED, PARTS, {"input": RUST}),
        ({**CALLED, "input": RUST}, [], {"input": RUST}),
        ({**CALLED, "input": GO}, PARTS, {"input": RUST}),
        ({**CALL, "input": RUST}, [], {"input": RUST}),
        ({**CALL, "input": GO}, PARTS, {"input": RUST}),
        (UNKNOWN, PARTS, {"input": RUST}),
    ],
)
def test_no_delta_is_lost(start: Block, deltas: list[Block], expected: Block) -> None:
    ours = streamed(upstream([(start, deltas)]))
    if start is not UNKNOWN:
        check_message_stream(ours)
    assert folded(ours) == [{**start, **expected}]


def test_deltas_of_another_block_do_not_count() -> None:
    deltas = [thought("hm"), *PARTS, {"type": "future_delta"}]
    assert folded(upstream([({**TEXT, "text": "a"}, deltas)])) == [{"type": "text", "text": "a"}]


def test_the_checker_of_streams_knows_the_same_blocks() -> None:
    answered = {name: frozenset(delta.name for delta in row.deltas) for name, row in BLOCKS.items() if row.answers}
    assert answered == BLOCK_DELTAS


@rows("kind", KEEPALIVES)
def test_keepalives_change_nothing(kind: str) -> None:
    start = BLOCKS[kind].start(id="a", name="f")
    quiet, busy = upstream([(start, [])]), upstream([(start, [KEEPALIVES[kind]])])
    assert folded(busy) == folded(quiet)
    assert accumulated(busy) == accumulated(quiet)
