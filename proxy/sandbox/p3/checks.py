"""The checks of a Responses body in P3's order: tools and choices, input, the rest.

Functions and hosted tools are in one list, none under the name of another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proxy.sandbox.p3.catalog import MODELS, P3Model, efforts_of, reader_of
from proxy.sandbox.p3.input_checks import INPUT
from proxy.sandbox.p3.refusals import argument
from proxy.sandbox.wires.field_checks import (
    Checked,
    Each,
    Inside,
    Known,
    Table,
    by_type,
    check,
    demanded,
    fits,
    is_filled,
    judged,
    look,
    matches,
    members,
    one_of,
    optional,
    required,
)
from proxy.sandbox.wires.refusal import WRONG_TYPE, Refusal
from proxy.sandbox.wires.responses.tool_checks import NAME
from proxy.sandbox.wires.schema_checks import malformed

#: Most domains, or handles, of one list.
MOST_LISTED = 5

_UNSUPPORTED = argument("Unsupported tool type: {value}")
_NOT_HERE = argument("Tool type not supported by this model: {value}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def _schema_fault(tool: Any) -> str | None:
    schema = tool.get("parameters")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return "function parameters must be a schema of type object."
    if not all(_is_object(branch, schema) for word in ("anyOf", "oneOf") for branch in _branches(schema, word)):
        return "each branch of a union at the root must be of type object."
    return malformed(schema)


def _branches(schema: Mapping[str, Any], word: str) -> list[Any]:
    found = schema.get(word)
    return found if isinstance(found, list) else []


def _is_object(branch: Any, root: Mapping[str, Any]) -> bool:
    """Whether a branch, or its reference, declares itself an object."""
    if isinstance(branch, dict) and isinstance(branch.get("$ref"), str):
        branch = look(root, branch["$ref"].removeprefix("#/").replace("/", "."))
    return isinstance(branch, dict) and branch.get("type") == "object"


def _is_short_list(value: Any) -> bool:
    return isinstance(value, list) and 1 <= len(value) <= MOST_LISTED and all(map(is_filled, value))


_LISTED = fits(_is_short_list, f"1 to {MOST_LISTED} texts")


def _lists(*names: str) -> Table:
    """Lists of which only one may be set."""
    words = f"Only one of {' and '.join(names)} can be set."
    both = fits(lambda item: not all(item.get(name) for name in names))
    lists = (optional(name, _LISTED, argument("Invalid {where}: expected {expected}.")) for name in names)
    return (required("", both, argument(words)), *lists)


_FILTERS = ("allowed_domains", "excluded_domains")
_HANDLES = ("allowed_x_handles", "excluded_x_handles")
_IS_DATE = fits(lambda value: isinstance(value, str) and _DATE.fullmatch(value), "a date as YYYY-MM-DD")
_PLACE = "city country region timezone"

#: Tool type -> its checks; a type without any is not inspected.
_TOOLS: dict[str, Table] = {
    "function": (
        Known("type name description parameters strict"),
        *NAME,
        *members("description: text, strict: boolean"),
        required("", judged(_schema_fault), argument("Invalid schema for function '{item[name]}': {expected}")),
    ),
    "web_search": (
        Known("type filters user_location enable_image_understanding search_context_size"),
        *members("filters: object, user_location: object, enable_image_understanding: boolean"),
        Inside("filters", (Known(" ".join(_FILTERS)), *_lists(*_FILTERS))),
        Inside(
            "user_location",
            (
                Known(f"type {_PLACE}"),
                required("type", one_of("approximate"), argument("Invalid {where}.")),
                *members(", ".join(f"{name}: filled" for name in _PLACE.split())),
            ),
        ),
    ),
    "x_search": (
        Known(f"type from_date to_date enable_image_understanding enable_video_understanding {' '.join(_HANDLES)}"),
        *_lists(*_HANDLES),
        optional("from_date", _IS_DATE, WRONG_TYPE),
        optional("to_date", _IS_DATE, WRONG_TYPE),
    ),
    "code_interpreter": (),
    "image_generation": (),
}
_MORE = ("code_interpreter", "image_generation")


def _offered(tool: Any) -> str:
    """The model's name for a tool."""
    return str(tool.get("name", tool["type"]))


def _no_twins(body: Any, _where: str, _seen: Checked) -> None:
    names: set[str] = set()
    for tool in body.get("tools") or ():
        name = _offered(tool)
        if name in names:
            raise argument("Duplicate tool name: {value}").fill("tools", value=name)
        names.add(name)


def _missing(wanted: Any, seen: Checked) -> str | None:
    """A choice of a tool that is not offered."""
    kind, name = look(wanted, "type"), look(wanted, "name")
    tools = seen.body["tools"]
    return None if any(tool["type"] == kind and tool.get("name") == name for tool in tools) else ""


