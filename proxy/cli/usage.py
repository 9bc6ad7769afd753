"""`usage`: what is left of one allowance, or of all."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from proxy.cli.account import Owned, account_of, accounts_of, cures, sign_in
from proxy.cli.command import Context, say
from proxy.cli.config_file import ConfigFile
from proxy.cli.paths import state_root
from proxy.config import ConfigError
from proxy.core.allowances.accounts import DEFAULT
from proxy.core.allowances.report import FULL, STEPS, Allowance, AllowanceWindow
from proxy.core.allowances.words import age_text, use_text, wait_text
from proxy.errors import ProxyError
from proxy.providers.entry import account_titles

if TYPE_CHECKING:
    from proxy.providers.accounts.usage_report import UsageReport


def arguments(parser: argparse.ArgumentParser, context: Context) -> None:
    parser.add_argument("label", nargs="?", help=f"{account_titles(context.providers)}; all without one")
    parser.add_argument("--as", dest="account", metavar="NAME", help="one account of the provider, by its name")
    parser.add_argument("--json", action="store_true", help="the answer as JSON")


@dataclass(frozen=True, slots=True)
class _Asked:
    """The outcome of a question.

    report  the answer
    error   why there is none
    kept    what a running proxy heard before, when there is no answer
    """

    owned: Owned
    report: UsageReport | None = None
    error: ProxyError | OSError | None = None
    why: str = ""
    kept: Allowance | None = None


async def run(arguments: argparse.Namespace, context: Context) -> int:
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
    """Asks all accounts at the same time; returns 1 when none answered."""
    answers = await asyncio.gather(*(_ask(owned, context, known=False) for owned in accounts))
    if as_json:
        say(json.dumps({asked.owned.key: _json(asked) for asked in answers}))
    else:
        for asked in answers:
            lines = [asked.why] if asked.report is None else _lines(asked.report)
            kept = [] if asked.kept is None else kept_lines(asked.kept, time.time())
            say("\n  ".join([f"{asked.owned.title}:", *lines, *kept]))
        if all(asked.report is None and asked.error is None for asked in answers):
            say("\n".join(cures(accounts, context.program)))
    return 0 if any(asked.report is not None for asked in answers) else 1


def _json(asked: _Asked) -> Any:
    return {"error": asked.why} if asked.report is None else asked.report.answer


async def _ask(owned: Owned, context: Context, *, known: bool = True) -> _Asked:
    """Asks an account. `known` False: a missing sign-in is not a failure."""
    try:
        if not known and not (found := sign_in(owned)).usable:
            return _Asked(owned, why=found.why)
        return _Asked(owned, await owned.account.usage())
    except (ProxyError, OSError) as error:
        if isinstance(error, ProxyError):
            error = error.replaced(message=owned.worded(error.message))
        why = error.message if isinstance(error, ProxyError) else str(error)
        kept = (await asyncio.to_thread(_kept, context.environment)).get(owned.key)
        return _Asked(owned, error=error, why=why, kept=kept)


def _kept(environment: Mapping[str, str]) -> dict[str, Allowance]:
    """Label, or p1/work -> what a proxy keeps of the account that reported last."""
    from proxy.providers.accounts.allowance_store import FILE_NAME, read_kept

    try:
        found = read_kept(state_root(environment) / FILE_NAME, time.time())
    except (OSError, ValueError):
        return {}
    return {provider: known for (provider, _), known in found.items()}


def _lines(report: UsageReport) -> list[str]:
    """Bars for a terminal, plain lines for a program."""
    if not sys.stdout.isatty() or not report.known.windows:
        return report.lines()
    indent = "  "
    terminal = terminal_of_output(len(indent) * 2)
    return [report.title, *(indent + line for line in bars(report.known, terminal, time.time()))]


def terminal_of_output(indent: int = 0) -> Terminal:
    """The abilities of the standard output, less `indent` columns."""
    colours = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"  # there may be no output at all
    try:
        "█░".encode(encoding)
        blocks = True
    except (UnicodeError, LookupError):
        blocks = False
    return Terminal(shutil.get_terminal_size().columns - indent, colours, blocks, encoding)


#: Columns: most and least of a bar, most of a title before it, most of the words after it before the bar gets shorter.
MOST_BAR, LEAST_BAR, MOST_TITLE, MOST_TAIL = 30, 8, 24, 46
#: Columns that a title may have on the narrowest terminal; on a wider one a third.
NARROW_TITLE = 12
#: Wide enough for `12.5%`.
_SHARE = 5
_GAP = "  "

_RED, _YELLOW, _GREEN, _PLAIN = "\x1b[31m", "\x1b[33m", "\x1b[32m", "\x1b[0m"


@dataclass(frozen=True, slots=True)
class Terminal:
    """The abilities of the terminal.

    columns   its width
    colours   whether it supports and wants colours
    blocks    whether it can write block characters
    encoding  of what it is written
    """

    columns: int = 80
    colours: bool = False
    blocks: bool = True
    encoding: str = "utf-8"


def bars(known: Allowance, terminal: Terminal, now: float) -> list[str]:
    """A line for each window and each note."""
    most = min(MOST_TITLE, max(NARROW_TITLE, terminal.columns // 3))
    width = min(max((len(window.full_title) for window in known.windows), default=0), most)
    tails = {window: _tails(window, now) for window in known.windows}
    longest = min(MOST_TAIL, max((len(forms[0]) for forms in tails.values()), default=0))
    room = terminal.columns - width - _SHARE - longest - 3 * len(_GAP)
    size = min(MOST_BAR, room) if room >= LEAST_BAR else 0
    rows = [_row(window, forms, (width, size), terminal, now) for window, forms in tails.items()]
    return [*rows, *(note[: terminal.columns] for note in known.notes)]


def kept_title(known: Allowance, now: float) -> str:
    """The heading of an allowance that was reported some time ago."""
    return f"as of {age_text(now - (known.as_of or now))}:"


def kept_lines(known: Allowance, now: float) -> list[str]:
    """Lines for an allowance that was reported some time ago; a window that has reset since is unknown."""
    return [
        kept_title(known, now),
        *(f"  {one.full_title}: {', '.join(_kept_row(one, now))}" for one in known.windows),
    ]


def _kept_row(window: AllowanceWindow, now: float) -> Iterator[str]:
    yield "began again since" if window.is_over(now) else use_text(window)
    yield from _resets(window, now)


def _tails(window: AllowanceWindow, now: float) -> tuple[str, ...]:
    """The words after the share, the longest first: without room, the end matters more than amounts."""
    if window.is_over(now):
        return ("began again since",)
    amounts = [] if "%" in window.words or not window.words else [window.words]
    resets = ", ".join(_resets(window, now))
    whole = ", ".join(filter(None, (*amounts, resets)))
    return (whole, resets, resets.removeprefix("resets ")) if resets and window.used is not None else (whole,)


def _fitting(forms: tuple[str, ...], room: int) -> str:
    return next((form for form in forms if len(form) <= room), forms[-1])[: max(0, room)]


def _row(
    window: AllowanceWindow, forms: tuple[str, ...], widths: tuple[int, int], terminal: Terminal, now: float
) -> str:
    """A line of one window. `widths`: of the title, and of the bar, 0 for none."""
    width, size = widths
    title = _fit(window.full_title, width).ljust(width) + _GAP
    if window.used is None or window.is_over(now):
        return f"{title}{_fitting(forms, terminal.columns - len(title))}".rstrip()
    share = (f"{window.used:.3g}%" if window.used < 1000 else f"{window.used:.0f}%").rjust(_SHARE)
    free = terminal.columns - len(title) - (size + len(_GAP) if size else 0) - len(share) - len(_GAP)
    drawn = f"{_bar(window.used, size, terminal)}{_GAP}" if size else ""
    return f"{title}{drawn}{share}{_GAP}{_fitting(forms, free)}".rstrip()


def _resets(window: AllowanceWindow, now: float) -> Iterator[str]:
    if window.resets_at is not None and not window.is_over(now):
        yield f"resets in {wait_text(window.resets_at - now)}"
    elif window.resets and window.resets_at is None:
        yield f"resets {window.resets}"


def _bar(used: float, size: int, terminal: Terminal) -> str:
    """Full only when nothing is left, empty only when nothing is used."""
    (on, off), (before, after) = (("█", "░"), ("", "")) if terminal.blocks else (("#", "-"), ("[", "]"))
    cells = size - len(before) - len(after)
    filled = round(min(used, FULL) / FULL * cells)
    filled = max(filled, 1) if used > 0 else filled
    filled = min(filled, cells - 1) if used < FULL else filled
    drawn = f"{before}{on * filled}{off * (cells - filled)}{after}"
    if not terminal.colours:
        return drawn
    return f"{_RED if used >= STEPS[1] else _YELLOW if used >= STEPS[0] else _GREEN}{drawn}{_PLAIN}"


def _fit(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "~"
