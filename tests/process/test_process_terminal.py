"""`serve` on a terminal."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import sys
from pathlib import Path

import aiohttp
from harness import ask, until
from processes import LISTENS, environment, start

#: A record of the log.
JSON = re.compile(r'^\{"t":', re.MULTILINE)


async def test_requests_are_lines_and_warnings_are_sentences(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    env = environment(tmp_path, TERM="xterm", PROXY_P1_RESPONSE_API="1")
    command = (sys.executable, "-m", "proxy", "serve", "--no-monitor", "--sandbox", "--port", "0")
    process = await start(*command, stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    os.set_blocking(ours, False)
    said = b""

    def read() -> bytes:
        nonlocal said
        with contextlib.suppress(OSError):  # nothing there now, or the other side is closed
            said += os.read(ours, 65536)
        return said

    try:
        await until(lambda: LISTENS.search(read()) and b"Claude Code" in said, 15)
        found = LISTENS.search(said)
        assert found is not None
        async with aiohttp.ClientSession() as client:
            for model, status in (("gpt-5.5", 200), ("nope", 400)):
                async with client.post(f"{found[1].decode()}/v1/messages", json=ask(model=model)) as answer:
                    assert answer.status == status
        await until(lambda: b"Unknown model" in read(), 5)
        text = said.decode()
        assert re.search(r"^\d\d:\d\d:\d\d  gpt-5\.5 \(p1\) +200 +\d+ in +\d+ out +\d+\.\d s\r$", text, re.MULTILINE)
        assert re.search(r'^\d\d:\d\d:\d\d  messages +400 .* s\r\n +Unknown model "nope"', text, re.MULTILINE)
        assert text.count("did you mean PROXY_P1_RESPONSES_API?") == 1 and not JSON.search(text)
    finally:
        process.terminate()
        await process.wait()
        os.close(ours)
