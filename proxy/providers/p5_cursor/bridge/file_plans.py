"""Reads and writes of the service, by a client's own tool where it keeps the bytes, else by its shell. Pure."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any

from proxy.providers.p5_cursor.bridge import commands
from proxy.providers.p5_cursor.bridge.calls import ExecRequest
from proxy.providers.p5_cursor.bridge.file_views import MAX_ERROR_CHARS, NoFile, file_view, may_be_error
from proxy.providers.p5_cursor.bridge.numbered_lines import FileText
from proxy.providers.p5_cursor.bridge.results import (
    FAILED,
    read_error,
    read_success,
    words_for_content,
    write_error,
    write_success,
)
from proxy.providers.p5_cursor.bridge.steps import MAX_CALLS, Plan, Returned, Step, Workplace, printed_by, run_by_shell
from proxy.providers.p5_cursor.bridge.tool_forms import ClientTool

#: Bytes of a file in one piece, at first and at least; what the client cuts says how much it shows.
PIECE_BYTES, LEAST_PIECE_BYTES = 24_000, 1_500


# -- reading


def read_plan(request: ExecRequest, place: Workplace) -> Plan | None:
    own, by_shell = place.tools.get("read"), place.shell is not None and commands.fits_shell(request.path)
    if own is None or (by_shell and not _is_claude(own) and (own.form.lossy or not _ranges(request, own))):
        return _read_by_shell(request, place) if by_shell else None
    return _read_by_tool(request, place, own, by_shell=by_shell and not _is_claude(own))


def _ranges(request: ExecRequest, tool: ClientTool) -> bool:
    """Whether the tool takes the range of a read."""
    return range_for(request, tool) == (request.offset, request.limit)


def _read_by_tool(request: ExecRequest, place: Workplace, tool: ClientTool, *, by_shell: bool) -> Plan:
    """Reads with the client's tool.

    by_shell  whether the shell tells if that is the file as it is, and reads it otherwise. Not for Claude Code, whose
              form says all that there is
    """
    offset, limit = range_for(request, tool)
    returned = yield Step(tool.name, read_input(tool, request.path, offset, limit))
    text = returned.text
    try:
        if not returned.failed and not _is_claude(tool) and may_be_error(text):
            raise NoFile(text)
        found = None if returned.failed else file_view(tool, request.path, text, offset, limit)
    except NoFile as error:
        text, found = str(error), None
    if by_shell:
        if found is not None and not found.truncated:
            source, tag = commands.Source(request.path, offset, limit), place.tag(request)
            told = yield from printed_by(place, commands.sum_command(source, tag))
            if commands.sum_of(told.text, tag) == commands.Sum.of(found.content.encode("utf-8", "surrogatepass")):
                return read_success(request, found, ranged=not source.whole)
        return (yield from _read_by_shell(request, place))
    if found is None:
        return read_error(request, text or FAILED)
    if (words := words_for_content(request.path, text)) is not None:
        return read_error(request, words)
    return read_success(request, found, ranged=(offset, limit) != (None, None))


def _is_claude(tool: ClientTool) -> bool:
    """Whether this is Claude Code's `Read` or `Write`, or one like it."""
    return tool.name in ("Read", "Write") and tool.members.get("path") == "file_path"


def read_input(tool: ClientTool, path: str, offset: int | None, limit: int | None) -> dict[str, Any]:
    """The input that reads a file, or lines of it."""
    if "last" in tool.members and "limit" not in tool.members:
        last = None if limit is None else (offset or 1) + limit - 1
        return tool.input(path=path, offset=offset, last=last)
    first = offset
    if offset is not None and offset > 0 and re.search(r"\b(?:0|zero)-based", tool.words_of("offset"), re.IGNORECASE):
        first = offset - 1
    return tool.input(path=path, offset=first, limit=limit)


