"""The folders of settings, credentials and state: their rights, leftovers and sizes."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from proxy.auth.lock import lock_now
from proxy.auth.store import CredentialFile
from proxy.cli.config_file import FILE_NAME
from proxy.cli.doctor.finding import Finding, Group, Setup, fail, is_file, nearest_folder, note, ok, own_id, warn
from proxy.cli.paths import FOLDER_VARIABLE
from proxy.cli.printable import amount, counted, one_line
from proxy.core.allowances.accounts import DEFAULT
from proxy.loading import settings_of
from proxy.observe.capture.layout import TRAFFIC
from proxy.providers.accounts.named import credential_folders, names_in, root_of

#: A renewal takes seconds; a marker or a temporary file that is older was left by a process that died.
LEFT_AFTER_S = 120.0
#: Bytes of the log and its older parts together.
MUCH_LOG_BYTES = 200 * 1024 * 1024
#: Less is no room for the history, whose log of writes takes some megabytes.
NO_ROOM_BYTES = 1024 * 1024
#: Files of one folder that are looked at: more of them only come from elsewhere.
MAX_FILES = 10_000


def check_credentials(setup: Setup) -> Sequence[Finding]:
    """Checks each folder of a provider and its files."""
    found: list[Finding] = []
    root = setup.config_root
    if not root.is_dir():
        named = setup.environment.get(FOLDER_VARIABLE)
        return [] if named else [note(f"{root} is not there yet", "it is made with the first sign-in")]
    if not _is_entered(root):
        why = "settings and sign-ins in it can neither be read nor saved"
        return [fail(f"{root} cannot be entered", why, usable_again(root, setup))]
    paths = [root, *_held(setup)]
    found += _foreign(paths, setup)
    for path in paths:
        found += _rights(path, is_root=path == root)
    return found or [ok(f"{root}: no other user can read the credentials")]


def _is_entered(folder: Path) -> bool:
    return os.access(folder, os.R_OK | os.X_OK)


def usable_again(path: Path, setup: Setup) -> str:
    """The command that lets this user read and write the files."""
    user, place = own_id(), _quoted(path)
    if user is None:
        return f"look at the rights of {place}"
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        return f"sudo mount -o remount,rw {place}, or {setup.export('XDG_STATE_HOME', '/a/folder/on/another/disk')}"
    return f"chmod -R u+rwX {place}" if path.stat().st_uid == user else f"sudo chown -R {user} {place}"


def _held(setup: Setup) -> Iterator[Path]:
    """The paths that must be private to their owner: folders of credentials, their files, and a config.json with a
    secret."""
    for entry in setup.context.providers:
        for folder in credential_folders(setup.config_root, entry.label):
            if folder.is_dir():
                yield folder
                yield from _files(folder)
    settings = settings_of(setup.context.providers)
    if setup.file is not None and any(s.secret and setup.file.source(s.name) == FILE_NAME for s in settings):
        yield setup.file.path


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())[:MAX_FILES]
    except OSError:
        return []


def _foreign(paths: Sequence[Path], setup: Setup) -> Iterator[Finding]:
    """One finding for all files of other users: after `sudo`, one command mends them."""
    user = own_id()
    foreign = [path for path in paths if user is not None and _owner(path) not in (None, user)]
    if foreign:
        more = f", with {len(foreign) - 1} more beside or below it," if len(foreign) > 1 else ""
        why = f"it belongs to user {_owner(foreign[0])}, and you are {user}: a sign-in cannot be renewed there"
        cure = f"sudo chown -R {user} {_quoted(setup.config_root)}"
        yield fail(f"{foreign[0]}{more} belongs to another user", why, cure)


def _owner(path: Path) -> int | None:
    try:
        return path.stat().st_uid
    except OSError:
        return None


def _rights(path: Path, *, is_root: bool) -> Iterator[Finding]:
    try:
        info = path.stat()
    except OSError as error:
        yield fail(f"{path} cannot be looked at", str(error.strerror), f"ls -ld {_quoted(path)}")
        return
    user, folder = own_id(), stat.S_ISDIR(info.st_mode)
    if user is None:
        return
    needed = os.R_OK | (os.W_OK | os.X_OK if folder else os.W_OK)
    if info.st_uid == user and not os.access(path, needed):
        mode = "u+rwx" if folder else "u+rw"
        yield fail(f"{path} cannot be used", "its owner may not read and write it", f"chmod {mode} {_quoted(path)}")
    if info.st_mode & 0o077 and not is_root:
        why = f"mode {stat.S_IMODE(info.st_mode):04o}: other users of this machine may be able to read credentials"
        yield warn(f"{path} is open to others", why, f"chmod {'700' if folder else '600'} {_quoted(path)}")


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def check_leftovers(setup: Setup) -> Sequence[Finding]:
    """Checks for leftovers of dead or hanging processes beside a credential."""
    found: list[Finding] = []
    for label, name in _accounts(setup):
        file = CredentialFile(root_of(setup.config_root, label, name), label)
        for path in _files(file.path.parent):
            if path.name.endswith(".tmp") and _age(path) > LEFT_AFTER_S:
                found.append(note(f"{path} was left behind", "a save did not come to its end", f"rm {_quoted(path)}"))
        if _age(file.pending_path) > LEFT_AFTER_S:
            why = "a renewal was cut off: if the issuer had answered already, the sign-in has to be made again"
            called = label if name == DEFAULT else f"{label} --as {name}"
            cure = f"{setup.program} usage {called}; if that asks for it: {setup.program} auth login {called}"
            found.append(warn(f"{file.pending_path} was left behind", why, cure))
        if _is_locked(file.lock_path):
            why = "another process renews or signs in at this moment, or hangs"
            cure = f"look again in a minute; if it stays: fuser -v {_quoted(file.lock_path)}"
            found.append(note(f"{file.lock_path} is held", why, cure))
    return found


def _accounts(setup: Setup) -> Iterator[tuple[str, str]]:
    """The provider's label and the name of each account."""
    for label in (entry.label for entry in setup.context.providers):
        yield from ((label, name) for name in (DEFAULT, *names_in(setup.config_root, label)))


