"""Reads prompts for the small model.

Forms it acts on (anything else gets an answer in prose):

- ``use Bash: ls -la`` calls the tool Bash with that text; several, one a line or joined by "and use" / "and then use",
are several calls; a JSON object after the colon gives the arguments; a function that only a script can run (see
`declared`) is requested in the same way; - ``stream 400 words`` gives an answer of exactly that many text deltas; -
``say <<<these words>>>`` gives an answer of these words, which may span lines; - ``Perform a web search for the query:
X`` searches, if a hosted search is offered; - ``search X for: Y`` searches the posts on X, if that search is offered.

A system prompt that mentions JSON and a schema, directly followed by the schema, gets an answer that fits it.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from proxy.core.sse import dump_json

MONITOR = "You are a security monitor for autonomous AI coding agents."
SUMMARY = "Your task is to create a detailed summary"

#: Characters of a prompt and of a tool result that are quoted.
SHORT_PROMPT = 120
SHORT_RESULT = 200

#: The limit of "stream N words": a typing slip should not fill the memory.
MAX_WORDS = 200_000

#: Texts that Claude Code and Codex insert.
_REMINDER = re.compile(r"<(system-reminder|environment_context)>.*?(?:</\1>|\Z)", re.DOTALL)
#: Claude Code adds this to the result of its tool search; it is no prompt.
_LOADED = re.compile(r"^\s*Tool loaded\.\s*$", re.MULTILINE)
_USE = re.compile(r"\buse ([\w-]+):[ \t]*", re.IGNORECASE)
_END_OF_USE = re.compile(r",? and then |,? and use |\r?\n|$", re.IGNORECASE)
_WORDS = re.compile(r"\bstream (\d{1,6}) words\b", re.IGNORECASE)
_SAY = re.compile(r"\bsay <<<\n?(.*?)>>>", re.IGNORECASE | re.DOTALL)
_SCHEMA = re.compile(r"\bJSON\b[^\n{]{0,100}\bschema\b[^{]{0,100}(?={)", re.IGNORECASE)
_SEARCH = re.compile(r"Perform a web search for the query:[ \t]*(.+)")
_FOUND = re.compile(r"^\d+\. (.*)\n +(https?://\S+)$", re.MULTILINE)
_X_SEARCH = re.compile(r"\bsearch x for:?[ \t]*(.+)", re.IGNORECASE)


class Wish(NamedTuple):
    """A call that the prompt asks for. `text` goes to the tool's main parameter unless `arguments` are given."""

    tool: str
    text: str
    arguments: dict[str, Any] | None = None


def real_prompt(text: str) -> str:
    """The text without a client's insertions."""
    return _LOADED.sub("", _REMINDER.sub("", text)).strip()


def wishes(prompt: str) -> list[Wish]:
    """The calls that a prompt asks for, in order.

    >>> wishes("use Bash: ls -la and then use Read: /etc/hosts")
    [Wish(tool='Bash', text='ls -la', arguments=None), Wish(tool='Read', text='/etc/hosts', arguments=None)]
    """
    found: list[Wish] = []
    position = 0
    while (use := _USE.search(prompt, position)) is not None:
        arguments, position = _json_object(prompt, use.end())
        if arguments is None:
            end = _END_OF_USE.search(prompt, use.end())
            position = end.start() if end else len(prompt)
        text = prompt[use.end() : position].strip()
        if text:
            found.append(Wish(use[1], text, arguments))
    return found


def schema_of(system: str) -> dict[str, Any] | None:
    """The last schema that a system prompt gives in words.

    >>> schema_of('Answer with JSON that fits this schema, and nothing else:\\n{"type": "object"}')
    {'type': 'object'}
    """
    found = [_json_object(system, match.end())[0] for match in _SCHEMA.finditer(system)]
    return next((schema for schema in reversed(found) if schema is not None), None)


