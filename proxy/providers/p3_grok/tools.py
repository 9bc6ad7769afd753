"""The tools of a request for P3: the client's functions, P3's own search, and which the model must use. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from proxy.core.convert.history.responses_dialect import Item
from proxy.core.invalid import InvalidRequest, shown
from proxy.core.tools.calls import (
    CHOICES,
    PLACEHOLDER,
    function_of,
    is_web_search,
    offered_tools,
)
from proxy.core.tools.function_schema import without_additions
from proxy.core.tools.step_budget import Steps, ToolSteps, ToolWalk
from proxy.providers.p3_grok.search import WEB, WEB_GUIDANCE, X_GUIDANCE, X, search_asked, search_item

#: Client functions that the hosted search replaces, if enabled.
_REPLACED = {"WebSearch": WEB, "XSearch": X}


@dataclass(frozen=True, slots=True)
class Offer:
    """Tools in the upstream's form.

    tools       in the order of the request
    choice      `tool_choice` and `parallel_tool_calls`, if they are sent
    paragraphs  text about them for the instructions
    """

    tools: list[Item]
    choice: dict[str, Any]
    paragraphs: list[str]


NO_OFFER = Offer([], {}, [])


def offer(request: Mapping[str, Any], steps: ToolSteps, *, hosted: bool, constraints: str, notes: list[str]) -> Offer:
    """The tools of a request. Raises InvalidRequest.

    hosted       whether P3's own search replaces the client's search tools
    constraints  how to treat search options that cannot be sent
    notes        receives what was left out
    """
    tool_set = _ToolSet(_declared(request), steps, hosted=hosted, constraints=constraints, notes=notes)
    asked = search_asked(request.get("messages") or [])
    paragraphs = [" ".join(tool_set.sentences)] if tool_set.sentences else []
    if hosted and WEB in tool_set.searches:
        paragraphs.append(WEB_GUIDANCE)
    if asked == X or hosted:
        tool_set.add_x_search()
    forced = tool_set.searches.get(asked) if hosted and asked else None
    if forced is not None:
        paragraphs += [X_GUIDANCE] if asked == X else []
        return Offer([forced], {"tool_choice": "required", **_parallel(request, strict=False)}, paragraphs)
    tools, choice = tool_set.chosen(request.get("tool_choice"))
    if tools:
        choice |= _parallel(request)
    return Offer(tools, choice, paragraphs)


def _declared(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tools of a request, functions and hosted searches. Raises InvalidRequest."""
    given = request.get("tools")
    if given is None:
        return []
    if not isinstance(given, list):
        raise InvalidRequest("`tools` must be a list", param="tools")
    _check_names(given)
    return offered_tools(request)


def _check_names(tools: list[Any]) -> None:
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        name = tool.get("name") if isinstance(tool, Mapping) else None
        if not isinstance(name, str) or not name:
            raise InvalidRequest(f"`tools[{index}]` needs a `name`", param=f"tools[{index}].name")
        if name in seen and name != PLACEHOLDER:
            raise InvalidRequest(f"`tools` has the name {shown(name)} twice", param=f"tools[{index}].name")
        seen.add(name)


def _search_of(tool: Mapping[str, Any]) -> str | None:
    """The hosted search that an entry declares."""
    if is_web_search(tool):
        return WEB
    kind = tool.get("type")
    return X if isinstance(kind, str) and kind.startswith(X) else None


def _function(tool: Mapping[str, Any], steps: Steps) -> Item:
    function = function_of(tool, steps)
    if function["parameters"] is not tool.get("input_schema"):
        function["parameters"] = without_additions(function["parameters"])
    return {"type": "function", **function}


_written = ToolWalk(_function)


@dataclass
class _ToolSet:
    """The tools of one request.

    tools      what is sent
    searches   the hosted ones among them
    names      the caller's name -> what is sent for it
    sentences  search options in words, for the instructions
    """

    declared: list[dict[str, Any]]
    steps: ToolSteps
    hosted: bool
    constraints: str
    notes: list[str]
    tools: list[Item] = field(default_factory=list)
    searches: dict[str, Item] = field(default_factory=dict)
    names: dict[str, Item] = field(default_factory=dict)
    sentences: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._functions = {tool["name"] for tool in self.declared if _search_of(tool) is None}
        for tool in self.declared:
            search = self._search_for(tool)
            if search is None:
                self._add(tool["name"], _written(tool, self.steps))
            elif search not in self._functions:
                self._add_search(tool, search)
            else:  # the upstream refuses two tools of one name
                self.notes.append(f"hosted {search} left out: a function has its name")

    def _search_for(self, tool: Mapping[str, Any]) -> str | None:
        replaced = _REPLACED.get(tool["name"]) if self.hosted else None
        return _search_of(tool) or (None if replaced in self._functions else replaced)

    def _add(self, name: str, item: Item) -> None:
        self.tools.append(item)
        self.names[name] = item

    def _add_search(self, tool: Mapping[str, Any], search: str) -> None:
        item: Item = {"type": search}
        if is_web_search(tool):
            item, sentences = search_item(tool, self.constraints, self.notes)
            self.sentences += sentences
        if search in self.searches:
            self.searches[search].update(item)
            self.names[tool["name"]] = self.searches[search]
        else:
            self._add(tool["name"], item)
            self.searches[search] = item

    def add_x_search(self) -> None:
        if X not in self.searches and X not in self._functions:
            self.searches[X] = {"type": X}
            self.tools.append(self.searches[X])

    def chosen(self, choice: Any) -> tuple[list[Item], dict[str, Any]]:
        """The remaining tools, and `tool_choice` if it is sent. Raises InvalidRequest."""
        if choice is None:
            return self.tools, {}
        kind = choice.get("type") if isinstance(choice, Mapping) else choice
        if kind == "tool" and isinstance(choice, Mapping):
            return self._named(choice.get("name"))
        word = CHOICES.get(kind) if isinstance(kind, str) else None
        if word is None:
            raise InvalidRequest("`tool_choice` must be an object of type auto, any, none or tool", param="tool_choice")
        if word == "required" and not self.tools:
            raise InvalidRequest("`tool_choice` requires at least one tool", param="tool_choice")
        return self.tools, {"tool_choice": word} if self.tools else {}

    def _named(self, name: Any) -> tuple[list[Item], dict[str, Any]]:
        if not isinstance(name, str) or not name:
            raise InvalidRequest("`tool_choice` of type tool needs a `name`", param="tool_choice.name")
        item = self.names.get(name)
        if item is None:
            raise InvalidRequest(
                f"`tool_choice` names {shown(name)}, which is not in `tools`", param="tool_choice.name"
            )
        if item["type"] == "function":
            return self.tools, {"tool_choice": {"type": "function", "name": item["name"]}}
        return [item], {"tool_choice": "required"}


def _parallel(request: Mapping[str, Any], *, strict: bool = True) -> dict[str, Any]:
    choice = request.get("tool_choice")
    disabled = choice.get("disable_parallel_tool_use") if isinstance(choice, Mapping) else None
    if disabled is None:
        return {}
    if isinstance(disabled, bool):
        return {"parallel_tool_calls": not disabled}
    if strict:
        raise InvalidRequest("`disable_parallel_tool_use` must be true or false", param="tool_choice")
    return {}
