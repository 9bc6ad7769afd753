"""The manual says what the program does."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from aiohttp import web
from samples import rows

from proxy import Config, create_app
from proxy.cli.main import COMMANDS
from proxy.server.routes.table import ROUTES
from proxy.settings import is_loopback

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts" / "lib"))

import reference  # noqa: E402
from e2e import matrix  # noqa: E402


@rows("name", reference.PAGES)
def test_generated_pages_are_current(name: str) -> None:
    assert (ROOT / name).read_text() == reference.PAGES[name](), "run scripts/reference"


def test_the_manual_has_the_routes_that_are_served() -> None:
    manual = (ROOT / "docs" / "reference" / "routes.md").read_text()
    listed = re.findall(r"^\| `(\w+ /\S*)` \|", manual, re.MULTILINE)
    assert sorted(listed) == sorted(f"{route.methods[0]} {route.path}" for route in ROUTES)
    switches = {route.needs for route in ROUTES if route.needs}
    for on in (switches, {"image_routes"}, set[str]()):
        app = create_app(Config(**dict.fromkeys(on, True)), config_dir=Path("/nowhere"))  # type: ignore[arg-type]
        served = {(route.method, route.resource.canonical) for route in app.router.routes() if route.resource}
        rows = [route for route in ROUTES if route.needs in on | {""}]
        assert served == {(method, route.path) for route in rows for method in route.methods}


def test_every_client_page_is_in_the_table_of_clients() -> None:
    pages = {page.name for page in (ROOT / "docs" / "clients").glob("*.md")} - {"README.md"}
    assert {row.page for row in matrix.ROWS} - {""} == pages


def test_every_command_is_in_the_manual() -> None:
    manual = (ROOT / "docs" / "reference" / "cli.md").read_text()
    for command in COMMANDS:
        assert f"| `{command.name}" in manual


def test_the_readme_begins_with_a_picture_and_as_many_commands_as_it_says() -> None:
    first, _, rest = (ROOT / "README.md").read_text().partition("## Try it: two commands")
    found = re.search(r"!\[.+\]\((.+)\)", first)
    assert found is not None and (ROOT / found[1]).stat().st_size < 150_000
    block = re.search(r"```sh\n(.*?)```", rest, re.DOTALL)
    assert block is not None and len(block[1].splitlines()) == 2


def test_the_program_of_the_readme_serves_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block is not None
    started: list[tuple[web.Application, str]] = []
    monkeypatch.setattr(web, "run_app", lambda app, *, host, **_: started.append((app, host)))
    exec(compile(block[1], "README.md", "exec"), {})
    ((app, host),) = started
    assert is_loopback(host)
    paths = {resource.canonical for resource in app.router.resources()}
    assert "/models" in paths


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    without_code = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", without_code, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_between_pages_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CHANGELOG.md", *ROOT.glob("docs/**/*.md")]:
        for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]+))?\)", page.read_text()):
            to = page.parent / target if target else page
            assert to.exists(), f"{page.name} links to {target}"
            assert not anchor or anchor in anchors(to), f"{page.name} links to {target}#{anchor}"


def test_nothing_leads_out_of_the_project() -> None:
    word = "/".join(("..", "shared"))
    tracked = [path for folder in ("proxy", "tests", "docs", "scripts") for path in (ROOT / folder).rglob("*")]
    for path in [*tracked, ROOT / "README.md", ROOT / "CHANGELOG.md"]:
        if path.is_file() and path.suffix in {".py", ".md", ".json", ""}:
            assert word not in path.read_text(errors="replace"), path


def test_the_tests_that_scripts_test_names_are_there() -> None:
    """Pytest runs nothing at all when one of several names is wrong."""
    named = re.findall(r"(tests/[\w/]+\.py)::(\w+)", (ROOT / "scripts/test").read_text())
    missing = [f"{file}::{name}" for file, name in named if f"def {name}(" not in (ROOT / file).read_text()]
    assert named and missing == []
