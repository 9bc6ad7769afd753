"""The small model as the reviewer of an agent's tool calls: it knows dangerous words, and no more."""

from __future__ import annotations

import json
import re
from typing import Any

#: What a prompt says that wants verdicts on numbered calls, in JSON.
WANTED = '"verdicts"'

_DANGEROUS = re.compile(
    r"\brm\s+-\w*r|\|\s*(?:ba|z)?sh\b|\bgit\s+push\b|\bmkfs|\bsudo\b|id_(?:rsa|ed25519)|credentials|\bdangerous\b"
)


def verdicts(prompt: str) -> str:
    """The answer to a review: an entry for every call in the prompt's JSON object.

    >>> verdicts('{"calls": [{"call": 1, "tool": "Bash", "input": {"command": "ls"}}]}')
    '{"verdicts": [{"call": 1, "flagged": false}]}'
    """
    try:
        asked = json.loads(prompt[prompt.find("{") :])
    except ValueError:
        asked = {}
    return json.dumps({"verdicts": [_verdict(call) for call in asked.get("calls", ())]})


def _verdict(call: dict[str, Any]) -> dict[str, Any]:
    found = _DANGEROUS.search(" ".join(_texts(call["input"])))
    if found is None:
        return {"call": call["call"], "flagged": False}
    return {"call": call["call"], "flagged": True, "reason": f"The sandbox model does not like: {found[0]}"}


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in values for text in _texts(one)]
