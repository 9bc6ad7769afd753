"""Media types and other header values with parameters."""

from __future__ import annotations

import re

from proxy.core.media.refusals import broken

#: The standard allows 70.
MAX_BOUNDARY = 200

_PARAMETER = re.compile(r'\s*;\s*(?:([^\s;="]+)\s*=\s*(?:"((?:[^"\\]|\\.)*+)"|([^\s;"]*)))?', re.DOTALL)
#: A backslash before anything else is one: file names of Windows are sent as they are.
_ESCAPED = re.compile(r'\\(["\\])')


def essence(content_type: str) -> str:
    """A media type without its parameters.

    >>> essence(" Multipart/Form-Data ; boundary=x")
    'multipart/form-data'
    """
    return content_type.partition(";")[0].strip().lower()


def parameters(value: str) -> dict[str, str] | None:
    r"""The parameters of a header value, their names in lower case. None when they cannot be read, or when one occurs
    twice: two readers may take it for different things.

    >>> parameters('form-data; name="a \\"b\\""; FileName=x.png')
    {'name': 'a "b"', 'filename': 'x.png'}
    >>> parameters("form-data; name=a; name=b"), parameters("form-data; name")
    (None, None)
    """
    found: dict[str, str] = {}
    place = len(value.partition(";")[0])
    while place < len(value):
        match = _PARAMETER.match(value, place)
        if match is None:
            return None if value[place:].strip() else found
        name, quoted, token = match.groups()
        if name is not None:
            if name.lower() in found:
                return None
            found[name.lower()] = token if quoted is None else _ESCAPED.sub(r"\1", quoted)
        place = match.end()
    return found


def boundary_of(content_type: str) -> bytes:
    """What stands between the parts of a form. Raises InvalidRequest when there is none that can be used.

    >>> boundary_of('multipart/form-data; charset=utf-8; Boundary="a b"')
    b'a b'
    """
    boundary = (parameters(content_type) or {}).get("boundary", "")
    if not boundary:
        raise broken("its content type names no boundary")
    if len(boundary) > MAX_BOUNDARY or not boundary.isascii() or not boundary.isprintable() or boundary[-1] == " ":
        raise broken("the boundary in its content type cannot be used")
    return boundary.encode()
