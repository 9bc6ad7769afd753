"""What a client's tool says about a command: its output, its status, and whether it still runs. Pure.

Each form is that of a client's own tool, so that what a command prints is not taken for the client's words. Forms that
put their words behind the output share a reader.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from proxy.core.sse import load_json


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """
    status    the exit status, None when the client does not say
    session   the client's name for a command that still runs
    timed_out whether the client ended it for its time
    """

    text: str
    status: int | None = None
    session: int | str | None = None
    timed_out: bool = False


def output_of(form: str, text: str, *, failed: bool) -> CommandOutput:
    """What the result of a command says. `failed`: the client marks it as an error. Its words are then all kept, since
    Claude Code says the status in front of the output."""
    found = FORMS.get(form, _words_behind)(text)
    if not failed or found.session is not None:
        return found
    return replace(found, text=found.text if form in FORMS else text, status=found.status or 1)


#: Codex CLI's `exec_command` and `write_stdin`.
_SESSION = re.compile(
    r"(?:Chunk ID: [^\n]*\n)?Wall time: [^\n]*\n"
    r"(?:Process exited with code (?P<status>-?[0-9]+)|Process running with session ID (?P<session>[0-9]+))\n"
    r"(?:Original token count: [^\n]*\n)?Output:\n?",
)


def _session(text: str) -> CommandOutput:
    found = _SESSION.match(text)
    if found is None:
        return _in_words(text)
    status, session = found["status"], found["session"]
    return CommandOutput(
        text[found.end() :],
        None if status is None else int(status),
        None if session is None else int(session),
    )


#: The `shell` tools of older versions of Codex CLI.
_STATUS = re.compile(
    r"Exit code: (-?[0-9]+)\nWall time: [^\n]*\n(?:Total output lines: [0-9]+\n)?Output:\n?",
)


def _status(text: str) -> CommandOutput:
    found = _STATUS.match(text)
    if found is not None:
        rest = text[found.end() :]
        late = rest.startswith("command timed out after ")
        return CommandOutput(rest, int(found[1]), timed_out=late)
    value = _json(text)
    about = value.get("metadata") if isinstance(value, Mapping) else None
    if isinstance(value, Mapping) and isinstance(value.get("output"), str) and isinstance(about, Mapping):
        status = about.get("exit_code")
        return CommandOutput(value["output"], status if isinstance(status, int) else None)
    return _in_words(text)


#: Qwen Code and Gemini CLI.
_LABELLED_HEAD = re.compile(r"(?:Command: .*?\n)?Directory: [^\n]*\n(?:Output|Stdout): ", re.DOTALL)
_LABELLED_TAIL = re.compile(
    r"\nError: (?P<error>[^\n]*)\nExit Code: (?P<status>-?[0-9]{1,10}|\(none\))\nSignal: [^\n]*"
    r"(?:\n(?:Background PIDs|Process Group PGID): [^\n]*){0,4}"
)
_NOTHING = ("(empty)", "(none)")


def _labelled(text: str) -> CommandOutput:
    end = text.rstrip()
    head, at = _LABELLED_HEAD.match(end), end.rfind("\nError: ")
    tail = _LABELLED_TAIL.fullmatch(end, at) if at >= 0 else None
    if head is None or tail is None:
        return _in_words(text)
    out, _, err = end[head.end() : at].partition("\nStderr: ")
    printed = "\n".join(part for part in (out, err) if part and part not in _NOTHING)
    if not tail["status"].startswith("("):
        return CommandOutput(printed, int(tail["status"]))
    error = tail["error"] if tail["error"] not in _NOTHING else ""
    return CommandOutput("\n".join(filter(None, (printed, error))), 1)


def _listed(text: str) -> CommandOutput:
    """Cline's list with one entry."""
    value = _json(text)
    one = value[0] if isinstance(value, list) and len(value) == 1 else value
    if not isinstance(one, Mapping) or not isinstance(one.get("result"), str):
        return _in_words(text)
    printed, error = one["result"], str(one.get("error") or "")
    if one.get("success") is not False:
        return CommandOutput(printed, 0)
    found = re.fullmatch(r"Command exited with code (-?[0-9]+)", error)
    if found is None:
        return CommandOutput("\n".join(filter(None, (printed, error))), 1, timed_out="timed out" in error)
    head = f"[{error}]"
    return CommandOutput(printed.removeprefix(head).removeprefix("\n"), int(found[1]))


#: pi's words behind the output; and what programs may say there, which stays, since a command may print it as well.
_BEHIND = re.compile(r"(?:\A|\n{1,3})Command exited with code (?P<status>-?[0-9]{1,10})\s*\Z")
_SAID = re.compile(
    r"(?:\A|\n)[\[(]?(?:Process exited with code|exit (?:code|status)[:=]?) ?(?P<status>-?[0-9]{1,10})[\])]?\s*\Z",
    re.IGNORECASE,
)
_LATE = re.compile(
    r"(?:\A|\n)\s*(?:<shell_metadata>\s*)?\[?(?:shell tool terminated command after exceeding timeout|"
    r"Command timed out after)[^\n]*\s*(?:</shell_metadata>)?\s*\Z",
    re.IGNORECASE,
)
#: Continue's words for a command that failed; it keeps what went to stderr only.
_ERROR_HEAD = re.compile(r"Error executing tool \w+: Error \(exit code (-?[0-9]+)\): ?")
#: What a client says in place of no output.
_NO_OUTPUT = re.compile(r"\s*\((?:no (?:tool )?output|empty)\)\s*", re.IGNORECASE)


def _words_behind(text: str) -> CommandOutput:
    found = _ERROR_HEAD.match(text)
    if found is not None:
        return CommandOutput(text[found.end() :], int(found[1]))
    late = _LATE.search(text, max(0, len(text) - 1000))
    if late is not None:
        return CommandOutput(_silenced(text), 124, timed_out=True)
    start = max(0, len(text) - 200)
    behind = _BEHIND.search(text, start)
    if behind is not None:
        return CommandOutput(_silenced(text[: behind.start()]), int(behind["status"]))
    said = _SAID.search(text, start)
    return CommandOutput(_silenced(text), None if said is None else int(said["status"]))


def _silenced(text: str) -> str:
    return "" if _NO_OUTPUT.fullmatch(text) else text


def _json(text: str) -> Any:
    try:
        return load_json(text) if text[:1] in "[{" else None
    except (ValueError, RecursionError):
        return None


#: How a client with a form of its own says that it did not run a command.
_NOT_RUN = re.compile(
    r"\W*(?:(?:exec_command|write_stdin) failed|command (?:rejected|blocked|aborted|cancelled|denied)|"
    r"(?:rejected|blocked|aborted|cancelled|denied|unsupported|error)\b)",
    re.IGNORECASE,
)


def _in_words(text: str) -> CommandOutput:
    """A text in place of the form that a tool of this name has."""
    return CommandOutput(text, 1) if _NOT_RUN.match(text) else _words_behind(text)


def _plain(text: str) -> CommandOutput:
    return CommandOutput(text)


#: name in `tool_forms.Form.output` -> its reader
FORMS: Mapping[str, Callable[[str], CommandOutput]] = {
    "plain": _plain,
    "session": _session,
    "status": _status,
    "labelled": _labelled,
    "cline": _listed,
}
