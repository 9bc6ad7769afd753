"""Bodies and headers for the simulated P3, see `refusal_cases`."""

from __future__ import annotations

from typing import Any

import p1_sandbox_client as p1
from p1_sandbox_client import BASH, assistant, call, grok, output, user
from pictures import png

from proxy.sandbox.p3.catalog import encrypt_for
from proxy.sandbox.wires.encrypted_content import encrypt

#: Name, what is sent, words, and the status if it is no 400.
Row = tuple[Any, ...]

OUTDATED = "is outdated. Please update to version 0.1.202"
HEADERS: list[Row] = [
    ("no bearer", {"authorization": None}, "unauthenticated:bad-credentials", 401),
    ("unknown bearer", {"authorization": "Bearer x"}, "could not be validated", 401),
    ("no kind", {"x-xai-token-auth": None}, "Unknown auth kind: (none)", 401),
    ("other kind", {"x-xai-token-auth": "api-key"}, "Unknown auth kind: api-key", 401),
    ("no client", {"x-grok-client-identifier": None}, "permission-denied", 403),
    ("other client", {"x-grok-client-identifier": "me"}, "Unknown client: me", 403),
    ("no version", {"x-grok-client-version": None}, f'"error":"Your Grok CLI version (none) {OUTDATED}', 426),
    ("empty version", {"x-grok-client-version": ""}, f"version (none) {OUTDATED}", 426),
    ("odd version", {"x-grok-client-version": "latest"}, f"version latest {OUTDATED}", 426),
    ("old version", {"x-grok-client-version": "0.1.99"}, f"version 0.1.99 {OUTDATED}", 426),
    ("not JSON", {"content-type": "text/plain"}, "Content-Type: application/json", 415),
    ("accepts JSON", {"accept": "application/json"}, "text/event-stream", 406),
]


def bash(parameters: Any) -> dict[str, Any]:
    """A body that offers one tool with these parameters."""
    return grok(tools=[{"type": "function", "name": "Bash", "parameters": parameters}])


def web(**members: Any) -> dict[str, Any]:
    return grok(tools=[{"type": "web_search", **members}])


def posts(**members: Any) -> dict[str, Any]:
    return grok(tools=[{"type": "x_search", **members}])


def chosen(choice: Any, *tools: dict[str, Any]) -> dict[str, Any]:
    return grok(tools=list(tools) or [BASH, {"type": "web_search"}], tool_choice=choice)


