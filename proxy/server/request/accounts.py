"""The accounts of all providers, which of them serves a request, and what is remembered of sessions for that.

Each account has its own provider object, made for the folder of the account, so sockets, runs, compaction and tokens
belong to it alone. A provider with one account only costs a check for a missing folder.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proxy.core.allowances.accounts import DEFAULT, Standing, account_key, in_order
from proxy.core.allowances.report import Allowance, spent_window
from proxy.core.identity import MAX_ID_BYTES
from proxy.core.routing import Catalog, model_family
from proxy.providers.accounts.named import names_in, services_for

if TYPE_CHECKING:
    from proxy.config import Config
    from proxy.core.models import ModelList
    from proxy.providers.accounts.allowance_store import AllowanceStore
    from proxy.providers.accounts.model_lists import ModelLists
    from proxy.providers.contract import Provider, Services
    from proxy.providers.entry import Entry

IDLE_S = 30 * 60.0
MAX_SESSIONS = 10_000


@dataclass(slots=True)
class _Session:
    seen: float
    sequence: int = 0
    affinity: str | None = None


class Sessions:
    """The sessions of clients. An entry expires 30 minutes after its last request; a full table drops its oldest.

    Affinity serves one purpose: a conversation on P2 sends its background requests under names like `haiku`, and
    those must follow it there. Only explicit models of providers that can serve aliases set it.

    followed  the labels of those providers
    """

    def __init__(
        self, clock: Callable[[], float], followed: Collection[str], *, max_sessions: int = MAX_SESSIONS
    ) -> None:
        self._clock = clock
        self._followed = followed
        self._max_sessions = max_sessions
        self._sessions: OrderedDict[str, _Session] = OrderedDict()

    def affinity(self, session: str | None) -> str | None:
        """The provider that this session's aliases follow."""
        entry = self._alive(session)
        return entry.affinity if entry else None

    def routed(self, session: str | None, label: str, *, explicit: bool) -> int | None:
        """Notes a routed request and returns its number within the session, None without a session. Ignores ids that no
        client has, which would only fill the table.

        explicit  whether the client named a model of the provider: not an alias, not a model that we chose
        """
        if session is None or len(session) > MAX_ID_BYTES:
            return None
        entry = self._alive(session)
        if entry is None:
            entry = self._sessions[session] = _Session(self._clock())
            if len(self._sessions) > self._max_sessions:
                self._sessions.popitem(last=False)
        entry.seen = self._clock()
        entry.sequence += 1
        if explicit and label in self._followed:
            entry.affinity = label
        return entry.sequence

    def _alive(self, session: str | None) -> _Session | None:
        entry = self._sessions.get(session) if session is not None else None
        if entry is not None and session is not None and self._clock() - entry.seen > IDLE_S:
            del self._sessions[session]
            return None
        return entry


#: A session that pauses for longer may change its account: caches of prompts are long gone then.
ACCOUNT_IDLE_S = 24 * 3600.0

#: The label of the provider, the name of the caller's key, and the session.
SessionKey = tuple[str, str, str]


def session_key(label: str, caller: str | None, session: str | None) -> SessionKey:
    """The key of a session's account. Requests without a session, or with an id that no client has, share one key, so
    that what an account encrypted for them comes back to it."""
    known = session if session is not None and len(session) <= MAX_ID_BYTES else None
    return label, caller or "", known or ""


class Affinity:
    """The account of each session. An entry expires some time after its last request; a full table drops its oldest."""

    def __init__(self, clock: Callable[[], float], *, max_sessions: int = MAX_SESSIONS) -> None:
        self._clock = clock
        self._max = max_sessions
        self._began: OrderedDict[SessionKey, tuple[str, float]] = OrderedDict()

    def of(self, key: SessionKey) -> str | None:
        """The name of the account, None for an unknown session."""
        name, seen = self._began.get(key, (None, 0.0))
        return name if name is not None and self._clock() - seen <= ACCOUNT_IDLE_S else None

    def note(self, key: SessionKey, name: str) -> None:
        """Notes the account that serves a session now."""
        self._began[key] = name, self._clock()
        self._began.move_to_end(key)
        if len(self._began) > self._max:
            self._began.popitem(last=False)


#: An account whose sign-in was refused is passed over for this long, and then asked again.
REFUSED_S = 60.0


