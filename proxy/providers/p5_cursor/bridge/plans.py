"""How a request of the service is answered by a client's tools: one call, or several one after the other. Pure.

A plan is a generator: it yields the next call, is sent what the client's tool returned, and returns the results for the
service. A file goes through the client's own tool where there is one that keeps its bytes, else through its shell.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from proxy.providers.p5_cursor.bridge import commands, search_commands
from proxy.providers.p5_cursor.bridge.calls import ExecRequest
from proxy.providers.p5_cursor.bridge.command_output import CommandOutput, output_of
from proxy.providers.p5_cursor.bridge.file_views import MAX_ERROR_CHARS, NoFile, file_view, may_be_error
from proxy.providers.p5_cursor.bridge.numbered_lines import FileText
from proxy.providers.p5_cursor.bridge.results import (
    FAILED,
    command_results,
    read_error,
    read_success,
    words_for_content,
    write_error,
    write_success,
)
from proxy.providers.p5_cursor.bridge.tool_forms import ClientTool, ClientTools
from proxy.providers.p5_cursor.run.replies import Message

#: Calls that one request of the service may take: pieces of a file, looks at a command that still runs.
MAX_CALLS = 200
#: Milliseconds for a command that names no limit.
USUAL_TIMEOUT_MS = 30_000
#: The longest that one call waits for a command, in milliseconds, where the client gives back what still runs.
MAX_WAIT_MS = 30_000
#: Tokens of output to ask for, where a client can be asked.
ROOM_TOKENS = 60_000
#: The reference's description of a command without one.
USUAL_DESCRIPTION = "Run Cursor-requested shell command"
#: Bytes of a file in one piece, at first and at least; what the client cuts says how much it shows.
PIECE_BYTES, LEAST_PIECE_BYTES = 24_000, 1_500


class Step(NamedTuple):
    """A call of a client's tool."""

    tool: str
    input: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Returned:
    """What the client's tool returned.

    failed      whether the client marks it as an error
    elapsed_ms  since the first call of the request
    """

    text: str
    failed: bool = False
    elapsed_ms: int = 0


Plan = Generator[Step, Returned, list[Message]]


@dataclass(frozen=True, slots=True)
class Workplace:
    """What a client has to work with.

    folder  its directory, as named to the service
    posix   whether its shell is one that the commands of `commands` fit
    secret  a word of this request that nobody can guess
    """

    tools: ClientTools
    folder: str = ""
    posix: bool = True
    secret: str = ""

    def tag(self, request: ExecRequest) -> str:
        """The tag of the commands for a request, see `commands`."""
        return hashlib.sha256(f"{self.secret} {request.id} {request.exec_id}".encode()).hexdigest()[:12]

    @property
    def shell(self) -> ClientTool | None:
        """The tool for commands of our own."""
        return self.tools.get("run") if self.posix else None


#: Of a client without tools.
NOWHERE = Workplace(ClientTools())


def plan_for(request: ExecRequest, place: Workplace) -> Plan | None:
    """The plan for a request; None when this client cannot serve it."""
    make = _PLANS.get(request.kind)
    return None if make is None else make(request, place)


# -- commands


def _run(request: ExecRequest, place: Workplace) -> Plan | None:
    tool = place.tools.get("run")
    return None if tool is None else _ran(request, place, tool)


def _ran(request: ExecRequest, place: Workplace, tool: ClientTool) -> Plan:
    limit = request.timeout_ms or USUAL_TIMEOUT_MS
    asked = _Command(request.command, request.directory, limit, request.description or USUAL_DESCRIPTION)
    output, elapsed_ms = yield from _output(tool, place, asked)
    if output.session is not None:
        words = f"\n[The command still runs, in session {output.session} of the client. This is its output so far.]"
        output = CommandOutput(output.text + words, 124, timed_out=True)
    return command_results(request, output, place.folder, elapsed_ms)


class _Command(NamedTuple):
    text: str
    directory: str = ""
    limit_ms: int = USUAL_TIMEOUT_MS
    description: str = USUAL_DESCRIPTION


