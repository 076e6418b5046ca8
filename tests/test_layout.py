"""The folders at the top are the package: each has its link, and nothing else stands in src/opsleuth."""

from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
PACKAGE = TOP / "src" / "opsleuth"
OWN = {"__init__.py", "__main__.py", "py.typed"}


def rooms() -> set[str]:
    return {p.parent.name for p in TOP.glob("*/__init__.py") if p.parent.name != "tests"}


def test_every_room_has_its_link() -> None:
    links = {p.name for p in PACKAGE.iterdir() if p.is_symlink()}
    assert links == rooms() | {"cli.py"}
    for link in links:
        assert (PACKAGE / link).readlink() == Path("../..") / link


def test_nothing_else_stands_in_the_package() -> None:
    plain = {p.name for p in PACKAGE.iterdir() if not p.is_symlink() and p.name != "__pycache__"}
    assert plain == OWN
