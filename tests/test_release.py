"""What `scripts/release` finds wrong, in which order it looks, and when it tags."""

from __future__ import annotations

import io
import json
import sys
import urllib.error
import zipfile
from collections.abc import Sequence
from email.message import Message
from pathlib import Path

import pytest
from samples import rows

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts" / "lib"))

from release import audit, contents, environments, run, source  # noqa: E402
from release.steps import Failed, Outcome, Skipped, Step, run_command, run_steps, table  # noqa: E402

SETUP = """[metadata]
version = attr: proxy.version.__version__
classifiers =
    Programming Language :: Python :: 3
    Programming Language :: Python :: 3.11
    Programming Language :: Python :: 3.14
[options]
install_requires =
    aiohttp>=3.14,<4
    yarl>=1.17,<2
"""


class Commands:
    """Stands for the commands: answers by their first words, and what was run."""

    def __init__(self, **answers: str) -> None:
        self.answers = answers
        self.ran: list[list[str]] = []

    def __call__(self, command: Sequence[str]) -> str:
        self.ran.append(list(command))
        return next((text for word, text in self.answers.items() if word in command), "")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "proxy").mkdir()
    (tmp_path / "proxy" / "version.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "proxy" / "py.typed").touch()
    (tmp_path / "setup.cfg").write_text(SETUP)
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changes\n\n## 1.2.3 (2026-11-23)\n\n- new\n\n## 1.2.2 (2026-10-01)\n\n- old\n"
    )
    return tmp_path


# -- the steps


def step(name: str, seen: str | Exception) -> Step:
    def check() -> str:
        if isinstance(seen, Exception):
            raise seen
        return seen

    return Step(name, check, f"mend {name}")


def test_every_step_runs_is_timed_and_told_of() -> None:
    times = iter([0.0, 1.5, 2.0, 2.25, 3.0, 3.0, 4.0, 4.0])
    steps = [
        step("one", "fine"),
        step("two", Failed("broken\nin detail")),
        step("three", Skipped("no Python")),
        step("four", FileNotFoundError("git")),
    ]
    told: list[str] = []
    outcomes = run_steps(steps, told.append, lambda: next(times))
    assert [(one.result, one.seconds) for one in outcomes] == [
        ("passed", 1.5),
        ("FAILED", 0.25),
        ("SKIPPED", 0.0),
        ("FAILED", 0.0),
    ]
    assert told[3] == "   FAILED: broken\nin detail"
    rows = table(outcomes).splitlines()
    assert rows[1].split() == ["two", "FAILED", "0.2", "s", "broken"]
    assert rows[-3:] == ["What to do:", "two: mend two", "four: mend four"]


def test_no_cures_where_nothing_failed() -> None:
    assert "What to do" not in table(run_steps([step("one", "fine")], lambda _: None))


def test_a_command_that_fails_is_told_with_its_end() -> None:
    lines = "import sys; print('\\n'.join(map(str, range(100)))); sys.exit(3)"
    with pytest.raises(Failed, match=r"ended with 3\n75\n(.*\n)*99$"):
        run_command([sys.executable, "-c", lines])
    assert run_command([sys.executable, "-c", "print('out')"]) == "out\n"


# -- the source


def test_the_version_stands_in_one_place(tree: Path) -> None:
    assert source.check_version(tree, Commands(tag="v1.2.2\nv0.9.9\nvolatile\n")) == "1.2.3, from proxy/version.py"
    with pytest.raises(Failed, match=r"not above v1\.10\.0"):
        source.check_version(tree, Commands(tag="v1.10.0\nv1.2.2\n"))
    (tree / "setup.cfg").write_text(SETUP.replace("attr: proxy.version.__version__", "1.2.3"))
    with pytest.raises(Failed, match=r"setup.cfg says `version = 1.2.3`"):
        source.check_version(tree, Commands())
    (tree / "proxy" / "version.py").write_text('__version__ = "1.2"\n')
    with pytest.raises(Failed, match="no line such as"):
        source.version(tree)


