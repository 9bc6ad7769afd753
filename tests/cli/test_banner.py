"""What `serve` says when it listens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proxy.cli.banner import banner
from proxy.cli.command import Context
from proxy.cli.config_file import ConfigFile
from proxy.core.outgoing_proxies import OutboundProxies

RECORD = {"access": "acc-secret", "refresh": "ref-secret", "expires": 4_000_000_000_000, "accountId": "acct-7"}


def shown(folder: Path, **variables: str) -> str:
    context = Context(
        {"PROXY_CONFIG_DIR": str(folder), "XDG_STATE_HOME": "/state", **variables}, program="scripts/start"
    )
    return banner(ConfigFile(context), context, OutboundProxies(), 18765, sandbox=False)


def sign_in(folder: Path, label: str, content: str) -> None:
    (folder / label).mkdir()
    (folder / label / "auth.json").write_text(content)


def test_where_nobody_is_signed_in_it_says_what_to_type(tmp_path: Path) -> None:
    text = shown(tmp_path)
    assert text.startswith("model-proxy 0.1.0 listens on http://127.0.0.1:18765\n")
    assert text.count("not signed in") == 5 and "no account is signed in" in text
    for line in ("  scripts/start auth login p1   # ChatGPT (Codex)", "  export PROXY_P4_API_KEY=…   # OpenCode Go"):
        assert line in text.splitlines()
    assert "auth login p4" not in text
    own = text.replace(str(tmp_path), "")
    assert max(map(len, own.splitlines())) <= 80


def test_where_somebody_is_signed_in_it_says_who(tmp_path: Path) -> None:
    sign_in(tmp_path, "p1", json.dumps(RECORD))
    sign_in(tmp_path, "p2", "{")
    text = shown(tmp_path, OPENCODE_API_KEY="hunter2")
    assert "  p1 codex     signed in " in text and "  p2 kimi      unusable sign-in " in text
    assert "  p3 grok      not signed in " in text and "  p4 opencode  signed in " in text
    assert "why a sign-in is unusable: scripts/start auth status" in text and "nobody" not in text
    assert "hunter" not in text and "secret" not in text


#: who is signed in, variables, the lines to paste, who should serve the aliases
TO_PASTE: list[tuple[tuple[str, ...], dict[str, str], tuple[str, str | None], str | None]] = [
    ((), {}, ("gpt-5.6-sol", "272000"), None),
    (("p1", "p2"), {}, ("gpt-5.6-sol", "272000"), None),
    (("p1", "p2"), {"PROXY_ALIAS_PROVIDER": "p2"}, ("kimi-for-coding", "262144"), None),
    (("p2",), {}, ("kimi-for-coding", "262144"), "p2"),
    (("p2",), {"PROXY_ALIAS_PROVIDER": "p3"}, ("kimi-for-coding", "262144"), "p2"),
    ((), {"PROXY_P4_API_KEY": "k"}, ("kimi-k2.7-code", "262144"), "p4"),
    ((), {"PROXY_P5_AUTH_TOKEN": "k", "PROXY_ALIAS_PROVIDER": "cursor"}, ("cursor", None), None),
]


@pytest.mark.parametrize(("signed_in", "variables", "pasted", "cure"), TO_PASTE)
def test_the_lines_to_paste_work_with_who_is_signed_in(
    signed_in: tuple[str, ...],
    variables: dict[str, str],
    pasted: tuple[str, str | None],
    cure: str | None,
    tmp_path: Path,
) -> None:
    for label in signed_in:
        sign_in(tmp_path, label, json.dumps(RECORD))
    text = shown(tmp_path, **variables)
    words = {name: value for line in text.splitlines() for name, _, value in [line.strip().partition("=")]}
    window = words.get("export CLAUDE_CODE_MAX_CONTEXT_TOKENS")
    assert (words["export ANTHROPIC_MODEL"], window and window.split()[0]) == pasted
    assert ("go to" in text, words.get("PROXY_ALIAS_PROVIDER")) == (
        cure is not None,
        cure and f"{cure} lets {cure} serve them",
    )


#: variables, a line, what is nowhere
ON: list[tuple[dict[str, str], str, str]] = [
    ({}, "on: Messages", "captures"),
    ({}, "off: chat completions, Responses (PROXY_P1_RESPONSES_API=1 turns them on)", "strict"),
    ({"PROXY_P1_RESPONSES_API": "on"}, "on: Messages, chat completions and Responses (strict)", "off:"),
    (
        {"PROXY_P1_RESPONSES_API": "1", "PROXY_OPENAI_MODE": "lenient", "PROXY_P1_IMAGES_API": "1"},
        "on: Messages, chat completions and Responses (lenient), images",
        "transcripts",
    ),
    ({"PROXY_P1_TRANSCRIPTIONS_API": "1"}, "on: Messages, transcripts", "images"),
    ({"PROXY_AUTO_MODE": "off"}, "auto mode: off", "judge"),
    ({}, "auto mode: judge where its model is signed in, else client", "warning"),
    (
        {"PROXY_VISION_MODEL": "opencode-go/kimi-k2.6", "PROXY_P4_API_KEY": "k"},
        "pictures for models that take none: described by p4 (opencode-go/kimi-k2.6);",
        "become notes",
    ),
    (
        {"PROXY_VISION_MODEL": "gpt-5.6-sol"},
        "  no account is signed in there, so pictures become notes",
        "described by p4",
    ),
    ({"PROXY_SEARCH": "off"}, "web search for models without one: off (PROXY_SEARCH)", "counts against"),
    ({}, "web search for models without one: nobody who can is signed in", "counts against"),
    (
        {"PROXY_SEARCH": "grok-4.5"},
        "web search for models without one: p3 (grok-4.5), which is not signed in; it counts against that subscription"
        " (PROXY_SEARCH changes it)",
        "nobody who can",
    ),
    ({"PROXY_BIND_ADDRESS": "0.0.0.0"}, "warning: the listener is open to everyone who can reach it", "hunter"),
    ({"PROXY_BIND_ADDRESS": "0.0.0.0", "PROXY_API_KEY": "hunter2"}, "log: /state/model-proxy/proxy.log", "open to"),
]


@pytest.mark.parametrize(("variables", "line", "absent"), ON)
def test_it_says_what_is_on(variables: dict[str, str], line: str, absent: str, tmp_path: Path) -> None:
    text = shown(tmp_path, **variables)
    assert line in text.splitlines() and absent not in text


def test_captures_are_told_with_their_place(tmp_path: Path) -> None:
    text = shown(tmp_path, PROXY_TRAFFIC_LOG="on")
    assert any(
        line.startswith("captures are on: ") and "/state/model-proxy/traffic" in line for line in text.splitlines()
    )
