"""The Grok CLI at the simulated p3, without the proxy between them."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from e2e.alone import Simulators, simulators
from e2e.expecting import Scenarios, expect
from e2e.media_files import red_png
from e2e.npm import Installed
from e2e.npm import install as npm_install
from e2e.process import Finished, run

VERSIONS = ("1.0.41",)

MODELS = ("grok-4.6", "grok-4.5", "grok-composer-2.5-fast")

_PACKAGE = "@xai-official/grok"
_CLIENT_ID = "b1a00492-073a-47ea-816f-4c329264a828"
_ADDRESSES = ("GROK_CLI_CHAT_PROXY_BASE_URL", "GROK_MODELS_BASE_URL", "GROK_XAI_API_BASE_URL", "XAI_API_BASE_URL")
_SWITCHES = ("TELEMETRY_ENABLED", "TELEMETRY_TRACE_UPLOAD", "FEEDBACK_ENABLED", "WEB_FETCH")

#: Forms of an answer that it bears.
FORMS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("data_only", {}),
    ("silent_frames", {}),
    ("comments", {}),
    ("crlf", {}),
    ("tiny_writes", {"size": 7}),
    ("no_done", {}),
    ("held_open", {"seconds": 1}),
    ("terminal_only", {}),
    ("thoughts_as_text", {}),
    ("empty_thoughts", {}),
    ("search", {}),
    ("search", {"on_x": True}),
    ("parallel_searches", {}),
    ("parallel_searches", {"on_x": True}),
    ("open_page", {}),
    ("search_failed", {}),
    ("citations", {}),
)
#: And forms that end its turn.
REFUSED: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("unknown_events", {}),
    ("no_numbers", {}),
    ("silent_frames", {"blank": True}),
    ("forbidden", {}),
    ("outdated", {}),
)


async def install(version: str, cache: Path) -> Path:
    """The program of a version. It comes packed; its own starter unpacks it, once, beside the package."""
    starter = f"{_PACKAGE}/bin/grok-bootstrap.js"
    return _unpacked(await npm_install(_PACKAGE, version, cache, starter, unpack=_unpack)) / "bin" / "grok"


def _unpacked(starter: Path) -> Path:
    return starter.parents[4] / "unpacked"


async def _unpack(starter: Path) -> None:
    home, node = _unpacked(starter), shutil.which("node")
    if node is None:
        raise RuntimeError(f"Node.js is needed to unpack {_PACKAGE}")
    home.mkdir()
    done = await run([node, str(starter), "--version"], home, {"HOME": str(home), "GROK_HOME": str(home)})
    expect((home / "bin" / "grok").exists(), "it unpacks itself", done)


def _turn(prompt: str, model: str = MODELS[0]) -> tuple[str, ...]:
    return ("-p", prompt, "--output-format", "json", "--always-approve", "-m", model)


class Grok(Installed):
    async def run(self, found: Simulators, *arguments: str, **variables: str) -> Finished:
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.home),
            "GROK_HOME": str(self.home / ".grok"),
            "TERM": "dumb",
            "GROK_OAUTH2_ISSUER": found.origin,
            "GROK_OAUTH2_CLIENT_ID": _CLIENT_ID,
            "GROK_DISABLE_AUTOUPDATER": "1",
            **{f"GROK_{name}": "0" for name in _SWITCHES},
            **dict.fromkeys(_ADDRESSES, f"{found.origin}/v1"),
            **variables,
        }
        return await run([str(self.program), *arguments], self.work, environment)

    async def ask(self, found: Simulators, prompt: str, *arguments: str, model: str = MODELS[0], **more: str) -> str:
        """The text of a turn that ends well."""
        done = await self.run(found, *_turn(prompt, model), *arguments, **more)
        expect(done.status == 0, f"{model} answers {prompt!r}", done)
        return str(json.loads(done.stdout)["text"])

    async def works(self, found: Simulators, **variables: str) -> None:
        """A plain turn and one with a tool on each model; searches, which go along with the next turn."""
        for model in MODELS:
            plain = await self.ask(found, "hello there", model=model, **variables)
            expect("hello there" in plain, f"{model} answers", plain)
            call = json.dumps({"command": "echo from-$((1 + 1))-grok", "description": "says hello"})
            tool = await self.ask(found, f"use run_terminal_command: {call}", model=model, **variables)
            expect("from-2-grok" in tool, f"{model} calls a tool", tool)
        web = await self.ask(found, "Perform a web search for the query: rust", **variables)
        expect("[[1]](https://docs.example.org/rust)" in web, "it searches the web", web)
        posts = await self.ask(found, "search X for: rust", "--continue", **variables)
        expect("[[1]](https://x.com/rust)" in posts, "it searches X", posts)
        later = await self.ask(found, "hello again", "--continue", **variables)
        expect("hello again" in later, "it goes on", later)


SCENARIOS: Scenarios[Grok] = Scenarios()


@SCENARIOS.add
async def signs_in_with_a_code_and_works(grok: Grok, folder: Path) -> None:
    async with simulators(folder) as found:
        login = await grok.run(found, "login", "--device-auth")
        expect(login.status == 0 and "Signed in" in login.stdout + login.stderr, "it signs in", login)
        await grok.works(found)


#: Opens a page as a user's browser does, up to the program's own.
_BROWSER = f"""#!{sys.executable}
import sys, urllib.request
urllib.request.urlopen(sys.argv[1]).read()
"""


@SCENARIOS.add
async def signs_in_with_a_browser_and_renews(grok: Grok, folder: Path) -> None:
    (browser := folder / "browser").write_text(_BROWSER)
    browser.chmod(0o755)
    async with simulators(folder) as found:
        login = await grok.run(found, "login", "--oauth", BROWSER=str(browser))
        expect(login.status == 0 and "Signed in" in login.stdout + login.stderr, "it checks who signed in", login)
        stored = grok.home / ".grok" / "auth.json"
        first = next(one for one in json.loads(stored.read_text()).values() if one["oidc_issuer"] == found.origin)
        stored.write_text(stored.read_text().replace(first["expires_at"], "2026-01-01T00:00:00Z"))
        await grok.ask(found, "hello there")
        renewed = stored.read_text()
        expect(first["refresh_token"] not in renewed and found.origin in renewed, "it renews", renewed)


@SCENARIOS.add
async def works_with_a_key(grok: Grok, folder: Path) -> None:
    async with simulators(folder) as found:
        await grok.works(found, XAI_API_KEY=found.credential("p3")["access"])


@SCENARIOS.add
async def shows_pictures_and_fills_schemas(grok: Grok, folder: Path) -> None:
    picture = grok.work / "red.png"
    picture.write_bytes(red_png(32))
    async with simulators(folder) as found:
        key = found.credential("p3")["access"]
        seen = await grok.ask(found, f'use read_file: {{"target_file": "{picture}"}}', XAI_API_KEY=key)
        expect("1 image (1 image/png)" in seen, "the model sees what it reads", seen)
        schema = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
        head = _turn("fix the bug")
        done = await grok.run(found, *head, "--json-schema", json.dumps(schema), XAI_API_KEY=key)
        filled = json.loads(done.stdout).get("structuredOutput", {})
        expect(set(filled) == {"title"}, "an answer of a schema", done)


@SCENARIOS.add
async def bears_the_forms_of_an_answer(grok: Grok, folder: Path) -> None:
    forms = [*FORMS, *REFUSED]
    script = [
        {"fault": fault, "match": {"prompt": f"hello {number}."}, "times": None, **params}
        for number, (fault, params) in enumerate(forms)
    ]
    async with simulators(folder, script) as found:
        key = found.credential("p3")["access"]
        for number, (fault, params) in enumerate(forms):
            done = await grok.run(found, *_turn(f"hello {number}."), XAI_API_KEY=key)
            good = done.status == 0 and f"hello {number}." in json.loads(done.stdout)["text"]
            expect(good is (number < len(FORMS)), f"whether it bears {fault} {params}", done)
