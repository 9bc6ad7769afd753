"""The state of the simulated P5: shared by its routes, read and changed by tests."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator

from proxy.sandbox.oauth.issuer import AccountUpstream
from proxy.sandbox.p5.issuer import CursorIssuer, CursorTokens
from proxy.sandbox.p5.options import P5Options
from proxy.sandbox.p5.runs import Run
from proxy.sandbox.play.script import Tables
from proxy.sandbox.upstream import KEPT_REQUESTS, Host, Received

#: Violations that are kept: one is enough to fail a test.
MAX_VIOLATIONS = 100


class Runs:
    """The last runs by their request id, oldest first: as many as requests are kept, and all that go on."""

    def __init__(self, blame: Callable[[str], None], options: P5Options) -> None:
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self._blame = blame
        self._options = options

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs.values())

    def __len__(self) -> int:
        return len(self._runs)

    def __getitem__(self, number: int) -> Run:
        return list(self._runs.values())[number]

    def claim(self, request_id: str) -> Run:
        """The run with this id, or a new one: stream and first message may come in any order. Messages whose stream
        does not come in time are dropped."""
        run = self._runs.get(request_id)
        if run is None or self._unclaimed(run):
            run = self._runs[request_id] = Run(request_id, self._blame, self._options)
            self._runs.move_to_end(request_id)
            self._forget()
        return run

    def _unclaimed(self, run: Run) -> bool:
        return not run.opened and run.clock() - run.began_at > self._options.unclaimed_s

    def _forget(self) -> None:
        """Drops the oldest run that is over."""
        over = (name for name, run in self._runs.items() if run.ended_at is not None or self._unclaimed(run))
        old = next(over, None) if len(self._runs) > KEPT_REQUESTS else None
        if old is not None:
            del self._runs[old]


class P5(AccountUpstream):
    """The simulated service. `runs` are the last ones; `violations` are unwanted acts of clients, of which tests expect
    none; `model_requests` counts requests for the list of models. Agent and sign-in share an address."""

    options: P5Options
    tokens: CursorTokens
    issuer: CursorIssuer

    def __init__(self, host: Host, options: P5Options, tables: Tables) -> None:
        super().__init__(host, options, tables)
        self.tokens = CursorTokens(options, host)
        self.issuer = CursorIssuer(self.tokens, options)
        self.model_requests: deque[Received] = deque(maxlen=KEPT_REQUESTS)
        self.violations: list[str] = []
        self.billed_fast = 0  # runs of a model whose fast variant costs more, since the client did not decline it
        self.runs = Runs(self.blame, options)

    def blame(self, words: str) -> None:
        """Notes a violation."""
        if len(self.violations) < MAX_VIOLATIONS:
            self.violations.append(words)

    def settings(self) -> dict[str, str]:
        origin = self.host.origin
        return {"PROXY_P5_BASE_URL": origin, "PROXY_P5_WEBSITE_URL": origin}
