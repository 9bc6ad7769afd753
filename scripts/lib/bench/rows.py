"""The rows of the benchmark: which request, how its answer is played, and how many at a time."""

from __future__ import annotations

import json
from dataclasses import dataclass

from bench import requests
from bench.answers import question
from bench.load import NUMBER

#: provider -> the model that is asked for, and where the upstream has its wire
PROVIDERS = {
    "p1": ("gpt-5.5", "/responses"),
    "p2": ("kimi-for-coding", "/chat/completions"),
    "p3": ("grok-4.6", "/responses"),
    "p4": ("opencode-go/kimi-k2.6", "/chat/completions"),
}
#: Texts of an answer that is played slowly: some four seconds of one every 20 ms.
PACED = 200


@dataclass(frozen=True, slots=True)
class Row:
    """
    texts     of each answer; `every_ms` between two, 0 for all at once
    streams   at a time, all begun at once; each is asked for once when they are played slowly
    """

    provider: str
    agent: bool = False
    texts: int = 10
    every_ms: int = 0
    streams: int = 1

    @property
    def name(self) -> str:
        size = "86 kB" if self.agent else "tiny"
        if self.every_ms:
            return f"{self.provider} {size}, a text every {self.every_ms} ms, {self.streams} streams"
        return f"{self.provider} {size}, {self.texts} texts at once"

    def body(self) -> bytes:
        """Of the requests, with a number to change."""
        body = requests.agent() if self.agent else requests.tiny()
        last = {"role": "user", "content": f"{NUMBER.decode()} {question(self.texts, self.every_ms)}"}
        model = PROVIDERS[self.provider][0]
        return json.dumps({**body, "model": model, "messages": [*body["messages"][:-1], last]}).encode()


ROWS = (
    *(row for provider in ("p2", "p1") for row in (Row(provider), Row(provider, agent=True), Row(provider, texts=400))),
    *(Row(provider, agent=agent) for provider in ("p3", "p4") for agent in (False, True)),
    *(
        Row(provider, texts=PACED, every_ms=20, streams=streams)
        for streams in (20, 100, 200, 500)
        for provider in ("p2", "p1")
    ),
    *(Row(provider, texts=PACED, every_ms=3, streams=20) for provider in ("p2", "p1")),
)
