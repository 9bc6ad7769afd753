"""Images and recordings through curl: JSON and forms as it sends them, by whatever means it is told to."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from e2e.expecting import Scenarios, expect
from e2e.media_files import noisy_png, recording, red_png
from e2e.media_scenarios import LIMIT, SIZES, expect_pictures, expect_received, media_proxy, quick
from e2e.process import run
from proxy.core.sse import dump_json

#: That of the machine.
VERSIONS = ("here",)

GENERATIONS, EDITS, TRANSCRIPTIONS = "/v1/images/generations", "/v1/images/edits", "/v1/audio/transcriptions"
JSON = ("-H", "content-type: application/json")
SCENARIOS: Scenarios[Curl] = Scenarios()


class Answered(NamedTuple):
    """What curl got, and what it told of the way there."""

    status: int
    media_type: str
    text: str
    way: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def waited(self) -> bool:
        """Whether the body was sent only after the server had asked for it."""
        return "HTTP/1.1 100 Continue" in self.way

    @property
    def error(self) -> tuple[int, str, str | None]:
        """Status, code and param of a refusal."""
        told = self.json["error"]
        return self.status, told["code"], told["param"]


class Curl(NamedTuple):
    program: Path
    version: str
    folder: Path

    async def send(self, url: str, *arguments: str) -> Answered:
        self.folder.mkdir(parents=True, exist_ok=True)
        told = ("--write-out", "\n%{http_code} %{content_type}", "--expect100-timeout", "60")
        with quick(f"curl {arguments[:2]}"):
            done = await run([str(self.program), "-sS", "-v", *told, *arguments, url], self.folder, {})
        expect(done.status == 0, f"curl {arguments} works", done.stderr[-1000:])
        text, _, last = done.stdout.rpartition("\n")
        status, _, media_type = last.partition(" ")
        return Answered(int(status), media_type, text, done.stderr)

    def file(self, name: str, data: bytes) -> str:
        """Writes a file where curl runs; its name."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_bytes(data)
        return name


async def install(_version: str, _cache: Path) -> Path:
    found = shutil.which("curl")
    if found is None:
        raise RuntimeError("curl is needed: apt-get install curl")
    return Path(found)


def edit_body(*files: bytes, **members: Any) -> bytes:
    """An edit as JSON."""
    urls = [f"data:image/png;base64,{base64.b64encode(file).decode()}" for file in files]
    return dump_json({"images": [{"image_url": url} for url in urls], **members}).encode()


@SCENARIOS.add
async def json_bodies(curl: Curl, folder: Path) -> None:
    """Generations and edits; a large body waits to be asked for, and one that is too large is never sent."""
    small = curl.file("small.json", dump_json({"prompt": "a fox", "size": "1536x1024", "n": 2}).encode())
    async with media_proxy(folder) as (url, sandbox):
        made = await curl.send(url + GENERATIONS, *JSON, "--data-binary", f"@{small}")
        expect_pictures(made.json, [(1536, 1024)] * 2)
        for name, make in SIZES.items():
            file = make()
            body = curl.file("edit.json", edit_body(file, prompt="snow", n=None))
            made = await curl.send(url + EDITS, *JSON, "--data-binary", f"@{body}", "--compressed")
            expect(made.waited == (len(file) > 1_000_000), f"{name}: a large body waits", made.way[-600:])
            expect_pictures(made.json, [(1024, 1024)])
            expect_received(sandbox, [file], prompt="snow")
        three = [SIZES["medium"]()] * 3
        body = curl.file("edit.json", edit_body(*three, prompt="three"))
        for headers in (("Expect:",), ("Transfer-Encoding: chunked",), ("Transfer-Encoding: chunked", "Expect:")):
            told = [word for header in headers for word in ("-H", header)]
            made = await curl.send(url + EDITS, *JSON, *told, "--data-binary", f"@{body}")
            expect_pictures(made.json, [(1024, 1024)])
            expect_received(sandbox, three, prompt="three")
        reached = sandbox.p1.total_requests
        over = await curl.send(url + GENERATIONS, *JSON, "--data-binary", f"@{body}")
        body = curl.file("edit.json", edit_body(noisy_png(LIMIT + 1), prompt="x"))
        larger = await curl.send(url + EDITS, *JSON, "--data-binary", f"@{body}")
        expect(sandbox.p1.total_requests == reached, "the service is spared", sandbox.p1.total_requests)
    expect(over.error == (413, "request_too_large", None), "a body over the limit", over)
    expect("Expect: 100-continue" in over.way and not over.waited, "is not sent at all", over.way[-600:])
    expect(larger.error == (413, "request_too_large", "images"), "a picture over the limit", larger)


@SCENARIOS.add
async def forms_of_pictures(curl: Curl, folder: Path) -> None:
    """Files of every size, alone and together, under whatever names and types."""
    files = {name: make() for name, make in SIZES.items()}
    for number, file in enumerate(files.values()):
        curl.file(f"{number}.png", file)
    curl.file("prompt.txt", "both in the snow: «ü» \U0001f98a\r\nand a line".encode())
    async with media_proxy(folder) as (url, sandbox):
        for number, (name, file) in enumerate(files.items()):
            made = await curl.send(url + EDITS, "-F", f"image=@{number}.png", "-F", "prompt=snow")
            expect_pictures(made.json, [(1024, 1024)])
            expect(made.waited == (len(file) > 1_000_000), f"{name}: a large body waits", made.way[-600:])
            expect_received(sandbox, [file], prompt="snow")
        typed = (
            "image=@0.png;type=application/octet-stream",
            'image[]=@1.png;type=image/webp;filename="a \\"b\\".jpg"',
        )
        texts = ("prompt=<prompt.txt;type=text/plain", "n=02", "size=1024x1536", "quality=", "quality=high")
        parts = [word for part in (*typed, "image=@2.png;encoder=binary", *texts) for word in ("-F", part)]
        for more in ([], ["-H", "Transfer-Encoding: chunked"], ["-H", "Expect:"]):
            made = await curl.send(url + EDITS, *parts, *more)
            expect(made.status == 200, "an edit of three", made)
            expect_pictures(made.json, [(1024, 1536)] * 2)
            prompt = "both in the snow: «ü» \U0001f98a\r\nand a line"
            expect_received(sandbox, [*files.values()][:3], prompt=prompt, n=2, size="1024x1536", quality="high")


