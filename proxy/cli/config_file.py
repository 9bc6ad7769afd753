"""`config.json` while the program runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from proxy.cli.command import Context
from proxy.cli.paths import FOLDER_VARIABLE, config_root
from proxy.config import Config, ConfigError
from proxy.core.outgoing_proxies import OutboundProxies, UnusableProxy
from proxy.errors import PROGRAM, as_typed
from proxy.loading import kept, load, overrides, read_file, settings_of, source_of
from proxy.providers.entry import doubtful
from proxy.server.callers.keys import FILE_NAME as KEYS
from proxy.settings import is_loopback

#: Seconds between two checks of the file.
RELOAD_S = 1.0

#: The file's name in the settings folder.
FILE_NAME = "config.json"


def check_folder(context: Context) -> None:
    """Raises ConfigError for a named folder that does not exist: a start without its settings is not intended."""
    root = config_root(context.environment)
    if context.environment.get(FOLDER_VARIABLE) and not root.is_dir():
        raise ConfigError(
            f"{FOLDER_VARIABLE}: {root} is no folder; expected one that exists, as `{context.program} config init`"
            " would make it"
        )


def is_open(config: Config, root: Path) -> bool:
    """Whether anyone on the network may use the proxy. `root`: the folder of the settings."""
    return not is_loopback(config.bind_address) and not config.api_key and not (root / KEYS).exists()


def check_exposure(config: Config, root: Path) -> None:
    """Raises ConfigError for a listener that is open by mistake."""
    if not is_open(config, root) or config.allow_remote_unauthenticated:
        return
    raise ConfigError(
        f"refusing to listen on {config.bind_address}: everyone who can reach it could use your accounts. Set"
        f" PROXY_API_KEY so that callers need a key, give each of them one (`{PROGRAM} keys add NAME`), or acknowledge"
        " an open listener with --allow-remote-unauthenticated, PROXY_ALLOW_REMOTE_UNAUTHENTICATED=1 or"
        " server.allowRemoteUnauthenticated in config.json"
    )


class ConfigFile:
    """The current settings: the file is read again when it has changed. Settings fixed at start stay, and all of them
    stay after an invalid change. Raises ConfigError when made with an invalid file or variables.

    warn  receives the faults of a changed file
    new   a named folder may be missing: it will be made, or a missing one is acceptable
    """

    def __init__(self, context: Context, *, reload_s: float = RELOAD_S, new: bool = False) -> None:
        self.warn: Callable[[str], None] = lambda _warning: None
        if not new:
            check_folder(context)
        self.root = config_root(context.environment)
        self.path = self.root / FILE_NAME
        self._environment = context.environment
        self._providers, self._program = context.providers, context.program
        self._settings = settings_of(context.providers)
        self._reload_s = reload_s
        self._flags: dict[str, Any] = {}
        self._stamp = self._stat()
        self._content, self.config, self.warnings = self._read()
        self._looked = time.monotonic()

    def current(self) -> Config:
        now = time.monotonic()
        if now - self._looked >= self._reload_s:
            self._looked = now
            stamp = self._stat()
            if stamp != self._stamp:
                self._stamp = stamp
                self._reload()
        return self.config

    def override(self, **changes: object) -> None:
        """Applies settings from command-line flags, which take precedence, even when the file changes."""
        self._flags |= changes
        self.config = self.config.changed(Config, **changes)

    def source(self, key: str) -> str | None:
        """The source of a setting, see `source_of`."""
        return source_of(key, self._environment, self._content, self._settings)

    def overrides(self, environment: Mapping[str, str]) -> list[str]:
        """Settings that differ from the defaults, see `overrides`."""
        return overrides(environment, self._content, self._settings)

    def _read(self) -> tuple[Mapping[str, Any], Config, list[str]]:
        content = read_file(self.path)
        config, warnings = load(self._environment, content, self._settings, place=str(self.path))
        return content, config, [*warnings, *doubtful(config, self._providers)]

    def _reload(self) -> None:
        try:
            content, fresh, warnings = self._read()
        except ConfigError as error:  # a broken file must not stop a running proxy
            self.warn(as_typed(f"the settings stay as they were: {error.message}", self._program))
            return
        for warning in warnings:
            if warning not in self.warnings:
                self.warn(warning)
        self._content, self.warnings = content, warnings
        self.config = kept(fresh, self.config, self._settings).changed(Config, **self._flags)

    def _stat(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size


def proxies_of(environment: Mapping[str, str]) -> OutboundProxies:
    """The outgoing proxies set by the variables. Raises ConfigError."""
    try:
        return OutboundProxies.from_environment(environment)
    except UnusableProxy as error:
        raise ConfigError(str(error)) from None
