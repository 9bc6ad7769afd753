"""Removes captures: what has our names, and the folders that are empty then. Anything else stays where it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from proxy.observe.capture.layout import EVENTS
from proxy.observe.capture.reading.folder import CaptureFolder


@dataclass(slots=True)
class Removal:
    """What went, and the folders that stayed since they hold something that is not ours."""

    captures: int = 0
    files: int = 0
    size: int = 0
    kept: int = 0


def measured(captures: Iterable[CaptureFolder]) -> Removal:
    """What a removal would take away."""
    done = Removal()
    for capture in captures:
        sizes = [one.size for one in capture.artifacts()]
        done.captures += 1
        done.files += len(sizes)
        done.size += sum(sizes)
    return done


def remove(captures: Iterable[CaptureFolder]) -> Removal:
    """Removes them. Raises OSError for the first file that cannot be removed, once all others are."""
    done = Removal()
    first: OSError | None = None
    for capture in captures:
        for artifact in capture.artifacts():
            try:
                artifact.path.unlink(missing_ok=True)
            except OSError as error:
                first = first or error
                continue
            done.files += 1
            done.size += artifact.size
        _remove_empty(capture.path / EVENTS)
        gone = _remove_empty(capture.path)
        done.captures += gone
        done.kept += not gone
        _remove_empty(capture.path.parent)
    if first is not None:
        raise first
    return done


def _remove_empty(folder: Path) -> bool:
    try:
        folder.rmdir()  # refuses a link, and a folder that holds something
    except OSError:
        return not folder.exists()
    return True