def test_this_tree_has_its_version_in_one_place() -> None:
    now = source.version(ROOT)
    assert source.check_version(ROOT, Commands()).startswith(now)
    sources = [path for folder in ("proxy", "scripts") for path in (ROOT / folder).rglob("*.py")]
    assert [path.relative_to(ROOT) for path in sources if f'"{now}"' in path.read_text()] == [Path("proxy/version.py")]


def test_the_tree_is_as_committed() -> None:
    assert source.check_tree(Commands(**{"rev-parse": "abc\n"})) == "clean at abc"
    with pytest.raises(Failed, match=r"2 files differ from the commit: a.py, b.py"):
        source.check_tree(Commands(status=" M a.py\n?? b.py\n"))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("## 1.2.4 (2026-11-23)\n\n## 1.2.3 (2026-11-22)\n", "first section is 1.2.4, not 1.2.3"),
        ("", "first section is missing"),
        ("## 1.2.3 (not released)\n", "no day stands behind 1.2.3"),
        ("## 1.2.3 (2026-11-23)\n## 1.2.2 (not released)\n", "no day stands behind 1.2.2"),
    ],
)
def test_the_change_log_is_ready(tree: Path, text: str, fault: str) -> None:
    assert source.check_changelog(tree) == "1.2.3 of 2026-11-23"
    assert source.changes(tree) == "- new"
    (tree / "CHANGELOG.md").write_text(f"# Changes\n\n{text}")
    with pytest.raises(Failed, match=fault):
        source.check_changelog(tree)


def test_a_rehearsal_takes_a_change_log_whose_first_section_is_open(tree: Path) -> None:
    log = tree / "CHANGELOG.md"
    log.write_text("# Changes\n\n## 1.2.3 (not released)\n\n## 1.2.2 (2026-10-01)\n")
    assert source.check_changelog(tree, rehearsal=True) == "1.2.3, open; it gets its day before the tag"
    log.write_text("# Changes\n\n## 1.2.3 (not released)\n\n## 1.2.2 (not released)\n")
    with pytest.raises(Failed, match=r"no day stands behind 1\.2\.3, 1\.2\.2"):
        source.check_changelog(tree, rehearsal=True)


# -- environments


def test_the_lowest_are_the_lower_bounds(tree: Path) -> None:
    assert environments.lowest(tree) == ["aiohttp==3.14", "yarl==1.17"]
    assert environments.minors(tree) == [11, 14]
    (tree / "setup.cfg").write_text(SETUP.replace("yarl>=1.17,<2", "yarl"))
    with pytest.raises(Failed, match="yarl has no bounds"):
        environments.lowest(tree)


def test_all_bounds_of_this_tree_are_found() -> None:
    assert len(environments.lowest(ROOT)) == 4
    assert environments.minors(ROOT) == [11, 12, 13, 14]


def test_a_python_that_is_not_there_is_not_called_tested() -> None:
    assert environments.python_of(11, ["/a/python3.11"]) == "/a/python3.11"
    with pytest.raises(Skipped, match=r"3\.14 is not installed here"):
        environments.python_of(14, ["/a/python3.11", "/a/python3.1"])


def test_an_environment_is_made_once_and_brought_up_to_date_each_time(tree: Path, tmp_path: Path) -> None:
    commands = Commands()

    def make() -> Path:
        inside = environments.environment(tree, tmp_path / "cache", "/a/python3.11", ["yarl==1.17"], commands)
        return Path(inside).parents[1]

    folder = make()
    assert folder.name.startswith("python3.11-")
    assert [words[1:3] for words in commands.ran] == [["-m", "venv"], ["-m", "pip"], ["-m", "pip"]]
    assert "yarl==1.17" in commands.ran[1] and f"{tree}[dev]" in commands.ran[1]
    commands.ran.clear()
    assert make() == folder
    assert [words[-1] for words in commands.ran] == ["yarl==1.17", "check"]


