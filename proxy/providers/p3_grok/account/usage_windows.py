"""The remaining allowance of P3, and the plan: two questions to the API, whose undocumented answers are read leniently.

The members that the vendor's client reads, any of which may be missing (amounts are cents of a dollar):

    GET billing?format=credits
    {"config": {"creditUsagePercent": 12.5,
                "currentPeriod": {"type": "USAGE_PERIOD_TYPE_WEEKLY", "start": "…", "end": "2026-11-27T00:00:00Z"},
                "used": {"val": 250}, "monthlyLimit": {"val": 2000}, "billingPeriodEnd": "…",
                "onDemandUsed": {"val": 0}, "onDemandCap": {"val": 0}, "prepaidBalance": {"val": 777}}}

    GET settings -> {"subscription_tier_display": "SuperGrok", "allow_access": false, "gate_message": "…", …}

A sign-in succeeds without a subscription. The settings, which the vendor's client requests at its start, are the first
to show that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import aiohttp

from proxy.auth.grant import first_text, number
from proxy.auth.http import TIMEOUT, TokenClient, TokenResponse
from proxy.auth.store import Credential, CredentialSource
from proxy.auth.text import printable
from proxy.core.allowances.rate_limits import WEEK_MINUTES, moment_of
from proxy.core.allowances.report import Allowance, AllowanceWindow
from proxy.core.error_bodies import error_of_body
from proxy.core.upstream_failures import failure_of
from proxy.errors import UpstreamError
from proxy.providers.accounts.account import Say
from proxy.providers.accounts.usage_report import UsageReport, ask_usage
from proxy.providers.p3_grok.catalog import LABEL
from proxy.providers.p3_grok.request import client_headers
from proxy.providers.p3_grok.settings import GrokSettings

SERVICE = "Grok"

#: Ending of a period's type -> its title and its minutes.
_PERIODS: dict[str, tuple[str, int | None]] = {"WEEKLY": ("Weekly", WEEK_MINUTES), "MONTHLY": ("Monthly", None)}

#: Title, member for the amount used, member for its limit, whether it is spent after the others.
_SPENT = (("Month", "used", "monthlyLimit", False), ("Pay as you go", "onDemandUsed", "onDemandCap", True))


async def ask(
    credentials: CredentialSource, grok: GrokSettings, session: aiohttp.ClientSession, clock: Callable[[], float]
) -> UsageReport:
    """Asks the API for usage and plan. Raises ProxyError with a message for the terminal."""
    return await ask_usage(LABEL, SERVICE, credentials, partial(_ask, session, grok), allowance_of, clock)


async def _ask(session: aiohttp.ClientSession, grok: GrokSettings, credential: Credential) -> TokenResponse:
    """The billing, with the plan as member `settings` if the service reports it."""
    service = AccountService(grok, credential, session)
    billing = await service.get("billing?format=credits")
    if not billing.ok and _is_dead_token(billing):
        return replace(billing, status=401)
    if not (billing.ok and billing.data):
        return billing
    plan = await service.plan()
    return replace(billing, data={**billing.data, **({"settings": plan} if plan else {})})


def _is_dead_token(answer: TokenResponse) -> bool:
    """Whether the token is refused, for which the service also uses a 403."""
    event = {"type": "error", "status": answer.status, "error": error_of_body(answer.text.encode())}
    return failure_of(event).kind == "sign_in"


def allowance_of(usage: Mapping[str, Any], now: float) -> Allowance:
    """The allowance in the answer, as far as it is understood."""
    settings, billing = _object(usage, "settings"), _object(usage, "config") or usage
    balance, why = _cents(billing, "prepaidBalance"), no_access(settings)
    notes = [f"Prepaid: {_dollars(balance)} left"] if balance else []
    beyond, cap = _cents(billing, "onDemandUsed") or 0.0, _cents(billing, "onDemandCap") or 0.0
    return Allowance(
        tuple(_windows(billing, now)),
        plan=printable(first_text(settings, "subscription_tier_display"), 60),
        notes=(*notes, *([f"No access: {why}"] if why else [])),
        pays_on=bool(balance) or beyond < cap,
    )


def _windows(billing: Mapping[str, Any], now: float) -> Iterator[AllowanceWindow]:
    percent, period = number(billing.get("creditUsagePercent")), _object(billing, "currentPeriod")
    if percent is not None:
        kind = first_text(period, "type").rpartition("_")[2].upper()
        ends = printable(first_text(period, "end") or first_text(billing, "billingPeriodEnd"), 60)
        title, minutes = _PERIODS.get(kind, ("Period", None))
        share = f"{percent:g}% used"
        yield AllowanceWindow(
            title, _share(percent), now, minutes=minutes, resets_at=moment_of(ends), words=share, resets=ends
        )
    for title, used, most, beyond in _SPENT:
        spent, limit = _cents(billing, used), _cents(billing, most)
        if spent or limit:  # neither: the account has no such budget
            ends = printable(first_text(billing, "billingPeriodEnd"), 60)
            words = f"{_dollars(spent or 0)}{f' of {_dollars(limit)}' if limit else ''} used"
            part = _share(100 * (spent or 0) / limit) if limit else None
            yield AllowanceWindow(title, part, now, resets_at=moment_of(ends), words=words, resets=ends, beyond=beyond)


def _share(percent: float) -> float:
    return min(max(0.0, round(percent, 2)), 1e6)


def _object(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = body.get(name)
    return found if isinstance(found, Mapping) else {}


def _cents(billing: Mapping[str, Any], name: str) -> float | None:
    """An amount, as `{"val": 250}` or bare."""
    value = billing.get(name)
    return number(value.get("val") if isinstance(value, Mapping) else value)


def _dollars(cents: float) -> str:
    """Cents in words.

    >>> _dollars(1234)
    '$12.34'
    """
    return f"${cents / 100:.2f}"


#: For a question after a completed sign-in: the user should not wait long for it.
QUICK = aiohttp.ClientTimeout(total=5.0)

#: Members about the plan; the other settings are switches of the vendor's client.
_PLAN = ("subscription_tier_display", "allow_access", "gate_message")


class AccountService:
    """Asks the API about an account, with its credential."""

    def __init__(
        self,
        grok: GrokSettings,
        credential: Credential,
        session: aiohttp.ClientSession,
        *,
        timeout: aiohttp.ClientTimeout = TIMEOUT,
    ) -> None:
        headers = {"authorization": f"Bearer {credential.access.reveal()}", **client_headers(grok.client_version)}
        self._base = grok.base_url.rstrip("/").removesuffix("/responses")
        self._client = TokenClient(LABEL, session, headers, timeout=timeout)

    async def get(self, path: str) -> TokenResponse:
        """Gets an answer. Raises UpstreamError."""
        return await self._client.get(f"{self._base}/{path}")

    async def plan(self) -> dict[str, Any]:
        """The three settings of the plan, as far as the service reports them; {} when it cannot be asked."""
        try:
            answer = await self.get("settings")
        except UpstreamError:
            return {}
        return {name: answer.data[name] for name in _PLAN if answer.ok and name in answer.data}


async def tell_missing_plan(
    grok: GrokSettings, credential: Credential, session: aiohttp.ClientSession, say: Say
) -> None:
    """Says after a sign-in that the account is not served, if the service reports that in time."""
    why = no_access(await AccountService(grok, credential, session, timeout=QUICK).plan())
    if why:
        say(f"But Grok does not serve this account: {why}")


def no_access(plan: Mapping[str, Any]) -> str:
    """Why the account may not use the service, "" when nothing forbids it."""
    if plan.get("allow_access") is not False:
        return ""
    return printable(first_text(plan, "gate_message")) or "the service gives no reason"
