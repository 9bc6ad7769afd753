"""Unlisted models, which are sent to their service anyway."""

from __future__ import annotations

from collections.abc import Container

from proxy.core.routing import Added
from proxy.observe.lifecycle import Log

#: Models beyond this many are not noted.
MAX_NOTED = 256


def is_new(name: str, listed: Container[str], added: Added) -> bool:
    """Whether an upstream model is listed neither by its provider nor in the settings."""
    return name not in listed and name not in dict(added)


class NewModels:
    """Logs each new model once. One object for each provider."""

    def __init__(self, log: Log, label: str) -> None:
        self._log = log
        self._label = label
        self._noted: set[str] = set()

    def met(self, model: str, like: str) -> None:
        """Notes a new model; `like`: the listed model that it is treated as."""
        if model not in self._noted and len(self._noted) < MAX_NOTED:
            self._noted.add(model)
            self._log.write("info", self._label, "model_not_listed", model=model, like=like)