def test_every_case_of_the_tests_runs_and_one_that_fails_fails_the_step(tree: Path, tmp_path: Path) -> None:
    ran: list[list[str]] = []
    outcomes = iter(["12 passed", Failed("ended with 1")])

    def run(command: Sequence[str]) -> str:
        if "pytest" not in command:
            return "aiohttp 3.14\nyarl 1.17" if "-c" in command else ""
        ran.append([*command])
        if isinstance(outcome := next(outcomes), Failed):
            raise outcome
        return outcome

    def tested() -> str:
        return environments.tested(tree, tmp_path / "cache", "/a/python3.11", ["yarl==1.17"], ["tests"], run)

    assert tested() == "aiohttp 3.14, yarl 1.17: 12 passed"
    with pytest.raises(Failed, match="ended with 1"):
        tested()
    assert [command[-2:] for command in ran] == [["--all", "tests"]] * 2


def test_what_is_installed_is_followed_to_its_ends() -> None:
    found = environments.installed(ROOT, sys.executable, run_command)
    assert {"aiohttp", "multidict", "tiktoken", "yarl", "frozenlist", "regex"} <= found.keys()
    assert not {"pytest", "mypy", "model-proxy"} & found.keys()


# -- vulnerabilities


def page(*found: dict[str, object]) -> bytes:
    return json.dumps({"vulnerabilities": found}).encode()


def test_known_vulnerabilities_are_named() -> None:
    pages = {
        audit.URL.format(name="a", version="1"): page({"id": "X-1", "fixed_in": ["1.1"]}, {"id": "X-2"}),
        audit.URL.format(name="b", version="2"): page({"id": "X-3", "withdrawn": "2026-01-01"}),
    }
    with pytest.raises(Failed) as caught:
        audit.audited({"a": "1", "b": "2"}, pages.__getitem__)
    assert str(caught.value).splitlines()[1:] == ["a 1: X-1, mended in 1.1", "a 1: X-2, mended in nothing yet"]
    assert audit.audited({"b": "2"}, pages.__getitem__) == "nothing known of 1 packages"


@rows(
    "answer, why",
    [
        (urllib.error.HTTPError("u", 404, "", Message(), io.BytesIO()), "answers 404"),
        (urllib.error.URLError("no route"), "URLError"),
        (b"<html>", "JSONDecodeError"),
        (b"{}", "KeyError"),
        (b"[]", "TypeError"),
    ],
)
def test_an_index_that_does_not_say_is_no_good_news(answer: bytes | Exception, why: str) -> None:
    def get(_url: str) -> bytes:
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(Failed, match=f"NOT CHECKED: .* {why}; nothing is known"):
        audit.audited({"a": "1"}, get)


# -- contents

METADATA = "Name: model-proxy\nVersion: 1.2.3\nSummary: s\nLicense: MIT\nRequires-Python: >=3.11\n\ntext"
INFO = "model_proxy-1.2.3.dist-info"


def wheel_of(folder: Path, *, without: str = "", **more: str) -> Path:
    files = {
        **dict.fromkeys((*contents.NEEDED, "proxy/data/o.gz", "proxy/p.html", "proxy/p.css"), ""),
        **{f"{INFO}/{name}": "" for name in ("RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")},
        f"{INFO}/METADATA": METADATA,
        **more,
    }
    path = folder / "w.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            if name != without:
                archive.writestr(name, text)
    return path


def test_a_whole_wheel_is_fine(tree: Path) -> None:
    assert contents.check_wheel(tree, wheel_of(tree)) == "w.whl: 11 files, 0.0 MB"


@pytest.mark.parametrize(
    ("without", "more", "fault"),
    [
        ("proxy/py.typed", {}, "lacks proxy/py.typed"),
        ("proxy/data/o.gz", {}, r"ends in \.gz"),
        (f"{INFO}/licenses/LICENSE", {}, "ends in /LICENSE"),
        ("", {"tests/test_a.py": ""}, "has tests/test_a.py"),
        ("", {"proxy/__pycache__/a.pyc": ""}, "has proxy/__pycache__"),
        ("", {"other.py": ""}, "has other.py"),
        ("", {f"{INFO}/METADATA": METADATA.replace("1.2.3", "1.2.2")}, "says version 1.2.2"),
        ("", {f"{INFO}/METADATA": METADATA.replace("License: MIT\n", "")}, "lacks License"),
    ],
)
def test_what_is_wrong_with_a_wheel_is_named(tree: Path, without: str, more: dict[str, str], fault: str) -> None:
    with pytest.raises(Failed, match=fault):
        contents.check_wheel(tree, wheel_of(tree, without=without, **more))


