"""Looks for what matters to a waiting run in a request: the result of its call, and what its user said. Pure.

Claude Code does not repeat a file that it has read before: it says that the file is unchanged. The service would take
these words for the content, and write them back, so it gets the content of the earlier result instead.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from proxy.core.content import blocks_of, messages_of, texts_of
from proxy.providers.p5_cursor.bridge.numbered_lines import file_text, is_reminder
from proxy.providers.p5_cursor.bridge.results import is_unchanged, result_text

#: A path, the first line and the number of lines, None for all.
_Range = tuple[str, int, int | None]


def earlier_content(request: Mapping[str, Any], tool_use_id: str) -> Any:
    """The content of the newest earlier result for the same range of the same file; None when none contains the file.
    One pass over the history."""
    asked: dict[str, _Range] = {}
    results: list[tuple[_Range, Mapping[str, Any]]] = []
    for block in _blocks(request):
        if block.get("type") == "tool_use" and block.get("name") == "Read":
            wanted = _range(block.get("input"))
            if block.get("id") == tool_use_id:
                return _newest(results, wanted)
            if wanted is not None:
                asked[str(block.get("id"))] = wanted
        elif block.get("type") == "tool_result" and str(block.get("tool_use_id")) in asked:
            results.append((asked[str(block["tool_use_id"])], block))
        elif results and block.get("type") == "text":
            wanted, found = results[-1]
            results[-1] = wanted, with_note(found, [{"content": [block]}])
    return None


def _newest(results: list[tuple[_Range, Mapping[str, Any]]], wanted: _Range | None) -> Any:
    return next(
        (
            block.get("content")
            for asked, block in reversed(results)
            if asked == wanted and not block.get("is_error") and _holds_file(block, asked)
        ),
        None,
    )


def _blocks(request: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for message in messages_of(request):
        yield from (block for block in blocks_of(message.get("content")) if isinstance(block, Mapping))


def _range(asked: Any) -> _Range | None:
    given = asked if isinstance(asked, Mapping) else {}
    path, offset, limit = (given.get(name) for name in ("file_path", "offset", "limit"))
    if not isinstance(path, str):
        return None
    return path, offset if isinstance(offset, int) else 1, limit if isinstance(limit, int) else None


def _holds_file(block: Mapping[str, Any], wanted: _Range) -> bool:
    """Whether a result contains the file. Text without line numbers may be a notice in place of an old result."""
    text = result_text(block)
    return file_text(text, wanted[1], wanted[2]).content != text


#: How newer versions of Claude Code say that a Read's result is not the whole file: in a reminder, or in the next
#: message of the role system.
_PARTIAL = re.compile(r"^(?:<system-reminder>)?\[Truncated: PARTIAL view[^\n]*", re.MULTILINE)


def with_note(block: Mapping[str, Any], messages: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The block with the client's notice, if any, that it is not the whole file. The notice is looked for in the
    block's message and the following ones, and put into the result, as in older versions."""
    for message in messages:
        for text in texts_of(message.get("content")) if message.get("role") != "assistant" else ():
            if (note := _PARTIAL.search(text)) is not None:
                words = note[0].removeprefix("<system-reminder>").removesuffix("</system-reminder>")
                part = {"type": "text", "text": f"\n<system-reminder>{words}</system-reminder>"}
                return {**block, "content": [*blocks_of(block.get("content")), part]}
    return block


#: How Claude Code introduces words of the user, or of another session, while a tool is at work. Some versions use a
#: message of the role system, others a reminder or plain text.
_MEANWHILE = re.compile(r"^[^\n]{0,120}(?:while you were working|sent the following message):[ \t]*+$", re.MULTILINE)


def find_result(request: Mapping[str, Any], tool_use_id: str) -> Mapping[str, Any] | None:
    """The newest result of a call in a Messages request; None when it has none. If it only says that a file is
    unchanged, it gets the content of that earlier result, if present. It also gets the client's notice that it is not
    the whole file."""
    messages = messages_of(request)
    for place in reversed(range(len(messages))):
        for block in reversed(_results(messages[place])):
            if block.get("tool_use_id") == tool_use_id:
                return _with_content(with_note(block, messages[place:]), request, tool_use_id)
    return None