def range_for(request: ExecRequest, tool: ClientTool) -> tuple[int | None, int | None]:
    """The offset and limit for the client's tool. Both are None when it does not take both: it would return another
    range, which the service could not tell from a whole file."""
    offset, limit = request.offset, request.limit
    if "last" in tool.members and "limit" not in tool.members:
        able = (offset is None or offset > 0) and tool.takes("offset", offset)
        return (offset, limit) if able else (None, None)
    able = tool.takes("offset", offset) and tool.takes("limit", limit)
    return (offset, limit) if able else (None, None)


def _read_by_shell(request: ExecRequest, place: Workplace) -> Plan:
    """Reads with commands: at once, or in pieces where the client does not show all of it as it is."""
    source, tag = commands.Source(request.path, request.offset, request.limit), place.tag(request)
    output = yield from printed_by(place, commands.read_command(source, tag))
    data, told = commands.read_back(output.text, tag), commands.sum_of(output.text, tag)
    if data is None:
        if output.status not in (None, 0) and not commands.is_all(output.text, tag):
            return read_error(request, commands.complaint(output.text) or FAILED)
        if told is None:  # the client shows the end only, or nothing
            again = yield from printed_by(place, commands.sum_command(source, tag))
            told = commands.sum_of(again.text, tag)
        if told is None or not told.size:  # an empty file would be whole; a folder has the size 0 as well
            return read_error(request, commands.complaint(output.text)[:MAX_ERROR_CHARS] or FAILED)
        if told.size > commands.MAX_FILE_BYTES:
            return read_error(request, _too_large(told.size))
        data = yield from _pieces(source, place, told, tag, shown=len(output.text))
    if data is None:
        return read_error(request, _NOT_WHOLE)
    return read_success(request, _as_text(data), ranged=not source.whole, data=data)


def _as_text(data: bytes) -> FileText | None:
    try:
        return FileText(data.decode("utf-8"))
    except UnicodeDecodeError:
        return None


def _pieces(
    source: commands.Source, place: Workplace, told: commands.Sum, tag: str, *, shown: int
) -> Generator[Step, Returned, bytes | None]:
    """The file in pieces, None when they are not the file that was told of. `shown`: the characters that the client
    showed of it at first."""
    size = told.size
    room = shown * 3 // 5 if shown < size else PIECE_BYTES
    data, calls = b"", 0
    while len(data) < size and calls < MAX_CALLS:
        room = max(LEAST_PIECE_BYTES, min(room, PIECE_BYTES))
        if size - len(data) > room * (MAX_CALLS - calls):
            return None
        count = min(room, size - len(data))
        output = yield from printed_by(place, commands.piece_command(source, len(data), count, tag))
        piece = commands.piece_back(output.text, tag)
        calls += 1
        if piece is not None and len(piece) == count:
            data += piece
        elif room <= LEAST_PIECE_BYTES:
            return None
        else:
            room //= 2
    return data if commands.Sum.of(data) == told else None


def _too_large(size: int) -> str:
    return (
        f"The file has {size} bytes, and this client can show {commands.MAX_FILE_BYTES} at most. Read a range of lines,"
        " or use the shell tool."
    )


_NOT_WHOLE = "The client did not show the whole file, so it was not read. Read a range of lines, or use the shell tool."


# -- writing


def write_plan(request: ExecRequest, place: Workplace) -> Plan | None:
    own, read, data = place.tools.get("write"), place.tools.get("read"), request.written_bytes
    most = 0 if place.shell is None else place.shell.form.most
    by_shell = place.shell is not None and commands.fits_shell(request.path) and not request.path.endswith("/")
    fits = by_shell and commands.can_write(len(data), most=most, calls=MAX_CALLS)
    changed = own is not None and own.form.lossy and b"\r" in data  # its line ends would be made alike
    alone = own is None and (read is None or read.form.alone)
    if fits and (changed or alone):
        return _write_by_shell(request, place, data)
    if own is None or request.written is None:
        return None
    return _write_by_tool(request, place, own, read, by_shell=by_shell)


