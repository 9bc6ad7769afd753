"""p5 through the SDKs and the command line."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from pathlib import Path

import aiohttp

from e2e.cursor_scenarios import asked, execs, expect_clean, use
from e2e.expecting import Scenario, Scenarios, expect, named
from e2e.pages import blocks
from e2e.process import Finished, run, under_way
from e2e.sdk_scenarios import Python
from e2e.servers import LENIENT, proxy_process, watched_proxy
from proxy.sandbox import Sandbox

PYTHON: Scenarios[Python] = Scenarios()

#: Page -> how many conversations its program for p5 has.
PAGES = {"anthropic-sdk.md": 1, "openai-sdk.md": 2}


def _commands_of(page: str, conversations: int) -> Scenario[Python]:
    async def commands(python: Python, folder: Path) -> None:
        """Every conversation is one run, which gets the results of all its commands."""
        python.folder.mkdir(parents=True, exist_ok=True)
        async with watched_proxy(folder, [], {}) as (url, sandbox):
            [program] = [block for block in blocks(page, "python", url) if '"Bash"' in block]
            done = await run([str(python.program), "-c", program], python.folder, {"PATH": os.environ["PATH"]})
            await expect_clean(sandbox)
            found = [execs(each) for each in asked(sandbox.p5)]
        expect(done.status == 0 and not done.stderr, "it runs", done)
        expect(found == [["one\n", "from-2\n"]] * conversations, "one run for each conversation", found)

    return named(commands, f"commands of {page}")


for _page, _conversations in PAGES.items():
    PYTHON.add(_commands_of(_page, _conversations))


#: A program with tools of its own names, which names no session. It prints the last answer.
_TOOLS = """
import json, pathlib, subprocess, sys
url, wire, streamed, prompt = sys.argv[1], sys.argv[2], sys.argv[3] == "streamed", sys.argv[4]

def read_file(path): return pathlib.Path(path).read_bytes().decode()
def write_file(path, content): return f"wrote {pathlib.Path(path).write_bytes(content.encode())} bytes"
def run_command(command):
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    return f"{done.stdout}{done.stderr}\\nexit code: {done.returncode}"

FUNCTIONS = {"read_file": ["path"], "write_file": ["path", "content"], "run_command": ["command"]}
SCHEMAS = {name: {"type": "object", "properties": {one: {"type": "string"} for one in members}, "required": members}
           for name, members in FUNCTIONS.items()}
def called(name, given): return globals()[name](**given)
"""
_MESSAGES = """
import anthropic
client = anthropic.Anthropic(base_url=url, api_key="unused")
tools = [{"name": name, "description": name, "input_schema": schema} for name, schema in SCHEMAS.items()]
messages = [{"role": "user", "content": prompt}]
while True:
    asked = dict(model="cursor", max_tokens=1000, messages=messages, tools=tools)
    if streamed:
        with client.messages.stream(**asked) as stream: answer = stream.get_final_message()
    else:
        answer = client.messages.create(**asked)
    messages.append({"role": "assistant", "content": answer.content})
    results = [{"type": "tool_result", "tool_use_id": one.id, "content": called(one.name, one.input)}
               for one in answer.content if one.type == "tool_use"]
    if not results: break
    messages.append({"role": "user", "content": results})
