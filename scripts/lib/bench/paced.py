"""An upstream that speaks as a model does: an answer of the sandbox, a few events at a time.

`python -m bench.paced FILE EVENTS_A_SECOND`: FILE has the body of an answer as the sandbox wrote it.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from pathlib import Path

from aiohttp import web

#: Spreads any number of answers evenly over the pause between two events.
GOLDEN = 0.618034


async def main(file: str, rate: str) -> None:
    events = [one + b"\n\n" for one in Path(file).read_bytes().split(b"\n\n") if one.strip()]
    pause_s = 1.0 / float(rate)
    counted = itertools.count()

    async def answer(request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        loop = asyncio.get_running_loop()
        begun = loop.time() + (next(counted) * GOLDEN % 1.0) * pause_s
        for number, event in enumerate(events):
            await asyncio.sleep(max(0.0, begun + number * pause_s - loop.time()))
            await response.write(event)
        await response.write_eof()
        return response

    app = web.Application(client_max_size=1 << 30)
    app.router.add_post("/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=2048).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}/", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