def message(role: str, *parts: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": list(parts)}


def thought(**members: Any) -> dict[str, Any]:
    return {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": READABLE, **members}


def picture(data: str, kind: str = "image/png") -> dict[str, Any]:
    return {"type": "input_image", "image_url": f"data:{kind};base64,{data}"}


READER = "user-sandbox/grok-4"
READABLE = encrypt_for(READER, "rs_1", "")
TEXT = {"type": "input_text", "text": "x"}
SAID = {"type": "output_text", "text": "x"}
HOSTED = {"type": "web_search"}
OBJECT = {"type": "object", "properties": {}}
SIX = [f"{letter}.example" for letter in "abcdef"]
FIELD = "Failed to deserialize the JSON body into the target type: "
UNION = {"type": "object", "$defs": {"a": {"type": "array"}}}
NO_MEMBERS = (
    *("previous_response_id", "prompt_cache_retention", "safety_identifier", "stream_options", "stop", "user"),
    *("service_tier", "truncation", "client_metadata", "messages", "context_management", "max_tokens"),
)
ALLOWED = {"type": "allowed_tools", "mode": "required", "tools": [HOSTED]}
SCHEMA = {"type": "json_schema", "name": "r", "schema": {"type": "object"}}

REFUSED: list[Row] = [
    *((name, grok(**{name: None}), f"Argument not supported: {name}") for name in NO_MEMBERS),
    ("no model", grok(model=None), FIELD, 422),
    ("unknown model", grok(model="grok-9"), "The model grok-9 does not exist"),
    ("no stream", grok(stream=False), "stream must be true"),
    ("stream left out", {name: value for name, value in grok().items() if name != "stream"}, "stream must be true"),
    ("no input", grok(input=[]), f"{FIELD}Missing required parameter: 'input'", 422),
    ("text for input", grok(input="hi"), FIELD, 422),
    ("odd instructions", grok(instructions=1), f"{FIELD}Invalid type for 'instructions'", 422),
    ("odd limit", grok(max_output_tokens=0), "max_output_tokens", 422),
    ("effort", grok(reasoning={"effort": "max"}), "Supported values: none, low, medium, high, xhigh."),
    ("effort of the older", grok(model="grok-4.5", reasoning={"effort": "xhigh"}), "none, low, medium, high."),
    ("member of reasoning", grok(reasoning={"context": "auto"}), "reasoning.context"),
    ("verbosity", grok(text={"verbosity": "low"}), "text.verbosity"),
    ("format", grok(text={"format": {**SCHEMA, "schema": {"type": 1}}}), "Invalid schema for text.format"),
    ("include", grok(include=["web_search_call.results"]), "include[0]"),
    # tools
    ("choice without tools", grok(tool_choice="auto"), "A tool_choice was set on the request but no tools"),
    ("choice with an empty list", grok(tools=[], tool_choice="none"), "tool_choice"),
    ("parallel without tools", grok(parallel_tool_calls=True), "A parallel_tool_calls was set"),
    ("choice of a hosted tool", chosen({"type": "web_search"}), "Invalid tool_choice"),
    ("choice of none such", chosen({"type": "function", "name": "Read"}), "is not among the tools"),
    ("choice among none such", chosen({**ALLOWED, "tools": [{"type": "x_search"}]}), "is not among the tools"),
    ("choice of a custom tool", chosen({"type": "custom", "name": "Bash"}), "Invalid tool_choice"),
    ("choice in an odd word", chosen("any"), "Invalid tool_choice: any"),
    ("custom tool", grok(tools=[{"type": "custom", "name": "a"}]), "Unsupported tool type: custom"),
    ("namespace", grok(tools=[{"type": "namespace", "name": "a", "tools": []}]), "Unsupported tool type: namespace"),
    ("preview", grok(tools=[{"type": "web_search_preview"}]), "Unsupported tool type: web_search_preview"),
    ("code on the older", grok(model="grok-4.5", tools=[{"type": "code_interpreter"}]), "not supported by this model"),
    ("twins", grok(tools=[BASH, BASH]), "Duplicate tool name: Bash"),
    ("function under a hosted name", grok(tools=[HOSTED, p1.tool("web_search")]), "Duplicate tool name: web_search"),
    ("function called x_search", grok(tools=[p1.tool("x_search"), {"type": "x_search"}]), "name: x_search"),
    ("hosted twice", grok(tools=[HOSTED, HOSTED]), "Duplicate tool name: web_search"),
    ("external access", web(external_web_access=True), "external_web_access"),
    ("six domains", web(filters={"allowed_domains": SIX}), "1 to 5 texts"),
    ("no domain", web(filters={"excluded_domains": []}), "filters.excluded_domains"),
    ("both lists", web(filters={"allowed_domains": ["a"], "excluded_domains": ["b"]}), "Only one of allowed_domains"),
    ("blocked domains", web(filters={"blocked_domains": ["a"]}), "blocked_domains"),
    ("kind of place", web(user_location={"type": "exact"}), "user_location.type"),
    ("empty place", web(user_location={"type": "approximate", "city": ""}), "user_location.city", 422),
    ("both handles", posts(allowed_x_handles=["a"], excluded_x_handles=["b"]), "Only one of allowed_x_handles"),
    ("odd date", posts(from_date="yesterday"), "a date as YYYY-MM-DD", 422),
    ("no schema", grok(tools=[{"type": "function", "name": "Bash"}]), "must be a schema of type object"),
    ("empty schema", bash({}), "Invalid schema for function 'Bash': function parameters must be"),
    ("no object", bash({"type": "array"}), "must be a schema of type object"),
    ("malformed schema", bash({"type": "object", "properties": 1}), "'properties' is not an object"),
    ("branch without type", bash({**OBJECT, "anyOf": [OBJECT, {}]}), "each branch of a union at the root"),
    ("branch elsewhere", bash({**UNION, "oneOf": [{"$ref": "#/$defs/a"}]}), "each branch of a union at the root"),
    # items
    ("developer", grok(message("developer", TEXT)), "Invalid role at input[0].role: developer"),
    ("words of the user by the assistant", grok(message("assistant", TEXT)), "Unsupported content type"),
    ("words of the assistant by the user", grok(message("user", SAID)), "Unsupported content type at input[0].content"),
    ("picture by the system", grok(message("system", picture(png()))), "Unsupported content type"),
    ("file", grok(message("user", {"type": "input_file", "file_id": "f"})), "input_file"),
    ("item of P1", grok({"type": "additional_tools", "role": "developer", "tools": []}), "additional_tools"),
    ("reference", grok({"type": "item_reference", "id": "x"}), "item_reference"),
    (
        "foreign custom call",
        grok({"type": "custom_tool_call", "call_id": "c", "name": "y", "input": ""}),
        "custom tool",
    ),
    ("result of nothing", grok(user("a"), output("c")), "No open function call for the output at input[1]: c"),
    ("two results", grok(call("c"), output("c"), output("c")), "No open function call"),
    ("ids repeat", grok(call("c"), output("c"), call("c"), output("c")), "Duplicate call_id at input[2]: c"),
    ("no result", grok(call("c"), user("a")), "No tool output found for function call c."),
    ("one result of two", grok(call("c"), call("d"), output("d"), user("a")), "function call c"),
    # thoughts
    ("status of a thought", grok(thought(status="completed")), "input[0].status"),
    ("null content", grok(thought(content=None)), "input[0].content must not be null"),
    ("null secret", grok(thought(encrypted_content=None)), "encrypted_content must not be null"),
    ("odd content", grok(thought(content=[{"type": "text", "text": "x"}])), "input[0].content[0].type", 422),
    ("thought of P1", grok(thought(encrypted_content=encrypt("acct-sandbox", "rs_1"))), "encrypted_content"),
    ("thought of another family", grok(thought(), model="grok-composer-2.5-fast"), "made for another model"),
    # pictures
    ("tiny picture", grok(message("user", picture(png(1, 1)))), "Image is too small: 1x1"),
    ("narrow picture", grok(message("user", picture(png(7, 99)))), '"code":"invalid_image"'),
    ("small picture", grok(message("user", picture(png(16, 16)))), "Image is too small: 16x16"),
    ("small picture in a result", grok(call("c"), output("c", [picture(png(8, 63))])), "8x63"),
    ("no picture", grok(message("user", picture("aGk="))), "Could not process image"),
    ("no base64", grok(message("user", picture("%%%"))), "Could not process image"),
    (
        "plain link",
        grok(message("user", {**picture(""), "image_url": "http://e.example/a"})),
        "Could not process image",
    ),
]

ACCEPTED: list[Row] = [
    ("words before the result", grok(call("c"), assistant("a"), user("b"), output("c"))),
    ("no result yet", grok(user("a"), call("c"), assistant("b"))),
    ("plain", grok(temperature=1.0, top_p=0.9, metadata={"a": "b"}, prompt_cache_key="k", stream_tool_calls=True)),
    (
        "history",
        grok(
            {"role": "system", "content": "Be brief."},
            message("system", TEXT),
            message("user", TEXT, picture(png()), {"type": "input_image", "image_url": "https://e.example/a"}),
            thought(summary=[{"type": "summary_text", "text": "Hm."}]),
            {**call("c"), "id": "fc_1", "status": "completed"},
            call("d", "Read"),
            output("d", [TEXT, {**picture(png(8, 64)), "detail": "auto"}]),
            output("c"),
            message("assistant", SAID, {"type": "refusal", "refusal": "no"}),
            thought(content=[{"type": "reasoning_text", "text": "Hm."}]),
            {
                "type": "web_search_call",
                "id": "ws_1",
                "status": "completed",
                "action": {"type": "search", "query": "q"},
            },
            {
                "type": "custom_tool_call",
                "call_id": "xs_call_1",
                "id": "ctc_1",
                "name": "x_keyword_search",
                "input": "{}",
            },
            {"role": "assistant", "content": "Well."},
            user("go on"),
            call("open"),
        ),
    ),
    (
        "tools",
        grok(
            tools=[
                {**BASH, "description": "Runs."},
                {
                    "type": "web_search",
                    "filters": {"allowed_domains": SIX[:5]},
                    "user_location": {"type": "approximate", "city": "Oslo"},
                },
                {"type": "x_search", "allowed_x_handles": ["a"], "from_date": "2026-01-01", "to_date": "2026-02-01"},
                {"type": "code_interpreter"},
            ],
            tool_choice={"type": "function", "name": "Bash"},
            parallel_tool_calls=False,
            include=["reasoning.encrypted_content", "web_search_call.action.sources", "no_inline_citations"],
            reasoning={"effort": "xhigh", "summary": "concise"},
            text={"format": {**SCHEMA, "strict": True, "description": "d"}},
        ),
    ),
    ("choice among hosted tools", chosen(ALLOWED)),
    ("required", chosen("required", HOSTED)),
    ("no choice", chosen("none")),
    ("any JSON", grok(text={"format": {"type": "json_object"}})),
    ("union of objects", bash({**UNION, "$defs": {"a": OBJECT}, "anyOf": [{"$ref": "#/$defs/a"}, OBJECT]})),
    ("composer", grok(model="grok-composer-2.5-fast", reasoning={"effort": "none"}, text={"format": {"type": "text"}})),
]
