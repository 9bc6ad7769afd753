"""Several accounts of one provider: how they are called, and which of them serves a request. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

#: The account without a name.
DEFAULT = "default"
#: One user has a handful; each costs a look at its file with every request.
MAX_NAMED = 16
#: Small letters only: some file systems do not tell them from large ones, and two names would be one folder.
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}", re.ASCII)
NAME_RULE = "1 to 32 small letters, digits, - and _, the first a letter or a digit"


def is_name(text: str) -> bool:
    """Whether an account may be called so.

    >>> is_name("work"), is_name("../work"), is_name("Work"), is_name("")
    (True, False, False, False)
    """
    return _NAME.fullmatch(text) is not None


def account_key(label: str, name: str) -> str:
    """How an account stands in tables, in what monitors show, and in signatures.

    >>> account_key("p1", "work"), account_key("p1", "default")
    ('p1/work', 'p1')
    """
    return label if name in ("", DEFAULT) else f"{label}/{name}"


def for_account(text: str, label: str, name: str) -> str:
    """A text for the user, whose author knows nothing of accounts, with the command that concerns this one.

    >>> for_account("run `model-proxy auth login p1`", "p1", "work")
    'run `model-proxy auth login p1 --as work`'
    """
    if name in ("", DEFAULT):
        return text
    return re.sub(rf"(?<=auth login ){re.escape(label)}\b", f"{label} --as {name}", text)


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of an account when somebody asks for one.

    used    per cent of its fullest window; an account that nothing is known of is untouched
    opens   when a spent account begins again, epoch seconds; None: it is not spent
    failed  its sign-in was refused a short time ago
    """

    name: str
    signed_in: bool = True
    used: float = 0.0
    opens: float | None = None
    failed: bool = False

    @property
    def fit(self) -> bool:
        return self.signed_in and not self.failed and self.opens is None


def in_order(
    accounts: Sequence[Standing], *, stays: str | None = None, bound: str | None = None, onward: bool = False
) -> tuple[str, ...]:
    """Who serves a request, and, where it may go on, who does instead when a window turns out to be spent.

    stays   the account that the session began with
    bound   the account that the settings give to the caller: nobody else's is used for it, and its own for it always
    onward  whether a spent account is passed over for another; else the session stays, and the caller gets the error

    >>> in_order([Standing("a", used=50), Standing("b")]), in_order([Standing("a"), Standing("b")], stays="b")
    (('b',), ('b',))
    >>> in_order([Standing("a", used=50), Standing("b")], onward=True)
    ('b', 'a')
    """
    if bound is not None:
        return (bound,)
    by_name = {one.name: one for one in accounts}
    fit = [one.name for one in sorted((one for one in accounts if one.fit), key=lambda one: (one.used, one.name))]
    kept = by_name.get(stays or "")
    if kept is not None and kept.signed_in and (kept.fit or not onward or not fit):
        first = kept.name
    else:
        first = fit[0] if fit else min(accounts, key=_least_bad).name
    return (first, *(name for name in fit if name != first)) if onward else (first,)


def _least_bad(one: Standing) -> tuple[bool, bool, float, str]:
    """Of those that are not fit: one that is signed in, and the one that begins again first."""
    return not one.signed_in, one.failed, one.opens or 0.0, one.name
