"""The known allowances of all accounts: reported by the providers, kept in a file over restarts.

The file names no account: a digest distinguishes them. It says nothing that a monitor does not show. Its contents are
checked, value by value, before use. It is not part of the history's database: what is known now is one small document,
read and merged as a whole, and has to outlive a history that is cleared, damaged or off.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from proxy.auth.kept_file import KeptFile
from proxy.auth.store import remove_leftovers, write_private
from proxy.core.allowances.report import (
    FULL,
    MAX_WINDOWS,
    STEPS,
    Allowance,
    AllowanceWindow,
    Low,
    has_noted,
    lows,
    merged,
    without_noted,
)
from proxy.core.allowances.words import utc_text, wait_text
from proxy.core.routing import model_family
from proxy.observe.lifecycle import Log, NullLog

VERSION = 1
MAX_ACCOUNTS = 32
#: Characters of a text.
MAX_TEXT = 200
_MAX_NOTES = 16

#: `(label of the provider, digest of the account)` -> its allowance, the latest report last
Kept = Mapping[tuple[str, str], Allowance]


def encode_kept(kept: Kept) -> bytes:
    """The bytes of the file."""
    accounts = [
        {
            "provider": provider,
            "account": account,
            "plan": known.plan,
            "notes": list(known.notes),
            "whole": known.whole,
            "paysOn": known.pays_on,
            "windows": [_window_json(window) for window in known.windows],
        }
        for (provider, account), known in kept.items()
    ]
    return json.dumps({"version": VERSION, "accounts": accounts}, indent=1).encode() + b"\n"


def newest_kept(others: Kept, ours: Kept, now: float) -> Kept:
    """Merges the knowledge of two proxies that share a file: the newest report of each account. Reports dated in the
    future are ignored."""

    def is_newer(other: Allowance, known: Allowance) -> bool:
        return (known.as_of or 0.0) < (other.as_of or 0.0) <= now

    before = {key: other for key, other in others.items() if key not in ours}
    newest = {
        key: others[key] if key in others and is_newer(others[key], known) else known for key, known in ours.items()
    }
    return dict(list({**before, **newest}.items())[-MAX_ACCOUNTS:])


def _window_json(window: AllowanceWindow) -> dict[str, Any]:
    return {
        "title": window.title,
        "limit": window.limit,
        "name": window.name,
        "used": window.used,
        "minutes": window.minutes,
        "resetsAt": window.resets_at,
        "asOf": window.as_of,
        "words": window.words,
        "beyond": window.beyond,
        "warned": window.warned,
    }


def decode_kept(data: bytes, now: float) -> dict[tuple[str, str], Allowance]:
    """Reads the file's bytes. Raises ValueError for another kind of file; incomplete rows are left out. A report dated
    in the future counts as one of now: the clock has been set back."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    if not isinstance(found, dict) or found.get("version") != VERSION or not isinstance(found.get("accounts"), list):
        raise ValueError("another program or version wrote it")
    kept = {}
    for row in found["accounts"][-MAX_ACCOUNTS:]:
        if isinstance(row, dict) and isinstance(row.get("windows"), list) and _text(row.get("provider")):
            windows = (_window(one, now) for one in row["windows"][:MAX_WINDOWS] if isinstance(one, dict))
            kept[_text(row.get("provider")), _text(row.get("account"))] = Allowance(
                tuple(window for window in windows if window is not None),
                plan=_text(row.get("plan")),
                notes=tuple(filter(None, map(_text, _list(row.get("notes"))[:_MAX_NOTES]))),
                whole=row.get("whole") is not False,
                pays_on=row.get("paysOn") is True,
            )
    return kept


