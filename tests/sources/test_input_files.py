"""What lies behind a path that a person names: never anything outside it, never a key, never a bomb."""

import io
import os
import socket
import tarfile
import zipfile
from pathlib import Path

import pytest

from opsleuth.tools.sources.input_archives import ArchiveLimits
from opsleuth.tools.sources.input_files import InputCollector, InputListing, collect_input_files

LINE = b"2026-11-29T14:00:02.149Z ERROR charge failed\n"


def collected(path: Path, scratch: Path, limits: ArchiveLimits | None = None) -> InputListing:
    collector = InputCollector(scratch, limits)
    collector.add(path)
    return collector.found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    given = tmp_path / "given"
    given.mkdir()
    (given / "app.log").write_bytes(LINE)
    return given


def reasons(found: InputListing) -> dict[str, str]:
    return dict(found.skipped)


def test_links_that_lead_out_are_listed_and_not_read(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "secret.log").write_bytes(LINE)
    (folder / "out.log").symlink_to(tmp_path / "secret.log")
    (folder / "away").symlink_to(tmp_path)
    (folder / "again.log").symlink_to(folder / "app.log")
    found = collected(folder, tmp_path / "s")
    assert found.files == [folder / "app.log"]
    assert reasons(found).keys() == {"out.log", "away"}


@pytest.mark.parametrize("circle", [("self.log",), ("one.log", "two.log"), ("a", "b", "c")])
def test_links_in_a_circle_are_listed_and_not_followed(
    tmp_path: Path, folder: Path, circle: tuple[str, ...]
) -> None:
    for name, target in zip(circle, (*circle[1:], circle[0]), strict=True):
        (folder / name).symlink_to(target)
    found = collected(folder, tmp_path / "s")
    assert found.files == [folder / "app.log"]
    assert reasons(found) == dict.fromkeys(circle, "a link that leads nowhere")
    assert reasons(collected(folder / circle[0], tmp_path / "t")) == {circle[0]: "a link that leads nowhere"}


def test_pipes_sockets_and_keys_are_never_opened(tmp_path: Path, folder: Path) -> None:
    os.mkfifo(folder / "pipe.log")
    for name in ("id_ed25519", ".env", "server.pem", "kubeconfig"):
        (folder / name).write_bytes(LINE)
    (folder / ".ssh").mkdir()
    (folder / ".ssh" / "known.log").write_bytes(LINE)
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(folder)
        listening.bind("s")
        os.chdir(here)
        found = collected(folder, tmp_path / "s")
    assert found.files == [folder / "app.log"]
    told = reasons(found)
    assert told["pipe.log"] == "a pipe"
    assert told["s"] == "a socket"
    assert {"id_ed25519", ".env", "server.pem", "kubeconfig", ".ssh"} <= told.keys()


def test_a_device_that_is_named_is_not_read(tmp_path: Path) -> None:
    assert reasons(collected(Path("/dev/zero"), tmp_path)) == {"zero": "a device"}


def test_members_of_a_tar_stay_inside_and_links_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "bundle.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in ("pods/app.log", "../evil.log", "/abs.log", "x/.env"):
            info = tarfile.TarInfo(name)
            info.size = len(LINE)
            archive.addfile(info, io.BytesIO(LINE))
        link = tarfile.TarInfo("link.log")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    scratch = tmp_path / "s"
    found = collected(path, scratch)
    assert [file.name for file in found.files] == ["app.log"]
    assert found.files[0].read_bytes() == LINE
    assert len(found.skipped) == 4
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bundle.tar.gz", "s"]


def test_a_bomb_is_stopped_at_its_limit_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("first.log", LINE)
        archive.writestr("big.log", b"0" * 5_000_000)
    found = collected(path, tmp_path / "s", ArchiveLimits(free_bytes=100_000, ratio=10))
    assert [file.name for file in found.files] == ["first.log"]
    assert "unpacks to more than" in reasons(found)["bomb.zip"]


def test_too_many_members_are_cut_and_named(tmp_path: Path) -> None:
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(5):
            archive.writestr(f"{number}.log", LINE)
    found = collected(path, tmp_path / "s", ArchiveLimits(files=3))
    assert len(found.files) == 3
    assert "first 3 members" in reasons(found)["many.zip"]


def test_archives_inside_archives_end_at_the_depth(tmp_path: Path) -> None:
    inner = tmp_path / "0.zip"
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("deep.log", LINE)
    for number in (1, 2):
        outer = tmp_path / f"{number}.zip"
        with zipfile.ZipFile(outer, "w") as archive:
            archive.write(inner, inner.name)
        inner = outer
    found = collected(inner, tmp_path / "s")
    assert found.files == []
    assert reasons(found) == {"0.zip": "an archive inside 2 archives"}


def test_damaged_archives_are_said_and_do_not_stop_the_rest(folder: Path, tmp_path: Path) -> None:
    (folder / "broken.zip").write_bytes(b"PK\x03\x04 not a zip")
    (folder / "broken.tgz").write_bytes(b"\x1f\x8b not gzip")
    found = collected(folder, tmp_path / "s")
    assert found.files == [folder / "app.log"]
    assert reasons(found).keys() == {"broken.zip", "broken.tgz"}


def test_a_file_named_twice_is_read_once(folder: Path, tmp_path: Path) -> None:
    assert collect_input_files([folder, folder / "app.log"], tmp_path / "s").files == [folder / "app.log"]


def test_a_file_whose_name_is_not_utf8_is_read_under_a_name_that_can_be_stored(
    tmp_path: Path, folder: Path
) -> None:
    odd = Path(os.fsdecode(os.fsencode(folder) + b"/b\xff\xfe.log"))
    odd.write_bytes(LINE)
    os.mkfifo(os.fsencode(folder) + b"/p\xff.log")
    found = collected(folder, tmp_path / "scratch")
    assert [path.name for path in found.files] == ["app.log", "b__.log"]
    assert found.files[1].resolve() == odd
    assert reasons(found) == {"p\ufffd.log": "a pipe"}
    assert collected(odd, tmp_path / "scratch-2").files[0].name == "b__.log"
