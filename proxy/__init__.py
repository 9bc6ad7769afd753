"""Use the coding agents you like with the model subscriptions you already pay for.

For a program that embeds the proxy:

>>> from proxy import Config, create_app
>>> app = create_app(Config(), config_dir=Path("~/.config/model-proxy").expanduser())   # doctest: +SKIP
>>> parent.add_subapp("/models", app)                                                    # doctest: +SKIP
"""

from proxy.config import Config
from proxy.core.outgoing_proxies import OutboundProxies
from proxy.core.secret import Secret
from proxy.server.app import create_app
from proxy.version import __version__

__all__ = ["Config", "OutboundProxies", "Secret", "__version__", "create_app"]
