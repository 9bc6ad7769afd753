"""A run with captures on: what every proxy process left behind is searched for secrets and pictures.

Beside the captures also the log and the files of errors, which lie in the same state folder.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from e2e.expecting import expect
from proxy.cli.paths import config_root, state_root
from proxy.loading import SETTINGS
from proxy.observe.capture.layout import DIRECTORY_MODE, FILE_MODE, METADATA, RECEIVED, SUMMARY, TRAFFIC
from proxy.observe.capture.reading.folder import CaptureFolder, captures_in
from proxy.sandbox import Sandbox
from proxy.sandbox.oauth.issuer import AccountUpstream

#: How much of a secret is looked for, from its middle: tokens begin alike.
_ENOUGH = 20
_SHORTEST = 8
#: Of what a sign-in stores, what everybody may know.
_PUBLIC = ("scope", "issuer", "client_id")

_SIGNS: Mapping[str, re.Pattern[bytes]] = {
    "a token": re.compile(rb"eyJ[\w-]{12,}\.[\w-]{12,}\.[\w-]*"),
    "a picture in base64": re.compile(rb"(?:iVBORw0KGgo|/9j/|R0lGOD[dl]h|UklGR)[A-Za-z0-9+/=_\\-]{60,}"),
    "a picture": re.compile(
        rb"(?:\x89|\xc2\x89|\\u0089|\\x89|\xef\xbf\xbd|\\ufffd)PNG(?:\r\n|\\r\\n)|\xff\xd8\xff|\xc3\xbf\xc3\x98\xc3\xbf"
        rb"|GIF8[79]a[^\w\s\"'`,.)]|RIFF....WEBP",
        re.DOTALL,
    ),
}
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
#: Places of each picture that are looked for, and how much of it.
_PROBES, _PROBE_BYTES = 8, 36
#: Records of the log that say that captures are not whole.
_LOSSES = re.compile(rb'"(?:captures_full|captures_off|captures_cut|capture_not_written)"')


@dataclass(slots=True)
class Search:
    """One scenario, whose files are in the folder; what was found so far."""

    folder: Path
    captures: int = 0
    files: int = 0
    size: int = 0


#: The search of the scenario under way; None when captures are off.
SEARCH: ContextVar[Search | None] = ContextVar("search", default=None)


@dataclass(slots=True)
class Watched:
    """A proxy process while it runs, and its secrets."""

    search: Search
    environment: Mapping[str, str]
    sandbox: Sandbox | None
    secrets: dict[str, str] = field(default_factory=dict)  # what to look for -> what it is

    def learn(self) -> None:
        """Notes the secrets of this moment: tokens are renewed, files of credentials removed."""
        named = [*_stored(config_root(self.environment)), *_given(self.environment)]
        if self.sandbox is not None:
            named += _issued(self.sandbox)
        for name, secret in named:
            if len(secret) >= _SHORTEST:
                middle = max(0, len(secret) - _ENOUGH) // 2
                self.secrets[secret[middle : middle + _ENOUGH]] = name

    async def check(self) -> None:
        """Once the process has ended. Raises AssertionError."""
        self.learn()
        await asyncio.to_thread(self._check)

    def _check(self) -> None:
        state = state_root(self.environment)
        captures = captures_in(state / TRAFFIC)
        _check_places(state / TRAFFIC, captures)
        for capture in captures:
            _check_told(capture)
        signs = {**_SIGNS, **_probes(self.search.folder)}
        secrets = {text.encode(): name for text, name in self.secrets.items()}
        for path in _files(state):
            data = path.read_bytes()
            found = [name for text, name in secrets.items() if text in data]
            found += [f"{name} {match[0][:60]!r}" for name, sign in signs.items() if (match := sign.search(data))]
            expect(not found, f"nothing secret in {path.relative_to(state)}", found)
            expect(path.suffix != ".log" or not _LOSSES.search(data), "all captures are written", data[-1000:])
            self.search.files += 1
            self.search.size += len(data)
        self.search.captures += len(captures)


def _check_places(traffic: Path, captures: Iterable[CaptureFolder]) -> None:
    """All that is there are captures, and nobody else may read them."""
    known = {artifact.path for capture in captures for artifact in capture.artifacts()}
    for path in (traffic, *traffic.rglob("*")) if traffic.exists() else ():
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            expect(stat.S_IMODE(mode) == DIRECTORY_MODE, f"{path} is private", oct(mode))
        else:
            expect(stat.S_ISREG(mode) and stat.S_IMODE(mode) == FILE_MODE, f"{path} is private", oct(mode))
            expect(path in known, "a file is part of a capture", path)


def _check_told(capture: CaptureFolder) -> None:
    """Every text of JSON is one; a capture is of a route that may be captured, and whole."""
    for artifact in capture.artifacts():
        if artifact.path.suffix == ".json":
            artifact.json()
    metadata, summary = capture.read_object(METADATA), capture.read_object(SUMMARY)
    media = re.search("images|audio", str(metadata.get("path")))
    expect(metadata.get("kind") in RECEIVED and not media, "a route that is captured", metadata)
    expect(summary.get("outcome") and summary.get("messages_lost") == 0, f"{capture.path} is whole", summary)


def _files(state: Path) -> Iterator[Path]:
    return (path for path in sorted(state.rglob("*")) if path.is_file() and not path.is_symlink())


def _stored(config: Path) -> Iterator[tuple[str, str]]:
    """What the files of credentials hold."""
    for path in config.glob("*/auth.json"):
        for name, value in json.loads(path.read_text()).items():
            if isinstance(value, str) and name not in _PUBLIC:
                yield f"{name} of {path.parent.name}", value
    for path in config.glob("*/device_id"):
        yield "the id of the device", path.read_text().strip()


def _given(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Secret settings."""
    for setting in SETTINGS:
        if setting.secret:
            yield from ((name, environment[name]) for name in setting.variables if name in environment)


def _issued(sandbox: Sandbox) -> Iterator[tuple[str, str]]:
    for label, upstream in sandbox.upstreams.items():
        if isinstance(upstream, AccountUpstream):
            yield from ((f"a token of {label}", token) for token in upstream.tokens.issued)


def _probes(folder: Path) -> dict[str, re.Pattern[bytes]]:
    """Pieces of each picture of the run, in base64, whatever came before it."""
    return {
        f"a piece of {path.name}": re.compile(b"|".join(map(re.escape, _pieces(path.read_bytes()))))
        for path in folder.rglob("*")
        if path.suffix in _PICTURES and path.stat().st_size > 2 * _PROBE_BYTES
    }


def _pieces(data: bytes) -> list[bytes]:
    step = max(1, (len(data) - _PROBE_BYTES - 3) // _PROBES)
    places = range(0, len(data) - _PROBE_BYTES - 3, step)
    return [base64.b64encode(data[at : at + _PROBE_BYTES]) for place in places for at in (place, place + 1, place + 2)]


def tally(searches: Sequence[Search]) -> str:
    """What was searched in all, in words."""
    captures, files = (sum(getattr(one, name) for one in searches) for name in ("captures", "files"))
    return f"{captures} captures searched: {files} files of {sum(one.size for one in searches) / 1e6:.1f} MB"
