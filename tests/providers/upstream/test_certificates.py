"""aiohttp without certificates, until a connection needs them."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from unittest.mock import Mock

import aiohttp
import pytest
import trustme
from processes import environment, finished, start

from proxy.providers.upstream import certificates

#: How many certificates the contexts of aiohttp have before and after they are read, and a new one.
CODE = """
import asyncio, ssl
from proxy.providers.upstream import certificates
certificates.import_aiohttp()
from aiohttp import connector
from proxy.providers.upstream.aiohttp_internals import ready_for_tls
context = connector._SSL_CONTEXT_VERIFIED
before = len(context.get_ca_certs())

async def ready():
    await asyncio.gather(*(ready_for_tls() for _ in range(3)))

asyncio.run(ready())
new = ssl.create_default_context()
print(before, len(context.get_ca_certs()), len(new.get_ca_certs()), context.verify_mode.name, context.check_hostname)
"""


async def test_they_are_read_once_for_the_context_that_checks(tmp_path: Path) -> None:
    file = tmp_path / "some.pem"
    trustme.CA().cert_pem.write_to_path(file)
    env = environment(tmp_path, SSL_CERT_FILE=str(file), SSL_CERT_DIR=str(tmp_path / "none"))
    done = await finished(await start(sys.executable, "-c", CODE, env=env))
    assert (done.out, done.err) == ("0 1 1 CERT_REQUIRED True\n", "")


async def test_who_leaves_while_they_are_read_does_not_have_them_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, told = threading.Event(), threading.Event()
    context = Mock()
    context.set_default_verify_paths.side_effect = lambda: (begun.set(), told.wait(5))
    monkeypatch.setattr(certificates._State, "missing", True)
    first = asyncio.create_task(certificates.certificates_read(context))
    await asyncio.to_thread(begun.wait, 5)
    first.cancel()
    second = asyncio.create_task(certificates.certificates_read(context))
    await asyncio.wait({first})
    await asyncio.sleep(0.05)
    told.set()
    await second
    assert context.set_default_verify_paths.call_count == 1 and not certificates._State.missing


async def test_an_aiohttp_of_somebody_else_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates._State, "missing", False)
    certificates.import_aiohttp()
    assert aiohttp and not certificates._State.missing
