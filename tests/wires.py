"""The wires of the providers beside P1, for tests that ask the same of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness import Answer, Live, kinds, tool

from proxy.core.messages import Fold
from proxy.providers.registry import PROVIDERS

TOOLS = [tool("Bash"), tool("Read", "file_path")]
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@dataclass(frozen=True)
class Wire:
    """`model` is one that is served over it."""

    label: str
    kind: str
    model: str

    @property
    def name(self) -> str:
        return f"{self.label}-{self.kind}"

    @property
    def upstream(self) -> str:
        """What the model is called there."""
        return self.model.rpartition("/")[2]

    @property
    def thinks(self) -> bool:
        """Whether the model thinks unasked."""
        return "kimi" in self.model

    def __str__(self) -> str:
        return self.name

    def sandbox(self, live: Live) -> Any:
        return getattr(live.sandbox, self.label)

    def sent(self, live: Live) -> Any:
        """The last body that reached the upstream."""
        return self.sandbox(live).requests[-1].body


WIRES = tuple(
    Wire(entry.label, kind, model)
    for entry in PROVIDERS
    if entry.label != "p1"
    for kind, model in entry.examples.items()
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
