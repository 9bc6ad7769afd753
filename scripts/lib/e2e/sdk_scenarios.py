"""The pages of the two Python SDKs, run as they stand with the SDKs of this interpreter."""

from __future__ import annotations

import platform
import sys
from pathlib import Path
from typing import Any, NamedTuple

import anthropic
import openai
from pydantic import BaseModel

from e2e.expecting import Scenario, Scenarios, expect, named
from e2e.pages import run_python
from e2e.servers import LENIENT, sandboxed_proxy, watched_proxy

VERSIONS = (platform.python_version(),)

#: Page -> words that its programs print, in the sandbox.
PAGES = {
    "anthropic-sdk.md": (
        'You asked: "hello"',
        "gpt-5.6-sol",
        "title='Hello' year=1",
        "['https://docs.example.org",
        'opencode-go/kimi-k2.6 The tool weather returned: "It rains in Paris."',
        '"from-2\n"',
    ),
    "openai-sdk.md": (
        'You asked: "hello"',
        "searched: rust news",
        "https://docs.example.org",
        "Responses: The tool",
        "chat: The tool",
        "edited: True",
        "heard: ",
        "as text: ",
    ),
}


class Python(NamedTuple):
    """The interpreter as a client."""

    program: Path
    version: str
    folder: Path


async def install(_version: str, _cache: Path) -> Path:
    return Path(sys.executable)


SCENARIOS: Scenarios[Python] = Scenarios()


def _page(name: str, words: tuple[str, ...]) -> Scenario[Python]:
    async def page(python: Python, folder: Path) -> None:
        async with sandboxed_proxy(folder, []) as url:
            runs = await run_python(name, url, python.program, python.folder)
        for done in runs:
            expect(done.status == 0 and not done.stderr, "it runs", (done.stderr[-500:], done.stdout))
        printed = "".join(done.stdout for done in runs)
        expect(all(word in printed for word in words), f"it prints {words}", printed)

    return named(page, name)


for _name, _words in PAGES.items():
    SCENARIOS.add(_page(_name, _words))


class Event(BaseModel):
    """A typed answer."""

    title: str
    year: int


#: p1, and p4 over Responses: the upstreams that refuse in a form of their own, and answer by a schema.
_REFUSING = ("gpt-5.5", "opencode-go/gpt-5.6-luna")


_ASKED: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}]}


@SCENARIOS.add
async def parse_helpers_with_a_refusal(_python: Python, folder: Path) -> None:
    """Each helper of the openai SDK gives the refusal in place of a typed answer; the next answer is typed again."""
    script = [{"fault": "refusal", "times": 3}]
    for model in _REFUSING:
        place = folder / model.rpartition("/")[2]
        place.mkdir()
        async with (
            watched_proxy(place, script, LENIENT) as (url, _sandbox),
            openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="unused", max_retries=0) as sdk,
        ):
            chat: dict[str, Any] = {"model": model, "response_format": Event, **_ASKED}
            whole = await sdk.chat.completions.parse(**chat)
            async with sdk.chat.completions.stream(**chat) as stream:
                streamed = await stream.get_final_completion()
            response: Any = await sdk.responses.parse(model=model, input="hello", text_format=Event)
            typed = (await sdk.chat.completions.parse(**chat)).choices[0].message.parsed
        for choice in (whole.choices[0], streamed.choices[0]):
            seen = (choice.finish_reason, choice.message.parsed, bool(choice.message.refusal))
            expect(seen == ("stop", None, True), f"{model} refuses over chat", choice)
        refused = response.output[-1].content[0].type == "refusal"
        expect(refused and response.output_parsed is None, f"{model} refuses over Responses", response)
        expect(typed is not None and typed.year == 1, f"{model} answers when it is asked again", typed)


@SCENARIOS.add
async def a_refusal_on_messages(_python: Python, folder: Path) -> None:
    """It is a text and a reason to stop, as the anthropic SDK knows it."""
    async with (
        watched_proxy(folder, [{"fault": "refusal", "times": len(_REFUSING)}], {}) as (url, _sandbox),
        anthropic.AsyncAnthropic(base_url=url, api_key="unused", max_retries=0) as sdk,
    ):
        for model in _REFUSING:
            message = await sdk.messages.create(model=model, max_tokens=1000, **_ASKED)
            expect(message.stop_reason == "refusal" and message.content[0].type == "text", model, message)
