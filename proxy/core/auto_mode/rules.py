"""Judges tool calls by rules alone: the user's own, and the built-in ones of `dangers`. Rules flag a call or skip it,
but never permit it: only the reviewer says `not_flagged`.

The user's rules are those of Claude Code:

Bash                    every call of a tool
mcp__github             every tool of a server; mcp__github__* means the same
Bash(git push:*)        commands that begin so; so does Bash(git push *), and `*` may be anywhere
Read(~/.ssh/**)         files: `//` begins an absolute path, `~/` one in the home, others are relative
WebFetch(domain:x.org)  addresses
Skill(name), Agent(x)   any text in the call's arguments
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from proxy.core.auto_mode.commands import ProgramRun, runs
from proxy.core.auto_mode.dangers import danger, is_key
from proxy.core.auto_mode.paths import NO_HOME, covers, fits, located
from proxy.core.auto_mode.policy import Policy, Rule
from proxy.core.auto_mode.question import MAX_CALL, MAX_CALLS
from proxy.core.auto_mode.shell import TooMuch
from proxy.core.auto_mode.verdicts import ToolUse, Verdict

#: Tools that run the command in their member `command`.
SHELL_TOOLS = frozenset({"Bash", "PowerShell", "Monitor"})
#: tool of a rule -> the tools that it concerns.
_KINDS: Mapping[str, frozenset[str]] = {
    "Bash": SHELL_TOOLS,
    "Read": frozenset({"Read", "Grep", "Glob", "LS", "NotebookRead"}),
    **dict.fromkeys(("Edit", "Write"), frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})),
    **dict.fromkeys(("Agent", "Task"), frozenset({"Agent", "Task"})),
}
#: Members that name a file.
PATH_MEMBERS = ("file_path", "path", "notebook_path", "filePath", "filename", "uri", "paths", "files")

_RULE = re.compile(r"([\w*.-]+)(?:\((.*)\))?", re.DOTALL)


def forbids(rules: Sequence[Rule], call: ToolUse, found: Sequence[ProgramRun], policy: Policy) -> str | None:
    """The text of the first rule that concerns a call, None if none does.

    found  the programs that the call's command would run
    """
    return next((rule.text for rule in rules if concerns(rule, call, found, policy)), None)


def concerns(rule: Rule, call: ToolUse, found: Sequence[ProgramRun], policy: Policy) -> bool:
    """Whether a rule is a permission rule and concerns a call."""
    form = _RULE.fullmatch(rule.text)
    if form is None:
        return False
    tool, detail = form[1], form[2]
    files = tool in ("Read", "Edit", "Write")
    if detail is not None and files and call.tool in SHELL_TOOLS:
        return _names_file(rule, detail, _files_of(found), policy)
    if not _is_tool(tool, call.tool):
        return False
    if detail is None or detail.strip() in ("", "*"):
        return True
    if call.tool in SHELL_TOOLS:
        return any(_begins(detail, text) for text in _commands(call, found))
    if detail.startswith("domain:"):
        return any(_is_host(detail[7:].strip().lower(), url) for url in texts(call.input))
    if files:
        return _names_file(rule, detail, [(path, policy.cwd) for path in paths_of(call)], policy)
    return any(_begins(detail, text) for text in texts(call.input))


def concerns_command(entry: str, found: Sequence[ProgramRun]) -> bool:
    """Whether an entry is a command that a call would run: `terraform destroy`, `rm -rf *`."""
    entry = entry.strip("`")
    pattern = entry if "*" in entry else f"{entry}:*"
    return any(_begins(pattern, text) for run in found for text in (run.source, run.text))


def _is_tool(wanted: str, tool: str) -> bool:
    if wanted == tool or tool in _KINDS.get(wanted, ()):
        return True
    server = wanted.startswith("mcp__") and wanted.count("__") == 1
    return tool.startswith(wanted + "__") if server else "*" in wanted and fits(wanted, tool)


def _commands(call: ToolUse, found: Sequence[ProgramRun]) -> Iterator[str]:
    command = call.input.get("command")
    if isinstance(command, str):
        yield command.strip()
    for run in found:
        yield from (run.source, run.text)


def _begins(detail: str, text: str) -> bool:
    """Whether a command matches a rule; `cmd:*` and `cmd *` match the bare command, too."""
    for mark in (":*", " *"):
        if detail.endswith(mark) and "*" not in detail[:-2]:
            return text == detail[:-2] or text.startswith(detail[:-2] + " ")
    return fits(detail.removesuffix(":*") + "*" * detail.endswith(":*"), text)


def _is_host(wanted: str, url: str) -> bool:
    try:
        host = urlsplit(url if "//" in url else f"//{url}").hostname or ""
    except ValueError:
        return False
    return host == wanted or ("*" in wanted and fits(wanted, host))


def _files_of(found: Sequence[ProgramRun]) -> list[tuple[str, str]]:
    return [(word, run.cwd) for run in found for word in run.files if not word.startswith("-")]


def _names_file(rule: Rule, detail: str, files: Sequence[tuple[str, str]], policy: Policy) -> bool:
    """Whether a rule concerns one of `files`: paths from a call, each with the folder that a relative one starts
    from."""
    places = {path for word, cwd in files if (path := located(word, home=policy.home, cwd=cwd)) is not None}
    return any(covers(pattern, place) for pattern in _patterns(rule, detail, policy) for place in places)


def _patterns(rule: Rule, detail: str, policy: Policy) -> list[str]:
    """The absolute patterns that a rule may mean. A single slash means the folder of the rule's settings, but many
    users mean the root."""
    roots = list(filter(None, dict.fromkeys((rule.root, policy.cwd))))
    if detail.startswith("//"):
        return [detail[1:]]
    if detail.startswith("~"):
        return [place] if (place := located(detail, home=policy.home, cwd="")) else []
    if detail.startswith("/"):
        return [detail, *(root + detail for root in roots)]
    inner = detail.removeprefix("./")
    anywhere = "" if "/" in inner.rstrip("/") or inner != detail else "**/"
    return [f"{root}/{anywhere}{inner}" for root in roots] or [f"/**/{inner}"]


def paths_of(call: ToolUse) -> list[str]:
    """The files that the arguments of a call name."""
    return [text for name in PATH_MEMBERS for text in texts(call.input.get(name))]


def texts(value: Any) -> Iterator[str]:
    """Yields a text, or the texts directly in a list or object."""
    values = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else (value,)
    for one in values:
        if isinstance(one, str):
            yield one.removeprefix("file://")


#: Tools that Claude Code 2.1.330 runs without asking for a verdict: they read, or change only its own lists. Any other
#: tool would not run if it were skipped.
HARMLESS = frozenset(
    {
        *("Read", "Grep", "Glob", "LSP", "ToolSearch", "ListMcpResourcesTool", "RefreshMcpTools"),
        *("WaitForMcpServers", "ReportFindings", "TodoWrite", "TaskCreate", "TaskGet", "TaskUpdate", "TaskList"),
        *("TaskStop", "GetTask", "EnterPlanMode", "ExitPlanMode"),
    }
)
#: Built-in tools that show the contents of a file.
_READERS = frozenset({"Read", "Grep", "NotebookRead"})
#: Rules that let an agent push.
_PUSHING = ("Bash", "Bash(*)", "Bash(git:*)", "Bash(git *)", "Bash(git push")
#: Maximum number of comparisons of words with the user's rules, for the calls of one answer.
MAX_CHECKS = 200_000


@dataclass(slots=True)
class Checks:
    """The comparisons that are left."""

    left: int = MAX_CHECKS

    def spend(self, number: int) -> None:
        """Raises TooMuch."""
        self.left -= number
        if self.left < 0:
            raise TooMuch


def decide(calls: Iterable[ToolUse], policy: Policy) -> tuple[dict[str, Verdict], list[ToolUse]]:
    """The verdicts by rules, and the calls that are left for the reviewer."""
    verdicts: dict[str, Verdict] = {}
    left: list[ToolUse] = []
    size, checks = 0, Checks()
    for call in calls:
        verdict = by_rules(call, policy, checks)
        if verdict is None and size + call.size > MAX_CALLS:
            verdict = Verdict("input_too_long")
        if verdict is None:
            size += call.size
            left.append(call)
        else:
            verdicts[call.id] = verdict
    return verdicts, left


def by_rules(call: ToolUse, policy: Policy, checks: Checks) -> Verdict | None:
    """The verdict by rules; None if the reviewer must decide."""
    if not call.whole:
        return Verdict("truncated")
    try:
        found = _runs(call, policy)
        checks.spend(_words(call, found) * (len(policy.deny) + len(policy.never)))
    except TooMuch:
        return Verdict("input_too_long")
    why = _forbidden(call, found, policy) or _dangerous(call, found, policy)
    if why is not None:
        return Verdict("flagged", why)
    if call.tool in HARMLESS or (policy.only is not None and call.tool not in policy.only):
        return Verdict("skipped")
    return Verdict("input_too_long") if policy.unread or call.size > MAX_CALL else None


def _runs(call: ToolUse, policy: Policy) -> list[ProgramRun]:
    """The programs that a command would run. Raises TooMuch."""
    command = call.input.get("command") if call.tool in SHELL_TOOLS else None
    return runs(command, home=policy.home or NO_HOME, cwd=policy.cwd) if isinstance(command, str) else []


def _words(call: ToolUse, found: Sequence[ProgramRun]) -> int:
    """Most words of a call that a rule may concern."""
    lists = sum(len(value) for value in call.input.values() if isinstance(value, (list, Mapping)))
    return len(call.input) + lists + sum(len(run.words) + len(run.reads) for run in found)


def _forbidden(call: ToolUse, found: Sequence[ProgramRun], policy: Policy) -> str | None:
    """Why the user's own rules forbid a call; None if they do not."""
    denied = forbids(policy.deny, call, found, policy)
    if denied is not None:
        return f"The user's permission rule {denied} denies it."
    for entry in policy.never:
        if forbids((Rule(entry),), call, found, policy) is not None or concerns_command(entry, found):
            return f"The user's auto mode never allows it: {entry}"
    return None


def _dangerous(call: ToolUse, found: Sequence[ProgramRun], policy: Policy) -> str | None:
    """Why the built-in rules forbid a call; None if they do not."""
    reads = call.tool in _READERS or call.tool.startswith("mcp__")
    if reads and any(is_key(path, policy.cwd, policy) for path in paths_of(call)):
        return "It would read private keys or stored credentials."
    return danger(found, policy, pushes=_may_push(policy))


def _may_push(policy: Policy) -> bool:
    rules = any(rule.text.startswith(_PUSHING[-1]) or rule.text in _PUSHING for rule in policy.allow)
    return rules or any("push" in entry.lower() for entry in policy.lists.get("allow", ()))
