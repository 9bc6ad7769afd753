"""Who is asking."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from core.strategies import json_values
from proxy.core.identity import MAX_ID_BYTES, Owner, owner_of, session_in_metadata, session_of, session_of_opening

S, A, P = "x-claude-code-session-id", "x-claude-code-agent-id", "x-claude-code-parent-agent-id"


@rows(
    "headers, expected",
    [
        ({}, None),
        ({S: ["s"]}, Owner("s")),
        ({S: [" s\t"], A: ["a"], P: ["p"]}, Owner("s", "a")),
        ({S: ["s"], A: ["a"]}, Owner("s", "a")),
        ({S: ["s"], P: ["p"]}, None),
        ({S: ["s"], A: [""]}, None),
        ({S: ["s"], A: ["a,b"]}, None),
        ({S: ["s"], A: ["two words"]}, None),
        ({S: ["s"], A: ["a"], P: ["p q"]}, None),
        ({A: ["a"]}, None),
        ({S: ["s", "t"]}, None),
        ({S: ["s"], A: ["a", "a"]}, None),
        ({S: ["s"], "x-agent-session-id": ["s"]}, None),
        ({"x-agent-session-id": ["s"], "x-agent-id": ["a"]}, Owner("s", "a")),
        ({S: [" \ts\t "]}, Owner("s")),
        ({S: ["x" * MAX_ID_BYTES]}, Owner("x" * MAX_ID_BYTES)),
        ({S: ["x" * (MAX_ID_BYTES + 1)]}, None),
        ({S: ["ü"]}, None),
        ({S: ["a\x7f"]}, None),
    ],
)
def test_one_bad_header_spoils_the_identity(headers: dict[str, list[str]], expected: Owner | None) -> None:
    assert owner_of(headers) == expected


def test_agents_of_a_session_are_apart_but_share_it() -> None:
    main, agent = {S: ["S"]}, {S: ["S"], A: ["a1"]}
    assert owner_of(main) != owner_of(agent)
    assert session_of(main) == session_of(agent) == "S"


@rows(
    "user_id, expected",
    [
        (json.dumps({"device_id": "0", "account_uuid": "", "session_id": "S"}), "S"),
        ("user_0_account__session_S", "S"),
        ("user_0_session_", None),
        ("user_0_session_a\nb", None),
        (json.dumps({"session_id": "a\nb"}), None),
        (json.dumps({"session_id": 3}), None),
        ("3", None),
        ("[]", None),
        ("", None),
        ("someone", None),
        ("[" * 2000, None),
        ('{"session_id":"' + "x" * 3000 + '"}', None),
        (None, None),
        ([], None),
    ],
)
def test_the_session_may_stand_in_the_metadata(user_id: Any, expected: str | None) -> None:
    assert session_in_metadata({"user_id": user_id}) == expected


def test_the_header_is_taken_as_it_was_sent() -> None:
    assert session_of({S: [" S "]}) == " S "
    assert session_of({S: [""]}) is session_of({}) is None
    assert session_of({S: ["a", "b"]}) == "a"


@given(json_values)
def test_any_metadata_is_survived(metadata: Any) -> None:
    session_in_metadata(metadata)
    session_in_metadata({"user_id": metadata})


@given(st.dictionaries(st.sampled_from([S, A, P]), st.lists(st.text(max_size=5), max_size=2)))
def test_any_headers_are_survived(headers: dict[str, list[str]]) -> None:
    owner = owner_of(headers)
    if owner is not None:
        for value in (owner.session, owner.agent or "x"):
            assert value.isascii() and value.isprintable() and " " not in value


@rows("messages", [None, 5, {}, {"a": 1}, True, [], [None, 3], [{"role": "user"}], [{"role": 3, "content": 4}]])
def test_an_opening_of_another_form_says_nothing(messages: Any) -> None:
    assert session_of_opening(messages) == session_of_opening([])
    assert session_of_opening(messages) != session_of_opening("hello")


@given(json_values)
def test_no_opening_breaks_the_digest(messages: Any) -> None:
    assert session_of_opening(messages) == session_of_opening(messages)
