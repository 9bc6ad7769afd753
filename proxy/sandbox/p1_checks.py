"""The checks of a Responses body, as one table in the order in which the simulated backend runs them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from proxy.sandbox.p1_catalog import EFFORTS, MODELS
from proxy.sandbox.p1_headers import LITE_MARKER, check_model_lane, is_vendor_client
from proxy.sandbox.p1_input_checks import check_input
from proxy.sandbox.p1_tool_checks import check_choice, check_tools, flat_tools
from proxy.sandbox.refusal import detail, invalid
from proxy.sandbox.schema_checks import malformed, strict_fault


@dataclass(frozen=True, slots=True)
class Seen:
    """What the checks look at."""

    headers: Mapping[str, str]
    body: dict[str, Any]
    lite: bool
    account_id: str


#: Every other top-level member is an "unsupported parameter": limits, sampling, storage, users, cache options.
TOP_LEVEL = frozenset(
    {
        "model",
        "instructions",
        "input",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "reasoning",
        "store",
        "stream",
        "include",
        "service_tier",
        "prompt_cache_key",
        "text",
        "client_metadata",
    }
)

INCLUDABLE = (
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
    "web_search_call.results",
    "message.output_text.logprobs",
    "message.input_image.image_url",
    "file_search_call.results",
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
)

_FORMAT_MEMBERS = {
    "text": frozenset({"type"}),
    "json_object": frozenset({"type"}),
    "json_schema": frozenset({"type", "name", "schema", "strict", "description"}),
}


def check_body(seen: Seen) -> None:
    """Raises Refused for the first rule of CHECKS that the body breaks."""
    for check in CHECKS:
        check(seen)


def offered_tools(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All tools of a request, flat: the top-level list, then those that travel in the input."""
    groups = [body.get("tools") or []]
    groups += [
        item.get("tools") or []
        for item in body.get("input") or ()
        if isinstance(item, dict) and item.get("type") == "additional_tools"
    ]
    return [tool for group in groups for tool in flat_tools(group)]


def _parameters(seen: Seen) -> None:
    for name in seen.body:
        if name not in TOP_LEVEL:
            raise detail(f"Unsupported parameter: {name}")


def _store(seen: Seen) -> None:
    if seen.body.get("store") is not False:
        raise detail("Store must be set to false")


def _stream(seen: Seen) -> None:
    if seen.body.get("stream") is not True:
        raise detail("Stream must be set to true")


def _model(seen: Seen) -> None:
    name = seen.body.get("model")
    if not isinstance(name, str) or name not in MODELS:
        raise detail(f"The '{name}' model is not supported when using Codex with a ChatGPT account.")
    model = MODELS[name]
    vendor_only = not model.full
    check_model_lane(name, exists=(seen.lite or model.full) and (not vendor_only or is_vendor_client(seen.headers)))
    if seen.lite and not model.lite:
        raise invalid(f"Model {name} does not support Responses Lite.", code="unsupported_value", param="model")


def _lite_lane(seen: Seen) -> None:
    """On the lite lane instructions and tools travel inside the input, and calls come one at a time."""
    if not seen.lite:
        return
    for name in ("instructions", "tools"):
        if seen.body.get(name):
            raise invalid(
                f"X-OpenAI-Internal-Codex-Responses-Lite does not support `{name}`.",
                code="unsupported_value",
                param=name,
            )
    if seen.body.get("parallel_tool_calls"):
        raise invalid(
            "X-OpenAI-Internal-Codex-Responses-Lite requires `parallel_tool_calls` to be false.",
            code="unsupported_value",
            param="parallel_tool_calls",
        )


def _metadata(seen: Seen) -> None:
    """Texts only, and the lite marker never without its header (the header may come without the marker)."""
    metadata = seen.body.get("client_metadata")
    if metadata is None:
        return
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise _wrong_type("client_metadata", "an object of strings")
    marker = metadata.get(LITE_MARKER)
    if marker is not None and (marker != "true" or not seen.lite):
        raise invalid(
            "client_metadata contradicts the X-OpenAI-Internal-Codex-Responses-Lite header.",
            code="invalid_value",
            param="client_metadata",
        )


def _plain_members(seen: Seen) -> None:
    """Members of one simple type; null counts as absent."""
    kinds: dict[str, tuple[type, str]] = {
        "instructions": (str, "a string"),
        "prompt_cache_key": (str, "a string"),
        "parallel_tool_calls": (bool, "a boolean"),
        "service_tier": (str, "a string"),
    }
    for name, (kind, words) in kinds.items():
        value = seen.body.get(name)
        if value is not None and not isinstance(value, kind):
            raise _wrong_type(name, words)


