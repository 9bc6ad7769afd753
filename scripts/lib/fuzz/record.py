"""Records what the simulators answer into base.json: the material of all mutated answers."""

from __future__ import annotations

import asyncio
import base64
import json
import tempfile
from pathlib import Path
from typing import Any

from fuzz_stub import ORIGIN, FuzzCase, Step
from fuzzing import Rig, rig

from fuzz.requests import JSON, MESSAGES, MODELS, prompted, searching

BASE = Path(__file__).parent / "base.json"
PROMPTS = {
    "text": "hello",
    "call": "use Bash: ls",
    "calls": "use Bash: ls and then use Read: /etc/hosts",
}


async def record() -> None:
    answers: dict[str, dict[str, list[str]]] = {}
    with tempfile.TemporaryDirectory() as root:
        async with rig(Path(root)) as running:
            assert not await running.run(FuzzCase("/v1/account/limits", "GET"))
            for wire, model in MODELS.items():
                for name, prompt in PROMPTS.items():
                    await _asked(running, prompted(MESSAGES, model, prompt, stream=True))
                    body = _body_of(running.stub.passed[wire])
                    frames = _envelopes(body) if wire == "p5-connect" else _frames(body)
                    answers.setdefault(wire, {})[name] = frames
            await _services(running)
            services = _kept_services(running)
    found = {"answers": answers, "services": services}
    BASE.write_text(json.dumps(found, indent=0, ensure_ascii=True) + "\n")


async def _services(running: Rig) -> None:
    """Lets the other services be asked: for searches, and for new tokens by refusing the old ones."""
    for model in MODELS.values():
        await _asked(running, searching(model))
    for model in MODELS.values():
        body = prompted(MESSAGES, model, "hello")
        case = FuzzCase(MESSAGES, body=json.dumps(body), headers=JSON, upstream=[Step(status=401)])
        assert not await running.run(case)


async def _asked(running: Rig, body: dict[str, Any]) -> None:
    wrong = await running.run(FuzzCase(MESSAGES, body=json.dumps(body), headers=JSON))
    assert not wrong, wrong


def _kept_services(running: Rig) -> dict[str, list[str]]:
    origin, passed = running.live.sandbox.origin, sorted(running.stub.passed.items())
    found = {path: _kept(raw, origin) for path, raw in passed if path.startswith("/")}
    return {path: one for path, one in found.items() if one is not None}


def _kept(raw: bytes, origin: str) -> list[str] | None:
    """Content type and base64 of an answer of 200; else None."""
    head, _, _ = raw.partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    kind = next((line.partition(": ")[2] for line in lines if line.startswith("content-type:")), "")
    body = _body_of(raw).replace(origin.encode(), ORIGIN)
    return [kind, base64.b64encode(body).decode()] if " 200 " in lines[0] and body else None


def _body_of(raw: bytes) -> bytes:
    """Of an answer as it stood on the connection, which may lack its end."""
    head, _, rest = raw.partition(b"\r\n\r\n")
    if b"chunked" not in head.lower():
        return rest
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        body += rest[: int(size, 16)]
        rest = rest[int(size, 16) + 2 :]
    return body


def _frames(body: bytes) -> list[str]:
    return [frame for frame in body.decode().split("\n\n") if frame]


def _envelopes(body: bytes) -> list[str]:
    found = []
    while body:
        size = 5 + int.from_bytes(body[1:5], "big")
        found.append(base64.b64encode(body[:size]).decode())
        body = body[size:]
    return found


if __name__ == "__main__":
    asyncio.run(record())
