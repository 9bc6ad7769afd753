"""The shape of the source: no circles, rooms and files that one can take in, functions that fit on a screen, and no
two classes of one layer under one name."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Set
from statistics import median, quantiles

import pytest
from source import PACKAGE, Source, module_of, source_of

#: What one still finds one's way in.
MAX_MODULES = 20
MAX_FILE_LINES = 450
MAX_FUNCTION_LINES = 40
MEDIAN_FUNCTION_LINES = 5
P90_FUNCTION_LINES = 15

FILES = sorted(PACKAGE.rglob("*.py"))


def imports_by_module() -> dict[str, set[str]]:
    """module -> the modules that it imports, in functions and for types only as well. A folder that stands on the way
    to a module is not counted."""
    modules = {module_of(path): path for path in FILES}
    return {module: _imported(source_of(path), modules.keys()) - {module} for module, path in modules.items()}


def _imported(source: Source, modules: Set[str]) -> set[str]:
    found = set()
    for node in source.imports:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            found |= {name if name in modules else str(node.module) for name in names}
    return found & modules


def circle_in(edges: dict[str, set[str]]) -> list[str]:
    """One circle, from a module back to itself; [] when there is none."""
    done: set[str] = set()

    def search(module: str, way: list[str]) -> list[str]:
        if module in way:
            return [*way[way.index(module) :], module]
        if module in done:
            return []
        for other in sorted(edges.get(module, ())):
            if circle := search(other, [*way, module]):
                return circle
        done.add(module)
        return []

    return next((circle for module in sorted(edges) if (circle := search(module, []))), [])


def function_lengths() -> dict[str, int]:
    """Place of a function -> its lines without the docstring."""
    return {f"{module_of(path)}:{place}": length for path in FILES for place, length in source_of(path).functions}


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    assert circle_in(imports_by_module()) == []


@pytest.mark.parametrize(
    ("edges", "circle"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"b"}, "b": {"c"}, "c": {"b"}}, ["b", "c", "b"]),
        ({"a": {"a"}}, ["a", "a"]),
    ],
)
def test_circles_are_found(edges: dict[str, set[str]], circle: list[str]) -> None:
    assert circle_in(edges) == circle


def test_no_folder_is_crowded() -> None:
    counts = Counter(path.parent for path in FILES if path.name != "__init__.py")
    assert {str(folder): count for folder, count in counts.items() if count > MAX_MODULES} == {}


def test_files_can_be_read_in_one_sitting() -> None:
    lengths = {module_of(path): len(path.read_text("utf-8").splitlines()) for path in FILES}
    assert {module: length for module, length in lengths.items() if length > MAX_FILE_LINES} == {}


def test_functions_fit_on_a_screen() -> None:
    lengths = function_lengths()
    assert {place: length for place, length in lengths.items() if length > MAX_FUNCTION_LINES} == {}
    assert median(lengths.values()) <= MEDIAN_FUNCTION_LINES
    assert quantiles(lengths.values(), n=10)[-1] <= P90_FUNCTION_LINES


def test_no_two_classes_of_a_layer_share_a_name() -> None:
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in FILES:
        layer = path.relative_to(PACKAGE).parts[0]
        for name in source_of(path).classes:
            places[layer, name.lstrip("_")].append(module_of(path))
    assert {name: modules for (_, name), modules in places.items() if len(modules) > 1} == {}
