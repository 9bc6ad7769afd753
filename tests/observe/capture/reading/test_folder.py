"""Which captures there are: only what has our names, and nothing behind a link."""

from __future__ import annotations

from pathlib import Path

import pytest
from captured import NOON, write_capture

from proxy.observe.capture.layout import METADATA, TRAFFIC, UPSTREAM_REQUEST
from proxy.observe.capture.reading.folder import Unreadable, captures_in, measured, remove


@pytest.fixture
def traffic(tmp_path: Path) -> Path:
    return tmp_path / TRAFFIC


def test_captures_come_in_the_order_of_their_beginning(tmp_path: Path, traffic: Path) -> None:
    write_capture(tmp_path, session="b", number=1, begun_s=NOON + 5)
    write_capture(tmp_path, session="a", number=10, begun_s=NOON + 9)
    write_capture(tmp_path, session="a", number=9, begun_s=NOON)
    write_capture(tmp_path, session=None, request_id="x-1", provider="p5", begun_s=NOON + 1)
    found = captures_in(traffic)
    assert [(one.session, one.number, one.provider) for one in found] == [
        *(("a", 9, "p1"), ("no-session", 0, "p5"), ("b", 1, "p1"), ("a", 10, "p1"))
    ]
    assert found[1].request_id == "x-1" and found[0].begun_s == NOON


def test_artifacts_come_in_the_order_of_writing(tmp_path: Path, traffic: Path) -> None:
    folder = write_capture(tmp_path, received={"a": 1}, sent={"b": 1}, events=2)
    (folder / "005-020-upstream-request.json").write_text('{"b": 2}')
    (capture,) = captures_in(traffic)
    assert [one.name for one in capture.artifacts()] == [
        "001-000-metadata.json",
        "002-010-anthropic-request.json",
        "003-020-upstream-request.json",
        "004-061-request-summary.json",
        "005-020-upstream-request.json",
        "events/000001-050-downstream-event.json",
        "events/000002-050-downstream-event.json",
    ]
    assert capture.read_object(UPSTREAM_REQUEST) == {"b": 2}, "the last attempt"


#: name of what stands in a session's folder, or in a capture's
STRANGERS = ["notes", "000001-p1", "1-p1-id", "00001-p1-id", "000001-p 1-id", ".git"]


@pytest.mark.parametrize("name", STRANGERS)
def test_other_folders_are_not_seen(name: str, tmp_path: Path, traffic: Path) -> None:
    (traffic / "s" / name).mkdir(parents=True)
    (traffic / name).mkdir(parents=True, exist_ok=True)
    assert captures_in(traffic) == []


def test_no_link_is_followed(tmp_path: Path, traffic: Path) -> None:
    elsewhere = write_capture(tmp_path / "elsewhere", number=7)
    secret = tmp_path / "secret.json"
    secret.write_text('{"secret": 1}')
    folder = write_capture(tmp_path, received={"a": 1}, events=1)
    (traffic / "linked").symlink_to(elsewhere.parent)
    (traffic / "s" / elsewhere.name).symlink_to(elsewhere)
    (folder / "009-020-upstream-request.json").symlink_to(secret)
    (capture,) = captures_in(traffic)
    assert capture.last(UPSTREAM_REQUEST) is None
    metadata = capture.last(METADATA)
    assert metadata is not None
    metadata.path.unlink()
    metadata.path.symlink_to(secret)  # between the look and the reading
    with pytest.raises(Unreadable, match=metadata.name):
        metadata.read()
    assert captures_in(tmp_path / "nowhere") == [] and captures_in(traffic / "linked") == []


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"\xff", b"[" * 200_000], ids=["none", "half", "list", "bytes", "deep"]
)
def test_what_is_no_object_is_unreadable(data: bytes, tmp_path: Path, traffic: Path) -> None:
    folder = write_capture(tmp_path)
    (folder / "001-000-metadata.json").write_bytes(data)
    (capture,) = captures_in(traffic)
    artifact = capture.last(METADATA)
    assert artifact is not None and capture.read_object(METADATA) == {}
    with pytest.raises(Unreadable, match=r"001-000-metadata\.json: not"):
        artifact.object()


def everything(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


def test_a_removal_takes_captures_and_the_folders_that_are_empty_then(tmp_path: Path, traffic: Path) -> None:
    write_capture(tmp_path, number=1, received={"a": 1}, events=3)
    write_capture(tmp_path, session="other")
    found = captures_in(traffic)
    size = sum(path.stat().st_size for path in traffic.rglob("*") if path.is_file())
    before = everything(tmp_path)
    planned = measured(found)
    assert everything(tmp_path) == before
    done = remove(found)
    assert (done.captures, done.files, done.size, done.kept) == (2, 8, size, 0) and planned == done
    assert everything(tmp_path) == {TRAFFIC}


def test_a_removal_leaves_what_is_not_ours(tmp_path: Path, traffic: Path) -> None:
    outside = tmp_path / "precious"
    outside.mkdir()
    (outside / "000001-040-upstream-event.json").write_text("{}")
    folder = write_capture(tmp_path, number=1, events=1)
    (folder / "notes.txt").write_text("mine")
    (folder / "009-020-upstream-request.json").symlink_to(outside / "000001-040-upstream-event.json")
    linked = write_capture(tmp_path, session="t", number=2)
    (linked / "events").rmdir()
    (linked / "events").symlink_to(outside)
    (traffic / "readme").write_text("mine")
    done = remove(captures_in(traffic))
    assert (done.captures, done.kept) == (0, 2)
    assert (outside / "000001-040-upstream-event.json").exists() and (linked / "events").is_symlink()
    assert everything(folder) == {"notes.txt", "009-020-upstream-request.json"} and (traffic / "readme").exists()


def test_what_is_gone_meanwhile_is_no_error(tmp_path: Path, traffic: Path) -> None:
    folder = write_capture(tmp_path)
    found = captures_in(traffic)
    for file in [*folder.iterdir()]:
        file.rmdir() if file.is_dir() else file.unlink()
    folder.rmdir()
    assert remove(found).kept == 0
