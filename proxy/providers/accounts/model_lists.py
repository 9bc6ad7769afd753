"""The lists of models of all accounts: asked for beside requests, which never wait for them, and kept over restarts.

Each account has a file in the state folder, with ids and facts only. Until there is a list our own tables are used.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Collection, Hashable, Mapping
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
        self._noted: dict[str, tuple[str, str]] = {}
        self._failed: dict[str, str] = {}
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
        """Asks the services again, each at most once in `look`: a name that no list has may be new."""
        now = self._clock()
        for key, provider in providers.items():
            asked = self._asked.get(key)
            if asked is None or now - asked.at >= self._timers.look:
                self._look_at[key] = max(now, self._first)
                if asked is not None:
                    self._asked[key] = replace(asked, until=now)
                self.look(key, provider)

    async def refreshed(self, providers: Mapping[str, object]) -> dict[str, str]:
        """Asks all services that are signed in, and waits for their answers; returns why some failed, by key."""
        for key, provider in providers.items():
            if isinstance(provider, ListsModels) and provider.signed_in():
                self.look(key, provider)
        if self._asking:
            await asyncio.wait(set(self._asking.values()))
        return dict(self._failed)

    def only(self, label: str, keys: Collection[str]) -> None:
        """Forgets the lists of a provider's accounts that are gone."""
        for key in [key for key in {*self._known, *self._asked} if key.partition("/")[0] == label and key not in keys]:
            self._asked.pop(key, None)
            self._look_at.pop(key, None)
            if key in self._known:
                self._drop(key)

    def _drop(self, key: str) -> None:
        del self._known[key]
        self.generation += 1

    def _ask(self, key: str, provider: ListsModels, now: float) -> None:
        asked, owner = self._asked.get(key), self._owner(key, provider)
        other = asked is not None and asked.owner != owner
        if key in self._asking or (asked is not None and now < asked.until and not other):
            return
        if other and key in self._known:  # of the account that was signed in before
            self._drop(key)
        self._asked[key] = _Asked(now, now + self._timers.retry, owner)
        self._asking[key] = asyncio.create_task(self._question(key, provider, owner))

    async def _question(self, key: str, provider: ListsModels, owner: Hashable) -> None:
        self._failed.pop(key, None)
        try:
            found = await provider.ask_models(self._known.get(key))
            now, asked = self._clock(), self._asked.get(key)
            if asked is None:  # the account is gone
                return
            if self._owner(key, provider) != owner:  # another one signed in: the next look drops what is known
                self._asked[key] = replace(asked, until=now)
                return
            self._asked[key] = _Asked(now, now + self._timers.fresh, owner)
            await self._adopt(key, found)
        except SignInError as error:
            self._failed[key] = error.message  # the request beside it reports that
        except ProxyError as error:
            self._failed[key] = error.message
            self._note(key, "warn", "models_not_listed", error.message)
        except Exception as error:
            self._unforeseen(key, error)
        finally:
            del self._asking[key]

    def _owner(self, key: str, provider: ListsModels) -> Hashable:
        """The account that is signed in; a failure to know it fails no request."""
        try:
            return provider.cache_owner()
        except Exception as error:
            self._unforeseen(key, error)
            return None

    def _unforeseen(self, key: str, error: Exception) -> None:
        self._failed[key] = f"an internal error ({type(error).__name__})"
        self._note(key, "error", "internal_error", type(error).__name__)

    async def _adopt(self, key: str, found: ModelList) -> None:
        before = self._known.get(key)
        if before is not None and before.models == found.models:
            found = replace(found, models=before.models)
        else:
            self.generation += 1
        self._known[key] = found
        self._note(key, "info", "models_listed", f"{len(found.models)} models")
        if self._folder is None:
            return
        path = self._folder / _file_name(key)
        try:
            await asyncio.to_thread(_write, path, found)
        except (OSError, ValueError) as error:
            self._failed[key] = f"{path} could not be written ({type(error).__name__})"
            self._note(key, "warn", "models_not_kept", self._failed[key])

    def _note(self, key: str, level: str, msg: str, detail: str) -> None:
        """Logs a note once until it changes: the services are asked every hour."""
        if self._noted.get(key) != (msg, detail):
            self._noted[key] = msg, detail
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
    data = json.dumps(as_json(known)).encode()
    if len(data) > MAX_FILE_BYTES:
        raise ValueError("the list is too long to be kept")
    write_private(path, data)


def read_lists(folder: Path) -> dict[str, ModelList]:
    """The kept lists by the keys of their accounts. Blocks; what cannot be read is left out."""
    found: dict[str, ModelList] = {}
    with contextlib.suppress(OSError):
        for path in sorted(folder.glob("*.json")):
            label, _, name = path.stem.partition("-")
            with contextlib.suppress(OSError, ValueError, RecursionError), path.open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
                if len(found) < MAX_ACCOUNTS and len(data) <= MAX_FILE_BYTES:
                    found[account_key(label, name)] = from_json(json.loads(data))
    return found