#: How tools begin their text when they wrote the file, and when they did not.
_DONE = re.compile(
    r"(?:the )?(?:file )?(?:was |has been )?(?:successfully |success\b|wrote\b|created\b|written\b|saved\b|updated\b|"
    r"overwrote\b|ok\b|done\b)",
    re.IGNORECASE,
)
_NOT_DONE = re.compile(
    r"\W*(?:error|fail|cannot|can't|could not|couldn't|unable|permission|denied|access denied|reject|refus|block|"
    r"invalid|e(?:noent|acces|isdir|perm|nospc|rofs)\b|traceback|you must|the user|tool (?:call|use)|operation cancel|"
    r"not\b|nothing\b|skipped\b)",
    re.IGNORECASE,
)
#: Words in the first line that leave it open.
_BUT = re.compile(
    r"\b(?:not|no|nothing|false|errors?|fail\w*|but|un\w+|except|partial\w*|declined|denied)\b|n't\b|"
    r"\b0 (?!bytes|char)",
    re.IGNORECASE,
)
#: What programs return that have nothing to say.
_NOTHING = re.compile(r"\W*(?:null|none|true)?\W*", re.IGNORECASE)
_UNREAD = re.compile(
    r"\bread\b.{0,80}\bfirst\b|\b(?:not|n't|must|first|before)\b.{0,60}\bread\b", re.IGNORECASE | re.DOTALL
)
#: Characters of a tool's answer that are looked at.
MAX_ANSWER_CHARS = 2000


def _write_by_tool(
    request: ExecRequest, place: Workplace, tool: ClientTool, reader: ClientTool | None, *, by_shell: bool
) -> Plan:
    """Writes with the client's tool. Some insist that their own tool has read the file before.

    by_shell  whether the shell tells if the file was written, where the tool's words do not
    """
    step = Step(tool.name, tool.input(path=request.path, content=request.written))
    returned = yield step
    unread = (
        _is_done(returned, request.path) is not True and _UNREAD.search(returned.text[:MAX_ANSWER_CHARS]) is not None
    )
    if reader is not None and reader.form.lossy and unread:
        yield Step(reader.name, read_input(reader, request.path, None, None))
        returned = yield step
    done = not _fails(returned) if _is_claude(tool) else _is_done(returned, request.path)
    if done is None and by_shell:
        words = f"[written {place.tag(request)}]"
        told = yield from printed_by(place, commands.check_command(request.path, request.written_bytes, words))
        done = commands.says(told.text, words)
    if done:
        return write_success(request)
    if done is None:
        words = "The client did not say whether it wrote the file. Read the file to find out. Its tool returned: "
        return write_error(request, words + returned.text)
    return write_error(request, returned.text or FAILED)


def _fails(returned: Returned) -> bool:
    return returned.failed or _NOT_DONE.match(returned.text[:MAX_ANSWER_CHARS]) is not None


def _is_done(returned: Returned, path: str) -> bool | None:
    """Whether the tool says that the file was written; None when it is not clear."""
    text = returned.text[:MAX_ANSWER_CHARS].replace(path, "")
    if _fails(returned):
        return False
    if _NOTHING.fullmatch(text):
        return True
    return True if _DONE.match(text) and not _BUT.search(text.partition("\n")[0]) else None


def _write_by_shell(request: ExecRequest, place: Workplace, data: bytes) -> Plan:
    most = place.shell.form.most if place.shell is not None else 0
    words = ""
    for encoded in (False, True):
        script = commands.write_script(request.path, data, place.tag(request), encoded=encoded, most=most)
        said = []
        for command in script.commands:
            output = yield from run_by_shell(place, command)
            said.append(output.text.strip())
            if output.session is not None or output.status not in (None, 0):
                break
        if not said[-1]:
            said.append((yield from printed_by(place, script.check)).text.strip())
        if script.done(said[-1]):
            return write_success(request)
        if len(script.commands) > 1:
            yield from run_by_shell(place, script.undo)
        words = "\n".join(dict.fromkeys(filter(None, said)))  # the first complaint is the reason
        if commands.DIFFERS not in words:
            break
    return write_error(request, words or FAILED)
