"""The lists of models of all accounts: asked for beside requests, which never wait for them, and kept over restarts.

Each account has a file in the state folder, with ids and facts only. Until there is a list our own tables are used.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, runtime_checkable

from proxy.auth.store import write_private
from proxy.core.allowances.accounts import account_key
from proxy.core.models import ModelList, as_json, from_json, union
from proxy.errors import ProxyError, SignInError
from proxy.observe.lifecycle import Log, NullLog

FOLDER = "models"
MAX_FILE_BYTES = 1024 * 1024
MAX_ACCOUNTS = 32


@dataclass(frozen=True, slots=True)
class ListTimers:
    """The times of the questions, in seconds.

    first   from the start to the first question
    look    between two checks whether a list is old, or of another account
    fresh   that a list is used before it is asked for again
    retry   to the next question after a failure
    answer  that one question may take
    """

    first: float = 0.0
    look: float = 60.0
    fresh: float = 3600.0
    retry: float = 300.0
    answer: float = 8.0


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question: when it was asked, how long its answer or its failure counts, and the account."""

    at: float
    until: float
    owner: Hashable


@runtime_checkable
class ListsModels(Protocol):
    """A provider whose service lists the models of an account."""

    def signed_in(self) -> bool: ...

    def cache_owner(self) -> Hashable: ...

    async def ask_models(self, known: ModelList | None) -> ModelList:
        """Asks the service. Raises ProxyError. `known`: the list to confirm."""
        ...


class ModelLists:
    """The lists of one application, by the key of the account: `p1`, `p1/work`.

    folder      where the files are; None: in memory only
    generation  grows with each change, for what is derived from the lists
    """

    def __init__(
        self,
        log: Log | None = None,
        clock: Callable[[], float] = time.time,
        *,
        folder: Path | None = None,
        timers: ListTimers = ListTimers(),
    ) -> None:
        self._log = log or NullLog()
        self._clock = clock
        self._folder = None if folder is None else folder / FOLDER
        self._known: dict[str, ModelList] = {}
        self._unions: dict[str, tuple[int, ModelList | None]] = {}
        self._timers = timers
        self._first = clock() + timers.first
        self._look_at: dict[str, float] = {}
        self._asked: dict[str, _Asked] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._noted: dict[str, str] = {}
        self.generation = 0

    def of(self, key: str) -> ModelList | None:
        """The list of one account."""
        return self._known.get(key)

    def of_label(self, label: str) -> ModelList | None:
        """The lists of all accounts of a provider as one."""
        made = self._unions.get(label)
        if made is None or made[0] != self.generation:
            mine = (key for key in sorted(self._known) if key.partition("/")[0] == label)
            made = self._unions[label] = self.generation, union([self._known[key] for key in mine])
        return made[1]

    def look(self, key: str, provider: object) -> None:
        """Asks in the background for a list that is old, beside a request of this account."""
        now = self._clock()
        if now < self._look_at.get(key, self._first):
            return
        self._look_at[key] = now + self._timers.look
        if isinstance(provider, ListsModels):
            self._ask(key, provider, now)

    def look_again(self, providers: Mapping[str, object]) -> None:
        """Asks the services again that were asked some time ago: a name that no list has may be new."""
        now = self._clock()
        for key, asked in [*self._asked.items()]:
            if now - asked.at >= self._timers.look and key in providers:
                self._asked[key], self._look_at[key] = replace(asked, until=now), now
                self.look(key, providers[key])

    async def refreshed(self, providers: Mapping[str, object]) -> None:
        """Asks all services that are signed in, and waits for their answers."""
        for key, provider in providers.items():
            if isinstance(provider, ListsModels) and provider.signed_in():
                self.look(key, provider)
        if self._asking:
            await asyncio.wait(set(self._asking.values()))

    def _ask(self, key: str, provider: ListsModels, now: float) -> None:
        asked, owner = self._asked.get(key), provider.cache_owner()
        same = asked is None or asked.owner == owner
        if key in self._asking or (asked is not None and now < asked.until and same):
            return
        self._asked[key] = _Asked(now, now + self._timers.retry, owner)
        known = self._known.get(key) if same else None
        self._asking[key] = asyncio.create_task(self._question(key, provider, known))

    async def _question(self, key: str, provider: ListsModels, known: ModelList | None) -> None:
        try:
            found = await provider.ask_models(known)
            now = self._clock()
            self._asked[key] = _Asked(now, now + self._timers.fresh, provider.cache_owner())
            await self._adopt(key, found)
        except SignInError:
            return  # the request beside it reports that
        except ProxyError as error:
            self._note(key, "warn", "models_not_listed", error.message)
        except Exception as error:
            self._note(key, "error", "internal_error", type(error).__name__)
        finally:
            del self._asking[key]

    async def _adopt(self, key: str, found: ModelList) -> None:
        before = self._known.get(key)
        if before is None or before.models != found.models:
            self.generation += 1
        self._known[key] = found
        self._note(key, "info", "models_listed", f"{len(found.models)} models")
        if self._folder is None:
            return
        try:
            await asyncio.to_thread(_write, self._folder / _file_name(key), found)
        except OSError as error:
            self._note(key, "warn", "models_not_kept", type(error).__name__)

    def _note(self, key: str, level: str, msg: str, detail: str) -> None:
        """Logs a note once until it changes: the services are asked every hour."""
        if self._noted.get(key) != msg + detail:
            self._noted[key] = msg + detail
            self._log.write(level, key, msg, detail=detail)

    def read(self) -> None:
        """Reads the files of the last run; one that cannot be read is left out. Blocks."""
        if self._folder is not None:
            self._known = read_lists(self._folder)
            self.generation += 1

    async def close(self) -> None:
        """Ends running questions."""
        running = set(self._asking.values())
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)


def _file_name(key: str) -> str:
    return key.replace("/", "-") + ".json"


def _write(path: Path, known: ModelList) -> None:
    write_private(path, json.dumps(as_json(known), indent=1).encode() + b"\n")


def read_lists(folder: Path) -> dict[str, ModelList]:
    """The kept lists by the keys of their accounts. Blocks; what cannot be read is left out."""
    found: dict[str, ModelList] = {}
    with contextlib.suppress(OSError):
        for path in sorted(folder.glob("*.json"))[:MAX_ACCOUNTS]:
            with contextlib.suppress(OSError, ValueError, RecursionError), path.open("rb") as file:
                label, _, name = path.stem.partition("-")
                found[account_key(label, name)] = from_json(json.loads(file.read(MAX_FILE_BYTES + 1)[:MAX_FILE_BYTES]))
    return found
