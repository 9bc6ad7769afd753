"""What P5 refuses on the OpenAI-style routes, and in which order."""

from __future__ import annotations

from typing import Any

import pytest
from core.openai_bodies import MINIMAL, SURFACES, function_tool, parse, refusal
from samples import rows

from proxy.core.invalid import InvalidRequest
from proxy.providers.p5_cursor.provider import INGRESS
from proxy.server.request.families import CHAT, RESPONSES
from proxy.server.request.inquiry import first_value

UNSUPPORTED = "unsupported_parameter"
LINKED = "https://x.invalid/i.png"
#: where the picture of `pictured` stands
PICTURE = {"chat": "messages[0].content[0].image_url.url", "responses": "input[0].content[0].image_url"}
IN_A_RESULT = {"chat": "messages[1].content[0].image_url.url", "responses": "input[1].output[0].image_url"}
EFFORT = {"chat": "reasoning_effort", "responses": "reasoning.effort"}
NAME = "tools[{}].function.name"


def pictured(surface: str, url: str = LINKED, **members: Any) -> dict[str, Any]:
    chat = {"type": "image_url", "image_url": {"url": url}}
    part = chat if surface == "chat" else {"type": "input_image", "image_url": url}
    return {"messages" if surface == "chat" else "input": [{"role": "user", "content": [part]}], **members}


def offering(surface: str, *names: str, **members: Any) -> dict[str, Any]:
    return {"tools": [function_tool(surface, name) for name in names], **members}


def effort(surface: str, word: str) -> dict[str, Any]:
    return {"reasoning_effort": word} if surface == "chat" else {"reasoning": {"effort": word}}


