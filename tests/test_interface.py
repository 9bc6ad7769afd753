"""Each statement of the interface names tests that show it, and the manual has each difference."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypedDict

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "reference" / "interface.md").read_text()


class Row(TypedDict):
    """A statement: what the interface says, whether it `holds` here or `differs`, and what shows it.

    A vector in `shown_by` is the case that the test before it runs for this statement.
    """

    section: str
    id: str
    says: str
    here: str
    shown_by: list[str]


ROWS: list[Row] = json.loads(Path(__file__).with_name("interface_rows.json").read_text())

#: The statements of the interface: section, and the ids of its rows. Kept apart from the rows, so that a lost row
#: is missed.
STATEMENTS: tuple[tuple[str, str], ...] = (
    (
        "Purpose",
        "two-families one-upstream translates-content translates-thinking translates-tools translates-images "
        "translates-output translates-metadata translates-streaming helpers no-administration monitor logs "
        "captures captures-sensitive captures-images captures-made-images",
    ),
    ("Routing", "suffix-1m aliases explicit-id suffix-fast p5-forms p5-generic unknown-model unknown-model-openai"),
    (
        "Switches",
        "two-places switch-openai switch-images switch-transcriptions switch-bind switch-compact-effort "
        "switch-reviewer switch-summary switch-tier switch-base-url switch-compaction switch-p3-images "
        "switch-captures switch-config-dir switch-p1-forced outgoing-proxies",
    ),
    (
        "Objects",
        "model-entry model-list model-list-whole no-cursor count-object health-object chat-object chat-chunks "
        "chat-citations chat-members image-fields image-model image-refused image-answer edit-json edit-form "
        "messages-members no-lifecycle incomplete",
    ),
    (
        "Health and Messages",
        "json-bodies healthz messages-beta messages-request messages-serial messages-provider messages-json "
        "messages-accumulated messages-sse messages-no-auth",
    ),
    ("Token counts", "count-request count-estimate count-p1 count-p1-texts count-heuristic count-p5"),
    ("Models", "models-limit models-live"),
    (
        "Chat",
        "chat-exists chat-providers chat-bearer chat-roles chat-content chat-tools chat-limits chat-effort "
        "chat-streams p3-efforts p3-hardest p1-chat-fields p1-chat-effort p1-chat-refused p5-bridge "
        "unsupported-field",
    ),
    (
        "Responses",
        "responses-exists responses-native responses-native-parallel responses-input responses-tools "
        "responses-limit responses-effort responses-streams responses-echo responses-search responses-cut "
        "responses-store responses-unsupported responses-stored responses-websocket key-names",
    ),
    (
        "Parallel tool calls",
        "parallel-optional parallel-meaning parallel-wrong parallel-choices parallel-hub parallel-upstream parallel-p5",
    ),
    ("Sessions", "session-headers session-p5 session-affinity"),
    (
        "Images and audio",
        "images-exist images-session images-upstream edits-both edits-signatures edits-adapter edits-refused "
        "transcriptions transcriptions-shape",
    ),
    ("Other paths", "unmatched further-paths"),
    (
        "Sign-in",
        "sign-in-forms sign-in-headless sign-in-own refresh-shared p5-isolated media-sign-in "
        "no-credential-api caller-auth",
    ),
    (
        "Streams",
        "stream-chat-usage stream-native stream-thoughts stream-usage keepalive responses-events no-notifications",
    ),
    (
        "Errors",
        "error-model error-no-auth error-field error-parallel error-p1-parallel error-store error-images "
        "error-p5-tools error-form error-retry-after error-bad-stream error-unmatched error-p1-status "
        "error-transport error-429 error-empty error-truncated error-context",
    ),
    (
        "Limits",
        "limit-n limit-files limit-image-model limit-models limit-p1-effort limit-compaction limit-p3-efforts "
        "bound-media bound-p1 bound-requests",
    ),
    (
        "Versions",
        "prefix version-form 0.0.2 0.0.6 0.0.8-retry 0.0.8-file 0.0.8-headers 0.0.10 0.0.15 0.0.17 0.1.17 "
        "0.1.22 0.1.24 0.1.26 0.1.28 0.1.30 0.1.31 0.1.34 live-catalogue",
    ),
)

#: A row of the manual's table of differences. A reason is some words; one word explains nothing.
DIFFERENCE = re.compile(r"^\| (.+?) \| (\S+(?: \S+){4,}) \|$", re.MULTILINE)
TEST = re.compile(r"(tests/[\w/]+\.py)::(test_\w+)")


@cache
def functions_of(path: str) -> frozenset[str]:
    """The names of a file's test functions; empty if the file does not exist."""
    if not (ROOT / path).is_file():
        return frozenset()
    nodes = ast.walk(ast.parse((ROOT / path).read_text()))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def unshown(names: list[str]) -> Iterator[str]:
    """What is wrong with the tests that a row names."""
    if not any(TEST.fullmatch(name) for name in names):
        yield "names no test"
    for name in names:
        found = TEST.fullmatch(name)
        is_vector = name.startswith("tests/vectors/") and name.endswith(".json") and (ROOT / name).is_file()
        if not (is_vector if found is None else found[2] in functions_of(found[1])):
            yield f"names what is not there: {name}"


