"""The message that opens a run."""

from __future__ import annotations

from typing import Any

import pytest
from samples import rows

from proxy.providers.p5_cursor.models import ModelSelection
from proxy.providers.p5_cursor.run.opening import MAX_PATH, request_context, run_request, workspace_of

HELLO = {"uuid": "u1", "path": "claude-image-1.png", "mime_type": "image/png", "data": b"hello"}


@pytest.mark.parametrize(
    ("opened", "context", "model", "mode"),
    [
        (
            run_request("hi", [], ModelSelection("composer-2.5", (("fast", "false"),), 1), "c1", "m1"),
            {},
            {"model_id": "composer-2.5", "parameters": [{"id": "fast", "value": "false"}]},
            1,
        ),
        (
            run_request("hi", [HELLO], ModelSelection("default", (), 3), "c1", "m1"),
            {"selected_images": [HELLO]},
            {"model_id": "default"},
            3,
        ),
    ],
)
def test_the_opening_message(opened: dict[str, Any], context: dict[str, Any], model: dict[str, Any], mode: int) -> None:
    """The examples of the wire document (its bytes: vectors.txt), with the models that helpers of the run may use.
    `Conversation state is required`, and the run that only gets heartbeats, come of empty members left out."""
    message = {"text": "hi", "message_id": "m1", "selected_context": context, "mode": mode}
    assert opened == {
        "run_request": {
            "conversation_state": {},
            "action": {"user_message_action": {"user_message": message}},
            "mcp_tools": {},
            "conversation_id": "c1",
            "requested_model": model,
            "selected_subagent_models": [{"model_id": "default"}, model],
            "conversation_group_id": "c1",
            "client_supports_inline_images": True,
        }
    }


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