def _output(
    tool: ClientTool, place: Workplace, asked: _Command, *, first: bool = True
) -> Generator[Step, Returned, tuple[CommandOutput, int]]:
    """Runs a command, and waits for it up to its limit where the client gives back what still runs.

    first  whether its request took no call before
    """
    returned = yield Step(tool.name, command_input(tool, place.folder, asked))
    output = output_of(tool.output, returned.text, failed=returned.failed)
    before_ms = 0 if first else returned.elapsed_ms
    poll, said, calls = place.tools.get("poll"), [output.text], 1
    while output.session is not None and poll is not None and calls < MAX_CALLS:
        left = asked.limit_ms - (returned.elapsed_ms - before_ms)
        if left <= 0:
            break
        values = {"session": output.session, "input": "", "wait": min(left, MAX_WAIT_MS), "room": ROOM_TOKENS}
        returned = yield Step(poll.name, poll.input(**values))
        output = output_of(poll.output, returned.text, failed=returned.failed)
        said.append(output.text)
        calls += 1
    return CommandOutput("".join(said), output.status, output.session, output.timed_out), returned.elapsed_ms


#: A command that a change of the directory in front of it guards as a whole.
_SIMPLE = re.compile(r"[^;|&\n\r]*")


def command_input(tool: ClientTool, folder: str, asked: _Command) -> dict[str, Any]:
    """The input for a command. Its directory is a change in the command where the tool takes none."""
    text, directory = asked.text, asked.directory if asked.directory not in ("", folder) else None
    if directory is not None and "directory" not in tool.members:
        text = text if _SIMPLE.fullmatch(text) else f"{{ {text}\n}}"
        text, directory = f"cd {commands.named(directory)} && {text}", None
    return tool.input(
        command=text,
        timeout=_in_unit(tool, asked.limit_ms),
        description=asked.description,
        background=False,
        sandboxed=False,
        directory=directory,
        wait=min(asked.limit_ms, MAX_WAIT_MS),
        room=ROOM_TOKENS,
    )


_MILLISECONDS = re.compile(r"milliseconds?|(?:\b|_|[0-9])ms\b|Ms\b")
_SECONDS = re.compile(r"\bseconds?|_s\b|_seconds\b")


