"""`doctor` on set-ups that are broken in one way each: the cause and the cure are told."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import shutil
import socket
import sqlite3
import ssl
import subprocess
import sys
import threading
import time
from collections import namedtuple
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import trustme
from aiohttp.client_reqrep import ConnectionKey
from connect_proxy import Authority, TlsFront
from observe.history.past import history
from samples import rows

from proxy.cli.command import Context
from proxy.cli.doctor import client_files, data, listener, network
from proxy.cli.doctor.certificates import issuer_in
from proxy.cli.doctor.finding import Setup, fail
from proxy.cli.doctor.report import Style, lines_of
from proxy.config import Config

from .conftest import World

Prepare = Callable[[World], Any]

#: Longer than a run takes, on a busy machine too, and less than what a run must not wait for.
PATIENCE_S = 18


@dataclass(frozen=True)
class Broken:
    """A way to break a set-up.

    prepare    changes files
    variables  beside the healthy ones, "" takes one away; `{…}` is an attribute of the world
    finding    what is told, and `cure` how it is mended
    """

    name: str
    finding: str
    cure: str
    level: str = "FAIL"
    prepare: Prepare = lambda _world: None
    variables: dict[str, str] = field(default_factory=dict)


def _port_taken(world: World) -> None:
    world.held.append(socket.create_server(("127.0.0.1", world.port)))


def _mode(name: str, mode: int) -> Prepare:
    return lambda world: (world.root / name).chmod(mode)


def _old(name: str) -> Prepare:
    def prepare(world: World) -> None:
        path = world.write(name, "{}")
        os.utime(path, (time.time() - 3600, time.time() - 3600))

    return prepare


def _expired(world: World) -> None:
    """A token of p5 that has ended, and nothing to renew it with."""
    file = world.config / "p5" / "auth.json"
    token = "e30." + "eyJleHAiOjE2MDAwMDAwMDB9" + ".c2ln"
    file.write_text(json.dumps({"accessToken": token}))


def _newer_history(world: World) -> None:
    path = world.root / "state/model-proxy/history.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")


CLAUDE = "home/.claude/settings.json"
KEY = {"PROXY_API_KEY": "k" * 20, "ANTHROPIC_AUTH_TOKEN": "k" * 20}
OPENAI = {"OPENAI_BASE_URL": "{url}/v1", "OPENAI_API_KEY": "another", "PROXY_P1_RESPONSES_API": "1"}
CODEX = '[model_providers.here]\nbase_url = "http://127.0.0.1:{port}/"\nwire_api = "responses"\n'
BROKEN = (
    Broken(
        "not JSON", "not JSON", "edit {config}/config.json", prepare=lambda w: w.write("config/config.json", "{oops")
    ),
    Broken("no folder", "is not a folder", " config init", variables={"PROXY_CONFIG_DIR": "{root}/nowhere"}),
    Broken(
        "a value that does not fit",
        "p1.effort: expected",
        "edit {config}/config.json",
        prepare=lambda w: w.write("config/config.json", {"p1": {"effort": "hihg"}}),
    ),
    Broken(
        "a key that is misspelt",
        "unknown key prot",
        "edit {config}/config.json: write port",
        "warn",
        prepare=lambda w: w.write("config/config.json", {"prot": 1}),
    ),
    Broken(
        "a variable that is misspelt",
        "unknown variable PROXY_P1_RESPONSE_API",
        "unset PROXY_P1_RESPONSE_API, then export PROXY_P1_RESPONSES_API=…",
        "warn",
        variables={"PROXY_P1_RESPONSE_API": "1"},
    ),
    Broken(
        "a variable that does not fit",
        "PROXY_COMPACT_EFFORT: expected",
        "unset PROXY_COMPACT_EFFORT",
        variables={"PROXY_COMPACT_EFFORT": "lo"},
    ),
    Broken(
        "the file is replaced",
        "PROXY_PORT replaces port of config.json",
        "unset PROXY_PORT",
        "note",
        prepare=lambda w: w.write("config/config.json", {"port": 1234}),
    ),
    Broken(
        "others read a credential",
        "{config}/p1/auth.json is open to others",
        "chmod 600 {config}/p1/auth.json",
        "warn",
        _mode("config/p1/auth.json", 0o644),
    ),
    Broken(
        "others read a folder",
        "{config}/p1 is open to others",
        "chmod 700 {config}/p1",
        "warn",
        _mode("config/p1", 0o755),
    ),
    Broken(
        "a secret in a file for all",
        "config.json is open to others",
        "chmod 600 {config}/config.json",
        "warn",
        prepare=lambda w: w.write("config/config.json", {"p4": {"apiKey": "k" * 20}}).chmod(0o644),
        variables={"PROXY_P4_API_KEY": "", "OPENCODE_API_KEY": ""},
    ),
    Broken(
        "a renewal was cut",
        "refresh-pending.json was left behind",
        " auth login p1",
        "warn",
        _old("config/p1/auth.json.refresh-pending.json"),
    ),
    Broken(
        "a save was cut",
        ".auth.json.ab.tmp was left behind",
        "rm {config}/p1/.auth.json.ab.tmp",
        "note",
        _old("config/p1/.auth.json.ab.tmp"),
    ),
    Broken(
        "the state is a file",
        "{root}/file is no folder",
        "mv ",
        prepare=lambda w: w.write("file", ""),
        variables={"XDG_STATE_HOME": "{root}/file"},
    ),
    Broken(
        "captures are on", "captures are on", "unset PROXY_TRAFFIC_LOG", "note", variables={"PROXY_TRAFFIC_LOG": "1"}
    ),
    Broken(
        "captures are kept",
        "captures take",
        " captures clear",
        "note",
        prepare=lambda w: w.write("state/model-proxy/traffic/s/1/x.json", "{}"),
    ),
    Broken("the history is off", "the history is off", "unset PROXY_HISTORY", "note", variables={"PROXY_HISTORY": "0"}),
    Broken(
        "the history is damaged",
        "history.db: it is damaged",
        " history clear",
        "warn",
        prepare=lambda w: w.write("state/model-proxy/history.db", "no database " * 99),
    ),
    Broken(
        "the history is newer",
        "a newer version of this program wrote it",
        "history.db.newer, or use that version",
        "warn",
        prepare=_newer_history,
    ),
    Broken(
        "the history is a folder",
        "history.db is no file",
        "mv ",
        "warn",
        prepare=lambda w: (w.root / "state/model-proxy/history.db").mkdir(parents=True),
    ),
    Broken(
        "the port is taken", "127.0.0.1:{port} is taken by something else", "export PROXY_PORT=", prepare=_port_taken
    ),
    Broken(
        "an address of another machine",
        "is not of this machine",
        "export PROXY_BIND_ADDRESS=127.0.0.1",
        variables={"PROXY_BIND_ADDRESS": "192.0.2.1", "PROXY_API_KEY": "k" * 20, "ANTHROPIC_AUTH_TOKEN": "k" * 20},
    ),
    Broken(
        "open to everybody",
        "would be open to everybody",
        "export PROXY_API_KEY=",
        variables={"PROXY_BIND_ADDRESS": "0.0.0.0"},
    ),
    Broken(
        "open on purpose",
        "0.0.0.0 is open to everybody",
        "export PROXY_API_KEY=",
        "warn",
        variables={"PROXY_BIND_ADDRESS": "0.0.0.0", "PROXY_ALLOW_REMOTE_UNAUTHENTICATED": "1"},
    ),
    Broken(
        "a credential that is none",
        "p1 (codex): unusable sign-in",
        " auth login p1",
        prepare=lambda w: w.write("config/p1/auth.json", "{}"),
    ),
    Broken(
        "a token that ended",
        "p5 (cursor): the token has ended, and nothing renews it",
        " auth login p5",
        prepare=_expired,
    ),
    Broken(
        "no account is signed in",
        "no account is signed in",
        " auth login p1",
        prepare=lambda w: [shutil.rmtree(w.config / label) for label in ("p1", "p2", "p3", "p5")],
        variables={"PROXY_P4_API_KEY": "", "OPENCODE_API_KEY": ""},
    ),
    Broken(
        "nobody serves the aliases",
        "names like opus and haiku go to p1",
        "export PROXY_ALIAS_PROVIDER=",
        "warn",
        prepare=lambda w: shutil.rmtree(w.config / "p1"),
    ),
    Broken(
        "nobody describes pictures",
        "p1 describes pictures for models that take none (gpt-5.6-sol)",
        " auth login p1",
        "warn",
        prepare=lambda w: shutil.rmtree(w.config / "p1"),
        variables={"PROXY_VISION_MODEL": "gpt-5.6-sol", "PROXY_ALIAS_PROVIDER": "p2"},
    ),
    Broken(
        "the searcher is not signed in",
        "p3 should search the web",
        " auth login p3",
        "warn",
        prepare=lambda w: shutil.rmtree(w.config / "p3"),
        variables={"PROXY_SEARCH": "grok-4.5"},
    ),
    Broken(
        "nobody can search",
        "no service searches the web",
        " auth login p1",
        "note",
        prepare=lambda w: [shutil.rmtree(w.config / label) for label in ("p1", "p2", "p3")],
    ),
    Broken(
        "a searcher that is none",
        "a setting would stop a start",
        "unset PROXY_SEARCH",
        variables={"PROXY_SEARCH": "p4"},
    ),
    Broken(
        "a proxy that is none",
        "HTTPS_PROXY names no usable proxy",
        "export HTTPS_PROXY=http://",
        variables={"HTTPS_PROXY": "socks5://x:1", "NO_PROXY": "127.0.0.1"},
    ),
    Broken(
        "a CGI program", "REQUEST_METHOD is set", "unset REQUEST_METHOD", "note", variables={"REQUEST_METHOD": "GET"}
    ),
    Broken(
        "authorities that are not there",
        "SSL_CERT_FILE: {root}/none.pem cannot be used",
        "unset SSL_CERT_FILE",
        variables={"SSL_CERT_FILE": "{root}/none.pem"},
    ),
    Broken(
        "authorities that are none",
        "it holds no certificate",
        "unset SSL_CERT_FILE",
        prepare=lambda w: w.write("some.pem", "none"),
        variables={"SSL_CERT_FILE": "{root}/some.pem"},
    ),
    Broken(
        "a folder of authorities that is not there",
        "SSL_CERT_DIR: {root}/none cannot be read",
        "unset SSL_CERT_DIR",
        variables={"SSL_CERT_DIR": "{root}/none"},
    ),
    Broken(
        "a host that does not answer",
        "127.0.0.1:9 is not reached",
        "check p2.baseUrl",
        variables={"PROXY_P2_BASE_URL": "http://127.0.0.1:9/v1"},
    ),
    Broken(
        "no base URL",
        "ANTHROPIC_BASE_URL is not set",
        "export ANTHROPIC_BASE_URL={url}",
        "note",
        variables={"ANTHROPIC_BASE_URL": ""},
    ),
    Broken(
        "another port",
        "ANTHROPIC_BASE_URL leads to another port",
        "export ANTHROPIC_BASE_URL={url}",
        variables={"ANTHROPIC_BASE_URL": "http://localhost:1"},
    ),
    Broken(
        "a version at the end",
        "ANTHROPIC_BASE_URL ends with /v1",
        "export ANTHROPIC_BASE_URL={url}",
        variables={"ANTHROPIC_BASE_URL": "{url}/v1/"},
    ),
    Broken(
        "https",
        "ANTHROPIC_BASE_URL begins with https",
        "export ANTHROPIC_BASE_URL={url}",
        variables={"ANTHROPIC_BASE_URL": "https://127.0.0.1:{port}"},
    ),
    Broken(
        "elsewhere",
        "ANTHROPIC_BASE_URL leads elsewhere",
        "export ANTHROPIC_BASE_URL={url}",
        "note",
        variables={"ANTHROPIC_BASE_URL": "https://api.example"},
    ),
    Broken(
        "no URL",
        "ANTHROPIC_BASE_URL is no URL",
        "export ANTHROPIC_BASE_URL={url}",
        variables={"ANTHROPIC_BASE_URL": "127.0.0.1:{port}"},
    ),
    Broken(
        "two keys",
        "ANTHROPIC_AUTH_TOKEN and ANTHROPIC_API_KEY are both set",
        "unset ANTHROPIC_API_KEY",
        "warn",
        variables={"ANTHROPIC_API_KEY": "sk-ant-x"},
    ),
    Broken(
        "no key",
        "ANTHROPIC_AUTH_TOKEN is not set",
        'eval "$(model-proxy env claude)"',
        "warn",
        variables={"ANTHROPIC_AUTH_TOKEN": ""},
    ),
    Broken(
        "the wrong key",
        "ANTHROPIC_AUTH_TOKEN is not the key of this proxy",
        'eval "$(model-proxy env claude)"',
        variables={"PROXY_API_KEY": "k" * 20},
    ),
    Broken(
        "a key in the file alone",
        "ANTHROPIC_AUTH_TOKEN is not the key of this proxy",
        'eval "$(model-proxy env claude)"',
        prepare=lambda w: w.write("config/config.json", {"apiKey": "k" * 20}).chmod(0o600),
    ),
    Broken(
        "the wrong key in a file of the client",
        "settings.json is not the key of this proxy",
        'remove env.ANTHROPIC_AUTH_TOKEN from {home}/.claude/settings.json, then eval "$(model-proxy env claude)"',
        prepare=lambda w: w.write(CLAUDE, {"env": {"ANTHROPIC_AUTH_TOKEN": "another"}}),
        variables=KEY,
    ),
    Broken(
        "the wrong key of OpenAI's clients",
        "OPENAI_API_KEY is not the key of this proxy",
        'eval "$(model-proxy env openai)"',
        variables={**KEY, **OPENAI},
    ),
    Broken(
        "the wrong key of Codex",
        "HERE_KEY is not the key of this proxy",
        'eval "$(model-proxy env openai)"; export HERE_KEY="$OPENAI_API_KEY"',
        prepare=lambda w: w.write(
            "home/.codex/config.toml", CODEX.format(port=f"{w.port}/v1") + 'env_key = "HERE_KEY"\n'
        ),
        variables={**KEY, "HERE_KEY": "another", "PROXY_P1_RESPONSES_API": "1"},
    ),
    Broken(
        "the other kind of address",
        "ANTHROPIC_BASE_URL leads to another address",
        "export ANTHROPIC_BASE_URL={url}",
        variables={"ANTHROPIC_BASE_URL": "http://[::1]:{port}"},
    ),
    Broken(
        "no home",
        "HOME is not set",
        'export HOME="$(getent passwd',
        "warn",
        variables={"HOME": ""},
    ),
    Broken(
        "another folder than the usual one",
        "{home}/.config/model-proxy has settings or sign-ins that do not count",
        "unset XDG_CONFIG_HOME",
        "warn",
        prepare=lambda w: w.write("home/.config/model-proxy/config.json", {}),
        variables={"PROXY_CONFIG_DIR": "", "XDG_CONFIG_HOME": "{root}/other", "PROXY_ALIAS_PROVIDER": "p4"},
    ),
    Broken(
        "a cloud",
        "CLAUDE_CODE_USE_BEDROCK is set",
        "unset CLAUDE_CODE_USE_BEDROCK",
        variables={"CLAUDE_CODE_USE_BEDROCK": "1"},
    ),
    Broken(
        "a model that nobody has",
        "ANTHROPIC_MODEL is no model",
        "export ANTHROPIC_MODEL=gpt-5.6-sol",
        variables={"ANTHROPIC_MODEL": "gtp-5.6-sol"},
    ),
    Broken(
        "a model of the picker that nobody has",
        "modelPicker in {home}/.claude/settings.json is no model",
        "edit modelPicker in {home}/.claude/settings.json: kimi-k3",
        prepare=lambda w: w.write(CLAUDE, {"modelPicker": {"options": [{"model": "kimy-k3"}]}}),
    ),
    Broken(
        "a window that is too large",
        "CLAUDE_CODE_MAX_CONTEXT_TOKENS is more than the window of gpt-5.6-sol",
        "export CLAUDE_CODE_MAX_CONTEXT_TOKENS=272000",
        "note",
        variables={"CLAUDE_CODE_MAX_CONTEXT_TOKENS": "1000000"},
    ),
    Broken(
        "a window that is not told",
        "CLAUDE_CODE_MAX_CONTEXT_TOKENS is not set",
        "export CLAUDE_CODE_MAX_CONTEXT_TOKENS=272000",
        "note",
        variables={"CLAUDE_CODE_MAX_CONTEXT_TOKENS": ""},
    ),
    Broken(
        "discovery alone",
        "models.claudeNames is not",
        "export PROXY_CLAUDE_NAMES=1",
        "note",
        variables={"CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY": "1"},
    ),
    Broken(
        "names alone",
        "models.claudeNames is on",
        "export CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY=1",
        "note",
        variables={"PROXY_CLAUDE_NAMES": "1"},
    ),
    Broken(
        "a file that wins",
        "ends with /v1 after the port",
        "set env.ANTHROPIC_BASE_URL to",
        prepare=lambda w: w.write(CLAUDE, {"env": {"ANTHROPIC_BASE_URL": f"{w.url}/v1"}}),
    ),
    Broken(
        "a file that differs",
        "settings.local.json sets another ANTHROPIC_MODEL",
        "remove env.ANTHROPIC_MODEL from",
        "warn",
        prepare=lambda w: w.write("here/.claude/settings.local.json", {"env": {"ANTHROPIC_MODEL": "opus"}}),
    ),
    Broken(
        "a helper for the key",
        "has an apiKeyHelper",
        "remove apiKeyHelper from {home}/.claude/settings.json",
        "warn",
        prepare=lambda w: w.write(CLAUDE, {"apiKeyHelper": "/bin/key"}),
    ),
    Broken(
        "settings of a client that are no JSON",
        "settings.json cannot be read",
        "edit {home}/.claude/settings.json",
        "warn",
        prepare=lambda w: w.write(CLAUDE, "{"),
    ),
    Broken(
        "OpenAI without a version",
        "OPENAI_BASE_URL ends with nothing",
        "export OPENAI_BASE_URL={url}/v1",
        variables={"OPENAI_BASE_URL": "{url}", "OPENAI_API_KEY": "unused", "PROXY_P1_RESPONSES_API": "1"},
    ),
    Broken(
        "OpenAI's routes are off",
        "p1.responsesApi is off",
        "export PROXY_P1_RESPONSES_API=1",
        variables={"OPENAI_BASE_URL": "{url}/v1", "OPENAI_API_KEY": "unused"},
    ),
    Broken(
        "OpenAI without a key",
        "OPENAI_API_KEY is not set",
        'eval "$(model-proxy env openai)"',
        "warn",
        variables={"OPENAI_BASE_URL": "{url}/v1", "PROXY_P1_RESPONSES_API": "1"},
    ),
    Broken(
        "Codex without a version",
        "model_providers.here.base_url ends with nothing",
        'base_url = "{url}/v1"',
        prepare=lambda w: w.write("home/.codex/config.toml", CODEX.format(port=w.port)),
        variables={"PROXY_P1_RESPONSES_API": "1"},
    ),
    Broken(
        "Codex and the routes are off",
        "p1.responsesApi is off",
        "export PROXY_P1_RESPONSES_API=1",
        prepare=lambda w: w.write("home/.codex/config.toml", CODEX.format(port=f"{w.port}/v1")),
    ),
    Broken(
        "a config.toml that is none",
        "config.toml cannot be read",
        "edit {root}/codex/config.toml",
        "warn",
        prepare=lambda w: w.write("codex/config.toml", "= 1"),
        variables={"CODEX_HOME": "{root}/codex"},
    ),
    Broken(
        "clients ask the proxy for this machine",
        "HTTP_PROXY is set for clients too",
        "export NO_PROXY=a.example,localhost,127.0.0.1",
        "warn",
        variables={"HTTP_PROXY": "http://proxy.example:3128", "NO_PROXY": "a.example"},
    ),
    Broken(
        "a version that was not tried",
        "Claude Code 9.9.9: tried with",
        "",
        "note",
        prepare=lambda w: w.program("claude", "echo 9.9.9"),
    ),
    Broken(
        "a client that does not start",
        "does not tell its version",
        "--version",
        "note",
        prepare=lambda w: w.program("claude", "exit 1"),
    ),
)


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
async def test_each_cause_is_named_with_its_cure(case: Broken, world: World) -> None:
    if os.name != "posix":
        pytest.skip("the shell of the cures")
    case.prepare(world)
    status, out = await world.run(**{name: _filled(value, world) for name, value in case.variables.items()})
    finding, cure = _filled(case.finding, world), _filled(case.cure, world)
    lines = out.splitlines()
    found = next((n for n, line in enumerate(lines) if finding in line and f" {case.level} " in f"{line} "), None)
    assert found is not None, out
    assert not cure or cure in lines[found + 1].removeprefix("         cure: "), out
    assert status == (1 if " FAIL " in out else 0)
    assert (status == 1) is (case.level == "FAIL"), out


def _filled(text: str, world: World) -> str:
    return re.sub(r"{(\w+)}", lambda name: str(getattr(world, name[1])), text)


async def test_settings_that_cannot_be_used_are_the_only_thing_to_mend(world: World) -> None:
    """What would be told of the defaults is no fault of the user."""
    status, out = await world.run(PROXY_PORT="70000")
    assert status == 1 and out.count(" FAIL ") == 1 and out.count("not looked at: the settings cannot be used") == 4
    assert "Claude Code 2.1.330" in out


BARRED = {
    "the folder of the settings": ("config", "{config} cannot be entered", "chmod -R u+rwX {config}"),
    "the settings": ("config/config.json", "the settings cannot be read", "chmod -R u+rwX {config}/config.json"),
    "the state": ("state/model-proxy", "{state}/model-proxy cannot be written", "chmod -R u+rwX {state}/model-proxy"),
    "what is above the state": ("state", "{state} cannot be written", "chmod -R u+rwX {state}"),
}


@pytest.mark.skipif(os.name != "posix", reason="rights of files")
@pytest.mark.parametrize("case", BARRED, ids=list(BARRED))
@pytest.mark.parametrize("own", [True, False], ids=["own", "of somebody else"])
async def test_what_may_not_be_touched_is_named(
    case: str, own: bool, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after `sudo model-proxy …`. Whoever runs the tests may be allowed everything, so the answer of the system is
    made."""
    name, finding, cure = BARRED[case]
    world.write("config/config.json", {}).chmod(0o600)
    (world.state / "model-proxy").mkdir()
    barred, access, stat_of, read = world.root / name, os.access, Path.stat, Path.read_text

    def check(path: Any) -> None:
        if barred in Path(path).parents:
            raise PermissionError(13, "Permission denied", str(path))

    def stat(path: Path, **options: Any) -> os.stat_result:
        check(path)
        return stat_of(path, **options)

    def read_text(path: Path, *options: Any, **named: Any) -> str:
        check(path / "x")
        return read(path, *options, **named)

    monkeypatch.setattr(
        os, "access", lambda path, mode: barred not in (Path(path), *Path(path).parents) and access(path, mode)
    )
    monkeypatch.setattr(Path, "stat", stat)
    monkeypatch.setattr(Path, "read_text", read_text)
    user = os.geteuid() if own else os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: user)
    status, out = await world.run("--offline", PROXY_PORT=str(world.port))
    lines = out.splitlines()
    found = next((n for n, line in enumerate(lines) if f"FAIL {_filled(finding, world)}" in line), None)
    assert status == 1 and found is not None, out
    wanted = _filled(cure, world)
    wanted = wanted if own else wanted.replace("chmod -R u+rwX", f"sudo chown -R {user}")
    assert lines[found + 1].endswith(f"cure: {wanted}"), out
    assert "could not be looked at" not in out


