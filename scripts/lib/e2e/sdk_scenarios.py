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


#: Names the account that served.
_ACCOUNT = "x-model-proxy-account"
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
async def a_search_for_a_model_without_one(_python: Python, folder: Path) -> None:
    """The openai SDK on both routes, streamed and whole: the places of the annotations lie on the links of the text."""
    query = 'use web_search: {"query": "rust news"}'
    async with (
        watched_proxy(folder, [], LENIENT) as (url, _sandbox),
        openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="unused", max_retries=0) as sdk,
    ):
        for model in ("kimi-for-coding", "opencode-go/kimi-k2.6", "minimax-m3"):
            asked: dict[str, Any] = {"model": model, "input": query, "tools": [{"type": "web_search"}]}
            async with sdk.responses.stream(**asked) as stream:
                streamed: Any = await stream.get_final_response()
            for response in (streamed, await sdk.responses.create(**asked)):
                calls = [item.action.query for item in response.output if item.type == "web_search_call"]
                part = response.output[-1].content[0]
                expect(calls == ["rust news"], f"{model} searched", response)
                _check_links(model, part.text, part.annotations)
            chat: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": query}]}
            chat["web_search_options"] = {}
            async with sdk.chat.completions.stream(**chat) as chunks:
                final: Any = await chunks.get_final_completion()
            for completion in (final, await sdk.chat.completions.create(**chat)):
                message = completion.choices[0].message
                cited = [
                    one["url_citation"] if isinstance(one, dict) else one.url_citation for one in message.annotations
                ]
                _check_links(model, message.content, cited)


def _check_links(model: str, text: str, cited: list[Any]) -> None:
    """Three links, each covered exactly."""
    found = [one if isinstance(one, dict) else one.model_dump() for one in cited]
    links = [text[one["start_index"] : one["end_index"]] for one in found]
    fit = all(
        link.startswith("[") and link.endswith(f"]({one['url']})") for link, one in zip(links, found, strict=True)
    )
    expect(len(links) == 3 and fit, f"annotations of {model} lie on the text", (text, found))


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


@SCENARIOS.add
async def another_account_goes_on(_python: Python, folder: Path) -> None:
    """The window of the first account is spent between two turns of a session: as the setting says, the caller learns
    when it begins again, or the second account serves this turn and those that follow."""
    for policy in ("fail", "next"):
        place = folder / policy
        place.mkdir()
        async with (
            watched_proxy(place, [], {"PROXY_ON_SPENT": policy}) as (url, sandbox),
            anthropic.AsyncAnthropic(base_url=url, api_key="unused", max_retries=0) as sdk,
        ):
            second = sandbox.p1.second()
            stored = place / "config/p1/accounts/work/p1"
            stored.mkdir(parents=True)
            for name, text in second.credentials(None, None).items():
                (stored / name).write_text(text)
            asked: dict[str, Any] = {"model": "gpt-5.5", "max_tokens": 100, **_ASKED}
            session = {"x-claude-code-session-id": "e2e"}
            first = await sdk.messages.with_raw_response.create(**asked, extra_headers=session)
            expect(first.headers.get(_ACCOUNT) == "default", "the first account begins", dict(first.headers))
            sandbox.p1.script.extend([{"fault": "usage_limit", "seconds": 1800, "times": None}])
            if policy == "fail":
                try:
                    await sdk.messages.create(**asked, extra_headers=session)
                    refused = ""
                except anthropic.RateLimitError as error:
                    refused = str(error)
                told = "account default of p1" in refused and "used up until" in refused
                expect(told and not second.total_requests, "the caller learns whose window is spent", refused)
                continue
            for _ in range(2):
                answer = await sdk.messages.with_raw_response.create(**asked, extra_headers=session)
                message = await answer.parse()
                text = "".join(block.text for block in message.content if block.type == "text")
                served = (answer.headers.get(_ACCOUNT), "hello" in text)
                expect(served == ("work", True), "the second account goes on", served)
            expect(sandbox.p1.total_requests == 2, "the first account is not asked again", sandbox.p1.total_requests)
