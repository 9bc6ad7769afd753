"""The wires of the simulated upstreams in the same words, for the tests that hold on each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import p1_sandbox_client as p1
import p1_sandbox_client as p3
import p2_sandbox_client as p2
import p4_sandbox_client as p4
from pictures import png
from raw_client import RawClient, Reply

from proxy.sandbox import Place

Members = dict[str, Any]

IMAGE_URL = f"data:image/png;base64,{png()}"
SCHEMA = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
JSON_SCHEMA = {"type": "json_schema", "json_schema": {"name": "r", "schema": SCHEMA}}
STRICT_SCHEMA = {**SCHEMA, "additionalProperties": False}


@dataclass
class Family:
    """One upstream on one wire. The members are what a body needs to ask for that."""

    label: str
    wire: str
    make: Callable[..., Members]
    tool: Callable[..., Members]
    user: Callable[..., Members]
    turn: Callable[[Reply, list[Any]], list[Members]]  # the calls of a reply and results for them
    system: Callable[[str], Members]
    thinks: Members = field(default_factory=dict)
    plain: Members = field(default_factory=dict)  # not thinking
    required: Members = field(default_factory=lambda: {"tool_choice": "required"})
    single: Members = field(default_factory=lambda: {"parallel_tool_calls": False})
    schema: Members = field(default_factory=lambda: {"response_format": JSON_SCHEMA})

    def __str__(self) -> str:
        return f"{self.label}-{self.wire}"

    @property
    def place(self) -> Place:
        return Place(self.label, self.wire)

    def body(self, *items: Any, **members: Any) -> Members:
        """Offers Bash and Read; a text among the items is what the user says."""
        said = [self.user(item) if isinstance(item, str) else item for item in items]
        tools = [self.tool("Bash"), self.tool("Read", "file_path")]
        return self.make(*(said or [self.user("hello")]), **{"tools": tools, **self.plain, **members})

    def whole(self, *items: Any, **members: Any) -> Members:
        """Without a stream."""
        body = self.body(*items, **members)
        return {name: value for name, value in body.items() if name not in ("stream", "stream_options")}


TEXT = {"type": "text", "text": "seen"}
SEEN = {
    "responses": [{"type": "input_text", "text": "seen"}, {"type": "input_image", "image_url": IMAGE_URL}],
    "chat": [TEXT, p2.IMAGE],
    "messages": [
        TEXT,
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
    ],
}


def _results(wire: str, reply: Reply, outputs: list[Any]) -> list[tuple[str, Any]]:
    """Each with the id of its call; None is a text beside a picture."""
    results = [SEEN[wire] if output is None else output for output in outputs]
    return list(zip(reply.ids, results, strict=True))


def _responses_turn(reply: Reply, outputs: list[Any]) -> list[Members]:
    return [*reply.items, *(p1.output(*pair) for pair in _results("responses", reply, outputs))]


def _chat_turn(reply: Reply, outputs: list[Any]) -> list[Members]:
    return [p2.replay(reply), *(p2.answer(*pair) for pair in _results("chat", reply, outputs))]


def _messages_turn(reply: Reply, outputs: list[Any]) -> list[Members]:
    content = [
        {"type": "tool_result", "tool_use_id": call_id, "content": result}
        for call_id, result in _results("messages", reply, outputs)
    ]
    return [{"role": "assistant", "content": reply.blocks}, p2.user(content)]


def _messages_tool(name: str, parameter: str = "command") -> Members:
    return {"name": name, "input_schema": p1.tool(name, parameter)["parameters"]}


def _responses(label: str, make: Callable[..., Members]) -> Family:
    text = {"format": {"type": "json_schema", "name": "r", "schema": STRICT_SCHEMA, "strict": True}}
    return Family(
        label,
        "responses",
        make,
        p1.tool,
        p1.user,
        _responses_turn,
        lambda text: {"instructions": text},
        thinks=p1.THINKING,
        schema={"text": text},
    )


P1 = _responses("p1", p1.full)
P2 = Family(
    "p2",
    "chat",
    p2.chat,
    p2.tool,
    p2.user,
    _chat_turn,
    lambda text: {"messages": [p2.system(text), p2.user("run")]},
    plain={"thinking": {"type": "disabled"}},
    thinks={"thinking": {"type": "enabled", "effort": "high"}},
    required={"model": "k3", "tool_choice": "required", "thinking": {"type": "enabled", "effort": "high"}},
)
P4_CHAT = Family("p4", "chat", p4.go_chat, p2.tool, p2.user, _chat_turn, P2.system, thinks={"reasoning_effort": "high"})
P4_MESSAGES = Family(
    "p4",
    "messages",
    p4.go_messages,
    _messages_tool,
    p2.user,
    _messages_turn,
    lambda text: {"system": [{"type": "text", "text": text}]},
    thinks={"thinking": {"type": "adaptive"}},
    required={"tool_choice": {"type": "tool", "name": "Read"}},
    single={"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
    schema={"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
)
P3 = _responses("p3", p3.grok)
P4_RESPONSES = _responses("p4", p4.go_responses)

FAMILIES = (P1, P2, P3, P4_CHAT, P4_MESSAGES, P4_RESPONSES)

#: Those that also answer without a stream.
WHOLE_FAMILIES = tuple(family for family in FAMILIES if family not in (P1, P3))


@dataclass
class Asker:
    """Sends the bodies of a family, and has its upstream play faults."""

    family: Family
    client: RawClient

    @property
    def upstream(self) -> Any:
        return self.client.sandbox[self.family.label]

    async def ask(self, *items: Any, **members: Any) -> Reply:
        return await self.client.ask(self.family.body(*items, **members))

    async def played(self, fault: str, *items: Any, body: Members | None = None, **params: Any) -> Reply:
        """The answer that the fault makes of a call of Bash, or of that to the items."""
        script = self.upstream.script
        script.replace([{"fault": fault, "match": {"wire": self.family.wire}, **params}])
        reply = await self.client.ask(body or self.family.body(*(items or ["use Bash: ls"])))
        assert script.left == 0, "the step was used"
        return reply
