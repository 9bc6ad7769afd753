"""Clients for the plans of the bridge: what a run does with a plan, and tools that work on real files."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from proxy.providers.p5_cursor.bridge.calls import ExecRequest
from proxy.providers.p5_cursor.bridge.commands import Sum
from proxy.providers.p5_cursor.bridge.plans import plan_for
from proxy.providers.p5_cursor.bridge.results import result_text
from proxy.providers.p5_cursor.bridge.steps import Plan, Returned, Step, Workplace
from proxy.providers.p5_cursor.bridge.tool_forms import client_tools

Tool = dict[str, Any]
Messages = list[dict[str, Any]]

ID = "call_cursor_1"


def result(content: Any = "ok", tool_use_id: str = ID, **members: Any) -> dict[str, Any]:
    """A block of a Messages request."""
    return {"type": "tool_result", "tool_use_id": tool_use_id, "content": content, **members}


#: Schemas that leave everything open, by the names of Claude Code's tools.
OPEN: dict[str, Tool] = {name: {"name": name, "input_schema": {"type": "object"}} for name in ("Read", "Write", "Bash")}


def tool(name: str, members: Mapping[str, Any], required: Iterable[str] = (), **further: Any) -> Tool:
    """The declaration of a tool. `members`: name -> its schema, or its type in a word."""
    properties = {one: {"type": form} if isinstance(form, str) else form for one, form in members.items()}
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"name": name, "input_schema": schema, **further}


def place_of(*tools: Tool, folder: str = "/w", posix: bool = True, secret: str = "s") -> Workplace:
    return Workplace(client_tools(tools), folder, posix, secret)


def planned(request: ExecRequest, place: Workplace) -> Plan:
    """The plan for a request that the client can serve."""
    plan = plan_for(request, place)
    assert plan is not None
    return plan


def sent_to(plan: Plan, returned: Returned) -> Step | Messages:
    """The next call, or the results."""
    try:
        return plan.send(returned)
    except StopIteration as done:
        results: Messages = done.value
        return results


def answers(
    request: ExecRequest, block: Mapping[str, Any], tool: Tool | None = None, *, elapsed_ms: int = 12
) -> Messages:
    """The results of a request for which the client's tool returned this block. Without a `tool`, the client has Claude
    Code's with open schemas."""
    plan = planned(request, place_of(*(OPEN.values() if tool is None else (tool,))))
    next(plan)
    found = sent_to(plan, Returned(result_text(block), bool(block.get("is_error")), elapsed_ms))
    assert isinstance(found, list), "another call"
    return found


def driven(
    request: ExecRequest, place: Workplace, client: Callable[[Step], Returned | str], most: int = 500
) -> tuple[list[Step], Messages]:
    """All calls of a plan with this client, and its results."""
    plan = planned(request, place)
    steps = [next(plan)]
    while len(steps) <= most:
        returned = client(steps[-1])
        found = sent_to(plan, Returned(returned) if isinstance(returned, str) else returned)
        if isinstance(found, list):
            return steps, found
        steps.append(found)
    raise AssertionError("the plan has no end")


def shown(command: str, data: bytes) -> str:
    """What one of our commands that read prints of a file with these bytes, by its own marks."""
    tag = command.partition(" of file ")[2].partition("]")[0]
    if "base64" in command:
        return f"[piece of file {tag}]\n{base64.encodebytes(data).decode()}[end of piece {tag}]\n"
    begin = f"[begin of file {tag}]\n{' '.join(map(str, Sum.of(data)))}\n"
    return f"{begin}{data.decode()}[end of file {tag}]\n" if "cat " in command else begin


def in_shell(command: str, shell: str = "bash", directory: Any = None) -> tuple[int, str]:
    """The status and the output of a command, as a tool that knows text only returns it."""
    done = subprocess.run(
        [shell, "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=directory,
    )
    return done.returncode, done.stdout.decode("utf-8", "replace")
