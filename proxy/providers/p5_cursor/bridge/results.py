"""Results in the form in which the service asked for them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from proxy.core.sse import dump_json
from proxy.providers.p5_cursor.bridge.calls import ExecRequest
from proxy.providers.p5_cursor.bridge.command_output import CommandOutput
from proxy.providers.p5_cursor.bridge.numbered_lines import FileText
from proxy.providers.p5_cursor.run.replies import Message, command_of, streamed

_UNCHANGED = re.compile(
    r"[^\n]{0,40}\bfile (?:is )?unchanged since (?:your |the )?last read\b|"
    r"<system-reminder>\s*+This file is already in your context",
    re.IGNORECASE,
)
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


MAX_INT32 = 2**31 - 1

#: Stands in for an error without a message.
FAILED = "The client's tool failed without saying why."

#: How Claude Code begins a result that it stored elsewhere for its size, and a notebook.
_PREVIEW, _CELL = "<persisted-output>", "<cell id="
_NOT_THE_FILE = (
    "The client shows this file in a form of its own, so the text below must not be written back as the file."
)


# -- what the service is told


def read_success(
    exec: ExecRequest, found: FileText | None, *, ranged: bool, data: bytes | None = None
) -> list[Message]:
    """The content of a file; `data` where that is no text. `ranged`: the client was asked for a part of it."""
    if found is None:
        raw = data or b""
        return _read_result(
            exec, "success", data=raw, file_size=len(raw), **({"range_applied": True} if ranged else {})
        )
    flags = {"truncated": found.truncated, "range_applied": ranged}
    sizes = {
        "total_lines": _line_count(found.content),
        "file_size": len(found.content.encode("utf-8", "surrogatepass")),
    }
    are_set = {flag: True for flag, is_set in flags.items() if is_set}
    return _read_result(exec, "success", content=found.content, **sizes, **are_set)


def read_error(exec: ExecRequest, words: str) -> list[Message]:
    return _read_result(exec, "error", error=words)


def _read_result(exec: ExecRequest, arm: str, **members: Any) -> list[Message]:
    return [{exec.kind.replace("_args", "_result"): {arm: {"path": exec.path, **members}}}]


def words_for_content(path: str, text: str) -> str | None:
    """The text to send in place of content that is not the file's own, and must not be written back."""
    if is_unchanged(text):
        return UNCHANGED_WORDS
    if text.startswith(_PREVIEW) or (path.endswith(".ipynb") and text.startswith(_CELL)):
        return f"{_NOT_THE_FILE}\n\n{text}"
    return None


def write_success(exec: ExecRequest) -> list[Message]:
    """Reports the requested content as written; the client's own words are for its user."""
    data = exec.written_bytes
    lines = data.count(b"\n") + 1 if data else 0
    wants = exec.args.get("return_file_content_after_write") and exec.written is not None
    after = {"file_content_after_write": exec.written} if wants else {}
    return [{"write_result": {"success": {"path": exec.path, "lines_created": lines, "file_size": len(data), **after}}}]


def write_error(exec: ExecRequest, words: str) -> list[Message]:
    return [{"write_result": {"error": {"path": exec.path, "error": words}}}]


def _line_count(text: str) -> int:
    return text.count("\n") + 1 if text else 0


#: `ShellAbortReason`: the command was ended for its time.
_TIMED_OUT = 2
#: Exit statuses are unsigned on the wire.
_STATUS_MASK = 0xFFFF_FFFF


def command_results(exec: ExecRequest, output: CommandOutput, workspace: str, elapsed_ms: int) -> list[Message]:
    """The outcome of a command, in the form in which the service asked for it."""
    status = (output.status or 0) & _STATUS_MASK
    aborted: Message = {"aborted": True, "abort_reason": _TIMED_OUT} if output.timed_out else {}
    if exec.kind == "shell_stream_args":
        printed = {"stderr" if status else "stdout": {"data": output.text}} if output.text else {}
        leaving = {"code": status} if status else {}
        took = {"local_execution_time_ms": min(elapsed_ms, MAX_INT32)}
        return streamed(exec, printed, workspace, {**leaving, **aborted, **took})
    if status:
        said = {"exit_code": _signed(status), "stderr": output.text, **aborted}
        return [{"shell_result": {"failure": {**command_of(exec), **said}}}]
    return [{"shell_result": {"success": {**command_of(exec), "stdout": output.text}}}]


def _signed(status: int) -> int:
    return status - _STATUS_MASK - 1 if status > MAX_INT32 else status
