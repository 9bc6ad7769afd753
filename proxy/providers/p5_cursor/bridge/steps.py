"""Calls of a client's tools, and commands of its shell as such calls. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, NamedTuple

from proxy.providers.p5_cursor.bridge import commands
from proxy.providers.p5_cursor.bridge.calls import ExecRequest
from proxy.providers.p5_cursor.bridge.command_output import CommandOutput, output_of
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


#: Stands for a client without tools.
NOWHERE = Workplace(ClientTools())


class Command(NamedTuple):
    text: str
    directory: str = ""
    limit_ms: int = USUAL_TIMEOUT_MS
    description: str = USUAL_DESCRIPTION


def output_from(
    tool: ClientTool, place: Workplace, asked: Command, *, first: bool = True
) -> Generator[Step, Returned, tuple[CommandOutput, int]]:
    """Runs a command, and waits for it up to its limit where the client gives back what still runs.

    first  whether its request took no call before
    """
    returned = yield Step(tool.name, command_input(tool, place, asked))
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


#: How a shell is given a command as a list of words.
_POSIX, _WINDOWS = ("bash", "-lc"), ("powershell.exe", "-Command")
#: A command that a change of the directory in front of it guards as a whole.
_SIMPLE = re.compile(r"[^;|&\n\r]*")


def command_input(tool: ClientTool, place: Workplace, asked: Command) -> dict[str, Any]:
    """The input for a command. Its directory is a change in the command where the tool takes none."""
    text, directory = asked.text, asked.directory if asked.directory not in ("", place.folder) else None
    if directory is not None and "directory" not in tool.members:
        text = text if _SIMPLE.fullmatch(text) else f"{{ {text}\n}}"
        text, directory = f"cd {commands.named(directory)} && {text}", None
    return tool.input(
        command=[*(_POSIX if place.posix else _WINDOWS), text] if tool.argv else text,
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


def printed_by(place: Workplace, command: str) -> Generator[Step, Returned, CommandOutput]:
    """Runs a command that prints something and changes nothing: once more when nothing came, since some clients lose
    what a quick command printed."""
    output = yield from run_by_shell(place, command)
    if output.text.strip() or output.status or output.session is not None:
        return output
    return (yield from run_by_shell(place, command))


def run_by_shell(place: Workplace, command: str) -> Generator[Step, Returned, CommandOutput]:
    """Runs a command of our own."""
    tool = place.shell
    if tool is None:
        raise RuntimeError("no shell")
    output, _ = yield from output_from(tool, place, Command(command, description="Work with a file"), first=False)
    return output
