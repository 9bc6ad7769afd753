"""What is kept of sessions is bounded, and only as long as it is of use."""

from __future__ import annotations

from typing import Any

from proxy.core.cache_health.fingerprint import of_messages
from proxy.core.cache_health.judge import Sent, judge
from proxy.core.cache_health.memory import IDLE_S, MAX_LINES, PromptMemory
from proxy.core.identity import Owner


def sent(*words: str, at: float = 0.0, system: str = "s", **members: Any) -> Sent:
    messages = [{"role": "user", "content": word * 3_000} for word in words]
    return Sent(of_messages({"system": system * 300, "messages": messages}), at, "p1", "m", **members)


def test_owners_expire_and_are_bounded() -> None:
    memory = PromptMemory(max_owners=3)
    for number in range(5):
        memory.reached(Owner(f"s{number}"), sent("a", at=number))
    assert len(memory) == 3 and memory.blocks == 6
    assert memory.reached(Owner("s0"), sent("a", "b", at=5)).old is None
    assert memory.reached(Owner("s4"), sent("a", "b", at=6)).old is not None
    memory.reached(Owner("new"), sent("a", at=7 + IDLE_S))
    assert len(memory) == 1 and memory.blocks == 2


def test_blocks_are_bounded_and_the_newest_owner_stays() -> None:
    memory = PromptMemory(max_blocks=10)
    for number in range(10):
        memory.reached(Owner("s", f"a{number}"), sent("a", "b", "c"))
    assert memory.blocks == 8 and len(memory) == 2
    memory.reached(Owner("large"), sent(*map(str, range(30))))
    assert memory.blocks == 31 and len(memory) == 1


def test_the_longest_conversation_survives_side_requests() -> None:
    memory = PromptMemory()
    owner = Owner("s")
    memory.reached(owner, sent("a", "b", "c"))
    for number in range(3 * MAX_LINES):
        assert memory.reached(owner, sent(f"{number}", system=f"{number}")).old is None
    assert memory.blocks <= 2 * MAX_LINES + 4
    again = memory.reached(owner, sent("a", "b", "c", "d"))
    assert again.old is not None and again.old.fingerprint.messages == 3


def test_a_short_prompt_is_not_kept() -> None:
    memory = PromptMemory()
    memory.reached(Owner("s"), Sent(of_messages({"messages": [{"role": "user", "content": "quota"}]}), 0, "p1", "m"))
    assert len(memory) == memory.blocks == 0


def test_a_reason_is_news_until_it_is_over() -> None:
    line = PromptMemory().reached(Owner("s"), sent("a")).line
    assert [line.is_new(kind) for kind in ("system", "system", "time", "", "", "time")] == [
        *(True, False, True),
        *(False, False, True),
    ]


def test_little_is_no_loss() -> None:
    """Shares are of characters here and of tokens there."""
    old, new = sent("a", "b", "c"), sent("a", "b", "c")
    rows = [(1_000, 0, ""), (2_000, 0, "upstream"), (100_000, 80_000, ""), (100_000, 70_000, "upstream"), (0, 0, "")]
    for tokens, cached, kind in rows:
        assert judge(old, new, cached_tokens=cached, input_tokens=tokens).kind == kind, tokens


def test_effort_and_account_are_named_where_nothing_else_is_it() -> None:
    rows: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        ({"effort": "low"}, {"effort": "high"}, "another effort: low before"),
        ({}, {"effort": "high"}, "another effort: none before"),
        ({"account": 1}, {"account": 2, "effort": "high"}, "another account or key of p1"),
        ({"account": 1}, {"account": None}, "the upstream no longer had it"),
        ({}, {"at": 301.0}, "5 min since the last request, longer than p1 keeps prompts (as far as known)"),
        ({}, {"at": 7_320.0}, "2 h 2 min since the last request, longer than p1 keeps prompts (as far as known)"),
        ({}, {"at": 299.0}, "the upstream no longer had it"),
    ]
    for before, now, reason in rows:
        assert judge(sent("a", **before), sent("a", **now), cached_tokens=0, input_tokens=9_000).reason == reason
