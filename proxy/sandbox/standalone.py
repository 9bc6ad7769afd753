"""The sandbox as a process of its own: one line on stdout tells how to reach it, then it serves until cancelled."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import TextIO

from proxy.core.sse import dump_json
from proxy.sandbox.server import Sandbox


async def run_alone(
    port: int = 0,
    script: Path | None = None,
    *,
    credentials_dir: Path | None = None,
    word_delay_s: float = 0.0,
    out: TextIO | None = None,
) -> None:
    """Serves until cancelled. Raises OSError (port, files) or ScriptError before the line is printed.

    The line is a JSON object of variables for the proxy, among them PROXY_CONFIG_DIR: a folder with credentials that
    work here, `credentials_dir` or else a temporary one that disappears at the end.
    """
    with tempfile.TemporaryDirectory(prefix="sandbox-") as temporary:
        root = credentials_dir or Path(temporary)
        async with Sandbox(script=script or (), port=port, word_delay_s=word_delay_s) as sandbox:
            sandbox.write_credentials(root)
            settings = {**sandbox.settings(), "PROXY_CONFIG_DIR": str(root)}
            print(dump_json(settings), file=out or sys.stdout, flush=True)
            await asyncio.Event().wait()
