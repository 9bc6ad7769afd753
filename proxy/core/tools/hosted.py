"""Handles parts of a Messages request that only a service can run. If the model's service cannot, they are left out and
named to the caller; a request that needs them is refused."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proxy.core.content import messages_of
from proxy.core.invalid import cut
from proxy.core.tools.anthropic_tools import is_known
from proxy.core.tools.calls import PLACEHOLDER

#: Types of tools with a schema of their own.
_PLAIN = frozenset({"", "custom", "function"})
_DATE = re.compile(r"_[0-9]{8}\Z")
#: The search of the web, as a kind of a hosted tool and as its usual name.
WEB_SEARCH = "web_search"
#: A model whose service searches by itself.
SEARCHING_MODEL = "gpt-5.6-sol"


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that a request asks the service to run, and that the service lacks.

    path  its place in the request: `tools[3].type`, `container`
    kind  its type as the caller wrote it
    name  the name by which it can be forced, None if it has none
    mere  whether it means nothing alone: a container in which nothing runs
    """

    path: str
    kind: str
    name: str | None = None
    mere: bool = False


def hosted_kind(tool: Any) -> str | None:
    """The kind of a tool that runs at the service, without its date; None for a tool that the client runs.

    >>> hosted_kind({"type": "web_fetch_20250910"}), hosted_kind({"type": "bash_20250124"}), hosted_kind({"name": "x"})
    ('web_fetch', None, None)
    """
    kind = tool.get("type") if isinstance(tool, dict) else None
    if not isinstance(kind, str) or kind in _PLAIN or tool.get("input_schema") is not None or is_known(kind):
        return None
    return _DATE.sub("", kind)


#: The version of the hosted search for a client that names none.
_DATED = {"type": "web_search_20250305"}


def dated(request: dict[str, Any]) -> dict[str, Any]:
    """The request with a version and a name added to hosted searches without; `request` itself if there are none.

    >>> dated({"tools": [{"type": "web_search", "max_uses": 3}]})
    {'tools': [{'name': 'web_search', 'type': 'web_search_20250305', 'max_uses': 3}]}
    """
    tools = request.get("tools")
    if not isinstance(tools, list) or not any(map(_is_undated, tools)):
        return request
    return {**request, "tools": [{"name": WEB_SEARCH} | tool | _DATED if _is_undated(tool) else tool for tool in tools]}


def _is_undated(tool: Any) -> bool:
    return isinstance(tool, dict) and tool.get("type") == WEB_SEARCH and tool.get("input_schema") is None


def without_missing(
    request: Mapping[str, Any], served: Collection[str]
) -> tuple[Mapping[str, Any], tuple[Missing, ...]]:
    """The request without what the service lacks, and what that was; `request` itself if nothing is missing.

    served  kinds of tools that the service has, such as `web_search`
    """
    given = request.get("tools")
    if not given and _MEMBERS.isdisjoint(request):
        return request, ()
    tools = given if isinstance(given, list) else []
    possible = {None, *served}
    lacking = {index for index, tool in enumerate(tools) if hosted_kind(tool) not in possible}
    missing = *(_tool(tools[index], index) for index in sorted(lacking)), *_members(request)
    if not missing:
        return request, ()
    kept: dict[str, Any] = {name: value for name, value in request.items() if name not in _MEMBERS}
    if lacking:
        kept["tools"] = [tool for index, tool in enumerate(tools) if index not in lacking]
    return kept, missing


def _tool(tool: Mapping[str, Any], index: int) -> Missing:
    name = tool.get("name")
    return Missing(f"tools[{index}].type", tool["type"], name if isinstance(name, str) else None)


#: Members other than `tools` that add tools of the service.
_MEMBERS = frozenset({"container", "mcp_servers"})


def _members(request: Mapping[str, Any]) -> Iterator[Missing]:
    for name in sorted(_MEMBERS):
        value = request.get(name)
        if value:
            skills = value.get("skills") if isinstance(value, Mapping) else None
            yield Missing(name, name, mere=name == "container" and not skills)


def refusal(
    kept: Mapping[str, Any], missing: Sequence[Missing], label: str, *, uploads_noted: bool = False
) -> tuple[str, str] | None:
    """Why a request cannot be served: the path of what would silently not happen, and what to do; None if it can.

    kept   the request without what is missing
    label  the provider
    uploads_noted  whether uploaded pictures become notes
    """
    one = _needed(kept, missing) if missing else None
    return (one.path, _words(one, label)) if one is not None else _impossible(kept, label, noted=uploads_noted)


def _needed(kept: Mapping[str, Any], missing: Sequence[Missing]) -> Missing | None:
    """The one of these without which the request makes no sense: one that it forces, by its name or by that of a tool
    that it adds, or the first if no tool is left and the tool choice is not `none`."""
    choice = kept.get("tool_choice")
    word, forced = (choice.get("type"), choice.get("name")) if isinstance(choice, Mapping) else (choice, None)
    names = _names(kept)
    forced = forced if isinstance(forced, str) else None
    if word == "none" or (word == "tool" and forced in names):
        return None
    able = [one for one in missing if not one.mere]
    brings = [one for name in (forced, None) for one in able if word == "tool" and one.name == name]
    wanted = brings or ([] if names else able)
    return wanted[0] if wanted else None


def _impossible(request: Mapping[str, Any], label: str, *, noted: bool) -> tuple[str, str] | None:
    """The path of, and advice for, what no provider here can do: uploaded files, and fallbacks to other models."""
    if request.get("fallbacks"):
        return "fallbacks", f"{label} falls back to no other model. Leave it out, and ask another model yourself."
    for place, message in enumerate(messages_of(request)):
        content = message.get("content")
        if not isinstance(content, list):
            continue
        for index, block in enumerate(content):
            if isinstance(block, dict) and block.get("type") in _WITH_FILES and _is_uploaded(block, noted):
                return f"messages[{place}].content[{index}]", f"{label} has {_UPLOADED}"
    return None


#: Blocks that may be a file, or hold one: a conversation has many others.
_WITH_FILES = ("tool_result", "image", "document", "container_upload")
_UPLOADED = "no uploaded files. Send what is in it: an image or document with a source of type base64."


def _is_uploaded(block: Any, noted: bool) -> bool:
    if not isinstance(block, dict):
        return False
    kind, source = block.get("type"), block.get("source")
    if kind == "tool_result" and isinstance(block.get("content"), list):
        return any(_is_uploaded(part, noted) for part in block["content"])
    if kind == "image" and noted:
        return False
    return kind == "container_upload" or (isinstance(source, dict) and source.get("type") == "file")


def _names(request: Mapping[str, Any]) -> set[str]:
    """The names of the tools that can be called."""
    tools = request.get("tools")
    names = [tool.get("name") for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    return {name for name in names if isinstance(name, str) and name not in ("", PLACEHOLDER)}


def _words(one: Missing, label: str) -> str:
    named = one.name is None or one.kind.startswith(one.name)
    called = cut(one.kind) if named else f"{cut(str(one.name))} ({cut(one.kind)})"
    cure = "Leave it out, or declare a tool of your own that the client runs."
    if one.kind.startswith(WEB_SEARCH):
        cure = (
            "To have the proxy search, sign in to a provider that can (p1, p2 or p3), with PROXY_SEARCH on; or use a"
            f" model whose service searches, such as {SEARCHING_MODEL}, or a search tool of your own."
        )
    return f"{called} runs on the server, and {label} has no such tool for this model. {cure}"
