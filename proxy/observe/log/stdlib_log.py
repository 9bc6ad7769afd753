"""The structured log of a program that embeds the proxy."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

from proxy.core.hiding.keys import Level
from proxy.core.hiding.secret import blanked
from proxy.core.hiding.texts import log_text, without_parameters
from proxy.core.hiding.walk import redacted
from proxy.core.sse import dump_printable
from proxy.observe.lifecycle import NullLog

#: Our levels in the terms of the standard library.
STDLIB_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}


class StdlibLog(NullLog):
    """Records go to `logging.getLogger("proxy.<service>")`, where the embedding program's handlers decide.

    Failed answers are not kept: the embedding program owns the disk.
    """

    def __init__(self, *, verbose: bool = False) -> None:
        self._text = without_parameters if verbose else log_text

    def write(self, level: str, service: str, msg: str, **fields: Any) -> None:
        """One record; its text is the message and the redacted fields as JSON."""
        with suppress(Exception):  # a value or a handler that raises must not fail the request
            logger = logging.getLogger(f"proxy.{service}")
            number = STDLIB_LEVELS.get(level, logging.INFO)
            if not logger.isEnabledFor(number):
                return
            text = self._text(msg)
            if fields:
                text = f"{text} {dump_printable(redacted(fields, Level.LOG, self._text))}"
            logger.log(number, "%s", blanked(text))
