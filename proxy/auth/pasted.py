"""Ends a sign-in in a browser that cannot reach this machine: the user pastes the browser's last address."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from proxy.auth.callback import judge
from proxy.errors import SignInError

#: Reads one line from the user, without its end; None at the end of the input.
ReadLine = Callable[[], Awaitable[str | None]]

#: Time from the printed address to the right paste: the user may go to another device first.
PASTE_TIMEOUT_S = 900.0

#: Maximum number of pastes.
MAX_PASTES = 5

#: Longer than any address that an issuer sends.
MAX_PASTE_CHARACTERS = 8192

#: A code alone, as some issuers show one. It needs no state: the issuer returns no token for a code that was not made
#: for this sign-in's challenge.
_CODE = re.compile(r"[\w.~+-]{8,}", re.ASCII)

_EXPECTED = "expected the whole address, with code= and state= in it"


@dataclass(frozen=True, slots=True)
class Pasted:
    """The meaning of a paste: exactly one member is set. `wrong` is the reason why it is not usable, without its
    text."""

    code: str | None = None
    refused: str | None = None
    wrong: str | None = None


def read_paste(text: str, *, path: str, state: str) -> Pasted:
    """The meaning of `http://localhost:1455/auth/callback?code=…&state=…`, of its query alone, or of the code alone."""
    text = text.strip().strip("\"'<>")
    if not text or len(text) > MAX_PASTE_CHARACTERS:
        return Pasted(wrong="nothing was pasted" if not text else f"too long; {_EXPECTED}")
    if _CODE.fullmatch(text):
        return Pasted(code=text)
    verdict = judge("GET", _target(text, path), path=path, state=state)
    if verdict.page is None or verdict.refused is not None:
        return Pasted(code=verdict.code, refused=verdict.refused)
    wrong = {
        400: "that address belongs to another sign-in, or a part of it is missing",
        404: "that is not the address that the browser ended at",
    }
    return Pasted(wrong=f"{wrong[verdict.page.status]}; {_EXPECTED}")


def _target(text: str, path: str) -> str:
    """The whole address: browsers show some without `http://`, and a user may copy only the query."""
    head, mark, query = text.partition("?")
    if not mark and "=" in head:
        return f"{path}?{head}"
    if not head:
        return f"{path}?{query}"
    return text if "://" in head else f"http://{text}"


async def ask(read: ReadLine, *, label: str, path: str, state: str, say: Callable[[str], None]) -> str:
    """The code that the user pastes. Raises SignInError if the issuer refused, if no usable paste came within the
    limits, and at the end of the input."""
    try:
        async with asyncio.timeout(PASTE_TIMEOUT_S):
            for _ in range(MAX_PASTES):
                line = await read()
                if line is None:
                    raise SignInError("The input ended before an address was pasted.", provider=label)
                found = read_paste(line, path=path, state=state)
                if found.refused is not None:
                    raise SignInError(f"The sign-in was refused: {found.refused}.", provider=label)
                if found.code is not None:
                    return found.code
                say(f"Not usable: {found.wrong}.")
    except TimeoutError:
        raise SignInError(f"No address was pasted within {PASTE_TIMEOUT_S:g} s; start again.", provider=label) from None
    raise SignInError(f"None of {MAX_PASTES} pastes was usable; start again.", provider=label)