def test_a_module_that_is_not_in_the_wheel_is_named(tree: Path) -> None:
    (tree / "proxy" / "new.py").touch()
    with pytest.raises(Failed, match=r"lacks proxy/new\.py"):
        contents.check_wheel(tree, wheel_of(tree))


@pytest.mark.parametrize(
    ("copied", "fault"),
    [
        ("COPY a.lock dist/*.whl ./", ""),
        ("COPY --chown=1:1 ./more/ /p\nCOPY --from=build /x /y", ""),
        ("COPY . .", "copies the whole folder"),
        ("ADD secret.env /", "copies secret.env, which git does not have"),
        ("COPY \\\n  tests /t", "copies tests/a.py"),
        ("COPY setup.cfg /", "copies setup.cfg, which git does not have"),
        ("RUN true", "copies nothing"),
    ],
)
def test_a_container_is_built_from_what_is_meant(tree: Path, copied: str, fault: str) -> None:
    commands = Commands(
        **{
            "ls-files": "setup.cfg\n"
            + "".join(f"scripts/container/{name}\n" for name in ("a.lock", "more/a", "tests/a.py"))
        }
    )
    with pytest.raises(Skipped, match="there is no scripts/container/Dockerfile"):
        contents.check_container(tree, commands)
    (tree / "scripts" / "container").mkdir(parents=True)
    (tree / contents.DOCKERFILE).write_text(f"FROM base\n{copied}\n")
    if fault:
        with pytest.raises(Failed, match=fault):
            contents.check_container(tree, commands)
    else:
        assert "files: " in contents.check_container(tree, commands)


# -- the whole


def outcomes(*results: str) -> list[Outcome]:
    return [Outcome(step(str(number), ""), result, 0.0, "") for number, result in enumerate(results)]


@rows(
    "results, dry_run, reason",
    [
        (("passed", "SKIPPED"), False, ""),
        (("passed", "passed"), True, "no tag: --dry-run"),
        (("passed",), False, "no tag: not all steps ran"),
        (("passed", "FAILED"), True, "no tag: 1 failed"),
    ],
)
def test_a_tag_needs_all_steps(results: tuple[str, ...], dry_run: bool, reason: str) -> None:
    assert run.verdict(outcomes(*results), 2, dry_run) == reason


def test_steps_are_selected_by_name_in_their_own_order(tree: Path) -> None:
    steps = run.Release(tree, tree, Commands(), [], tree).steps()
    names = [
        "tree",
        "version",
        "changelog",
        "lint",
        "lowest",
        "python3.11",
        "python3.14",
        "audit",
        "wheel",
        "container",
    ]
    assert [one.name for one in steps] == names
    assert all(one.advice for one in steps) and run.ADVICE.keys() < {*names}
    assert [one.name for one in run.selected(steps, ["wheel", "tree"], [])] == ["tree", "wheel"]
    assert len(run.selected(steps, [], ["wheel"])) == len(steps) - 1
    with pytest.raises(SystemExit, match="no such step: wheels; there are tree,"):
        run.selected(steps, ["wheels"], [])


def test_selected_steps_never_tag(capsys: pytest.CaptureFixture[str]) -> None:
    commands = Commands(**{"rev-parse": "abc"})
    assert run.main(["--only", "tree", "version", "--without-audit"], commands) == 0
    out = capsys.readouterr().out
    assert "vulnerabilities are NOT checked" in out
    assert f"no tag: not all steps ran: v{source.version(ROOT)}" in out
    assert not [words for words in commands.ran if "--annotate" in words]
