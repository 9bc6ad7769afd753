"""The HTTP answers that come from in front of a backend and hence look the same everywhere.

An HTTP fault is a function of the parameters of its script step; its signature is the list of those parameters.
"""

from __future__ import annotations

from collections.abc import Callable

from proxy.sandbox.play.actions import Reply

HttpFault = Callable[..., Reply]


def _html_error(status: int = 502) -> Reply:
    """What a load balancer in front of the backend says."""
    page = f"<html><head><title>{status}</title></head><body><h1>{status}</h1><p>Bad gateway</p></body></html>"
    return Reply(status, page)


def _redirect(location: str = "/elsewhere", status: int = 302) -> Reply:
    """A client that follows it would carry its credential there."""
    return Reply(status, "", {"location": location})


def wait_header(seconds: float | None) -> dict[str, str]:
    """The header, in seconds; none for None."""
    return {} if seconds is None else {"retry-after": f"{seconds:g}"}


FRONT_FAULTS: dict[str, HttpFault] = {"html_error": _html_error, "redirect": _redirect}
