"""Removes what the backend would refuse from a native Responses body, in lenient mode: unknown members, and forms that
it accepts only in another way. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from proxy.core.convert.openai_fields import is_no_stream_option
from proxy.core.convert.openai_mode import Fits, Mode, unknown_reference
from proxy.core.effort import EFFORTS, effort_asked
from proxy.core.ingress import IngressRules
from proxy.core.invalid import InvalidRequest
from proxy.providers.p1_codex.catalog import TIERS

Members = Mapping[str, Any]

#: The only members that the backend accepts.
_FIELDS = frozenset(
    {
        *("model", "instructions", "input", "tools", "tool_choice", "parallel_tool_calls", "reasoning", "store"),
        *("stream", "include", "service_tier", "prompt_cache_key", "text", "client_metadata"),
    }
)
_HINTS: Mapping[str, Fits] = {"stream_options": is_no_stream_option}
_REASONING = frozenset({"effort", "summary", "context"})
_SUMMARIES = ("auto", "concise", "detailed")
_TEXT = frozenset({"verbosity", "format"})
_VERBOSITIES = ("low", "medium", "high")
_COMMON = frozenset({"type", "id", "status", "internal_chat_message_metadata_passthrough"})
#: Type of an item -> its allowed members, and the prefix of its id. Other items are not checked.
_ITEMS: Mapping[str, tuple[frozenset[str], str]] = {
    "message": (_COMMON | {"role", "content", "phase"}, "msg"),
    "reasoning": (_COMMON | {"summary", "content", "encrypted_content"}, "rs"),
    "function_call": (_COMMON | {"call_id", "name", "arguments", "namespace"}, "fc"),
    "custom_tool_call": (_COMMON | {"call_id", "name", "input", "namespace"}, "ctc"),
    "function_call_output": (_COMMON | {"call_id", "output"}, ""),
    "custom_tool_call_output": (_COMMON | {"call_id", "output"}, ""),
}
_PARTS: Mapping[str, frozenset[str]] = {
    "input_text": frozenset({"type", "text"}),
    "input_image": frozenset({"type", "image_url", "file_id", "detail"}),
    "input_file": frozenset({"type", "file_id", "file_data", "file_url", "filename"}),
    "output_text": frozenset({"type", "text", "annotations", "logprobs"}),
    "refusal": frozenset({"type", "refusal"}),
}
_TEXTS = ("text", "input_text", "output_text")
#: Members that the SDK's parsed objects add to the answer; they request nothing.
_PARSED = frozenset({"parsed", "parsed_arguments", "caller", "async"})


def lenient_body(body: Members) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The body in the form that the backend accepts, and the paths of removed members that requested something.

    Wrong types stay, for the backend to refuse. Raises InvalidRequest for what would change the kind of the answer."""
    mode = Mode(IngressRules(), lenient=True)
    mode.check_fields(body, _FIELDS, _HINTS)
    result = {name: value for name, value in body.items() if name in _FIELDS and value is not None}
    for name, mend in _MENDED.items():
        if name in result:
            result[name] = mend(mode, result[name])
    return {name: value for name, value in result.items() if value is not None}, tuple(mode.ignored)


def takes_out(body: Members, path: str) -> bool:
    """Whether lenient mode would send this body, and without this member."""
    try:
        kept, ignored = lenient_body(body)
    except InvalidRequest:
        return False
    return path in ignored or (path in body and path not in kept)


def _tier(mode: Mode, tier: Any) -> Any:
    if not isinstance(tier, str) or tier in ("auto", "default"):
        return None
    if tier not in TIERS:
        mode.note("service_tier")
    return TIERS.get(tier)


def _metadata(mode: Mode, metadata: Any) -> Any:
    if isinstance(metadata, dict) and all(isinstance(value, str) for value in metadata.values()):
        return metadata
    mode.note("client_metadata")
    return None


def _reasoning(mode: Mode, reasoning: Any) -> Any:
    if not isinstance(reasoning, dict):
        return reasoning
    wanted = {name: value for name, value in reasoning.items() if value is not None}
    summary = wanted.pop("generate_summary", None)
    if summary is not None:
        wanted.setdefault("summary", summary)
    if wanted.get("summary") == "none":
        del wanted["summary"]
    elif "summary" in wanted and wanted["summary"] not in _SUMMARIES:
        mode.note("reasoning.summary")
        del wanted["summary"]
    effort = wanted.get("effort")
    if isinstance(effort, str) and effort not in ("none", *EFFORTS):
        wanted["effort"] = effort_asked({"output_config": {"effort": effort}})
        if wanted["effort"] is None:
            mode.note("reasoning.effort")
    mode.check_keys(wanted, _REASONING, "reasoning")
    return {name: value for name, value in wanted.items() if name in _REASONING and value is not None}


def _text(mode: Mode, text: Any) -> Any:
    if not isinstance(text, dict):
        return text
    mode.check_keys(text, _TEXT, "text")
    wanted = {name: value for name, value in text.items() if name in _TEXT and value is not None}
    if "verbosity" in wanted and wanted["verbosity"] not in _VERBOSITIES:
        mode.note("text.verbosity")
        del wanted["verbosity"]
    return wanted


# -- input


def _input(mode: Mode, given: Any) -> Any:
    if not isinstance(given, list):
        return given
    items: list[Any] = []
    ids: set[str] = set()
    for index, item in enumerate(given):
        if not isinstance(item, dict):
            items.append(item)
        elif item.get("type") != "item_reference":
            items.append(_item(mode, item, f"input[{index}]"))
            ids.update([item["id"]] if isinstance(item.get("id"), str) else ())
        elif item.get("id") not in ids:
            raise unknown_reference(f"input[{index}].type", item.get("id"))
    return items


def _item(mode: Mode, item: dict[str, Any], path: str) -> dict[str, Any]:
    kind = item.get("type", "message" if "role" in item else None)
    row = _ITEMS.get(kind) if isinstance(kind, str) else None
    if row is None:
        return item
    known, prefix = row
    mode.check_keys(item, known | _PARSED, path)
    result = {name: value for name, value in item.items() if name in known and value is not None}
    if not str(result.get("id", prefix)).startswith(prefix):  # an id of another service, which means nothing here
        del result["id"]
    if kind == "message":
        role = "developer" if item.get("role") == "system" else item.get("role")
        result["role"] = role
        result["content"] = _content(mode, item.get("content"), f"{path}.content", _own_text(role))
    elif kind in ("function_call_output", "custom_tool_call_output"):
        result["output"] = _content(mode, item.get("output"), f"{path}.output", "input_text")
    return result


def _own_text(role: Any) -> str:
    return "output_text" if role == "assistant" else "input_text"


def _content(mode: Mode, content: Any, path: str, text: str) -> Any:
    if not isinstance(content, list):
        return content
    parts: list[Any] = []
    for index, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(kind, str) or kind not in (*_PARTS, *_TEXTS):
            parts.append(part)
            continue
        kind = text if kind in _TEXTS else kind
        mode.check_keys(part, _PARTS[kind] | _PARTED, f"{path}[{index}]")
        parts.append({name: value for name, value in part.items() if name in _PARTS[kind] and value is not None})
        parts[-1]["type"] = kind
    return parts


#: Members of a text in an answer, which may come back as a text of another role.
_PARTED = _PARSED | _PARTS["output_text"]

_MENDED: Mapping[str, Callable[[Mode, Any], Any]] = {
    "service_tier": _tier,
    "client_metadata": _metadata,
    "reasoning": _reasoning,
    "text": _text,
    "input": _input,
}