print(answer.content[-1].text)
"""
_CHAT = """
import openai
client = openai.OpenAI(base_url=f"{url}/v1", api_key="unused")
tools = [{"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in SCHEMAS.items()]
messages = [{"role": "user", "content": prompt}]
while True:
    asked = dict(model="cursor", messages=messages, tools=tools)
    if streamed:
        with client.chat.completions.stream(**asked) as stream: answer = stream.get_final_completion()
    else:
        answer = client.chat.completions.create(**asked)
    message = answer.choices[0].message
    messages.append(message)
    if not message.tool_calls: break
    for one in message.tool_calls:
        said = called(one.function.name, json.loads(one.function.arguments))
        messages.append({"role": "tool", "tool_call_id": one.id, "content": said})
print(message.content)
"""
_RESPONSES = """
import openai
client = openai.OpenAI(base_url=f"{url}/v1", api_key="unused")
tools = [{"type": "function", "name": name, "parameters": schema} for name, schema in SCHEMAS.items()]
items = [{"role": "user", "content": prompt}]
while True:
    asked = dict(model="cursor", input=items, tools=tools)
    if streamed:
        with client.responses.stream(**asked) as stream: answer = stream.get_final_response()
    else:
        answer = client.responses.create(**asked)
    items += answer.output
    calls = [one for one in answer.output if one.type == "function_call"]
    if not calls: break
    for one in calls:
        said = called(one.name, json.loads(one.arguments))
        items.append({"type": "function_call_output", "call_id": one.call_id, "output": said})
print(answer.output_text)
"""
_PROGRAMS = {"Messages": _MESSAGES, "chat": _CHAT, "Responses": _RESPONSES}
_NOTE = "\tindented\r\nend"


def _own_tools(wire: str, way: str) -> Scenario[Python]:
    async def own_tools(python: Python, folder: Path) -> None:
        """A program without any header for a session: each task is one run, byte by byte."""
        python.folder.mkdir(parents=True, exist_ok=True)
        note, made = python.folder / "note.txt", python.folder / "made.txt"
        note.write_bytes(_NOTE.encode())
        steps = [use("Read", file_path=str(note)), use("Write", file_path=str(made), content=_NOTE)]
        steps += [use("Bash", command="echo oops; exit 3"), use("Bash", command="echo fine")]
        program = _TOOLS + _PROGRAMS[wire]
        async with watched_proxy(folder, [], LENIENT) as (url, sandbox):
            command = [str(python.program), "-c", program, url, wire, way, "\n".join(steps)]
            done = await run(command, python.folder, {"PATH": os.environ["PATH"]})
            expect(done.status == 0 and "fine" in done.stdout, "it ends with an answer", done)
            await expect_clean(sandbox)
            found = [execs(each) for each in asked(sandbox.p5)]
        status = "\nexit code: "
        expected = [_NOTE, str(made), f"oops\n{status}3", f"fine\n{status}0"]
        expect(found == [expected], "one run", found)
        expect(made.read_bytes() == _NOTE.encode(), "the file is written", made.read_bytes())

    return named(own_tools, f"own tools over {wire} {way}")


for _wire in _PROGRAMS:
    for _way in ("streamed", "whole"):
        PYTHON.add(_own_tools(_wire, _way))


@PYTHON.add
async def sign_in(python: Python, folder: Path) -> None:
    """`auth login p5` through the command line, with a page that is opened elsewhere; what is signed in works."""
    folder.mkdir(parents=True, exist_ok=True)
    async with Sandbox() as sandbox:
        root = folder / "config"
        home = {**os.environ, **sandbox.settings(), "PROXY_CONFIG_DIR": str(root), "BROWSER": "true"}
        home["XDG_STATE_HOME"] = str(folder)
        before = await _proxy(python, home, "auth", "status", "p5")
        told = await _login(python, home)
        after = await _proxy(python, home, "auth", "status", "p5")
        async with proxy_process([], home) as url, aiohttp.ClientSession() as http:
            question = {"model": "cursor", "max_tokens": 99, "messages": [{"role": "user", "content": "hello"}]}
            async with http.post(f"{url}/v1/messages", json=question) as answer:
                said = await answer.text()
            async with http.post(f"{url}/v1/messages/count_tokens", json=question) as answer:
                count = await answer.json()
        names = await _proxy(python, home, "models", "--full")
        device = await _proxy(python, home, "auth", "login", "p5", "--device")
        gone = [await _proxy(python, home, "auth", action, "p5") for action in ("logout", "status")]
    expect((before.status, after.status) == (1, 0) and "p5" in told, "signed in", (before, told, after))
    expect(after.stdout.count("sandbox@example.com") == 1, "and told as whom", after)
    expect("You asked" in said and count == {"input_tokens": 5}, "an answer and a count", (said, count))
    expect("cursor-composer-fast" in names.stdout and "cursor-plan:" in names.stdout, "names are listed", names)
    expect(device.status == 2 and "any device" in device.stderr, "there is no code to type", device)
    expect([each.status for each in gone] == [0, 1], "signed out", gone)


async def _proxy(python: Python, home: Mapping[str, str], *arguments: str) -> Finished:
    # not from a folder that has one named `proxy`, where Python would look for its modules first
    return await run((str(python.program), "-m", "proxy", *arguments), Path(home["XDG_STATE_HOME"]), home)


async def _login(python: Python, home: Mapping[str, str]) -> str:
    """Signs in; the page is opened as soon as its address is told. All that was printed."""
    command = (str(python.program), "-u", "-m", "proxy", "auth", "login", "p5")
    printed = ""
    async with under_way(command, Path(home["XDG_STATE_HOME"]), home) as process, aiohttp.ClientSession() as http:
        if process.stdout is None:
            raise RuntimeError("it has no stdout")
        async with asyncio.timeout(30):
            async for line in process.stdout:
                printed += line.decode()
                page = re.search(r"http\S+loginDeepControl\S+", line.decode())
                if page is not None:
                    async with http.get(page[0]) as answer:
                        expect(answer.status == 200, "the page opens", answer.status)
            status = await process.wait()
    expect(status == 0, "it ends well", printed)
    return printed