def _service_tier(seen: Seen) -> None:
    tier = seen.body.get("service_tier")
    if tier is not None and tier not in MODELS[seen.body["model"]].tiers:
        raise detail(f"Unsupported service_tier: {tier}")


def _include(seen: Seen) -> None:
    include = seen.body.get("include")
    if include is None:
        return
    if not isinstance(include, list):
        raise _wrong_type("include", "an array of strings")
    for one in include:
        _one_of(one, INCLUDABLE, "include")


def _reasoning(seen: Seen) -> None:
    reasoning = seen.body.get("reasoning")
    if reasoning is None:
        return
    if not isinstance(reasoning, dict):
        raise _wrong_type("reasoning", "an object")
    efforts = (*EFFORTS, "ultra") if MODELS[seen.body["model"]].ultra else EFFORTS
    choices = {
        "effort": efforts,
        "summary": ("auto", "concise", "detailed"),
        "context": ("auto", "current_turn", "all_turns"),
    }
    for name, value in reasoning.items():
        if name not in choices:
            raise _unknown(f"reasoning.{name}")
        if value is not None:
            _one_of(value, choices[name], f"reasoning.{name}")


def _text(seen: Seen) -> None:
    text = seen.body.get("text")
    if text is None:
        return
    if not isinstance(text, dict):
        raise _wrong_type("text", "an object")
    for name in text:
        if name not in ("verbosity", "format"):
            raise _unknown(f"text.{name}")
    if text.get("verbosity") is not None:
        _one_of(text["verbosity"], ("low", "medium", "high"), "text.verbosity")
    if text.get("format") is not None:
        _check_format(text["format"])


def _check_format(wanted: Any) -> None:
    if not isinstance(wanted, dict):
        raise _wrong_type("text.format", "an object")
    _one_of(wanted.get("type"), tuple(_FORMAT_MEMBERS), "text.format.type")
    for name in wanted:
        if name not in _FORMAT_MEMBERS[wanted["type"]]:
            raise _unknown(f"text.format.{name}")
    if wanted["type"] != "json_schema":
        return
    name = wanted.get("name")
    if not isinstance(name, str) or not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
        raise invalid("Missing or invalid 'text.format.name'.", code="invalid_value", param="text.format.name")
    if not isinstance(wanted.get("schema"), dict):
        raise _wrong_type("text.format.schema", "an object")
    if not isinstance(wanted.get("strict"), bool | None):
        raise _wrong_type("text.format.strict", "a boolean")
    fault = malformed(wanted["schema"]) or (strict_fault(wanted["schema"]) if wanted.get("strict") else None)
    if fault is not None:
        raise invalid(
            f"Invalid schema for response_format '{name}': {fault}",
            code="invalid_json_schema",
            param="text.format.schema",
        )


def _tools(seen: Seen) -> None:
    if seen.body.get("tools") is not None:
        check_tools(seen.body["tools"], lite=seen.lite)


def _input(seen: Seen) -> None:
    check_input(seen.body.get("input"), account_id=seen.account_id, lite=seen.lite)


def _tool_choice(seen: Seen) -> None:
    if seen.body.get("tool_choice") is not None:
        check_choice(seen.body["tool_choice"], offered_tools(seen.body))


def _one_of(value: Any, choices: tuple[str, ...], where: str) -> None:
    if value not in choices:
        known = ", ".join(f"'{one}'" for one in choices)
        raise invalid(f"Invalid value: '{value}'. Supported values are: {known}.", code="invalid_value", param=where)


def _wrong_type(where: str, expected: str) -> Exception:
    return invalid(f"Invalid type for '{where}': expected {expected}.", code="invalid_type", param=where)


def _unknown(where: str) -> Exception:
    return invalid(f"Unknown parameter: '{where}'.", code="unknown_parameter", param=where)


#: The gateway's own demands come first, then the lane, then what the model service looks at.
CHECKS: tuple[Callable[[Seen], None], ...] = (
    _parameters,
    _store,
    _stream,
    _model,
    _lite_lane,
    _metadata,
    _plain_members,
    _service_tier,
    _include,
    _reasoning,
    _text,
    _tools,
    _input,
    _tool_choice,
)
