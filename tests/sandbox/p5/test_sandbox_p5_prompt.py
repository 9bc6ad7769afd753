"""How the simulated P5 reads a rendered prompt."""

import json
import time
from typing import Any

import pytest

from proxy.sandbox.model.reply import Called, Entry, Returned, Said
from proxy.sandbox.p5.prompt import NATIVE, read_prompt, sections

#: Prompt -> role and body of each section.
SECTIONS: list[tuple[str, list[tuple[str, str]]]] = [
    ("", []),
    ("no section", []),
    ("<user>\nQ\n</user>", [("user", "Q")]),
    ("<system>\nS\n</system>\n\n<user>\nQ\n</user>", [("system", "S"), ("user", "Q")]),
    ("<user>\nan </user> and\n</user>\nmore\n</user>", [("user", "an </user> and\n</user>\nmore")]),
    ("<user>\n\n</user>\n\n<assistant>\nA\n</assistant>", [("user", ""), ("assistant", "A")]),
    ("<user>\nnever ends", [("user", "never ends")]),
]


@pytest.mark.parametrize(("prompt", "found"), SECTIONS)
def test_sections(prompt: str, found: list[tuple[str, str]]) -> None:
    assert list(sections(prompt)) == found


def entries(body: str, role: str = "user", images: tuple[str, ...] = ()) -> list[Entry]:
    return list(read_prompt(f"<{role}>\n{body}\n</{role}>", images)[0].entries)


CALL = '<tool_use id="c1" name="Bash">\n{"command":"ls"}\n</tool_use>'
RESULT = '<tool_result tool_use_id="c1">\na\n\nb\n</tool_result>'

#: Body of a message -> what stands in it.
ENTRIES: list[tuple[str, str, list[Entry]]] = [
    ("user", "Q", [Said("user", "Q")]),
    (
        "assistant",
        f"first\n\n{CALL}\n\nthen",
        [Said("assistant", "first"), Called("c1", "Bash"), Said("assistant", "then")],
    ),
    ("assistant", f"<thinking>\nt\n</thinking>\n\n{CALL}", [Called("c1", "Bash")]),
    ("user", RESULT, [Returned("c1", "a\n\nb")]),
    ("user", RESULT.replace("c1", ""), [Returned("", "a\n\nb")]),
    ("user", f"{RESULT}\n\n{RESULT}", [Returned("c1", "a\n\nb")] * 2),
    ("user", '<tool_result tool_use_id="c1" is_error="true">\n\n</tool_result>', [Returned("c1", "")]),
    (
        "user",
        '<tool_result tool_use_id="c1">\nnever ends',
        [Said("user", '<tool_result tool_use_id="c1">\nnever ends')],
    ),
    ("user", "look\n\n[image: image/png, 8 base64 chars]", [Said("user", "look")]),
    ("user", "[image: https://x.invalid/i.png]", []),
]


@pytest.mark.parametrize(("role", "body", "found"), ENTRIES)
def test_entries(role: str, body: str, found: list[Entry]) -> None:
    assert entries(body, role) == found


def test_pictures_stand_with_what_was_said_last() -> None:
    assert entries("look", images=("image/png",)) == [Said("user", "look", ("image/png",))]
    assert entries(RESULT, images=("image/png",)) == [Returned("c1", "a\n\nb"), Said("user", "", ("image/png",))]


def tools(*rows: Any, said: str = "hello", **options: Any) -> list[str]:
    lines = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    ask, _ = read_prompt(f"<user>\n{said}\n</user>\n\n<tools>\n{lines}\n</tools>", **options)
    return [tool.name for tool in ask.tools]


def test_tools() -> None:
    assert tools({"name": "Grep", "input_schema": {}}, {"name": "Bash"}) == [*NATIVE, "Grep"]
    assert tools({"name": "Grep"}, {"name": "Bash"}, said="write xml Bash: ls") == ["Grep", "Bash"]
    assert tools("no json", [1], {"name": 1}, {}) == [*NATIVE]


def test_a_long_prompt_takes_no_long_time() -> None:
    began = time.process_time()
    for piece in ('<tool_use id="a" name="b">\n', "</user>\n", "<user>\n", "[image: ", f"{RESULT}\n"):
        read_prompt(f"<user>\n{piece * 20_000}\n</user>")
    assert time.process_time() - began < 2.0
