"""What is left of P3's allowance, and the plan: two questions to the API, read with patience, because the answers are
documented nowhere.

What the vendor's client reads of them, any member of which may be missing (amounts are cents of a dollar):

    GET billing?format=credits
    {"config": {"creditUsagePercent": 12.5,
                "currentPeriod": {"type": "USAGE_PERIOD_TYPE_WEEKLY", "start": "…", "end": "2026-11-27T00:00:00Z"},
                "used": {"val": 250}, "monthlyLimit": {"val": 2000}, "billingPeriodEnd": "…",
                "onDemandUsed": {"val": 0}, "onDemandCap": {"val": 0}, "prepaidBalance": {"val": 777}}}

The plan is that of `plan.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp

from proxy.auth.grant import first_text, number
from proxy.auth.http import TokenResponse
from proxy.auth.refresh import Credential
from proxy.auth.text import printable
from proxy.core.error_bodies import error_of_body
from proxy.core.upstream_failures import failure_of
from proxy.providers.accounts.usage_report import NOT_UNDERSTOOD, show_usage
from proxy.providers.contract import Say
from proxy.providers.p3_grok.account.plan import AccountService, no_access
from proxy.providers.p3_grok.account.signin import p3_credentials
from proxy.providers.p3_grok.catalog import LABEL
from proxy.providers.p3_grok.settings import GrokSettings

SERVICE = "Grok"

#: How the type of a period ends -> how it is shown.
_PERIODS = {"WEEKLY": "Weekly", "MONTHLY": "Monthly"}

#: Title, member with what is used, member with the most of it.
_SPENT = (("Month", "used", "monthlyLimit"), ("Pay as you go", "onDemandUsed", "onDemandCap"))


async def show(
    config_root: Path, grok: GrokSettings, *, say: Say, session: aiohttp.ClientSession, as_json: bool = False
) -> None:
    """The command `usage p3`: asks and prints. Raises ProxyError with a message for the terminal."""
    credentials = p3_credentials(config_root, grok.issuer, session)
    ask = partial(_ask, session, grok)
    await show_usage(LABEL, SERVICE, credentials, ask, lines, as_json=as_json, say=say)


async def _ask(session: aiohttp.ClientSession, grok: GrokSettings, credential: Credential) -> TokenResponse:
    """The billing, with the plan as member `settings` where the service tells it."""
    service = AccountService(grok, credential, session)
    billing = await service.get("billing?format=credits")
    if not billing.ok and _is_dead_token(billing):
        return replace(billing, status=401)
    if not (billing.ok and billing.data):
        return billing
    plan = await service.plan()
    return replace(billing, data={**billing.data, **({"settings": plan} if plan else {})})


def _is_dead_token(answer: TokenResponse) -> bool:
    """The service says so with a 403 as well."""
    event = {"type": "error", "status": answer.status, "error": error_of_body(answer.text.encode())}
    return failure_of(event).kind == "sign_in"


def lines(usage: Mapping[str, Any]) -> list[str]:
    """The usage in words. What is not understood is left to the JSON form."""
    settings = _object(usage, "settings")
    plan = printable(first_text(settings, "subscription_tier_display"), 60)
    title = f"{SERVICE} usage ({plan} plan):" if plan else f"{SERVICE} usage:"
    found = list(_found(_object(usage, "config") or usage))
    why = no_access(settings)
    if why:
        found.append(f"  No access: {why}")
    return [title, *(found or [NOT_UNDERSTOOD])]


def _found(billing: Mapping[str, Any]) -> Iterator[str]:
    percent, period = number(billing.get("creditUsagePercent")), _object(billing, "currentPeriod")
    if percent is not None:
        kind = first_text(period, "type").rpartition("_")[2].upper()
        ends = first_text(period, "end") or first_text(billing, "billingPeriodEnd")
        yield f"  {_PERIODS.get(kind, 'Period')}: {percent:g}% used{_resets(ends)}"
    for title, used, most in _SPENT:
        spent, limit = _cents(billing, used), _cents(billing, most)
        if spent or limit:  # neither: the account has no such budget
            ends = first_text(billing, "billingPeriodEnd")
            yield f"  {title}: {_dollars(spent or 0)}{f' of {_dollars(limit)}' if limit else ''} used{_resets(ends)}"
    balance = _cents(billing, "prepaidBalance")
    if balance:
        yield f"  Prepaid: {_dollars(balance)} left"


def _object(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = body.get(name)
    return found if isinstance(found, Mapping) else {}


def _resets(ends: str) -> str:
    return f", resets {printable(ends, 60)}" if ends else ""


def _cents(billing: Mapping[str, Any], name: str) -> float | None:
    """An amount, as `{"val": 250}` or bare."""
    value = billing.get(name)
    return number(value.get("val") if isinstance(value, Mapping) else value)


def _dollars(cents: float) -> str:
    """In words.

    >>> _dollars(1234)
    '$12.34'
    """
    return f"${cents / 100:.2f}"
