"""What property tests feed: JSON of any shape, requests and events that are nearly right, bytes in pieces."""

from __future__ import annotations

from typing import Any

from checks import BLOCK_DELTAS
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
names = st.sampled_from(
    ["Read", "Bash", "web_search", "x_search", "WebSearch", "DeferredToolPlaceholder", "n" * 70, "", "ü"]
)
signatures = st.sampled_from(
    [
        "",
        "EqQB",
        "ccp:codex:v1:cnNfMQ:enc",
        "model-proxy:p1:v1:cnNfMQ:",
        "model-proxy:p1:v1:%:x",
        "model-proxy:p3:v1:cg:e",
    ]
)
#: A PNG of 32 x 32.
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAAAElFTkSuQmCC"
media_types = st.sampled_from(["image/png", "image/svg+xml", "application/pdf", "text/plain", ""])
sources = members(
    type=st.sampled_from(["base64", "url", "text", "content", "file"]),
    media_type=media_types,
    data=st.sampled_from(["aGk=", "aGk", "***", "", PICTURE, PICTURE]),
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
    type=st.sampled_from(["tool_result", *BLOCK_DELTAS]),
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
_KEYWORDS = """
    type properties required items anyOf oneOf allOf enum const $ref $defs pattern patternProperties
    additionalProperties not default
"""
KEYWORDS = tuple(_KEYWORDS.split())
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
    type=st.sampled_from(["custom", "web_search_20250305", "web_fetch_20250910", "bash_20250124", "x_search", "new_2"]),
    name=names,
    description=texts,
    input_schema=schemas,
    allowed_domains=st.lists(texts | st.integers(), max_size=6),
    blocked_domains=st.lists(texts, max_size=1),
    user_location=members(city=texts),
    max_uses=st.integers(1, 2),
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
annotations = members(type=st.just("url_citation"), url=texts, title=texts, start_index=indexes)
parts = members(
    type=st.sampled_from(["output_text", "refusal"]),
    text=deltas,
    refusal=deltas,
    annotations=st.lists(mostly(annotations), max_size=2),
)
items = members(
    type=st.sampled_from(["message", "function_call", "reasoning", "web_search_call", "custom_tool_call"]),
    id=st.sampled_from(["i1", "i2", "", "rs-\ud800"]),
    call_id=ids,
    name=names.filter(bool) | st.just("x_keyword_search"),
    arguments=deltas,
    input=deltas,
    status=st.sampled_from(["completed", "incomplete"]),
    encrypted_content=deltas,
    content=st.lists(mostly(parts), max_size=2),
    summary=st.lists(mostly(members(type=st.just("summary_text"), text=deltas)), max_size=2),
    action=members(
        query=texts, queries=st.lists(texts, max_size=2), sources=st.lists(members(url=texts, title=texts), max_size=2)
    ),
)
#: Twice those that begin and end items, and the pieces of arguments.
_EVENT_NAMES = """
    created output_item.added output_item.added output_item.done output_item.done output_text.delta output_text.done
    output_text.annotation.added refusal.delta reasoning_summary_part.added reasoning_summary_text.delta
    function_call_arguments.delta function_call_arguments.delta function_call_arguments.done content_part.added failed
    content_part.done reasoning_summary_text.done reasoning_text.delta reasoning_text.done web_search_call.searching
    custom_tool_call_input.delta custom_tool_call_input.done
"""
EVENT_TYPES = ("keepalive", "codex.rate_limits", "error", *(f"response.{name}" for name in _EVENT_NAMES.split()))
ENDS = ("response.completed", "response.done", "response.incomplete")
events = st.fixed_dictionaries(
    {"type": st.sampled_from(EVENT_TYPES)},
    optional={
        "output_index": mostly(indexes),
        "content_index": indexes,
        "item_id": mostly(st.sampled_from(["i1", "i2"])),
        "call_id": ids,
        "part": parts,
        "item": mostly(items),
        "delta": mostly(deltas),
        "text": mostly(deltas),
        "arguments": mostly(deltas),
        "annotation": mostly(annotations),
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
                output=st.lists(mostly(items), max_size=3),
            )
        )
    },
)
streams = st.tuples(st.lists(events, max_size=25), st.lists(ends, max_size=2)).map(lambda pair: [*pair[0], *pair[1]])

# -- conversations as a client of an OpenAI-style route has them

said = st.text(min_size=1, max_size=12)
said_blocks = st.builds(lambda text: {"type": "text", "text": text}, said)
pictures = st.sampled_from(
    [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
        {"type": "image", "source": {"type": "url", "url": "https://pictures.example/a.png"}},
    ]
)
thoughts = st.builds(lambda text: {"type": "thinking", "thinking": text}, said)
outputs = texts | st.builds(lambda picture, rest: [picture, *rest], pictures, st.lists(said_blocks, max_size=2))


