"""What a run is told of the place it works in."""

from __future__ import annotations

from typing import Any

from samples import rows

from proxy.providers.p5_cursor.run.context import MAX_PATH, request_context, workspace_of

ENVIRONMENT = """# Environment
You have been invoked in the following environment:
 - Primary working directory: /home/me/x
  - Is a git repository: true
"""
OLDER = "Here is useful information:\n<env>\nWorking directory: /home/me/x\nIs directory a git repo: Yes\n</env>"
FOUND, OWN = "/home/me/x", "/proxy"


def block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}


def system(text: Any) -> dict[str, Any]:
    return {"role": "system", "content": text}


@rows(
    "request_, expected",
    [
        ({"system": ENVIRONMENT}, FOUND),
        ({"system": OLDER}, FOUND),
        ({"system": [block("Be brief."), block(ENVIRONMENT)]}, FOUND),
        ({"system": [block("Be brief."), block("Working directory: /home/me/x")]}, FOUND),
        ({"system": "Working directory: /home/me/x\r\nPlatform: linux\r\n"}, FOUND),
        ({"system": "\t* Working directory:/home/me/x  "}, FOUND),
        ({"system": "- Working directory: `/home/me/x`"}, FOUND),
        ({"system": "Working directory: /home/me/with blanks"}, "/home/me/with blanks"),
        ({"system": "Primary working directory: C:\\Users\\me"}, "C:\\Users\\me"),
        ({"system": "Working directory: here\nWorking directory: /home/me/x\nWorking directory: /other"}, FOUND),
        # newer versions of Claude Code say it in a message
        ({"system": [block("Be brief.")], "messages": [{"role": "user", "content": "Q"}, system(ENVIRONMENT)]}, FOUND),
        ({"messages": [system("Working directory: /old"), system([block(ENVIRONMENT)]), system("More")]}, FOUND),
        ({"system": OLDER, "messages": [system("Working directory: /other")]}, FOUND),
        ({}, OWN),
        ({"system": None, "messages": None}, OWN),
        ({"system": "", "messages": ["x", {"role": "system"}]}, OWN),
        ({"system": "My Working directory: /home/me/x"}, OWN),
        ({"system": "Additional working directories: /home/me/x"}, OWN),
        ({"system": "working directory: /home/me/x"}, OWN),
        ({"system": "Working directory:\n/home/me/x"}, OWN),
        ({"system": "Working directory: ~/x"}, OWN),
        ({"system": "Working directory: x/y"}, OWN),
        ({"system": "Working directory: /" + "x" * MAX_PATH}, OWN),
        ({"system": [{"type": "image"}, "Working directory: /home/me/x"]}, OWN),
        ({"messages": [{"role": "user", "content": "Working directory: /home/me/x"}]}, OWN),
    ],
)
def test_where_the_client_works(request_: dict[str, Any], expected: str) -> None:
    assert workspace_of(request_, OWN) == expected


def test_a_large_prompt_takes_linear_time() -> None:
    for text in (" " * 2_000_000, "-" * 2_000_000, " - " * 700_000, "Working directory:\n" * 100_000):
        assert workspace_of({"system": text}, OWN) == OWN


def test_the_context_says_where_and_that_it_is_complete() -> None:
    context = request_context("/w", os_version="linux x86_64", shell="/bin/bash")
    assert context.pop("env") == {
        "os_version": "linux x86_64",
        "workspace_paths": ["/w"],
        "shell": "/bin/bash",
        "project_folder": "/w",
        "process_working_directory": "/w",
    }
    assert set(context) == {
        *("web_search_enabled", "web_fetch_enabled", "git_repo_info_complete", "mcp_info_complete"),
        *("rules_info_complete", "env_info_complete", "repository_info_complete", "custom_subagents_info_complete"),
        *("agent_skills_info_complete", "mcp_file_system_info_complete", "git_status_info_complete"),
    }
    assert set(context.values()) == {True}


def test_what_is_not_known_is_left_out() -> None:
    assert request_context("", os_version="linux", shell="")["env"] == {"os_version": "linux"}
