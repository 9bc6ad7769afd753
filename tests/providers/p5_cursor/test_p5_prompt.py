"""The request as one text."""

from __future__ import annotations

from typing import Any

import pytest
from core.strategies import requests
from hypothesis import given
from samples import rows

from proxy.core.invalid import InvalidRequest
from proxy.providers.p5_cursor.prompt import check_content, estimate, prompt_tools, render

PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}}
EXAMPLE: dict[str, Any] = {
    "system": [
        {"type": "text", "text": "x-anthropic-billing-header: a=b"},
        {"type": "text", "text": "Be brief."},
    ],
    "messages": [
        {"role": "user", "content": "Q"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "t"},
                {"type": "tool_use", "id": "call_cursor_1", "name": "Read", "input": {"file_path": "/a"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "call_cursor_1",
                    "is_error": True,
                    "content": [{"type": "text", "text": "no"}, {"type": "document"}],
                },
                PICTURE,
                {"type": "image", "source": {"type": "url", "url": "https://x.invalid/i.png"}},
            ],
        },
    ],
    "tools": [{"name": "Read", "input_schema": {"type": "object"}}],
}
RENDERED = """\
<system>
Be brief.
</system>

<user>
Q
</user>

<assistant>
<thinking>
t
</thinking>

<tool_use id="call_cursor_1" name="Read">
{"file_path":"/a"}
</tool_use>
</assistant>

<user>
<tool_result tool_use_id="call_cursor_1" is_error="true">
no

[unsupported tool result block: document]
</tool_result>

[image: image/png, 8 base64 chars]

[image: https://x.invalid/i.png]
</user>

<tools>
{"name":"Read","description":"","input_schema":{"type":"object"}}
</tools>"""


def test_the_example_of_the_wire_document() -> None:
    assert render(EXAMPLE) == RENDERED
    assert len(RENDERED) == 460 and estimate(RENDERED) == 115


def test_characters_are_counted_and_not_bytes() -> None:
    assert estimate(render({"messages": [{"role": "user", "content": "é" * 10}]})) == 6


def text(words: Any) -> dict[str, Any]:
    return {"type": "text", "text": words}


BILLING = "x-anthropic-billing-header: cc_version=1"


@rows(
    "system, rendered",
    [
        ("Be brief.", "<system>\nBe brief.\n</system>"),
        ([text("a"), text("b")], "<system>\na\n\nb\n</system>"),
        ([text(BILLING)], ""),
        ([text(BILLING), text("b")], "<system>\nb\n</system>"),
        ([text(f" {BILLING}")], f"<system>\n {BILLING}\n</system>"),
        (f"{BILLING}\nBe brief.", ""),
        ("", ""),
        ([], ""),
        (None, ""),
        (3, ""),
        ([text(""), text("b"), text(None), 3, {"type": "image", "text": "c"}], "<system>\nb\n</system>"),
    ],
)
def test_the_system_prompt(system: Any, rendered: str) -> None:
    assert render({"system": system}) == rendered


def result(content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "c", "content": content, **more}


def result_text(body: str) -> str:
    return f'<tool_result tool_use_id="c">\n{body}\n</tool_result>'


def source(**members: Any) -> dict[str, Any]:
    return {"type": "image", "source": members}


BLOCKS: list[tuple[Any, str]] = [
    (text("a"), "a"),
    (text(""), ""),
    ({"type": "text"}, ""),
    ({"type": "thinking", "thinking": "a\nb", "signature": "s"}, "<thinking>\na\nb\n</thinking>"),
    ({"type": "thinking", "thinking": "", "signature": "s"}, ""),
    ({"type": "redacted_thinking", "data": "x"}, ""),
    ({"type": "redacted_thinking", "data": "x", "text": "t"}, "t"),
    ({"type": "future"}, ""),
    ({"type": "future", "text": "t"}, "t"),
    ({"type": "future", "text": 3}, ""),
    ({"type": None, "text": "t"}, "t"),
    ({"text": "t"}, "t"),
    (3, ""),
    (source(type="url", url="https://a.example/é.png"), "[image: https://a.example/é.png]"),
    (source(type="url"), "[image: ]"),
    (source(type="url", url="data:image/gif;base64,aGk="), "[image: image/gif, 4 base64 chars]"),
    (source(type="base64", media_type="image/webp", data="aGk="), "[image: image/webp, 4 base64 chars]"),
    (source(type="base64", data="aGk="), "[image: unknown, 4 base64 chars]"),
    (source(type="file", file_id="f"), "[image: unknown, 0 base64 chars]"),
    ({"type": "image"}, "[image: unknown, 0 base64 chars]"),
    (
        {"type": "tool_use", "id": "i", "name": "Bash", "input": {"b": 'ü "q"', "a": [1, None]}},
        '<tool_use id="i" name="Bash">\n{"b":"ü \\"q\\"","a":[1,null]}\n</tool_use>',
    ),
    ({"type": "tool_use", "id": "i", "name": "n"}, '<tool_use id="i" name="n">\n{}\n</tool_use>'),
    ({"type": "tool_use", "id": 'a"<', "name": None}, '<tool_use id="a"<" name="">\n{}\n</tool_use>'),
    (
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
        '<server_tool_use id="s" name="web_search">\n{"query":"q"}\n</server_tool_use>',
    ),
    (
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"url": "u", "title": "ü"}]},
        '<web_search_tool_result tool_use_id="s">\n[{"url":"u","title":"ü"}]\n</web_search_tool_result>',
    ),
    (result("out\n"), result_text("out\n")),
    (result(""), result_text("")),
    (result(None), result_text("")),
    ({"type": "tool_result", "tool_use_id": "c"}, result_text("")),
    (result([]), result_text("")),
    (result([text("a"), text(""), text("b")]), result_text("a\n\nb")),
    (result("x", is_error=True), '<tool_result tool_use_id="c" is_error="true">\nx\n</tool_result>'),
    (result("x", is_error=False), result_text("x")),
    (result("x", is_error=None), result_text("x")),
    (result([text("a"), PICTURE]), result_text("a\n\n[image: image/png, 8 base64 chars]")),
    (result([{"type": "thinking", "thinking": "t"}]), result_text("<thinking>\nt\n</thinking>")),
    (
        result([{"type": "tool_use", "id": "i", "name": "n", "input": {}}]),
        result_text('<tool_use id="i" name="n">\n{}\n</tool_use>'),
    ),
    (
        result([result("in", is_error=True)]),
        result_text('<tool_result tool_use_id="c" is_error="true">\nin\n</tool_result>'),
    ),
    (result([{"type": "search_result", "title": "t"}]), result_text("[unsupported tool result block: search_result]")),
    (result([{"type": "server_tool_use"}]), result_text("[unsupported tool result block: server_tool_use]")),
    (result([{"text": "a"}, None]), result_text("\n\n".join(["[unsupported tool result block: unknown]"] * 2))),
    (
        {"type": "document", "title": "T", "source": {"type": "text", "media_type": "text/plain", "data": "D"}},
        "T\nD",
    ),
    (
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="}},
        "[document omitted: application/pdf]",
    ),
]


