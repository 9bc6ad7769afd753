"""The four wires of the providers beside P1, for tests that ask the same of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness import Answer, Live, kinds, tool

from proxy.core.messages import Fold

TOOLS = [tool("Bash"), tool("Read", "file_path")]
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@dataclass(frozen=True)
class Wire:
    """`model` as the client asks for it, and its name `upstream`; `sees` pictures, `thinks` unasked."""

    name: str
    label: str
    kind: str
    model: str
    upstream: str
    thinks: bool = False

    def __str__(self) -> str:
        return self.name

    def sandbox(self, live: Live) -> Any:
        return getattr(live.sandbox, self.label)

    def sent(self, live: Live) -> Any:
        """The last body that reached the upstream."""
        return self.sandbox(live).requests[-1].body


WIRES = (
    Wire("p2-chat", "p2", "chat", "kimi-for-coding", "kimi-for-coding", thinks=True),
    Wire("p4-chat", "p4", "chat", "opencode-go/kimi-k2.6", "kimi-k2.6", thinks=True),
    Wire("p4-messages", "p4", "messages", "qwen3.8-max", "qwen3.8-max"),
    Wire("p4-responses", "p4", "responses", "opencode-go/grok-4.6", "grok-4.6"),
)


def message_of(answer: Answer) -> dict[str, Any]:
    """The message of a whole or of a streamed answer."""
    if answer.headers["content-type"].startswith("application/json"):
        message: dict[str, Any] = answer.json
        return message
    events = answer.events
    assert kinds(events)[-1] == "message_stop", events[-1]
    fold = Fold()
    fold.add(events)
    return fold.message


def blocks_of(message: dict[str, Any]) -> list[str]:
    return [block["type"] for block in message["content"]]