_IS_TOOL: Table = (
    required("", "object", WRONG_TYPE),
    required("", _missing, argument("Invalid tool_choice: {value} is not among the tools.")),
)

_CHOICES: dict[str, Table] = {
    "function": (Known("type name"), *_IS_TOOL),
    "allowed_tools": (
        Known("type mode tools"),
        required("mode", one_of("auto", "required"), argument("Invalid {where}.")),
        required("tools", "filled list", WRONG_TYPE),
        Each("tools", _IS_TOOL),
    ),
}
_NO_CHOICE = argument("Invalid tool_choice: {value}")
_ALONE = argument("A {where} was set on the request but no tools were specified.")
_WITHOUT_TOOLS = {
    name: (lambda body, name=name: None if body.get("tools") or body.get(name) is None else name)
    for name in ("tool_choice", "parallel_tool_calls")
}

TOOLS: Table = (
    optional("tools", "list", WRONG_TYPE),
    Each(
        "tools",
        (
            required("", "object", WRONG_TYPE),
            *by_type(_TOOLS, _UNSUPPORTED),
            required("type", fits(lambda kind: kind not in _MORE), _NOT_HERE, when="few_tools"),
        ),
    ),
    _no_twins,
    *(required("", judged(fault), _ALONE, at=name) for name, fault in _WITHOUT_TOOLS.items()),
)

CHOICE: Table = (
    optional("tool_choice", fits(lambda choice: isinstance(choice, str | dict)), _NO_CHOICE),
    Inside("tool_choice", (required("", one_of("auto", "none", "required"), _NO_CHOICE),), str),
    Inside("tool_choice", by_type(_CHOICES, _NO_CHOICE), dict),
)


#: Anything else is refused: previous responses, cache limits, users, stream options, stop words.
TOP_LEVEL = (
    "model instructions input tools tool_choice parallel_tool_calls reasoning store stream include prompt_cache_key "
    "temperature top_p max_output_tokens text metadata stream_tool_calls"
)

_INCLUDABLE = ("reasoning.encrypted_content", "web_search_call.action.sources", "no_inline_citations")


@dataclass(frozen=True, slots=True)
class GrokRules:
    """The limits of the account and the model; used once the model is known."""

    body: Any
    user_id: str

    @property
    def model(self) -> P3Model:
        return MODELS[self.body["model"]]

    @property
    def efforts(self) -> tuple[str, ...]:
        return efforts_of(self.model)

    @property
    def reader(self) -> str:
        """The required reader of encrypted reasoning."""
        return reader_of(self.user_id, self.body["model"])

    @property
    def few_tools(self) -> bool:
        return not self.model.more_tools


def check_body(body: Any, user_id: str) -> GrokRules:
    """Checks a body; returns the rules it was checked by. Raises Refused for the first row that it violates."""
    rules = GrokRules(body, user_id)
    check(body, BODY, rules)
    return rules


_NO_MODEL = argument("The model {value} does not exist or your team does not have access to it.")
_NO_STREAM = argument("Only streaming requests are supported: stream must be true.")
_BAD_EFFORT = argument("Invalid reasoning effort: {value}. Supported values: {expected}.")
_NOT_SUPPORTED = Refusal("Argument not supported: {value}", "unknown_parameter")

_FORMATS: dict[str, Table] = {
    "text": (Known("type"),),
    "json_object": (Known("type"),),
    "json_schema": (
        Known("type name schema strict description"),
        required("name", matches(r"[a-zA-Z0-9_-]{1,64}")),
        required("schema", "object"),
        *members("strict: boolean"),
        required("schema", judged(malformed), argument("Invalid schema for {here}: {expected}")),
    ),
}

BODY: Table = (
    Known(TOP_LEVEL, _NOT_SUPPORTED),
    required("model", "text"),
    required("model", one_of(*MODELS), _NO_MODEL),
    required("stream", fits(lambda value: value is True), _NO_STREAM),
    *members(
        "instructions: text, store: boolean, prompt_cache_key: text, metadata: object, stream_tool_calls: boolean"
    ),
    *members("temperature: number, top_p: number, max_output_tokens: positive, parallel_tool_calls: boolean"),
    optional("include", "list", WRONG_TYPE),
    Each("include", (required("", one_of(*_INCLUDABLE), argument("Invalid {where}: {value}")),)),
    optional("reasoning", "object", WRONG_TYPE),
    Inside(
        "reasoning",
        (
            Known("effort summary"),
            optional("effort", demanded("efforts"), _BAD_EFFORT),
            optional("summary", one_of("auto", "concise", "detailed"), argument("Invalid {where}: {value}")),
        ),
    ),
    optional("text", "object", WRONG_TYPE),
    Inside(
        "text",
        (
            Known("format"),
            optional("format", "object", WRONG_TYPE),
            Inside("format", by_type(_FORMATS, argument("Invalid {where}: {value}"))),
        ),
    ),
    *TOOLS,
    *INPUT,
    *CHOICE,
)
