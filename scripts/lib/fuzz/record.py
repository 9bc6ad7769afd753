"""Records what the simulators answer into base.json: the material of all mutated answers."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path

from fuzzing import FuzzCase, rig

from fuzz.requests import JSON, MODELS, prompted

BASE = Path(__file__).parent / "base.json"
PROMPTS = {
    "text": "hello",
    "call": "use Bash: ls",
    "calls": "use Bash: ls and then use Read: /etc/hosts",
}


async def record() -> None:
    found: dict[str, dict[str, list[str]]] = {}
    with tempfile.TemporaryDirectory() as root:
        async with rig(Path(root)) as running:
            for wire, model in MODELS.items():
                for name, prompt in PROMPTS.items():
                    body = prompted("/v1/messages", model, prompt, stream=True)
                    wrong = await running.run(FuzzCase("/v1/messages", body=json.dumps(body), headers=JSON))
                    assert not wrong, wrong
                    found.setdefault(wire, {})[name] = _frames(running.stub.passed[wire])
    BASE.write_text(json.dumps(found, indent=0, ensure_ascii=True) + "\n")


def _frames(raw: bytes) -> list[str]:
    """The frames of an event stream that came in chunks."""
    _, _, rest = raw.partition(b"\r\n\r\n")
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        body += rest[: int(size, 16)]
        rest = rest[int(size, 16) + 2 :]
    return [frame for frame in body.decode().split("\n\n") if frame]


if __name__ == "__main__":
    asyncio.run(record())
