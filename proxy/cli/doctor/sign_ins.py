"""The accounts as stored: no service is asked."""

from __future__ import annotations

import re
from collections.abc import Sequence

from proxy.cli.account import UNUSABLE, SignIn
from proxy.cli.doctor.finding import Finding, Group, Setup, fail, note, ok, warn
from proxy.cli.web_search import web_search
from proxy.core.allowances.accounts import DEFAULT, for_account

#: The line of `auth status` with the end of an access token: seconds, negative or 0 when it is over.
_EXPIRES = re.compile(r"Expires.*?\bin (-?\d+)s")
#: Lines that identify the account.
_PERSONAL = re.compile(r"(Account|User|Email|User ID): (?!\(none\))(.+)")
_SHOWN = 4


def check_sign_ins(setup: Setup) -> Sequence[Finding]:
    """Makes one finding for each served provider."""
    served = [one for one in setup.known if one.entry.build is not None]
    found = [_of(one, setup) for one in served]
    if not any(one.usable for one in served):
        first = next((one for one in served if one.state == UNUSABLE), None)
        label = first.entry.label if first else setup.config.alias_provider
        found.append(fail("no account is signed in", "one account is enough", f"{setup.program} auth login {label}"))
    return found


def _of(one: SignIn, setup: Setup) -> Finding:
    entry = one.entry
    signs_in = for_account(f"{setup.program} auth login {entry.label}", entry.label, one.name)
    cure = setup.export(entry.key, "…") if entry.key and one.name == DEFAULT else signs_in
    if one.state == UNUSABLE:
        return fail(f"{one.title}: {UNUSABLE}", "; ".join(one.lines[1:]), cure)
    if not one.usable:
        return note(f"{one.title}: not signed in", f"only needed for its models ({entry.product})", cure)
    details = "; ".join(hidden(line) for line in one.lines)
    left = next((int(found[1]) for line in one.lines if (found := _EXPIRES.search(line))), 1)
    if left > 0:
        return ok(f"{one.title}: signed in", details)
    if _is_renewable(one):
        return ok(f"{one.title}: signed in; the next request renews it", details)
    return fail(f"{one.title}: the token has ended, and nothing renews it", details, cure)


def _is_renewable(one: SignIn) -> bool:
    """Whether the token is renewed: a stored one is, unless `auth status` names an action; one in a variable is not."""
    return not any("environment (" in line or "To sign in again" in line for line in one.lines)


def hidden(line: str) -> str:
    """A line of `auth status` without the account's name: its beginning is enough to distinguish two.

    >>> hidden("Account: 8f14e45f-ceea"), hidden("Account: (none)")
    ('Account: 8f14…', 'Account: (none)')
    """
    return _PERSONAL.sub(lambda found: f"{found[1]}: {found[2][:_SHOWN]}…", line)


def check_aliases(setup: Setup) -> Sequence[Finding]:
    """Checks for an account that serves names like `sonnet`."""
    usable = [one.entry.label for one in setup.known if one.usable and one.entry.build is not None]
    wanted = setup.config.alias_provider
    if not usable or wanted in usable:
        return []
    cure = setup.export("PROXY_ALIAS_PROVIDER", usable[0])
    return [warn(f"names like opus and haiku go to {wanted}", "no account is signed in there", cure)]


def check_search(setup: Setup) -> Sequence[Finding]:
    """Who searches the web for models whose service does not."""
    usable = [one.entry.label for one in setup.known if one.usable and one.entry.build is not None]
    found, what = web_search(setup.context.providers, setup.config, usable), "the web for models without a search"
    if setup.config.search == "off":
        return [note(f"nobody searches {what}", "PROXY_SEARCH is off")]
    if not found.label:
        cure = f"{setup.program} auth login p1"
        return [note(f"nobody searches {what}", "only p1, p2 and p3 can, and none is signed in", cure)]
    if not found.ready:
        cure = f"{setup.program} auth login {found.label}"
        return [warn(f"{found.label} should search {what}", "nobody is signed in there", cure)]
    return [ok(f"{found.label} searches {what}", "it counts against that subscription; PROXY_SEARCH changes it")]


SIGN_INS = Group("signIns", "Sign-ins", settled=(check_sign_ins, check_aliases, check_search))
