"""The yardstick: a server that passes a body on and the answer back, and parses nothing.

`python -m bench.pipe URL TOKEN ACCOUNT`
"""

from __future__ import annotations

import asyncio
import sys

import aiohttp
from aiohttp import web


async def main(url: str, token: str, account: str) -> None:
    headers = {
        "authorization": f"Bearer {token}",
        "chatgpt-account-id": account,
        "content-type": "application/json",
        "accept": "text/event-stream",
        "accept-encoding": "identity",
        "originator": "bench",
    }
    async with aiohttp.ClientSession() as session:

        async def relay(request: web.Request) -> web.StreamResponse:
            body = await request.read()
            async with session.post(url, data=body, headers=headers) as answer:
                response = web.StreamResponse(headers={"content-type": "text/event-stream"})
                await response.prepare(request)
                async for chunk in answer.content.iter_any():
                    await response.write(chunk)
                await response.write_eof()
                return response

        app = web.Application(client_max_size=1 << 30)
        app.router.add_post("/", relay)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        print(f"http://127.0.0.1:{runner.addresses[0][1]}/", flush=True)
        await asyncio.Event().wait()


asyncio.run(main(*sys.argv[1:4]))
