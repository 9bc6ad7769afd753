"""Code mode: one freeform tool that takes JavaScript, in which the client's other tools are functions of `tools`.

Codex offers it to the models that it knows. The functions stand in the tool's description, each behind the words
"declare const tools: {", so that is where the sandbox model finds out what it can run.
"""

from __future__ import annotations

import re
from typing import Any

from proxy.core.sse import dump_json

_DECLARED = re.compile(r"declare const tools: \{ (\w+)\((?:args: \{\n(?: *//.*\n)* *(\w+))?")


def declared(description: str) -> dict[str, str | None]:
    """The functions that a description declares, each with its first parameter; None for one that takes a text.

    >>> declared("declare const tools: { patch(input: string): Promise<unknown>; };")
    {'patch': None}
    """
    return {found[1]: found[2] for found in _DECLARED.finditer(description)}


def script(function: str, argument: dict[str, Any] | str) -> str:
    """JavaScript that runs the function and shows what it printed, else all that it returned."""
    return f"const result = await tools.{function}({dump_json(argument)}); text(result?.output ?? result);"
