"""What property tests feed: JSON of any shape, requests and events that are nearly right, bytes in pieces."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

texts = st.text(max_size=12)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
)
json_values = st.recursive(
    scalars, lambda child: st.lists(child, max_size=3) | st.dictionaries(texts, child, max_size=3), max_leaves=8
)
json_objects = st.dictionaries(texts, json_values, max_size=4)


def mostly(good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A value of the right kind three times out of four, else anything."""
    return st.one_of(good, good, good, json_values)


def members(**good: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """An object with some of these members, each mostly of the right kind."""
    return st.fixed_dictionaries({}, optional={name: mostly(value) for name, value in good.items()})


def pieces(text: Any, cuts: list[int]) -> list[Any]:
    """`text` (or bytes) cut at these places, in any order and beyond the end."""
    places = sorted(cut % (len(text) + 1) for cut in cuts)
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


cut_places = st.lists(st.integers(0, 10_000), max_size=12)

# -- requests

ids = st.sampled_from(["call_1", "call_1__u2", "c2", "", "x" * 70, "toolu_ü"])
names = st.sampled_from(["Read", "Bash", "web_search", "DeferredToolPlaceholder", "n" * 70, "", "ü"])
signatures = st.sampled_from(
    ["", "EqQB", "ccp:codex:v1:cnNfMQ:enc", "model-proxy:p1:v1:cnNfMQ:", "model-proxy:p1:v1:%:x"]
)
media_types = st.sampled_from(["image/png", "image/svg+xml", "application/pdf", "text/plain", ""])
sources = members(
    type=st.sampled_from(["base64", "url", "text", "content", "file"]),
    media_type=media_types,
    data=st.sampled_from(["aGk=", "aGk", "***", ""]),
    url=texts,
    content=json_values,
)
leaf_blocks = members(
    type=st.sampled_from(["text", "image", "document", "search_result", "tool_reference", "foo"]),
    text=texts,
    source=sources,
    title=texts,
    context=texts,
    content=json_values,
    tool_name=names,
)
blocks = leaf_blocks | members(
    type=st.sampled_from(
        [
            "text",
            "tool_use",
            "tool_result",
            "thinking",
            "redacted_thinking",
            "server_tool_use",
            "web_search_tool_result",
        ]
    ),
    text=texts,
    id=ids,
    tool_use_id=ids,
    name=names,
    input=json_values,
    content=mostly(st.lists(mostly(leaf_blocks), max_size=3)),
    is_error=st.booleans(),
    thinking=texts,
    signature=signatures,
)
contents = mostly(texts | st.lists(mostly(blocks), max_size=5))
messages = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "system", "tool"]), "content": contents}),
    max_size=5,
)
KEYWORDS = (
    "type",
    "properties",
    "required",
    "items",
    "anyOf",
    "oneOf",
    "allOf",
    "enum",
    "const",
    "$ref",
    "$defs",
    "pattern",
    "patternProperties",
    "additionalProperties",
    "not",
    "default",
)
schemas = st.recursive(
    members(
        type=st.sampled_from(["object", "string", "array", "null"]) | st.lists(texts, max_size=2),
        pattern=st.sampled_from(["^a$", "\\p{L}", "[[a]", "("]),
        required=st.lists(names | st.integers(), max_size=3),
    ),
    lambda child: st.dictionaries(
        st.sampled_from(KEYWORDS),
        mostly(child | st.lists(child, max_size=2) | st.dictionaries(texts, child, max_size=3)),
        max_size=4,
    ),
    max_leaves=8,
)
tools = members(
    type=st.sampled_from(["custom", "web_search_20250305", "web_fetch_20250910", "bash_20250124"]),
    name=names,
    description=texts,
    input_schema=schemas,
    allowed_domains=st.lists(texts | st.integers(), max_size=2),
    defer_loading=st.booleans(),
)
requests = st.fixed_dictionaries(
    {"messages": messages},
    optional={
        "model": texts,
        "system": mostly(texts | st.lists(mostly(leaf_blocks), max_size=3)),
        "tools": mostly(st.lists(mostly(tools), max_size=4)),
        "tool_choice": mostly(
            members(
                type=st.sampled_from(["auto", "any", "tool", "none", "x"]),
                name=names,
                disable_parallel_tool_use=st.booleans(),
            )
            | st.sampled_from(["auto", "any", "x"])
        ),
        "output_config": mostly(
            members(
                effort=st.sampled_from(["low", "x"]),
                format=members(
                    type=st.sampled_from(["json_schema", "json_object", "x"]),
                    schema=schemas,
                    name=texts,
                ),
            )
        ),
        "output_format": json_values,
        "metadata": mostly(
            members(user_id=st.sampled_from(["", "[" * 1500, "1", '{"session_id":3}', "user_a_session_b"]))
        ),
        "stop_sequences": mostly(st.lists(mostly(texts), max_size=3)),
        "thread": json_values,
        "stream": st.booleans(),
        "speed": json_values,
        "max_tokens": st.integers(0, 100),
    },
)

