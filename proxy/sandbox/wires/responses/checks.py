"""The checks of a Responses body that do not depend on whose backend it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from proxy.sandbox.wires.field_checks import (
    Each,
    Inside,
    Known,
    Table,
    by_type,
    demanded,
    fits,
    matches,
    members,
    one_of,
    optional,
    required,
    told,
)
from proxy.sandbox.wires.refusal import NOT_ONE_OF, WRONG_TYPE, Refusal
from proxy.sandbox.wires.responses.input_checks import INPUT
from proxy.sandbox.wires.responses.tool_checks import CHOICE, TOO_LONG, TOOLS, too_long
from proxy.sandbox.wires.schema_checks import malformed, strict_fault


@dataclass(frozen=True, slots=True)
class ResponsesRules:
    """What a backend demands beside the tables: the efforts of the model, whose encrypted content, the lane, and
    whether it is the one behind Codex, which knows what that client adds to items."""

    efforts: tuple[str, ...]
    account_id: str
    lite: bool = False
    codex: bool = False


_INCLUDABLE = (
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
    "web_search_call.results",
    "message.output_text.logprobs",
    "message.input_image.image_url",
    "file_search_call.results",
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
)
_BAD_NAME = Refusal("Missing or invalid '{where}'.", "invalid_value")
_BAD_SCHEMA = Refusal(
    "Invalid schema for response_format '{item[name]}': {expected}", "invalid_json_schema", "{here}.schema"
)


def _words(path: str, *words: str) -> Table:
    return (optional(path, one_of(*words, last=", "), NOT_ONE_OF),)


def _schema_fault(wanted: Any) -> str | None:
    return malformed(wanted["schema"]) or (strict_fault(wanted["schema"]) if wanted.get("strict") else None)


_FORMATS: dict[str, Table] = {
    "text": (Known("type"),),
    "json_object": (Known("type"),),
    "json_schema": (
        Known("type name schema strict description"),
        required("name", matches(r"[a-zA-Z0-9_-]{1,64}"), _BAD_NAME),
        required("schema", "object", WRONG_TYPE),
        optional("strict", "boolean", WRONG_TYPE),
        required("", told(_schema_fault), _BAD_SCHEMA),
    ),
}

_REASONING = Known(
    {
        "effort": (optional("effort", demanded("efforts", "'{}'", "', '"), NOT_ONE_OF),),
        "summary": _words("summary", "auto", "concise", "detailed"),
        "context": _words("context", "auto", "current_turn", "all_turns"),
    }
)

_TEXT: Table = (
    Known("verbosity format"),
    *_words("verbosity", "low", "medium", "high"),
    optional("format", "object", WRONG_TYPE),
    Inside("format", by_type(_FORMATS, NOT_ONE_OF, one_of(*_FORMATS, last=", "))),
)

PLAIN_MEMBERS: Table = (
    *members("instructions: text, prompt_cache_key: text, parallel_tool_calls: boolean, service_tier: text"),
    optional("prompt_cache_key", told(too_long), TOO_LONG),
)

#: What comes after the plain members. To be checked with `ResponsesRules`, or what has the same.
REST: Table = (
    optional("include", fits(lambda value: isinstance(value, list), "an array of strings"), WRONG_TYPE),
    Each("include", (required("", one_of(*_INCLUDABLE, last=", "), NOT_ONE_OF.about("include")),)),
    optional("reasoning", "object", WRONG_TYPE),
    Inside("reasoning", (_REASONING,)),
    optional("text", "object", WRONG_TYPE),
    Inside("text", _TEXT),
    *TOOLS,
    *INPUT,
    *CHOICE,
)