@st.composite
def conversations(draw: st.DrawFn, *, mixed: bool) -> list[dict[str, Any]]:
    """A legal Messages conversation whose calls are all answered, but for those of the last message. `mixed`: what the
    assistant says stands in any order; otherwise it is thoughts, texts, calls."""
    user = st.builds(
        lambda content: {"role": "user", "content": content},
        said | st.lists(said_blocks | pictures, min_size=1, max_size=3),
    )
    messages = [draw(user)]
    for _ in range(draw(st.integers(0, 4))):
        calls = [
            {"type": "tool_use", "id": call_id, "name": draw(st.sampled_from(["f", "g"])), "input": draw(json_objects)}
            for call_id in draw(st.lists(ids.filter(bool), unique=True, max_size=3))
        ]
        blocks = [*draw(st.lists(thoughts, max_size=1)), *draw(st.lists(said_blocks, max_size=2)), *calls]
        blocks = blocks or [draw(said_blocks)]
        messages.append({"role": "assistant", "content": draw(st.permutations(blocks)) if mixed else blocks})
        results = [
            {"type": "tool_result", "tool_use_id": call["id"], "content": draw(outputs)}
            for call in draw(st.permutations(calls))
        ]
        messages.append({"role": "user", "content": results} if results else draw(user))
    return messages[:-1] if len(messages) > 1 and draw(st.booleans()) else messages


def hub_requests(*, mixed: bool) -> st.SearchStrategy[dict[str, Any]]:
    """Messages requests as the parsers of the OpenAI-style bodies give them, `stream` left out."""
    declared = st.fixed_dictionaries({"name": said, "input_schema": json_objects}, optional={"description": texts})
    return st.fixed_dictionaries(
        {"model": said, "messages": conversations(mixed=mixed)},
        optional={
            "system": st.lists(said_blocks, min_size=1, max_size=3),
            "max_tokens": st.integers(1, 2**32 - 1),
            "tools": st.lists(declared, min_size=1, max_size=3, unique_by=lambda tool: tool["name"]),
            "output_config": st.fixed_dictionaries({"effort": st.sampled_from(["low", "max"])}),
        },
    )


# -- bodies of the OpenAI-style routes that are nearly right

addresses = st.sampled_from(
    ["data:image/png;base64,aGk=", "data:image/bmp;base64,aGk=", "data:,", "https://a.example/a.png", "ftp://a", ""]
)
open_parts = members(
    type=st.sampled_from(["text", "input_text", "output_text", "image_url", "input_image", "refusal"]),
    text=texts,
    image_url=addresses | members(url=addresses),
    url=addresses,
)
open_contents = mostly(texts | st.lists(mostly(open_parts), max_size=3))
call_ids = st.sampled_from(["a", "b", ""])
arguments = st.sampled_from(["", "{}", '{"a":1}', "[1]", "{", "\ud800", "[" * 2000])
open_functions = members(
    name=names, description=texts, parameters=json_objects, arguments=arguments, strict=st.booleans()
)
open_calls = members(type=st.just("function"), id=call_ids, function=open_functions, index=st.integers())
chat_messages = members(
    role=st.sampled_from(["system", "developer", "user", "user", "assistant", "assistant", "tool", "tool"]),
    content=open_contents,
    tool_calls=mostly(st.lists(mostly(open_calls), max_size=2)),
    tool_call_id=call_ids,
    reasoning_content=texts,
    name=texts,
)
open_items = members(
    type=st.sampled_from(
        ["message", "function_call", "function_call_output", "reasoning", "web_search_call", "item_reference"]
    ),
    role=st.sampled_from(["system", "developer", "user", "assistant"]),
    content=open_contents,
    call_id=call_ids,
    id=call_ids,
    name=names,
    namespace=names,
    arguments=arguments,
    output=open_contents,
    summary=st.lists(members(type=st.just("summary_text"), text=texts), max_size=2),
)
domains = mostly(st.lists(mostly(st.just("a.example")), max_size=2))
open_tools = members(
    type=st.sampled_from(["function", "namespace", "web_search", "web_search_preview", "x_search", "custom"]),
    name=names,
    description=texts,
    parameters=json_objects,
    function=open_functions,
    tools=st.lists(members(type=st.just("function"), name=names), max_size=2),
    filters=members(allowed_domains=domains, blocked_domains=domains, excluded_domains=domains, x=scalars),
    user_location=mostly(json_objects),
)
open_choices = st.sampled_from(["auto", "none", "required", "x"]) | members(
    type=st.sampled_from(["function", "web_search", "x_search"]), name=names, function=members(name=names)
)


def _open_bodies(**own: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    shared = {
        "stream": st.booleans(),
        "tools": st.lists(mostly(open_tools), max_size=3),
        "tool_choice": open_choices,
        "parallel_tool_calls": st.booleans(),
    }
    good = shared | own
    return st.fixed_dictionaries(
        {"model": st.just("m")}, optional={name: mostly(mostly(value)) for name, value in good.items()}
    )


OPEN_BODIES = {
    "chat": _open_bodies(
        messages=st.lists(mostly(mostly(chat_messages)), max_size=5),
        stream_options=members(include_usage=st.booleans(), include_obfuscation=st.booleans()),
        max_tokens=st.integers(),
        reasoning_effort=st.sampled_from(["low", "none"]),
        n=st.integers(0, 2),
        temperature=scalars,
    ),
    "responses": _open_bodies(
        input=texts | st.lists(mostly(mostly(open_items)), max_size=5),
        instructions=texts,
        max_output_tokens=st.integers(),
        reasoning=members(effort=st.sampled_from(["low", "none"]), summary=st.sampled_from(["auto", "x"])),
        store=st.booleans(),
        include=st.lists(texts, max_size=1),
        text=members(format=members(type=st.just("text"))),
        stream_options=members(include_obfuscation=st.booleans()),
    ),
}
