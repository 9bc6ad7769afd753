"""The content of a file in what a client's tool returned, without headers, line numbers and notices. Pure.

`numbered_lines` knows Claude Code's form, which keeps every byte. Other tools show a file to a model: they number lines
in their own ways, and some lose the ends of lines. What one of these forms does not fit is the file itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from proxy.core.sse import load_json
from proxy.providers.p5_cursor.bridge.numbered_lines import FileText, file_text
from proxy.providers.p5_cursor.bridge.tool_forms import ClientTool


class NoFile(Exception):
    """The tool returned an error in place of the file; the message has its words."""


def file_view(tool: ClientTool, path: str, text: str, offset: int | None, limit: int | None) -> FileText:
    """The file in a tool's text. Raises NoFile.

    offset, limit  the requested range
    """
    if tool.name == "Read" and tool.members.get("path") == "file_path":
        return file_text(text, offset, limit)
    for view in _LOSSY_VIEWS if tool.form.lossy else (_titled,):  # any text could be the file in another client's form
        found = view(text, path)
        if found is not None:
            return found
    if _PADDED.match(text):
        return file_text(text, offset, limit)
    return _raw(text)


#: How tools begin an error that they return as text; with a path or a short text behind it.
_ERROR = re.compile(
    r"(?:<\w*error>\s*)?(?:error(?:\s*:|\s+(?:reading|executing|opening|accessing|while)\b)|\w*(?:Error|Exception): |"
    r"e(?:noent|acces|isdir|perm|notdir)\b|(?:the )?(?:file|path|directory) (?:not found|does not exist)|"
    r"(?:file|path) .{0,300} (?:does not exist|not found|is a directory|is outside)|no such file|not found\b|"
    r"(?:\w+: ){1,3}.{0,300}: No such file|permission denied|access denied|cannot (?:read|open|access|display)|"
    r"could not (?:read|open)|failed to|unable to|is a directory|the user (?:rejected|denied|declined))",
    re.IGNORECASE | re.DOTALL,
)
MAX_ERROR_CHARS = 1000


def may_be_error(text: str) -> bool:
    """Whether a text may be an error rather than a file.

    >>> may_be_error("ENOENT: no such file or directory, access '/a'"), may_be_error("errors = 3")
    (True, False)
    """
    return len(text) <= MAX_ERROR_CHARS and _ERROR.match(text) is not None


#: Lines that are numbered as `cat -n` does it: a file is hardly so by itself.
_PADDED = re.compile(r" *[0-9]+→| {3,}[0-9]+\t")
#: Notices behind a part of a file (pi), and before one (Qwen Code, Gemini CLI).
_NOTICE_BEHIND = re.compile(
    r"\n\n\[(?:Showing lines [0-9]+-[0-9]+ of [0-9]+[^\n\]]*|[0-9]+ more lines in file[^\n\]]*)\]\s*\Z"
)
_NOTICE_BEFORE = re.compile(r"Showing lines [0-9]+-[0-9]+ of [0-9]+ total lines[^\n]*\n\n---\n\n")
_EMPTY = re.compile(r"\((?:no (?:tool )?output|\w+ completed with no output|(?:the )?file is empty|empty file)\)\s*")


def _raw(text: str) -> FileText:
    if _EMPTY.fullmatch(text):
        return FileText("")
    before = _NOTICE_BEFORE.match(text)
    if before is not None:
        return FileText(text[before.end() :], truncated=True)
    behind = _NOTICE_BEHIND.search(text, max(0, len(text) - 300))
    if behind is not None:
        return FileText(text[: behind.start() + 1], truncated=True)
    return FileText(text, "\ufffd" in text)


def _listed(text: str, _path: str) -> FileText | None:
    """Cline: a list with one entry, whose lines are numbered."""
    try:
        value: Any = load_json(text) if text.startswith("[{") else None
    except (ValueError, RecursionError):
        return None
    one = value[0] if isinstance(value, list) and len(value) == 1 else None
    if not isinstance(one, Mapping) or "query" not in one or not isinstance(one.get("result"), str):
        return None
    if one.get("success") is False:
        raise NoFile(str(one.get("error") or one["result"]))
    result: str = one["result"]
    notice = re.search(r"\n\n\[Showing lines [^\n]*\]\Z", result)
    body = result if notice is None else result[: notice.start()]
    return _unnumbered(body, re.compile(r" *[0-9]+ \| ?"), cut=notice is not None)


_TAGGED = re.compile(
    r"(?:<path>[^\n]*</path>\n<type>file</type>\n<content>|<file>)\n(?P<body>.*?)\n?\n?\n"
    r"\((?P<note>[^\n]*)\)\n(?:</content>|</file>)\s*\Z",
    re.DOTALL,
)


def _tagged(text: str, _path: str) -> FileText | None:
    """opencode: tags around numbered lines, and a note behind them."""
    found = _TAGGED.match(text)
    if found is None:
        return None
    return _unnumbered(found["body"], re.compile(r"[0-9]+(?:: |\| )?"), cut=not found["note"].startswith("End of file"))


def _titled(text: str, path: str) -> FileText | None:
    """Continue: a title, then the file; or its words for an error."""
    title = f"Content of {path}:\n"
    if text.startswith(title):
        return FileText(text[len(title) :], "\ufffd" in text)
    failed = re.match(r"Error executing tool \w+: ", text)
    if failed is not None:
        raise NoFile(text[failed.end() :])
    return None


def _unnumbered(body: str, number: re.Pattern[str], *, cut: bool) -> FileText | None:
    """The lines without their numbers, each with its end; None when one has none."""
    if not body.strip("\n"):
        return FileText("", cut)
    lines = []
    for line in body.split("\n"):
        found = number.match(line)
        if found is None:
            return None
        lines.append(line[found.end() :])
    return FileText("\n".join(lines) + "\n", cut)


_LOSSY_VIEWS: tuple[Callable[[str, str], FileText | None], ...] = (_listed, _tagged)
