"""Bodies and headers for the simulators: what is refused, with its words, and what is accepted.

The rows of the tables of checks are all broken by `broken_rows`; here stands one case of each kind of refusal, so that
the tables are not their own judge, and whatever depends on a model, a lane, a pair, a schema or encrypted content.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import p1_sandbox_client as p1
import p2_sandbox_client as p2
import p3_refusal_cases as p3
import p4_sandbox_client as p4
from p1_sandbox_client import LITE, MARKER, full, lite
from p2_sandbox_client import chat
from p4_sandbox_client import go_chat, go_messages, go_responses

from proxy.sandbox.wires.encrypted_content import encrypt


class Case(NamedTuple):
    """What the wire says of a body, or of headers: `words` are in the answer; none, and the body is accepted."""

    wire: str
    name: str
    sent: dict[str, Any]
    words: str = ""
    status: int = 400

    def __str__(self) -> str:
        return f"{self.wire}: {self.name}"


#: Name, what is sent, words, and the status if it is no 400.
Row = tuple[Any, ...]


AGENTS_ONLY = "only available for Coding Agents"
DEVICE = ("platform", "version", "device-name", "device-model", "os-version", "device-id")
LIBRARY = "Python/3.11 aiohttp/3.10"

P1_HEADERS: list[Row] = [
    ("no bearer", {"authorization": None}, "token_expired", 401),
    ("unknown bearer", {"authorization": "Bearer x"}, "token_expired", 401),
    ("no account", {"chatgpt-account-id": None}, "account id", 403),
    ("wrong account", {"chatgpt-account-id": "acct-else"}, "account id", 403),
    ("not JSON", {"content-type": "text/plain"}, "Unsupported Media Type", 415),
    ("accepts JSON only", {"accept": "application/json"}, "text/event-stream", 406),
    ("no originator", {"originator": None}, "originator"),
    ("underscore session", {"session_id": "s"}, "session_id"),
    ("socket beta", {"openai-beta": "responses_websockets=2026-02-06"}, "upgrade"),
    ("empty thread", {"thread-id": " "}, "thread-id"),
    ("turn metadata no JSON", {"x-codex-turn-metadata": "turn"}, "x-codex-turn-metadata"),
    ("routing hint of nothing", {"x-codex-routing-hint": "sol"}, "x-codex-routing-hint"),
    ("turn state of nobody", {"x-codex-turn-state": "1"}, "x-codex-turn-state"),
    ("odd lite header", {LITE: "1"}, LITE),
]

P2_HEADERS: list[Row] = [
    ("no bearer", {"authorization": None}, "invalid_authentication_error", 401),
    ("unknown bearer", {"authorization": "Bearer x"}, "invalid_authentication_error", 401),
    ("another device", {"x-msh-device-id": "0" * 32}, "invalid_authentication_error", 401),
    ("library", {"user-agent": LIBRARY}, AGENTS_ONLY, 403),
    ("no user agent", {"user-agent": None}, AGENTS_ONLY, 403),
    ("unknown program", {"user-agent": "model-proxy/1.0"}, "access_terminated_error", 403),
    *((f"no {name}", {f"x-msh-{name}": None}, AGENTS_ONLY, 403) for name in DEVICE),
    ("host name not ASCII", {"x-msh-device-name": "主机"}, AGENTS_ONLY, 403),
    ("empty header", {"x-msh-version": " "}, AGENTS_ONLY, 403),
    ("not JSON", {"content-type": "text/plain"}, "JSON"),
]

GO_HEADERS: list[Row] = [
    ("no session", {"x-opencode-session": None}, "MissingSessionID"),
    ("empty session", {"x-opencode-session": " "}, "Error from provider (Console Go): "),
    ("two keys", {"authorization": "Bearer k", "x-api-key": "k"}, "AuthError", 401),
    ("library", {"user-agent": LIBRARY}, "HTTP library"),
    ("no user agent", {"user-agent": None}, "HTTP library"),
    ("not JSON", {"content-type": "text/plain"}, "content-type"),
    ("accepts JSON", {"accept": "application/json"}, "accept"),
    ("accepts nothing", {"accept": ""}, "accept"),
]


# --- P1 ---

LUNA = {"model": "gpt-5.6-luna"}
WEB = {"type": "web_search", "external_web_access": True, "search_content_types": ["text", "image"]}
SEALED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": encrypt("acct-sandbox", "rs_1")}
COMPACTED = {"type": "compaction", "id": "cmp_1", "encrypted_content": encrypt("acct-sandbox", "cmp_1")}
PART = {"type": "input_text", "text": "x"}
PICTURE_PART = {"type": "input_image", "image_url": "https://e.example/a"}
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: /x/"}
PATCH = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "p", "name": "apply_patch", "input": "x"}
PATCHED = {"type": "custom_tool_call_output", "call_id": "p", "output": "x"}


def schema_format(schema: Any, **members: Any) -> dict[str, Any]:
    return {"text": {"format": {"type": "json_schema", "name": "r", "schema": schema, "strict": True, **members}}}


def strict_format(value: Any) -> dict[str, Any]:
    return schema_format({**FINE_OBJECT, "properties": {"a": value}})


def message(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": list(parts)}


def bash(**members: Any) -> dict[str, Any]:
    """A body that offers one tool with these members."""
    return full(tools=[{**p1.BASH, **members}])


def parameter(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}}


def allowed(mode: str, kind: str = "web_search") -> dict[str, Any]:
    return {"tool_choice": {"type": "allowed_tools", "mode": mode, "tools": [{"type": kind}]}}


NO_P1_MEMBERS = [
    *("stream_options", "max_output_tokens", "max_completion_tokens", "temperature", "top_p", "user", "truncation"),
    *("prompt_cache_options", "prompt_cache_retention", "safety_identifier", "context_management", "metadata"),
    *("previous_response_id", "max_tokens", "messages", "type", "generate"),
]

OPEN_OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
LOOSE_OBJECT = {
    "type": "object",
    "properties": {"a": {"type": "null"}, "b": {"type": "null"}},
    "required": ["a"],
    "additionalProperties": False,
}
FINE_OBJECT = {"type": "object", "properties": {"a": OPEN_OBJECT}, "required": ["a"], "additionalProperties": False}
PATTERN = {"properties": {"a": {"pattern": r"^\p{L}+$"}}}
BAD_PATTERN = r"Invalid schema for function 'Bash': '^\\p{L}+$' is not a 'regex'."
LONG = "string too long. Expected a string with maximum length 64, but got a string with length 65 instead."
NO_PARAMETERS = {"type": "object", "properties": {}}
PARAMETER = "In context=('properties', 'a')"
NO_ITEMS = "array schema missing items."
AT_TOP = ("oneOf", "anyOf", "allOf", "enum", "not")
NOT_AT_TOP = "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
ASSISTANT_PARTS = "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'."
NO_FUNCTION = "Tool choice 'function' not found in 'tools' parameter."

NOT_STRICT = (
    ({"type": "string", "default": "a"}, "'default' is not permitted."),
    ({"type": "array", "prefixItems": [{"type": "null"}]}, "'prefixItems' is not permitted."),
    ({}, "schema must have a 'type' key."),
    ({"enum": ["a"]}, "context=('properties', 'a'), schema must have a 'type' key."),
    ({"type": "array"}, NO_ITEMS),
    ({"type": "string", "format": "uri"}, "'uri' is not a valid format."),
    ({"$ref": "#/$defs/x", "title": "t"}, "$ref cannot have keywords {'title'}."),
)

P1_REFUSED: list[Row] = [
    *((name, full(**{name: 1}), f"Unsupported parameter: {name}") for name in NO_P1_MEMBERS),
    ("store", full(store=True), "Store must be set to false"),
    ("unknown model", full(model="gpt-9"), "'gpt-9' model is not supported"),
    ("luna on the full lane", full(**LUNA), "Model not found gpt-5.6-luna", 404),
    ("lite for a full model", lite(model="gpt-5.5"), "does not support Responses Lite."),
    ("lite instructions", lite(instructions="x"), "does not support `instructions`"),
    ("lite hosted tool", lite(tools=[WEB]), "Unsupported tool type: web_search"),
    ("marker not a text", lite(client_metadata={**MARKER, next(iter(MARKER)): "1"}), "contradicts"),
    ("member type", full(instructions=1), "Invalid type for 'instructions': expected a string."),
    ("tier of another model", full(service_tier="ultrafast"), "Unsupported service_tier"),
    ("effort", full(reasoning={"effort": "minimal"}), "'minimal'. Supported values are: 'none',"),
    ("effort of another model", full(reasoning={"effort": "ultra"}), "Invalid value: 'ultra'"),
    ("unknown member", full(reasoning={"budget": 1}), "Unknown parameter: 'reasoning.budget'."),
    ("open object", full(**schema_format(OPEN_OBJECT)), "'additionalProperties' is required"),
    ("open object inside", full(**schema_format(FINE_OBJECT)), "context=('properties', 'a')"),
    ("optional property", full(**schema_format(LOOSE_OBJECT)), "Missing 'b'"),
    *((f"strict {words}", full(**strict_format(value)), words) for value, words in NOT_STRICT),
    ("strict root", full(**schema_format({**FINE_OBJECT, "anyOf": [{}]})), "root schema must not have 'anyOf'."),
    ("list", full(**schema_format({"type": "array"})), "Invalid schema for response_format 'r'"),
    ("tool member", bash(defer_loading=True), "Unknown parameter: 'tools.defer_loading'."),
    ("tool type", full(tools=[{"type": "bash_20250124", "name": "bash"}]), "tool type: bash_2025"),
    ("tool name", bash(name="a b"), "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."),
    ("tool name long", bash(name="a" * 65), f"Invalid 'tools[0].name': {LONG}"),
    ("tool schema", bash(parameters={"type": "string"}), "Invalid schema for function 'Bash': schema must"),
    ("strict tool", bash(strict=True), "'additionalProperties' is required"),
    ("regex", bash(parameters=PATTERN), BAD_PATTERN),
    ("parameters without type", bash(parameters={}), "'type: \\\"object\\\"', got 'type: \\\"None\\\"'."),
    ("parameters without properties", bash(parameters={"type": "object"}), "object schema missing properties."),
    ("array without items", bash(parameters=parameter({"type": "array"})), f"{PARAMETER}, {NO_ITEMS}"),
    ("type of no name", bash(parameters=parameter({"type": "any"})), f"{PARAMETER}, 'type' is not the name"),
    ("array in an array", bash(parameters=parameter({"type": "array", "items": {"type": "array"}})), NO_ITEMS),
    ("tuple of an older draft", bash(parameters=parameter({"items": [{}]})), f"{PARAMETER}, 'items' is not a schema."),
    *((f"top-level {word}", bash(parameters={**NO_PARAMETERS, word: [{}]}), NOT_AT_TOP) for word in AT_TOP),
    ("long cache key", full(prompt_cache_key="k" * 65), f"Invalid 'prompt_cache_key': {LONG}"),
    ("required without tools", full(tool_choice="required"), "must be specified with 'tools'"),
    ("choice of none such", full(tool_choice={"type": "function", "name": "Read"}), NO_FUNCTION),
    ("search choice", full(tool_choice={"type": "web_search"}), "Bad Gateway", 502),
    ("allowed tools", full(tools=[p1.BASH], **allowed("required")), "Bad Gateway", 502),
    ("input empty", full(input=[]), "Missing required parameter: 'input'."),
    ("item id", full({**p1.user("x"), "id": "item_1"}), "'item_1'. Expected an ID that begins with 'msg'."),
    ("input_text of the assistant", full(message("assistant", PART)), ASSISTANT_PARTS),
    ("image no base64", full(p1.user("x", "data:image/png;base64,@@")), "valid image"),
    ("image of another type", full(p1.user("x", "data:text/plain;base64,aGk=")), "valid image"),
    ("image in a result", full(p1.call("c"), p1.output("c", [{**PICTURE_PART, "image_url": "?"}])), "valid image"),
    ("orphan result", full(p1.output("c9")), "No tool call found for function call output with call_id c9."),
    ("result before call", full(p1.output("c"), p1.call("c")), "No tool call found"),
    ("call without result", full(p1.call("c8")), "No tool output found for function call c8."),
    ("bare reasoning", full({"type": "reasoning", "id": "rs_9"}), "Item with id 'rs_9' not found.", 404),
    ("foreign seal", full({**SEALED, "encrypted_content": encrypt("other", "rs_1")}), "could not be verified"),
    ("invented seal", full({**SEALED, "encrypted_content": "gAAAAAx"}), "thinking_signature_invalid"),
    ("seal of another item", full({**SEALED, "id": "rs_2"}), "did not match the target item id"),
    ("full lane", full({"type": "additional_tools", "role": "developer", "tools": [p1.BASH]}), "Lite lane."),
]

NOTES = {"internal_chat_message_metadata_passthrough": {"turn_id": "t", "content_item_kinds": ["user.text"]}}
EFFORT_FROM_HERE = {"type": "configuration_update", "reasoning": {"effort": "high"}}
NAMESPACE = {"type": "namespace", "name": "functions", "description": "", "tools": [p1.BASH]}
NULLABLE = {**FINE_OBJECT, "properties": {"a": {"type": ["string", "null"]}}}
FILTERED = {**WEB, "filters": {"allowed_domains": ["a.example"], "blocked_domains": ["b.example"]}}

P1_ACCEPTED: list[Row] = [
    ("full", full()),
    ("lite", lite(p1.developer("Be brief."), p1.user("hi"), tools=[p1.BASH], tool_choice="auto")),
    ("both lanes", full(model="gpt-5.6-sol", reasoning={"effort": "ultra", "context": "all_turns"})),
    ("message without type, content as text", full({"role": "user", "content": "hi"})),
    ("history", full(SEALED, p1.assistant("b"), p1.call("c"), p1.output("c"), p1.user("d"), tools=[p1.BASH])),
    ("result with parts", full(p1.call("c"), p1.output("c", [PART, PICTURE_PART]))),
    ("search", full(tools=[FILTERED])),
    ("allowed", full(tools=[WEB], **allowed("auto"))),
    ("choice", full(tools=[WEB, {"type": "web_search_preview"}], tool_choice={"type": "web_search"})),
    ("choice inside the input", lite(tools=[p1.BASH], tool_choice={"type": "function", "name": "Bash"})),
    ("namespace", lite(tools=[NAMESPACE])),
    ("custom", full(tools=[{"type": "custom", "name": "apply_patch", "format": {"type": "text"}}])),
    ("grammar", full(PATCH, PATCHED, tools=[{"type": "custom", "name": "apply_patch", "format": GRAMMAR}])),
    ("a property named pattern", bash(parameters={**NO_PARAMETERS, "properties": {"pattern": {"default": "("}}})),
    ("no parameters", bash(parameters=NO_PARAMETERS)),
    ("parameters null", bash(parameters=None)),
    ("free object inside", bash(parameters=parameter({"type": "object"}))),
    ("array", bash(parameters=parameter({"type": "array", "items": {}}))),
    ("strict", full(**schema_format(NULLABLE))),
    ("loose schema", full(**schema_format(OPEN_OBJECT, strict=False))),
    ("format text", full(text={"format": {"type": "text"}}, include=["reasoning.encrypted_content"])),
    ("format JSON", full(text={"format": {"type": "json_object"}}, reasoning={"summary": "auto"})),
    ("tier", full(service_tier="priority", prompt_cache_key="k")),
    ("tool search", full(tools=[{"type": "tool_search"}, p1.BASH], tool_choice="required")),
    ("searched", full({"type": "web_search_call", "id": "ws_1"}, {"type": "compaction_trigger"})),
    (
        "notes of Codex",
        full({**p1.user("x"), **NOTES}, *({**item, **NOTES} for item in (p1.call("c"), p1.output("c")))),
    ),
    ("another effort", full(p1.user("x"), {**EFFORT_FROM_HERE, **NOTES})),
    ("compacted", full(COMPACTED, message("user", {"type": "input_file", "file_id": "f"}))),
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
OPEN_PROPERTY = {"type": "object", "additionalProperties": {"minimum": 1}}
EMPTY_PART = {"type": "text", "text": ""}


def with_property(schema: Any) -> dict[str, Any]:
    return {"tools": [p2.with_property(schema)]}


P2_REFUSED: list[Row] = [
    ("unknown model", chat(model="kimi-k2.6"), "kimi-k2.6", 404),
    ("member type", chat(max_tokens=0), "Invalid type for 'max_tokens': expected a number from 1."),
    ("temperature", chat(temperature=0.3), TEMPERATURE.format(1)),
    ("temperature off", chat(temperature=1, **OFF), TEMPERATURE.format(0.6)),
    ("effort of k3", chat(reasoning_effort="medium", **K3), "one of low, high, max"),
    ("effort inside", chat(thinking={"type": "enabled", "effort": "ultra"}), "thinking.effort"),
    ("forced", chat(**FORCED), NO_CHOICE.format("specified")),
    ("required", chat(**REQUIRED), NO_CHOICE.format("required")),
    ("forced on k3", chat(**K3, **FORCED), NO_CHOICE.format("specified")),
    ("parameters empty", chat(tools=[{"type": "function", "function": {"name": "a", "parameters": {}}}]), "At path ''"),
    ("property", chat(**with_property({})), "At path 'properties.mode': type is not defined"),
    ("enum only", chat(**with_property({"enum": ["a"]})), "At path 'properties.mode'"),
    ("items", chat(**with_property({"type": "array", "items": {}})), "'properties.mode.items'"),
    ("anyOf", chat(**with_property({"anyOf": [{"type": "string"}, {}]})), "'properties.mode.anyOf.1'"),
    ("more properties", chat(**with_property(OPEN_PROPERTY)), "'properties.mode.additionalProperties'"),
    ("schema", chat(**with_property({"enum": 1})), "Invalid schema for function 'set': In context"),
    ("developer on k3", chat({**p2.system("S"), "role": "developer"}, p2.user("a"), **K3), "role 'developer' is not"),
    ("keep", chat(thinking={"type": "enabled", "keep": 1}), "'thinking.keep'"),
    ("part without type", chat(p2.user([{"text": "a"}])), "invalid content part at messages[0].content[0]"),
    ("empty part", chat(p2.user([EMPTY_PART, p2.IMAGE])), "text content is empty"),
    ("empty part of a result", chat(*HISTORY[:2], p2.answer("c", [EMPTY_PART])), "text content is empty"),
    ("empty content", chat(p2.user("a"), p2.called(p2.call("c"), content=""), p2.answer("c")), "is empty"),
    ("video on the small k3", chat(p2.user([p2.VIDEO]), model="k3-256k"), "no video input"),
    ("thought missing", chat(*BARE_TURN), MISSING),
    ("k3 cannot be switched off", chat(*BARE_TURN, **K3, **OFF), MISSING),
    ("no answer", chat(p2.user("a"), p2.called(p2.call("c")), p2.user("b")), UNANSWERED),
    ("no answer at the end", chat(p2.user("a"), p2.called(p2.call("c"))), UNANSWERED),
    ("one of two", chat(p2.user("a"), p2.called(p2.call("c"), p2.call("d")), p2.answer("c")), "messages: d"),
    ("between", chat(p2.user("a"), p2.called(p2.call("c")), p2.system("s"), p2.answer("c")), UNANSWERED),
    ("orphan", chat(p2.user("a"), p2.answer("c")), "tool_call_id c is not found"),
    ("answered twice", chat(*HISTORY, p2.answer("c")), "tool_call_id c is not found"),
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

P2_ACCEPTED: list[Row] = [
    ("plain", chat(p2.system("S"), p2.user("a"))),
    ("k3", chat(p2.system("S"), p2.user("a"), p2.system("b"), **K3)),
    ("system in the middle", chat(p2.system("S"), p2.user("a"), p2.system("b"), *HISTORY, p2.system("c"))),
    ("history", chat(*HISTORY, p2.user("b"), tools=[p2.BASH], parallel_tool_calls=False)),
    ("no content", chat(p2.user("a"), p2.called(p2.call("B")), p2.answer("B", [p2.TEXT, p2.IMAGE]))),
    ("empty answer", chat(p2.user("a"), p2.called(p2.call("c")), p2.answer("c", ""))),
    ("ids repeat", chat(*HISTORY, *HISTORY)),
    ("no calls, no thought", chat(p2.user("a"), {"role": "assistant", "content": "b"}, p2.user("c"))),
    ("off", chat(*BARE_TURN, temperature=0.6, **OFF)),
    ("off and forced", chat(**FORCED, **OFF)),
    ("required on k3", chat(**K3, **REQUIRED)),
    ("no choice", chat(tools=[p2.BASH], tool_choice="none")),
    ("one temperature", chat(temperature=1)),
    ("effort inside", chat(thinking={"type": "enabled", "effort": "low"})),
    ("film", chat(p2.user([p2.TEXT, p2.VIDEO, STORED_VIDEO]))),
    ("builtin", chat(tools=[{"type": "builtin_function", "function": {"name": "$web_search"}}])),
    ("schemas", chat(tools=[p2.with_property(schema) for schema in TYPED])),
    ("no parameters", chat(tools=[{"type": "function", "function": {"name": "a"}}])),
    ("as the older client", chat(max_completion_tokens=None, max_tokens=5, reasoning_effort="low", thinking=None)),
    ("structured", chat(response_format={"type": "json_object"})),
]

KIMI = {"model": "kimi-k2.6"}
DEEPSEEK = {"model": "deepseek-v4-pro"}
EXTRA = "Extra inputs are not permitted"
SAID = {"role": "assistant", "content": "b"}
GO_TURN = (p2.user("a"), {**BARE_CALL, "content": ""}, p2.answer("c"))
BOTH = {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}

CHAT_REFUSED: list[Row] = [
    ("stop", go_chat(stop=["x"]), f"stop: {EXTRA}"),
    ("temperature of k3", go_chat(model="kimi-k3", temperature=0.5), TEMPERATURE.format(1)),
    ("effort of qwen", go_chat(model="qwen3.8-max", reasoning_effort="high"), "one of low, medium, xhigh"),
    ("thinking", go_chat(thinking={"type": "enabled"}), f"thinking: {EXTRA}"),
    ("cache", go_chat({**p2.user("a"), "cache_control": {}}), f"messages[0].cache_control: {EXTRA}"),
    ("system behind", go_chat(p2.user("b"), p2.system("c")), "messages[1]: a system message must be the first"),
    ("effort of glm", go_chat(reasoning_effort="low"), "one of high, max"),
    ("effort of mimo", go_chat(model="mimo-v2.5", reasoning_effort="max"), "one of low, medium, high"),
    ("effort of deepseek", go_chat(**DEEPSEEK, reasoning_effort="xhigh"), "one of low, medium, high, max"),
    ("deepseek", go_chat(p2.user("a"), SAID, p2.user("c"), **DEEPSEEK), "must be passed back to the API."),
    ("kimi without reasoning", go_chat(*GO_TURN, **KIMI), MISSING),
    ("kimi forced", go_chat(**KIMI, **FORCED), NO_CHOICE.format("specified")),
    ("kimi pair", go_chat(**KIMI, **BOTH), "cannot specify both 'thinking' and 'reasoning_effort'"),
    ("kimi empty text", go_chat(p2.user([EMPTY_PART, p2.IMAGE]), **KIMI), "text content is empty"),
    ("kimi schema", go_chat(**with_property({}), **KIMI), "At path 'properties.mode'"),
]

THOUGHT_OF_NOTHING = {**SAID, "reasoning_content": ""}

CHAT_ACCEPTED: list[Row] = [
    ("system first", go_chat(p2.system("a"), p2.user("b"), reasoning_effort="max")),
    ("history", go_chat(*GO_TURN, p2.user("b"))),
    ("forced", go_chat(**FORCED)),
    ("schema", go_chat(**with_property({}))),
    ("image for the blind", go_chat(p2.user([p2.IMAGE]))),
    ("kimi", go_chat(p2.user("a"), {**BARE_CALL, "reasoning_content": "."}, p2.answer("c"), **KIMI)),
    ("k3 required", go_chat(model="kimi-k3", **REQUIRED)),
    ("deepseek", go_chat(p2.user("a"), THOUGHT_OF_NOTHING, p2.user("c"), **DEEPSEEK)),
    ("effort of others", go_chat(model="hy3", reasoning_effort="low")),
    ("as opencode names a session", go_chat(**KIMI, temperature=0.5, top_p=0.95)),
    ("qwen", go_chat(model="qwen3.8-max", temperature=0.5, reasoning_effort="low")),
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
BETAS = ("context_management", "mcp_servers", "container", "stream_options", "safeguards")
TOOL_BETAS = ("defer_loading", "eager_input_streaming", "strict")
REFERENCE = {"type": "tool_reference", "tool_name": "x"}

MESSAGES_REFUSED: list[Row] = [
    *((name, go_messages(**{name: {}}), f"{name}: {EXTRA}") for name in BETAS),
    ("no limit", go_messages(max_tokens=None), "Missing required parameter: 'max_tokens'."),
    ("system role", go_messages(p2.system("b")), "'messages[0].role': expected 'user' or 'assistant'."),
    ("member", go_messages({**p2.user("a"), "cache": {}}), f"messages[0].cache: {EXTRA}"),
    ("no result", go_messages(p2.user("a"), CALLED, p2.user("b")), f"messages[2]: {NO_RESULT}"),
    ("no result at the end", go_messages(p2.user("a"), CALLED), NO_RESULT),
    ("orphan result", go_messages(turn("user", result("c"))), "unexpected `tool_use_id`"),
    ("result behind a text", go_messages(CALLED, turn("user", TEXT, result("c"))), "before other content"),
    ("two results", go_messages(CALLED, turn("user", result("c"), result("c"))), "a single result"),
    ("ids repeat", go_messages(turn("assistant", use("c"), use("c"))), "ids must be unique"),
    ("empty text", go_messages(turn("user", {**TEXT, "text": ""})), "must be non-empty"),
    ("tool reference", go_messages(CALLED, turn("user", result("c", [REFERENCE]))), "a block of a result"),
    *((name, go_messages(tools=[{**p4.BASH, name: True}]), f"tools[0].{name}: {EXTRA}") for name in TOOL_BETAS),
    ("display", go_messages(thinking={"type": "adaptive", "display": "omitted"}), f"thinking.display: {EXTRA}"),
    ("scope", go_messages(system=[{**TEXT, "cache_control": {"type": "x", "scope": "y"}}]), f"scope: {EXTRA}"),
    ("tool schema", go_messages(tools=[{**p4.BASH, "input_schema": {"type": 1}}]), "schema: In con"),
    ("choice without tools", go_messages(tool_choice={"type": "auto"}), "while providing tools"),
    ("choice of none such", choice(type="tool", name="x"), "Tool 'x' not found in provided tools"),
]

MESSAGES_ACCEPTED: list[Row] = [
    ("plain", go_messages(system="S", metadata={"user_id": "u"}, temperature=0.2, stop_sequences=["x"])),
    ("system blocks", go_messages(system=[{**TEXT, "cache_control": {"type": "ephemeral"}}])),
    ("linked picture", go_messages(turn("user", LINKED))),
    ("choice", choice(type="tool", name="Bash")),
    (
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

RESPONSES_REFUSED: list[Row] = [
    ("unknown member", go_responses(messages=[]), "Unknown parameter: 'messages'"),
    ("effort", go_responses(reasoning={"effort": "ultra"}), "'ultra'"),
    ("sealed elsewhere", go_responses(ELSEWHERE), "encrypted content"),
    ("orphan result", go_responses(p1.output("c")), "No tool call"),
    ("notes of Codex", go_responses({**p1.user("x"), **NOTES}), "Unknown parameter: 'input[0].internal_chat_"),
    ("item of Codex", go_responses(EFFORT_FROM_HERE), "Invalid value: 'configuration_update'."),
]


def _cases(**rows: list[Row]) -> list[Case]:
    return [Case(wire, *row) for wire, listed in rows.items() for row in listed]


HEADERS = _cases(p1=P1_HEADERS, p2=P2_HEADERS, p3=p3.HEADERS, **dict.fromkeys(p4.BODIES, GO_HEADERS))
REFUSED = _cases(
    p1=P1_REFUSED,
    p2=P2_REFUSED,
    p3=p3.REFUSED,
    chat=CHAT_REFUSED,
    messages=MESSAGES_REFUSED,
    responses=RESPONSES_REFUSED,
)
ACCEPTED = _cases(p1=P1_ACCEPTED, p2=P2_ACCEPTED, p3=p3.ACCEPTED, chat=CHAT_ACCEPTED, messages=MESSAGES_ACCEPTED)
