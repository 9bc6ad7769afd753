"""What the schemas of all tools of a request may cost together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.schema_chains import chained_tools
from proxy.core.convert import messages_to_chat, messages_to_messages, messages_to_responses
from proxy.core.tools.calls import optional_properties
from proxy.core.tools.step_budget import MAX_EXTRA, REQUEST_EXTRA, ToolSteps, ToolWalk
from proxy.providers.p3_grok import tools as grok_tools

pytestmark = pytest.mark.slow

WALKS: dict[str, ToolWalk[Any]] = {
    "typed": messages_to_chat._typed_tool,
    "plain": messages_to_chat._plain_tool,
    "messages": messages_to_messages._written,
    "function": messages_to_responses._function,
    "strict": messages_to_responses.strict_function,
    "p3": grok_tools._written,
    "optional": optional_properties,
}
every_walk = pytest.mark.parametrize("walk", WALKS.values(), ids=WALKS)
CHAINS = chained_tools()
CHOICE = {"properties": {"p": {"type": "string", "pattern": "^a+$"}}}
CHOICES = [
    {"name": f"c{n}", "input_schema": {"anyOf": [{"$ref": "#/$defs/c"}] * 5000, "$defs": {"c": CHOICE}}}
    for n in range(6)
]
PATTERNS = [
    {"name": f"p{n}", "input_schema": {"properties": {f"v{m}": {"pattern": f"^{n}.{m}$"} for m in range(30)}}}
    for n in range(50)
]
PLAIN = {"name": "plain", "input_schema": {"type": "object", "properties": {"a": {"type": "array"}}}}


@every_walk
@pytest.mark.parametrize("tools", [CHAINS, CHOICES, PATTERNS], ids=["chains", "choices", "patterns"])
def test_all_tools_of_a_request_share_its_steps(walk: ToolWalk[Any], tools: list[dict[str, Any]]) -> None:
    steps = ToolSteps()
    made = [walk(tool, steps) for tool in tools]
    assert steps.left > -MAX_EXTRA
    if walk is not optional_properties:
        assert len(json.dumps(made)) < len(json.dumps(tools)) * 2 + (REQUEST_EXTRA + MAX_EXTRA) * 16
    if tools is not CHAINS:  # only who writes references out has to walk those
        assert steps.left <= 0 and steps.simplified[-1] == tools[-1]["name"]


@every_walk
def test_a_request_gives_the_same_every_turn(walk: ToolWalk[Any]) -> None:
    """What a prompt cache has must not depend on what the proxy remembers of earlier turns."""
    turns = []
    for _ in range(2):
        steps = ToolSteps()
        turns.append(([walk(tool, steps) for tool in [*CHOICES, *CHAINS[:4], PLAIN]], steps.left))
    assert turns[0] == turns[1]


def test_a_tool_that_needs_no_steps_is_whole_behind_those_that_took_all() -> None:
    alone, behind = ToolSteps(), ToolSteps()
    whole = messages_to_chat._typed_tool(PLAIN, alone)
    for tool in CHOICES:
        messages_to_chat._typed_tool(tool, behind)
    assert behind.left <= 0 and messages_to_chat._typed_tool(PLAIN, behind) == whole
    assert "plain" not in behind.simplified
