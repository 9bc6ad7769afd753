"""Tools that only a service runs: which of them a request has to do without, and whether it can."""

from __future__ import annotations

from typing import Any

from samples import rows

from proxy.core.tools.hosted import Missing, hosted_kind, refusal, without_missing

OWN = {"name": "Bash", "input_schema": {"type": "object"}}
FETCH = {"type": "web_fetch_20250910", "name": "web_fetch"}
SEARCH = {"type": "web_search_20250305", "name": "web_search"}
REGEX = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
TOOLSET = {"type": "mcp_toolset", "mcp_server_name": "m"}
SERVERS = [{"type": "url", "url": "https://mcp.example/sse", "name": "m"}]
SKILLS = {"skills": [{"type": "anthropic", "skill_id": "pptx"}]}


@rows(
    "tool, kind",
    [
        (FETCH, "web_fetch"),
        (SEARCH, "web_search"),
        (REGEX, "tool_search_tool_regex"),
        (TOOLSET, "mcp_toolset"),
        ({"type": "web_search_20300101", "name": "s"}, "web_search"),
        ({"type": "code_execution_20250825", "name": "c"}, "code_execution"),
        ({"type": "advisor_20260301", "name": "a"}, "advisor"),
        ({"type": "new_20300101", "name": "n"}, "new"),
        *((tool, None) for tool in (OWN, {**OWN, "type": "custom"}, {**OWN, "type": "new_20300101"}, {"name": "x"})),
        *(({"type": kind, "name": "x"}, None) for kind in ("bash_20250124", "memory_20250818", "computer_20251124")),
        *(({"type": kind, "name": "x"}, None) for kind in ("text_editor_20250728", "", 5, None, ["web_fetch_1"])),
        *((tool, None) for tool in ("x", None, 5, [])),
    ],
)
def test_kinds(tool: Any, kind: str | None) -> None:
    assert hosted_kind(tool) == kind


@rows(
    "members, paths, names",
    [
        ({"tools": [OWN]}, [], ["Bash"]),
        ({}, [], None),
        ({"tools": {"type": "web_fetch"}}, [], None),
        ({"tools": [OWN, SEARCH]}, [], ["Bash", "web_search"]),
        ({"tools": [OWN, FETCH, SEARCH]}, ["tools[1].type"], ["Bash", "web_search"]),
        ({"tools": [TOOLSET, OWN, REGEX]}, ["tools[0].type", "tools[2].type"], ["Bash"]),
        ({"tools": [OWN], "container": "c1", "mcp_servers": SERVERS}, ["container", "mcp_servers"], ["Bash"]),
        ({"tools": [OWN], "container": None, "mcp_servers": []}, [], ["Bash"]),
    ],
)
def test_what_the_service_has_not_is_left_out(members: Any, paths: list[str], names: list[str] | None) -> None:
    request = {"model": "m", **members}
    kept, missing = without_missing(request, {"web_search"})
    assert [one.path for one in missing] == paths
    assert names is None or [tool["name"] for tool in kept["tools"]] == names
    assert (kept is request) == (not paths) and not set(paths) & kept.keys()


