"""The checks of a Responses body, in the order in which the simulated backend runs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from proxy.sandbox.p3.catalog import MODELS, P3Model, efforts_of, reader_of
from proxy.sandbox.p3.input_checks import INPUT
from proxy.sandbox.p3.refusals import argument
from proxy.sandbox.p3.tool_checks import CHOICE, TOOLS
from proxy.sandbox.wires.field_checks import (
    Each,
    Inside,
    Known,
    Table,
    by_type,
    check,
    demanded,
    fits,
    matches,
    members,
    one_of,
    optional,
    required,
    told,
)
from proxy.sandbox.wires.refusal import WRONG_TYPE, Refusal
from proxy.sandbox.wires.schema_checks import malformed

#: Everything else is refused: what came before, limits of the cache, users, stream options, stop words.
TOP_LEVEL = (
    "model instructions input tools tool_choice parallel_tool_calls reasoning store stream include prompt_cache_key "
    "temperature top_p max_output_tokens text metadata stream_tool_calls"
)

_INCLUDABLE = ("reasoning.encrypted_content", "web_search_call.action.sources", "no_inline_citations")


@dataclass(frozen=True, slots=True)
class GrokRules:
    """What the account and the model bear; to be asked once the model is known."""

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
        """Who encrypted reasoning must have been made for."""
        return reader_of(self.user_id, self.body["model"])

    @property
    def few_tools(self) -> bool:
        return not self.model.more_tools


def check_body(body: Any, user_id: str) -> GrokRules:
    """Raises Refused for the first row that the body breaks; else what it was checked by."""
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
        required("schema", told(malformed), argument("Invalid schema for {here}: {expected}")),
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
