"""Requests as digests: what counts, what does not, and that a conversation that goes on keeps its beginning."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from proxy.core.cache_health import fingerprint
from proxy.core.cache_health.fingerprint import PICTURE_WEIGHT, Fingerprint, of_messages, of_responses
from proxy.core.cache_health.judge import common_prefix

Body = dict[str, Any]
PICTURE = "iVBORw0KGgo=" * 20_000
BASE: Body = {
    "tools": [{"name": "Bash", "description": "Runs.", "input_schema": {"type": "object"}}],
    "system": [{"type": "text", "text": "You are."}],
    "messages": [
        {"role": "user", "content": "hello"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "abc"},
                {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ls", "n": 1.5}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "content": [
                        {"type": "text", "text": "a"},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}},
                    ],
                }
            ],
        },
    ],
}
RESPONSES: Body = {
    "instructions": "You are.",
    "tools": [{"type": "function", "name": "shell", "parameters": {}}, {"type": "web_search"}],
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "abc"},
        {
            "type": "function_call",
            "id": "fc_1",
            "status": "completed",
            "call_id": "c",
            "name": "shell",
            "arguments": "{}",
        },
        {"type": "function_call_output", "call_id": "c", "output": "done"},
    ],
}


def at(body: Body, path: str) -> tuple[Any, Any]:
    """What holds the member that a path leads to, and its name."""
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in way:
        body = body[part]  # type: ignore[index]
    return body, last


MARK = {"type": "ephemeral"}
BILLED = [{"type": "text", "text": "x-anthropic-billing-header: a"}, *BASE["system"]]
#: path, its new value, whether a model reads another prompt then
CHANGES: list[tuple[str, Any, bool]] = [
    ("tools.0.cache_control", MARK, False),
    ("system.0.cache_control", MARK, False),
    ("messages.1.content.1.cache_control", MARK, False),
    ("messages.2.content.0.cache_control", MARK, False),
    ("messages.2.content.0.content.0.cache_control", MARK, False),
    ("system", BILLED, False),
    ("system", "You are.", False),
    ("system", "x-anthropic-billing-header: b\n\nYou are.", False),
    ("messages.0.content", [{"type": "text", "text": "hello"}], False),
    ("metadata", {"user_id": "u"}, False),
    ("temperature", 1, False),
    ("tools.0.description", "Runs!", True),
    ("tools.0.input_schema", {"type": "object", "properties": {}}, True),
    ("tools", [], True),
    ("system", [], True),
    ("system.0.text", "You were.", True),
    ("messages.0.content", "hullo", True),
    ("messages.0.role", "assistant", True),
    ("messages.1.content.0.signature", "abd", True),
    ("messages.1.content.1.id", "c2", True),
    ("messages.1.content.1.input.n", 1.25, True),
    ("messages.2.content.0.tool_use_id", "c2", True),
    ("messages.2.content.0.content.0.text", "b", True),
    ("messages.2.content.0.content.1.source.data", PICTURE[4:] + PICTURE[:4], True),
]
RESPONSES_CHANGES: list[tuple[str, Any, bool]] = [
    ("input.1.id", "rs_2", False),
    ("input.2.id", "fc_2", False),
    ("input.2.status", "incomplete", False),
    ("prompt_cache_key", "k", False),
    ("instructions", "You were.", True),
    ("tools.1.type", "web_search_preview", True),
    ("input.0.content.0.text", "hullo", True),
    ("input.1.encrypted_content", "abd", True),
    ("input.2.arguments", "[]", True),
    ("input.3.output", "undone", True),
    ("input.3.call_id", "d", True),
]
CASES = [(of_messages, BASE, *row) for row in CHANGES] + [(of_responses, RESPONSES, *row) for row in RESPONSES_CHANGES]


@rows("make, body, path, value, differs", CASES)
def test_what_a_model_reads_counts(make: Any, body: Body, path: str, value: Any, differs: bool) -> None:
    other = json.loads(json.dumps(body))
    holder, name = at(other, path)
    holder[name] = copy.deepcopy(value)
    assert (make(other).digests != make(body).digests) is differs


def test_places_and_weights() -> None:
    found = of_messages(BASE)
    assert (found.tools, found.system, found.names, found.messages) == (1, 1, ("Bash",), 3)
    assert list(found.places) == [0, 0, 0, 1, 1, 2]
    assert found.weights[2] == len("hello") and found.weights[5] == 1 + PICTURE_WEIGHT
    assert found.total == sum(found.weights)
    found = of_responses(RESPONSES)
    assert (found.tools, found.system, found.names) == (2, 1, ("shell", "web_search"))
    assert of_responses({"input": "hello"}).digests == of_responses({"input": RESPONSES["input"][:1]}).digests


@rows(
    "body",
    [
        {},
        {"tools": "x", "system": 5, "messages": None},
        {"tools": [None, 3], "system": [None], "messages": [{"role": "user", "content": 5}]},
        {"messages": [{"role": [], "content": [None, 5, {"type": ["x"]}, {"type": "image", "source": 3}]}]},
        {"input": [None, "x", {"role": "user"}], "instructions": ["x"]},
    ],
)
def test_whatever_stands_there_is_taken(body: Body) -> None:
    for make in (of_messages, of_responses):
        assert isinstance(make(body), Fingerprint)


VECTORS = Path(__file__).parents[2] / "vectors"


@pytest.mark.parametrize("folder", ["messages_to_responses", "responses_request_to_messages"])
def test_real_requests_can_be_read(folder: str) -> None:
    for path in sorted((VECTORS / folder).glob("*.json")):
        case = json.loads(path.read_text())
        for body in (value for value in case.values() if isinstance(value, dict)):
            again = json.loads(json.dumps(body))
            assert of_messages(body) == of_messages(again) and of_responses(body) == of_responses(again)


TEXTS = st.text(max_size=5)
BLOCKS = st.lists(st.builds(lambda text: {"type": "text", "text": text}, TEXTS), max_size=4)
MESSAGES = st.lists(
    st.builds(
        lambda role, content: {"role": role, "content": content}, st.sampled_from(["user", "assistant"]), TEXTS | BLOCKS
    ),
    max_size=12,
)


@given(MESSAGES, MESSAGES)
def test_a_conversation_that_goes_on_begins_as_before(said: list[Body], more: list[Body]) -> None:
    old, new = (of_messages({**BASE, "messages": messages}) for messages in (said, said + more))
    assert common_prefix(old, new) == len(old.digests)
    assert new.digests[: len(old.digests)] == old.digests


def test_many_blocks_share_digests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprint, "MAX_SINGLE", 10)
    monkeypatch.setattr(fingerprint, "CHUNK", 4)
    monkeypatch.setattr(fingerprint, "MAX_DIGESTS", 20)
    sizes = []
    last = of_messages({})
    for count in range(120):
        messages = [{"role": "user", "content": f"{number:03}"} for number in range(count)]
        found = of_messages({"messages": messages})
        sizes.append(len(found.digests))
        assert found.total == 3 * count and len(found.places) == len(found.weights) == len(found.digests)
        assert common_prefix(last, found) >= len(last.digests) - 1
        last = found
    assert sizes[:11] == list(range(11)) and sizes[11] == 11 and sizes[14] == 11 and sizes[15] == 12
    assert max(sizes) == 20
