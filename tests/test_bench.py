"""The benchmark's own parts: what it asks for is what its upstream plays, in a form that the proxy understands."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from harness import Live, with_live

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts" / "lib"))

from bench.answers import answer, asked, question
from bench.load import NUMBER, percentile
from bench.rows import PROVIDERS, ROWS, Row

WIRES = {"/chat/completions": "chat", "/responses": "responses"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_request_says_how_its_answer_is_played(row: Row) -> None:
    body = row.body()
    assert asked(body) == (row.texts, row.every_ms) and body.count(NUMBER) == 1
    assert (len(body) > 80_000) is row.agent


def test_what_is_no_request_of_ours_is_refused() -> None:
    with pytest.raises(ValueError, match="none of the benchmark"):
        asked(b"{}")
    assert asked((question(1, 2) + question(3, 4)).encode()) == (3, 4)


def test_names_tell_rows_apart() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS) and {row.provider for row in ROWS} == {*PROVIDERS}


@pytest.mark.parametrize("provider", ["p1", "p2"])
@with_live(p1_transport="http")
async def test_the_proxy_reads_what_the_upstream_plays(live: Live, provider: str) -> None:
    model, path = PROVIDERS[provider]
    body = b"".join(answer(WIRES[path], 12)).decode()
    live.sandbox[provider].script.extend([{"provider": provider, "events": [{"raw": body}]}])
    said = await live.post({"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]})
    assert said.json["content"][-1]["text"].split() == [f"word{number}" for number in range(12)]
    assert said.json["usage"]["output_tokens"] == 12


@pytest.mark.parametrize(("share", "value"), [(0.0, 1.0), (0.5, 3.0), (0.99, 4.0), (1.0, 4.0)])
def test_percentiles(share: float, value: float) -> None:
    assert percentile([4.0, 1.0, 3.0, 2.0], share) == value
