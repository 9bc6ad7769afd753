"""The examples in docstrings of the core are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

from samples import rows

import proxy.core

MODULES = sorted(module.name for module in pkgutil.walk_packages(proxy.core.__path__, "proxy.core."))


@rows("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    assert sum(len(test.examples) for name in MODULES for test in finder.find(importlib.import_module(name))) > 10
