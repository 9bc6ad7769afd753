"""The proxy as it is measured: `python -m soak.served`. A second port tells of its tasks and objects.

Its first line of output is a JSON list: the address of the proxy and that of the side port.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
from collections import Counter
from pathlib import Path

from aiohttp import web

from proxy import create_app
from proxy.config import Config
from proxy.loading import load
from proxy.observe.log.file_log import FileLog


async def told(_request: web.Request) -> web.Response:
    """After a collection, so that only what is held counts."""
    gc.collect()
    found = gc.get_objects()
    types = Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in found)
    return web.json_response({"tasks": len(asyncio.all_tasks()), "objects": len(found), "types": types})


async def shortly(seconds: float) -> None:
    """The waits between attempts, a hundred times as fast."""
    await asyncio.sleep(seconds / 100)


async def listening(app: web.Application, auto_decompress: bool = True) -> str:
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, auto_decompress=auto_decompress)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return f"http://127.0.0.1:{runner.addresses[0][1]}"


async def main() -> None:
    found, _ = load(os.environ)
    routes = {"openai_routes": True, "image_routes": True, "transcription_route": True, "metrics": True}
    config = found.changed(Config, **routes, monitor_page=True)
    root, state = Path(os.environ["PROXY_CONFIG_DIR"]), Path(os.environ["XDG_STATE_HOME"])
    with Path(os.devnull).open("w") as nowhere:
        log = FileLog(state, stream=nowhere)
        app = create_app(lambda: config, config_dir=root, log=log, packed_bodies=True, sleep=shortly, state_dir=state)
        side = web.Application()
        side.router.add_get("/", told)
        addresses = [await listening(app, auto_decompress=False), await listening(side)]
        print(json.dumps(addresses), file=sys.stdout, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
