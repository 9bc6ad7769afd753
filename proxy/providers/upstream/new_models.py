"""Models that are in no list, and go to their service all the same."""

from __future__ import annotations

from proxy.observe.lifecycle import Log

#: Beyond this many, nothing is told any more.
MAX_TOLD = 256


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