def answered(surface: str) -> dict[str, Any]:
    """A tool result with a linked picture in it."""
    if surface == "chat":
        call = {"id": "c", "type": "function", "function": {"name": "Read", "arguments": "{}"}}
        part = {"type": "image_url", "image_url": {"url": LINKED}}
        return {
            "messages": [
                {"role": "assistant", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c", "content": [part]},
            ]
        }
    call = {"type": "function_call", "call_id": "c", "name": "Read", "arguments": "{}"}
    part = {"type": "input_image", "image_url": LINKED}
    return {"input": [call, {"type": "function_call_output", "call_id": "c", "output": [part]}]}


def refusals(surface: str) -> list[tuple[dict[str, Any], bool, str, str | None, str]]:
    """Members of the body, whether there is a session, and the error: param, code, what its message holds."""
    streamed = {"stream": True}
    custom = {"type": "custom", "name": "x"}
    unbridged = ("tools[0].type", UNSUPPORTED, "custom") if surface == "chat" else (NAME.format(0), None, "'x'")
    return [
        (offering(surface, "Read"), True, "stream", None, "Cursor tools require 'stream' to be true"),
        (offering(surface, "Read", stream=False), True, "stream", None, "'stream'"),
        (offering(surface, "Read", stream=None), True, "stream", None, "'stream'"),
        (offering(surface, "Read", tool_choice="none"), True, "stream", None, "'stream'"),
        (offering(surface, "Read", **streamed), False, "tools", None, "Cursor tools require a stable session header"),
        (
            offering(surface, "Read", "Grep", **streamed),
            True,
            NAME.format(1),
            None,
            "Cursor cannot bridge tool 'Grep'",
        ),
        (offering(surface, "Grep", "Glob", **streamed), True, NAME.format(0), None, "'Grep'"),
        (offering(surface, "Read", "read", **streamed), True, NAME.format(1), None, "'read'"),
        (offering(surface, "Grep"), False, "stream", None, "'stream'"),
        (offering(surface, "Grep", **streamed), False, "tools", None, "session"),
        (pictured(surface), False, PICTURE[surface], UNSUPPORTED, "data URL"),
        (pictured(surface, **offering(surface, "Grep")), False, PICTURE[surface], UNSUPPORTED, "data URL"),
        (answered(surface), False, IN_A_RESULT[surface], UNSUPPORTED, "data URL"),
        (offering(surface, "Grep", temperature=0.5), True, "temperature", UNSUPPORTED, "temperature"),
        (pictured(surface, temperature=0.5), True, "temperature", UNSUPPORTED, "temperature"),
        (offering(surface, "Read", parallel_tool_calls="x"), True, "parallel_tool_calls", None, "true or false"),
        (offering(surface, "Grep", tool_choice="x"), True, "tool_choice", UNSUPPORTED, "tool_choice"),
        (offering(surface, "Grep", **effort(surface, "none")), True, EFFORT[surface], None, "'none'"),
        (effort(surface, "none"), True, EFFORT[surface], None, "low, medium, high, xhigh, max"),
        (effort(surface, "minimal"), True, EFFORT[surface], None, "'minimal'"),
        # a custom tool is a function where there are such, but none that can be bridged
        ({"tools": [custom], "stream": True}, True, *unbridged),
    ]


ROWS = [(surface, *row) for surface in SURFACES for row in refusals(surface)]


@rows("surface, members, session, param, code, words", ROWS)
def test_a_body_is_refused(
    surface: str, members: dict[str, Any], session: bool, param: str, code: str | None, words: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse(surface, "p5", "s" if session else None, **members)
    assert (caught.value.param, caught.value.code) == (param, code)
    assert words in caught.value.message


def test_two_tools_of_one_name_are_refused_where_they_stand() -> None:
    for surface, place in (("chat", NAME.format(1)), ("responses", "tools[1].name")):
        with pytest.raises(InvalidRequest, match="duplicate") as caught:
            parse(surface, "p5", None, **offering(surface, "Read", "Read"))
        assert caught.value.param == place


def test_functions_in_namespaces_cannot_be_bridged() -> None:
    tools = [{"type": "namespace", "name": "files", "tools": [function_tool("responses", "Read")]}]
    with pytest.raises(InvalidRequest, match="cannot bridge tool 'files__Read'") as caught:
        parse("responses", "p5", "s", tools=tools, stream=True)
    assert caught.value.param == "tools[0].tools[0].function.name"


@pytest.mark.parametrize("surface", SURFACES)
def test_a_body_is_accepted(surface: str) -> None:
    picture = pictured(surface, "data:image/png;base64,aGVsbG8=")
    limit = "max_output_tokens" if surface == "responses" else "max_completion_tokens"
    for members in (
        {},
        {"tools": []},
        {"tools": None, "stream": False},
        {"stream": True},
        picture,
        {limit: 5},
        effort(surface, "max"),
        {"tools": [{"type": "web_search"}]},  # left out, as wherever there is none
        {"parallel_tool_calls": True},
    ):
        assert parse(surface, "p5", None, **members).request["model"] == MINIMAL[surface]["model"]
    for members in (
        offering(surface, "Read", "Write", "Bash", stream=True),
        offering(surface, "Read", stream=True, parallel_tool_calls=True),
        offering(surface, "Read", stream=True, parallel_tool_calls=False),
        offering(surface, "Bash", stream=True, tool_choice="none"),
    ):
        assert parse(surface, "p5", "s", **members).stream


@pytest.mark.parametrize("surface", SURFACES)
def test_lenient_mode_takes_tools_of_any_name_with_or_without_a_stream_and_a_session(surface: str) -> None:
    for members in (
        offering(surface, "Read", "Grep"),
        offering(surface, "exec_command", stream=True),
        offering(surface, "read", tool_choice="none"),
    ):
        for session in (None, "s"):
            tools = parse(surface, "p5", session, lenient=True, **members).request["tools"]
            assert [tool["name"] for tool in tools] == [
                tool.get("name") or tool["function"]["name"] for tool in members["tools"]
            ]
    assert refusal(surface, "p5", lenient=True, **pictured(surface)) == (PICTURE[surface], UNSUPPORTED)


@rows("family", [CHAT, RESPONSES])
@rows(
    "headers, session",
    [
        ({"x-agent-session-id": ["a"], "session_id": ["k"], "x-client-request-id": ["r"]}, "a"),
        ({"x-agent-session-id": [""], "session_id": ["k"]}, "k"),
        ({"x-agent-session-id": [" "], "session_id": [""], "x-client-request-id": ["r"]}, "r"),
        ({"x-claude-code-session-id": ["c"], "session_id": ["k"]}, "c"),
        ({"session_id": ["k"]}, "k"),
        ({"prompt_cache_key": ["k"]}, None),
        ({}, None),
    ],
)
def test_the_first_session_header_that_says_something_counts(
    family: Any, headers: dict[str, list[str]], session: str | None
) -> None:
    assert first_value(headers, family.session_headers) == session


def test_the_rules() -> None:
    assert INGRESS.tools is not None and INGRESS.tools.names == {"Read", "Write", "Bash"}
    assert not INGRESS.image_urls and not INGRESS.hosted
