"""The table of docs/clients/README.md: each client with what was run with it and what came of it.

A row names the clients of `e2e.clients` that it stands on, so that nothing is told of a client that is not driven.
`scripts/reference` writes the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from e2e import claude_code, codex, grok_cli, kimi_code, node_agents, node_sdks, opencode
from e2e.clients import CLIENTS, MORE
from e2e.python_agents import (
    AIDER,
    CLAUDE_AGENT_SDK,
    INSTRUCTOR,
    LANGCHAIN,
    LITELLM,
    LLM,
    OPENAI_AGENTS,
    PYDANTIC_AI,
)


@dataclass(frozen=True, slots=True)
class Row:
    """A client as a user knows it.

    page      of docs/clients; empty for one that has none
    driven    the name in `e2e.clients` under which it is driven, without what follows behind a blank
    versions  that were tried
    speaks    the routes that it asks
    run       what was run with it
    result    what came of it, with what does not work
    """

    name: str
    page: str
    driven: str
    versions: Sequence[str]
    speaks: str
    run: str
    result: str

    @property
    def when(self) -> str:
        """Where it is driven: in CI, or by `--all` alone. Raises KeyError: nowhere."""
        places = {client.name.partition(" ")[0]: word for clients, word in _WHEN for client in clients}
        return places[self.driven]

    @property
    def line(self) -> str:
        name = f"[{self.name}]({self.page})" if self.page else self.name
        return f"| {' | '.join((name, ', '.join(self.versions), self.speaks, self.run, self.result, self.when))} |"


#: The later one counts.
_WHEN = ((MORE, "`--all`"), (CLIENTS, "CI"))
HEAD = ("| client | version | speaks | what was run | result | when |", "|---|---|---|---|---|---|")

ROWS = (
    Row(
        "Claude Code",
        "claude-code.md",
        "claude-code",
        claude_code.VERSIONS,
        "Messages",
        "tools, thinking, images, search, compaction, auto mode, names, faults, its page; p1 to p5",
        "works",
    ),
    Row(
        "Codex CLI",
        "codex-cli.md",
        "codex",
        codex.VERSIONS,
        "Responses",
        "tools, namespaces, thinking, images, search, schemas, changed models, faults, its page; p1 to p5",
        "works; p5 in lenient mode",
    ),
    Row(
        "Anthropic SDK",
        "anthropic-sdk.md",
        "sdk",
        ("2.12.0",),
        "Messages",
        "its page: streams, parse, search, tools, the tool runner; p1 to p5",
        "works",
    ),
    Row(
        "OpenAI SDK",
        "openai-sdk.md",
        "sdk",
        ("3.54.0",),
        "Responses, chat",
        "its page: streams, parse, search, tools, images, recordings; p1 to p5",
        "works",
    ),
    Row(
        "kimi-code", "", "kimi-code", kimi_code.VERSIONS, "p2's own", "at the simulated p2, without the proxy", "works"
    ),
    Row("Grok CLI", "", "grok", grok_cli.VERSIONS, "p3's own", "at the simulated p3, without the proxy", "works"),
    Row(
        "Anthropic SDK, TypeScript",
        "anthropic-sdk.md",
        node_sdks.ANTHROPIC.name,
        (node_sdks.ANTHROPIC.version,),
        "Messages",
        "its page: answers, the tool runner whole and streamed; p1, p2, p4",
        "works",
    ),
    Row(
        "OpenAI SDK, TypeScript",
        "openai-sdk.md",
        node_sdks.OPENAI.name,
        (node_sdks.OPENAI.version,),
        "Responses, chat",
        "its page: the tool runner of chat whole and streamed, a round over Responses, parsed refusals; p1, p2, p4",
        "works; chat tools on p1 in lenient mode",
    ),
    Row(
        "Vercel AI SDK",
        "ai-sdk.md",
        node_sdks.AI_SDK.name,
        (node_sdks.AI_SDK.version, *node_sdks.AI_SDK.beside[:3]),
        "Messages, Responses, chat",
        "its page: a tool round over each wire, whole and streamed, with limit and effort; p1, p2, p4",
        "works; OpenAI's wires on p1 in lenient mode",
    ),
    Row(
        "Claude Agent SDK, TypeScript",
        "claude-agent-sdk.md",
        node_sdks.AGENT_SDK.name,
        (node_sdks.AGENT_SDK.version,),
        "Messages",
        "its page: a round with a tool of the program; p1, p2, p4",
        "works",
    ),
    Row(
        "opencode",
        "opencode.md",
        "opencode",
        opencode.VERSIONS,
        "Messages, Responses, chat",
        "a tool round over each wire, its page; p1, p2, p4; files and commands on p5; also at the simulated p4 alone",
        "works; OpenAI's wires on p1 and p5 in lenient mode",
    ),
    Row(
        "Qwen Code",
        "qwen-code.md",
        "qwen-code",
        node_agents.QWEN_VERSIONS,
        "Messages, chat",
        "a tool round over each wire, its page; p1, p2, p4; files and commands on p5",
        "works; chat on p1 and p5 in lenient mode",
    ),
    Row(
        "Continue",
        "continue.md",
        "continue",
        node_agents.CONTINUE_VERSIONS,
        "Messages, Responses, chat",
        "`cn`: a tool round over each wire, its page; p1, p2, p4; files and commands on p5. Not run: the extensions of "
        "editors",
        "works; OpenAI's wires on p1 and p5 in lenient mode",
    ),
    Row(
        "pi",
        "pi.md",
        "pi",
        node_agents.PI_VERSIONS,
        "Messages, Responses, chat",
        "a tool round over each wire, its page; p1, p2, p4; files and commands on p5",
        "works; OpenAI's wires on p1 and p5 in lenient mode",
    ),
    Row(
        "Cline",
        "cline.md",
        "cline",
        node_agents.CLINE_VERSIONS,
        "Messages, Responses, chat",
        "the program in a terminal: a tool round over each wire, its page; p1, p2, p4; files and commands on p5, over "
        "chat. Not run: the extensions of editors",
        "works; OpenAI's wires in lenient mode",
    ),
    Row(
        "Claude Agent SDK, Python",
        "claude-agent-sdk.md",
        CLAUDE_AGENT_SDK.name,
        (CLAUDE_AGENT_SDK.version,),
        "Messages",
        "its page: a round with a tool of the program; p1, p2, p4, p5",
        "works",
    ),
    Row(
        "OpenAI Agents SDK",
        OPENAI_AGENTS.page,
        OPENAI_AGENTS.name,
        (OPENAI_AGENTS.version,),
        "Responses, chat",
        "its page: a tool round over each wire, whole and streamed; p1, p2, p4, p5",
        "works; chat on p1 in lenient mode",
    ),
    Row(
        "Pydantic AI",
        PYDANTIC_AI.page,
        PYDANTIC_AI.name,
        (PYDANTIC_AI.version,),
        "Messages, Responses, chat",
        "its page: a tool round over each wire, whole and streamed, typed answers; p1, p2, p4, p5",
        "works; OpenAI's wires in lenient mode",
    ),
    Row(
        "LangChain",
        LANGCHAIN.page,
        LANGCHAIN.name,
        LANGCHAIN.packages,
        "Messages, Responses, chat",
        "its page: a tool round over each wire, streamed, typed answers; p1, p2, p4, p5. Not run: newer versions, "
        "whose dependencies could not be installed",
        "works; OpenAI's wires in lenient mode; answers of a schema where the model has them",
    ),
    Row(
        "Instructor",
        INSTRUCTOR.page,
        INSTRUCTOR.name,
        (INSTRUCTOR.version,),
        "Messages, chat",
        "its page: typed answers, which are calls of a tool, over each wire; p1, p2, p4, p5",
        "works; chat in lenient mode",
    ),
    Row(
        "LiteLLM",
        LITELLM.page,
        LITELLM.name,
        (LITELLM.version,),
        "Messages, Responses, chat",
        "its page: a tool round over each wire; p1, p2, p4, p5. Not run: newer versions, whose dependencies could "
        "not be installed",
        "works; OpenAI's wires in lenient mode; over Responses it breaks streamed calls of models unknown to it",
    ),
    Row(
        "llm",
        LLM.page,
        LLM.name,
        (LLM.version,),
        "chat",
        "its page: a tool round, whole and streamed, an answer of a schema; p1, p2, p4",
        "works; tools on p1 in lenient mode",
    ),
    Row(
        "aider",
        AIDER.page,
        AIDER.name,
        (AIDER.version,),
        "chat",
        "its page: an edit of a file, which it does by text and without tools; p1, p2, p4",
        "works; in lenient mode",
    ),
)


def table() -> list[str]:
    """The lines of the table."""
    return [*HEAD, *(row.line for row in ROWS)]
