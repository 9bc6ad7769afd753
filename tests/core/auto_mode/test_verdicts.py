"""The reviewer's answer: what is not exactly a permission is none."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from core.strategies import json_values
from proxy.core.auto_mode.verdicts import MAX_EXPLANATION, NO_REASON, ToolUse, Verdict, results, reviewed

CALLS = [ToolUse("a", "Bash", {}), ToolUse("b", "Bash", {})]
FINE = [{"call": 1, "flagged": False}, {"call": 2, "flagged": True, "reason": "bad"}]


def outcomes(text: str) -> list[str]:
    found = reviewed(text, CALLS)
    assert list(found) == ["a", "b"]
    return [verdict.outcome for verdict in found.values()]


def told(*found: Any) -> str:
    return json.dumps({"verdicts": list(found)})


@rows(
    "text, expected",
    [
        (told(*FINE), ["not_flagged", "flagged"]),
        (told(*reversed(FINE)), ["not_flagged", "flagged"]),
        (f"```json\n{told(*FINE)}\n```", ["not_flagged", "flagged"]),
        (f"\n {told(*FINE)} \n", ["not_flagged", "flagged"]),
        (json.dumps({"verdicts": FINE, "note": "x"}), ["not_flagged", "flagged"]),
        (told(*FINE, {"call": 3, "flagged": False}), ["not_flagged", "flagged"]),
        # a call without exactly one verdict
        (told(FINE[0]), ["not_flagged", "error"]),
        (told(), ["error", "error"]),
        (told(*FINE, {"call": 2, "flagged": False}), ["not_flagged", "error"]),
        (told(*FINE, {"call": 1, "flagged": False}), ["error", "flagged"]),
        # values of another kind
        (told({"call": "1", "flagged": False}, FINE[1]), ["error", "flagged"]),
        (told({"call": True, "flagged": False}, FINE[1]), ["error", "flagged"]),
        (told({"call": 1.0, "flagged": False}, FINE[1]), ["error", "flagged"]),
        (told({"call": 1, "flagged": "false"}, FINE[1]), ["error", "flagged"]),
        (told({"call": 1, "flagged": 0}, FINE[1]), ["error", "flagged"]),
        (told({"call": 1, "flagged": None}, FINE[1]), ["error", "flagged"]),
        (told({"call": 1}, FINE[1]), ["error", "flagged"]),
        (told(7, "x", None, [], FINE[1]), ["error", "flagged"]),
        # an answer that is something else
        ("", ["error", "error"]),
        ("not_flagged", ["error", "error"]),
        ("I looked at both. " + told(*FINE), ["error", "error"]),
        (told(*FINE) + " Done.", ["error", "error"]),
        (told(*FINE) + told(*FINE), ["error", "error"]),
        (told(*FINE)[:-2], ["error", "error"]),
        (json.dumps(FINE), ["error", "error"]),
        (json.dumps({"verdicts": {"1": FINE[0]}}), ["error", "error"]),
        ("[" * 100_000, ["error", "error"]),
        ("```", ["error", "error"]),
        # an answer that contradicts itself
        ('{"verdicts": [{"call": 1, "flagged": true, "flagged": false}]}', ["error", "error"]),
        ('{"verdicts": [{"call": 1, "fl\\u0061gged": true, "flagged": false}]}', ["error", "error"]),
        ('{"verdicts": [{"call": 1, "Flagged": true, "flagged": false}]}', ["error", "error"]),
        ('{"verdicts": [{"call": 2, "call": 1, "flagged": false}]}', ["error", "error"]),
        (f'{{"verdicts": [], {told(*FINE)[1:]}', ["error", "error"]),
        (f'{{"verdicts": {json.dumps(FINE)}, "note": {{"a": 1, "a": 2}}}}', ["error", "error"]),
        (told(FINE[0], {"call": "1", "flagged": True}), ["error", "error"]),
        (told(*FINE, "call 1 is flagged as well"), ["error", "flagged"]),
        # counted from zero
        (told({"call": 0, "flagged": True}, {"call": 1, "flagged": False}), ["error", "error"]),
        (f"```json\n{told(*FINE)}\n```\nBut the first call is dangerous.", ["error", "error"]),
        (f"```json\n{told(*FINE)}\n```\nBut the first call is dangerous.\n```", ["error", "error"]),
        (f"```json but the first call is dangerous\n{told(*FINE)}\n```", ["error", "error"]),
        (f"Both are flagged.\n```json\n{told(*FINE)}\n```", ["error", "error"]),
    ],
)
def test_a_verdict_is_what_can_be_read_as_one(text: str, expected: list[str]) -> None:
    assert outcomes(text) == expected


@given(st.text() | json_values.map(json.dumps) | st.lists(json_values).map(lambda found: told(*found)))
def test_any_answer_gives_each_call_an_outcome(text: str) -> None:
    assert set(outcomes(text)) <= {"not_flagged", "flagged", "error"}


@rows(
    "verdict, told",
    [
        (Verdict("not_flagged"), {"type": "evaluated", "outcome": "not_flagged"}),
        (Verdict("flagged", "bad."), {"type": "evaluated", "outcome": "flagged", "explanation": "bad"}),
        (Verdict("flagged", " two\n\x1b[31m lines "), {"explanation": "two [31m lines"}),
        (Verdict("flagged", ""), {"explanation": NO_REASON}),
        (Verdict("skipped"), {"type": "skipped"}),
        (Verdict("timeout"), {"type": "unavailable", "reason": "timeout"}),
        (Verdict("truncated"), {"type": "unavailable", "reason": "truncated"}),
    ],
)
def test_the_form_that_clients_read(verdict: Verdict, told: dict[str, Any]) -> None:
    assert verdict.for_client() | told == verdict.for_client()
    assert results({"t": verdict})[0]["status"]["tool_uses"]["t"] == verdict.for_client()


def test_a_long_explanation_is_cut() -> None:
    assert len(Verdict("flagged", "x" * 9000).for_client()["explanation"]) == MAX_EXPLANATION
