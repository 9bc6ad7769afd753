"""`service install|uninstall|status`: says what it will do, then does it."""

from __future__ import annotations

import argparse
import os
import sys

from proxy.cli.command import Command, Context, say
from proxy.cli.service.plan import Kind, described
from proxy.config import ConfigError

_ACTIONS = "install: write its file and start it; uninstall: the reverse; status: whether it runs"


def _arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
    parser.add_argument("action", choices=("install", "uninstall", "status"), help=_ACTIONS)
    parser.add_argument(
        "--system", action="store_true", help="of the machine, under a user of its own (systemd; needs root)"
    )
    parser.add_argument("--print", action="store_true", help="print what would be done, and do nothing")


async def _run(arguments: argparse.Namespace, context: Context) -> int:
    from proxy.cli.service import doing

    kind = kind_of(context, sys.platform, system=arguments.system)
    if arguments.action == "status":
        return _status(kind, context.program, only_print=arguments.print)
    plan = kind.install() if arguments.action == "install" else kind.uninstall()
    if arguments.action == "uninstall" and not kind.file.exists() and not arguments.print:
        say(f"not installed: there is no {kind.file}")
        return 0
    for line in described(plan, windows=sys.platform == "win32"):
        say(line)
    if not arguments.print:
        _check_rights(arguments.system)
        doing.check_own(kind.file)
        doing.do(plan, doing.run_command, doing.run_quietly)
        say(f"{arguments.action}ed")
    for hint in plan.hints:
        say(f"note    {hint}")
    return 0


def kind_of(context: Context, platform: str, *, system: bool) -> Kind:
    """The kind of service that this platform has. Raises ConfigError for one that it has not."""
    from proxy.cli.service.launchd import Agent
    from proxy.cli.service.systemd import SystemUnit, UserUnit, has_user
    from proxy.cli.service.target import target_of
    from proxy.cli.service.windows import Task

    if system and platform in ("darwin", "win32"):
        raise ConfigError("--system is for systemd; here the service is the user's")
    target = target_of(context, platform)
    if platform == "win32":
        return Task(target)
    if platform == "darwin":
        return Agent(target)
    return SystemUnit(target, has_user()) if system else UserUnit(target)


def _check_rights(system: bool) -> None:
    if system and os.geteuid() != 0:
        raise ConfigError("--system needs root; with --print anybody may look at what it does")


def _status(kind: Kind, program: str, *, only_print: bool) -> int:
    """0 while the service runs, 1 otherwise."""
    from proxy.cli.service import doing
    from proxy.cli.service.plan import typed

    step = kind.status()
    there = kind.file.exists()
    say(f"{kind.file}: {'there' if there else f'not there; `{program} service install` writes it'}")
    if only_print or there:
        say(f"run     {typed(step.command, windows=sys.platform == 'win32')}")
    if only_print:
        return 0
    return 1 if not there or doing.status_of(doing.run_command, step) else 0


SERVICE = Command("service", "run the proxy as a service of this system, from the login on", _run, _arguments)
