"""The named accounts of a provider: where their files are, and the services each one gets.

An account's folder is laid out like the config root. So a provider is made for it as for the root, and knows nothing of
other accounts: `<config root>/p1/accounts/work/p1/auth.json`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proxy.core.allowances.accounts import DEFAULT, MAX_NAMED, account_key, is_name

if TYPE_CHECKING:
    from proxy.config import Config
    from proxy.core.allowances.report import Allowance
    from proxy.observe.lifecycle import Happened, Log, ServiceEvent
    from proxy.providers.accounts.allowance_store import AllowanceSink
    from proxy.providers.contract import Services
    from proxy.providers.entry import Entry

FOLDER = "accounts"
#: The file that makes a folder an account.
_CREDENTIAL = "auth.json"


def root_of(config_root: Path, label: str, name: str) -> Path:
    """The folder that an account uses as its config root."""
    return config_root if name in ("", DEFAULT) else config_root / label / FOLDER / name


def names_in(config_root: Path, label: str) -> tuple[str, ...]:
    """The named accounts of a provider that have a credential, in order. Looks at the disk: accounts come and go."""
    folder = f"{config_root}/{label}/{FOLDER}"  # a Path costs more than the look at it, which each request takes
    try:
        with os.scandir(folder) as entries:
            found = [entry.name for entry in entries]
    except OSError:  # nearly always
        return ()
    names = sorted(name for name in found if is_name(name) and name != DEFAULT)
    return tuple(name for name in names if Path(folder, name, label, _CREDENTIAL).exists())[:MAX_NAMED]


def credential_folders(config_root: Path, label: str) -> Iterator[Path]:
    """The credential folders of all accounts of a provider."""
    for name in (DEFAULT, *names_in(config_root, label)):
        yield root_of(config_root, label, name) / label


def settings_for(entry: Entry, root: Path, config: Callable[[], Config]) -> Callable[[], Config]:
    """Returns the settings for a named account: without the unnamed account's own values."""
    if entry.own is None:
        return config
    own = entry.own(root)
    return lambda: own(config())


def services_for(services: Services, entry: Entry, name: str) -> Services:
    """The services for a named account: its own folder, settings and allowance, and its name on all that it logs and
    reports."""
    root = root_of(services.config_dir, entry.label, name)
    return replace(
        services,
        config=settings_for(entry, root, services.config),
        config_dir=root,
        log=_NamedLog(services.log, name),
        allowances=_NamedAllowance(services.allowances, name),
        happened=_named(services.happened, name),
        account=name,
    )


@dataclass(frozen=True, slots=True)
class _NamedLog:
    """Writes the account's name into every record."""

    log: Log
    name: str

    def write(self, level: str, service: str, msg: str, **fields: Any) -> None:
        self.log.write(level, service, msg, **{"account": self.name, **fields})

    def capture_error(self, name: str, record: dict[str, Any]) -> str | None:
        return self.log.capture_error(name, record)


@dataclass(frozen=True, slots=True)
class _NamedAllowance:
    """Reports allowances under the account's own key."""

    allowances: AllowanceSink
    name: str

    def tell(self, provider: str, account: str | None, report: Allowance) -> None:
        self.allowances.tell(account_key(provider, self.name), account, report)


def _named(happened: Happened, name: str) -> Happened:
    def named(event: ServiceEvent) -> None:
        happened(replace(event, provider=account_key(event.provider, name)))

    return named
