"""Opens the user's browser without waiting for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import PurePath

#: Opens an address and returns whether that worked.
Opener = Callable[[str], object]

#: Browsers that would take over the terminal that shows the address, and in which no issuer's page works.
TEXT_BROWSERS = {"lynx", "links", "elinks", "w3m", "www-browser"}


def open_graphical(url: str) -> bool:
    """Opens the address in the default browser unless that is a text browser."""
    import webbrowser  # late: the server imports this module and never opens anything

    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    if PurePath(str(getattr(browser, "name", ""))).name in TEXT_BROWSERS:
        return False
    return bool(browser.open(url))


def open_in_background(url: str, opener: Opener) -> None:
    """Calls the opener in a thread and ignores failures: the printed address is enough for the sign-in.

    A daemon thread, because some browsers stay in the foreground and would keep the program from ending.
    """

    def run() -> None:
        try:
            opener(url)
        except Exception:  # noqa: S110  after any failure of a desktop the user opens the address
            pass

    threading.Thread(target=run, name="open-browser", daemon=True).start()