@rows("block, rendered", BLOCKS)
def test_a_block(block: Any, rendered: str) -> None:
    assert render({"messages": [{"role": "user", "content": [block]}]}) == (
        f"<user>\n{rendered}\n</user>" if rendered else ""
    )
    between = [text("a"), block, text("b")]
    assert render({"messages": [{"role": "user", "content": between}]}) == (
        f"<user>\na\n\n{rendered}\n\nb\n</user>" if rendered else "<user>\na\n\nb\n</user>"
    )


@rows("content", ["", [], None, 3, {}, [text("")]])
def test_a_message_without_content_has_no_section(content: Any) -> None:
    silent = {"role": "user", "content": content}
    messages = [silent, {"role": "system", "content": "S"}]
    assert render({"messages": messages}) == "<system>\nS\n</system>"
    check_content({"messages": messages})
    for request in ({"system": "S", "tools": [{"name": "A"}], "messages": [silent]}, {"messages": []}, {}):
        with pytest.raises(InvalidRequest, match="none of them has any content"):
            check_content(request)


@rows("request_, rendered", [
        ({"tools": [{"name": "B", "description": "d", "input_schema": {"z": 1, "a": "ü"}}]},
         '{"name":"B","description":"d","input_schema":{"z":1,"a":"ü"}}'),
        ({"tools": [{"input_schema": {}, "name": "A"}, {"name": "B", "description": None, "input_schema": None}]},
         '{"name":"A","description":"","input_schema":{}}\n{"name":"B","description":"","input_schema":{}}'),
        ({"tools": [{"name": "A", "type": "custom", "strict": True, "cache_control": {}}]},
         '{"name":"A","description":"","input_schema":{}}'),
        ({"tools": [{"name": "A"}], "tool_choice": {"type": "any"}}, '{"name":"A","description":"","input_schema":{}}'),
        ({"tools": [{"name": "A"}], "tool_choice": {"type": "none"}}, ""),
        ({"tools": [{"name": "web_search", "type": "web_search_20250305"}]}, ""),
        ({"tools": [{"name": "web_fetch", "type": "web_fetch_20250910"}, {"name": ""}, {}, 3]}, ""),
        ({"tools": []}, ""),
        ({"tools": None}, ""),
        ({"tools": {"name": "A"}}, ""),
    ])  # fmt: skip
def test_tools(request_: Any, rendered: str) -> None:
    assert render(request_) == (f"<tools>\n{rendered}\n</tools>" if rendered else "")
    assert len(prompt_tools(request_)) == len(rendered.splitlines())


def test_the_form_of_the_answer_is_told_behind_the_system_prompt() -> None:
    schema = {"type": "json_schema", "schema": {"type": "object"}}
    request = {"system": "S", "output_config": {"format": schema}, "messages": [{"role": "user", "content": "Q"}]}
    assert render(request).startswith("<system>\nS\n\nAnswer with JSON that fits this schema")
    assert '{"type":"object"}\n</system>\n\n<user>\nQ\n</user>' in render(request)
    assert render({"output_format": schema}).startswith("<system>\nAnswer with JSON")


@given(requests)
def test_any_request_has_a_prompt(request: dict[str, Any]) -> None:
    prompt = render(request)
    assert estimate(prompt) >= 0 and not prompt.startswith("\n") and not prompt.endswith("\n")
