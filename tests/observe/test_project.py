from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from proxy.observe.project import MAX_PATH, MAX_SCANNED, find_working_directory, project_name


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


class TestFindWorkingDirectory:
    @pytest.mark.parametrize(
        ("line", "path"),
        [
            *((f"{words}/x/example", "/x/example") for words in ("Working directory: ", "Primary working directory: ")),
            *(("Current working directory:/x", "/x"), ("  -  Working directory:  /a b/c  \r", "/a b/c")),
            *(("<cwd>/x/example</cwd>", "/x/example"), ("  <env><cwd> /a b </cwd></env>", "/a b")),
            ("Working directory: C:\\projects\\example", "C:\\projects\\example"),
            *((f"{words}orking directory: /x", None) for words in ("The W", "w", "* W", "Additional w")),
            *((f"Working directory:{path}", None) for path in ("", "   ", " " + "x" * (MAX_PATH + 1))),
            *((f"<cwd>{path}</cwd>", None) for path in ("", "/a\n/b", "x" * MAX_PATH)),
            ("<cwd>/a", None),
        ],
    )
    def test_lines(self, line: str, path: str | None) -> None:
        assert find_working_directory({"system": line}) == path
        assert find_working_directory({"system": f"before\n{line}\nafter"}) == path

    @pytest.mark.parametrize(
        "content",
        [
            "Working directory: /x",
            ["Working directory: /x"],
            {"text": "Working directory: /x"},
            [{"type": "text", "text": "Working directory: /x"}],
            [{"type": "image"}, 7, None, {"type": "tool_result", "content": "Working directory: /x"}],
            [{"type": "tool_result", "content": [{"type": "text", "text": "a\nWorking directory: /x"}]}],
        ],
    )
    def test_shapes(self, content: Any) -> None:
        assert find_working_directory({"system": content}) == "/x"
        assert (
            find_working_directory({"instructions": "Be kind.", "input": [{"role": "user", "content": content}]})
            == "/x"
        )
        assert find_working_directory({"messages": [user(content)]}) == "/x"

    def test_system_comes_first(self) -> None:
        messages = [user("Working directory: /message")]
        assert find_working_directory({"system": "Working directory: /system", "messages": messages}) == "/system"

    def test_the_newest_message_comes_first(self) -> None:
        messages = [user("Working directory: /old"), user("<cwd>/new</cwd>"), user("hello")]
        assert find_working_directory({"system": [], "messages": messages}) == "/new"

    def test_the_first_line_of_a_text(self) -> None:
        text = "Working directory:\nWorking directory: /a\n<cwd>/b</cwd>\nWorking directory: /c"
        assert find_working_directory({"system": text}) == "/a"
        assert find_working_directory({"system": "<cwd>/b</cwd>\n" + text}) == "/b"

    @pytest.mark.parametrize("request_", [{}, {"system": 1, "messages": 2}, {"messages": [None, 3, []]}])
    def test_unexpected_shapes(self, request_: dict[str, Any]) -> None:
        assert find_working_directory(request_) is None

    def test_no_more_than_the_limit_is_searched(self) -> None:
        line = "\nWorking directory: /x"
        assert find_working_directory({"system": "y" * 1_000 + line}) == "/x"
        assert find_working_directory({"system": "y" * MAX_SCANNED + line}) is None
        assert find_working_directory({"system": ["y" * MAX_SCANNED, line]}) is None

    def test_endless_nesting(self) -> None:
        content: list[Any] = []
        content.append({"content": content})
        assert find_working_directory({"messages": [user(content)]}) is None

    @pytest.mark.parametrize(
        "text",
        ["x Working directory: " * 40_000, "<cwd>" * 150_000, "Working directory:\n" * 40_000, ["", {}] * 200_000],
    )
    def test_time_is_bounded(self, text: Any) -> None:
        start = time.process_time()
        assert find_working_directory({"system": text}) is None
        assert time.process_time() - start < 1.0


class TestProjectName:
    @pytest.mark.parametrize(
        ("path", "name"),
        [
            *((path, "example") for path in ("/projects/example", "/projects/example/", "example", "~/example")),
            *((path, "example") for path in ("C:\\projects\\example", "C:/projects/example", "//host/share/example")),
            *(("\\\\host\\share\\example", "example"), ("/", None), ("", None)),
            ("/projects/ex\x1b[2Jample", "ex?[2Jample"),
            ("/projects/a\0b", "a?b"),
            ("/projects/" + "x" * 300, "x" * 255),
        ],
    )
    def test_without_a_repository_the_last_component(self, path: str, name: str | None) -> None:
        assert project_name(path) == name

    def test_the_nearest_repository(self, tmp_path: Path) -> None:
        (tmp_path / "outer" / ".git").mkdir(parents=True)
        (tmp_path / "outer" / "inner" / ".git").mkdir(parents=True)
        assert project_name(str(tmp_path / "outer" / "src" / "deep")) == "outer"
        assert project_name(str(tmp_path / "outer" / "inner" / "src")) == "inner"
        assert project_name(str(tmp_path / "outer")) == "outer"

    @pytest.mark.parametrize("gitdir", ["{root}/main/.git/worktrees/branch", "../main/.git/worktrees/branch"])
    def test_a_linked_worktree_is_its_main_repository(self, tmp_path: Path, gitdir: str) -> None:
        (tmp_path / "main" / ".git" / "worktrees" / "branch").mkdir(parents=True)
        (tmp_path / "branch" / "src").mkdir(parents=True)
        (tmp_path / "branch" / ".git").write_text(f"gitdir: {gitdir.format(root=tmp_path)}\n")
        assert project_name(str(tmp_path / "branch" / "src")) == "main"

    def test_the_target_need_not_exist(self, tmp_path: Path) -> None:
        (tmp_path / ".git").write_text("gitdir: /elsewhere/main/.git/worktrees/branch")
        assert project_name(str(tmp_path)) == "main"

    @pytest.mark.parametrize("text", ["", "nonsense", "gitdir: /bare/repo", "gitdir: /.git/x", "\xff\x00"])
    def test_a_git_file_that_leads_nowhere(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "work").mkdir()
        (tmp_path / "work" / ".git").write_text(text)
        assert project_name(str(tmp_path / "work" / "src")) == "work"

    @pytest.mark.parametrize("path", ["//host/share/x", "\\\\host\\share\\x", "/\\host/share/x", "relative/share/x"])
    def test_network_and_relative_paths_are_not_touched(self, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
        touched: list[Path] = []
        with monkeypatch.context() as patch:
            patch.setattr(Path, "stat", touched.append)
            name = project_name(path)
        assert name == "x"
        assert touched == []
