"""Files of a newer version, read by this one, as after going back: no crash, no sign-in lost, nothing guessed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from harness import Live, Notes, ask

from proxy.cli.command import Context
from proxy.cli.config_file import ConfigFile
from proxy.core.allowances.report import Allowance, AllowanceWindow
from proxy.loading import load
from proxy.observe.log.file_log import FileLog
from proxy.providers.accounts.allowance_store import FILE_NAME, AllowanceStore, read_kept
from proxy.providers.registry import PROVIDERS
from proxy.sandbox import Sandbox
from proxy.server.callers.keys import FILE_NAME as KEYS

NOW = 1_800_000_000.0
#: A model of each provider that keeps its sign-in in a file.
MODELS = {"p1": "gpt-5.5", "p2": "kimi-k2.6", "p3": "grok-4.6", "p5": "cursor:composer-2.5"}
#: What a newer version may add.
MORE: dict[str, Any] = {"version": 2, "scopes": ["a"], "account": {"name": "work"}, "note": None}
#: What the same may become.
OTHER_FORMS = {
    "accounts": b'{"version": 2, "accounts": {"work": {"access": "a", "refresh": "r"}}}',
    "a list": b'[{"access": "a"}]',
    "no JSON": b"\x00CRED2\xff",
}


def stored(live: Live, label: str) -> Path:
    return live.root / label / "auth.json"


def record(live: Live, label: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(stored(live, label).read_text())
    return found


# -- sign-ins


@pytest.mark.parametrize("label", ["p1", "p2", "p5"])
async def test_members_that_are_not_known_are_kept(live: Live, label: str) -> None:
    stored(live, label).write_text(json.dumps({**record(live, label), **MORE}))
    answer = await live.post(ask(model=MODELS[label]))
    assert answer.status == 200
    assert MORE.items() <= record(live, label).items()


async def test_members_that_are_not_known_outlive_a_renewal(live: Live) -> None:
    stored(live, "p2").write_text(json.dumps({**record(live, "p2"), **MORE}))
    before = record(live, "p2")
    live.sandbox.p2.revoke_access()
    assert (await live.post(ask(model=MODELS["p2"]))).status == 200
    after = record(live, "p2")
    assert live.sandbox.p2.refreshes == 1 and after["access"] != before["access"] and MORE.items() <= after.items()


@pytest.mark.parametrize("form", OTHER_FORMS.values(), ids=OTHER_FORMS)
@pytest.mark.parametrize("label", MODELS)
async def test_a_file_of_another_form_is_no_sign_in_and_stays_as_it_is(live: Live, label: str, form: bytes) -> None:
    stored(live, label).write_bytes(form)
    answer = await live.post(ask(model=MODELS[label]))
    assert (answer.status, answer.error["type"]) == (401, "authentication_error")
    assert f"auth login {label}" in answer.error["message"]
    assert stored(live, label).read_bytes() == form


async def test_a_file_of_p3_has_no_further_members_and_stays_as_it_is(live: Live) -> None:
    more = json.dumps({**record(live, "p3"), "version": 2}).encode()
    stored(live, "p3").write_bytes(more)
    answer = await live.post(ask(model=MODELS["p3"]))
    assert answer.status == 401 and "auth login p3" in answer.error["message"]
    assert stored(live, "p3").read_bytes() == more


async def test_other_files_beside_a_sign_in_stay(sandbox: Sandbox, tmp_path: Path) -> None:
    beside = tmp_path / "p1" / "work" / "auth.json"
    beside.parent.mkdir(parents=True)
    beside.write_text("{}")
    async with Live(sandbox, tmp_path) as live:
        assert (await live.post(ask())).status == 200
    assert beside.read_text() == "{}"


# -- settings

NEWER = {"version": 2, "port": 19001, "p1": {"effort": "high", "mood": "calm"}, "newGroup": {"a": [1]}, "list": []}


def test_settings_that_are_not_known_are_warnings() -> None:
    config, warnings = load({}, NEWER)
    assert config.port == 19001
    assert sorted(line.split("unknown key ")[1].split(";")[0].split(" ")[0] for line in warnings) == [
        "list",
        "newGroup",
        "p1.mood",
        "version",
    ]


def test_a_running_proxy_keeps_its_settings_when_a_newer_file_has_values_that_it_does_not_know(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(NEWER))
    file = ConfigFile(Context({"PROXY_CONFIG_DIR": str(tmp_path)}, PROVIDERS), reload_s=0.0)
    told: list[str] = []
    file.warn = told.append
    before = file.config
    path.write_text(json.dumps({**NEWER, "autoMode": "a-word-of-tomorrow"}))
    assert file.current() == before
    assert len(told) == 1 and "autoMode" in told[0]


# -- what is only remembered


@pytest.mark.parametrize(
    "newer", [b'{"version": 2, "accounts": []}', b'{"version": 1, "accounts": {}}', b"[]", b"\xff\x00", b"[" * 100_000]
)
async def test_allowances_of_another_version_are_told_of_and_begun_anew(tmp_path: Path, newer: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(newer)
    notes = Notes()
    store = AllowanceStore(notes, lambda: NOW, folder=tmp_path)
    await store.load()
    assert store.current == {} and (tmp_path / FILE_NAME).read_bytes() == newer
    assert "allowances_not_read" in str(notes.records)
    store.tell("p1", None, Allowance((AllowanceWindow("week", 5, NOW),)))
    await store.close()
    assert [provider for provider, _ in read_kept(tmp_path / FILE_NAME, NOW)] == ["p1"]


@pytest.mark.parametrize("newer", [b'{"version": 2, "keys": []}', b'{"version": 1, "keys": [', b"", b"[]"])
async def test_keys_of_another_version_open_nothing_and_stay_as_they_are(
    sandbox: Sandbox, tmp_path: Path, newer: bytes
) -> None:
    path = tmp_path / KEYS
    path.write_bytes(newer)
    async with Live(sandbox, tmp_path, caller_keys=path) as live:
        answer = await live.post(ask())
    assert answer.status == 401 and "keys_not_used" in str(live.notes.records) and path.read_bytes() == newer


async def test_allowances_with_more_members_are_read(tmp_path: Path) -> None:
    window = {"title": "week", "used": 5, "asOf": NOW, "burst": {"a": 1}}
    account = {"provider": "p9", "account": "", "windows": [window, "odd"], "credits": 3}
    (tmp_path / FILE_NAME).write_text(json.dumps({"version": 1, "accounts": [account, 7], "more": True}))
    assert [known.windows[0].used for known in read_kept(tmp_path / FILE_NAME, NOW).values()] == [5]


def test_a_log_of_a_newer_version_is_written_on(tmp_path: Path) -> None:
    (tmp_path / "proxy.log").write_bytes(b'\x00{"format": 2}\n')
    log = FileLog(tmp_path, clock=lambda: NOW)
    log.write("info", "server", "here")
    assert log.close()
    first, second = (tmp_path / "proxy.log").read_bytes().splitlines()
    assert first == b'\x00{"format": 2}' and json.loads(second)["msg"] == "here"