@SCENARIOS.add
async def recordings(curl: Curl, folder: Path) -> None:
    """A recording under the types that curl gives it or is told to, and an answer as text."""
    heard = recording()
    digest = hashlib.sha256(heard).hexdigest()
    curl.file("note.wav", heard)
    typed = {
        "note.wav": "audio/wav",  # curl calls it application/octet-stream
        "note.wav;type=audio/x-wav": "audio/x-wav",
        "note.wav;type=video/webm;filename=recording.webm": "audio/webm",
        "note.wav;filename=C:\\\\notes\\\\note": "audio/wav",
        "note.wav;type=audio/mp4;filename=../../note.m4a": "audio/mp4",
    }
    async with media_proxy(folder) as (url, sandbox):
        for part, kind in typed.items():
            got = await curl.send(url + TRANSCRIPTIONS, "-F", f"file=@{part}", "-F", "model=gpt-4o-transcribe")
            expect(f"WAV as {kind}, 1.00 seconds long." in got.json["text"], f"{part} is {kind}", got)
            file = sandbox.p1.requests[-1].body["file"]
            expect(file["sha256"] == digest and "/" not in file["name"], "and arrives as it is", file)
        form = ("-F", "file=@note.wav", "-F", "language= de ", "-F", "response_format=text", "-F", "stream=false")
        plain = await curl.send(url + TRANSCRIPTIONS, *form, "-H", "Transfer-Encoding: chunked")
        curl.file("long.wav", recording(60, 48_000))
        long = await curl.send(url + TRANSCRIPTIONS, "-F", "model=x", "-F", "file=@long.wav;type=audio/wav")
    expect(plain.text.endswith("in de.\n") and plain.media_type.startswith("text/plain"), "as text", plain)
    expect("60.00 seconds" in long.text and long.waited, "a minute of it", long)


@SCENARIOS.add
async def refusals(curl: Curl, folder: Path) -> None:
    """What curl users get wrong, told in the form of these routes."""
    curl.file("fox.png", red_png())
    curl.file("over.png", noisy_png(LIMIT + 1))
    curl.file("note.wav", recording(0.1))
    curl.file("note.txt", b"hello")
    picture, prompt, text = ("-F", "image=@fox.png"), ("-F", "prompt=x"), '{"prompt":"x"}'
    invalid, unsupported = "invalid_request", "unsupported_parameter"
    rows = (
        (GENERATIONS, ("-d", text), (415, "unsupported_media_type", None)),
        (GENERATIONS, (*JSON, "-d", "{oops"), (400, invalid, None)),
        (GENERATIONS, (*JSON, "-d", text[:-1] + ',"response_format":"url"}'), (400, unsupported, "response_format")),
        (f"{GENERATIONS}?n=1", (*JSON, "-d", text), (400, invalid, None)),
        (EDITS, (*picture, *prompt, "-F", "mask=@fox.png"), (400, unsupported, "mask")),
        (EDITS, (*picture, *prompt, "-F", "response_format=b64_json"), (400, unsupported, "response_format")),
        (EDITS, (*picture, *prompt, "-F", "n=many"), (400, invalid, "n")),
        (EDITS, prompt, (400, invalid, "image")),
        (EDITS, ("-F", "image=https://example.org/fox.png", *prompt), (400, invalid, "image")),
        (EDITS, ("-F", "image=@over.png", *prompt), (413, "request_too_large", "image")),
        (EDITS, (*JSON, "-d", '{"prompt":"x","images":[{"image_url":"https://x/y.png"}]}'), (400, invalid, "images")),
        (EDITS, ("-H", "content-type: multipart/form-data", "-d", "x"), (400, "invalid_multipart", None)),
        (TRANSCRIPTIONS, (*JSON, "-d", text), (415, "unsupported_media_type", None)),
        (TRANSCRIPTIONS, ("-F", "model=x"), (400, invalid, "file")),
        (TRANSCRIPTIONS, ("-F", "file=@note.txt"), (400, invalid, "file")),
        (TRANSCRIPTIONS, ("-F", "file=@note.wav", "-F", "temperature=0"), (400, unsupported, "temperature")),
        (TRANSCRIPTIONS, ("-F", "file=@note.wav", "-F", "response_format=srt"), (400, unsupported, "response_format")),
    )
    async with media_proxy(folder) as (url, sandbox):
        for path, arguments, wanted in rows:
            got = await curl.send(url + path, *arguments)
            expect(got.error == wanted, f"{path} {arguments}", got)
        by_get = await curl.send(url + EDITS)
        expect(sandbox.p1.total_requests == 0, "the service is not asked", sandbox.p1.total_requests)
    expect(by_get.status == 405 and "Allow: POST" in by_get.way, "a wrong method", by_get)
