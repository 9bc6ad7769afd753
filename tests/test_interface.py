"""Each statement of the interface has a row in the manual, and each row tests that exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "reference" / "interface.md").read_text()

#: The statements of the interface: section, and the ids of its rows. Kept apart from the page, so that one that
#: falls out of the page is missed.
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

#: A reason is some words; one word explains nothing.
VERDICT = re.compile(r"holds|holds: \S.+|differs: \S+( \S+){4,}")
TEST = re.compile(r"(tests/[\w/]+\.py)::(test_\w+)")


@cache
def functions_of(path: str) -> frozenset[str]:
    """The names of the test functions of a file; none of a file that is not there."""
    if not (ROOT / path).is_file():
        return frozenset()
    nodes = ast.walk(ast.parse((ROOT / path).read_text()))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def rows(page: str) -> Iterator[tuple[str, list[str]]]:
    """Section and cells of each row, but for the heads of the tables."""
    section = ""
    for line in page.splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif line.startswith("|") and not line.startswith(("| id |", "|---")):
            yield section, [cell.strip() for cell in line.strip("|").split(" | ")]


def unshown(shown: str) -> Iterator[str]:
    """What is wrong with the last cell of a row."""
    names = re.findall(r"`([^`]*)`", shown)
    if not any(TEST.fullmatch(name) for name in names):
        yield "names no test"
    for name in names:
        found = TEST.fullmatch(name)
        is_vector = name.startswith("tests/vectors/") and name.endswith(".json") and (ROOT / name).is_file()
        if not (is_vector if found is None else found[2] in functions_of(found[1])):
            yield f"names what is not there: {name}"


def problems(page: str) -> list[str]:
    """What is wrong with a page; nothing, if it is whole."""
    expected = [(section, name) for section, names in STATEMENTS for name in names.split()]
    found = list(rows(page))
    told = [f"{row}: not four cells" for _, row in found if len(row) != 4]
    whole = [(section, *row) for section, row in found if len(row) == 4]
    places = [(section, name) for section, name, *_ in whole]
    told += [f"{name}: no row below {section}" for section, name in expected if (section, name) not in places]
    told += [f"{name}: no statement of {section}" for section, name in places if (section, name) not in expected]
    told += [f"{name}: two rows" for name in {name for _, name in places} if sum(name == n for _, n in places) > 1]
    for _, name, says, here, shown in whole:
        told += [] if says else [f"{name}: says nothing"]
        told += [] if VERDICT.fullmatch(here) else [f"{name}: neither holds nor differs for a reason"]
        told += [f"{name}: {fault}" for fault in unshown(shown)]
    return told


def test_every_statement_has_a_row_and_every_row_a_test() -> None:
    assert problems(PAGE) == []


def test_no_two_statements_have_one_name() -> None:
    names = [name for _, names in STATEMENTS for name in names.split()]
    assert len(names) == len(set(names)) > 150


def row(name: str = "healthz", here: str = "holds", shown: str = "") -> str:
    return f"| {name} | x | {here} | {shown or f'`{GOOD}`'} |"


GOOD = "tests/test_interface.py::test_every_statement_has_a_row_and_every_row_a_test"
HEALTH = next(line for line in PAGE.splitlines() if line.startswith("| healthz |"))


@pytest.mark.parametrize(
    ("instead", "told"),
    [
        (row(), []),
        (row(here="holds: as it stands"), []),
        (row(here="differs: this is why it is another way"), []),
        (row(shown=f"`{GOOD}` `tests/vectors/messages_to_responses/no-summary.json`"), []),
        ("", ["healthz: no row below Health and Messages"]),
        (f"## Limits\n{row()}\n## Health and Messages", ["healthz: no row below", "healthz: no statement of Limits"]),
        (f"{row()}\n{row()}", ["healthz: two rows"]),
        (f"{row()}\n{row('invented')}", ["invented: no statement of"]),
        ("| healthz | x | holds |", ["not four cells", "healthz: no row below"]),
        *((row(here=here), ["healthz: neither"]) for here in ("", "differs", "differs: reasons", "differs: ", "maybe")),
        (row(shown="by hand"), ["healthz: names no test"]),
        (row(shown="`tests/vectors/messages_to_responses/no-summary.json`"), ["healthz: names no test"]),
        (row(shown=f"`{GOOD}` `tests/vectors/no/such.json`"), ["not there: tests/vectors/no/such.json"]),
        (row(shown=f"`{GOOD}_not`"), ["not there: tests/test_interface.py::"]),
        (row(shown="`tests/test_nothing.py::test_x`"), ["not there: tests/test_nothing.py::test_x"]),
        (row(shown=f"`{GOOD}[case]`"), ["healthz: names no test", "not there"]),
    ],
)
def test_a_page_that_is_not_whole_is_seen(instead: str, told: list[str]) -> None:
    found = problems(PAGE.replace(HEALTH, instead))
    assert len(found) == len(told)
    assert all(words in problem for problem, words in zip(found, told, strict=True))