@rows(
    "members, path",
    [
        ({"tools": [OWN, FETCH]}, None),
        ({"tools": [OWN, FETCH], "tool_choice": {"type": "any"}}, None),
        ({"tools": [OWN, FETCH], "tool_choice": {"type": "tool", "name": "Bash"}}, None),
        ({"tools": [OWN, FETCH], "tool_choice": {"type": "tool", "name": "web_fetch"}}, "tools[1].type"),
        ({"tools": [REGEX, FETCH, OWN], "tool_choice": {"type": "tool", "name": "web_fetch"}}, "tools[1].type"),
        ({"tools": [OWN, FETCH], "tool_choice": {"type": "tool", "name": "other"}}, None),
        ({"tools": [OWN, TOOLSET], "tool_choice": {"type": "tool", "name": "search_docs"}}, "tools[1].type"),
        ({"tools": [TOOLSET, OWN], "tool_choice": {"type": "tool", "name": "Bash"}}, None),
        ({"tools": [OWN, FETCH], "tool_choice": {"type": "tool", "name": ["Bash"]}}, None),
        ({"tools": [TOOLSET, FETCH, OWN], "tool_choice": {"type": "tool", "name": "web_fetch"}}, "tools[1].type"),
        ({"tools": [{**OWN, "name": "web_fetch"}, FETCH], "tool_choice": {"type": "tool", "name": "web_fetch"}}, None),
        ({"tools": [FETCH]}, "tools[0].type"),
        ({"tools": [FETCH], "tool_choice": {"type": "any"}}, "tools[0].type"),
        ({"tools": [FETCH], "tool_choice": {"type": "auto"}}, "tools[0].type"),
        ({"tools": [FETCH], "tool_choice": {"type": "none"}}, None),
        ({"tools": [{"name": "DeferredToolPlaceholder"}, FETCH]}, "tools[1].type"),
        ({"tools": [{**OWN, "defer_loading": True}, REGEX]}, None),
        ({"mcp_servers": SERVERS}, "mcp_servers"),
        ({"mcp_servers": SERVERS, "tools": [TOOLSET]}, "tools[0].type"),
        ({"mcp_servers": SERVERS, "tools": [OWN]}, None),
        ({"container": "c1"}, None),
        ({"container": {"id": "c1"}}, None),
        ({"container": SKILLS}, "container"),
        ({"container": SKILLS, "tools": [OWN]}, None),
    ],
)
def test_without_what_a_request_makes_no_sense(members: Any, path: str | None) -> None:
    found = refusal(*without_missing(members, frozenset()), "p2")
    assert (found and found[0]) == path


@rows(
    "one, words",
    [
        (Missing("tools[0].type", "web_fetch_20250910", "web_fetch"), "web_fetch_20250910 runs on the server, and p2"),
        (Missing("tools[1].type", "advisor_20260301", "ask"), "ask (advisor_20260301) runs"),
        (Missing("tools[0].type", "web_search_20250305", "web_search"), "such as gpt-5.6-sol"),
        (Missing("mcp_servers", "mcp_servers"), "mcp_servers runs"),
        (Missing("tools[0].type", "x" * 9000, "y" * 9000), "(xxx"),
    ],
)
def test_a_refusal_says_what_and_who_and_what_to_do(one: Missing, words: str) -> None:
    path, told = refusal({}, [one], "p2") or ("", "")
    assert path == one.path and words in told and "p2" in told and len(told) < 1000


UPLOADED = {"type": "file", "file_id": "file_1"}


def said(*blocks: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "x"}, {"role": "user", "content": list(blocks)}]}


@rows(
    "request_, path",
    [
        (said({"type": "text", "text": "x"}, {"type": "image", "source": UPLOADED}), "messages[1].content[1]"),
        (said({"type": "document", "source": UPLOADED}), "messages[1].content[0]"),
        (said({"type": "container_upload", "file_id": "file_1"}), "messages[1].content[0]"),
        (said({"type": "tool_result", "content": [{"type": "image", "source": UPLOADED}]}), "messages[1].content[0]"),
        (said({"type": "tool_result", "content": "file"}, {"type": "tool_result"}), None),
        ({"fallbacks": [{"model": "claude-opus-4-8"}]}, "fallbacks"),
        ({"fallbacks": []}, None),
        (said({"type": "image", "source": {"type": "base64"}}, "x", None, {"source": "file"}), None),
        ({"messages": None}, None),
    ],
)
def test_what_nobody_can_do_is_refused(request_: dict[str, Any], path: str | None) -> None:
    found = refusal(request_, (), "p2")
    assert (found and found[0]) == path
    assert found is None or "p2" in found[1]


def test_an_uploaded_picture_may_become_a_note() -> None:
    shown = {"type": "image", "source": UPLOADED}
    for block in (shown, {"type": "tool_result", "content": [shown]}):
        assert refusal(said(block), (), "p3", uploads_noted=True) is None
    assert refusal(said({"type": "document", "source": UPLOADED}), (), "p3", uploads_noted=True) is not None
