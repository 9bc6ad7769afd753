"""The credential file: what is read, what is written, and how."""

from __future__ import annotations

import base64
import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from proxy.auth import store
from proxy.auth.jwt import NO_END_MS
from proxy.auth.lock import lock_now
from proxy.auth.store import Credential, CredentialFile, Fields, remove_leftovers, write_private
from proxy.core.hiding.secret import Secret
from proxy.errors import ProxyError


def credential(**changes: Any) -> Credential:
    values: dict[str, Any] = {"access": Secret("a"), "refresh": Secret("r"), "expires_ms": 1_800_003_600_000}
    return Credential(**{**values, **changes})


@pytest.fixture
def file(tmp_path: Path) -> CredentialFile:
    return CredentialFile(tmp_path, "p1")


def put_text(file: CredentialFile, text: str | bytes) -> None:
    file.path.parent.mkdir(parents=True, exist_ok=True)
    file.path.write_bytes(text if isinstance(text, bytes) else text.encode())


async def test_record_is_stored_and_read_back(tmp_path: Path, file: CredentialFile) -> None:
    await file.save(credential())
    assert file.path == tmp_path / "p1" / "auth.json"
    assert json.loads(file.path.read_text()) == {"access": "a", "refresh": "r", "expires": 1800003600000}
    assert file.load() == credential()


async def test_modes_are_private_and_nothing_is_left_behind(tmp_path: Path) -> None:
    root = tmp_path / "config" / "model-proxy"
    old = os.umask(0)
    try:
        file = CredentialFile(root, "p1")
        await file.put(credential())
    finally:
        os.umask(old)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (root, *root.rglob("*"))}
    assert modes == {"model-proxy": 0o700, "p1": 0o700, "auth.json": 0o600, "auth.json.refresh.lock": 0o600}


async def test_lax_folder_and_file_are_tightened(file: CredentialFile) -> None:
    put_text(file, "{}")
    file.path.parent.chmod(0o755)
    file.path.chmod(0o644)
    await file.save(credential())
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert file.path.parent.stat().st_mode & 0o777 == 0o700


async def test_unknown_members_and_account_survive(file: CredentialFile) -> None:
    put_text(file, '{"access":"a","refresh":"r","expires":1,"account_id":"Z","scope":"x","n":[1]}')
    loaded = file.load()
    assert loaded == credential(expires_ms=1, account_id="Z", extra={"scope": "x", "n": [1]})
    assert loaded is not None
    await file.save(loaded)
    members = {"access": "a", "refresh": "r", "expires": 1, "accountId": "Z", "scope": "x", "n": [1]}
    assert json.loads(file.path.read_text()) == members


async def test_other_member_names(tmp_path: Path) -> None:
    file = CredentialFile(tmp_path, "p3", fields=Fields(expires_ms=("expires_at_ms",)))
    await file.save(credential(expires_ms=7))
    assert json.loads(file.path.read_text())["expires_at_ms"] == 7
    assert file.load() == credential(expires_ms=7)


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "null", '"a"', "{}", b"\xff\xfe", "[" * 100_000),
        *('{"access":"a","refresh":"r"}', '{"access":"a","expires":1}', '{"access":"a","refresh":null,"expires":1}'),
        *(f'{{"access":{access},"refresh":"r","expires":1}}' for access in ('" "', 1)),
        *('{"access":"a\\nb","refresh":"r","expires":1}', '{"access":"a","refresh":"\\ud800","expires":1}'),
        *(f'{{"access":"a","refresh":"r","expires":{end}}}' for end in ('"1"', "true", "NaN", "1e999")),
        '{"access":"' + "a" * store.MAX_FILE_BYTES + '","refresh":"r","expires":1}',
    ],
)
def test_malformed_is_no_credential(file: CredentialFile, text: str | bytes) -> None:
    put_text(file, text)
    assert file.load() is None


def test_absurd_numbers_are_numbers(file: CredentialFile) -> None:
    put_text(file, '{"access":"a","refresh":"r","expires":' + "9" * 400 + "}")
    loaded = file.load()
    assert loaded is not None and loaded.expires_ms == int("9" * 400)


