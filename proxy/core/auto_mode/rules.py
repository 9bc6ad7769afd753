"""What rules alone decide about a tool call. They flag, or say that nothing need be judged; they never let a call run:
`not_flagged` is the word of the reviewer alone."""

from __future__ import annotations

from collections.abc import Iterable

from proxy.core.auto_mode.policy import Policy
from proxy.core.auto_mode.question import MAX_CALL, MAX_CALLS
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


def decide(calls: Iterable[ToolUse], policy: Policy) -> tuple[dict[str, Verdict], list[ToolUse]]:
    """The verdicts that rules reach, and the calls that are left for the reviewer."""
    verdicts: dict[str, Verdict] = {}
    left: list[ToolUse] = []
    size = 0
    for call in calls:
        verdict = by_rules(call, policy)
        if verdict is None and size + call.size > MAX_CALLS:
            verdict = Verdict("input_too_long")
        if verdict is None:
            size += call.size
            left.append(call)
        else:
            verdicts[call.id] = verdict
    return verdicts, left


def by_rules(call: ToolUse, policy: Policy) -> Verdict | None:
    """None when a model must be asked."""
    if not call.whole:
        return Verdict("truncated")
    if call.tool in HARMLESS or (policy.only is not None and call.tool not in policy.only):
        return Verdict("skipped")
    return Verdict("input_too_long") if policy.unread or call.size > MAX_CALL else None