@dataclass(frozen=True, slots=True)
class Serving:
    """An account that may serve a request.

    name      "" if the provider has only one account
    provider  the account's provider object
    """

    name: str
    provider: Provider

    @property
    def key(self) -> str:
        """Its name in tables and in monitors."""
        return account_key(self.provider.label, self.name)


class Providers(Mapping[str, "Provider"]):
    """The providers of the accounts without a name, by label, from the start of the application to its end. Each is
    made when it is first asked for: few users have an account of all, and the modules of one take up to 2 MB and 70 ms.

    made  those that were asked for
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.made: dict[str, Provider] = {}
        self.services: Services | None = None
        self._builds = {entry.label: entry.build for entry in entries if entry.build is not None}

    def __getitem__(self, label: str) -> Provider:
        if label not in self.made:
            if self.services is None:
                raise KeyError(label)
            self.made[label] = self._builds[label](self.services)
        return self.made[label]

    def __iter__(self) -> Iterator[str]:
        return iter(() if self.services is None else self._builds)

    def __contains__(self, label: object) -> bool:
        return self.services is not None and label in self._builds

    def __len__(self) -> int:
        return 0 if self.services is None else len(self._builds)


class Accounts:
    """The accounts of one application.

    providers  providers of the accounts without a name
    named      providers of the others, by keys such as p1/work: made when they are first seen, and kept, since an
               account that is signed out may come back
    """

    def __init__(
        self,
        entries: Sequence[Entry],
        allowances: AllowanceStore,
        lists: ModelLists,
        clock: Callable[[], float],
    ) -> None:
        self.providers = Providers(entries)
        self.named: dict[str, Provider] = {}
        self._entries = {entry.label: entry for entry in entries}
        self._allowances = allowances
        self._lists = lists
        self._catalogs: dict[str, tuple[Config, ModelList, Catalog]] = {}
        self._present: dict[str, tuple[str, ...]] = {}
        self._clock = clock
        self._affinity = Affinity(clock)
        self._refused: dict[str, float] = {}

    def begin(self, services: Services) -> None:
        """Makes the providers of the named accounts, at the start of the application."""
        self.providers.services = services
        for label in self.providers:
            if self._names(label):
                self.of(label)

    def end(self) -> list[Provider]:
        """Forgets all accounts, at the end of the application, and returns their providers, the newest first; none is
        made after it."""
        known = list(self.everyone())
        self.providers.services = None
        self.providers.made.clear()
        self.named.clear()
        return known[::-1]

    def everyone(self) -> Iterator[Provider]:
        """The providers of all accounts that were ever asked for."""
        yield from self.providers.made.values()
        yield from self.named.values()

    def watched(self) -> Mapping[str, Provider]:
        """The providers of all accounts that may be signed in, by the keys of their allowances. One that cannot be made
        is left out: its own requests say so."""
        found: dict[str, Provider] = {}
        for label in self.used():
            with suppress(Exception):
                found[label] = self.providers[label]
        return found | self.named

    def used(self) -> list[str]:
        """The providers that were asked for, or that have files or settings, without which nobody is signed in."""
        services = self.providers.services
        return [] if services is None else [one for one in self.providers if self._is_used(one, services)]

    def _is_used(self, label: str, services: Services) -> bool:
        section = self._entries[label].settings
        return (
            label in self.providers.made
            or section is None
            or section in services.config().sections
            or (services.config_dir / label).exists()
        )

    def of(self, label: str) -> list[Serving]:
        """All current accounts of a provider. Reads the disk."""
        default, names = self.providers[label], self._names(label)
        if not names:
            return [Serving("", default)]
        self._is_present(label, (DEFAULT, *names) if default.signed_in() else names)
        return [Serving(DEFAULT, default), *(Serving(name, self._made(label, name)) for name in names)]

    def _names(self, label: str) -> tuple[str, ...]:
        """The named accounts of a provider."""
        services = self.providers.services
        names = () if services is None else names_in(services.config_dir, label)
        if not names:
            self._is_present(label, (DEFAULT,))
        return names

    def _is_present(self, label: str, names: tuple[str, ...]) -> None:
        """Notes the accounts of a provider, whose lists of models count."""
        if self._present.get(label) != names:
            self._present[label] = names
            self._lists.only(label, [account_key(label, name) for name in names])

    def _made(self, label: str, name: str) -> Provider:
        key = account_key(label, name)
        entry = self._entries[label]
        services = self.providers.services
        if key not in self.named and services is not None and entry.build is not None:
            self.named[key] = entry.build(services_for(services, entry, name))
        return self.named[key]

    def choose(
        self,
        label: str,
        config: Config,
        *,
        session: str | None,
        caller: str | None = None,
        stays: bool = False,
        model: str = "",
        noted: bool = True,
    ) -> tuple[Serving, ...]:
        """The account that serves a request, then those that may serve instead, if any and not `stays`. `noted`:
        whether the session stays with it."""
        known, bound = self.of(label), _bound(config, label, caller)
        if len(known) == 1 and bound is None:
            return tuple(known)
        key = session_key(label, caller, session)
        onward = config.on_spent == "next" and not stays
        began = self._affinity.of(key)
        found = self._ordered(known, stays=began, bound=bound, onward=onward, config=config, model=model)
        if not noted:
            return found
        if began is None or found[0].name == began or self.lacks(account_key(label, began), model, config) is None:
            self._affinity.note(key, found[0].name)  # else it comes back with the next model that it has
        return found

    def moved(self, label: str, name: str, session: str | None, caller: str | None = None) -> None:
        """Notes that another account took a session over."""
        self._affinity.note(session_key(label, caller, session), name)

    def best(self, label: str, config: Config) -> Provider:
        """The provider for a request of our own, which belongs to no session."""
        return self._ordered(self.of(label), onward=config.on_spent == "next", config=config)[0].provider

    def _ordered(
        self,
        known: Sequence[Serving],
        *,
        stays: str | None = None,
        bound: str | None = None,
        onward: bool,
        config: Config,
        model: str = "",
    ) -> tuple[Serving, ...]:
        by_name = {one.name: one for one in known}
        if bound is not None and bound not in by_name:  # no other account replaces a missing one
            label = known[0].provider.label
            by_name[bound] = Serving(bound, self._made(label, bound))
        standings = [self._standing(one, model, config) for one in known]
        names = in_order(standings, stays=stays, bound=bound, onward=onward)
        return tuple(by_name[name] for name in names)

    def lacks(self, key: str, model: str, config: Config) -> Catalog | None:
        """The catalogue of an account, if its service does not list the model for it; else None."""
        offered = self._lists.of(key)
        entry = self._entries.get(key.partition("/")[0])
        if offered is None or entry is None or not model:
            return None
        made = self._catalogs.get(key)
        if made is None or made[0] is not config or made[1] is not offered:
            own = entry.offering(offered, self._entries.values())
            made = self._catalogs[key] = config, offered, own.catalog_now(config)
        return None if made[2].lists(model) else made[2]

    def _standing(self, one: Serving, model: str, config: Config) -> Standing:
        now = self._clock()
        known = self._allowances.of(one.key) or Allowance()
        current = [window for window in known.windows if not window.beyond and not window.is_over(now)]
        general = [window for window in current if not window.limit] or current
        return Standing(
            one.name,
            signed_in=one.provider.signed_in(),
            used=max((window.used or 0.0 for window in general), default=0.0),
            opens=self._opens(known, model),
            failed=now - self._refused.get(one.key, float("-inf")) <= REFUSED_S,
            lacks=self.lacks(one.key, model, config) is not None,
        )

    def _opens(self, known: Allowance, model: str) -> float | None:
        """The time when a model's spent window is reset, None if none is spent."""
        spent = None if known.pays_on else spent_window(known, self._clock(), family=model_family(model))
        return None if spent is None else spent.resets_at

    def refused(self, key: str) -> None:
        """Notes that the service refused the sign-in of an account."""
        self._refused[key] = self._clock()

    def is_spent(self, key: str, model: str) -> bool:
        """Whether a window of an account that this model counts against is known to be used up."""
        return self._opens(self._allowances.of(key) or Allowance(), model) is not None


def _bound(config: Config, label: str, caller: str | None) -> str | None:
    """The account of a provider that the settings assign to a caller, None if there is none."""
    if not config.account_callers:
        return None
    wanted = f"{label}/"
    found = (key for name, key in config.account_callers if name == caller and key.startswith(wanted))
    return next((key.removeprefix(wanted) for key in found), None)