def _window(row: Mapping[str, Any], now: float) -> AllowanceWindow | None:
    title, as_of, minutes = _text(row.get("title")), _amount(row.get("asOf")), _amount(row.get("minutes"))
    if not title or as_of is None:
        return None
    warned = row.get("warned")
    return AllowanceWindow(
        title,
        _amount(row.get("used")),
        min(as_of, now),
        limit=_text(row.get("limit")),
        minutes=None if minutes is None else int(minutes),
        resets_at=_amount(row.get("resetsAt")),
        words=_text(row.get("words")),
        name=_text(row.get("name")),
        beyond=row.get("beyond") is True,
        warned=warned if warned in STEPS else 0,
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    """The printable characters of a text, safe for a terminal."""
    return "".join(char for char in value[:MAX_TEXT] if char.isprintable()) if isinstance(value, str) else ""


def _amount(value: Any) -> float | None:
    """A finite number from 0 to below 1e11, so that no date overflows; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e11:
        return None
    return float(value) if math.isfinite(value) else None


FILE_NAME = "allowances.json"
MAX_FILE_BYTES = 1024 * 1024
#: Seconds between two writes of the file, at least.
SAVE_EVERY_S = 5.0

#: Shows a notice to the user: level, message, label of the provider.
Notice = Callable[[str, str, str], None]


class AllowanceSink(Protocol):
    """Receives what a service reports of an account's allowance."""

    def tell(self, provider: str, account: str | None, report: Allowance) -> None: ...


class AllowanceStore:
    """The newest allowance of each account, the latest report last.

    folder  where the file is kept; None: in memory only
    age_s   how long a report is kept; 0: for ever
    notice  called when a window runs out, besides the log
    reported  called after a report, with the label of the provider and what is known now
    """

    def __init__(
        self,
        log: Log | None = None,
        clock: Callable[[], float] = time.time,
        *,
        folder: Path | None = None,
        age_s: float = 0.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        notice: Notice = lambda _level, _message, _provider: None,
        reported: Callable[[str, Allowance], None] = lambda _provider, _known: None,
    ) -> None:
        self._log = log or NullLog()
        self._clock = clock
        self._age_s = age_s
        self._known: dict[tuple[str, str], Allowance] = {}
        path = None if folder is None else folder / FILE_NAME
        self._file = KeptFile(path, "allowances", SAVE_EVERY_S, self._writer, self._log, sleep)
        self.notice, self.reported = notice, reported

    def tell(self, provider: str, account: str | None, report: Allowance) -> None:
        """Stores a report. `account` distinguishes the accounts of a provider, None for the only one."""
        self._tell((provider, digest(provider, account)), report)

    def _tell(self, key: tuple[str, str], report: Allowance) -> None:
        if not (report.windows or report.notes):
            return
        now = self._clock()
        known, found = lows(merged(self._known.pop(key, Allowance()), report, now))
        self._known[key] = known
        if len(self._known) > MAX_ACCOUNTS:
            del self._known[next(iter(self._known))]
        for low in found:
            self._warn(key[0], low, now)
        self.reported(key[0], known)
        self._file.changed()

    def tell_current(self, provider: str, report: Allowance) -> None:
        """Stores a report for the provider's account that reported last."""
        self._tell(next((key for key in reversed(self._known) if key[0] == provider), (provider, "")), report)

    def served(self, provider: str, model: str) -> None:
        """Forgets what a refusal said of a model family, since the account that reported last serves it again."""
        key = next((key for key in reversed(self._known) if key[0] == provider), None)
        if key is None or not has_noted(self._known[key]):  # nearly always
            return
        self._known[key] = without_noted(self._known[key], model_family(model))
        self._file.changed()

    def of(self, provider: str) -> Allowance | None:
        """The allowance of the provider's account that reported last."""
        return self.current.get(provider)

    @property
    def current(self) -> Mapping[str, Allowance]:
        """Label -> allowance for every known provider, sorted by label."""
        return dict(sorted({provider: known for (provider, _), known in self._known.items()}.items()))

    async def load(self) -> None:
        """Reads the file, before the first report comes. A file that is not ours is left alone until the next write."""
        path = self._file.path
        if path is None:
            return
        try:
            await asyncio.to_thread(remove_leftovers, path.parent)
            now = self._clock()
            self._known = self._young(await asyncio.to_thread(read_kept, path, now), now)
        except (FileNotFoundError, NotADirectoryError):  # a bad folder is reported when something is written
            return
        except (OSError, ValueError) as error:
            why = str(error) if isinstance(error, ValueError) else type(error).__name__
            self._log.write("warn", "allowances", "allowances_not_read", file=str(path), reason=why)

    async def close(self) -> None:
        """Writes unwritten changes."""
        await self._file.close()

    def _warn(self, provider: str, low: Low, now: float) -> None:
        window, over = low.window, low.window.resets_at
        self._log.write(
            "warn",
            provider,
            "allowance_low",
            limit=window.limit or None,
            window=window.title,
            usedPercent=window.used,
            resetsAt=None if over is None else utc_text(over),
        )
        used = (
            f"{window.full_title} window {window.used:.3g}% used"
            if low.step < FULL
            else f"{window.full_title} window used up"
        )
        resets = "" if over is None else f", resets in {wait_text(over - now)} ({utc_text(over)})"
        self.notice("warn", f"{provider}: {used}{resets}", provider)

    def _writer(self, path: Path) -> Callable[[], None]:
        return partial(self._write, path, dict(self._known), self._clock())

    def _write(self, path: Path, known: Kept, now: float) -> None:
        """Writes the file, merged with what another proxy may have written there. Blocks. Raises OSError."""
        try:
            others = read_kept(path, math.inf)
        except (OSError, ValueError):
            others = {}
        write_private(path, encode_kept(self._young(newest_kept(others, known, now), now)))

    def _young(self, kept: Kept, now: float) -> dict[tuple[str, str], Allowance]:
        """The reports that are young enough, or have no date."""
        end = now - self._age_s if self._age_s else 0.0
        return {key: known for key, known in kept.items() if known.as_of is None or known.as_of >= end}


def digest(provider: str, account: str | None) -> str:
    """The digest of an account in the file.

    >>> len(digest("p1", "acct-1")), digest("p1", None)
    (12, '')
    """
    return hashlib.sha256(f"{provider}:{account}".encode()).hexdigest()[:12] if account else ""


def read_kept(path: Path, now: float) -> dict[tuple[str, str], Allowance]:
    """Reads the file. Blocks. Raises OSError, and ValueError for a file that is not ours."""
    with path.open("rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise ValueError("it is too long")
    return decode_kept(data, now)