def _json_object(prompt: str, start: int) -> tuple[dict[str, Any] | None, int]:
    """The object that begins at `start` and its end; None when there is none."""
    if prompt[start : start + 1] != "{":
        return None, start
    try:
        value, end = json.JSONDecoder().raw_decode(prompt, start)
    except ValueError:
        return None, start
    return value, end


def wanted_text(prompt: str) -> str | None:
    """The words that the prompt wants to hear.

    >>> wanted_text("say <<<as you like>>>")
    'as you like'
    """
    match = _SAY.search(prompt)
    return match[1] if match else None


def wanted_words(prompt: str) -> int | None:
    """N of "stream N words"."""
    found = _WORDS.search(prompt)
    return min(int(found[1]), MAX_WORDS) if found else None


def search_query(prompt: str) -> str | None:
    """X of "Perform a web search for the query: X"."""
    found = _SEARCH.search(prompt)
    return found[1].strip() if found else None


def x_query(prompt: str) -> str | None:
    """Y of "search X for: Y"."""
    found = _X_SEARCH.search(prompt)
    return found[1].strip() if found else None


def links(results: str) -> list[str]:
    """The pages in the results of a search, as Markdown links.

    >>> links("1. A (b)\\n   https://a.example/x")
    ['[A b](https://a.example/x)']
    """
    return [f"[{re.sub(r'[^a-zA-Z0-9 .]', '', title)}]({url})" for title, url in _FOUND.findall(results)]


def short(text: str, most: int = SHORT_PROMPT) -> str:
    """One line of at most `most` characters, cut with an ellipsis."""
    line = " ".join(text[: most * 8].split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def title_of(prompt: str) -> str:
    """A heading of up to six words of the prompt."""
    words = re.findall(r"[^\W_][\w'-]*", prompt)[:6]
    return " ".join(words).capitalize() or "Untitled"


#: Code mode: Codex offers its known models one freeform tool that takes JavaScript, with the client's other tools as
#: functions of `tools`. The tool's description declares them with these words.
_DECLARED = re.compile(r"declare const tools: \{ (\w+)\((?:args: \{\n(?: *//.*\n)* *(\w+))?")


def declared(description: str) -> dict[str, str | None]:
    """The functions that a description declares, each with its first parameter; None for one that takes a text.

    >>> declared("declare const tools: { patch(input: string): Promise<unknown>; };")
    {'patch': None}
    """
    return {found[1]: found[2] for found in _DECLARED.finditer(description)}


def script(function: str, argument: dict[str, Any] | str) -> str:
    """JavaScript that runs the function and shows its output, else its whole result."""
    return f"const result = await tools.{function}({dump_json(argument)}); text(result?.output ?? result);"


#: Marks a prompt that wants verdicts on numbered calls, in JSON.
WANTED = '"verdicts"'

_DANGEROUS = re.compile(
    r"\brm\s+-\w*r|\|\s*(?:ba|z)?sh\b|\bgit\s+push\b|\bmkfs|\bsudo\b|id_(?:rsa|ed25519)|credentials|\bdangerous\b"
)


def verdicts(prompt: str) -> str:
    """The answer to a review: an entry for every call in the prompt's JSON object.

    >>> verdicts('{"calls": [{"call": 1, "tool": "Bash", "input": {"command": "ls"}}]}')
    '{"verdicts": [{"call": 1, "flagged": false}]}'
    """
    try:
        asked = json.loads(prompt[prompt.find("{") :])
    except ValueError:
        asked = {}
    return json.dumps({"verdicts": [_verdict(call) for call in asked.get("calls", ())]})


def _verdict(call: dict[str, Any]) -> dict[str, Any]:
    found = _DANGEROUS.search(" ".join(_texts(call["input"])))
    if found is None:
        return {"call": call["call"], "flagged": False}
    return {"call": call["call"], "flagged": True, "reason": f"The sandbox model does not like: {found[0]}"}


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in values for text in _texts(one)]
