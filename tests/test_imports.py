"""Who may import whom, read from the source: imports inside functions count too."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from samples import rows
from source import PACKAGE, Source, module_of, source_in, source_of

#: What only somebody with a clock, a disk or a network needs.
IMPURE = frozenset(
    {
        "aiohttp",
        "asyncio",
        "os",
        "time",
        "random",
        "logging",
        "threading",
        "pathlib",
        "secrets",
        "uuid",
        "socket",
        "subprocess",
        "tempfile",
        "shutil",
    }
)

#: what everybody with I/O reports to
LIFECYCLE = "proxy.observe.lifecycle"
#: what providers tell of each attempt
CAPTURE = "proxy.observe.capture.contract"
#: what they mark of a request's time
TIMINGS = "proxy.observe.timings"

#: room -> what else of this project it may import
ROOMS = {
    "core": (),
    "auth": ("proxy.core", "proxy.errors", "proxy.off_loop", LIFECYCLE),
    "observe": ("proxy.core", "proxy.errors"),
    "providers": (
        *("proxy.core", "proxy.auth", "proxy.errors", "proxy.off_loop", "proxy.config", "proxy.settings"),
        *("proxy.version", "proxy.data", "proxy.later"),
        LIFECYCLE,
        CAPTURE,
        TIMINGS,
    ),
    "sandbox": ("proxy.core.sse",),
}


def imports_of(source: Source, module: str, *, is_package: bool = False) -> Iterator[str]:
    """Full names: of `from a import b` both `a` and `a.b`, since `b` may be a module."""
    for node in source.imports:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = module.split(".")
                cut = node.level - 1 if is_package else node.level
                base = ".".join([*parents[: len(parents) - cut], *([base] if base else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
        else:
            yield ast.literal_eval(node.args[0]).partition(":")[0]  # `Later` names a function of a module


@cache
def found(path: Path) -> set[str]:
    return set(imports_of(source_of(path), module_of(path), is_package=path.name == "__init__.py"))


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def ours(names: set[str]) -> set[str]:
    return {name for name in names if within(name, "proxy")}


def files(room: str) -> list[Path]:
    return sorted((PACKAGE / room).rglob("*.py"))


def strangers(path: Path, room: str) -> set[str]:
    """Imports of this project that the room may not have. `proxy` itself is the name before an allowed one."""
    allowed = (f"proxy.{room}", *ROOMS[room])
    return {
        name
        for name in ours(found(path))
        if not any(within(name, place) or within(place, name) for place in allowed) or name == "proxy.server"
    }


@rows("room", ROOMS)
def test_a_room_imports_only_its_neighbours(room: str) -> None:
    assert files(room)
    wrong = {module_of(path): names for path in files(room) if (names := strangers(path, room))}
    assert wrong == {}


def test_the_core_is_pure() -> None:
    wrong = {}
    for path in files("core"):
        roots = {name.split(".")[0] for name in found(path)} - {"proxy"}
        bad = {root for root in roots if root in IMPURE or root not in sys.stdlib_module_names}
        if bad:
            wrong[module_of(path)] = bad
    assert wrong == {}


def test_the_sandbox_needs_only_aiohttp() -> None:
    """`yarl` and `multidict` are its parts, in packages of their own."""
    for path in files("sandbox"):
        roots = {name.split(".")[0] for name in found(path)} - {"proxy", "aiohttp", "yarl", "multidict"}
        assert roots <= sys.stdlib_module_names, path


def provider_folders() -> list[str]:
    """`p1_codex` and its like; the other folders are what they share."""
    return [path.name for path in (PACKAGE / "providers").glob("p[0-9]_*")]


def test_no_provider_imports_another() -> None:
    folders = provider_folders()
    assert folders
    for folder in folders:
        for path in files(f"providers/{folder}"):
            for other in folders:
                if other != folder:
                    assert not any(within(name, f"proxy.providers.{other}") for name in found(path)), path


def test_the_server_never_names_a_provider() -> None:
    folders = provider_folders()
    for path in files("server"):
        for folder in folders:
            assert not any(within(name, f"proxy.providers.{folder}") for name in found(path)), path


#: room of the server -> the rooms above it, which it may not know
ABOVE = {"callers": {"request", "serving", "routes"}, "request": {"serving", "routes"}, "serving": {"routes"}}


@rows("room", ABOVE)
def test_inside_the_server_no_arrow_climbs(room: str) -> None:
    assert files(f"server/{room}")
    for path in files(f"server/{room}"):
        above = {f"proxy.server.{other}" for other in ABOVE[room]} | {"proxy.server.app", "proxy.server.edge"}
        assert not [name for name in found(path) if any(within(name, place) for place in above)], path


def test_nothing_imports_the_server_but_the_doors() -> None:
    for path in sorted(PACKAGE.rglob("*.py")):
        module = module_of(path)
        if module != "proxy" and not within(module, "proxy.cli") and not within(module, "proxy.server"):
            assert not any(within(name, "proxy.server") for name in found(path)), path


@rows(
    "source, expected",
    [
        ("import os.path", {"os.path"}),
        ("f'{__import__(\"os\")}'", {"os"}),
        ("from proxy.core import sse", {"proxy.core", "proxy.core.sse"}),
        ("def late():\n    from time import sleep", {"time", "time.sleep"}),
        ("from . import sse", {"proxy.core", "proxy.core.sse"}),
        ("from ..errors import ProxyError", {"proxy.errors", "proxy.errors.ProxyError"}),
        ("import importlib\nimportlib.import_module('time')", {"importlib", "time"}),
        ("Later('time:sleep')", {"time"}),
    ],
)
def test_all_forms_of_import_are_seen(source: str, expected: set[str]) -> None:
    assert set(imports_of(source_in(source), "proxy.core.module")) == expected
