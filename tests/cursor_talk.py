"""A client of P5's tools: a conversation that grows turn by turn, as Claude Code holds it."""

from __future__ import annotations

import asyncio
from typing import Any

from harness import STATE, Answer, Live, tool, until

from proxy.core.messages import Fold
from proxy.providers.p5_cursor.bridge.open_runs import OpenRuns
from proxy.providers.p5_cursor.provider import CursorProvider

SESSION = "x-claude-code-session-id"
AGENT = "x-claude-code-agent-id"
WRITE = {
    "name": "Write",
    "description": "Writes a file.",
    "input_schema": {"type": "object", "properties": {"file_path": {"type": "string"}, "content": {"type": "string"}}},
}
TOOLS = [tool("Bash"), tool("Read", "file_path"), WRITE, tool("Grep", "pattern")]

Block = dict[str, Any]
#: What a simulated run does next.
Step = dict[str, Any]

CONTEXT: Step = {"type": "exec", "kind": "context", "exec_id": "e0"}
TURN: Step = {"type": "turn_ended", "output_tokens": 4}
END: Step = {"type": "end"}


def text(words: str) -> Step:
    return {"type": "text_delta", "text": words}


def shell(number: int = 1, exec_id: str | None = None) -> Step:
    exec_id = f"e{number}" if exec_id is None else exec_id
    return {"type": "exec", "kind": "shell_stream", "id": number, "exec_id": exec_id, "command": f"echo {number}"}


def plays(live: Live, *events: Step, then: str = "end", **members: Any) -> None:
    """Scripts the next run, step by step."""
    live.sandbox.p5.script.extend([{"provider": "p5", "events": list(events), "then": then, **members}])


def fault(live: Live, name: str, **members: Any) -> None:
    """Gives the next run a fault of the sandbox."""
    live.sandbox.p5.script.extend([{"provider": "p5", "fault": name, **members}])


def folded(answer: Answer) -> dict[str, Any]:
    """The message of a stream that is whole."""
    fold = Fold()
    fold.add(answer.events)
    assert answer.status == 200 and fold.complete, answer.raw[-500:]
    return fold.message


def calls(message: dict[str, Any]) -> list[Block]:
    return [block for block in message["content"] if block["type"] == "tool_use"]


def said(message: dict[str, Any]) -> str:
    return "".join(block["text"] for block in message["content"] if block["type"] == "text")


def result(call: Block, text: Any = "done", **members: Any) -> Block:
    return {"type": "tool_result", "tool_use_id": call["id"], "content": text, **members}


class Talk:
    """`members` are those of each request."""

    def __init__(
        self,
        live: Live,
        prompt: str,
        *,
        session: str | None = "s1",
        agent: str | None = None,
        stream: bool = True,
        **members: Any,
    ) -> None:
        self.live = live
        self.stream = stream
        self.members = {"model": "cursor", "max_tokens": 100, "tools": TOOLS, **members}
        self.headers = {name: value for name, value in ((SESSION, session), (AGENT, agent)) if value is not None}
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]

    @property
    def body(self) -> dict[str, Any]:
        return {**self.members, "messages": self.messages, "stream": self.stream}

    async def ask(self, **members: Any) -> Answer:
        """The next request, whatever comes of it; the conversation stays as it is."""
        return await self.live.post({**self.body, **members}, headers=self.headers)

    def goes_on(self, words: str) -> None:
        """The user says something else, without the result that a run may wait for."""
        if self.messages[-1]["role"] == "user":
            self.messages.append({"role": "assistant", "content": "Well."})
        self.messages.append({"role": "user", "content": words})

    async def turn(self, *content: Block | str) -> dict[str, Any]:
        """The answer to the conversation with this added to it; the answer is added too."""
        if content:
            blocks = [{"type": "text", "text": one} if isinstance(one, str) else one for one in content]
            self.messages.append({"role": "user", "content": blocks})
        answer = await self.ask()
        assert answer.status == 200, answer.raw[-500:]
        message = folded(answer) if self.stream else answer.json
        self.messages.append({"role": "assistant", "content": message["content"]})
        return message


def open_runs(live: Live) -> OpenRuns:
    provider = live.app[STATE].providers["p5"]
    assert isinstance(provider, CursorProvider)
    return provider.open_runs


async def all_over(live: Live) -> None:
    """Returns when no run is left, at either side, and nothing was done wrong."""
    await until(lambda: not open_runs(live) and not open_runs(live).closing)
    await live.sandbox.p5.idle()
    names = [str(task.get_coro()) for task in asyncio.all_tasks()]
    assert not [name for name in names if "Run." in name or "Appends." in name], names
    assert live.sandbox.p5.violations == []
