"""The reducer: what single events cause, and that no upstream can make it break its promises."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from checks import check_message_stream
from hypothesis import example, given, settings
from hypothesis import strategies as st
from samples import examples, rows

from core.hub_events import folded as reply_of
from core.strategies import json_objects, pieces, streams
from core.vector_cases import ANSWER_RULES
from proxy.core.convert.responses.searches import links_in_text
from proxy.core.convert.responses_to_messages import ResponsesToMessages
from proxy.core.messages import MAX_HELD_BYTES, Event, MessageStream
from proxy.core.reducer import AnswerPolicy, BadAnswer, CutAnswer
from proxy.core.sse import encode_events
from proxy.core.tools.read_tool import ReadOffsets

TOOLS = [
    {
        "name": "Bash",
        "input_schema": {
            "type": "object",
            "properties": {"command": {"type": "string"}, "timeout": {"type": "number"}},
            "required": ["command"],
        },
    }
]


def reducer(request: Mapping[str, Any] | None = None, **policy: Any) -> ResponsesToMessages:
    stream = MessageStream("msg_1", "m", input_tokens=3)
    policy = {"offsets": ReadOffsets(), "signatures": "p1", **policy}
    return ResponsesToMessages(stream, AnswerPolicy(request or {"tools": TOOLS}, **policy))


def ran(
    events: Iterable[Mapping[str, Any]], machine: ResponsesToMessages | None = None
) -> tuple[list[Event], str | None]:
    """All events, and the complaint that ended them if there was one."""
    machine = machine or reducer()
    out: list[Event] = []
    for event in events:
        try:
            out += machine.feed(event)
        except BadAnswer as error:
            return out + machine.interrupt(), str(error)
    return out + ([] if machine.finished else machine.interrupt()), None


def added(index: int, **item: Any) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(index: int, **item: Any) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def call(index: int, call_id: str = "c", name: str = "Bash") -> dict[str, Any]:
    return added(index, type="function_call", call_id=call_id, name=name)


def arguments(index: int, delta: str) -> dict[str, Any]:
    return {"type": "response.function_call_arguments.delta", "output_index": index, "delta": delta}


def text(index: int, delta: str) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "output_index": index, "delta": delta}


def thought(index: int, delta: str) -> dict[str, Any]:
    return {"type": "response.reasoning_summary_text.delta", "output_index": index, "delta": delta}


COMPLETED = {"type": "response.completed", "response": {}}


def folded(events: list[Event]) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = reply_of(events)["content"]
    return content


#: In what the answers of upstreams, and of requests, differ.
POLICIES: list[dict[str, Any]] = [{}, {"restore": str.upper, "signatures": ""}]
POLICIES += [{"rules": rules, "signatures": signatures} for rules in ANSWER_RULES.values() for signatures in ("", "p3")]
policies = st.sampled_from(POLICIES)


@settings(max_examples=examples(200))
@given(streams, policies)
def test_any_events_give_a_legal_stream_or_a_complaint(events: list[dict[str, Any]], policy: dict[str, Any]) -> None:
    machine = reducer(**policy)
    out, complaint = ran(events, machine)
    check_message_stream(out, hub=True, cut=not machine.finished)
    encode_events(out)
    if complaint is not None:
        error = {"type": "error", "error": {"type": "api_error", "message": complaint}}
        check_message_stream([*out, error], cut=True)


@settings(max_examples=examples(100))
@given(streams, policies)
@example([done(0, type="function_call", name="f", arguments=[])], {})
def test_every_tool_that_a_client_would_run_has_complete_arguments(
    events: list[dict[str, Any]], policy: dict[str, Any]
) -> None:
    out, _ = ran(events, reducer(**policy))
    texts: dict[int, str] = {}
    seen: set[str] = set()
    for event in out:
        if event["type"] == "content_block_start" and event["content_block"]["type"] == "tool_use":
            texts[event["index"]] = ""
            assert event["content_block"]["id"] not in seen
            seen.add(event["content_block"]["id"])
        elif event["type"] == "content_block_delta" and event["index"] in texts:
            texts[event["index"]] += event["delta"]["partial_json"]
        elif event["type"] == "content_block_stop" and event["index"] in texts:
            # any JSON: to what is no object the client has words for the model
            json.loads(texts[event["index"]] or "{}")


#: kind of an item -> its events; text, call, search, reasoning
SCRIPTS: dict[str, Callable[[int], list[dict[str, Any]]]] = {
    "T": lambda at: [added(at, type="message"), text(at, f"t{at}a"), text(at, "b"), done(at, type="message")],
    "C": lambda at: [
        call(at, f"c{at}"),
        *(arguments(at, piece) for piece in pieces(json.dumps({"n": at}), [3])),
        done(at, type="function_call"),
    ],
    "S": lambda at: [done(at, type="web_search_call", id=f"s{at}", action={"query": f"q{at}"})],
    "R": lambda at: [done(at, type="reasoning", id=f"rs_{at}", encrypted_content=f"e{at}")],
}


@given(st.lists(st.sampled_from("TRCS"), max_size=8), st.sampled_from(["p1", "p3-native"]), st.data())
def test_nothing_is_lost_when_items_interleave(kinds: list[str], rules: str, data: st.DataObject) -> None:
    """Items run at the same time in any order; each must come out whole, in the order in which they began."""
    scripts = [SCRIPTS[kind](index) for index, kind in enumerate(kinds)]
    events: list[dict[str, Any]] = []
    while any(scripts):
        script = data.draw(st.sampled_from([script for script in scripts if script]))
        events.append(script.pop(0))
    out, complaint = ran([*events, COMPLETED], reducer(rules=ANSWER_RULES[rules]))
    assert complaint is None
    content = folded(out)
    spoken = {block["text"] for block in content if block["type"] == "text"}
    assert spoken == {f"t{index}ab" for index, kind in enumerate(kinds) if kind == "T"}
    called = {block["input"]["n"] for block in content if block["type"] == "tool_use"}
    assert called == {index for index, kind in enumerate(kinds) if kind == "C"}
    assert sum(block["type"] == "thinking" for block in content) == kinds.count("R")
    assert sum(block["type"] == "web_search_tool_result" for block in content) == kinds.count("S")


#: kind of an item -> the item, done
ITEMS: dict[str, Callable[[int], dict[str, Any]]] = {
    "T": lambda at: {"type": "message", "content": [{"type": "output_text", "text": f"text {at}"}]},
    "R": lambda at: {"type": "reasoning", "summary": [{"type": "summary_text", "text": f"thought {at}"}]},
    "C": lambda at: {"type": "function_call", "name": "Bash", "arguments": json.dumps({"n": at})},
    "S": lambda at: {"type": "web_search_call", "action": {"query": f"query {at}"}},
}
#: kind of an item -> its pieces, and the event that has them as a whole
PIECES: dict[str, Callable[[str], list[dict[str, Any]]]] = {
    "T": lambda text: [
        *({"type": "response.output_text.delta", "delta": piece} for piece in (text[:3], text[3:])),
        {"type": "response.output_text.done", "text": text},
    ],
    "R": lambda text: [
        *({"type": "response.reasoning_summary_text.delta", "delta": piece} for piece in (text[:3], text[3:])),
        {"type": "response.reasoning_summary_text.done", "text": text},
    ],
    "C": lambda text: [
        *({"type": "response.function_call_arguments.delta", "delta": piece} for piece in (text[:3], text[3:])),
        {"type": "response.function_call_arguments.done", "arguments": text},
    ],
    "S": lambda _text: [],
}


def whole_text(item: Mapping[str, Any]) -> str:
    parts = item.get("content") or item.get("summary") or [{"text": item.get("arguments", "")}]
    return "".join(part["text"] for part in parts)


@settings(max_examples=examples(200))
@given(
    kinds=st.lists(st.sampled_from("TRCS"), min_size=1, max_size=6),
    named=st.sampled_from([("ids",), ("indexes",), ("ids", "indexes")]),
    repeated=st.booleans(),
    rules=st.sampled_from(["p1", "p3", "p3-native"]),
    data=st.data(),
)
def test_an_answer_is_told_once_wherever_it_stands(
    kinds: list[str], named: tuple[str, ...], repeated: bool, rules: str, data: st.DataObject
) -> None:
    """In pieces, in the event that ends them, in the item, in the last event, or in several of these."""
    events: list[dict[str, Any]] = []
    output: list[dict[str, Any]] = []
    for at, kind in enumerate(kinds):
        ids = (
            {"id": f"i{at}", **({"call_id": f"c{at}"} if kind == "C" else {})} if "ids" in named or kind == "C" else {}
        )
        item = {**ITEMS[kind](at), **ids}
        told = data.draw(st.sets(st.sampled_from(["pieces", "whole", "item"]), min_size=0 if repeated else 1))
        told |= {"item"} if kind in "CS" and not repeated else set()
        place = {"output_index": at} if "indexes" in named else {}
        part = {**place, **({"item_id": f"i{at}"} if ids else {})}
        *deltas, last = [{**part, **piece} for piece in PIECES[kind](whole_text(item))] or [{}]
        if told:
            bare = {name: value for name, value in item.items() if name not in ("content", "summary", "arguments")}
            events.append({"type": "response.output_item.added", **place, "item": bare})
            events += [*(deltas if "pieces" in told else ()), *([last] if last and "whole" in told else ())]
        if "item" in told:
            events.append({"type": "response.output_item.done", **place, "item": item})
        output.append(item)
    end = {"type": "response.completed", "response": {"output": output if repeated else []}}
    out, complaint = ran([*events, end], reducer(rules=ANSWER_RULES[rules], signatures=""))
    assert complaint is None
    content = folded(out)
    said = sorted(block["text"] for block in content if block["type"] == "text" and block["text"][0] == "t")
    thought = sorted(block["thinking"] for block in content if block["type"] == "thinking")
    called = sorted(block["input"]["n"] for block in content if block["type"] == "tool_use")
    places = {kind: [at for at, other in enumerate(kinds) if other == kind] for kind in "TRCS"}
    assert said == [f"text {at}" for at in places["T"]]
    assert thought == [f"thought {at}" for at in places["R"]]
    assert called == places["C"]
    searches = sum(block["type"] == "server_tool_use" or block.get("text", "")[:1] == "[" for block in content)
    assert searches == len(places["S"])


#: Members that say which text an event is about.
NAMES = ("output_index", "item_id", "content_index", "summary_index")
#: kind of an item -> type of the item, its member with parts, their type, the member with their number, its events
FORMS = {
    "T": ("message", "content", "output_text", "content_index", "response.output_text"),
    "R": ("reasoning", "summary", "summary_text", "summary_index", "response.reasoning_summary_text"),
    "F": ("message", "content", "refusal", "content_index", "response.refusal"),
}
COPIES = ("added", "whole", "part", "item", "output")


def told_less_fully(kind: str, at: int, text: str, missing: Mapping[str, frozenset[str]]) -> list[dict[str, Any]]:
    """The events of an item whose copies lack members, or are missing altogether (`copy`); the last is the item."""
    type_, member, part_type, number, events = FORMS[kind]
    value = "refusal" if kind == "F" else "text"

    def event(copy: str, name: str, **members: Any) -> list[dict[str, Any]]:
        named = {"output_index": at, "item_id": f"i{at}", number: 0}
        named = {key: value for key, value in named.items() if key not in missing[copy]}
        return [] if copy in missing[copy] else [{"type": name, **named, **members}]

    def item(copy: str, **members: Any) -> dict[str, Any]:
        return {"type": type_, **({} if "item_id" in missing[copy] else {"id": f"i{at}"}), **members}

    part = {"type": part_type, value: text}
    return [
        *event("added", "response.output_item.added", item=item("added")),
        *(each for piece in (text[:2], text[2:]) for each in event("pieces", f"{events}.delta", delta=piece)),
        *(event("whole", f"{events}.done", text=text) if kind != "F" else []),
        *(event("part", "response.content_part.done", part=part) if kind != "R" else []),
        *event("item", "response.output_item.done", item=item("item", **{member: [part]})),
        item("output", **{member: [part]}),
    ]


@settings(max_examples=examples(200))
@given(
    kinds=st.lists(st.sampled_from("TRF"), min_size=1, max_size=3),
    texts=st.lists(st.sampled_from(["abcd", "efgh"]), min_size=3, max_size=3),
    missing=st.fixed_dictionaries(
        {copy: st.frozensets(st.sampled_from((*NAMES, copy)), max_size=4) for copy in COPIES}
    ),
    named=st.sampled_from(["output_index", "item_id"]),
    unnamed=st.frozensets(st.sampled_from(NAMES)),
    rules=st.sampled_from(["p1", "p3", "p3-native"]),
)
# the deltas say where they belong, and what repeats them does not
@example(["T"], ["abcd"] * 3, {copy: frozenset(NAMES) for copy in COPIES}, "output_index", frozenset(), "p3")
@example(["R"], ["abcd"] * 3, {copy: frozenset(NAMES) for copy in COPIES}, "output_index", frozenset(), "p1")
# two items with the same words, without an event that begins one
@example(
    *(["T", "T"], ["abcd"] * 3, {**dict.fromkeys(COPIES, frozenset(NAMES)), "added": frozenset(["added"])}),
    *("item_id", frozenset(), "p3"),
)
def test_a_copy_that_names_its_place_less_fully_is_no_news(
    kinds: list[str],
    texts: list[str],
    missing: dict[str, frozenset[str]],
    named: str,
    unnamed: frozenset[str],
    rules: str,
) -> None:
    """What was shown is known by its words and its order, too, and what is said twice is shown twice."""
    missing = {**missing, "pieces": unnamed - {named}}
    events: list[dict[str, Any]] = []
    output: list[dict[str, Any]] = []
    for at, (kind, text) in enumerate(zip(kinds, texts, strict=False)):
        *told, item = told_less_fully(kind, at, text, missing)
        events += told
        output.append(item)
    end = {"type": "response.completed", "response": {"output": [] if "output" in missing["output"] else output}}
    out, complaint = ran([*events, end], reducer(rules=ANSWER_RULES[rules], signatures=""))
    assert complaint is None
    content = folded(out)
    shown = "".join(block["text"] for block in content if block["type"] == "text")
    thought = "".join(block["thinking"] for block in content if block["type"] == "thinking")
    said = list(zip(kinds, texts, strict=False))
    assert shown == "".join(text for kind, text in said if kind != "R")
    assert thought.replace("\n", "") == "".join(text for kind, text in said if kind == "R")


def test_sources_of_a_search_are_told_once_and_listed_when_they_are_web_addresses() -> None:
    found = [
        "https://a.example/x_(y)",
        "https://a.example/x_(y)",
        "javascript:alert(1)",
        "https://b.example/\n- [c](d)",
    ]
    action = {"type": "search", "query": "q", "sources": [{"type": "url", "url": url, "title": "t"} for url in found]}
    events = [done(0, type="web_search_call", id="ws", status="completed", action=action), COMPLETED]
    search = {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}
    out, _ = ran(events, reducer(search, rules=ANSWER_RULES["p3"]))
    assert folded(out)[-1] == {"type": "text", "text": "Sources:\n- [t](https://a.example/x_%28y%29)\n"}
    out, _ = ran(events, reducer(search, rules=ANSWER_RULES["p3-native"]))
    [result] = [block for block in folded(out) if block["type"] == "web_search_tool_result"]
    assert [link["url"] for link in result["content"]] == list(dict.fromkeys(found))


@pytest.mark.parametrize(("rules", "calls"), [("p3", 2), ("p1", 1)])
def test_a_call_that_begins_again_is_another_where_the_upstream_is_held_to_the_letter(rules: str, calls: int) -> None:
    """A tool may be wanted twice; elsewhere an announcement is sometimes repeated."""
    call = {"type": "function_call", "id": "fc", "call_id": "c", "name": "Bash"}
    once = [added(0, **call), done(0, **call, arguments='{"command":"ls"}')]
    out, complaint = ran([*once, *once, COMPLETED], reducer(rules=ANSWER_RULES[rules]))
    ids = [block["id"] for block in folded(out) if block["type"] == "tool_use"]
    assert complaint is None and len(ids) == len(set(ids)) == calls


ITEM_DONE, TEXT_DONE = "response.output_item.done", "response.output_text.done"
THOUGHT_DONE = "response.reasoning_summary_text.done"
SAME = {"type": "message", "content": [{"type": "output_text", "text": "same"}]}
SAME_THOUGHT = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "same"}]}


@rows("rules", ["p1", "p3"])
@rows(
    "events",
    [
        [{"type": ITEM_DONE, "item": SAME}] * 2,
        [{"type": ITEM_DONE, "item": SAME_THOUGHT}] * 2,
        [{"type": TEXT_DONE, "text": "same"}] * 2,
        [{"type": THOUGHT_DONE, "item_id": at, "text": "same"} for at in "ab"],
        [{"type": ITEM_DONE, "output_index": 0, "item": SAME}, {"type": TEXT_DONE, "item_id": "b", "text": "same"}],
    ],
)
def test_what_comes_whole_twice_is_told_twice(rules: str, events: list[dict[str, Any]]) -> None:
    """An event does not repeat what another event of its kind told first, nor what is over with its item."""
    out, _ = ran([*events, COMPLETED], reducer(rules=ANSWER_RULES[rules], signatures=""))
    assert "".join(block.get("text") or block["thinking"] for block in folded(out)).replace("\n", "") == "samesame"


@pytest.mark.parametrize("rules", ["p1", "p3"])
def test_a_message_that_comes_in_one_piece_has_all_its_parts(rules: str) -> None:
    content = [{"type": "output_text", "text": text} for text in ("one ", "two")]
    out, _ = ran([done(0, type="message", id="m", content=content), COMPLETED], reducer(rules=ANSWER_RULES[rules]))
    assert "".join(block["text"] for block in folded(out)) == "one two"


@given(json_objects, st.lists(st.integers(0, 500), max_size=6))
def test_arguments_arrive_whatever_their_pieces(value: dict[str, Any], cuts: list[int]) -> None:
    body = json.dumps(value)
    deltas = [arguments(0, piece) for piece in pieces(body, cuts)]
    out, complaint = ran([call(0, name="Other"), *deltas, done(0, type="function_call"), COMPLETED])
    assert complaint is None
    assert folded(out)[0]["input"] == value


# -- single behaviours that a past or thinkable upstream showed

SEARCH = done(0, type="web_search_call", id="s", action={"query": "q"})
PLACELESS = {"type": "response.function_call_arguments.delta", "delta": "{}"}
#: what comes -> the blocks of the answer, with the members that matter
KEPT: dict[str, tuple[list[Any], list[dict[str, Any]]]] = {
    "a late delta after the item is ignored": (
        [call(0), arguments(0, "{}"), done(0, type="function_call", call_id="c"), arguments(0, "x")],
        [{"input": {}}],
    ),
    "a text delta after its item opens a new block": (
        [text(0, "a"), done(0, type="message"), text(0, "b")],
        [{"text": "a"}, {"text": "b"}],
    ),
    "a place is used again while its first block waits": (
        [SEARCH, text(1, "one"), done(1, type="message"), added(1, type="message"), text(1, "two")],
        [{"name": "web_search"}, {"content": []}, {"text": "one"}, {"text": "two"}],
    ),
    "thinking goes on behind an open text": (
        [text(0, "a"), thought(1, "x"), text(0, "b"), thought(1, "y")],
        [{"text": "ab"}, {"thinking": "x"}, {"thinking": "y"}],
    ),
    "another call in the place of a complete one ends it": (
        [call(0, "a"), arguments(0, '{"command":"x"}'), call(0, "b"), arguments(0, '{"command":"y"}')],
        [{"id": "a", "input": {"command": "x"}}, {"id": "b", "input": {"command": "y"}}],
    ),
    "an arguments delta without a place is ignored": (
        [call(-1), PLACELESS, done(-1, type="function_call", arguments='{"a":1}')],
        [{"input": {"a": 1}}],
    ),
    "a reasoning id that is no text gets no signature": (
        [thought(0, "a"), done(0, type="reasoning", id="\ud800", encrypted_content="x"), text(1, "b")],
        [{"type": "thinking", "thinking": "a", "signature": ""}, {"text": "b"}],
    ),
}


@rows("case", KEPT)
def test_what_is_kept(case: str) -> None:
    events, expected = KEPT[case]
    out, complaint = ran([*events, COMPLETED])
    assert complaint is None
    for block, members in zip(folded(out), expected, strict=True):
        assert members.items() <= block.items()


QUARTER = "x" * (MAX_HELD_BYTES // 4)
TOO_MUCH_WAITS = f"more than {MAX_HELD_BYTES} bytes of later blocks wait for an earlier one"
NEVER_ENDED = "the upstream never ended the call of tool Bash"


@rows(
    "events, expected",
    [
        ([call(0, "a"), call(0, "b")], NEVER_ENDED),
        ([call(0, "a"), done(0, type="function_call", call_id="b", name="Bash", arguments="{}")], NEVER_ENDED),
        ([added(0, type="function_call", call_id="c"), COMPLETED], "the upstream sent a tool call without a name"),
        (
            [call(0), done(0, type="function_call", arguments='{"a":1}{}')],
            "the upstream sent arguments of tool Bash that are not JSON",
        ),
        ([call(0), *[arguments(0, "x" * 1_000_000)] * 6], "the arguments of tool Bash passed 5000000 bytes"),
        (
            [SEARCH, *[text(1, QUARTER)] * 5],
            f"more than {MAX_HELD_BYTES} bytes of later blocks wait for an earlier one",
        ),
    ],
)
def test_what_is_a_complaint(events: list[Any], expected: str) -> None:
    out, complaint = ran(events)
    assert complaint == expected
    opened = [event["content_block"]["type"] for event in out if event["type"] == "content_block_start"]
    assert "tool_use" not in opened or "content_block_stop" not in [event["type"] for event in out]


def test_a_held_structured_answer_is_bounded() -> None:
    _, complaint = ran([text(0, QUARTER)] * 5, reducer(restore=str.strip))
    assert complaint == f"a structured answer passed {MAX_HELD_BYTES} bytes"


def test_an_empty_refusal_is_none() -> None:
    out, _ = ran([{"type": "response.refusal.delta", "output_index": 0, "delta": ""}, text(0, "fine"), COMPLETED])
    assert out[-2]["delta"]["stop_reason"] == "end_turn"


def test_what_waited_and_came_out_no_longer_counts() -> None:
    piece = "x" * (MAX_HELD_BYTES // 2)
    events: list[dict[str, Any]] = [added(0, type="message")]
    for index in range(1, 5):
        events += [text(index, piece), added(index + 1, type="message"), done(index - 1, type="message")]
    out, complaint = ran([*events, COMPLETED])
    assert complaint is None
    assert len(folded(out)) == 4


def test_interrupt_leaves_an_open_call_open() -> None:
    out, _ = ran([text(0, "a"), call(1), arguments(1, '{"comm'), text(2, "hidden")])
    assert [event["type"] for event in out][-2:] == ["content_block_start", "content_block_delta"]
    check_message_stream(out, cut=True)


def test_an_item_that_only_opens_says_nothing() -> None:
    machine = reducer()
    machine.feed(added(0, type="message"))
    machine.feed(call(1))
    assert not machine.produced


def test_links_in_hostile_text_are_found_in_linear_time() -> None:
    start = time.process_time()
    links_in_text("[" * 200_000 + "https://e.example")
    assert time.process_time() - start < 1


def test_a_delta_costs_little() -> None:
    """At most ten microseconds; the limit here leaves room for a loaded machine."""
    machine = reducer()
    machine.feed(added(0, type="message"))
    deltas = [text(0, f"word{number} ") for number in range(20_000)]
    start = time.process_time()
    for delta in deltas:
        machine.feed(delta)
    assert (time.process_time() - start) / len(deltas) < 50e-6


# -- a stream that is cut


CALL_ITEM = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "Bash"}
CALL = [added(0, **CALL_ITEM, arguments=""), done(0, **CALL_ITEM, arguments='{"command":"ls"}')]
OTHER = {**CALL_ITEM, "id": "fc_2", "call_id": "c2"}
SPOKEN = [added(1, type="message", id="m"), text(1, "x"), done(1, type="message", id="m", content=[])]
ARGUMENTS = arguments(0, '{"command":"ls"}')


@rows(
    "events, over",
    [
        (CALL, True),
        ([*CALL, added(1, **OTHER), done(1, **OTHER, arguments="{}")], True),
        ([*SPOKEN, *CALL], True),
        ([], False),
        (CALL[:1], False),
        ([CALL[0], ARGUMENTS], False),
        ([*CALL, added(1, **OTHER)], False),
        ([*CALL, added(1, type="reasoning", id="rs")], False),
        ([*CALL, added(1, type="web_search_call", id="ws")], False),
        ([*CALL, text(1, "x")], False),
        ([*CALL, {**ARGUMENTS, "output_index": 1}], False),
        ([CALL[0], done(0, **CALL_ITEM, arguments='{"command":"ls"}', status="incomplete")], False),
        ([CALL[0], done(0, **CALL_ITEM, arguments='{"command":"ls"}', status="completed")], True),
        ([*CALL, thought(1, "x")], False),
        ([CALL[0], ARGUMENTS, added(0, **OTHER), done(0, **OTHER, arguments="{}")], False),
        (SPOKEN, False),
    ],
)
def test_a_cut_does_no_harm_behind_calls_that_are_over(events: list[dict[str, Any]], over: bool) -> None:
    machine = reducer()
    out = [event for given in events for event in machine.feed(given)]
    if over:
        out += machine.cut()
        check_message_stream(out, hub=True)
        assert machine.finished and out[-2]["delta"]["stop_reason"] == "tool_use"
        assert out[-2]["usage"]["input_tokens"] == out[0]["message"]["usage"]["input_tokens"]
        assert machine.cut() == []
    else:
        with pytest.raises(CutAnswer):
            machine.cut()


@pytest.mark.parametrize("kind", ["function_call", "web_search_call"])
def test_many_items_of_one_id_cost_no_more_than_others(kind: str) -> None:
    machine = reducer(rules=ANSWER_RULES["p3"])
    items = [done(place, type=kind, id="i", call_id="c", name="Bash", arguments="{}") for place in range(4_000)]
    start = time.process_time()
    out, complaint = ran([*items, COMPLETED], machine)
    assert complaint is None and time.process_time() - start < 1
    ids = [block["id"] for event in out if "id" in (block := event.get("content_block", {}))]
    assert len(set(ids)) == len(ids)


def test_texts_that_nothing_ends_are_bounded() -> None:
    """Each new block looks at all that are open."""
    texts = ({**text(0, "a"), "content_index": part} for part in range(8_000))
    start = time.process_time()
    _, complaint = ran(texts, reducer(rules=ANSWER_RULES["p3"]))
    assert complaint is not None and "open" in complaint and time.process_time() - start < 1


def test_thousands_of_found_addresses_cost_little_at_the_end() -> None:
    sources = [{"url": f"https://e.example/{number}"} for number in range(4_000)]
    events = [done(0, type="web_search_call", id="w", action={"query": "q", "sources": sources})]
    events += [text(1, "https://e.example/ " * 4_000) for _ in range(20)]
    request = {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}
    start = time.process_time()
    out, _ = ran([*events, COMPLETED], reducer(request, rules=ANSWER_RULES["p3"]))
    assert time.process_time() - start < 1
    assert folded(out)[-1]["text"].count("\n") == 11