# -- events of a Responses stream

indexes = st.sampled_from([0, 1, 2])
deltas = st.sampled_from(
    ["a", "", '{"a":1}', '{"file_path":"/a"}', "null", "{", "}", ",", '"', "\\", " " * 600, "\ud83d", "x"]
)
items = members(
    type=st.sampled_from(["message", "function_call", "reasoning", "web_search_call"]),
    id=st.sampled_from(["i1", "i2", "", "rs-\ud800"]),
    call_id=ids,
    name=names.filter(bool),
    arguments=deltas,
    status=st.sampled_from(["completed", "incomplete"]),
    encrypted_content=deltas,
    content=st.lists(
        mostly(
            members(
                type=st.sampled_from(["output_text", "refusal"]),
                text=deltas,
                refusal=deltas,
                annotations=json_values,
            )
        ),
        max_size=2,
    ),
    action=members(
        query=texts, queries=st.lists(texts, max_size=2), sources=st.lists(members(url=texts, title=texts), max_size=2)
    ),
)
EVENT_TYPES = (
    "response.created",
    "keepalive",
    "codex.rate_limits",
    "response.output_item.added",
    "response.output_item.added",
    "response.output_item.done",
    "response.output_item.done",
    "response.output_text.delta",
    "response.output_text.done",
    "response.output_text.annotation.added",
    "response.refusal.delta",
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_text.delta",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.content_part.added",
    "response.failed",
    "error",
)
ENDS = ("response.completed", "response.done", "response.incomplete")
events = st.fixed_dictionaries(
    {"type": st.sampled_from(EVENT_TYPES)},
    optional={
        "output_index": mostly(indexes),
        "item_id": mostly(st.sampled_from(["i1", "i2"])),
        "item": mostly(items),
        "delta": mostly(deltas),
        "text": mostly(deltas),
        "arguments": mostly(deltas),
        "annotation": mostly(members(type=st.just("url_citation"), url=texts, title=texts)),
        "error": json_values,
        "status": json_values,
        "code": json_values,
        "message": json_values,
        "headers": json_values,
        "rate_limits": json_values,
        "response": json_values,
    },
)
ends = st.fixed_dictionaries(
    {"type": st.sampled_from(ENDS)},
    optional={
        "response": mostly(
            members(
                usage=members(
                    input_tokens=st.integers(-5, 50), output_tokens=st.integers(), input_tokens_details=json_values
                ),
                incomplete_details=members(reason=st.sampled_from(["max_output_tokens", "content_filter", "x"])),
                status=texts,
                error=json_values,
            )
        )
    },
)
streams = st.tuples(st.lists(events, max_size=25), st.lists(ends, max_size=2)).map(lambda pair: [*pair[0], *pair[1]])
