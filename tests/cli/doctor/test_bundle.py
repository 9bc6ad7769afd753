"""`doctor --bundle`: what is in the archive, and what is in none."""

from __future__ import annotations

import base64
import json
import socket
import tarfile
from pathlib import Path

import pytest

from proxy.cli.doctor import bundle

from .conftest import World

ACCOUNT, EMAIL = "8f14e45f-ceea-467f-9a5f-1dc3aa0e5d77", "lin.doe@corp.example"
PROMPT = "the plan to buy the neighbour's house"


def _jwt(**claims: object) -> str:
    parts = ({"alg": "none"}, claims)
    return (
        ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + ".c2ln"
    )


ACCESS = _jwt(sub="user-0042", email=EMAIL, exp=4_000_000_000)
SECRETS = {
    "access token": ACCESS,
    "subject of the token": "user-0042",
    "refresh token": "rt_plainwordsinlowercase",
    "account id": ACCOUNT,
    "e-mail": EMAIL,
    "caller key": "callerkeyinlowercase",
    "key of p4": "opencodekeyinlowercase",
    "client token": "clienttokeninlowercase",
    "user of the outgoing proxy": "proxyuser",
    "password of the outgoing proxy": "p@ss word",
    "password as it is written": "p%40ss%20word",
    "credentials as they travel": base64.b64encode(b"proxyuser:p@ss word").decode(),
    "key of another service": "sk-proj-abcdefghijklmnopqrstuvwxyz",
    "opaque token": "Zx9aB3kLm2Qw8Er5Ty7Ui1Op",
    "somebody else's e-mail": "mallory@elsewhere.example",
    "prompt": PROMPT,
}


def _fill(world: World) -> None:
    """All of it, in every place."""
    credential = {"access": ACCESS, "refresh": SECRETS["refresh token"], "expires": 4_000_000_000_000}
    world.write("config/p1/auth.json", {**credential, "accountId": ACCOUNT})
    said = " ".join(value for name, value in SECRETS.items() if name != "prompt")
    world.write("config/config.json", {"apiKey": SECRETS["caller key"], said[:60]: "x", "p1": {"userAgent": said}})
    records = [
        {"t": "2026-08-19T12:00:00Z", "level": "warn", "service": "auth", "msg": said, "fields": {"message": said}},
        {"level": "info", "fields": {"reqId": "1", "prompt": PROMPT, "message": f"bad value '{PROMPT} {PROMPT}'"}},
        {"fields": {"url": f"https://proxyuser:p%40ss%20word@h/?token={ACCESS}", said: said, "body": {"a": PROMPT}}},
        {"fields": {"home": str(world.home), "host": socket.gethostname(), "nested": [[{"input": [PROMPT]}]]}},
    ]
    lines = [*(json.dumps(record) for record in records), f"no record: {said} {PROMPT}"]
    world.write("state/model-proxy/proxy.log", "\n".join(lines) + "\n")
    for number in range(9):
        failed = {"message": said, "response": {"json": {"error": {"message": said}}, "text": PROMPT}, "status": 429}
        world.write(f"state/model-proxy/errors/{number}-{EMAIL}.json", failed)
    world.write("state/model-proxy/errors/99-torn.json", f'{{"message": "{said} {PROMPT}')
    world.write(f"state/model-proxy/{EMAIL}", PROMPT)
    world.write(f"state/model-proxy/traffic/{PROMPT}/1/x.json", PROMPT)
    world.write("home/.claude/settings.json", {"env": {"ANTHROPIC_CUSTOM_TOKEN": SECRETS["client token"]}})


VARIABLES = {
    "PROXY_P4_API_KEY": SECRETS["key of p4"],
    "ANTHROPIC_AUTH_TOKEN": SECRETS["client token"],
    "ANTHROPIC_API_KEY": SECRETS["key of another service"],
    "HTTPS_PROXY": "http://proxyuser:p%40ss%20word@127.0.0.1:9",
    "NO_PROXY": "127.0.0.1",
}


def _members(path: Path) -> dict[str, str]:
    with tarfile.open(path) as archive:
        found = {info.name.partition("/")[2]: (info, archive.extractfile(info)) for info in archive}
        assert all(info.mode == 0o600 and not info.uname for info, _ in found.values())
        return {name: file.read().decode() for name, (_, file) in found.items() if file is not None}


async def test_nothing_secret_is_in_the_archive(world: World) -> None:
    _fill(world)
    _, out = await world.run("--bundle", "b.tar.gz", "--offline", **VARIABLES)
    path = world.root / "here" / "b.tar.gz"
    assert path.stat().st_mode & 0o777 == 0o600
    members = _members(path)
    whole = "\n".join(f"{name}\n{text}" for name, text in members.items())
    private = {**SECRETS, "home": str(world.home), "host": socket.gethostname()}
    if len(private["host"]) < 3:
        del private["host"]
    for name, secret in private.items():
        assert secret not in whole, (name, [part for part, text in members.items() if secret in text])
    assert '"home": "~"' in whole
    assert all(secret not in out for secret in SECRETS.values())


async def test_what_helps_is_in_the_archive(world: World) -> None:
    _fill(world)
    _, out = await world.run("--bundle", **VARIABLES)
    (path,) = (world.root / "here").glob("model-proxy-bundle-*.tar.gz")
    assert str(path.name) in out and "Look before you attach it" in out
    members = _members(path)
    assert {name.partition("/")[0] for name in members} == {
        *("report.txt", "report.json", "versions.json", "settings.json", "variables.json", "files.txt"),
        *("models.json", "proxy.log", "errors"),
    }
    assert "p1 (codex): signed in" in members["report.txt"]
    assert "model-proxy" in json.loads(members["versions.json"])
    settings = {row["name"]: row for row in json.loads(members["settings.json"])}
    assert settings["port"]["source"] == "PROXY_PORT" and settings["apiKey"]["value"] == "[redacted]"
    assert "ANTHROPIC_AUTH_TOKEN" in json.loads(members["variables.json"])
    assert "-rw-" in members["files.txt"] and "<config>/p1/auth.json" in members["files.txt"]
    records = members["proxy.log"].splitlines()
    assert len(records) == 5 and json.loads(records[0])["service"] == "auth"
    errors = [name for name in members if name.startswith("errors/")]
    assert len(errors) == bundle.ERROR_FILES and '"status": 429' in members["errors/2.json"]


async def test_the_archive_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "LOG_RECORDS", 10)
    world.write("state/model-proxy/proxy.log", "".join(f'{{"n": {n}}}\n' for n in range(1000)))
    for number in range(bundle.LISTED + 50):
        world.write(f"state/model-proxy/many/{number}", "")
    await world.run("--bundle", "b.tar.gz", "--offline")
    members = _members(world.root / "here" / "b.tar.gz")
    assert members["proxy.log"].splitlines() == [f'{{"n": {n}}}' for n in range(990, 1000)]
    assert len(members["files.txt"].splitlines()) <= bundle.LISTED + 2


async def test_a_file_that_exists_stays(world: World) -> None:
    path = world.write("here/b.tar.gz", "mine")
    status, out = await world.run("--bundle", "b.tar.gz", "--offline")
    assert status == 1 and "exists and stays as it is" in out and path.read_text() == "mine"


async def test_a_set_up_that_cannot_be_read_gives_an_archive_too(world: World) -> None:
    world.write("config/config.json", "{oops")
    status, _ = await world.run("--bundle", "b.tar.gz", "--offline")
    assert status == 1 and "not JSON" in _members(world.root / "here" / "b.tar.gz")["report.txt"]
