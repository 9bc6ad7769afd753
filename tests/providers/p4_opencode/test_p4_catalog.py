"""P4's table."""

from __future__ import annotations

from collections import Counter

from samples import rows

from proxy.core.routing import route
from proxy.providers.p4_opencode.catalog import CATALOG, MODELS, RESERVED, WIRE_PATHS, model_for
from proxy.providers.registry import PROVIDERS
from proxy.sandbox.p4.catalog import MODELS as SIMULATED


def test_table() -> None:
    assert Counter(model.wire for model in MODELS.values()) == {"chat": 27, "messages": 5, "responses": 4}
    assert set(WIRE_PATHS) == {"chat", "messages", "responses"}
    assert len(CATALOG.models) == len(set(CATALOG.models)) == 36 + 36 - len(RESERVED)
    assert (CATALOG.label, CATALOG.service) == ("p4", "opencode")


def test_simulator_agrees() -> None:
    """Both were written from the same facts, each on its own; the gateway serves more."""
    assert set(SIMULATED) > set(MODELS)
    for name, model in MODELS.items():
        other = SIMULATED[name]
        assert model.wire in other.wires and model.sees == ("image" in other.inputs), name
        assert model.context in (None, other.context), name


@rows("name", sorted(RESERVED))
def test_reserved_names_belong_to_others(name: str) -> None:
    catalogs = [entry.catalog for entry in PROVIDERS]
    bare = route(name, catalogs, alias_provider="p1")
    qualified = route(f"opencode-go/{name}", catalogs, alias_provider="p1")
    assert bare is not None and bare.label != "p4"
    assert qualified is not None and qualified.label == "p4"


@rows(
    "name, found",
    [
        *((name, "glm-5.2") for name in ("glm-5.2", "opencode-go/glm-5.2")),
        *((name, None) for name in ("opencode-go/opencode-go/glm-5.2", "GLM-5.2", "opencode-go/", "glm")),
    ],
)
def test_lookup(name: str, found: str | None) -> None:
    model = model_for(name)
    assert (model.id if model else None) == found
