"""P1's own compaction of a conversation, as data: what is asked for, what is kept of the answer, and its place in later
requests.

The backend can turn a conversation into one encrypted item, which the model reads better than any summary in words.
Claude Code does not know of it: it asks for a summary and begins its next request with that. So both are made, and the
encrypted item replaces the summary when that comes back. Pure; sending and remembering happen elsewhere.

In an `input` the *envelope* leads, `additional_tools` and developer messages; the *conversation* is all else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from proxy.core.effort import is_instruction

Item = dict[str, Any]

#: The last item of an input, which asks to compact everything before it.
TRIGGER: Item = {"type": "compaction_trigger"}

#: The newest messages up to this limit stay beside the encrypted item.
RETAINED_TOKENS = 20_000
#: A coarse measure for that limit, since it need not agree with any bill.
BYTES_A_TOKEN = 4
IMAGE_TOKENS = 2000

#: A shorter summary may occur anywhere in a conversation, so it would not show where the item belongs.
MIN_SUMMARY_BYTES = 32

_RETAINED_ROLES = frozenset({"user", "developer", "system"})


def split(items: Sequence[Item]) -> tuple[list[Item], list[Item]]:
    """Envelope and conversation of an input."""
    length = next((position for position, item in enumerate(items) if not _is_envelope(item)), len(items))
    return list(items[:length]), list(items[length:])


def _is_envelope(item: Item) -> bool:
    kind = item.get("type")
    return kind == "additional_tools" or (kind == "message" and item.get("role") == "developer")


# -- the request


def compaction_body(body: Mapping[str, Any]) -> dict[str, Any]:
    """The request for the encrypted item, made from the translated request for a summary, which is not changed."""
    envelope, conversation = split(body["input"])
    tools = [item for item in envelope if item["type"] == "additional_tools"]
    kept = {name: value for name, value in body.items() if name != "instructions"}
    items = [*tools, *without_instruction(conversation), TRIGGER]
    return {**kept, "input": items, "include": ["reasoning.encrypted_content"]}


def without_instruction(conversation: Sequence[Item]) -> list[Item]:
    """The conversation without the request for a summary: those texts in the user's last message are removed."""
    place = next(
        (place for place in reversed(range(len(conversation))) if conversation[place].get("role") == "user"), None
    )
    if place is None:
        return list(conversation)
    message = conversation[place]
    parts = [part for part in message["content"] if not is_instruction(part.get("text") or "")]
    asked = [{**message, "content": parts}] if parts else []
    return [*conversation[:place], *asked, *conversation[place + 1 :]]


# -- what is kept


def encrypted_content(event: Mapping[str, Any]) -> str | None:
    """The content of the encrypted item that an event completes; None for any other event."""
    item = event.get("item")
    if event.get("type") != "response.output_item.done" or not isinstance(item, Mapping):
        return None
    content = item.get("encrypted_content")
    return content if item.get("type") == "compaction" and isinstance(content, str) and content else None


def native_history(body: Mapping[str, Any], encrypted: str) -> list[Item]:
    """The replacement of the conversation from now on: its newest messages, and the encrypted item.

    body  the translated request for a summary
    """
    _, conversation = split(body["input"])
    kept = _retained(without_instruction(conversation))
    return [*kept, {"type": "compaction", "encrypted_content": encrypted}]


def _retained(conversation: Sequence[Item]) -> list[Item]:
    """The newest messages within the limit, in their order. The first that does not fit is cut, and is the last."""
    kept: list[Item] = []
    left = RETAINED_TOKENS
    for item in reversed(conversation):
        if item.get("type") != "message" or item.get("role") not in _RETAINED_ROLES:
            continue
        tokens = message_tokens(item)
        if tokens > left:
            parts = _cut(item["content"], left * BYTES_A_TOKEN)
            if parts:
                kept.append({**item, "content": parts})
            break
        kept.append(item)
        left -= tokens
    return kept[::-1]


def message_tokens(message: Item) -> int:
    """Tokens of a message towards the limit, at least 1."""
    return max(1, sum(_part_tokens(part) for part in message["content"]))


def _part_tokens(part: Mapping[str, Any]) -> int:
    return -(-len(_utf8(part["text"])) // BYTES_A_TOKEN) if "text" in part else IMAGE_TOKENS


def _cut(parts: Sequence[Item], size: int) -> list[Item]:
    """The beginning of the texts, `size` bytes in all; images stay."""
    kept: list[Item] = []
    for part in parts:
        if "text" not in part:
            kept.append(part)
            continue
        data = _utf8(part["text"])[:size]
        size -= len(data)
        text = data.decode("utf-8", "ignore")
        if text:
            kept.append({**part, "text": text})
    return kept


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


# -- the summary


def summary_of(answer: str) -> str | None:
    """The summary in an answer as the client will send it back, or None when it is too short to be recognised.

    >>> summary_of("<analysis>hm</analysis><summary> The user wants a parser for dates. </summary>")
    'The user wants a parser for dates.'
    """
    # Two events with half a character each give the client one character.
    whole = answer.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    before, _, after = _around(whole, "analysis") or (whole, "", "")
    whole = before + after
    _, inside, _ = _around(whole, "summary") or ("", "", "")
    summary = _with_few_blank_lines(inside.strip() or whole.strip())
    return summary if len(_utf8(summary)) >= MIN_SUMMARY_BYTES else None


def _around(text: str, tag: str) -> tuple[str, str, str] | None:
    """The text before, inside and after the first element of this name; None when none is closed. A pattern would
    search for the end again from every beginning."""
    before, _, rest = text.partition(f"<{tag}>")
    inside, end, after = rest.partition(f"</{tag}>")
    return (before, inside, after) if end else None


def _with_few_blank_lines(text: str) -> str:
    """Collapses runs of blank lines to one, as clients do with a summary. Two or three rounds are enough, where a
    pattern takes ten times as long; the text can be as long as a request."""
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text


def mismatch(conversation: Sequence[Item], summary: str) -> str | None:
    """Why this conversation does not begin with the summary; None when it does."""
    first = conversation[0]
    if first.get("type") != "message":
        return "no_message"
    found = sum(_occurrences(part, summary) for part in first["content"])
    return None if found == 1 else "summary_repeated" if found else "summary_missing"


def _occurrences(part: Mapping[str, Any], summary: str) -> int:
    return _with_few_blank_lines(part.get("text") or "").count(summary)


def replayed(items: Sequence[Item], history: Sequence[Item], summary: str) -> list[Item]:
    """An input with the history in the place of its summary. The rest of the first message follows: the client puts
    reminders there, and the next prompt when that came at once."""
    envelope, conversation = split(items)
    first = conversation[0]
    parts = [part for part in first["content"] if not _occurrences(part, summary)]
    rest = [{**first, "content": parts}] if parts else []
    return [*envelope, *history, *rest, *conversation[1:]]
