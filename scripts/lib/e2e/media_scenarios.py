"""Images and recordings through the OpenAI SDK and curl: real files of every size, which arrive as they are."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import struct
import wave
import zlib
from collections.abc import Sequence
from pathlib import Path

from e2e.expecting import Scenario, Scenarios, expect, named
from e2e.process import Finished, run
from e2e.sdk_scenarios import Python
from e2e.servers import watched_proxy
from proxy.sandbox import Sandbox

SCENARIOS: Scenarios[Python] = Scenarios()

#: name -> pixels on each side: a few hundred bytes, near a MB, near the limit of 20 MiB
PICTURES = {"small.png": 8, "medium.png": 512, "large.png": 2500}
SOUND = "note.wav"

_EDIT = """
import sys
from openai import OpenAI
client = OpenAI(base_url=sys.argv[1] + "/v1", api_key="unused", max_retries=0)
files = [open(name, "rb") for name in sys.argv[2:]]
print(client.images.edit(model="gpt-image-2", image=files, prompt="a fox").to_json(indent=None))
"""
_MAKE = """
import sys
from openai import OpenAI
client = OpenAI(base_url=sys.argv[1] + "/v1", api_key="unused", max_retries=0)
print(client.images.generate(model="gpt-image-2", prompt="a fox", n=2).to_json(indent=None))
"""
_HEAR = """
import sys
from openai import OpenAI
client = OpenAI(base_url=sys.argv[1] + "/v1", api_key="unused", max_retries=0)
print(client.audio.transcriptions.create(model="whisper-1", file=open(sys.argv[2], "rb")).to_json(indent=None))
"""


def _noise(side: int) -> bytes:
    """A PNG that cannot be made smaller."""
    rows = b"".join(b"\0" + random.Random(row).randbytes(side * 3) for row in range(side))
    chunks = {
        b"IHDR": struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0),
        b"IDAT": zlib.compress(rows, 0),
        b"IEND": b"",
    }
    parts = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks.items()
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _write_files(folder: Path) -> dict[str, bytes]:
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {name: _noise(side) for name, side in PICTURES.items()}
    for name, data in pictures.items():
        (folder / name).write_bytes(data)
    with wave.open(str(folder / SOUND), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(16_000)
        sound.writeframes(random.Random(0).randbytes(64_000))
    return pictures


def _seen(sandbox: Sandbox) -> list[str]:
    """The digests of the pictures that reached the service with the last request."""
    return [picture["sha256"] for picture in sandbox.p1.requests[-1].body["images"]]


def _expect_pictures(done: Finished, count: int) -> None:
    expect(done.status == 0 and not done.stderr, "it runs", (done.status, done.stderr[-500:]))
    made = [base64.b64decode(one["b64_json"]) for one in json.loads(done.stdout)["data"]]
    expect(len(made) == count and all(one.startswith(b"\x89PNG") for one in made), "it gives pictures", len(made))


async def _with_sdk(python: Python, program: str, url: str, *names: str) -> Finished:
    environment = {"PATH": os.environ["PATH"], "HOME": str(python.folder)}
    return await run([str(python.program), "-c", program, url, *names], python.folder, environment)


async def _with_curl(python: Python, url: str, *arguments: str) -> Finished:
    return await run(["curl", "-sSf", url, *arguments], python.folder, {"PATH": os.environ["PATH"]})


def _edit(names: Sequence[str], *, curl: bool) -> Scenario[Python]:
    async def edit(python: Python, folder: Path) -> None:
        pictures = _write_files(python.folder)
        async with watched_proxy(folder, [], {}) as (url, sandbox):
            if curl:
                files = [word for name in names for word in ("-F", f"image[]=@{name}")]
                done = await _with_curl(python, f"{url}/v1/images/edits", *files, "-F", "prompt=a fox")
            else:
                done = await _with_sdk(python, _EDIT, url, *names)
            _expect_pictures(done, 1)
            sent = [hashlib.sha256(pictures[name]).hexdigest() for name in names]
            expect(_seen(sandbox) == sent, "the pictures arrive as they are", _seen(sandbox))

    return named(edit, f"{'curl' if curl else 'SDK'} edits {' '.join(names)}")


for _names in (["small.png"], ["medium.png"], ["large.png"], ["small.png", "large.png", "medium.png"]):
    for _curl in (False, True):
        SCENARIOS.add(_edit(_names, curl=_curl))


@SCENARIOS.add
async def pictures_are_made(python: Python, folder: Path) -> None:
    _write_files(python.folder)
    asked = json.dumps({"prompt": "a fox", "n": 2})
    async with watched_proxy(folder, [], {}) as (url, _sandbox):
        _expect_pictures(await _with_sdk(python, _MAKE, url), 2)
        header = "Content-Type: application/json"
        _expect_pictures(await _with_curl(python, f"{url}/v1/images/generations", "-H", header, "-d", asked), 2)


@SCENARIOS.add
async def a_recording_is_written_down(python: Python, folder: Path) -> None:
    _write_files(python.folder)
    async with watched_proxy(folder, [], {}) as (url, _sandbox):
        runs = [
            await _with_sdk(python, _HEAR, url, SOUND),
            await _with_curl(python, f"{url}/v1/audio/transcriptions", "-F", f"file=@{SOUND}", "-F", "model=any"),
            # as curl sends what it knows no type of
            await _with_curl(
                python, f"{url}/v1/audio/transcriptions", "-F", f"file=@{SOUND};type=application/octet-stream"
            ),
        ]
    for done in runs:
        expect(done.status == 0 and not done.stderr, "it runs", (done.status, done.stderr[-500:]))
        expect("2.00 seconds" in json.loads(done.stdout)["text"], "the whole recording arrives", done.stdout)
