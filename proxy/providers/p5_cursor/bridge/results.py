"""Turns what a client's tool returned into the results that its exec waits for. Pure.

Claude Code does not repeat a file that it has read before: it says that the file is unchanged. The service would take
these words for the content, and write them back, so it gets the content of the earlier result instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from proxy.core.content import blocks_of, messages_of, texts_of
from proxy.core.sse import dump_json
from proxy.providers.p5_cursor.bridge.calls import ExecRequest, range_of
from proxy.providers.p5_cursor.bridge.numbered_lines import file_text, is_reminder
from proxy.providers.p5_cursor.run.replies import Message, command_of, guarded, streamed

_UNCHANGED = re.compile(
    r"[^\n]{0,40}\bfile (?:is )?unchanged since (?:your |the )?last read\b|"
    r"<system-reminder>\s*+This file is already in your context",
    re.IGNORECASE,
)
#: A path, the first line and the number of lines, None for all.
_Range = tuple[str, int, int | None]

#: A notice of the client is no longer than this.
MAX_WORDS = 500

UNCHANGED_WORDS = (
    "The client did not send the content, as it has not changed since an earlier read that is no longer at hand. Read"
    " it with the shell tool (cat) or in another range of lines."
)


def is_unchanged(text: str) -> bool:
    """
    >>> is_unchanged("File unchanged since last read. The content from the earlier Read tool_result is still current.")
    True
    """
    return len(text) <= MAX_WORDS and _UNCHANGED.match(text) is not None


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


def result_text(block: Mapping[str, Any]) -> str:
    """The text of a `tool_result` block.

    >>> result_text({"content": [{"type": "text", "text": "a"}, {"type": "image", "source": {}}]})
    'a\\n[image result omitted]'
    """
    return "\n".join(_texts(block.get("content")))


def _texts(content: Any) -> Iterator[str]:
    for part in content if isinstance(content, list) else [] if content is None else [content]:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if isinstance(part, str):
            yield part
        elif kind == "image":
            yield "[image result omitted]"
        elif kind in ("text", "thinking") and isinstance(part.get(kind), str):
            yield part[kind]
        else:
            yield dump_json(part)


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


MAX_INT32 = 2**31 - 1

#: Stands in for an error without a message.
_FAILED = "The client's tool failed without saying why."

#: How Claude Code introduces words of the user, or of another session, while a tool is at work. Some versions use a
#: message of the role system, others a reminder or plain text.
_MEANWHILE = re.compile(r"^[^\n]{0,120}(?:while you were working|sent the following message):[ \t]*+$", re.MULTILINE)

#: How Claude Code begins a result that it stored elsewhere for its size, and a notebook.
_PREVIEW, _CELL = "<persisted-output>", "<cell id="
_NOT_THE_FILE = (
    "The client shows this file in a form of its own, so the text below must not be written back as the file."
)


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


def result_messages(
    exec: ExecRequest,
    block: Mapping[str, Any],
    *,
    workspace: str,
    elapsed_ms: int,
    tool: Mapping[str, Any] | None = None,
) -> list[Message]:
    """The client messages that end an exec, in the order in which they are sent.

    block       the `tool_result` of the client
    tool        the declaration of the client's tool, which may accept less than was requested
    workspace   the directory named to the service
    elapsed_ms  how long the client's tool took
    """

    def results() -> list[Message]:
        text, failed = result_text(block), bool(block.get("is_error"))
        return _RESULTS[exec.kind](exec, _Returned(text, failed, tool or {}, workspace, elapsed_ms))

    return guarded(exec, results)


@dataclass(frozen=True, slots=True)
class _Returned:
    """The outcome of a client's tool."""

    text: str
    failed: bool
    tool: Mapping[str, Any]
    workspace: str
    elapsed_ms: int


def _read(exec: ExecRequest, returned: _Returned) -> list[Message]:
    name = exec.kind.replace("_args", "_result")
    if returned.failed:
        return [{name: {"error": {"path": exec.path, "error": returned.text or _FAILED}}}]
    if (words := _words_for_content(exec.path, returned.text)) is not None:
        return [{name: {"error": {"path": exec.path, "error": words}}}]
    asked = range_of(exec, returned.tool)
    found = file_text(returned.text, *asked)
    flags = {"truncated": found.truncated, "range_applied": asked != (None, None)}
    sizes = {
        "total_lines": _line_count(found.content),
        "file_size": len(found.content.encode("utf-8", "surrogatepass")),
    }
    are_set = {flag: True for flag, is_set in flags.items() if is_set}
    return [{name: {"success": {"path": exec.path, "content": found.content, **sizes, **are_set}}}]


def _words_for_content(path: str, text: str) -> str | None:
    """The text to send in place of content that is not the file's own, and must not be written back."""
    if is_unchanged(text):
        return UNCHANGED_WORDS
    if text.startswith(_PREVIEW) or (path.endswith(".ipynb") and text.startswith(_CELL)):
        return f"{_NOT_THE_FILE}\n\n{text}"
    return None


def _write(exec: ExecRequest, returned: _Returned) -> list[Message]:
    """Reports the requested content as written; the client's own words are for its user."""
    if returned.failed:
        return [{"write_result": {"error": {"path": exec.path, "error": returned.text or _FAILED}}}]
    written = exec.written or ""
    after = {"file_content_after_write": written} if exec.args.get("return_file_content_after_write") else {}
    sizes = {"lines_created": _line_count(written), "file_size": len(written.encode())}
    return [{"write_result": {"success": {"path": exec.path, **sizes, **after}}}]


def _line_count(text: str) -> int:
    return text.count("\n") + 1 if text else 0


def _streamed_shell(exec: ExecRequest, returned: _Returned) -> list[Message]:
    printed = {"stderr" if returned.failed else "stdout": {"data": returned.text}} if returned.text else {}
    leaving = {"code": 1} if returned.failed else {}
    took = {"local_execution_time_ms": min(returned.elapsed_ms, MAX_INT32)}
    return streamed(exec, printed, returned.workspace, {**leaving, **took})


def _shell(exec: ExecRequest, returned: _Returned) -> list[Message]:
    if returned.failed:
        return [{"shell_result": {"failure": {**command_of(exec), "exit_code": 1, "stderr": returned.text}}}]
    return [{"shell_result": {"success": {**command_of(exec), "stdout": returned.text}}}]


_RESULTS = {
    "read_args": _read,
    "redacted_read_args": _read,
    "write_args": _write,
    "shell_stream_args": _streamed_shell,
    "shell_args": _shell,
}
