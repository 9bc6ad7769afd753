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

from proxy.cli.account import Owned, account_of, accounts_of, cures, sign_in
from proxy.cli.command import Command, Context, say
from proxy.cli.config_file import ConfigFile
from proxy.cli.paths import state_root
from proxy.cli.usage.bars import Terminal, bars, kept_lines
from proxy.config import ConfigError
from proxy.core.allowances.accounts import DEFAULT
from proxy.core.allowances.report import Allowance
from proxy.errors import ProxyError
from proxy.providers.entry import account_titles

if TYPE_CHECKING:
    from proxy.providers.accounts.usage_report import UsageReport


def _arguments(parser: argparse.ArgumentParser, context: Context) -> None:
    parser.add_argument("label", nargs="?", help=f"{account_titles(context.providers)}; all without one")
    parser.add_argument("--as", dest="account", metavar="NAME", help="one account of the provider, by its name")
    parser.add_argument("--json", action="store_true", help="the answer as JSON")


@dataclass(frozen=True, slots=True)
class _Asked:
    """What became of a question.

    report  the answer
    error   why there is none
    kept    what a running proxy was told before, where there is no answer
    """

    owned: Owned
    report: UsageReport | None = None
    error: ProxyError | OSError | None = None
    why: str = ""
    kept: Allowance | None = None


async def _run(arguments: argparse.Namespace, context: Context) -> int:
    accounts = accounts_of(context, ConfigFile(context, new=True))
    if arguments.label is None:
        if arguments.account is not None:
            raise ConfigError(f"--as needs a provider: {context.program} usage LABEL --as NAME")
        return await _all(accounts, context, as_json=arguments.json)
    owned = account_of(arguments.label, context, arguments.account or DEFAULT)
    of_provider = [one for one in accounts if one.entry is owned.entry]
    if arguments.account is None and len(of_provider) > 1:
        return await _all(of_provider, context, as_json=arguments.json)
    return _one(await _ask(owned, context), as_json=arguments.json)


def _one(asked: _Asked, *, as_json: bool) -> int:
    if asked.report is not None:
        say(asked.report.json_text() if as_json else "\n".join(_lines(asked.report)))
    elif asked.error is not None:
        if asked.kept is not None and not as_json:
            say("\n".join(kept_lines(asked.kept, time.time())))
        raise asked.error
    return 0


async def _all(accounts: list[Owned], context: Context, *, as_json: bool) -> int:
    """All accounts are asked at one time; 1 when none could tell."""
    told = await asyncio.gather(*(_ask(owned, context, known=False) for owned in accounts))
    if as_json:
        say(json.dumps({asked.owned.key: _json(asked) for asked in told}))
    else:
        for asked in told:
            lines = [asked.why] if asked.report is None else _lines(asked.report)
            kept = [] if asked.kept is None else kept_lines(asked.kept, time.time())
            say("\n  ".join([f"{asked.owned.title}:", *lines, *kept]))
        if all(asked.report is None and asked.error is None for asked in told):
            say("\n".join(cures(accounts, context.program)))
    return 0 if any(asked.report is not None for asked in told) else 1


def _json(asked: _Asked) -> Any:
    return {"error": asked.why} if asked.report is None else asked.report.answer


async def _ask(owned: Owned, context: Context, *, known: bool = True) -> _Asked:
    """Asks an account; `known` is false where one that is not signed in is no failure of the question."""
    try:
        if not known and not (found := sign_in(owned)).usable:
            return _Asked(owned, why=found.why)
        return _Asked(owned, await owned.account.usage())
    except (ProxyError, OSError) as error:
        if isinstance(error, ProxyError):
            error = error.replaced(message=owned.told(error.message))
        why = error.message if isinstance(error, ProxyError) else str(error)
        kept = (await asyncio.to_thread(_kept, context.environment)).get(owned.key)
        return _Asked(owned, error=error, why=why, kept=kept)


def _kept(environment: Mapping[str, str]) -> dict[str, Allowance]:
    """Label, or p1/work -> what a proxy keeps of the account that it heard of last."""
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
