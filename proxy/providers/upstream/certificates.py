"""The certificates of this system, read after the start and off the loop.

aiohttp makes two TLS contexts as it is imported, and reads all certificates for each, also for the one that checks
none: 0.1 s and 2 MB. A process of ours imports it without them. The context that checks reads them in a thread, at the
latest before the first connection.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
import threading


class _State:
    """Whether the contexts of aiohttp lack certificates, and who reads them now."""

    missing = False
    reading = threading.Lock()


def import_aiohttp() -> None:
    """Imports aiohttp without certificates, unless somebody imported it before. Every TLS connection must then wait for
    `certificates_read`: not for a program that embeds the proxy."""
    if "aiohttp" in sys.modules:
        return
    _State.missing = True
    with_files = ssl.SSLContext.set_default_verify_paths
    setattr(ssl.SSLContext, "set_default_verify_paths", lambda _context: None)  # noqa: B010
    try:
        import aiohttp  # noqa: F401
    finally:
        setattr(ssl.SSLContext, "set_default_verify_paths", with_files)  # noqa: B010


async def certificates_read(context: ssl.SSLContext) -> None:
    """Returns when the context has certificates, which are read if they are missing."""
    if _State.missing:
        await asyncio.to_thread(_read, context)


def _read(context: ssl.SSLContext) -> None:
    with _State.reading:  # of threads: one whose task was cancelled reads on
        if _State.missing:
            context.set_default_verify_paths()
            _State.missing = False
