"""HTTP answers instead of a stream, as rows, and those that come from in front of any backend.

An HTTP fault is a function of the parameters of its script step; its signature is the list of those parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import Any

from proxy.sandbox.play.actions import Reply

HttpFault = Callable[..., Reply]

#: The parameters of a step, or their defaults.
Values = Mapping[str, Any]


def wait_header(values: Values) -> dict[str, str]:
    """`retry-after`, of `seconds` or `retry_after`; none for None."""
    seconds = values.get("seconds", values.get("retry_after"))
    return {} if seconds is None else {"retry-after": f"{seconds:g}"}


def failure(
    status: int, body: Any, headers: Callable[[Values], Mapping[str, str]] = wait_header, /, **params: Any
) -> HttpFault:
    """A row: status, body (perhaps a function of the values) and headers. `params` are what a step may give, with their
    defaults; a `status` among them replaces that of the row."""

    def fault(**given: Any) -> Reply:
        values = {"status": status, **params, **given}
        return Reply(values["status"], body(values) if callable(body) else body, headers(values))

    parameters = [Parameter(name, Parameter.KEYWORD_ONLY, default=default) for name, default in params.items()]
    fault.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return fault


def _html_page(values: Values) -> str:
    title = values["status"]
    return f"<html><head><title>{title}</title></head><body><h1>{title}</h1><p>Bad gateway</p></body></html>"


def _error(values: Values) -> dict[str, Any]:
    return {"error": {"message": values["message"], "type": values["kind"], "code": values["code"]}}


FRONT_FAULTS: dict[str, HttpFault] = {
    # a gateway that had promised a stream
    "json_error": failure(200, _error, message="boom", kind="invalid_request_error", code=None),
    # what a load balancer in front of the backend says
    "html_error": failure(502, _html_page, status=502),
    # a client that follows it would carry its credential there
    "redirect": failure(302, "", lambda values: {"location": values["location"]}, location="/elsewhere", status=302),
}
