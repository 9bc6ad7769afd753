"""The entries of the providers: what the rest of the program takes from them is there, and fits."""

from __future__ import annotations

import ast
from pathlib import Path

from samples import rows

from proxy.core.routing import route
from proxy.providers.entry import Entry, account_titles, named
from proxy.providers.registry import PROVIDERS
from proxy.settings import rows_of

FOLDER = Path(__file__).parents[2] / "proxy" / "providers"
SERVED = [entry for entry in PROVIDERS if entry.build is not None]


def test_no_two_providers_share_a_name() -> None:
    names = [name for entry in PROVIDERS for name in (entry.label, entry.catalog.service)]
    assert len(set(names)) == len(names)
    assert [entry.label for entry in PROVIDERS] == ["p1", "p2", "p3", "p4", "p5"]


def test_a_provider_is_found_by_both_of_its_names_only() -> None:
    for entry in PROVIDERS:
        assert named(entry.label, PROVIDERS) is named(entry.catalog.service, PROVIDERS) is entry
    assert named("P1", PROVIDERS) is None and named("", PROVIDERS) is None
    assert account_titles(PROVIDERS) == "p1 (codex), p2 (kimi), p3 (grok), p4 (opencode), p5 (cursor)"


@rows("entry", SERVED)
def test_an_entry_that_is_served_is_complete(entry: Entry) -> None:
    assert entry.account is not None and entry.product and entry.state and entry.sign_in
    assert entry.settings is not None
    for setting in rows_of(entry.settings):
        assert setting.name.startswith((f"{entry.label}.", f"PROXY_{entry.label.upper()}_"))
    catalogs = [other.catalog for other in PROVIDERS]
    for model in entry.examples.values():
        found = route(model, catalogs, alias_provider="p1")
        assert found is not None and found.label == entry.label and not found.alias


@rows("path", sorted(FOLDER.glob("p[0-9]_*/entry.py")))
def test_an_entry_is_light_to_import(path: Path) -> None:
    """Nothing but the names and the settings, until a provider or an account is made."""
    light = {
        "proxy.providers.entry",
        *(f"proxy.providers.{path.parent.name}.{name}" for name in ("catalog", "settings")),
    }
    imported = {node.module for node in ast.parse(path.read_text()).body if isinstance(node, ast.ImportFrom)}
    assert imported - {"__future__", "typing", "proxy.config"} == light | {"proxy.later"}  # the settings have config
