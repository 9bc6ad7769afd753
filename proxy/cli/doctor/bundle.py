"""`doctor --bundle`: an archive to attach to a bug report.

It has the report, names and sources of the settings, the end of the log, the newest failed answers without the texts of
the conversation, names and rights of the files, and the models. All of it went through a `Scrubber`.
"""

from __future__ import annotations

import io
import json
import os
import platform
import stat
import tarfile
import time
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from proxy.auth.store import new_file
from proxy.cli.command import APP
from proxy.cli.config_command import shown_settings
from proxy.cli.doctor.finding import Say, Section, Setup
from proxy.cli.doctor.report import Style, as_json, as_text
from proxy.cli.doctor.scrub import Scrubber
from proxy.cli.models import model_table
from proxy.config import ConfigError
from proxy.observe.capture.layout import TRAFFIC
from proxy.version import __version__

#: Bytes read from the end of the log, and records kept of them.
LOG_BYTES, LOG_RECORDS = 1024 * 1024, 2_000
#: Failed answers, the newest, and bytes of each.
ERROR_FILES, ERROR_BYTES = 5, 64 * 1024
#: Files that are listed.
LISTED = 500
_PACKAGES = ("aiohttp", "tiktoken", "multidict", "yarl")
#: Variables whose presence the bundle shows, never their values.
_NAMED = ("PROXY_", "ANTHROPIC_", "CLAUDE_", "OPENAI_", "CODEX_", "SSL_", "XDG_", "OPENCODE_", "CURSOR_")
_NAMED_TOO = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS", "TERM", "NO_COLOR")


def write_bundle(target: Path, sections: Sequence[Section], setup: Setup, *, say: Say) -> Path:
    """Writes the archive, private to its owner, and lists its contents. Raises ConfigError for a file that exists."""
    members = {name: data.encode("utf-8", "replace") for name, data in _members(sections, setup)}
    path = target / time.strftime(f"{APP}-bundle-%Y%m%d-%H%M%S.tar.gz") if target.is_dir() else target
    try:
        with new_file(path) as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
            for name, data in members.items():
                info = tarfile.TarInfo(f"{APP}-bundle/{name}")
                info.size, info.mode, info.mtime = len(data), 0o600, int(time.time())
                archive.addfile(info, io.BytesIO(data))
    except FileExistsError:
        raise ConfigError(f"{path} exists and stays as it is; name another file") from None
    say(f"written: {path}, with {', '.join(members)}")
    say("no prompts, keys, tokens, account ids or e-mail addresses should be in it. Look before you attach it:")
    say(f"  tar -xzOf {path} | less")
    return path


def _members(sections: Sequence[Section], setup: Setup) -> Iterator[tuple[str, str]]:
    scrubber = Scrubber(setup)
    yield "report.txt", scrubber.text(as_text(sections, Style())) + "\n"
    yield "report.json", _json(scrubber.value(as_json(sections, setup.asked)))
    yield "versions.json", _json(_versions())
    yield "settings.json", _json(scrubber.value(_settings(setup)))
    yield "variables.json", _json(scrubber.value(_variables(setup)))
    yield "files.txt", scrubber.text("\n".join(_files(setup))) + "\n"
    yield "models.json", _json(scrubber.value(model_table(setup.context.providers, setup.config)))
    if log := _log(setup, scrubber):
        yield "proxy.log", log
    for number, error in enumerate(_errors(setup, scrubber), 1):
        yield f"errors/{number}.json", _json(error)


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, default=str) + "\n"


def _versions() -> dict[str, str]:
    packages = {name: metadata.version(name) for name in _PACKAGES}
    return {
        APP: __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        **packages,
    }


def _settings(setup: Setup) -> Any:
    """The settings as rows. Their names do not mark secrets, but these are hidden already."""
    if setup.file is None:
        return "they cannot be read, see the report"
    rows = shown_settings(setup.file, setup.context)
    return [{"name": name, **row} for name, row in rows.items()]


def _variables(setup: Setup) -> list[str]:
    named = (name for name in setup.environment if name.startswith(_NAMED) or name.upper() in _NAMED_TOO)
    return sorted(named)


# -- files


def _files(setup: Setup) -> list[str]:
    """Rights, size, age and name of the files in both folders. Captures are only counted: their names have session
    ids."""
    lines: list[str] = []
    for title, root in (("config", setup.config_root), ("state", setup.state_root)):
        lines.append(f"<{title}> is {root}")
        for place, folders, names in os.walk(root):
            folders[:] = sorted(name for name in folders if name != TRAFFIC)
            for name in sorted((*folders, *names)):
                if len(lines) < LISTED:
                    lines.append(_file_line(Path(place, name), title, root))
    return lines


def _file_line(path: Path, title: str, root: Path) -> str:
    try:
        info = path.lstat()
    except OSError:
        return f"?  <{title}>/{path.relative_to(root)}"
    age = (time.time() - info.st_mtime) / 3600
    own = "own" if not hasattr(os, "geteuid") or info.st_uid == os.geteuid() else "foreign"
    return f"{stat.filemode(info.st_mode)} {own} {info.st_size:>10} {age:>8.1f} h  <{title}>/{path.relative_to(root)}"


def _log(setup: Setup, scrubber: Scrubber) -> str:
    """The last records, each scrubbed once more."""
    data = _end_of(setup.state_root / "proxy.log", LOG_BYTES)
    return "".join(f"{_record(line, scrubber)}\n" for line in data.splitlines()[-LOG_RECORDS:])


def _record(line: bytes, scrubber: Scrubber) -> str:
    try:
        return json.dumps(scrubber.record(json.loads(line)), default=str)
    except (ValueError, RecursionError):
        return f"[no record, len={len(line)}]"


def _end_of(path: Path, most: int) -> bytes:
    """Whole lines from the end of a file; none if it does not exist."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - most))
            data = file.read(most)
    except OSError:
        return b""
    return data if size <= most else data.partition(b"\n")[2]


def _errors(setup: Setup, scrubber: Scrubber) -> Iterator[Any]:
    """The failed answers, newest first: their names begin with the time."""
    try:
        newest = sorted((setup.state_root / "errors").glob("*.json"), reverse=True)[:ERROR_FILES]
    except OSError:
        return
    for path in newest:
        data = _end_of(path, ERROR_BYTES)
        try:
            yield scrubber.record(json.loads(data))
        except (ValueError, RecursionError):
            yield f"[no record, len={len(data)}]"
