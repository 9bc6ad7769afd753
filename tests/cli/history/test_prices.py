"""Prices of the user's own, and what a report says of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from captured import Run
from observe.history.past import history
from samples import rows

from cli.history.week import week
from proxy.cli.history.prices import Cost, Price, Prices, read_prices
from proxy.cli.history.used_table import cost_text
from proxy.config import ConfigError
from proxy.observe.history.usage import Usage

TABLE = {"gpt-5.6": {"input": 2, "cached": 0.5, "output": 10}, "kimi-*": {"input": 1, "output": 4}}


def file_of(folder: Path, content: Any) -> Path:
    path = folder / "prices.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_column_and_a_total_that_says_what_it_lacks(run: Run, state: Path, tmp_path: Path) -> None:
    history(state, week())
    path = str(file_of(tmp_path, TABLE))
    out = run("report", "--prices", path)[1]
    # 4 requests: 3 M of 6 M input were cached, 40 k output; 2 requests: 6 M input, 20 k output
    assert [line.split()[6] for line in out.splitlines() if line.startswith(("p1/", "p2/", "total"))] == [
        "7.90",
        "6.08",
        "13.98",
    ]
    found = json.loads(run("report", "--by", "project", "--prices", path, "--json")[1])
    assert {row["project"]: row["cost"] for row in found["rows"]} == {
        "search": pytest.approx(5.95),  # 2 * (1.25 * 2 + 0.75 * 0.5 + 0.1)
        None: pytest.approx(6.08),
        "shop": pytest.approx(1.95),
    }
    part = file_of(tmp_path, {"gpt-5.6": TABLE["gpt-5.6"]})
    out = run("report", "--prices", str(part))[1]
    assert "7.90+" in out and "The cost is only a part, no price is known of: kimi-k3" in out
    found = json.loads(run("report", "--by", "day", "--prices", str(part), "--json")[1])
    assert [row["cost"] for row in found["rows"]][:5] == [0.0, 0.0, 0.0, 0.0, None]
    assert found["total"]["unpriced"] == ["kimi-k3"] and found["total"]["cost"] == pytest.approx(7.9)


@rows("columns", [70, 80, 120])
def test_a_column_more_still_fits(columns: int, run: Run, state: Path, tmp_path: Path, monkeypatch: Any) -> None:
    if not (state / "history.db").exists():
        history(state, week())
    monkeypatch.setenv("COLUMNS", str(columns))
    out = run("report", "--prices", str(file_of(tmp_path, TABLE)))[1]
    assert max(map(len, out.splitlines())) <= columns and "13.98" in out


@rows(
    "model, table, output",
    [
        ("gpt-5.6", {"gpt-5.6": 1, "gpt-*": 2, "*": 3}, 1),
        ("gpt-5.7", {"*": 3, "gpt-*": 2}, 2),
        ("gpt-5.7-mini", {"gpt-*": 2, "gpt-*-mini": 4}, 4),
        ("kimi", {"*": 3}, 3),
        ("kimi", {"gpt-*": 2, "kim": 1, "imi": 1}, None),
        ("a[b]c", {"a[b]*": 5, "a?b*": 6}, 5),
        ("", {"*": 3}, 3),
    ],
)
def test_the_name_that_says_most_counts(model: str, table: Mapping[str, float], output: float | None) -> None:
    found = Prices({name: Price(0, 0, price) for name, price in table.items()}).of(model)
    assert (found and found.output) == output


def test_cached_input_costs_as_any_where_no_other_price_is_told(tmp_path: Path) -> None:
    prices = read_prices(file_of(tmp_path, {"m": {"input": 3, "output": 0}}))
    assert prices.cost([("m", Usage(input=1_000_000, cached=400_000))]) == Cost(3.0)
    assert prices.cost([("x", Usage(requests=1))]) == Cost(0.0)  # it failed, and cost nothing


@rows(
    "content, words",
    [
        ("{", "line 1, column 2: no JSON"),
        ('{\n  "m": {"input": 1,}\n}', "line 2, column"),
        ("[]", "expected an object of models, like {"),
        ({"m": 3}, '"m": expected an object with the prices of a million tokens'),
        ({"m": {"input": 1}}, '"m": "output" is missing'),
        ({"m": {"input": 1, "output": 1, "cache": 1}}, '"m": "cache" is none of input, cached, output'),
        ({"m": {"input": "1", "output": 1}}, '"m", "input": expected a number from 0'),
        ({"m": {"input": -1, "output": 1}}, "expected a number from 0"),
        ({"m": {"input": True, "output": 1}}, "expected a number from 0"),
        ('{"m": {"input": NaN, "output": 1}}', "expected a number from 0"),
        ('{"m": {"input": 1e999, "output": 1}}', "expected a number from 0"),
        ('{"m": {"input": 1' + "0" * 400 + ', "output": 1}}', "expected a number from 0"),
        ("[" * 100_000, "no JSON"),
        (" " * 1024 * 1025, "too large"),
    ],
)
def test_a_file_of_prices_that_is_wrong_says_where(content: Any, words: str, tmp_path: Path) -> None:
    path = file_of(tmp_path, content)
    with pytest.raises(ConfigError) as raised:
        read_prices(path)
    assert words in raised.value.message and str(path) in raised.value.message


def test_a_file_of_prices_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_prices(tmp_path / "prices.json")


@rows("amount, text", [(0, "0.00"), (0.004, "<0.01"), (99_999, "99,999.00"), (123_456.7, "123,457"), (None, "?")])
def test_amounts(amount: float | None, text: str) -> None:
    assert cost_text(Cost(amount)) == text
