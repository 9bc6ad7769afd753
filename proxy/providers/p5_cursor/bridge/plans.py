"""How a request of the service is answered by a client's tools: one call, or several one after the other. Pure.

A plan is a generator: it yields the next call, is sent what the client's tool returned, and returns the results for the
service. A file goes through the client's own tool where there is one that keeps its bytes, else through its shell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from proxy.providers.p5_cursor.bridge import commands, search_commands
from proxy.providers.p5_cursor.bridge.calls import ExecRequest
from proxy.providers.p5_cursor.bridge.command_output import CommandOutput
from proxy.providers.p5_cursor.bridge.file_plans import read_plan, write_plan
from proxy.providers.p5_cursor.bridge.results import FAILED, command_results
from proxy.providers.p5_cursor.bridge.steps import (
    USUAL_DESCRIPTION,
    USUAL_TIMEOUT_MS,
    Command,
    Plan,
    Workplace,
    output_from,
    printed_by,
    run_by_shell,
)
from proxy.providers.p5_cursor.bridge.tool_forms import ClientTool


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
    asked = Command(request.command, request.directory, limit, request.description or USUAL_DESCRIPTION)
    output, elapsed_ms = yield from output_from(tool, place, asked)
    if output.session is not None:
        words = f"\n[The command still runs, in session {output.session} of the client. This is its output so far.]"
        output = CommandOutput(output.text + words, 124, timed_out=True)
    return command_results(request, output, place.folder, elapsed_ms)


# -- folders, searches


def _listed_by_shell(request: ExecRequest, place: Workplace) -> Plan:
    path = request.path or place.folder or "."
    tag = place.tag(request)
    output = yield from printed_by(place, search_commands.list_command(path, tag))
    ignore = [one for one in request.args.get("ignore") or () if isinstance(one, str)]
    root = search_commands.listed(output.text, tag, path, ignore)
    if root is None:
        return [{"ls_result": {"error": {"path": request.path, "error": output.text.strip() or FAILED}}}]
    return [{"ls_result": {"success": {"directory_tree_root": root}}}]


def _deleted_by_shell(request: ExecRequest, place: Workplace) -> Plan:
    tag = place.tag(request)
    output = yield from run_by_shell(place, search_commands.delete_command(request.path, tag))
    if search_commands.deleted(output.text, tag):
        return [{"delete_result": {"success": {"path": request.path, "deleted_file": request.path}}}]
    return [{"delete_result": {"error": {"path": request.path, "error": output.text.strip() or FAILED}}}]


def _found_by_shell(request: ExecRequest, place: Workplace) -> Plan:
    path = request.path or place.folder or "."
    tag = place.tag(request)
    output = yield from printed_by(place, search_commands.search_command(request.args, path, tag))
    found = search_commands.found(output.text, tag, request.args, path)
    if found is None:
        return [{"grep_result": {"error": {"error": output.text.strip() or FAILED}}}]
    return [{"grep_result": {"success": found}}]


def _shelled(make: Callable[[ExecRequest, Workplace], Plan], request: ExecRequest, place: Workplace) -> Plan | None:
    """The plan of a request that only a shell serves."""
    fits = not request.path or commands.fits_shell(request.path)
    return make(request, place) if place.shell is not None and fits else None


_PLANS: Mapping[str, Callable[[ExecRequest, Workplace], Plan | None]] = {
    "read_args": read_plan,
    "redacted_read_args": read_plan,
    "write_args": write_plan,
    "shell_stream_args": _run,
    "shell_args": _run,
    "ls_args": partial(_shelled, _listed_by_shell),
    "grep_args": partial(_shelled, _found_by_shell),
    "delete_args": partial(_shelled, _deleted_by_shell),
}