def _in_unit(tool: ClientTool, limit_ms: int) -> int | None:
    """The limit in the tool's unit, or the most that it takes; None when it does not say which unit."""
    words = tool.words_of("timeout")
    if tool.declared is None or (tool.name == "Bash" and not _SECONDS.search(words)) or _MILLISECONDS.search(words):
        return tool.at_most("timeout", limit_ms)
    return tool.at_most("timeout", -(-limit_ms // 1000)) if _SECONDS.search(words) else None


def _asked(place: Workplace, command: str) -> Generator[Step, Returned, CommandOutput]:
    """Runs a command that prints something and changes nothing: once more when nothing came, since some clients lose
    what a quick command printed."""
    output = yield from _by_shell(place, command)
    if output.text.strip() or output.status or output.session is not None:
        return output
    return (yield from _by_shell(place, command))


def _by_shell(place: Workplace, command: str) -> Generator[Step, Returned, CommandOutput]:
    """Runs a command of our own."""
    tool = place.shell
    if tool is None:
        raise RuntimeError("no shell")
    output, _ = yield from _output(tool, place, _Command(command, description="Work with a file"), first=False)
    return output


# -- reading


def _read(request: ExecRequest, place: Workplace) -> Plan | None:
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
    text, failed = returned.text, returned.failed
    try:
        if not failed and not _is_claude(tool) and may_be_error(text):
            raise NoFile(text)
        found = None if failed else file_view(tool, request.path, text, offset, limit)
    except NoFile as error:
        text, found = str(error), None
    if by_shell:
        if found is not None and not found.truncated:
            source, tag = commands.Source(request.path, offset, limit), place.tag(request)
            told = yield from _asked(place, commands.sum_command(source, tag))
            if commands.sum_of(told.text, tag) == commands.Sum.of(found.content.encode("utf-8", "surrogatepass")):
                return read_success(request, found, ranged=not source.whole)
        return (yield from _read_by_shell(request, place))
    if found is None:
        return read_error(request, text or FAILED)
    if (words := words_for_content(request.path, text)) is not None:
        return read_error(request, words)
    return read_success(request, found, ranged=(offset, limit) != (None, None))


def _is_claude(tool: ClientTool) -> bool:
    """Whether this is Claude Code's `Read`, or one like it."""
    return tool.name == "Read" and tool.members.get("path") == "file_path"


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
    output = yield from _asked(place, commands.read_command(source, tag))
    data, told = commands.read_back(output.text, tag), commands.sum_of(output.text, tag)
    if data is None:
        if output.status not in (None, 0) and not commands.is_all(output.text, tag):
            return read_error(request, commands.complaint(output.text) or FAILED)
        if told is None:  # the client shows the end only, or nothing
            again = yield from _asked(place, commands.sum_command(source, tag))
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
        output = yield from _asked(place, commands.piece_command(source, len(data), count, tag))
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


def _write(request: ExecRequest, place: Workplace) -> Plan | None:
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
    unread = _is_done(returned) is not True and _UNREAD.search(returned.text[:MAX_ANSWER_CHARS]) is not None
    if reader is not None and reader.form.lossy and unread:
        yield Step(reader.name, read_input(reader, request.path, None, None))
        returned = yield step
    done = True if tool.name == "Write" and not _fails(returned) else _is_done(returned)
    if done is None and by_shell:
        words = f"[written {place.tag(request)}]"
        told = yield from _asked(place, commands.check_command(request.path, request.written_bytes, words))
        done = words in told.text
    if done:
        return write_success(request)
    if done is None:
        words = "The client did not say whether it wrote the file. Read the file to find out. Its tool returned: "
        return write_error(request, words + returned.text)
    return write_error(request, returned.text or FAILED)


def _fails(returned: Returned) -> bool:
    return returned.failed or _NOT_DONE.match(returned.text[:MAX_ANSWER_CHARS]) is not None


def _is_done(returned: Returned) -> bool | None:
    """Whether the tool says that the file was written; None when it is not clear."""
    text = returned.text[:MAX_ANSWER_CHARS]
    if _fails(returned):
        return False
    return True if _DONE.match(text) or _NOTHING.fullmatch(text) else None


def _write_by_shell(request: ExecRequest, place: Workplace, data: bytes) -> Plan:
    most = place.shell.form.most if place.shell is not None else 0
    words = ""
    for encoded in (False, True):
        script = commands.write_script(request.path, data, place.tag(request), encoded=encoded, most=most)
        said = []
        for command in script.commands:
            output = yield from _by_shell(place, command)
            said.append(output.text.strip())
            if output.session is not None or output.status not in (None, 0):
                break
        if not said[-1]:
            said.append((yield from _asked(place, script.check)).text.strip())
        if script.done(said[-1]):
            return write_success(request)
        if len(script.commands) > 1:
            yield from _by_shell(place, script.undo)
        words = "\n".join(dict.fromkeys(filter(None, said)))  # the first complaint is the reason
        if commands.DIFFERS not in words:
            break
    return write_error(request, words or FAILED)


# -- folders, searches


def _list(request: ExecRequest, place: Workplace) -> Plan | None:
    return _shelled(request, place, _listed_by_shell)


def _listed_by_shell(request: ExecRequest, place: Workplace) -> Plan:
    path = request.path or place.folder or "."
    tag = place.tag(request)
    output = yield from _asked(place, search_commands.list_command(path, tag))
    ignore = [one for one in request.args.get("ignore") or () if isinstance(one, str)]
    root = search_commands.listed(output.text, tag, path, ignore)
    if root is None:
        return [{"ls_result": {"error": {"path": request.path, "error": output.text.strip() or FAILED}}}]
    return [{"ls_result": {"success": {"directory_tree_root": root}}}]


def _delete(request: ExecRequest, place: Workplace) -> Plan | None:
    return _shelled(request, place, _deleted_by_shell)


def _deleted_by_shell(request: ExecRequest, place: Workplace) -> Plan:
    tag = place.tag(request)
    output = yield from _by_shell(place, search_commands.delete_command(request.path, tag))
    if search_commands.deleted(output.text, tag):
        return [{"delete_result": {"success": {"path": request.path, "deleted_file": request.path}}}]
    return [{"delete_result": {"error": {"path": request.path, "error": output.text.strip() or FAILED}}}]


def _search(request: ExecRequest, place: Workplace) -> Plan | None:
    return _shelled(request, place, _found_by_shell)


def _found_by_shell(request: ExecRequest, place: Workplace) -> Plan:
    path = request.path or place.folder or "."
    tag = place.tag(request)
    output = yield from _asked(place, search_commands.search_command(request.args, path, tag))
    found = search_commands.found(output.text, tag, request.args, path)
    if found is None:
        return [{"grep_result": {"error": {"error": output.text.strip() or FAILED}}}]
    return [{"grep_result": {"success": found}}]


def _shelled(request: ExecRequest, place: Workplace, make: Callable[[ExecRequest, Workplace], Plan]) -> Plan | None:
    fits = not request.path or commands.fits_shell(request.path)
    return make(request, place) if place.shell is not None and fits else None


_PLANS: Mapping[str, Callable[[ExecRequest, Workplace], Plan | None]] = {
    "read_args": _read,
    "redacted_read_args": _read,
    "write_args": _write,
    "shell_stream_args": _run,
    "shell_args": _run,
    "ls_args": _list,
    "grep_args": _search,
    "delete_args": _delete,
}
