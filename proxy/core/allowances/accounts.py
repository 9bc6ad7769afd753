"""Several accounts of one provider: their names, and which of them serves a request. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

#: The account without a name.
DEFAULT = "default"
#: Maximum number of named accounts. Each costs a stat of its file with every request.
MAX_NAMED = 16
#: Lower case only: some file systems ignore case, and two names would be one folder.
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}", re.ASCII)
NAME_RULE = "1 to 32 small letters, digits, - and _, the first a letter or a digit"


def is_name(text: str) -> bool:
    """Whether a text may be the name of an account.

    >>> is_name("work"), is_name("../work"), is_name("Work"), is_name("")
    (True, False, False, False)
    """
    return _NAME.fullmatch(text) is not None


def account_key(label: str, name: str) -> str:
    """The name of an account in tables, monitors and signatures.

    >>> account_key("p1", "work"), account_key("p1", "default")
    ('p1/work', 'p1')
    """
    return label if name in ("", DEFAULT) else f"{label}/{name}"


def for_account(text: str, label: str, name: str) -> str:
    """A text for the user with its sign-in command made that of this account.

    >>> for_account("run `model-proxy auth login p1`", "p1", "work")
    'run `model-proxy auth login p1 --as work`'
    """
    if name in ("", DEFAULT):
        return text
    return re.sub(rf"(?<=auth login ){re.escape(label)}\b", f"{label} --as {name}", text)


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of an account, for the choice of one.

    used    per cent of its fullest window; 0 if nothing is known
    opens   when a spent account can be used again, epoch seconds; None if it is not spent
    failed  whether its sign-in was refused a short time ago
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
    """The account that serves a request, then, if `onward`, those that may serve instead if a window proves spent.

    stays   the account that the session began with
    bound   the account that the settings assign to the caller, which is then the only one
    onward  whether another account replaces a spent one; else the session stays, and the caller gets the error

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
    """A sort key of accounts that are not fit: prefers those signed in, then the one that can be used again first."""
    return not one.signed_in, one.failed, one.opens or 0.0, one.name
