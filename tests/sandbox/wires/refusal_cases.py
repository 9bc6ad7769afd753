"""Bodies and headers for the simulators: what is refused, with its words, and what is accepted.

The rows of the tables of checks are all broken by `broken_rows`; here stands one case of each kind of refusal, so that
the tables are not their own judge, and whatever depends on a model, a lane, a pair, a schema or encrypted content.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import p1_sandbox_client as p1
import p2_sandbox_client as p2
import p4_sandbox_client as p4
from p1_sandbox_client import LITE, MARKER, full, lite
from p2_sandbox_client import chat
from p4_sandbox_client import go_chat, go_messages, go_responses

from proxy.sandbox.wires.encrypted_content import encrypt


class Case(NamedTuple):
    """`words` are in the answer. A `status` of 200 and no words: accepted."""

    wire: str
    name: str
    body: dict[str, Any]
    words: str = ""
    status: int = 400


class HeaderCase(NamedTuple):
    """What another value of some headers leads to, whatever the body."""

    wire: str
    name: str
    headers: dict[str, str | None]
    status: int
    words: str


AGENTS_ONLY = "only available for Coding Agents"
DEVICE = ("platform", "version", "device-name", "device-model", "os-version", "device-id")
LIBRARY = "Python/3.11 aiohttp/3.10"

HEADERS = [
    HeaderCase("p1", "no bearer", {"authorization": None}, 401, "token_expired"),
    HeaderCase("p1", "unknown bearer", {"authorization": "Bearer x"}, 401, "token_expired"),
    HeaderCase("p1", "no account", {"chatgpt-account-id": None}, 403, "account id"),
    HeaderCase("p1", "wrong account", {"chatgpt-account-id": "acct-else"}, 403, "account id"),
    HeaderCase("p1", "not JSON", {"content-type": "text/plain"}, 415, "Unsupported Media Type"),
    HeaderCase("p1", "accepts JSON only", {"accept": "application/json"}, 406, "text/event-stream"),
    HeaderCase("p1", "no originator", {"originator": None}, 400, "originator"),
    HeaderCase("p1", "underscore session", {"session_id": "s"}, 400, "session_id"),
    HeaderCase("p1", "socket beta", {"openai-beta": "responses_websockets=2026-02-06"}, 400, "upgrade"),
    HeaderCase("p1", "odd lite header", {LITE: "1"}, 400, LITE),
    HeaderCase("p2", "no bearer", {"authorization": None}, 401, "invalid_authentication_error"),
    HeaderCase("p2", "unknown bearer", {"authorization": "Bearer x"}, 401, "invalid_authentication_error"),
    HeaderCase("p2", "another device", {"x-msh-device-id": "0" * 32}, 401, "invalid_authentication_error"),
    HeaderCase("p2", "library", {"user-agent": LIBRARY}, 403, AGENTS_ONLY),
    HeaderCase("p2", "no user agent", {"user-agent": None}, 403, AGENTS_ONLY),
    HeaderCase("p2", "unknown program", {"user-agent": "model-proxy/1.0"}, 403, "access_terminated_error"),
    *(HeaderCase("p2", f"no {name}", {f"x-msh-{name}": None}, 403, AGENTS_ONLY) for name in DEVICE),
    HeaderCase("p2", "host name not ASCII", {"x-msh-device-name": "主机"}, 403, AGENTS_ONLY),
    HeaderCase("p2", "empty header", {"x-msh-version": " "}, 403, AGENTS_ONLY),
    HeaderCase("p2", "not JSON", {"content-type": "text/plain"}, 400, "JSON"),
]
for _wire in p4.BODIES:
    HEADERS += [
        HeaderCase(_wire, "no session", {"x-opencode-session": None}, 400, "MissingSessionID"),
        HeaderCase(_wire, "empty session", {"x-opencode-session": " "}, 400, "Error from provider (Console Go): "),
        HeaderCase(_wire, "two keys", {"authorization": "Bearer k", "x-api-key": "k"}, 401, "AuthError"),
        HeaderCase(_wire, "library", {"user-agent": LIBRARY}, 400, "HTTP library"),
        HeaderCase(_wire, "no user agent", {"user-agent": None}, 400, "HTTP library"),
        HeaderCase(_wire, "not JSON", {"content-type": "text/plain"}, 400, "content-type"),
        HeaderCase(_wire, "accepts JSON", {"accept": "application/json"}, 400, "accept"),
    ]


# --- P1 ---

LUNA = {"model": "gpt-5.6-luna"}
WEB = {"type": "web_search", "external_web_access": True, "search_content_types": ["text", "image"]}
SEALED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": encrypt("acct-sandbox", "rs_1")}
COMPACTED = {"type": "compaction", "id": "cmp_1", "encrypted_content": encrypt("acct-sandbox", "cmp_1")}
PART = {"type": "input_text", "text": "x"}
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: /x/"}
PATCH = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "p", "name": "apply_patch", "input": "x"}
PATCHED = {"type": "custom_tool_call_output", "call_id": "p", "output": "x"}


def schema_format(schema: Any, **members: Any) -> dict[str, Any]:
    return {"text": {"format": {"type": "json_schema", "name": "r", "schema": schema, "strict": True, **members}}}


def message(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": list(parts)}


def bash(**members: Any) -> dict[str, Any]:
    """A body that offers one tool with these members."""
    return full(tools=[{**p1.BASH, **members}])


def allowed(mode: str, kind: str = "web_search") -> dict[str, Any]:
    return {"tool_choice": {"type": "allowed_tools", "mode": mode, "tools": [{"type": kind}]}}


NO_P1_MEMBERS = [
    *("stream_options", "max_output_tokens", "max_completion_tokens", "temperature", "top_p", "user", "truncation"),
    *("prompt_cache_options", "prompt_cache_retention", "safety_identifier", "context_management", "metadata"),
    *("previous_response_id", "max_tokens", "messages", "type", "generate"),
]

OPEN_OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
LOOSE_OBJECT = {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"], "additionalProperties": False}
FINE_OBJECT = {"type": "object", "properties": {"a": OPEN_OBJECT}, "required": ["a"], "additionalProperties": False}
PATTERN = {"properties": {"a": {"pattern": r"^\p{L}+$"}}}
BAD_PATTERN = r"Invalid schema for function 'Bash': '^\\p{L}+$' is not a 'regex'."
LONG = "string too long. Expected a string with maximum length 64, but got a string with length 65 instead."
ASSISTANT_PARTS = "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'."
NO_FUNCTION = "Tool choice 'function' not found in 'tools' parameter."

P1_REFUSED = [
    *(Case("p1", name, full(**{name: 1}), f"Unsupported parameter: {name}") for name in NO_P1_MEMBERS),
    Case("p1", "store", full(store=True), "Store must be set to false"),
    Case("p1", "stream", full(stream=False), "Stream must be set to true"),
    Case("p1", "unknown model", full(model="gpt-9"), "'gpt-9' model is not supported"),
    Case("p1", "fast suffix", full(model="gpt-5.5-fast"), "not supported"),
    Case("p1", "luna on the full lane", full(**LUNA), "Model not found gpt-5.6-luna", 404),
    Case("p1", "lite for a full model", lite(model="gpt-5.5"), "does not support Responses Lite."),
    Case("p1", "lite parallel", lite(parallel_tool_calls=True), "requires `parallel_tool_calls` to be false"),
    Case("p1", "lite instructions", lite(instructions="x"), "does not support `instructions`"),
    Case("p1", "lite hosted tool", lite(tools=[WEB]), "Unsupported tool type: web_search"),
    Case("p1", "marker not a text", lite(client_metadata={**MARKER, next(iter(MARKER)): "1"}), "contradicts"),
    Case("p1", "member type", full(instructions=1), "Invalid type for 'instructions': expected a string."),
    Case("p1", "tier", full(service_tier="turbo"), "Unsupported service_tier: turbo"),
    Case("p1", "tier of another model", full(service_tier="ultrafast"), "Unsupported service_tier"),
    Case("p1", "effort", full(reasoning={"effort": "minimal"}), "'minimal'. Supported values are: 'none',"),
    Case("p1", "effort of another model", full(reasoning={"effort": "ultra"}), "Invalid value: 'ultra'"),
    Case("p1", "unknown member", full(reasoning={"budget": 1}), "Unknown parameter: 'reasoning.budget'."),
    Case("p1", "format name", full(**schema_format(FINE_OBJECT, name="a b")), "Missing or invalid 'text.format.name'."),
    Case("p1", "open object", full(**schema_format(OPEN_OBJECT)), "'additionalProperties' is required"),
    Case("p1", "open object inside", full(**schema_format(FINE_OBJECT)), "context=('properties', 'a')"),
    Case("p1", "optional property", full(**schema_format(LOOSE_OBJECT)), "Missing 'b'"),
    Case("p1", "list", full(**schema_format({"type": "array"})), "Invalid schema for response_format 'r'"),
    Case("p1", "tool member", bash(defer_loading=True), "Unknown parameter: 'tools.defer_loading'."),
    Case("p1", "tool type", full(tools=[{"type": "bash_20250124", "name": "bash"}]), "tool type: bash_2025"),
    Case("p1", "tool name", bash(name="a b"), "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."),
    Case("p1", "tool name long", bash(name="a" * 65), f"Invalid 'tools[0].name': {LONG}"),
    Case("p1", "tool schema", bash(parameters={"type": "string"}), "Invalid schema for function 'Bash': schema must"),
    Case("p1", "strict tool", bash(strict=True), "'additionalProperties' is required"),
    Case("p1", "regex", bash(parameters=PATTERN), BAD_PATTERN),
    Case("p1", "empty filter", full(tools=[{**WEB, "filters": {"allowed_domains": []}}]), "a list of domains."),
    Case("p1", "format", full(tools=[{"type": "custom", "name": "x", "format": {"type": "json"}}]), "format': json."),
    Case("p1", "choice word", full(tool_choice="any"), "'none', 'auto', and 'required'."),
    Case("p1", "choice type", full(tool_choice={"type": "x"}), "Invalid value for 'tool_choice': x"),
    Case("p1", "required without tools", full(tool_choice="required"), "must be specified with 'tools'"),
    Case("p1", "choice of none such", full(tool_choice={"type": "function", "name": "Read"}), NO_FUNCTION),
    Case("p1", "search choice", full(tool_choice={"type": "web_search"}), "Bad Gateway", 502),
    Case("p1", "allowed tools", full(tools=[p1.BASH], **allowed("required")), "Bad Gateway", 502),
    Case("p1", "allowed mode", full(tools=[p1.BASH], **allowed("any")), "mode and tools are needed."),
    Case("p1", "input text", full(input="hello"), "Input must be a list"),
    Case("p1", "input empty", full(input=[]), "Missing required parameter: 'input'."),
    Case("p1", "item type", full({"type": "thinking"}), "Invalid value: 'thinking'. Supported values are: 'message', "),
    Case("p1", "item id", full({**p1.user("x"), "id": "item_1"}), "'item_1'. Expected an ID that begins with 'msg'."),
    Case("p1", "system role", full(message("system", PART)), "System messages are not allowed"),
    Case("p1", "role", full(message("tool", PART)), "'assistant', 'developer', and 'user'."),
    Case("p1", "input_text of the assistant", full(message("assistant", PART)), ASSISTANT_PARTS),
    Case("p1", "image no base64", full(p1.user("x", "data:image/png;base64,@@")), "valid image"),
    Case("p1", "image empty", full(p1.user("x", "data:image/png;base64,")), "valid image"),
    Case("p1", "image of another type", full(p1.user("x", "data:text/plain;base64,aGk=")), "valid image"),
    Case(
        "p1",
        "image in a result",
        full(p1.call("c"), p1.output("c", [{"type": "input_image", "image_url": "?"}])),
        "valid image",
    ),
    Case("p1", "orphan result", full(p1.output("c9")), "No tool call found for function call output with call_id c9."),
    Case("p1", "result of another kind", full(p1.call("p"), PATCHED), "No tool call found for custom tool call output"),
    Case("p1", "result before call", full(p1.output("c"), p1.call("c")), "No tool call found"),
    Case("p1", "call without result", full(p1.call("c8")), "No tool output found for function call c8."),
    Case("p1", "bare reasoning", full({"type": "reasoning", "id": "rs_9"}), "Item with id 'rs_9' not found.", 404),
    Case("p1", "reference", full({"type": "item_reference", "id": "msg_1"}), "Item with id 'msg_1' not found.", 404),
    Case(
        "p1", "foreign seal", full({**SEALED, "encrypted_content": encrypt("other", "rs_1")}), "could not be verified"
    ),
    Case("p1", "invented seal", full({**SEALED, "encrypted_content": "gAAAAAx"}), "thinking_signature_invalid"),
    Case("p1", "seal of another item", full({**SEALED, "id": "rs_2"}), "did not match the target item id"),
    Case("p1", "seal of a thought", full({**SEALED, "type": "compaction"} | {"id": None}), "'input[0].summary'"),
    Case("p1", "full lane", full({"type": "additional_tools", "role": "developer", "tools": [p1.BASH]}), "Lite lane."),
    Case("p1", "trigger not last", full({"type": "compaction_trigger"}, p1.user("x")), "must be the last input item."),
]

NAMESPACE = {"type": "namespace", "name": "functions", "description": "", "tools": [p1.BASH]}
NULLABLE = {**FINE_OBJECT, "properties": {"a": {"type": ["string", "null"]}}}
FILTERED = {**WEB, "filters": {"allowed_domains": ["a.example"], "blocked_domains": ["b.example"]}}
PICTURE_PART = {"type": "input_image", "image_url": "https://e.example/a"}

P1_ACCEPTED = [
    Case("p1", "full", full()),
    Case("p1", "lite", lite(p1.developer("Be brief."), p1.user("hi"), tools=[p1.BASH], tool_choice="auto")),
    Case("p1", "both lanes", full(model="gpt-5.6-sol", reasoning={"effort": "ultra", "context": "all_turns"})),
    Case("p1", "message without type, content as text", full({"role": "user", "content": "hi"})),
    Case(
        "p1",
        "history",
        full(p1.user("a"), SEALED, p1.assistant("b"), p1.call("c"), p1.output("c"), p1.user("d"), tools=[p1.BASH]),
    ),
    Case("p1", "result with parts", full(p1.call("c"), p1.output("c", [PART, PICTURE_PART]))),
    Case("p1", "search", full(tools=[FILTERED])),
    Case("p1", "allowed", full(tools=[WEB], **allowed("auto"))),
    Case("p1", "choice", full(tools=[WEB, {"type": "web_search_preview"}], tool_choice={"type": "web_search"})),
    Case("p1", "choice inside the input", lite(tools=[p1.BASH], tool_choice={"type": "function", "name": "Bash"})),
    Case("p1", "namespace", lite(tools=[NAMESPACE])),
    Case("p1", "custom", full(tools=[{"type": "custom", "name": "apply_patch", "format": {"type": "text"}}])),
    Case("p1", "grammar", full(PATCH, PATCHED, tools=[{"type": "custom", "name": "apply_patch", "format": GRAMMAR}])),
    Case("p1", "a property named pattern", bash(parameters={"properties": {"pattern": {"default": "("}}})),
    Case("p1", "empty parameters", bash(parameters={})),
    Case("p1", "strict", full(**schema_format(NULLABLE))),
    Case("p1", "loose schema", full(**schema_format(OPEN_OBJECT, strict=False))),
    Case("p1", "format text", full(text={"format": {"type": "text"}}, include=["reasoning.encrypted_content"])),
    Case("p1", "format JSON", full(text={"format": {"type": "json_object"}}, reasoning={"summary": "auto"})),
    Case("p1", "tier", full(service_tier="priority", prompt_cache_key="k")),
    Case("p1", "tool search", full(tools=[{"type": "tool_search"}, p1.BASH], tool_choice="required")),
    Case("p1", "searched", full({"type": "web_search_call", "id": "ws_1"}, {"type": "compaction_trigger"})),
    Case("p1", "compacted", full(COMPACTED, message("user", {"type": "input_file", "file_id": "f"}))),
]


# --- chat: P2, and P4 ---

K3 = {"model": "k3"}
OFF = {"thinking": {"type": "disabled"}, "reasoning_effort": None}
HISTORY = (p2.user("a"), p2.called(p2.call("c"), content=None), p2.answer("c"))
BARE_CALL = {"role": "assistant", "tool_calls": [p2.call("c")]}
BARE_TURN = (p2.user("a"), BARE_CALL, p2.answer("c"))
FORCED = {"tools": [p2.BASH], "tool_choice": {"type": "function", "function": {"name": "Bash"}}}
REQUIRED = {"tools": [p2.BASH], "tool_choice": "required"}
MISSING = "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1"
UNANSWERED = "must be followed by tool messages responding to each 'tool_call_id'"
TEMPERATURE = "invalid temperature: only {} is allowed for this model"
NO_CHOICE = "tool_choice '{}' is incompatible with thinking enabled"
EMPTY_PART = {"type": "text", "text": ""}


def with_property(schema: Any) -> dict[str, Any]:
    return {"tools": [p2.with_property(schema)]}


P2_REFUSED = [
    Case("p2", "unknown model", chat(model="kimi-k2.6"), "kimi-k2.6", 404),
    Case("p2", "no model", chat(model=None), "Not found the model", 404),
    Case("p2", "member type", chat(max_tokens=0), "Invalid type for 'max_tokens': expected a number from 1."),
    Case("p2", "temperature", chat(temperature=0.3), TEMPERATURE.format(1)),
    Case("p2", "temperature off", chat(temperature=1, **OFF), TEMPERATURE.format(0.6)),
    Case("p2", "effort", chat(reasoning_effort="max"), "'reasoning_effort': expected one of low, medium, high."),
    Case("p2", "effort of k3", chat(reasoning_effort="medium", **K3), "one of low, high, max"),
    Case("p2", "effort inside", chat(thinking={"type": "enabled", "effort": "ultra"}), "thinking.effort"),
    Case("p2", "thinking type", chat(thinking={"type": "adaptive"}), "expected 'enabled' or 'disabled'."),
    Case("p2", "forced", chat(**FORCED), NO_CHOICE.format("specified")),
    Case("p2", "required", chat(**REQUIRED), NO_CHOICE.format("required")),
    Case("p2", "forced on k3", chat(**K3, **FORCED), NO_CHOICE.format("specified")),
    Case("p2", "tool without name", chat(tools=[{"type": "function", "function": {}}]), "'tools[0].function.name'"),
    Case("p2", "property", chat(**with_property({})), "At path 'properties.mode': type is not defined"),
    Case("p2", "enum only", chat(**with_property({"enum": ["a"]})), "At path 'properties.mode'"),
    Case("p2", "items", chat(**with_property({"type": "array", "items": {}})), "'properties.mode.items'"),
    Case("p2", "anyOf", chat(**with_property({"anyOf": [{"type": "string"}, {}]})), "'properties.mode.anyOf.1'"),
    Case(
        "p2",
        "additional properties",
        chat(**with_property({"type": "object", "additionalProperties": {"minimum": 1}})),
        "'properties.mode.additionalProperties'",
    ),
    Case("p2", "schema", chat(**with_property({"enum": 1})), "Invalid schema for function 'set': In context"),
    Case("p2", "system on k3", chat(p2.system("S"), p2.user("a"), **K3), "messages[0]: role 'system' is not supported"),
    Case("p2", "developer on k3", chat({"role": "developer", "content": "S"}, **K3), "role 'developer'"),
    Case("p2", "part without type", chat(p2.user([{"text": "a"}])), "invalid content part at messages[0].content[0]"),
    Case("p2", "empty part", chat(p2.user([EMPTY_PART, p2.IMAGE])), "text content is empty"),
    Case("p2", "empty part of a result", chat(*HISTORY[:2], p2.answer("c", [EMPTY_PART])), "text content is empty"),
    Case("p2", "empty content", chat(p2.user("a"), p2.called(p2.call("c"), content=""), p2.answer("c")), "is empty"),
    Case("p2", "video on the small k3", chat(p2.user([p2.VIDEO]), model="k3-256k"), "no video input"),
    Case("p2", "thought missing", chat(*BARE_TURN), MISSING),
    Case("p2", "thought empty", chat(p2.user("a"), {**BARE_CALL, "reasoning_content": ""}, p2.answer("c")), MISSING),
    Case("p2", "k3 cannot be switched off", chat(*BARE_TURN, **K3, **OFF), MISSING),
    Case("p2", "no answer", chat(p2.user("a"), p2.called(p2.call("c")), p2.user("b")), UNANSWERED),
    Case("p2", "no answer at the end", chat(p2.user("a"), p2.called(p2.call("c"))), UNANSWERED),
    Case("p2", "one of two", chat(p2.user("a"), p2.called(p2.call("c"), p2.call("d")), p2.answer("c")), "messages: d"),
    Case("p2", "between", chat(p2.user("a"), p2.called(p2.call("c")), p2.system("s"), p2.answer("c")), UNANSWERED),
    Case("p2", "orphan", chat(p2.user("a"), p2.answer("c")), "tool_call_id c is not found"),
    Case("p2", "answered twice", chat(*HISTORY, p2.answer("c")), "tool_call_id c is not found"),
]

TYPED = [
    {"type": "string"},
    {"$ref": "#/$defs/x"},
    {"anyOf": [{"type": "string"}, {"type": "null"}]},
    {"type": "object", "additionalProperties": False, "properties": {"items": {"type": "string"}}},
    {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "string"}, "default": {}},
    {"not": {}},
]
STORED_VIDEO = {"type": "video_url", "video_url": {"url": "ms://f1"}}

P2_ACCEPTED = [
    Case("p2", "plain", chat(p2.system("S"), p2.user("a"))),
    Case("p2", "k3", chat(p2.user("S\n\na"), **K3)),
    Case("p2", "system in the middle", chat(p2.system("S"), p2.user("a"), p2.system("b"), *HISTORY, p2.system("c"))),
    Case("p2", "history", chat(*HISTORY, p2.user("b"), tools=[p2.BASH], parallel_tool_calls=False)),
    Case("p2", "no content", chat(p2.user("a"), p2.called(p2.call("B")), p2.answer("B", [p2.TEXT, p2.IMAGE]))),
    Case("p2", "empty answer", chat(p2.user("a"), p2.called(p2.call("c")), p2.answer("c", ""))),
    Case("p2", "ids repeat", chat(*HISTORY, *HISTORY)),
    Case("p2", "no calls, no thought", chat(p2.user("a"), {"role": "assistant", "content": "b"}, p2.user("c"))),
    Case("p2", "off", chat(*BARE_TURN, temperature=0.6, **OFF)),
    Case("p2", "off and forced", chat(**FORCED, **OFF)),
    Case("p2", "required on k3", chat(**K3, **REQUIRED)),
    Case("p2", "no choice", chat(tools=[p2.BASH], tool_choice="none")),
    Case("p2", "one temperature", chat(temperature=1)),
    Case("p2", "effort inside", chat(thinking={"type": "enabled", "effort": "low", "keep": 1}, reasoning_effort=None)),
    Case("p2", "film", chat(p2.user([p2.TEXT, p2.VIDEO, STORED_VIDEO]))),
    Case("p2", "builtin", chat(tools=[{"type": "builtin_function", "function": {"name": "$web_search"}}])),
    Case("p2", "schemas", chat(tools=[p2.with_property(schema) for schema in TYPED])),
    Case("p2", "parameters empty", chat(tools=[{"type": "function", "function": {"name": "a", "parameters": {}}}])),
    Case("p2", "newer limit", chat(max_tokens=None, max_completion_tokens=5)),
    Case("p2", "structured", chat(response_format={"type": "json_object"})),
]

KIMI = {"model": "kimi-k2.6"}
DEEPSEEK = {"model": "deepseek-v4-pro"}
EXTRA = "Extra inputs are not permitted"
SAID = {"role": "assistant", "content": "b"}
GO_TURN = (p2.user("a"), {**BARE_CALL, "content": ""}, p2.answer("c"))
BOTH = {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}

CHAT_REFUSED = [
    Case("chat", "temperature", go_chat(temperature=0.2), f"temperature: {EXTRA}"),
    Case("chat", "thinking", go_chat(thinking={"type": "enabled"}), f"thinking: {EXTRA}"),
    Case("chat", "cache", go_chat({**p2.user("a"), "cache_control": {}}), f"messages[0].cache_control: {EXTRA}"),
    Case(
        "chat",
        "system behind",
        go_chat(p2.system("a"), p2.user("b"), p2.system("c")),
        "messages[2]: a system message must be the first",
    ),
    Case("chat", "effort of glm", go_chat(reasoning_effort="low"), "one of high, max"),
    Case("chat", "effort of mimo", go_chat(model="mimo-v2.5", reasoning_effort="max"), "one of low, medium, high"),
    Case("chat", "effort of deepseek", go_chat(**DEEPSEEK, reasoning_effort="xhigh"), "one of low, medium, high, max"),
    Case("chat", "deepseek", go_chat(p2.user("a"), SAID, p2.user("c"), **DEEPSEEK), "must be passed back to the API."),
    Case("chat", "kimi without reasoning", go_chat(*GO_TURN, **KIMI), MISSING),
    Case("chat", "kimi forced", go_chat(**KIMI, **FORCED), NO_CHOICE.format("specified")),
    Case("chat", "kimi pair", go_chat(**KIMI, **BOTH), "cannot specify both 'thinking' and 'reasoning_effort'"),
    Case("chat", "kimi empty text", go_chat(p2.user([EMPTY_PART, p2.IMAGE]), **KIMI), "text content is empty"),
    Case("chat", "kimi schema", go_chat(**with_property({}), **KIMI), "At path 'properties.mode'"),
]

THOUGHT_OF_NOTHING = {**SAID, "reasoning_content": ""}

CHAT_ACCEPTED = [
    Case("chat", "system first", go_chat(p2.system("a"), p2.user("b"), reasoning_effort="max")),
    Case("chat", "history", go_chat(*GO_TURN, p2.user("b"))),
    Case("chat", "forced", go_chat(**FORCED)),
    Case("chat", "schema", go_chat(**with_property({}))),
    Case("chat", "image for the blind", go_chat(p2.user([p2.IMAGE]))),
    Case("chat", "kimi", go_chat(p2.user("a"), {**BARE_CALL, "reasoning_content": "."}, p2.answer("c"), **KIMI)),
    Case("chat", "k3 required", go_chat(model="kimi-k3", **REQUIRED)),
    Case("chat", "deepseek", go_chat(p2.user("a"), THOUGHT_OF_NOTHING, p2.user("c"), **DEEPSEEK)),
    Case("chat", "effort of others", go_chat(model="hy3", reasoning_effort="low")),
]


# --- messages, and responses, of P4 ---


def result(call_id: str, content: Any = "ok", **members: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **members}


def use(call_id: str, name: str = "Bash") -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {}}


def turn(role: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


def choice(**members: Any) -> dict[str, Any]:
    return go_messages(tools=[p4.BASH], tool_choice=members)


TEXT = {"type": "text", "text": "x"}
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
LINKED = {"type": "image", "source": {"type": "url", "url": "https://e.example/a"}}
THOUGHT = {"type": "thinking", "thinking": "t", "signature": encrypt("go-sandbox", "thinking")}
FOREIGN = {**THOUGHT, "signature": "Y2NwOmtpbWk6djE6bXNnXzE6Mg"}
CALLED = turn("assistant", use("c"))
NO_RESULT = "`tool_use` ids were found without `tool_result` blocks: c"
BETAS = ("context_management", "mcp_servers", "container", "stream_options")

MESSAGES_REFUSED = [
    *(Case("messages", name, go_messages(**{name: {}}), f"{name}: {EXTRA}") for name in BETAS),
    Case("messages", "no limit", go_messages(max_tokens=None), "Missing required parameter: 'max_tokens'."),
    Case("messages", "system role", go_messages(p2.system("b")), "'messages[0].role': expected 'user' or 'assistant'."),
    Case("messages", "member", go_messages({**p2.user("a"), "cache": {}}), f"messages[0].cache: {EXTRA}"),
    Case("messages", "no result", go_messages(p2.user("a"), CALLED, p2.user("b")), f"messages[2]: {NO_RESULT}"),
    Case("messages", "no result at the end", go_messages(p2.user("a"), CALLED), NO_RESULT),
    Case("messages", "orphan result", go_messages(turn("user", result("c"))), "unexpected `tool_use_id`"),
    Case("messages", "tool schema", go_messages(tools=[{**p4.BASH, "input_schema": {"type": 1}}]), "schema: In con"),
    Case("messages", "choice without tools", go_messages(tool_choice={"type": "auto"}), "while providing tools"),
    Case("messages", "choice of none such", choice(type="tool", name="x"), "Tool 'x' not found in provided tools"),
]

MESSAGES_ACCEPTED = [
    Case(
        "messages",
        "plain",
        go_messages(system="S", metadata={"user_id": "u"}, temperature=0.2, stop_sequences=["x"]),
    ),
    Case("messages", "system blocks", go_messages(system=[{**TEXT, "cache_control": {"type": "ephemeral"}}])),
    Case("messages", "linked picture", go_messages(turn("user", LINKED))),
    Case("messages", "choice", choice(type="tool", name="Bash")),
    Case(
        "messages",
        "history",
        go_messages(
            turn("user", TEXT, PICTURE),
            turn("assistant", FOREIGN, TEXT, use("c"), use("d", "Read")),
            turn("user", result("c", is_error=False), result("d", [TEXT, PICTURE])),
            tools=[{**p4.BASH, "type": "custom", "cache_control": {"type": "ephemeral"}}],
            tool_choice={"type": "auto", "disable_parallel_tool_use": True},
            output_config={"effort": "high"},
            thinking={"type": "adaptive"},
        ),
    ),
]

ELSEWHERE = {**SEALED, "encrypted_content": encrypt("acct", "rs_1")}

RESPONSES_REFUSED = [
    Case("responses", "unknown member", go_responses(messages=[]), "Unknown parameter: 'messages'"),
    Case("responses", "effort", go_responses(reasoning={"effort": "ultra"}), "'ultra'"),
    Case("responses", "member type", go_responses(parallel_tool_calls="yes"), "parallel_tool_calls"),
    Case("responses", "sealed elsewhere", go_responses(ELSEWHERE), "encrypted content"),
    Case("responses", "orphan result", go_responses(p1.output("c")), "No tool call"),
    Case("responses", "not stored", go_responses({"type": "item_reference", "id": "rs_9"}), "not found"),
    Case("responses", "tool", go_responses(tools=[{"type": "function", "name": "a b"}]), "tools[0].name"),
]

REFUSED = [*P1_REFUSED, *P2_REFUSED, *CHAT_REFUSED, *MESSAGES_REFUSED, *RESPONSES_REFUSED]
ACCEPTED = [*P1_ACCEPTED, *P2_ACCEPTED, *CHAT_ACCEPTED, *MESSAGES_ACCEPTED]
