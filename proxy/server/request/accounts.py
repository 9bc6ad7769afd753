"""The accounts of all providers: who there is, and who serves a request.

Each account is a provider of its own, made for the folder of the account, so sockets, runs, compaction and tokens
belong to it alone. A provider with one account costs a look for a folder that is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from proxy.config import Config
from proxy.core.allowances.accounts import DEFAULT, Standing, account_key, in_order
from proxy.core.allowances.report import Allowance, spent_window
from proxy.core.routing import model_family
from proxy.providers.accounts.allowance_store import AllowanceStore
from proxy.providers.accounts.named import names_in, services_for
from proxy.providers.contract import Provider, Services
from proxy.providers.entry import Entry
from proxy.server.request.affinity import Affinity, session_key

#: An account whose sign-in was refused is passed over for this long, and then asked again.
REFUSED_S = 60.0


@dataclass(frozen=True, slots=True)
class Serving:
    """An account that may serve a request.

    name      "" where the provider has one account only
    provider  made for it
    """

    name: str
    provider: Provider

    @property
    def key(self) -> str:
        """How it stands in tables and in what monitors show."""
        return account_key(self.provider.label, self.name)


class Accounts:
    """One object an application.

    providers  those of the accounts without a name, by label
    named      those of the others, by p1/work: made when they are first seen, and kept, since an account that is
               signed out may come back
    """

    def __init__(
        self,
        entries: Sequence[Entry],
        allowances: AllowanceStore,
        clock: Callable[[], float],
    ) -> None:
        self.providers: dict[str, Provider] = {}
        self.named: dict[str, Provider] = {}
        self._entries = {entry.label: entry for entry in entries}
        self._allowances = allowances
        self._clock = clock
        self._affinity = Affinity(clock)
        self._refused: dict[str, float] = {}
        self._services: Services | None = None

    def begin(self, services: Services) -> None:
        """The application starts."""
        self._services = services
        for label in self.providers:
            self.of(label)

    def end(self) -> None:
        """It stops, and nobody is made any more."""
        self._services = None
        self.named.clear()

    def everyone(self) -> Iterator[Provider]:
        """The providers of all accounts that were ever seen."""
        yield from self.providers.values()
        yield from self.named.values()

    def watched(self) -> Mapping[str, Provider]:
        """The same, by the keys under which their allowances are known."""
        return {**self.providers, **self.named}

    def of(self, label: str) -> list[Serving]:
        """All accounts of a provider, as they are now. Looks at the disk."""
        default = self.providers[label]
        names = () if self._services is None else names_in(self._services.config_dir, label)
        if not names:
            return [Serving("", default)]
        return [Serving(DEFAULT, default), *(Serving(name, self._made(label, name)) for name in names)]

    def _made(self, label: str, name: str) -> Provider:
        key = account_key(label, name)
        entry = self._entries[label]
        if key not in self.named and self._services is not None and entry.build is not None:
            self.named[key] = entry.build(services_for(self._services, entry, name))
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
    ) -> tuple[Serving, ...]:
        """Who serves a request; behind it those who may do so instead, nobody where it `stays`."""
        known, bound = self.of(label), _bound(config, label, caller)
        if len(known) == 1 and bound is None:
            return tuple(known)
        key = session_key(label, caller, session)
        onward = config.on_spent == "next" and not stays
        found = self._ordered(known, stays=self._affinity.of(key), bound=bound, onward=onward, model=model)
        self._affinity.note(key, found[0].name)
        return found

    def moved(self, label: str, name: str, session: str | None, caller: str | None = None) -> None:
        """Another account took a session over."""
        self._affinity.note(session_key(label, caller, session), name)

    def best(self, label: str, config: Config) -> Provider:
        """Who serves a request of our own, which belongs to no session."""
        return self._ordered(self.of(label), onward=config.on_spent == "next")[0].provider

    def _ordered(
        self,
        known: Sequence[Serving],
        *,
        stays: str | None = None,
        bound: str | None = None,
        onward: bool,
        model: str = "",
    ) -> tuple[Serving, ...]:
        by_name = {one.name: one for one in known}
        if bound is not None and bound not in by_name:  # an account that is gone is no reason to use another's
            label = known[0].provider.label
            by_name[bound] = Serving(bound, self._made(label, bound))
        standings = [self._standing(one, model) for one in known]
        names = in_order(standings, stays=stays, bound=bound, onward=onward)
        return tuple(by_name[name] for name in names)

    def _standing(self, one: Serving, model: str) -> Standing:
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
        )

    def _opens(self, known: Allowance, model: str) -> float | None:
        """When a spent window that a model counts against begins again, None where none is spent."""
        spent = None if known.pays_on else spent_window(known, self._clock(), family=model_family(model))
        return None if spent is None else spent.resets_at

    def refused(self, key: str) -> None:
        """The service takes the sign-in of an account no more."""
        self._refused[key] = self._clock()

    def is_spent(self, key: str, model: str) -> bool:
        """Whether a window of an account is known to be used up that this model counts against."""
        return self._opens(self._allowances.of(key) or Allowance(), model) is not None


def _bound(config: Config, label: str, caller: str | None) -> str | None:
    """The account that the settings give to a caller at a provider."""
    if not config.account_callers:
        return None
    wanted = f"{label}/"
    found = (key for name, key in config.account_callers if name == caller and key.startswith(wanted))
    return next((key.removeprefix(wanted) for key in found), None)
