"""Use the coding agents you like with the model subscriptions you already pay for.

For a program that embeds the proxy:

>>> from proxy import Config, create_app
>>> app = create_app(Config(), config_dir=Path("~/.config/model-proxy").expanduser())   # doctest: +SKIP
>>> parent.add_subapp("/models", app)                                                    # doctest: +SKIP

The names offered here are imported on first use: the process that writes captures needs none of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proxy.config import Config
    from proxy.core.hiding.secret import Secret
    from proxy.core.outgoing_proxies import OutboundProxies
    from proxy.server.app import create_app
    from proxy.version import __version__

__all__ = ["Config", "OutboundProxies", "Secret", "__version__", "create_app"]

_PLACES = {
    "Config": "proxy.config",
    "OutboundProxies": "proxy.core.outgoing_proxies",
    "Secret": "proxy.core.hiding.secret",
    "__version__": "proxy.version",
    "create_app": "proxy.server.app",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_PLACES[name]), name)
    return value
