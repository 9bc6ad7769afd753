"""The settings of P5: one row each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from proxy.core.hiding.secret import Secret
from proxy.core.routing import Added
from proxy.providers.p5_cursor.catalog import service_id
from proxy.providers.p5_cursor.snapshot import BASES
from proxy.settings import Rows, UnfitValue, models_row, row, secret, text, url

_BUILD = re.compile(r"(?:cli-)?([0-9][0-9A-Za-z.+-]{2,60})", re.ASCII)


def build(value: Any) -> str:
    """build such as cli-2026.10.01-e373342."""
    found = _BUILD.fullmatch(text(value).strip())
    if found is None:
        raise UnfitValue("expected a build such as cli-2026.10.01-e373342")
    return f"cli-{found[1]}"


@dataclass(frozen=True)
class CursorSettings(Rows):
    """The current settings of P5: `config.section(CursorSettings)`."""

    base_url: str = row("p5.baseUrl", "PROXY_P5_BASE_URL", "https://api2.cursor.sh", url, "The API of p5.")
    client_version: str = row(
        "p5.clientVersion",
        "PROXY_P5_CLIENT_VERSION",
        "cli-2026.10.01-e373342",
        build,
        "Build of the vendor's client in requests to p5; the service refuses old ones.",
    )
    models: Added = models_row(
        "p5", BASES, service_id, "also without a prefix; with a base, in the efforts of that model"
    )
    auth_token: Secret | None = row(
        None,
        "PROXY_P5_AUTH_TOKEN CURSOR_AUTH_TOKEN",
        None,
        secret,
        "Access token of p5 in place of a sign-in; never renewed, never stored.",
        secret=True,
    )
    website_url: str = row(
        "p5.websiteUrl",
        "PROXY_P5_WEBSITE_URL",
        "https://cursor.com",
        url,
        "Where p5's sign-in page is.",
        fixed=True,
    )
    agent_bundle: str = row(
        "p5.agentBundle",
        "PROXY_P5_AGENT_BUNDLE",
        "",
        text,
        "Accepted and not used: no part of the vendor's client is needed.",
    )
