"""What a client has seen is never said again: an answer breaks off behind each kind of block, on each wire."""

from __future__ import annotations

from typing import Any

from checks import check_message_stream
from harness import Live, ask, kinds
from samples import rows
from wires import TOOLS, Wire, message_of

Events = list[dict[str, Any]]

WIRES = tuple(
    Wire(*row)
    for row in (
        ("p1", "responses", "gpt-5.5"),
        ("p2", "chat", "kimi-for-coding"),
        ("p3", "responses", "grok-4.5"),
        ("p4", "chat", "opencode-go/kimi-k2.6"),
        ("p4", "messages", "opencode-go/minimax-m2.7"),
        ("p4", "responses", "opencode-go/gpt-5.6-luna"),
    )
)


def responses(*items: dict[str, Any]) -> Events:
    events: Events = [{"type": "response.created", "response": {"id": "resp_1"}}]
    for place, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": place, "item": item})
        if item["type"] == "reasoning":
            what = {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": "hm"}
        elif item["type"] == "message":
            what = {"type": "response.output_text.delta", "content_index": 0, "delta": "so"}
        else:
            continue
        events.append({**what, "output_index": place, "item_id": item["id"]})
    return events


def native(*blocks: dict[str, Any]) -> Events:
    message = {"id": "m", "type": "message", "role": "assistant", "content": [], "usage": {}}
    events: Events = [{"type": "message_start", "message": message}]
    deltas = {
        "thinking": {"type": "thinking_delta", "thinking": "hm"},
        "text": {"type": "text_delta", "text": "so"},
    }
    for index, block in enumerate(blocks):
        if index:
            events.append({"type": "content_block_stop", "index": index - 1})
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        if block["type"] in deltas:
            events.append({"type": "content_block_delta", "index": index, "delta": deltas[block["type"]]})
    return events


def chat(*deltas: dict[str, Any]) -> Events:
    return [{"id": "c", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]


FUNCTION = {"name": "Bash", "arguments": ""}
#: wire -> how a thought, a text and a call without arguments begin there.
BEGINS: dict[str, Any] = {
    "responses": (
        responses,
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "message", "id": "msg_1", "role": "assistant", "content": []},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "status": "in_progress", **FUNCTION},
    ),
    "messages": (
        native,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "text", "text": ""},
        {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}},
    ),
    "chat": (
        chat,
        {"reasoning_content": "hm"},
        {"content": "so"},
        {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": FUNCTION}]},
    ),
}
#: what is begun before the answer breaks -> the wires where the client sees it, and it is not asked for again
SEEN: dict[tuple[str, ...], frozenset[str]] = {
    ("thought",): frozenset(),
    ("thought", "text"): frozenset(BEGINS),
    ("thought", "call"): frozenset({"responses", "messages"}),  # of chat it is shown with its first argument
    ("text",): frozenset(BEGINS),
}


def begun(wire: Wire, *what: str) -> Events:
    build, *parts = BEGINS[wire.kind]
    return list(build(*(parts[("thought", "text", "call").index(name)] for name in what)))


@rows("what", SEEN)
@rows("wire", WIRES)
@rows("then", ["cut", "reset"])
async def test_a_stream_starts_over_behind_thoughts_alone(live: Live, wire: Wire, what: Any, then: str) -> None:
    getattr(live.sandbox, wire.label).script.extend([{"events": begun(wire, *what), "then": then}])
    answer = await live.stream(ask(model=wire.model, tools=TOOLS))
    check_message_stream(answer.events)
    again = wire.kind not in SEEN[what]
    assert kinds(answer.events)[-1] == ("message_stop" if again else "error")
    assert len(live.sleeps) == again


@rows("what", [*SEEN, ("call",)])
@rows("wire", WIRES)
async def test_a_whole_answer_may_start_over_from_anything(live: Live, wire: Wire, what: Any) -> None:
    getattr(live.sandbox, wire.label).script.extend([{"events": begun(wire, *what), "then": "cut"}])
    message = message_of(await live.post(ask(model=wire.model, tools=TOOLS)))
    said = [block["text"] for block in message["content"] if block["type"] == "text"]
    assert len(said) == 1 and said[0].startswith("You asked")
    assert len(live.sleeps) == 1 and not any(block["type"] == "tool_use" for block in message["content"])
