"""The policy that a client tells: any part of it may be missing or something else."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from samples import rows

from core.strategies import json_values
from proxy.core.auto_mode.policy import MAX_FOLDERS, MAX_RULE, Policy, Rule, policy_of


def read(**context: Any) -> Policy:
    found = policy_of([{"type": "other"}, {"type": "dangerous_tool_use", "classifier_context": context}])
    assert found is not None
    return found


@rows("safeguards", [None, [], {}, "dangerous_tool_use", [None], [{"type": "other"}], [{}]])
def test_nobody_asks_for_verdicts(safeguards: Any) -> None:
    assert policy_of(safeguards) is None


@rows("context", [None, [], "x", 7, {"rules": [], "auto_mode": "x", "git_state": None}])
def test_without_a_policy_that_can_be_read_there_is_an_empty_one(context: Any) -> None:
    found = policy_of([{"type": "dangerous_tool_use", "classifier_context": context}])
    assert found is not None and (found.deny, found.allow, found.home, found.only) == ((), (), "", None)


def test_rules_are_objects_or_texts_and_may_have_a_second_form() -> None:
    rules = [{"rule": "Bash", "root": "/x"}, "Read", {"rule": "Edit(a)", "canonical": "Edit(/x/a)"}, 7, {}, {"rule": 1}]
    assert read(rules={"deny": rules}).deny == (
        Rule("Bash", "/x"),
        Rule("Read"),
        Rule("Edit(a)"),
        Rule("Edit(/x/a)"),
    )
    assert read(rules={"deny": ["x" * (MAX_RULE + 1), " "]}).deny == ()


@rows(
    "home, folder",
    [
        ("/home/me", "/home/me"),
        ("/home/me/", "/home/me"),
        ("//home//me", "/home/me"),
        ("/", "/"),
        ("C:\\Users\\me\\", "C:/Users/me"),
        (None, ""),
        (["/x"], ""),
    ],
)
def test_folders_have_one_form(home: Any, folder: str) -> None:
    assert read(home_dir=home, live_cwd=home).home == folder == read(live_cwd=home).cwd


@rows(
    "directories, folders",
    [
        (
            {"primary": {"path": "/a/", "resolved": ["/r"]}, "additional": [{"path": "/b"}, "/c", {"path": 7}, None]},
            "abc",
        ),
        ({"primary": {"path": "/a"}, "additional": [{"path": "/a"}]}, "a"),
        ({"primary": None, "additional": "x"}, ""),
        ({"additional": [*["/a"] * MAX_FOLDERS, "/b"]}, "a"),
        (None, ""),
        (["/x"], ""),
    ],
)
def test_the_folders_of_the_user_are_those_it_began_in_and_added(directories: Any, folders: str) -> None:
    assert read(trusted_directories=directories).trusted == tuple(f"/{name}" for name in folders)


@given(json_values)
def test_anything_is_read(context: Any) -> None:
    assert isinstance(policy_of([{"type": "dangerous_tool_use", "classifier_context": context}]), Policy)
