"""The accounts as stored: no service is asked."""

from __future__ import annotations

import re
from collections.abc import Sequence

from proxy.cli.account import UNUSABLE, SignIn
from proxy.cli.doctor.finding import Finding, Group, Setup, fail, note, ok, warn
from proxy.cli.models import kept_lists
from proxy.cli.vision import describing
from proxy.cli.web_search import web_search
from proxy.core.allowances.accounts import DEFAULT, account_key, for_account
from proxy.core.allowances.words import age_text
from proxy.core.models import ModelFacts, ModelList

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


def check_vision(setup: Setup) -> Sequence[Finding]:
    """Checks for an account that describes pictures, if a model for that is set."""
    label = describing(setup.context.providers, setup.config)
    if not label:
        return []
    what = f"{label} describes pictures for models that take none ({setup.config.vision_model})"
    if label not in {one.entry.label for one in setup.known if one.usable and one.entry.build is not None}:
        cure = f"{setup.program} auth login {label}"
        return [warn(what, "no account is signed in there, so pictures become notes", cure)]
    return [ok(what, "it counts against that subscription; PROXY_VISION_MODEL changes it")]


#: Most names of one kind in a finding.
_MOST_NAMES = 5


def check_lists(setup: Setup) -> Sequence[Finding]:
    """The age of each account's list of models, and how it differs from our own table."""
    lists = kept_lists(setup.context)
    usable = {account_key(one.entry.label, one.name): one for one in setup.known if one.usable}
    return [_of_list(one, known, setup) for key, one in usable.items() if (known := lists.of(key)) is not None]


def _of_list(one: SignIn, known: ModelList, setup: Setup) -> Finding:
    ours, now = (
        one.entry.catalog_now(setup.config),
        one.entry.offering(known, setup.context.providers).catalog_now(setup.config),
    )
    table = {*ours.models, *ours.prefixed}
    new = [model for model in (*now.models, *now.prefixed) if model not in table]
    gone = [*sorted(now.lacking), *(model for model in ours.prefixed if model not in now.prefixed)]
    other = [model for model in ours.models if _differs(ours.facts.get(model), now.facts.get(model))]
    rows = (("new since this version", new), ("not in the plan", gone), ("other window or efforts", other))
    words = [f"{what}: {_some(names)}" for what, names in rows if names] or ["as this version knows them"]
    age = age_text(setup.clock() - known.asked)
    return ok(f"{one.title}: the service listed {len(known.models)} models {age}", "; ".join(words))


def _differs(ours: ModelFacts | None, theirs: ModelFacts | None) -> bool:
    """Whether the service says another window, or other efforts, than our table."""
    if ours is None or theirs is None:
        return False
    window = ours.context is not None and ours.context != theirs.context
    return window or (ours.efforts is not None and ours.efforts != theirs.efforts)


def _some(names: Sequence[str]) -> str:
    """The first of the names, and how many more there are."""
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def check_search(setup: Setup) -> Sequence[Finding]:
    """Who searches the web for models whose service does not."""
    usable = [one.entry.label for one in setup.known if one.usable and one.entry.build is not None]
    found, what = web_search(setup.context.providers, setup.config, usable), "the web for models without a search"
    if setup.config.search == "off":
        return [note(f"no service searches {what}", "PROXY_SEARCH is off")]
    if not found.label:
        cure = f"{setup.program} auth login p1"
        return [note(f"no service searches {what}", "only p1, p2 and p3 can, and none is signed in", cure)]
    if not found.ready:
        cure = f"{setup.program} auth login {found.label}"
        return [warn(f"{found.label} should search {what}", "no account is signed in there", cure)]
    return [ok(f"{found.label} searches {what}", "it counts against that subscription; PROXY_SEARCH changes it")]


SIGN_INS = Group(
    "signIns", "Sign-ins", settled=(check_sign_ins, check_aliases, check_lists, check_search, check_vision)
)
