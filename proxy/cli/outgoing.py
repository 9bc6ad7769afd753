"""The outgoing proxies of the process."""

from __future__ import annotations

from collections.abc import Mapping

from proxy.config import ConfigError
from proxy.core.outgoing_proxies import OutboundProxies, UnusableProxy


def proxies_of(environment: Mapping[str, str]) -> OutboundProxies:
    """As the variables say. Raises ConfigError."""
    try:
        return OutboundProxies.from_environment(environment)
    except UnusableProxy as error:
        raise ConfigError(str(error)) from None