@pytest.mark.skipif(not listener.PROC.is_dir(), reason="no /proc")
async def test_a_proxy_of_somebody_else_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def is_proxy(_host: str, _port: int, _limit_s: float) -> bool:
        return True

    _port_taken(world)
    monkeypatch.setattr(listener, "is_proxy", is_proxy)
    assert "ok   a proxy answers" in (await world.run("--offline"))[1]
    monkeypatch.setattr(listener, "own_id", lambda: os.geteuid() + 1)
    status, out = await world.run("--offline")
    assert status == 0 and f"warn somebody else's proxy answers on 127.0.0.1:{world.port}" in out
    assert f"cure: export PROXY_PORT={world.port + 1}" in out


async def test_a_helper_brings_the_key(world: World) -> None:
    world.write(CLAUDE, {"apiKeyHelper": "/bin/key"})
    _, out = await world.run("--offline", ANTHROPIC_AUTH_TOKEN="")
    assert "has an apiKeyHelper" in out and "ANTHROPIC_AUTH_TOKEN is not set" not in out


async def test_a_healthy_set_up_is_all_ok(world: World) -> None:
    status, out = await world.run()
    marks = {line.split()[1] for line in out.splitlines() if line.startswith("  ") and line.split()[0] in "✓·!✗"}
    assert (status, marks) == (0, {"ok"}), out
    assert "\x1b" not in out and "nothing fails" in out
    for told in ("Claude Code 2.1.330", "p1 (codex): signed in", "the clock agrees", "leads here", "is free"):
        assert told in out


