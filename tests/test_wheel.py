"""What is installed: every file that the program reads, metadata, and a command that notices a foreign `proxy`."""

from __future__ import annotations

import configparser
import os
import subprocess
import sys
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from model_proxy import _has_the_package

ROOT = Path(__file__).parents[1]
#: `setup.cfg` says all, so there is no `setup.py` to run.
SETUP = "import setuptools; setuptools.setup()"
#: What pip writes for the command.
COMMAND = "import sys; from model_proxy import main; sys.exit(main())"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a wheel would hold, built without a network, and the metadata."""
    folder = tmp_path_factory.mktemp("built")
    options = ["egg_info", "--egg-base", str(folder), "build_py", "--build-lib", str(folder / "lib")]
    command = [sys.executable, "-c", SETUP, "--quiet", *options]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=60)
    return folder


def test_every_file_of_the_package_is_in_the_wheel(built: Path) -> None:
    installed = {path.relative_to(built / "lib") for path in (built / "lib").rglob("*") if path.is_file()}
    sources = {path.relative_to(ROOT) for path in (ROOT / "proxy").rglob("*") if path.is_file()}
    wanted = {path for path in sources if "__pycache__" not in path.parts} | {Path("model_proxy.py")}
    assert {path.suffix for path in wanted} >= {".py", ".gz", ".html", ".js", ".css", ".svg"}
    assert installed == wanted


def test_the_metadata_is_whole(built: Path) -> None:
    found = PathDistribution(next(built.glob("*.egg-info"))).metadata
    assert found["Name"] == "model-proxy" and found["Author"] and found["License"] == "MIT" and found["Summary"]
    assert found["Requires-Python"] == ">=3.11" and found["Description-Content-Type"] == "text/markdown"
    kinds = found.get_all("Classifier") or []
    assert {f"Programming Language :: Python :: 3.{minor}" for minor in range(11, 15)} <= set(kinds)


def test_the_command_is_the_one_that_looks_first() -> None:
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    assert settings["options.entry_points"]["console_scripts"].strip() == "model-proxy = model_proxy:main"


# -- another package of the same name


def start(*folders: Path) -> tuple[int, str]:
    """Runs the command with these folders on the path, in this order: (exit status, output and errors)."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    command = [sys.executable, "-P", "-c", COMMAND, "version"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30)
    return done.returncode, done.stdout + done.stderr


def foreign(folder: Path) -> Path:
    """Another distribution, installed into a folder."""
    (folder / "proxy").mkdir(parents=True, exist_ok=True)
    (folder / "proxy" / "__init__.py").write_text("__all__ = ['entry_point']\n")
    info = folder / "foreign_proxy-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign-proxy\nVersion: 2.0\n")
    (info / "top_level.txt").write_text("proxy\n")
    return folder


@pytest.fixture
def site(built: Path, tmp_path: Path) -> Path:
    """A folder with a copy of what is installed: links, all but the files that others overwrite."""
    folder = tmp_path / "site"
    (folder / "proxy").mkdir(parents=True)
    (folder / "model_proxy.py").write_bytes((built / "lib" / "model_proxy.py").read_bytes())
    for path in (built / "lib" / "proxy").iterdir():
        place = folder / "proxy" / path.name
        place.write_bytes(path.read_bytes()) if path.is_file() else place.symlink_to(path)
    return folder


def break_import(site: Path) -> None:
    (site / "proxy" / "cli").unlink()
    (site / "proxy" / "cli.py").write_text("""raise ImportError("no name 'Config'")\n""")


def test_the_command_runs_where_nothing_is_in_its_way(site: Path) -> None:
    status, said = start(site)
    assert status == 0 and said.startswith("model-proxy ")


def test_a_package_that_comes_before_is_named(site: Path, tmp_path: Path) -> None:
    other = foreign(tmp_path / "other")
    status, said = start(other, site)
    assert status == 1 and f"comes before the one of model-proxy: {other / 'proxy' / '__init__.py'}" in said
    assert "PYTHONPATH" in said and "Traceback" not in said


def test_a_module_that_comes_before_is_named(site: Path, tmp_path: Path) -> None:
    (tmp_path / "proxy.py").touch()
    status, said = start(tmp_path, site)
    assert status == 1 and str(tmp_path / "proxy.py") in said


def test_a_distribution_that_overwrote_files_is_named(site: Path) -> None:
    foreign(site)
    status, said = start(site)
    assert status == 1 and "foreign-proxy has overwritten files of model-proxy" in said and "pipx" in said


@pytest.mark.parametrize(
    ("file", "text", "has"),
    [
        ("top_level.txt", "other\nproxy\n", True),
        ("top_level.txt", "proxy_tools\n", False),
        ("RECORD", "x.py,,\nproxy/a/b.py,sha256=x,1\n", True),
        ("RECORD", "proxy.py,,\n", True),
        ("RECORD", "proxy/x.so,,\nproxy-1.dist-info/x.py,,\nmy/proxy/x.py,,\n", False),
    ],
)
def test_who_has_the_package_is_read_from_what_was_installed(tmp_path: Path, file: str, text: str, has: bool) -> None:
    (tmp_path / file).write_text(text)
    assert _has_the_package(PathDistribution(tmp_path)) is has


def test_one_that_overwrote_so_much_that_nothing_can_be_imported_is_named_as_well(site: Path) -> None:
    foreign(site)
    break_import(site)
    status, said = start(site)
    assert status == 1 and "foreign-proxy has overwritten" in said and "no name 'Config'" in said


def test_files_that_went_with_another_distribution_are_missed(site: Path) -> None:
    (site / "proxy" / "__init__.py").unlink()
    status, said = start(site)
    assert status == 1 and f"{site / 'proxy' / '__init__.py'} is missing" in said and "pipx" in said


def test_a_dependency_that_is_missing_keeps_its_own_words(site: Path) -> None:
    break_import(site)
    status, said = start(site)
    assert status == 1 and "ImportError: no name 'Config'" in said and "has overwritten" not in said
