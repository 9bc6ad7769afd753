"""What of a request is counted where."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest
from samples import rows

from proxy.observe.lifecycle import SPANS, SignInRenewed, SocketsOpen
from proxy.observe.metrics import table
from proxy.observe.metrics.counts import MAX_MODELS, Metrics, Moment, process_values, watch_loop
from proxy.observe.metrics.registry import OTHER
from proxy.observe.monitor.snapshot import AllowanceRow, RequestRow, Throughput

from .exposition import Family, read

ROW = RequestRow(
    "id-1",
    "messages",
    "completed",
    100.0,
    elapsed=3.0,
    http=200,
    provider="p1",
    requested="opus",
    resolved="gpt-5.5",
    attempts=3,
    input_tokens=1000,
    output_tokens=50,
    cached_tokens=800,
    throughput=Throughput(50, 1.0, 4096, 9),
    timings={"queue": 1.0, "translate": 4.0, "first_byte": 995.0, "first_token": 1000.0},
    judge={"allowed": 2},
    judge_input_tokens=30,
    judge_output_tokens=4,
    session="session-1",
    project="secret-project",
    error="",
)
CUT = replace(ROW, status="failed", error="broke", kind="transport", timings={"queue": 1.0})
REFUSED = RequestRow("id-2", "messages", "failed", 100.0, http=400, kind="invalid_request")
LEFT = RequestRow("id-3", "messages", "abandoned", 100.0, provider="p2", resolved="k3", attempts=1)


def counted(*rows: RequestRow, moment: Moment | None = None) -> dict[str, Family]:
    metrics = Metrics("0.1")
    for row in rows:
        metrics.finished(row)
    return read(metrics.text(moment or Moment()))


#: rows -> a sample with its labels -> its value
COUNTED: list[tuple[tuple[RequestRow, ...], str, dict[str, str], float]] = [
    ((ROW, ROW), "requests_total", {"outcome": "completed", "status": "2xx", "model": "gpt-5.5"}, 2),
    ((ROW, CUT), "requests_total", {"outcome": "failed", "status": "2xx"}, 1),
    ((REFUSED,), "requests_total", {"outcome": "failed", "status": "4xx", "provider": "none", "model": "none"}, 1),
    ((LEFT,), "requests_total", {"outcome": "abandoned", "status": "none", "provider": "p2"}, 1),
    ((CUT,), "request_failures_total", {"provider": "p1", "kind": "transport"}, 1),
    ((REFUSED,), "request_failures_total", {"provider": "none", "kind": "invalid_request"}, 1),
    ((ROW, ROW), "input_tokens_total", {"provider": "p1", "model": "gpt-5.5"}, 2000),
    ((ROW,), "cached_input_tokens_total", {"provider": "p1"}, 800),
    ((ROW,), "output_tokens_total", {"provider": "p1"}, 50),
    ((ROW,), "response_body_bytes_total", {"provider": "p1"}, 4096),
    ((ROW,), "upstream_attempts_total", {"provider": "p1"}, 3),
    ((ROW, LEFT), "upstream_retries_total", {"provider": "p1"}, 2),
    ((LEFT,), "upstream_retries_total", {"provider": "p2"}, 0),
    ((ROW,), "judged_calls_total", {"outcome": "allowed"}, 2),
    ((ROW, ROW), "judge_input_tokens_total", {}, 60),
    ((REFUSED,), "judge_output_tokens_total", {}, 0),
    ((ROW, CUT), "request_duration_seconds_count", {"provider": "p1", "endpoint": "messages"}, 1),
    ((ROW,), "request_duration_seconds_bucket", {"le": "2.5"}, 0),
    ((ROW,), "request_duration_seconds_bucket", {"le": "5"}, 1),
    ((ROW, CUT), "time_to_first_token_seconds_sum", {"provider": "p1"}, 2.0),
    ((ROW, CUT), "time_to_first_token_seconds_count", {"provider": "p1"}, 1),
    ((ROW, CUT), "request_span_seconds_sum", {"span": "queue"}, 0.002),
    ((ROW, CUT), "request_span_seconds_count", {"span": "translate"}, 1),
]


@rows("rows, sample, labels, value", COUNTED)
def test_a_request_counts(rows: tuple[RequestRow, ...], sample: str, labels: dict[str, str], value: float) -> None:
    found = counted(*rows)
    name = f"model_proxy_{sample}"
    [family] = [family for family in found.values() if name in family.samples]
    assert family.value(name, **labels) == pytest.approx(value)


def test_what_is_looked_at_when_somebody_asks() -> None:
    metrics = Metrics("0.1")
    for event in (SignInRenewed("p1", True), SignInRenewed("p1", False), SocketsOpen("p1", 4), SocketsOpen("p1", 2)):
        metrics.happened(event)
    metrics.lagged(0.2)
    windows = (AllowanceRow("p1", "5 hours", 42.0, 90.0, resets_at=500.0), AllowanceRow("p2", "Weekly", 101.0, 90.0))
    found = read(metrics.text(Moment({"p1": 3, "": 1}, 77, {"session": 2}, windows)))

    def value(name: str, **labels: str) -> float:
        return found[name].value(name, **labels)

    assert [value("model_proxy_requests_active", provider=label) for label in ("p1", "none")] == [3, 1]
    assert value("model_proxy_buffered_body_bytes") == 77
    assert value("model_proxy_admission_refusals_total", limit="session") == 2
    assert [value("model_proxy_sign_in_renewals_total", result=how) for how in ("ok", "failed")] == [1, 1]
    assert value("model_proxy_sockets_open", provider="p1") == 2
    assert value("model_proxy_allowance_used_ratio", window="5 hours") == 0.42
    assert value("model_proxy_allowance_used_ratio", window="Weekly") == 1.01
    assert len(found["model_proxy_allowance_reset_timestamp_seconds"].samples.popitem()[1]) == 1
    assert value("model_proxy_build_info", version="0.1") == 1
    lag = found["model_proxy_event_loop_lag_seconds"]
    assert [lag.value("model_proxy_event_loop_lag_seconds_bucket", le=le) for le in ("0.1", "0.25")] == [0, 1]


def test_nobody_can_make_the_text_grow() -> None:
    metrics = Metrics("0.1")
    for number in range(5000):
        metrics.finished(replace(ROW, resolved=f"grok-{number}", id=str(number), session=f"s-{number}"))
    text = metrics.text(Moment())
    requests = read(text)["model_proxy_requests_total"]
    assert len(requests.samples["model_proxy_requests_total"]) == MAX_MODELS + 1
    assert requests.value("model_proxy_requests_total", model=OTHER) == 5000 - MAX_MODELS
    assert not any(word in text for word in ("s-1", "secret-project", "id-1"))


def test_every_span_and_every_metric_has_its_place() -> None:
    metrics = Metrics("0.1")
    metrics.finished(replace(ROW, timings=dict.fromkeys(SPANS, 1.0)))
    spans = read(metrics.text(Moment()))["model_proxy_request_span_seconds"]
    assert len(spans.samples["model_proxy_request_span_seconds_sum"]) == len(SPANS)
    assert all(span in table.SPANS.help for span in SPANS)
    assert {metric.name for metric in table.ALL} == set(read(metrics.text(Moment())))
    constants = [value for value in vars(table).values() if isinstance(value, table.Metric)]
    assert sorted(metric.name for metric in constants) == sorted(metric.name for metric in table.ALL)


# -- the process and its loop

STAT = "7 (a) b) S 1 7 7 0 -1 4194560 5 0 0 0 250 50 0 0 20 0 9 0 6000 99999 11 18446744073709551615 1"
LIMITS = "Limit               Soft Limit     Hard Limit     Units\nMax open files      {} 4096 files\n"


@pytest.mark.parametrize(("limit", "known"), [("1024", True), ("unlimited", False)])
def test_the_process_is_told_from_proc(tmp_path: Path, limit: str, known: bool) -> None:
    (tmp_path / "self/fd").mkdir(parents=True)
    for number in range(3):
        (tmp_path / "self/fd" / str(number)).touch()
    (tmp_path / "self/stat").write_text(STAT)
    (tmp_path / "self/limits").write_text(LIMITS.format(limit))
    (tmp_path / "stat").write_text("cpu 1 2\nbtime 1700000000\n")
    values = process_values(tmp_path)
    assert values[table.OPEN_FDS] == 3
    ticks = os.sysconf("SC_CLK_TCK")
    assert values[table.CPU] == pytest.approx(300 / ticks)
    assert values[table.STARTED] == pytest.approx(1_700_000_000 + 6000 / ticks)
    assert values[table.MEMORY] == 11 * os.sysconf("SC_PAGE_SIZE") and (table.MAX_FDS in values) is known


def test_where_there_is_no_proc_nothing_is_told(tmp_path: Path) -> None:
    assert process_values(tmp_path) == {}


async def test_the_lag_of_the_loop_is_told() -> None:
    told: list[float] = []
    task = asyncio.create_task(watch_loop(told.append, 0.001))
    while len(told) < 3:
        await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.wait({task})
    assert all(0 <= lag < 1 for lag in told)
