"""What may serve one request, one model after the other. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from proxy.core.routing import normalise_model
from proxy.errors import ProxyError

#: Tells which model answered in place of which, and why.
HEADER = "x-model-proxy-fallback"
#: What is kept back for so long at most, where another model may serve: boxes on the way cut a silence after a minute.
HOLD_S = 50.0


@dataclass(frozen=True, slots=True)
class AskedFirst:
    """Who was asked for the first model, as errors of it are told.

    account  its name, "" where the provider has one only
    alias    whether the client named an alias
    """

    provider: str | None = None
    model: str | None = None
    account: str = ""
    alias: bool = False


@dataclass(slots=True)
class Chain:
    """
    asked     the name that the client used, as answers carry it
    model     the one that serves, or tries to
    left      those that may still serve, in order
    kinds     of errors that lead to the next
    failures  of those that could not: the model, and why
    number    of the request within its session, 0 without one: it stays, whoever serves
    body      of the request, kept while somebody else may have to serve it
    received  the same as it came, where captures are on
    first     who could not serve first
    since     when something was kept back first, in the loop's seconds
    """

    asked: str = ""
    model: str = ""
    left: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()
    failures: list[tuple[str, ProxyError]] = field(default_factory=list)
    number: int = 0
    body: Mapping[str, Any] | None = None
    received: bytes = b""
    first: AskedFirst = field(default_factory=AskedFirst)
    since: float | None = None

    @property
    def went_on(self) -> bool:
        """Whether another model serves than the one that was asked for."""
        return bool(self.failures) and self.model != self.failures[0][0]

    def declare(self, asked: str, model: str, fallback: Mapping[str, tuple[str, ...]], kinds: frozenset[str]) -> None:
        """The model is chosen. `asked`: as the client called it; `fallback`: model -> those in place of it."""
        self.asked, self.model, self.kinds = asked, model, kinds
        others = next((others for name, others in fallback.items() if normalise_model(name) == model), ())
        self.left = tuple(map(normalise_model, others))
        if not self.left:
            self.forget()

    def goes_on(self, error: ProxyError) -> bool:
        """Whether the next model serves after this error; then `model` is that."""
        if not self.left or error.kind not in self.kinds:
            return False
        self.failures.append((self.model, error))
        self.model, *left = self.left
        self.left = tuple(left)
        return True

    def held_until(self, now: float, grace_s: float) -> float:
        """When the head goes out at the latest. All models together have HOLD_S, since the client hears of none."""
        if not self.left and not self.failures:
            return now + grace_s
        if self.since is None:
            self.since = now
        until = self.since + HOLD_S
        return until if self.left else min(until, now + grace_s)

    def forget(self) -> None:
        """Nobody else will serve it: its body is of no more use."""
        self.body, self.received = None, b""

    def told(self, error: ProxyError) -> ProxyError:
        """What the caller is told when nobody could serve: why not the model that he asked for, and the others."""
        if not self.failures:
            return error
        (_, first), *others = [*self.failures, (self.model, error)]
        said = "; ".join(f"{model}: {one.message.rstrip('.')}" for model, one in others)
        return first.replaced(message=f"{first.message.rstrip('.')}. In place of it: {said}")

    @property
    def header(self) -> str:
        """`gpt-5.6-sol -> kimi-k3; overloaded`"""
        model, error = self.failures[-1]
        return f"{model} -> {self.model}; {error.kind}"