def problems(rows: list[Row]) -> list[str]:
    """What is wrong with the rows."""
    expected = [(section, name) for section, names in STATEMENTS for name in names.split()]
    places = [(row["section"], row["id"]) for row in rows]
    found = [f"{name}: no row in {section}" for section, name in expected if (section, name) not in places]
    found += [f"{name}: no statement of {section}" for section, name in places if (section, name) not in expected]
    found += [f"{name}: two rows" for name in {name for _, name in places} if sum(name == n for _, n in places) > 1]
    for row in rows:
        found += [] if row["says"] else [f"{row['id']}: says nothing"]
        found += [] if row["here"] in ("holds", "differs") else [f"{row['id']}: neither holds nor differs"]
        found += [f"{row['id']}: {fault}" for fault in unshown(row["shown_by"])]
    return found


def test_every_statement_has_a_row_and_every_row_a_test() -> None:
    assert problems(ROWS) == []


def test_no_two_statements_have_one_name() -> None:
    names = [name for _, names in STATEMENTS for name in names.split()]
    assert len(names) == len(set(names)) > 150


def test_the_manual_has_each_difference_and_its_reason() -> None:
    table = PAGE.partition("## What differs, and why")[2]
    explained = [found[1] for found in DIFFERENCE.finditer(table) if found[1] != "the rule"]
    assert sorted(explained) == sorted(row["says"] for row in ROWS if row["here"] == "differs")


def row(name: str = "healthz", here: str = "holds", shown: str = "", *, section: str = "Health and Messages") -> Row:
    return Row(section=section, id=name, says="x", here=here, shown_by=shown.split() or [GOOD])


GOOD = "tests/test_interface.py::test_every_statement_has_a_row_and_every_row_a_test"
VECTOR = "tests/vectors/messages_to_responses/no-summary.json"


@pytest.mark.parametrize(
    ("instead", "expected"),
    [
        ([row()], []),
        ([row(here="differs")], []),
        ([row(shown=f"{GOOD} {VECTOR}")], []),
        ([], ["healthz: no row in Health and Messages"]),
        ([row(section="Limits")], ["healthz: no row in", "healthz: no statement of Limits"]),
        ([row(), row()], ["healthz: two rows"]),
        ([row(), row("invented")], ["invented: no statement of"]),
        *(([row(here=here)], ["healthz: neither"]) for here in ("", "maybe")),
        ([row(shown="by hand")], ["healthz: names no test", "not there: by", "not there: hand"]),
        ([row(shown=VECTOR)], ["healthz: names no test"]),
        ([row(shown=f"{GOOD} tests/vectors/no/such.json")], ["not there: tests/vectors/no/such.json"]),
        ([row(shown=f"{GOOD}_not")], ["not there: tests/test_interface.py::"]),
        ([row(shown="tests/test_nothing.py::test_x")], ["not there: tests/test_nothing.py::test_x"]),
        ([row(shown=f"{GOOD}[case]")], ["healthz: names no test", "not there"]),
    ],
)
def test_a_fault_of_the_rows_is_seen(instead: list[Row], expected: list[str]) -> None:
    found = problems([other for other in ROWS if other["id"] != "healthz"] + instead)
    assert len(found) == len(expected)
    assert all(words in problem for problem, words in zip(found, expected, strict=True))
