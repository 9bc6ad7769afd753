"""The candidates that may answer a request, in order: the accounts of its model, then those of each declared fallback.
No I/O: the choice of accounts and the times are arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proxy.core.allowances.accounts import account_key
from proxy.core.visible import Visible
from proxy.errors import ProxyError
from proxy.providers.contract import Provider

#: How long several models together may hold the head: middleboxes cut a silence after a minute.
HOLD_S = 50.0
#: The head was not sent.
_HEADLESS = (Visible.NOTHING, Visible.BUFFERED)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One model through one account of its provider.

    model        as it is routed, without `[1m]`
    label        its provider's label, p1 … p5
    account      name of the account, "" if the provider has only one
    provider     the account's provider object
    asked        the name that the client used
    shown_name   the name in answers, if it differs from the model
    alias        whether an alias was asked for, whose provider a setting decides
    auto_review  whether this is the safety classifier, sent to a model of our choice
    conversation  the session by which the account was chosen, None without
    """

    model: str
    label: str
    account: str
    provider: Provider
    asked: str
    shown_name: str = ""
    alias: bool = False
    auto_review: bool = False
    conversation: str | None = None

    @property
    def key(self) -> str:
        """The provider as tables, monitors and metrics show it, with its account."""
        return account_key(self.label, self.account) if self.account else self.label


class Candidates:
    """The candidates of one request.

    model     the model that answers, or is tried
    current   the candidate that answers, or is tried; only after `choose_accounts`
    failures  (model that could not answer, its last account's error)
    """

    def __init__(
        self,
        model: str,
        accounts_of: Callable[[str], Sequence[Candidate]],
        *,
        others: tuple[str, ...] = (),
        kinds: frozenset[str] = frozenset(),
        is_spent: Callable[[Candidate, ProxyError], bool] = lambda _candidate, _error: False,
    ) -> None:
        """
        accounts_of  returns the accounts of a model, in order; called when its turn comes, since earlier failures may
                     have reported allowances. Raises ProxyError
        others       models that may answer in place of the first, in order
        kinds        kinds of errors after which the next one is tried
        is_spent     whether an error means that the account's allowance is used up
        """
        self.model = model
        self.failures: list[tuple[str, ProxyError]] = []
        self.current: Candidate
        self._more: list[Candidate] = []  # other accounts of this model, in order
        self._others = others
        self._kinds = kinds
        self._accounts_of = accounts_of
        self._is_spent = is_spent
        self._held_since: float | None = None

    def choose_accounts(self) -> Candidate:
        """Selects the first account of the model. Raises ProxyError if there is none."""
        self.current, *self._more = self._accounts_of(self.model)
        return self.current

    @property
    def others(self) -> bool:
        """Whether another model may still answer."""
        return bool(self._others)

    def account_follows(self, error: ProxyError, visible: Visible) -> bool:
        """Whether another account continues after this error. One answer has one beginning."""
        return bool(self._more) and visible <= Visible.FRAMING and self._is_spent(self.current, error)

    def model_follows(self, error: ProxyError, visible: Visible) -> bool:
        """Whether another model answers instead. It has its own head, so none may have been sent."""
        return bool(self._others) and visible in _HEADLESS and error.kind in self._kinds

    def next_account(self) -> Candidate:
        self.current = self._more.pop(0)
        return self.current

    def next_model(self, error: ProxyError) -> str:
        """Selects and returns the model that answers in place of this one, which failed with `error`."""
        self.failures.append((self.model, error))
        self.model, *others = self._others
        self._others = tuple(others)
        return self.model

    def held_until(self, now: float, grace_s: float) -> float:
        """The latest time for the head, in the loop's seconds: all models together have HOLD_S."""
        if not self._others and not self.failures:
            return now + grace_s
        if self._held_since is None:
            self._held_since = now
        until = self._held_since + HOLD_S
        return until if self._others else min(until, now + grace_s)

    def final_error(self, error: ProxyError) -> ProxyError:
        """The error when every candidate failed: the first model's, then the others'."""
        if not self.failures:
            return error
        (_, first), *others = [*self.failures, (self.model, error)]
        said = "; ".join(f"{model}: {one.message.rstrip('.')}" for model, one in others)
        return first.replaced(message=f"{first.message.rstrip('.')}. In place of it: {said}")

    @property
    def stands_in(self) -> str:
        """`gpt-5.6-sol -> kimi-k3; overloaded`; "" while the requested model answers."""
        if not self.failures or self.model == self.failures[0][0]:
            return ""
        before, error = self.failures[-1]
        return f"{before} -> {self.model}; {error.kind}"
