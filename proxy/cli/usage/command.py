"""`usage`: what is left of an allowance, or of all."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from proxy.cli.account import accounts_of, sign_in
from proxy.cli.command import Command, Context, say
from proxy.cli.config_file import ConfigFile
from proxy.cli.paths import state_root
from proxy.cli.usage.bars import Terminal, bars, kept_lines
from proxy.config import ConfigError
from proxy.core.allowances.report import Allowance
from proxy.errors import ProxyError
from proxy.providers.entry import Entry, account_titles, named

if TYPE_CHECKING:
    from proxy.providers.accounts.usage_report import UsageReport
    from proxy.providers.contract import Account


def _arguments(parser: argparse.ArgumentParser, context: Context) -> None:
    parser.add_argument("label", nargs="?", help=f"{account_titles(context.providers)}; all without one")
    parser.add_argument("--json", action="store_true", help="the answer as JSON")


@dataclass(frozen=True, slots=True)
class _Asked:
    """What became of a question.

    report  the answer
    error   why there is none
    kept    what a running proxy was told before, where there is no answer
    """

    entry: Entry
    report: UsageReport | None = None
    error: ProxyError | OSError | None = None
    why: str = ""
    kept: Allowance | None = None


async def _run(arguments: argparse.Namespace, context: Context) -> int:
    accounts = accounts_of(context, ConfigFile(context, new=True))
    if arguments.label is None:
        return await _all(accounts, context, as_json=arguments.json)
    entry = named(arguments.label, context.providers)
    account = next((account for one, account in accounts if one is entry), None)
    if entry is None or account is None:
        known = account_titles(context.providers)
        raise ConfigError(f"unknown provider {arguments.label!r}: accounts exist for {known}")
    return _one(await _ask(entry, account, context), as_json=arguments.json)


def _one(asked: _Asked, *, as_json: bool) -> int:
    if asked.report is not None:
        say(asked.report.json_text() if as_json else "\n".join(_lines(asked.report)))
    elif asked.error is not None:
        if asked.kept is not None and not as_json:
            say("\n".join(kept_lines(asked.kept, time.time())))
        raise asked.error
    return 0


async def _all(accounts: list[tuple[Entry, Account]], context: Context, *, as_json: bool) -> int:
    """All accounts are asked at one time; 1 when none could tell."""
    told = await asyncio.gather(*(_ask(entry, account, context, known=False) for entry, account in accounts))
    if as_json:
        say(json.dumps({asked.entry.label: _json(asked) for asked in told}))
    else:
        for asked in told:
            lines = [asked.why] if asked.report is None else _lines(asked.report)
            kept = [] if asked.kept is None else kept_lines(asked.kept, time.time())
            say("\n  ".join([f"{asked.entry.title}:", *lines, *kept]))
    return 0 if any(asked.report is not None for asked in told) else 1


def _json(asked: _Asked) -> Any:
    return {"error": asked.why} if asked.report is None else asked.report.answer


async def _ask(entry: Entry, account: Account, context: Context, *, known: bool = True) -> _Asked:
    """Asks an account; `known` is false where one that is not signed in is no failure of the question."""
    try:
        if not known and not (found := sign_in(entry, account)).usable:
            return _Asked(entry, why=found.why)
        return _Asked(entry, await account.usage())
    except (ProxyError, OSError) as error:
        why = error.message if isinstance(error, ProxyError) else str(error)
        kept = (await asyncio.to_thread(_kept, context.environment)).get(entry.label)
        return _Asked(entry, error=error, why=why, kept=kept)


def _kept(environment: Mapping[str, str]) -> dict[str, Allowance]:
    """Label -> what a proxy keeps of the account that it heard of last."""
    from proxy.providers.accounts.allowance_store import FILE_NAME, read_kept

    try:
        found = read_kept(state_root(environment) / FILE_NAME, time.time())
    except (OSError, ValueError):
        return {}
    return {provider: known for (provider, _), known in found.items()}


def _lines(report: UsageReport) -> list[str]:
    """Bars where somebody looks, plain lines for a program."""
    if not sys.stdout.isatty() or not report.known.windows:
        return report.lines()
    indent = "  "
    return [report.title, *(indent + line for line in bars(report.known, _terminal(len(indent) * 2), time.time()))]


def _terminal(indent: int) -> Terminal:
    """What the standard output can show, but for some columns."""
    colours = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    try:
        "█░".encode(sys.stdout.encoding or "ascii")
        blocks = True
    except (UnicodeError, LookupError):
        blocks = False
    return Terminal(shutil.get_terminal_size().columns - indent, colours, blocks)


USAGE = Command("usage", "show what is left of an allowance: usage p1; usage for all", _run, _arguments)
