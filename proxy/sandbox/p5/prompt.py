"""Reads a rendered prompt for the sandbox model: sections, and the calls and results in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from proxy.sandbox.model.reply import Ask, Called, Entry, HostedSearch, Returned, Said, Tool

_ROLES = ("system", "user", "assistant", "tools")

_BEGIN = re.compile(r"<(system|user|assistant|tools)>\n")
_BLOCK = re.compile(r'<(tool_use|tool_result) (?:tool_use_)?id="([^"\n]*)"(?: name="([^"\n]*)")?[^>\n]*>\n')
_THOUGHT = re.compile(r"<thinking>\n")
_MARKER = re.compile(r"\[image: (?:[\w./+-]+, \d+ base64 chars|\S+)\]")

#: "write xml Bash: ls" asks for a call in the text, not for the native one.
_XML = re.compile(r"\bwrite xml (?=[\w-]+:)", re.IGNORECASE)


def _main(member: str) -> dict[str, Any]:
    """The schema of a tool that needs this text."""
    return {"type": "object", "properties": {member: {"type": "string"}}, "required": [member]}


#: Tool that finds or removes files -> its main member. No client has tools of these names.
FINDING = {"cursor_grep": "pattern", "cursor_ls": "path", "cursor_delete": "path"}

#: Tools of the service's models, whatever the client offers.
NATIVE: dict[str, Any] = {
    "Bash": _main("command"),
    "Read": _main("file_path"),
    "Write": {
        "type": "object",
        "properties": {"file_path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["file_path", "content"],
    },
    **{name: _main(member) for name, member in FINDING.items()},
}


def sections(prompt: str) -> Iterator[tuple[str, str]]:
    """Role and body of each section. A body may contain anything, so it ends where its end tag is followed by another
    section."""
    place = 0
    while (begin := _BEGIN.match(prompt, place)) is not None:
        role, start = begin[1], begin.end()
        end = _end_of(prompt, role, start)
        yield role, prompt[start:end]
        place = end + len(f"\n</{role}>\n\n")


def _end_of(prompt: str, role: str, start: int) -> int:
    mark = f"\n</{role}>"
    end = prompt.find(mark, start - 1)
    while end >= 0:
        behind = end + len(mark)
        if behind == len(prompt) or (prompt.startswith("\n\n", behind) and _BEGIN.match(prompt, behind + 2)):
            return end
        end = prompt.find(mark, behind)
    return len(prompt)


def read_prompt(prompt: str, images: Sequence[str] = (), *, mode: int = 1, thinks: bool = False) -> tuple[Ask, bool]:
    """The request in a prompt, and whether calls are to be written as text. `images` are the media types of its
    pictures."""
    entries: list[Entry] = []
    system: list[str] = []
    offered: list[Tool] = []
    for role, body in sections(prompt):
        if role == "tools":
            offered = _offered(body) or offered
        elif role == "system":
            system.append(body)
        else:
            entries += _entries(role, body)
    entries = _with_images(entries, images)
    as_text, entries = _writes_calls(entries)
    native = [] if as_text else [Tool(name, schema) for name, schema in NATIVE.items()]
    hidden = {tool.name for tool in native}
    tools = [*native, *(tool for tool in offered if tool.name not in hidden)]
    ask = Ask(
        entries,
        system="\n\n".join(system),
        tools=tools,
        choice="none" if mode == 2 else "auto",
        parallel=False,
        effort="high" if thinks else None,
        search=HostedSearch(),
    )
    return ask, as_text


def _offered(body: str) -> list[Tool]:
    """The tools of a section; none if a message only has text that looks like one."""
    try:
        rows = [json.loads(line) for line in body.split("\n")]
    except ValueError:
        return []
    known = all(isinstance(row, dict) and isinstance(row.get("name"), str) for row in rows)
    return [Tool(row["name"], row.get("input_schema")) for row in rows] if known else []


def _entries(role: str, body: str) -> Iterator[Entry]:
    """Calls, results and the text between them, in order."""
    place = 0
    while (begin := _BLOCK.search(body, place)) is not None:
        end = body.find(f"\n</{begin[1]}>", begin.end() - 1)
        if end < 0:
            break
        yield from _said(role, body[place : begin.start()])
        if begin[1] == "tool_use":
            yield Called(begin[2], begin[3] or "")
        else:
            yield Returned(begin[2], body[begin.end() : end])
        place = end + len(f"\n</{begin[1]}>")
    yield from _said(role, body[place:])


def _said(role: str, text: str) -> Iterator[Said]:
    text = _MARKER.sub("", text).strip()
    if role == "assistant" and _THOUGHT.match(text):
        text = text.rpartition("\n</thinking>")[2].strip()
    if text:
        yield Said(role, text)


def _with_images(entries: list[Entry], images: Sequence[str]) -> list[Entry]:
    """Adds the images to the user's last message."""
    for place in range(len(entries) - 1, -1, -1):
        entry = entries[place]
        if images and isinstance(entry, Said) and entry.role == "user":
            return [*entries[:place], entry._replace(images=tuple(images)), *entries[place + 1 :]]
    return [*entries, Said("user", "", tuple(images))] if images else entries


def _writes_calls(entries: list[Entry]) -> tuple[bool, list[Entry]]:
    said = [entry for entry in entries if isinstance(entry, Said) and entry.role == "user"]
    if not said or not _XML.search(said[-1].text):
        return False, entries
    changed = [
        entry._replace(text=_XML.sub("use ", entry.text)) if isinstance(entry, Said) else entry for entry in entries
    ]
    return True, changed
