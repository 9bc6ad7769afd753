"""An account without the subscription: it signs in, and is told in words what is missing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from harness import Live, ask, configured
from samples import rows

from proxy.auth.refresh import Lent
from proxy.loading import load
from proxy.providers.accounts.usage_report import closing_after
from proxy.providers.p3_grok.account import usage_windows
from proxy.providers.p3_grok.account.signin import credential_file, p3_credentials
from proxy.providers.p3_grok.account.usage_windows import no_access, tell_missing_plan
from proxy.providers.p3_grok.settings import GrokSettings
from proxy.sandbox import Sandbox

GATE = "You need a SuperGrok subscription."


def grok_settings(sandbox: Sandbox, **settings: str) -> GrokSettings:
    return configured(load(sandbox.settings())[0], **settings).section(GrokSettings)


@pytest.mark.parametrize(
    ("gate", "settings", "told"),
    [
        ("", {}, []),
        (GATE, {}, [f"But Grok does not serve this account: {GATE}"]),
        (GATE, {"p3_base_url": "http://127.0.0.1:9"}, []),  # nobody tells
    ],
)
async def test_sign_in_tells_what_is_missing(
    sandbox: Sandbox, tmp_path: Path, gate: str, settings: dict[str, str], told: list[str]
) -> None:
    sandbox.p3.options.gate = gate
    sandbox.write_credentials(tmp_path)
    credential = credential_file(tmp_path).load()
    assert credential is not None
    said: list[str] = []
    async with aiohttp.ClientSession() as session:
        await tell_missing_plan(grok_settings(sandbox, **settings), credential, session, said.append)
    assert said == told


async def test_usage_tells_it_too(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.p3.options.gate = GATE
    sandbox.write_credentials(tmp_path)
    grok = grok_settings(sandbox)
    async with (
        aiohttp.ClientSession() as session,
        closing_after(p3_credentials(Lent(tmp_path), grok.issuer, session)) as credentials,
    ):
        said = (await usage_windows.ask(credentials, grok, session, time.time)).lines()
    assert said[0] == "Grok usage:" and said[-1] == f"  No access: {GATE}"


async def test_requests_are_refused_with_it(live: Live) -> None:
    live.sandbox.p3.options.gate = GATE
    answer = await live.post(ask(model="grok-4.6"))
    assert (answer.status, answer.error["type"]) == (403, "permission_error") and GATE in answer.error["message"]
    assert (live.sandbox.p3.total_requests, live.sandbox.p3.refreshes) == (1, 0)


@rows(
    "plan, why",
    [
        *(({"allow_access": odd, "gate_message": "x"}, "") for odd in (True, None, 0, "false")),
        ({}, ""),
        ({"allow_access": False}, "the service gives no reason"),
        ({"allow_access": False, "gate_message": "\x1b[2Jno"}, "[2Jno"),
    ],
)
def test_words(plan: dict[str, Any], why: str) -> None:
    assert no_access(plan) == why
