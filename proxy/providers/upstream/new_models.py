"""Unlisted models, which are sent to their service anyway."""

from __future__ import annotations

from proxy.observe.lifecycle import Log

#: Models beyond this many are not noted.
MAX_NOTED = 256


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
