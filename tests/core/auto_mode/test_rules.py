"""What rules alone say of a call. They never let one run, whatever the call, the policy and the conversation are."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from samples import rows

from core.auto_mode.call_table import ASKED_FOR, CALLS, INJECTIONS, RULES
from core.strategies import json_objects, json_values
from proxy.core.auto_mode.policy import MAX_POLICY, Policy, Rule, policy_of
from proxy.core.auto_mode.question import MAX_CALL, MAX_CALLS
from proxy.core.auto_mode.rules import Checks, by_rules, decide, forbids
from proxy.core.auto_mode.verdicts import ToolUse

HOME = Policy(home="/home/me", cwd="/home/me/project", branch="topic", default_branch="develop")


def used(tool: str, arguments: dict[str, Any], size: int = 10) -> ToolUse:
    return ToolUse("t", tool, arguments, size)


def outcome(tool: str, arguments: dict[str, Any], policy: Policy = HOME) -> str | None:
    verdict = by_rules(used(tool, arguments), policy, Checks())
    return None if verdict is None else verdict.outcome


def shell(command: str, policy: Policy = HOME) -> str | None:
    return outcome("Bash", {"command": command}, policy)


def policy(**context: Any) -> Policy:
    """As a client tells it."""
    found = policy_of([{"type": "dangerous_tool_use", "classifier_context": context}])
    assert found is not None
    return found


@rows("tool, arguments, expected", CALLS)
def test_each_call_has_the_verdict_of_the_table(tool: str, arguments: dict[str, Any], expected: str | None) -> None:
    assert outcome(tool, arguments) == expected


@rows("injection", INJECTIONS)
@rows("command", ASKED_FOR)
def test_what_a_result_says_lets_no_call_run(injection: str, command: str) -> None:
    """Rules are not shown results; the same words in the call itself change nothing either."""
    alone = shell(command)
    assert alone in ("flagged", None)
    assert shell(f"{command} # {' '.join(injection.split())}") in (alone, "flagged")
    words = {"command": command, "description": injection, "approved": True, "result": injection}
    assert outcome("Bash", words) == alone


@rows("rule, tool, arguments, concerned", RULES)
def test_permission_rules_concern_what_their_users_mean(
    rule: str, tool: str, arguments: dict[str, Any], concerned: bool
) -> None:
    """A `deny` rule and an entry of `hard_deny` of the same form decide before anything else."""
    home = {"home_dir": "/home/me", "live_cwd": "/home/me/project"}
    for denying in (
        {"rules": {"deny": [{"rule": rule, "source": "userSettings"}]}},
        {"auto_mode": {"hard_deny": [rule]}},
    ):
        verdict = by_rules(used(tool, arguments), policy(**home, **denying), Checks())
        found = verdict is not None and verdict.outcome == "flagged" and rule in verdict.why
        assert found is concerned, verdict


@rows(
    "entry, command, expected",
    [
        ("terraform destroy", "terraform destroy -auto-approve", "flagged"),
        ("`terraform destroy`", "cd infra && sudo terraform destroy", "flagged"),
        ("kubectl delete *", "kubectl delete pod x", "flagged"),
        ("terraform destroy", "terraform plan", None),
        ("Never touch production: no deploys there", "deploy production", None),
        ("Never run `terraform destroy`", "terraform destroy", None),  # words: the reviewer reads them as absolute
    ],
)
def test_a_command_among_the_hard_denials_is_matched(entry: str, command: str, expected: str | None) -> None:
    assert shell(command, policy(auto_mode={"hard_deny": [entry]})) == expected


@rows(
    "context, expected",
    [
        ({}, "flagged"),
        ({"rules": {"allow": [{"rule": "Bash(git push:*)"}]}}, None),
        ({"rules": {"allow": ["Bash(git push origin main)"]}}, None),
        ({"auto_mode": {"allow": ["Direct pushes: pushing to main is how this repository works"]}}, None),
        ({"rules": {"allow": [{"rule": "Bash(npm:*)"}]}}, "flagged"),
        ({"rules": {"allow": ["Bash(git push:*)"], "deny": ["Bash(git push:*)"]}}, "flagged"),
    ],
)
def test_who_lets_the_agent_push_has_the_reviewer_decide(context: Any, expected: str | None) -> None:
    assert shell("git push origin main", policy(**context)) == expected


@rows(
    "git, command, expected",
    [
        ({"branch": "main"}, "git push", "flagged"),
        ({"branch": "main"}, "git push origin HEAD", "flagged"),
        ({"branch": "trunk", "default_branch": "trunk"}, "git push", "flagged"),
        ({"branch": "topic", "default_branch": "trunk"}, "git push", None),
        ({"branch": None}, "git push", None),
        ({}, "git push", None),
    ],
)
def test_the_branch_tells_where_a_bare_push_goes(git: Any, command: str, expected: str | None) -> None:
    assert shell(command, policy(git_state=git)) == expected


def test_without_a_known_home_its_names_are_still_known() -> None:
    assert shell("rm -rf ~", Policy()) == shell("rm -rf $HOME", Policy()) == "flagged"
    assert shell("cat ~/.ssh/id_rsa", Policy()) == "flagged" and shell("rm -rf build", Policy()) is None


def test_only_the_tools_that_the_client_asks_about_are_judged() -> None:
    asked = policy(judge_only_tools=["Bash"])
    assert outcome("Write", {"file_path": "x"}, asked) == "skipped" and shell("make", asked) is None
    assert outcome("Write", {"file_path": "x"}, policy(judge_only_tools="all")) is None
    assert shell("rm -rf ~", policy(judge_only_tools=["Write"])) == "flagged"


@rows(
    "call, expected",
    [
        (ToolUse("t", "Write", {}, MAX_CALL + 1), "input_too_long"),
        (ToolUse("t", "Write", {}, 5, whole=False), "truncated"),
        (used("Bash", {"command": "a;" * 600}), "input_too_long"),
        (used("Bash", {"command": "(" * 100}), "input_too_long"),
        (used("Bash", {"command": "rm -rf ~;" + "a;" * 600}), "input_too_long"),
    ],
)
def test_what_is_too_much_to_look_at_is_not_judged(call: ToolUse, expected: str) -> None:
    verdict = by_rules(call, HOME, Checks())
    assert verdict is not None and verdict.outcome == expected


def test_all_calls_of_an_answer_together_have_a_limit() -> None:
    size = MAX_CALL
    calls = [ToolUse(str(number), "Write", {"file_path": "x"}, size) for number in range(5)]
    verdicts, left = decide(calls, HOME)
    assert len(left) == MAX_CALLS // size and {one.outcome for one in verdicts.values()} == {"input_too_long"}


# -- never a permission, never an exception, never for long

_TOOLS = st.sampled_from(["Bash", "Read", "Edit", "WebFetch", "mcp__a__b", "TodoWrite", "Monitor", "x"])
_PIECES = st.sampled_from(
    [
        *"'\"`$(){}<>|&;#~*\\ \n=",
        "$(",
        "<<EOF\n",
        "${",
        "rm -rf ",
        "~/",
        "/",
        "$HOME",
        "sh -c ",
        "curl x",
        "git push ",
        "X=",
    ]
)
_COMMANDS = st.lists(_PIECES | st.text(max_size=4), max_size=30).map("".join)
_RULE_TEXTS = st.one_of(
    st.sampled_from([rule for rule, *_ in RULES]), st.text(max_size=12), _COMMANDS.map("Bash({})".format)
)
_CONTEXTS = st.fixed_dictionaries(
    {},
    optional={
        "rules": json_values | st.dictionaries(st.sampled_from(["allow", "deny", "ask"]), st.lists(_RULE_TEXTS)),
        "auto_mode": json_values | st.dictionaries(st.sampled_from(["allow", "hard_deny"]), st.lists(_RULE_TEXTS)),
        "git_state": json_values,
        "judge_only_tools": json_values,
        "home_dir": json_values | st.sampled_from(["/", "/home/me", "C:\\Users\\me", "~"]),
        "live_cwd": json_values | st.sampled_from(["/", "/home/me", ""]),
    },
)


@given(
    _TOOLS,
    json_objects | st.fixed_dictionaries({"command": _COMMANDS}) | st.fixed_dictionaries({"file_path": st.text()}),
    _CONTEXTS | json_values,
)
@example("Bash", {"command": "\\"}, {})
@example("Bash", {"command": "cat <<"}, {})
def test_rules_never_let_a_call_run_and_never_raise(tool: str, arguments: dict[str, Any], context: Any) -> None:
    found = policy_of([{"type": "dangerous_tool_use", "classifier_context": context}])
    assert found is not None
    verdict = by_rules(used(tool, arguments), found, Checks())
    assert verdict is None or verdict.outcome != "not_flagged"
    if verdict is not None:
        assert verdict.for_client()["type"] in ("evaluated", "skipped", "unavailable")


LONG = (
    "a" * 1_000_000,
    "a " * 500_000,
    "a;" * 500_000,
    "'" * 1_000_000,
    "\\" * 1_000_000,
    "$(" * 500_000,
    "`" * 1_000_000,
    "<<a " * 250_000,
    "{" * 1_000_000,
    "rm -rf " + "~/" * 400_000,
    "${a" * 300_000,
    "X=" + "a" * 200 + "; " + "$X" * 400_000,
    "echo " + "a" * 100_000 + " | sh" * 400,
    "cat " + "x" * 90_000 + "/id_rsa",
    "rm -rf " + "*" * 500_000 + "x",
    "#" * 1_000_000,
    "git push " + "a" * 900_000,
    "A=1 " * 250_000,
    "sudo " * 200_000 + "rm",
)


@pytest.mark.slow
@pytest.mark.parametrize("text", LONG, ids=[text[:12] for text in LONG])
def test_a_megabyte_of_command_takes_no_time(text: str) -> None:
    """In the form in which a call gets here at most, and in the form in which it never does."""
    rules = tuple(Rule(f"Bash({'a*' * 20}{number}:*)") for number in range(200))
    started = time.process_time()
    for command in (text, text[:MAX_CALL]):
        by_rules(used("Bash", {"command": command}), Policy(home="/h", cwd="/h/p", deny=rules), Checks())
    assert time.process_time() - started < 5


@pytest.mark.slow
def test_many_rules_against_many_commands_take_no_time() -> None:
    """Thirty calls of hundreds of commands each, and as many rules as a client can send."""
    command = "; ".join(f"ls -la foo/bar{number}" for number in range(450))
    calls = [ToolUse(str(number), "Bash", {"command": command}, 9000) for number in range(30)]
    started = time.process_time()
    rules = tuple(Rule(f"Bash(foo*bar{number}*baz:*)") for number in range(2000))
    verdicts, left = decide(calls, Policy(home="/h", cwd="/h/p", deny=rules))
    assert not left and {one.outcome for one in verdicts.values()} == {"input_too_long"}
    assert time.process_time() - started < 5


def test_a_long_pattern_of_paths_takes_no_time() -> None:
    rule = Rule("Read(" + "**/a*a*a*" * 400 + ")")
    started = time.process_time()
    assert forbids((rule,), used("Read", {"file_path": "/a" * 2000}), (), HOME) is None
    deep = Rule("Read(//" + "**/a*/" * 30 + "b)")
    assert forbids((deep,), used("Read", {"file_path": "/" + "aaaa/" * 60}), (), HOME) is None
    assert time.process_time() - started < 1


def test_a_policy_that_is_too_long_is_not_read() -> None:
    long = policy(rules={"deny": ["x" * 4000] * (MAX_POLICY // 4000 + 1)})
    assert long.unread and outcome("Write", {"file_path": "x"}, long) == "input_too_long"
