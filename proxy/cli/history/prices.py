"""Prices of a user's own, and what tokens cost at them. None are shipped: they change, and a subscription has none."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proxy.config import ConfigError
from proxy.observe.history.usage import Usage

#: Tokens that a price is for.
PER_TOKENS = 1_000_000
#: Bytes of a file of prices.
_MOST_BYTES = 1024 * 1024
_MEMBERS = ("input", "cached", "output")
_EXAMPLE = '{"gpt-5.6*": {"input": 1.25, "cached": 0.125, "output": 10}}'


@dataclass(frozen=True, slots=True)
class Price:
    """Prices of a million tokens; `cached`: of input that came from a cache."""

    input: float
    cached: float
    output: float

    def cost(self, usage: Usage) -> float:
        fresh = usage.input - usage.cached
        return (fresh * self.input + usage.cached * self.cached + usage.output * self.output) / PER_TOKENS


@dataclass(frozen=True, slots=True)
class Cost:
    """What requests cost; None: unknown. `unpriced`: the models with tokens of which nothing is known, so that the
    amount is only a part."""

    amount: float | None
    unpriced: frozenset[str] = frozenset()


class Prices:
    """The prices of models, by name, or by a pattern with `*`."""

    def __init__(self, table: Mapping[str, Price]) -> None:
        self._exact = table
        # the pattern that says most goes first
        ordered = sorted((name for name in table if "*" in name), key=lambda name: -len(name.replace("*", "")))
        self._patterns = [(re.compile(".*".join(map(re.escape, name.split("*"))), re.DOTALL), name) for name in ordered]

    def of(self, model: str) -> Price | None:
        if model in self._exact:
            return self._exact[model]
        return next((self._exact[name] for pattern, name in self._patterns if pattern.fullmatch(model)), None)

    def cost(self, by_model: Iterable[tuple[str, Usage]]) -> Cost:
        """What the requests of some models cost together."""
        amounts, unpriced = [], set()
        for model, usage in by_model:
            price = self.of(model)
            if price is not None:
                amounts.append(price.cost(usage))
            elif usage.input or usage.output:
                unpriced.add(model)
        return Cost(sum(amounts) if amounts or not unpriced else None, frozenset(unpriced))


def read_prices(path: Path) -> Prices:
    """The prices of a file. Raises ConfigError, which says what is wrong and where."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ConfigError(f"{path}: too large for a table of prices")
        found = json.loads(content.decode("utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"the prices {path} cannot be read: {error.strerror or error}") from None
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}, line {error.lineno}, column {error.colno}: no JSON, {error.msg}") from None
    except (UnicodeDecodeError, RecursionError, ValueError):
        raise ConfigError(f"{path}: no JSON in UTF-8") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{path}: expected an object of models, like {_EXAMPLE}")
    return Prices({name: _price(value, f"{path}, {json.dumps(name)}") for name, value in found.items()})


def _price(value: Any, place: str) -> Price:
    if not isinstance(value, dict):
        raise ConfigError(f"{place}: expected an object with the prices of a million tokens, like in {_EXAMPLE}")
    for name in value:
        if name not in _MEMBERS:
            raise ConfigError(f"{place}: {json.dumps(name)} is none of {', '.join(_MEMBERS)}")
    for name in ("input", "output"):
        if name not in value:
            raise ConfigError(f"{place}: {json.dumps(name)} is missing")
    found = {name: _amount(amount, f"{place}, {json.dumps(name)}") for name, amount in value.items()}
    return Price(found["input"], found.get("cached", found["input"]), found["output"])


def _amount(value: Any, place: str) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= 10**9:  # NaN is neither
        raise ConfigError(f"{place}: expected a number from 0, the price of a million tokens")
    return float(value)
