"""What is left of P3's credits: one question to the API, read with patience, because its answer is documented nowhere.

The vendor's client reads `{"config": {"creditUsagePercent": 12.5, "currentPeriod": {"start": "…", "end": "…"},
"monthlyLimit": {"val": 1000}, "used": {"val": 125}, "onDemandCap": {"val": 0}, "onDemandUsed": {"val": 0},
"prepaidBalance": {"val": 0}, …}, …}`. Numbers may be bare or texts, and any member may be missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp

from proxy.auth.grant import first_text, number
from proxy.auth.http import TokenClient, TokenResponse
from proxy.auth.refresh import Credential
from proxy.auth.text import printable
from proxy.providers.accounts.usage_report import NOT_UNDERSTOOD, show_usage
from proxy.providers.contract import Say
from proxy.providers.p3_grok.account.signin import p3_credentials
from proxy.providers.p3_grok.catalog import LABEL
from proxy.providers.p3_grok.settings import GrokSettings

SERVICE = "Grok"


async def show(
    config_root: Path, grok: GrokSettings, *, say: Say, session: aiohttp.ClientSession, as_json: bool = False
) -> None:
    """The command `usage p3`: asks and prints. Raises ProxyError with a message for the terminal."""
    credentials = p3_credentials(config_root, grok.issuer, session)
    ask = partial(_ask, session, grok)
    await show_usage(LABEL, SERVICE, credentials, ask, lines, as_json=as_json, say=say)


async def _ask(session: aiohttp.ClientSession, grok: GrokSettings, credential: Credential) -> TokenResponse:
    base = grok.base_url.rstrip("/").removesuffix("/responses")
    headers = {
        "Authorization": f"Bearer {credential.access.reveal()}",
        "x-xai-token-auth": "xai-grok-cli",
        "x-grok-client-identifier": "grok-shell",
        "x-grok-client-version": grok.client_version,
    }
    return await TokenClient(LABEL, session, headers).get(f"{base}/billing?format=credits")


def lines(usage: Mapping[str, Any]) -> list[str]:
    """The usage in words. What is not understood is left to the JSON form."""
    config = usage.get("config")
    credits = config if isinstance(config, Mapping) else usage
    found = [*_period(credits), *_amounts(credits)]
    return [f"{SERVICE} usage:", *(found or [NOT_UNDERSTOOD])]


def _period(credits: Mapping[str, Any]) -> list[str]:
    percent = number(credits.get("creditUsagePercent"))
    if percent is None:
        return []
    period = credits.get("currentPeriod")
    ends = printable(first_text(period if isinstance(period, Mapping) else {}, "end"), 60)
    ends = ends or printable(first_text(credits, "billingPeriodEnd"), 60)
    return [f"  Credits: {percent:g} % used" + (f", resets {ends}" if ends else "")]


#: Title, member with what is used, member with the limit of it.
_AMOUNTS = (
    ("This month", "used", "monthlyLimit"),
    ("On demand", "onDemandUsed", "onDemandCap"),
    ("Prepaid", "", "prepaidBalance"),
)


def _amounts(credits: Mapping[str, Any]) -> list[str]:
    found = []
    for title, spent, limit in _AMOUNTS:
        used, most = _amount(credits.get(spent)), _amount(credits.get(limit))
        if used is not None:
            found.append(f"  {title}: {used:g}{f' of {most:g}' if most is not None else ''} used")
        elif most is not None:
            found.append(f"  {title}: {most:g}")
    return found


def _amount(value: object) -> float | None:
    """A number, bare or as `{"val": 5}`."""
    return number(value.get("val") if isinstance(value, Mapping) else value)
