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
class Traits:
    """What a provider does by default that not all do.

    signs      thoughts carry a signature
    image      how an answer shows that a PNG was sent: the model sees it, or reads that it was left out
    waits      calls at the very end of a conversation stay without a result
    session    where the session of a request is told: a header, or a member of the body
    fresh      members of a body that are new with each request
    run        an answer is a run: not one body for another, but calls there and back, of which none may be repeated;
               the client's tools are run while it waits, one after the other, and need a stream and a session
    signed_out what makes a proxy of the harness have no credential; `cure` is what it is told to do about it
    """

    signs: bool = True
    image: str = "1 image (1 image/png)"
    waits: bool = False
    session: str = "x-opencode-session"
    fresh: tuple[str, ...] = ()
    run: bool = False
    signed_out: tuple[str, Any] = ("signed_in", False)
    cure: str = ""


TRAITS = {
    "p1": Traits(),
    "p2": Traits(session="prompt_cache_key", cure="auth login p2"),
    "p3": Traits(
        signs=False,
        image="[image omitted: image/png]",
        waits=True,
        session="x-grok-conv-id",
        cure="auth login p3",
    ),
    "p4": Traits(signed_out=("p4_api_key", None), cure="PROXY_P4_API_KEY"),
    "p5": Traits(
        signs=False,
        cure="auth login p5",
        fresh=("message_id", "conversation_id", "conversation_group_id"),
        run=True,
    ),
}


@dataclass(frozen=True)
class Wire:
    """`model` is one that is served over it."""

    label: str
    kind: str
    model: str

    @property
    def traits(self) -> Traits:
        return TRAITS[self.label]

    @property
    def name(self) -> str:
        return f"{self.label}-{self.kind}"

    @property
    def upstream(self) -> str:
        """What the model is called there."""
        return self.model.rpartition("/")[2].rpartition(":")[2]

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

    def sessions(self, live: Live) -> list[str | None]:
        """What each request so far was said to belong to."""
        name = self.traits.session
        return [one.headers.get(name, one.body.get(name)) for one in self.sandbox(live).requests]


WIRES = tuple(
    Wire(entry.label, kind, model)
    for entry in PROVIDERS
    if entry.label != "p1"
    for kind, model in entry.examples.items()
)


#: Those where an answer is the body of one response.
BODY_WIRES = tuple(wire for wire in WIRES if not wire.traits.run)
CHAT_WIRES = tuple(wire for wire in WIRES if wire.kind == "chat")
GO_WIRES = tuple(wire for wire in WIRES if wire.label == "p4")


def by_reader(wire: Wire) -> tuple[str]:
    """For a sample (`samples.each`) of tests about how an answer is read: a wire of each kind."""
    return (wire.kind,)


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