def test_nothing_and_a_folder_are_no_credential(file: CredentialFile) -> None:
    assert file.load() is None
    file.path.mkdir(parents=True)
    assert file.load() is None


async def test_load_sees_another_writer_but_parses_once(tmp_path: Path) -> None:
    ours, theirs = CredentialFile(tmp_path, "p1"), CredentialFile(tmp_path, "p1")
    await theirs.save(credential())
    first = ours.load()
    assert first == credential() and ours.load() is first and ours.reload() is not first
    await theirs.save(credential(access=Secret("b")))
    assert ours.load() == credential(access=Secret("b"))
    await theirs.delete()
    assert ours.load() is None


#: Members of the end of a token: a JWT says it itself.
OWN_END = Fields(access=("accessToken",), refresh=("refreshToken",), expires_ms=(), account_id=(), needs_refresh=False)
JWT, *UNTOLD = (
    f"e30.{base64.urlsafe_b64encode(claims.encode()).decode()}.s"
    for claims in (
        '{"exp":1800000000}',
        *(
            f'{{"exp":{end}}}'
            for end in ('"1800000000"', "true", "null", "1e400", "-1e400", "1e300", "NaN", "9" * 4200)
        ),
        *("{}", "[]"),
    )
)

#: content of the file -> access token, refresh token, end; None: no sign-in
WITHOUT_TIME: list[tuple[dict[str, Any], tuple[str, str, int] | None]] = [
    ({"accessToken": JWT, "refreshToken": "r"}, (JWT, "r", 1_800_000_000_000)),
    *(({"accessToken": token, "refreshToken": "r"}, (token, "r", NO_END_MS)) for token in ("opaque", "a.b", *UNTOLD)),
    *(({"accessToken": "a", "refreshToken": bad}, ("a", "", NO_END_MS)) for bad in (None, "", "  ", 5)),
    ({"accessToken": "a"}, ("a", "", NO_END_MS)),
    *(({"accessToken": bad, "refreshToken": "r", "apiKey": "k"}, None) for bad in ("", "  ", None, 5, "a\nb")),
    ({"accessToken": "a", "refreshToken": "r\n"}, None),
    ({"refreshToken": "r"}, None),
]


@pytest.mark.parametrize(("members", "found"), WITHOUT_TIME)
async def test_file_without_a_time(tmp_path: Path, members: dict[str, Any], found: tuple[str, str, int] | None) -> None:
    own = CredentialFile(tmp_path, "p5", fields=OWN_END)
    put_text(own, json.dumps(members))
    loaded = own.load()
    assert (loaded and (loaded.access.reveal(), loaded.refresh.reveal(), loaded.expires_ms)) == found


@pytest.mark.parametrize("more", [{}, {"refreshToken": "r"}, {"apiKey": "k"}, {"refreshToken": "r", "apiKey": "k"}])
async def test_members_that_are_absent_are_left_out(tmp_path: Path, more: dict[str, str]) -> None:
    own = CredentialFile(tmp_path, "p5", fields=OWN_END)
    put_text(own, json.dumps({"accessToken": JWT, **more}))
    loaded = own.load()
    assert loaded is not None
    await own.save(loaded)
    assert json.loads(own.path.read_text()) == {"accessToken": JWT, **more}


CLOSED = '{"access":"a","refresh":"r","expires":1,"issuer":"i","client":"c"%s}'


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        (CLOSED % "", True),
        *((CLOSED % more, False) for more in (',"scope":"s"', ',"issuer":5', ',"accountId":"A"')),
        ('{"access":"a","refresh":"r","expires":1,"issuer":"i"}', False),
    ],
)
def test_file_may_have_no_other_members(tmp_path: Path, text: str, is_read: bool) -> None:
    closed = CredentialFile(tmp_path, "p1", fields=Fields(account_id=(), texts=frozenset({"issuer", "client"})))
    assert not closed.is_unreadable
    put_text(closed, text)
    loaded = closed.load()
    assert (loaded is not None, closed.is_unreadable) == (is_read, not is_read)
    assert loaded is None or loaded.extra == {"issuer": "i", "client": "c"}