def _with_content(block: Mapping[str, Any], request: Mapping[str, Any], tool_use_id: str) -> Mapping[str, Any]:
    if block.get("is_error") or not is_unchanged(result_text(block)):
        return block
    content = earlier_content(request, tool_use_id)
    return block if content is None else {**block, "content": content}


def has_new_words(request: Mapping[str, Any], tool_use_id: str) -> bool:
    """Whether the user said something with or after the result of a call, since an open run cannot receive it.

    Reminders are the client's own. So are messages of the role system, which Claude Code puts between others; but these
    may also repeat what the user said meanwhile."""
    for message in reversed(messages_of(request)):
        if message.get("role") == "system":
            if any(map(_MEANWHILE.search, texts_of(message.get("content")))):
                return True
            continue
        blocks = blocks_of(message.get("content"))
        if any(block.get("tool_use_id") == tool_use_id for block in _results(message)):
            return any(map(_has_words, blocks))
        if any(map(_is_new, blocks)):
            return True
    return False


def _results(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message.get("content") if message.get("role") == "user" else None
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, Mapping) and block.get("type") == "tool_result"]


def _has_words(block: Any) -> bool:
    """Whether a block beside the result has words; documents and images there belong to the result."""
    return _is_new(block) and isinstance(block.get("text"), str)


def _is_new(block: Any) -> bool:
    """Whether a block after the result is new: anything but reminders and other results."""
    if not isinstance(block, Mapping) or block.get("type") == "tool_result":
        return False
    text = block.get("text")
    return not (isinstance(text, str) and is_reminder(text) and _MEANWHILE.search(text) is None)


@dataclass(frozen=True, slots=True)
class UserWords:
    """What was said in a conversation, as digests: of each text of the user with all before it.

    opening   of what was said before the first answer
    answered  whether there is an answer
    texts     the same of every text, the model's too
    """

    chain: tuple[bytes, ...] = ()
    opening: str = ""
    answered: bool = False
    texts: tuple[bytes, ...] = ()

    def goes_on_from(self, other: UserWords) -> bool:
        """Whether this is the other conversation, unchanged and without new words of the user."""
        return self.chain == other.chain and self.texts[: len(other.texts)] == other.texts

    def follows(self, other: UserWords) -> bool:
        """Whether the user of the other conversation said something else here: after all of it, or after a part of it
        that was answered. Another conversation with the same beginning does not follow."""
        earlier, said = self.chain[:-1], other.chain
        if not self.chain or self.chain == said[: len(self.chain)]:
            return False
        return self.chain[: len(said)] == said or (self.answered and bool(earlier) and earlier == said[: len(earlier)])


def user_words(request: Mapping[str, Any]) -> UserWords:
    """What was said in a Messages request, without what a client adds as reminders. One pass over the texts."""
    digest, every = hashlib.blake2b(digest_size=16), hashlib.blake2b(digest_size=16)
    chain, texts, opening = [], [], None
    for message in messages_of(request):
        role = message.get("role")
        if role == "assistant" and opening is None:
            opening = digest.hexdigest()
        for text in texts_of(message.get("content")) if role in ("user", "assistant") else ():
            said = text.strip()
            if not said or is_reminder(text):
                continue
            data = said.encode("utf-8", "surrogatepass")
            every.update(b"%d:" % len(data) + data)
            texts.append(every.digest())
            if role == "user":
                digest.update(b"%d:" % len(data) + data)
                chain.append(digest.digest())
    found = digest.hexdigest() if opening is None else opening
    return UserWords(tuple(chain), found, opening is not None, tuple(texts))


def results_of(request: Mapping[str, Any], wanted: Collection[str]) -> list[str]:
    """Those of the wanted calls whose results a Messages request has, the newest first."""
    found = []
    for message in reversed(messages_of(request)) if wanted else ():
        for block in reversed(_results(message)):
            if block.get("tool_use_id") in wanted and block["tool_use_id"] not in found:
                found.append(block["tool_use_id"])
    return found
