"""Frameworks and programs from PyPI with the proxy between them and the simulators: their pages, run as they stand with
the packages that the pages install, and once more with models of other wires."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from e2e import pypi
from e2e.expecting import Scenario, Scenarios, expect, named
from e2e.pages import blocks
from e2e.process import Finished, run
from e2e.servers import LENIENT, watched_proxy
from proxy.sandbox import Sandbox

#: A page's programs together; some start a large program once for each model.
LIMIT_S = 360.0

#: The models of the pages: p1's lite lane, p2, and p4 over chat completions.
MODELS = ("gpt-5.6-sol", "kimi-for-coding", "opencode-go/kimi-k2.6")
#: What takes their places in a second run: p1's full lane, and p4 over Messages and over Responses.
OTHERS = ("gpt-5.5", "minimax-m3", "opencode-go/gpt-5.6-luna")
#: The same of p5, which calls a program's tools by writing calls into its text.
OF_P5 = ("cursor", "composer-2.5", "cursor:gpt-5.5")


@dataclass(frozen=True, slots=True)
class Framework:
    """A page of docs/clients and the packages that its programs need.

    packages   with versions, as pip takes them; the first one is the client
    language   of the page's blocks that are run: python or sh
    shown      what they print -> how often
    rounds     whether results of tools go up
    quiet      variables without which it would ask elsewhere
    forced     words that show an answer of a schema, to which p5 cannot be held
    """

    name: str
    page: str
    packages: Sequence[str]
    shown: Mapping[str, int]
    language: str = "python"
    rounds: bool = True
    quiet: Mapping[str, str] = field(default_factory=dict)
    forced: frozenset[str] = frozenset()

    @property
    def version(self) -> str:
        return self.packages[0].rpartition("==")[2]

    async def install(self, version: str, cache: Path) -> Path:
        return await pypi.install(f"{self.name}-{version}", self.packages, cache)


class Installed(NamedTuple):
    """The interpreter that has the client, and a folder to be at home in."""

    interpreter: Path
    version: str
    folder: Path

    async def run(self, framework: Framework, url: str, *changes: tuple[str, str]) -> Finished:
        """The page's programs, one after the other, with words of them changed."""
        programs = blocks(framework.page, framework.language, url)
        for old, new in changes:
            programs = [program.replace(old, new) for program in programs]
        self.folder.mkdir(parents=True, exist_ok=True)
        environment = {
            "PATH": f"{self.interpreter.parent}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "TERM": "dumb",
            **framework.quiet,
        }
        command = ("bash", "-euc") if framework.language == "sh" else (str(self.interpreter), "-W", "ignore", "-c")
        return await run([*command, "\n".join(programs)], self.folder, environment, LIMIT_S)


_RAIN = ("It rains in Paris.", "It rains in Rome.")

OPENAI_AGENTS = Framework(
    "openai-agents", "openai-agents.md", ("openai-agents==0.24.0",), dict.fromkeys(_RAIN, 2 * len(MODELS))
)
PYDANTIC_AI = Framework(
    "pydantic-ai",
    "pydantic-ai.md",
    ("pydantic-ai-slim[anthropic,openai]==2.68.0",),
    {**dict.fromkeys(_RAIN, 3 * len(MODELS)), "title='Moon landing' year=1969": 3 * len(MODELS)},
)
LANGCHAIN = Framework(
    "langchain",
    "langchain.md",
    ("langchain-anthropic==1.7.7", "langchain-openai==1.7.3"),
    {_RAIN[0]: 3 * len(MODELS), "{'city': 'Rome'}": 3 * len(MODELS), "year=1": 1},
    forced=frozenset({"year=1"}),
)
INSTRUCTOR = Framework(
    "instructor",
    "instructor.md",
    ("instructor[anthropic]==1.17.0",),
    {"Moon landing 1969": 2 * len(MODELS)},
    rounds=False,
)
LITELLM = Framework(
    "litellm",
    "litellm.md",
    ("litellm==1.106.2", "mcp==2.3.0"),
    {_RAIN[0]: 3 * len(MODELS)},
    quiet={"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
)
CLAUDE_AGENT_SDK = Framework(
    "claude-agent-sdk",
    "claude-agent-sdk.md",
    ("claude-agent-sdk==0.2.187",),
    {_RAIN[0]: len(MODELS)},
    quiet={"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1"},
)
LLM = Framework("llm", "llm.md", ("llm==0.36",), {_RAIN[0]: len(MODELS), _RAIN[1]: 1, '"year": 1': 1}, "sh")
AIDER = Framework(
    "aider",
    "aider.md",
    ("aider-chat==0.86.2",),
    {f"print('after {model}')": 1 for model in MODELS},
    "sh",
    rounds=False,
    quiet={"AIDER_ANALYTICS": "false", "AIDER_CHECK_UPDATE": "false", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
)

#: A small one, which CI can wait for, and the others.
QUICK = (LLM,)
MORE = (OPENAI_AGENTS, PYDANTIC_AI, LANGCHAIN, INSTRUCTOR, LITELLM, CLAUDE_AGENT_SDK, AIDER)

Prepare = Callable[[Installed, str], None]


def _configure_llm(client: Installed, url: str) -> None:
    place = client.folder / ".config" / "io.datasette.llm"
    place.mkdir(parents=True)
    (place / "extra-openai-models.yaml").write_text("\n".join(blocks(LLM.page, "yaml", url)))


_PREPARED: Mapping[str, Prepare] = {LLM.name: _configure_llm}


def _scenario(
    framework: Framework, what: str, *changes: tuple[str, str], labels: Sequence[str] = ("p1", "p2", "p4")
) -> Scenario[Installed]:
    async def page(client: Installed, folder: Path) -> None:
        async with watched_proxy(folder, [], LENIENT) as (url, sandbox):
            client.folder.mkdir(parents=True, exist_ok=True)
            if framework.name in _PREPARED:
                _PREPARED[framework.name](client, url)
            done = await client.run(framework, url, *changes)
            if framework.rounds:
                _expect_results(sandbox, labels)
        expect(done.status == 0, "it runs", (done.stdout[-500:], done.stderr[-1500:]))
        left_out = framework.forced if "p5" in labels else frozenset()
        shown = {words: times for words, times in framework.shown.items() if words not in left_out}
        for words, times in shown.items():
            expected = words
            for old, new in changes:
                expected = expected.replace(old, new)
            expect(done.stdout.count(expected) >= times, f"{times} times: {expected}", (done.stdout, done.stderr))

    return named(page, what)


def _expect_results(sandbox: Sandbox, labels: Sequence[str]) -> None:
    """Each of these providers was sent what a tool brought."""
    for label in labels:
        bodies = [json.dumps(request.body) for request in getattr(sandbox, label).requests]
        expect(any("It rains in" in body for body in bodies), f"a result of a tool reaches {label}", bodies[-1:])


def scenarios(framework: Framework) -> Scenarios[Installed]:
    """The page as it stands, with the other models where its programs name them, and with those of p5."""
    found: Scenarios[Installed] = Scenarios()
    found.add(_scenario(framework, "what the page says"))
    if framework.language == "python":
        changes = [pair for pair in zip(MODELS, OTHERS, strict=True) if pair[0] != MODELS[1]]
        found.add(_scenario(framework, "with models of other wires", *changes))
        found.add(_scenario(framework, "with models of p5", *zip(MODELS, OF_P5, strict=True), labels=("p5",)))
    return found