@pytest.mark.parametrize("step", ["fsync", "replace"])
async def test_failed_save_keeps_the_old_file(file: CredentialFile, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    await file.save(credential())

    def fail(*_args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os if step == "fsync" else Path, step, fail)
    with pytest.raises(OSError, match="No space"):
        await file.save(credential(access=Secret("b")))
    monkeypatch.undo()
    assert file.load() == credential()
    assert [path.name for path in file.path.parent.iterdir()] == ["auth.json"]


async def test_put_and_discard_report_trouble_with_the_folder(tmp_path: Path) -> None:
    (tmp_path / "p1").write_text("a file where the folder should be")
    file = CredentialFile(tmp_path, "p1")
    with pytest.raises(ProxyError, match="could not be changed"):
        await file.put(credential())
    await file.discard()  # nothing there to sign out of


async def test_discard_removes_everything_but_the_lock_and_may_be_repeated(file: CredentialFile) -> None:
    await file.discard()
    assert not file.path.parent.exists()
    await file.put(credential())
    await file.mark_pending(credential())
    await file.discard()
    await file.discard()
    assert [path.name for path in file.path.parent.iterdir()] == ["auth.json.refresh.lock"]


async def test_pending_marker_belongs_to_one_generation(file: CredentialFile) -> None:
    assert not file.is_pending(credential())
    await file.mark_pending(credential())
    assert file.is_pending(credential())
    assert not file.is_pending(credential(expires_ms=2))
    note = json.loads(file.pending_path.read_text())
    assert set(note) == {"auth_generation_sha256"} and len(note["auth_generation_sha256"]) == 64
    file.clear_pending()
    file.clear_pending()
    assert not file.is_pending(credential())
    file.pending_path.write_text("[]")
    assert not file.is_pending(credential())


def test_repr_hides_tokens_and_further_members() -> None:
    shown = repr(credential(access=Secret("SECRET1"), refresh=Secret("SECRET2"), extra={"apiKey": "SECRET3"}))
    assert "SECRET" not in shown
    assert hash(credential(extra={"a": []})) == hash(credential())


@pytest.mark.parametrize("member", ["access", "refresh", "accountId"])
@pytest.mark.parametrize("sign", ["\r", "\n", "\0", "\x1b", "\u00fc", "\u200b", "\t", "\x7f"])
def test_what_no_header_takes_is_no_credential(file: CredentialFile, member: str, sign: str) -> None:
    record = {"access": "a", "refresh": "r", "expires": 1, "accountId": "i"}
    write_private(file.path, json.dumps(record).encode())
    assert file.load() is not None
    write_private(file.path, json.dumps(record | {member: f"x{sign}y"}).encode())
    assert file.reload() is None and file.is_unreadable


async def test_what_a_killed_save_left_is_removed_and_what_is_being_written_stays(file: CredentialFile) -> None:
    write_private(file.path, b"{}")
    folder = file.path.parent
    left, busy, other = (folder / name for name in (".auth.json.00ff.tmp", ".auth.json.11ff.tmp", "notes.tmp"))
    for path in (left, busy, other):
        path.write_text("x")
    with busy.open("r+b") as held:
        lock_now(held.fileno())
        remove_leftovers(folder)
        assert not left.exists() and busy.exists() and other.exists() and file.path.exists()
    await file.discard()
    assert sorted(path.name for path in folder.iterdir()) == ["auth.json.refresh.lock", "notes.tmp"]


def test_a_save_whose_file_was_taken_for_left_is_done_again(
    file: CredentialFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = os.fsync

    def swept(fd: int) -> None:
        monkeypatch.setattr(os, "fsync", synced)
        for path in file.path.parent.glob(".*.tmp"):
            path.unlink()

    monkeypatch.setattr(os, "fsync", swept)
    write_private(file.path, b"whole")
    assert file.path.read_bytes() == b"whole" and not [*file.path.parent.glob(".*.tmp")]
