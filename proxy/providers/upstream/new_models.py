"""Models that are in no list, and go to their service all the same."""

from __future__ import annotations

from collections.abc import Container

from proxy.core.routing import Added
from proxy.observe.lifecycle import Log

#: Models beyond this many are not noted.
MAX_TOLD = 256


def is_new(name: str, listed: Container[str], added: Added) -> bool:
    """Whether an upstream model is in no list, neither that of its provider nor that of the settings."""
    return name not in listed and name not in dict(added)


class NewModels:
    """Tells the log of each once. One object a provider."""

    def __init__(self, log: Log, label: str) -> None:
        self._log = log
        self._label = label
        self._told: set[str] = set()

    def met(self, model: str, like: str) -> None:
        """`like`: the model whose ways it is taken to have."""
        if model not in self._told and len(self._told) < MAX_TOLD:
            self._told.add(model)
            self._log.write("info", self._label, "model_not_listed", model=model, like=like)
