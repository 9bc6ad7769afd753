"""A client's side of a conversation, with tools."""

from __future__ import annotations

from typing import Any

from harness import Live, ask, tool
from wires import message_of

TOOLS = [tool("Bash")]


class Talk:
    """One conversation, of a session or of an agent in it; `members` are those of every request."""

    def __init__(self, live: Live, session: str = "s", agent: str | None = None, **members: Any) -> None:
        self.live = live
        self.messages: list[dict[str, Any]] = []
        self.members = {"tools": TOOLS, "model": "gpt-5.6-sol", "system": "Be brief.", **members}
        self.headers = {"x-claude-code-session-id": session}
        if agent is not None:
            self.headers["x-claude-code-agent-id"] = agent

    async def turn(self, text: str, *, stream: bool = True) -> dict[str, Any]:
        """Says this, or gives it as the result of the calls that were made."""
        last = self.messages[-1]["content"] if self.messages else []
        calls = [block["id"] for block in last if block["type"] == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": call, "content": text} for call in calls]
        self.messages.append({"role": "user", "content": results or [{"type": "text", "text": text}]})
        body = ask(list(self.messages), stream=stream, **self.members)
        answer = await self.live.post(body, headers=self.headers)
        if answer.status != 200:
            self.messages.pop()
            return {"status": answer.status, "error": answer.error}
        message = message_of(answer)
        self.messages.append({"role": "assistant", "content": message["content"]})
        return message

    async def turns(self, *texts: str) -> None:
        for text in texts:
            await self.turn(text)
