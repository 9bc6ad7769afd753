"""What rules alone decide about a tool call. They flag, or say that nothing need be judged; they never let a call run:
`not_flagged` is the word of the reviewer alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from proxy.core.auto_mode.commands import Run, runs
from proxy.core.auto_mode.dangers import danger, is_key
from proxy.core.auto_mode.paths import NO_HOME
from proxy.core.auto_mode.permissions import SHELL_TOOLS, concerns_command, forbids, paths_of
from proxy.core.auto_mode.policy import Policy, Rule
from proxy.core.auto_mode.question import MAX_CALL, MAX_CALLS
from proxy.core.auto_mode.shell import TooMuch
from proxy.core.auto_mode.verdicts import ToolUse, Verdict

#: The tools that Claude Code 2.1.330 runs without asking for a verdict: they read, or change only its own lists. Any
#: other that is skipped would not run.
HARMLESS = frozenset(
    {
        *("Read", "Grep", "Glob", "LSP", "ToolSearch", "ListMcpResourcesTool", "RefreshMcpTools"),
        *("WaitForMcpServers", "ReportFindings", "TodoWrite", "TaskCreate", "TaskGet", "TaskUpdate", "TaskList"),
        *("TaskStop", "GetTask", "EnterPlanMode", "ExitPlanMode"),
    }
)
#: Built-in tools that show what is in a file.
_READERS = frozenset({"Read", "Grep", "NotebookRead"})
#: Rules that let an agent push.
_PUSHING = ("Bash", "Bash(*)", "Bash(git:*)", "Bash(git *)", "Bash(git push")
#: How often words of the calls of one answer are held against a rule of the user.
MAX_CHECKS = 200_000


@dataclass(slots=True)
class Checks:
    """What may still be compared."""

    left: int = MAX_CHECKS

    def spend(self, number: int) -> None:
        """Raises TooMuch."""
        self.left -= number
        if self.left < 0:
            raise TooMuch


def decide(calls: Iterable[ToolUse], policy: Policy) -> tuple[dict[str, Verdict], list[ToolUse]]:
    """The verdicts that rules reach, and the calls that are left for the reviewer."""
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
    """None when a model must be asked."""
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


def _runs(call: ToolUse, policy: Policy) -> list[Run]:
    """The programs that a command would run. Raises TooMuch."""
    command = call.input.get("command") if call.tool in SHELL_TOOLS else None
    return runs(command, home=policy.home or NO_HOME, cwd=policy.cwd) if isinstance(command, str) else []


def _words(call: ToolUse, found: Sequence[Run]) -> int:
    """How many words a call has that a rule may concern, at most."""
    lists = sum(len(value) for value in call.input.values() if isinstance(value, (list, Mapping)))
    return len(call.input) + lists + sum(len(run.words) + len(run.reads) for run in found)


def _forbidden(call: ToolUse, found: Sequence[Run], policy: Policy) -> str | None:
    """By the user's own rules."""
    denied = forbids(policy.deny, call, found, policy)
    if denied is not None:
        return f"The user's permission rule {denied} denies it."
    for entry in policy.never:
        if forbids((Rule(entry),), call, found, policy) is not None or concerns_command(entry, found):
            return f"The user's auto mode never allows it: {entry}"
    return None


def _dangerous(call: ToolUse, found: Sequence[Run], policy: Policy) -> str | None:
    """By the built-in rules."""
    reads = call.tool in _READERS or call.tool.startswith("mcp__")
    if reads and any(is_key(path, policy.cwd, policy) for path in paths_of(call)):
        return "It would read private keys or stored credentials."
    return danger(found, policy, pushes=_may_push(policy))


def _may_push(policy: Policy) -> bool:
    rules = any(rule.text.startswith(_PUSHING[-1]) or rule.text in _PUSHING for rule in policy.allow)
    return rules or any("push" in entry.lower() for entry in policy.lists.get("allow", ()))
