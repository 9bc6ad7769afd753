"""What a user pastes at the end of a sign-in in a browser elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest
from samples import rows

from proxy.auth import pasted
from proxy.auth.pasted import MAX_PASTE_CHARACTERS, MAX_PASTES, ask, read_paste
from proxy.errors import SignInError

PATH = "/auth/callback"
QUERY = "code=C%2F1&scope=x&state=S"
ADDRESS = f"http://localhost:1455{PATH}?{QUERY}"
OTHER = "belongs to another sign-in"
ELSEWHERE = "not the address that the browser ended at"


@rows(
    "text, code",
    [
        *((text, "C/1") for text in (ADDRESS, f"  {ADDRESS}\r", f'"{ADDRESS}"', f"<{ADDRESS}>", f"{ADDRESS}#")),
        # As browsers show an address, and parts of it.
        *((text, "C/1") for text in (ADDRESS.removeprefix("http://"), f"{PATH}?{QUERY}", f"?{QUERY}", QUERY)),
        ("ac_0123-456~7", "ac_0123-456~7"),
    ],
)
def test_a_code_is_found(text: str, code: str) -> None:
    found = read_paste(text, path=PATH, state="S")
    assert (found.code, found.refused, found.wrong) == (code, None, None)


@rows(
    "text, why",
    [
        ("", "nothing"),
        ("  \r", "nothing"),
        ("x" * (MAX_PASTE_CHARACTERS + 1), "too long"),
        *((ADDRESS.replace("state=S", state), OTHER) for state in ("state=T", "state=", "")),
        (f"http://localhost:1455{PATH}?code=SECRET&error=denied", OTHER),
        ("http://[/", OTHER),
        *((text, ELSEWHERE) for text in ("https://issuer/oauth/authorize?state=S&code=C", "short", "a b c d e f g h")),
    ],
)
def test_what_is_of_no_use_is_told_without_repeating_it(text: str, why: str) -> None:
    found = read_paste(text, path=PATH, state="S")
    assert found.code is None and found.refused is None
    assert found.wrong is not None and why in found.wrong and "SECRET" not in found.wrong


async def asked(lines: Iterable[str | None]) -> tuple[str, list[str]]:
    """What came of these pastes, and what the user was told."""
    said: list[str] = []
    each = iter(lines)

    async def read() -> str | None:
        return next(each)

    try:
        return await ask(read, label="p1", path=PATH, state="S", say=said.append), said
    except SignInError as error:
        return error.message, said


async def test_a_wrong_paste_is_asked_for_again() -> None:
    code, said = await asked(["", ADDRESS.replace("state=S", "state=T"), ADDRESS])
    assert code == "C/1" and [line.partition(":")[0] for line in said] == ["Not usable", "Not usable"]


async def test_asking_ends() -> None:
    ended, said = await asked([""] * MAX_PASTES)
    assert ended == f"None of {MAX_PASTES} pastes was usable; start again." and len(said) == MAX_PASTES
    assert await asked([None]) == ("The input ended before an address was pasted.", [])
    refused = await asked([f"{PATH}?state=S&error=access_denied&error_description=Not%20you"])
    assert refused == ("The sign-in was refused: access_denied: Not you.", [])


async def test_nothing_is_pasted_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pasted, "PASTE_TIMEOUT_S", 0.001)
    with pytest.raises(SignInError, match=r"within 0\.001 s"):
        await ask(asyncio.Event().wait, label="p1", path=PATH, state="S", say=print)  # type: ignore[arg-type]
