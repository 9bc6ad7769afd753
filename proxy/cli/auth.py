"""`auth login|status|logout`: the account of a provider, or all accounts.

Pasted lines are read without an echo: they may be secret, and a terminal may be recorded (`docker logs` has all that
the terminal of a container showed).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
from collections.abc import Iterator
from threading import Thread
from typing import TYPE_CHECKING

from proxy.cli.account import Owned, SignIn, account_of, accounts_of, cures, sign_in, sign_ins
from proxy.cli.command import Context, say
from proxy.cli.config_file import ConfigFile
from proxy.config import ConfigError
from proxy.core.allowances.accounts import DEFAULT
from proxy.errors import ProxyError
from proxy.providers.entry import account_titles

if TYPE_CHECKING:
    from proxy.providers.accounts.account import Account


_ACTIONS = "login: sign in; status: who is signed in; logout: delete what is stored"


def arguments(parser: argparse.ArgumentParser, context: Context) -> None:
    parser.add_argument("action", choices=("login", "status", "logout"), help=_ACTIONS)
    parser.add_argument("label", nargs="?", help=f"{account_titles(context.providers)}; all for status without one")
    parser.add_argument("--as", dest="account", metavar="NAME", help="another account of the provider, by its name")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--device", action="store_true", help="sign in with a code on another device")
    how.add_argument(
        "--paste", action="store_true", help="sign in with a browser elsewhere, then paste its last address"
    )


async def run(arguments: argparse.Namespace, context: Context) -> int:
    if arguments.label is None:
        if arguments.account is not None:
            raise ConfigError(f"--as needs a provider: {context.program} auth {arguments.action} LABEL --as NAME")
        if arguments.action == "status":
            return _all(context)
        which = account_titles(context.providers)
        raise ConfigError(f"of which provider? {context.program} auth {arguments.action} LABEL, one of {which}")
    owned = account_of(arguments.label, context, arguments.account or DEFAULT)
    if arguments.action == "status":
        return _status(owned, context, alone=arguments.account is not None)
    try:
        if arguments.action == "logout":
            await owned.account.logout(say=owned.say)
        elif arguments.paste:
            await _paste(owned, arguments.label)
        else:
            await owned.account.login(device=arguments.device, say=owned.say)
    except ProxyError as error:
        raise error.replaced(message=owned.worded(error.message)) from None
    return 0


async def _paste(owned: Owned, called: str) -> None:
    """Signs in with a pasted address. `called`: the user's name for the provider."""
    from proxy.providers.accounts.account import Pasting

    account: Account = owned.account
    if not isinstance(account, Pasting):
        how = owned.entry.sign_in.replace("`", "")
        raise ConfigError(f"nothing can be pasted for {called} (--paste is unsupported); it signs in otherwise: {how}")
    with LineInput() as lines:
        await account.login_pasted(read=lines.read, say=owned.say)


def _status(asked: Owned, context: Context, *, alone: bool) -> int:
    """Prints the status of an account and of the provider's others; returns 1 when none can be used."""
    every = [] if alone else accounts_of(context, ConfigFile(context, new=True))
    others = [one for one in every if one.entry is asked.entry and one.name != asked.name]
    if not others:
        return 0 if asked.account.status(say=asked.say) else 1
    return _print_states([sign_in(one) for one in (asked, *others)])


def _all(context: Context) -> int:
    """Prints the status of every account; returns 1 when none can be used."""
    found = sign_ins(context, ConfigFile(context, new=True))
    if not _print_states(found):
        return 0
    say("\n".join(cures(found, context.program)))
    return 1


def _print_states(found: list[SignIn]) -> int:
    """Prints the status of accounts by their names; returns 1 when none can be used."""
    for one in found:
        say(f"{one.title}: {one.state}")
        for line in one.lines if one.usable else one.lines[1:]:
            say(f"  {line}")
    return 0 if any(one.usable for one in found) else 1


#: Bytes of one line; the rest of a longer one is dropped.
MAX_LINE_BYTES = 64 * 1024


class LineInput:
    """Reads lines: `with LineInput() as lines: await lines.read()`. Its own thread waits for the input and ends with
    the process, so Ctrl-C and a time limit work meanwhile."""

    def __init__(self, descriptor: int | None = None) -> None:
        self._descriptor = sys.stdin.fileno() if descriptor is None else descriptor
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._silence = contextlib.ExitStack()

    def __enter__(self) -> LineInput:
        self._silence.enter_context(_without_echo(self._descriptor))
        Thread(target=self._wait, args=(asyncio.get_running_loop(),), daemon=True).start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._silence.close()

    async def read(self) -> str | None:
        """The next line without its end, None at the end of the input."""
        line = await self._lines.get()
        return None if line is None else line.decode(errors="replace")

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, so no task waits for lines
            for line in self._from_input():
                loop.call_soon_threadsafe(self._lines.put_nowait, line)

    def _from_input(self) -> Iterator[bytes | None]:
        rest = b""
        while piece := self._piece():
            *lines, rest = (rest + piece).split(b"\n")
            yield from lines
            rest = rest[:MAX_LINE_BYTES]
        yield from (rest, None) if rest else (None,)

    def _piece(self) -> bytes:
        try:
            return os.read(self._descriptor, 4096)
        except OSError:  # the terminal was closed
            return b""


@contextlib.contextmanager
def _without_echo(descriptor: int) -> Iterator[None]:
    """Switches off the terminal's echo, and back on afterwards. Does nothing except on a POSIX terminal."""
    if not os.isatty(descriptor) or os.name != "posix":
        yield
        return
    import termios

    before = termios.tcgetattr(descriptor)
    silent = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
    termios.tcsetattr(descriptor, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