async def test_nobody_but_the_configured_hosts_is_asked(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each once, as was told before, and without a credential."""
    asked: list[str] = []
    real = aiohttp.ClientSession._request

    async def request(self: Any, method: str, url: Any, **options: Any) -> Any:
        assert "authorization" not in {name.lower() for name in (options.get("headers") or {})}
        asked.append(f"{method} {url}")
        return await real(self, method, url, **options)

    monkeypatch.setattr(aiohttp.ClientSession, "_request", request)
    _, out = await world.run()
    assert len(asked) == 1 and asked[0].startswith(f"GET {world.sandbox.origin}/")
    assert f"and no others: {world.sandbox.origin.removeprefix('http://')}" in out
    asked.clear()
    status, out = await world.run("--offline")
    assert status == 0 and asked == [] and "no host is asked (--offline)" in out
    world.write("config/config.json", "{oops")
    await world.run()
    assert asked == []  # of settings that cannot be read nobody knows whom they mean


async def test_as_json_the_findings_are_an_object(world: World) -> None:
    status, out = await world.run("--json", "--offline", ANTHROPIC_API_KEY="sk-secret-1")
    told = json.loads(out)
    groups = {group["name"]: group["findings"] for group in told["groups"]}
    assert status == 0 and told["worst"] == "warn" and told["asked"] == []
    assert [*groups] == ["settings", "files", "listener", "signIns", "network", "clock", "clients", "data"]
    assert any(finding.get("cure") == "unset ANTHROPIC_API_KEY" for finding in groups["clients"])
    assert "sk-secret" not in out


async def test_a_proxy_of_ours_on_the_port_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from aiohttp import web

    from proxy import Config, create_app

    monkeypatch.setattr(listener, "PROBE_S", PATIENCE_S)
    runner = web.AppRunner(create_app(Config(), config_dir=world.config))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", world.port).start()
    try:
        status, out = await world.run("--offline")
    finally:
        await runner.cleanup()
    assert status == 0 and f"a proxy answers on 127.0.0.1:{world.port}" in out


@pytest.mark.skipif(not listener.PROC.is_dir(), reason="no /proc")
async def test_who_has_the_port_is_named(world: World) -> None:
    _port_taken(world)
    assert f"process {os.getpid()})" in (await world.run("--offline"))[1]


Usage = namedtuple("Usage", "total used free")


@pytest.mark.parametrize(
    ("free", "level"), [(10**6, "FAIL"), (100 * 10**6, "warn"), (10**12, "ok")], ids=["full", "nearly", "room"]
)
async def test_room_on_the_disk(free: int, level: str, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    history(world.root / "state" / "model-proxy")
    monkeypatch.setattr(data.shutil, "disk_usage", lambda _place: Usage(0, 0, free))
    _, out = await world.run("--offline")
    assert ("history.db cannot grow" in out) is (level == "FAIL")
    (line,) = [line for line in out.splitlines() if " free for " in line]
    assert line.split()[1] == level and (level == "ok" or "cure: df -h" in out)


@pytest.mark.parametrize(
    ("limit", "level"), [("max", None), (str(2**28), "warn"), (str(2**31), "ok"), (str(2**63), None)]
)
async def test_memory_of_a_container(
    limit: str, level: str | None, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "MEMORY_LIMITS", (world.root / "none", world.write("memory.max", f"{limit}\n")))
    _, out = await world.run("--offline")
    found = [line.split()[1] for line in out.splitlines() if "a container with" in line]
    assert found == ([level] if level else [])
    assert ("PROXY_MAX_BUFFERED_REQUEST_BYTES=" in out) is (level == "warn")


async def test_a_damaged_vocabulary_is_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from proxy.providers.upstream import tokenizer

    def damaged() -> Any:
        raise ValueError("o200k_base.tiktoken.gz is damaged")

    monkeypatch.setattr(tokenizer, "load_encoding", damaged)
    status, out = await world.run("--offline")
    assert status == 1 and "is damaged; tokens are estimated" in out and "pip install --force-reinstall WHEEL" in out


async def test_another_owner_of_the_import_name_is_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.cli.doctor.data.other_owners", lambda: ["foreign-proxy"])
    status, out = await world.run("--offline")
    assert status == 0 and "foreign-proxy is in the same environment" in out and "pipx install WHEEL" in out


@pytest.mark.parametrize(("skew", "level"), [(0, "ok"), (90, "warn"), (-90, "warn"), (4000, "FAIL"), (-4000, "FAIL")])
async def test_a_clock_that_is_wrong(skew: int, level: str, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    real = network._compare_clock

    def shifted(place: Any, answer: Any, setup: Any) -> None:
        setup.clock = lambda: time.time() + skew
        real(place, answer, setup)

    monkeypatch.setattr(network, "_compare_clock", shifted)
    status, out = await world.run()
    (line,) = [line for line in out.splitlines() if "the clock " in line]
    assert line.split()[1] == level and status == (level == "FAIL")
    if skew:
        assert f"{'ahead' if skew > 0 else 'behind'}" in line and "cure: " in out


async def test_a_lock_that_is_held_is_told(world: World) -> None:
    from proxy.auth.store import CredentialFile

    async with CredentialFile(world.config, "p1").locked():
        _, out = await world.run("--offline")
    assert "auth.json.refresh.lock is held" in out and "fuser -v" in out


async def test_a_check_that_fails_does_not_end_the_others(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_place: object) -> Any:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(data.shutil, "disk_usage", broken)
    status, out = await world.run("--offline")
    assert status == 0 and "disk could not be looked at: RuntimeError: no such thing" in out
    assert "the vocabulary is complete" in out


def test_every_warning_and_failure_has_a_cure() -> None:
    for case in BROKEN:
        assert case.cure or case.level == "note"


async def test_text_of_others_moves_no_cursor(world: World) -> None:
    _, out = await world.run("--offline", ANTHROPIC_MODEL="\x1b[2Jx")
    assert "\x1b" not in out and "\\x1b[2Jx is refused" in out


def test_the_versions_that_were_tried_are_those_of_the_manual() -> None:
    from proxy.cli.doctor.client_files import TRIED

    table = (Path(__file__).parents[3] / "docs" / "clients" / "README.md").read_text()
    for client, versions in TRIED.values():
        row = re.search(rf"^\| \[{re.escape(client)}\]\([^)]*\) \| ([^|]*) \|", table, re.MULTILINE)
        assert row is not None and tuple(row[1].split(", ")) == versions[: row[1].count(",") + 1]


async def test_a_sign_in_that_is_renewed_is_well(world: World) -> None:
    world.sandbox.write_credentials(world.config, lifetime_s=-100)
    status, out = await world.run("--offline")
    assert status == 0 and "p1 (codex): signed in; the next request renews it" in out
    account = json.loads((world.config / "p1" / "auth.json").read_text())["accountId"]
    assert account not in out and f"Account: {account[:4]}…" in out


async def test_whose_certificate_it_is_that_nobody_trusts(world: World) -> None:
    """As with a company's proxy that looks into TLS."""
    authority = trustme.CA(organization_name="Corp Interception")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    async with TlsFront(("127.0.0.1", world.sandbox.port), tls) as front:
        status, out = await world.run(PROXY_P2_BASE_URL=f"https://127.0.0.1:{front.port}/v1")
    (line,) = [line for line in out.splitlines() if "certificate that is not trusted" in line]
    assert status == 1 and "issued by Corp Interception" in line and "cure: export SSL_CERT_FILE=" in out


async def test_who_vouches_for_a_host_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority()
    authority.trusted(monkeypatch)
    async with TlsFront(("127.0.0.1", world.sandbox.port), authority.server("127.0.0.1")) as front:
        status, out = await world.run(PROXY_P2_BASE_URL=f"https://127.0.0.1:{front.port}/v1")
    assert status == 0 and re.search(rf"ok   127.0.0.1:{front.port} answers .*, certificate by trustme", out)


async def test_an_outgoing_proxy_that_does_not_answer_is_named(world: World) -> None:
    variables = {"HTTPS_PROXY": "http://user:secret@127.0.0.1:9", "NO_PROXY": "127.0.0.1"}
    status, out = await world.run(PROXY_P2_BASE_URL="https://p2.invalid/v1", **variables)
    assert status == 1 and "The outgoing proxy 127.0.0.1:9 could not be reached" in out
    assert "export HTTPS_PROXY=" in out and "secret" not in out


def _dns() -> Exception:
    key = ConnectionKey("p2.invalid", 443, True, True, None, None, None)
    return aiohttp.ClientConnectorDNSError(key, OSError("no such name"))


@pytest.mark.parametrize(
    ("failure", "said"),
    [(_dns(), "its name is not known"), (TimeoutError(), "no answer within 8 s"), (OSError(1, "odd"), "odd")],
    ids=["name", "silence", "other"],
)
async def test_why_a_host_is_not_reached(
    failure: Exception, said: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask(*_: object, **__: object) -> Any:
        raise failure

    monkeypatch.setattr(network, "ask", ask)
    status, out = await world.run()
    (line,) = [line for line in out.splitlines() if "is not reached" in line]
    assert status == 1 and said in line and "the clock was not compared" in out


async def test_a_name_server_that_does_not_answer_is_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it leaves behind is not waited for."""
    over = threading.Event()
    known = socket.getaddrinfo

    def look_up(host: Any, *rest: Any, **options: Any) -> Any:
        if host != "p2.invalid":
            return known(host, *rest, **options)
        over.wait(20)
        raise socket.gaierror(-3, "temporary")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(network, "NAME_S", 0.1)
    begun = time.monotonic()
    status, out = await world.run(PROXY_P2_BASE_URL="https://p2.invalid/v1")
    took = time.monotonic() - begun
    over.set()
    assert status == 1 and "p2.invalid is not reached: its name is not known" in out, out
    assert took < PATIENCE_S


async def test_a_client_that_waits_is_ended(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_files, "VERSION_S", 0.1)
    world.program("claude", "exec sleep 30")
    status, out = await world.run("--offline")
    assert status == 0 and "does not tell its version" in out


@pytest.mark.parametrize(
    ("script", "limit_s", "said"),
    [
        ("sleep 30\ntrue", 0.1, "does not tell its version"),
        ("sleep 30 &\necho 2.1.330", PATIENCE_S, "Claude Code 2.1.330"),
    ],
    ids=["it waits for it", "it leaves it"],
)
async def test_what_a_client_started_is_not_waited_for(
    script: str, limit_s: float, said: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_files, "VERSION_S", limit_s)
    world.program("claude", script)
    begun = time.monotonic()
    _, out = await world.run("--offline")
    assert said in out and time.monotonic() - begun < PATIENCE_S


async def test_a_check_that_is_interrupted_ends_the_client_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_files, "VERSION_S", 2 * PATIENCE_S)
    world.program("claude", "echo $$ > asked; exec sleep 60")
    setup = Setup(Context(world.variables), None, Config(), ())
    checking = asyncio.ensure_future(client_files.check_versions(setup))
    async with asyncio.timeout(PATIENCE_S):
        while not (asked := world.root / "here" / "asked").exists() or not asked.read_text():
            await asyncio.sleep(0.01)
        checking.cancel()
        process = int(asked.read_text())
        while True:
            try:
                os.kill(process, 0)
            except ProcessLookupError:
                return
            await asyncio.sleep(0.01)


@pytest.mark.skipif(os.name != "posix", reason="a pipe that ends a program")
def test_who_reads_no_further_gets_no_error(tmp_path: Path) -> None:
    """As with `doctor | head`."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "proxy", "doctor", "--offline"]
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path), "PATH": "/nowhere"}
    with os.fdopen(writer, "wb") as out:
        done = subprocess.run(command, env=environment, stdout=out, stderr=subprocess.PIPE, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("line", ["--live p1 --json", "--live p1 --bundle", "--live p1 --offline", "--model x"])
async def test_options_that_do_not_go_together(line: str, world: World) -> None:
    status, out = await world.run(*line.split())
    assert status == 1 and "--live" in out


class _Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@rows(
    "stream, variables, mark",
    [
        (_Terminal(), {}, "\x1b[31m✗ FAIL\x1b[0m"),
        (_Terminal(), {"NO_COLOR": "1"}, "✗ FAIL"),
        (_Terminal(), {"TERM": "dumb"}, "✗ FAIL"),
        (io.StringIO(), {}, "x FAIL"),
    ],
)
def test_colours_are_for_terminals(stream: io.StringIO, variables: dict[str, str], mark: str) -> None:
    assert Style.of(stream, variables).mark("fail") == mark


def test_on_a_terminal_long_lines_stand_beside_the_mark() -> None:
    finding = fail("a" * 20, "word " * 30, "export " + "x" * 200)
    first, *rest, cure = lines_of(finding, Style(columns=80))
    assert len(rest) == 2 and all(line.startswith(" " * 9 + "word") for line in rest)
    assert max(map(len, (first, *rest))) <= 80 and cure.endswith("x" * 200)
    assert len(lines_of(finding, Style())) == 2  # a pipe gets a line for each


async def test_one_finding_for_all_that_is_of_somebody_else(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    user = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: user)
    status, out = await world.run("--offline")
    assert status == 1 and out.count("belongs to another user: it belongs to") == 1
    assert re.search(rf"FAIL {world.config}, with \d+ more beside or below it, belongs to another user", out), out
    assert f"cure: sudo chown -R {user} {world.config}\n" in out


@rows("data", [b"", b"\x30", b"\x30\x84\xff\xff", b"\x30\x03\x30\x01\x00", bytes(range(256))])
def test_a_certificate_that_is_none_has_no_issuer(data: bytes) -> None:
    assert issuer_in(data) == ""
