"""Functions of modules that are imported at the first call: what a start does not need."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


class Later:
    """A function named by its place, `module:name`. The first call imports the module, or `load`, ahead of it.

    >>> Later("math:sqrt")(9.0)
    3.0
    """

    __slots__ = ("place",)

    def __init__(self, place: str) -> None:
        self.place = place

    @property
    def loaded(self) -> bool:
        """Whether the module is imported, and no longer being imported by another thread."""
        spec = getattr(sys.modules.get(self.place.partition(":")[0]), "__spec__", None)
        return spec is not None and not getattr(spec, "_initializing", False)

    def load(self) -> Any:
        """The function itself."""
        module, _, name = self.place.partition(":")
        return getattr(import_module(module), name)

    def __call__(self, *given: Any) -> Any:
        return self.load()(*given)
