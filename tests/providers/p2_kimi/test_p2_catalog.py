"""P2's rows: output caps and efforts."""

from __future__ import annotations

from samples import rows

from proxy.providers.p2_kimi.catalog import CATALOG, K3, model_for


def test_names() -> None:
    assert (CATALOG.label, CATALOG.service) == ("p2", "kimi")
    assert CATALOG.models == ("k2.6", "k3", "kimi-for-coding", "kimi-k2.6", "kimi-k3")
    sent = {name: model_for(name).id for name in (*CATALOG.models, "sonnet")}
    assert {name for name, sent_as in sent.items() if sent_as == "k3"} == {"k3", "kimi-k3"}
    assert set(sent.values()) == {"k3", "kimi-for-coding"}


@rows(
    "name, requested, sent",
    [
        *(("kimi-for-coding", asked, sent) for asked, sent in ((None, 32_000), (0, 32_000), (10, 10))),
        *(("k2.6", 99_999, 32_000), ("kimi-k3", None, 1_048_576)),
        *(("k3", asked, sent) for asked, sent in ((500_000, 500_000), (0, 1_048_576))),
    ],
)
def test_max_tokens(name: str, requested: int | None, sent: int) -> None:
    assert model_for(name).max_tokens(requested) == sent


@rows(
    "asked, coding, k3",
    [
        *((None, "medium", "high"), ("low", "low", "low"), ("medium", "medium", "high")),
        *(("high", "high", "high"), ("xhigh", "high", "high"), ("max", "high", "max")),
    ],
)
def test_efforts(asked: str | None, coding: str, k3: str) -> None:
    assert (model_for("k2.6").effort(asked), K3.effort(asked)) == (coding, k3)
