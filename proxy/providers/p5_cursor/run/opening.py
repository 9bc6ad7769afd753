"""The message that opens a run, and its description of the run's machine. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from proxy.core.content import messages_of, system_text, texts_of
from proxy.providers.p5_cursor.bridge.tool_forms import ClientTools
from proxy.providers.p5_cursor.catalog import AUTOMATIC
from proxy.providers.p5_cursor.models import ModelSelection


def run_request(
    prompt: str, images: Sequence[Mapping[str, Any]], selection: ModelSelection, conversation_id: str, message_id: str
) -> dict[str, Any]:
    """An AgentClientMessage. Its empty parts are required: without the state the service refuses the run, without the
    context it never answers.

    images  SelectedImage dicts
    """
    model: dict[str, Any] = {"model_id": selection.model_id}
    if selection.parameters:
        model["parameters"] = [{"id": name, "value": value} for name, value in selection.parameters]
    message = {
        "text": prompt,
        "message_id": message_id,
        "selected_context": {"selected_images": list(images)} if images else {},
        "mode": int(selection.mode),
    }
    return {
        "run_request": {
            "conversation_state": {},
            "action": {"user_message_action": {"user_message": message}},
            "mcp_tools": {},
            "conversation_id": conversation_id,
            "requested_model": model,
            "selected_subagent_models": [{"model_id": AUTOMATIC}, model],
            "conversation_group_id": conversation_id,
            "client_supports_inline_images": True,
        }
    }


#: How clients name their directory: Claude Code, opencode, Continue and Cline in a line of their own, in some versions
#: as a list item; Qwen Code in a sentence; Codex CLI and pi between tags.
_DIRECTORY = re.compile(
    r"^[ \t]*+(?:(?:[-*•]|[0-9]{1,3}\.)[ \t]++)?+(?:(?:Primary|Current) w|W)orking [dD]irectory:[ \t]*+([^\n]++)|"
    r"^I'm currently working in the directory: ([^\n]++)|<cwd>\s*+([^<\n]++)\s*+</cwd>",
    re.MULTILINE,
)
#: One of these is in a text that names the directory: looked for first, since a prompt may be megabytes.
_DIRECTORY_WORDS = ("orking ", "<cwd>")
#: Beginnings of an absolute path, on any system.
_ABSOLUTE = re.compile(r"/|[A-Za-z]:[\\/]|\\\\")
#: Characters of a prompt in which the directory is looked for.
MAX_PROMPT_CHARS = 512 * 1024
#: The longest path of any system.
MAX_PATH = 4096

#: They let newer versions of the service know that nothing more will come.
_COMPLETE = (
    "git_repo_info_complete",
    "mcp_info_complete",
    "rules_info_complete",
    "env_info_complete",
    "repository_info_complete",
    "custom_subagents_info_complete",
    "agent_skills_info_complete",
    "mcp_file_system_info_complete",
    "git_status_info_complete",
)


def workspace_of(request: Mapping[str, Any], fallback: str) -> str:
    """The client's working directory, as its system prompt states it, else `fallback`.

    >>> workspace_of({"system": "Intro\\n - Primary working directory: /home/me/x\\n"}, "/w")
    '/home/me/x'
    """
    for text in _system_texts(request):
        for found in (
            _DIRECTORY.finditer(text, 0, MAX_PROMPT_CHARS) if any(word in text for word in _DIRECTORY_WORDS) else ()
        ):
            path = next(filter(None, found.groups()), "").strip().strip("`\"'")
            if len(path) <= MAX_PATH and _ABSOLUTE.match(path):
                return path
    return fallback


def _system_texts(request: Mapping[str, Any]) -> Iterator[str]:
    """The system prompt, then the messages of the role system, the newest first, where newer versions of Claude Code
    name the directory; last what was said before the first answer, where Codex CLI does."""
    yield system_text(request.get("system"), "\n")
    messages = messages_of(request)
    for message in reversed(messages):
        if message.get("role") == "system":
            yield system_text(message.get("content"), "\n")
    for message in messages[:MAX_OPENING]:
        if message.get("role") == "assistant":
            return
        for text in texts_of(message.get("content")):
            if text.lstrip().startswith(_ABOUT):
                yield text[:MAX_ABOUT_CHARS]


#: How Codex CLI begins a message of its own about the machine.
_ABOUT = "<environment_context>"
#: Messages before the first answer, and characters of each, that may tell of the machine.
MAX_OPENING, MAX_ABOUT_CHARS = 8, 65_536

#: How clients name their shell: Codex CLI, opencode, Qwen Code; in the description of a tool or in a prompt.
_SHELL = re.compile(r"<shell>([^<\n]{1,100})</shell>|\b[Ss]hell: ([\w./\\-]{1,100})|active shell is (\w{1,100})")
#: A client on Windows that names no shell runs PowerShell or cmd, Claude Code aside.
_WINDOWS = re.compile(r"\bwin32\b|\bPowerShell\b|\bcmd\.exe\b", re.IGNORECASE)
_POSIX_SHELLS = frozenset({"bash", "zsh", "sh", "dash", "ksh", "ash", "busybox"})


def shell_of(request: Mapping[str, Any], tools: ClientTools) -> str:
    """The shell of the client, as its tool or its prompt says; "" when neither does."""
    tool = tools.get("run")
    if tool is None or tool.name == "Bash":
        return ""
    texts = [text[:MAX_ABOUT_CHARS] for text in (tool.description, *_system_texts(request))]
    found = next(filter(None, map(_SHELL.search, texts)), None)
    if found is not None:
        return next(filter(None, found.groups()), "")
    return "powershell" if any(map(_WINDOWS.search, texts)) else ""


def is_posix(shell: str) -> bool:
    """Whether commands of a POSIX shell can be run by it; so without a name.

    >>> is_posix("/bin/zsh"), is_posix(""), is_posix("powershell"), is_posix("/usr/bin/fish")
    (True, True, False, False)
    """
    name = re.split(r"[/\\]", shell.strip())[-1].lower().removesuffix(".exe")
    return not name or name in _POSIX_SHELLS


def request_context(workspace: str, *, os_version: str, shell: str) -> dict[str, Any]:
    """A `RequestContext`.

    workspace   an absolute path; "" for none
    os_version  platform and architecture such as "linux x86_64"
    shell       the path of a shell; "" for none
    """
    place = {
        "workspace_paths": [workspace],
        "project_folder": workspace,
        "process_working_directory": workspace,
    }
    env = {"os_version": os_version, **({"shell": shell} if shell else {}), **(place if workspace else {})}
    # searching and fetching the web happens at the service
    offered = {"web_search_enabled": True, "web_fetch_enabled": True}
    return {"env": env, **offered, **dict.fromkeys(_COMPLETE, True)}
