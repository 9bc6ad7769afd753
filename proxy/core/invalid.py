"""How the core says that a request cannot be served."""

from __future__ import annotations


class InvalidRequest(ValueError):
    """The request is wrong. The edge turns it into a 400 in the caller's own format.

    param  the offending member, as OpenAI names it: `messages[0].content`
    code   a machine-readable word of the OpenAI family, e.g. unsupported_parameter
    """

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code