def _age(path: Path) -> float:
    """Seconds since its last change; 0 for a missing file."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0


def _is_locked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        lock_now(descriptor)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def check_state(setup: Setup) -> Sequence[Finding]:
    """Checks whether the log can be written, and its size."""
    root = setup.state_root
    place = nearest_folder(root)
    blocked = next((path for path in (root, *root.parents) if is_file(path)), None)
    if blocked is not None:
        return [fail(f"{blocked} is no folder", "the log belongs into it", f"mv {_quoted(blocked)} {blocked}.old")]
    if not os.access(place, os.W_OK | os.X_OK):
        why = "the log, failed answers and captures cannot be kept"
        return [fail(f"{place} cannot be written", why, usable_again(place, setup))]
    log, rotated = root / "proxy.log", [path for path in _files(root) if path.name.startswith("proxy.")]
    if log.exists() and not os.access(log, os.W_OK):
        return [fail(f"{log} cannot be written", "records are lost", usable_again(log, setup))]
    return [_log_size(root, rotated)]


def _log_size(root: Path, parts: Sequence[Path]) -> Finding:
    size = _size(parts)
    if size > MUCH_LOG_BYTES:
        what = f"the log has {amount(size)} in {counted(len(parts), 'file')}"
        return note(what, "older parts are never removed by themselves", f"rm {_quoted(root)}/proxy.[0-9]*")
    return ok(f"{root} can be written; the log has {amount(size)}")


def _size(paths: Iterable[Path]) -> int:
    return sum(_stat_size(path) for path in paths)


def _stat_size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def check_captures(setup: Setup) -> Sequence[Finding]:
    """Checks for captures: these are prompts on the disk."""
    folder = setup.state_root / TRAFFIC
    found = []
    if setup.config.captures:
        source = setup.file.source("PROXY_TRAFFIC_LOG") if setup.file is not None else None
        why = f"prompts, answers and tool results are kept in {folder}"
        found.append(note("captures are on", why, setup.unset(source or "PROXY_TRAFFIC_LOG")))
    sizes = [_stat_size(path) for path, _ in zip(_below(folder), range(MAX_FILES), strict=False)]
    if sizes:
        what = f"captures take {amount(sum(sizes))} in {counted(len(sizes), 'file')}"
        what += " or more" if len(sizes) == MAX_FILES else ""
        found.append(note(what, "they hold prompts and answers", f"{setup.program} captures clear --older-than 7d"))
    return found


def _below(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        yield from (Path(place, name) for name in names)


def check_history(setup: Setup) -> Sequence[Finding]:
    """Checks whether the history is whole, and can be written."""
    from proxy.observe.history.schema import FILE_NAME as HISTORY

    path = setup.state_root / HISTORY
    if not setup.config.history:
        source = setup.file.source("history.enabled") if setup.file is not None else None
        why = "reports and the monitors' History know nothing of this time"
        return [note("the history is off", why, setup.unset(source or "PROXY_HISTORY"))]
    if not os.access(setup.state_root, os.R_OK | os.X_OK) or not path.exists():  # `check_state` tells the rest
        return []
    if not is_file(path):
        return [warn(f"{path} is no file", "the history is not kept", f"mv {_quoted(path)} {_quoted(path)}.old")]
    if not os.access(path, os.R_OK | os.W_OK):
        return [warn(f"{path} cannot be written", "the history is not kept", usable_again(path, setup))]
    return [_history(path, setup)]


def _history(path: Path, setup: Setup) -> Finding:
    import sqlite3

    from proxy.observe.history.problems import NewerHistory, reason_of
    from proxy.observe.history.schema import reading

    try:
        with reading(path) as db:
            (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
            (count,) = db.execute("SELECT count(*) FROM requests").fetchone()
    except NewerHistory as error:
        aside = f"mv {_quoted(path)} {_quoted(path)}.newer"
        return warn(f"{path}: {reason_of(error)}", "this version keeps no history", f"{aside}, or use that version")
    except (sqlite3.Error, OSError) as error:
        found, count = reason_of(error), 0
    if found == "ok" and shutil.disk_usage(path.parent).free < NO_ROOM_BYTES:
        why = "the disk is full: the history is not kept"
        return warn(f"{path} cannot grow", why, f"make room on the disk, or {setup.program} history clear")
    if found == "ok":
        return ok(f"the history has {counted(count, 'request')} in {amount(_stat_size(path))}")
    why = "it is not kept, and reports say less than there was, or nothing"
    return warn(f"{path}: {one_line(str(found))}", why, f"{setup.program} history clear")


FILES = Group(
    "files", "Files and rights", (check_credentials, check_leftovers, check_state, check_captures, check_history)
)
