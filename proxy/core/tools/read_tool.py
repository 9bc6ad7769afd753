"""Claude Code's `Read` tool, which GPT models tend to misuse: guidance before, repair after.

They send `pages: ""`, which the client refuses, use byte counts as line offsets, and sometimes emit endless blanks
instead of closing the arguments. Only the tool named exactly `Read` is changed: elsewhere an empty string has a meaning
(`Write.content`).
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from proxy.core.content import texts_of
from proxy.core.identity import Owner
from proxy.core.sse import dump_json

NAME = "Read"

#: An offset this large is a byte count or a guess, never a line of a source file.
MAX_OFFSET = 1_000_000
#: Maximum number of dropped offsets that are remembered until their results come back.
MAX_REMEMBERED = 4096
#: Longest arguments of one Read call, which are held until complete.
MAX_ARGUMENTS = 5_000_000
#: This many blanks at the end of unfinished arguments mean that the model is stuck.
STALL_BLANKS = 1024

RULES_HEAD = "Read paging rules:"
_RULES = (
    f"{RULES_HEAD} `offset` is an optional zero-based continuation index, not a line lookup. Use it only after an"
    " earlier Read of the same file returned content and more lines are needed; compute it as the previous offset plus"
    " the number of lines returned. Printed line numbers, grep line numbers, byte or token counts, file sizes and"
    " guesses are not offsets. Leave out `offset` and `limit` when opening a file or when unsure."
)
_OFFSET_TEXT = (
    "Optional zero-based continuation index: previous offset plus the number of lines returned by an earlier Read of"
    " this file. Not a line number, byte count or guess; leave it out when opening a file."
)
_LIMIT_TEXT = "Optional number of lines. Leave it out when opening a file; use it together with offset to continue."
_NOTE_HEAD = "Read offset note:"

#: Replaces the owner within one request.
NOBODY = Owner("")


Scope = tuple[Owner, bytes]


class OffsetStore:
    """Offsets that were removed from Read calls, until their results come back with the next request.

    One object a provider. Ids of calls are unique only within a conversation, so an entry belongs to one conversation
    of one owner, identified by a digest of its first message. Without an owner, entries end with the request. Bounded,
    oldest dropped first.
    """

    def __init__(self, limit: int = MAX_REMEMBERED) -> None:
        self._limit = limit
        self._entries: OrderedDict[tuple[Scope, str], tuple[int, str]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def of(self, owner: Owner | None, request: Mapping[str, Any]) -> ReadOffsets:
        """The offsets of the conversation that a Messages request belongs to."""
        return ReadOffsets() if owner is None else ReadOffsets(self, owner, request)

    def put(self, scope: Scope, call_id: str, entry: tuple[int, str]) -> None:
        self._entries[scope, call_id] = entry
        self._entries.move_to_end((scope, call_id))
        if len(self._entries) > self._limit:
            self._entries.popitem(last=False)

    def get(self, scope: Scope, call_id: str) -> tuple[int, str] | None:
        return self._entries.get((scope, call_id))


class ReadOffsets:
    """The removed offsets of one request's conversation: call id -> (offset, file path)."""

    def __init__(
        self,
        store: OffsetStore | None = None,
        owner: Owner = NOBODY,
        request: Mapping[str, Any] | None = None,
    ) -> None:
        self._store = OffsetStore() if store is None else store
        self._owner = owner
        self._request = request or {}

    @cached_property
    def _scope(self) -> Scope:
        return self._owner, conversation_digest(self._request)

    def remember(self, call_id: str, offset: int, file_path: str) -> None:
        if call_id:
            self._store.put(self._scope, call_id, (offset, file_path))

    def note(self, call_id: str) -> str | None:
        """A note to the model about the offset that was removed from a call, None if none was."""
        entry = self._store.get(self._scope, call_id) if len(self._store) else None
        if entry is None:
            return None
        offset, path = entry
        return (
            f"{_NOTE_HEAD} the requested offset {offset} for {path} exceeded the limit of {MAX_OFFSET}, so this Read"
            " started at the top of the file. To continue, use the previous offset plus the number of lines returned."
        )


def conversation_digest(request: Mapping[str, Any]) -> bytes:
    """Identifies a conversation of an owner by the text of its first message, which every later request repeats. Cache
    marks and the form of the text may change, so they do not count."""
    messages = request.get("messages") or [{}]
    texts = texts_of(messages[0].get("content"))
    return hashlib.blake2b("\0".join(texts).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def guided_definition(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a function tool `{"name", "description", "parameters"}` with the paging rules in its texts."""
    guided = dict(tool)
    description = tool.get("description")
    base = description if isinstance(description, str) and description else "Reads a file from the local file system."
    guided["description"] = f"{base}\n\n{_RULES}"
    parameters = tool.get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
    if isinstance(parameters, Mapping) and isinstance(properties, Mapping):
        patched = dict(properties)
        for name, text in (("offset", _OFFSET_TEXT), ("limit", _LIMIT_TEXT)):
            if isinstance(patched.get(name), Mapping):
                patched[name] = {**patched[name], "description": text}
        guided["parameters"] = {**parameters, "properties": patched}
    return guided


def repair_arguments(text: str, call_id: str, offsets: ReadOffsets) -> str:
    """The argument text of a Read call as the client accepts it; unchanged if nothing is wrong."""
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(arguments, dict):
        return text
    repaired = dict(arguments)
    pages = repaired.get("pages", "1")
    if pages is None or (isinstance(pages, str) and not pages.strip()):
        del repaired["pages"]
    offset = repaired.get("offset")
    if isinstance(offset, int) and not isinstance(offset, bool) and offset >= MAX_OFFSET:
        del repaired["offset"]
        offsets.remember(call_id, offset, str(repaired.get("file_path", "")))
    return text if repaired == arguments else dump_json(repaired)


_PLAUSIBLE = {
    "file_path": lambda value: isinstance(value, str) and value != "",
    "offset": lambda value: type(value) is int and value >= 0,
    "limit": lambda value: type(value) is int and value > 0,
    "pages": lambda value: isinstance(value, str),
}


def stalled_arguments(text: str) -> str | None:
    """Complete arguments from a text that ends in a long run of blanks; None if it does not, or they are incomplete."""
    if not text[-STALL_BLANKS:].isspace() or len(text) <= STALL_BLANKS:
        return None
    trimmed = text.rstrip()
    for candidate in (trimmed, trimmed + "}"):
        try:
            arguments = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        if (
            isinstance(arguments, dict)
            and "file_path" in arguments
            and all(name in _PLAUSIBLE and _PLAUSIBLE[name](value) for name, value in arguments.items())
        ):
            return candidate
    return None


def result_notes(
    call_id: str, call: Mapping[str, Any] | None, text: str, *, is_error: bool, offsets: ReadOffsets
) -> list[str]:
    """Notes to add to the result of a Read call, each beginning with a line break.

    call  the `tool_use` block of this result, None if it is not in the history
    text  the result as text
    """
    notes = []
    note = offsets.note(call_id)
    if note is not None and _NOTE_HEAD not in text:
        notes.append("\n" + note)
    if call is not None and call.get("name") == NAME and isinstance(call.get("input"), Mapping):
        lowered = text.lower()
        complains = "offset" in lowered and (
            "file has" in lowered or "out of range" in lowered or ("line" in lowered and "requested" in lowered)
        )
        warned = is_error or "warning" in lowered or "system-reminder" in lowered
        if "offset" in call["input"] and RULES_HEAD not in text and complains and warned:
            notes.append("\n" + _RULES)
    return notes
