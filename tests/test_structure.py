"""The shape of the code: no import cycles, and figures that may only fall. benchmarks/structure.py measures them."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import structure
from nonempty import nonempty

REMEDIES = {
    "one_word_functions": "name each new function by a verb and an object (reset_strikes)",
    "repeated_classes": "give the new class a name that no other file defines (ApprovalAnswer)",
    "misnamed_exceptions": "let the name of the new exception end in Error",
    "words_against_glossary": "use the term that docs/glossary.md gives for this word",
    "noqa": "change the code, or give the rule a reason for the whole file in pyproject.toml",
}
LOWER = "python benchmarks/structure.py --keep"


@pytest.fixture(scope="module")
def figures() -> Mapping[str, Any]:
    return structure.measure()


@pytest.mark.parametrize("kind", REMEDIES)
def test_no_figure_rises(figures: Mapping[str, Any], kind: str) -> None:
    kept, now = json.loads(structure.KEPT.read_text()), structure.select_kept_figures(figures)
    rises = structure.find_rises({kind: kept[kind]}, {kind: now[kind]})
    lines = [f"  {name}: {count}, at most {before} are kept" for _, name, before, count in rises]
    remedy = f"{REMEDIES[kind]}. Figures that fell are lowered in tests/structure.json by `{LOWER}`"
    assert not rises, "\n".join([f"{kind} rose:", *lines, remedy])


def test_every_kept_figure_is_held() -> None:
    assert json.loads(structure.KEPT.read_text()).keys() == REMEDIES.keys()


def test_no_import_cycles(figures: Mapping[str, Any]) -> None:
    cycles = [" <-> ".join(cycle) for cycle in figures["import_cycles"]]
    assert not cycles, "\n".join(["move what these modules share into a module below them:", *cycles])


def test_glossary_has_each_term_once_and_uses_no_word_it_replaces() -> None:
    rows = structure.read_glossary()
    terms = [term for term, _, _ in rows]
    replaced = [word for _, _, words in rows for word in words]
    assert [name for name, count in Counter([*terms, *replaced]).items() if count > 1] == []
    assert {word for term in terms for word in term.split()}.isdisjoint(replaced)
    assert all(meaning.endswith(".") for _, meaning, _ in nonempty(rows))


def test_glossary_is_in_order() -> None:
    terms = [term for term, _, _ in structure.read_glossary()]
    assert terms == sorted(terms)


# The measure itself, on a small project.


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of two rooms and no module."""
    package = tmp_path / "src" / "opsleuth"
    package.mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "glossary.md").write_text(
        "| term | meaning | not |\n| --- | --- | --- |\n| digest | A. | `hash` |\n"
    )
    for room in ("high", "low"):
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").touch()
        (package / room).symlink_to(f"../../{room}")
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        "from opsleuth.high.one import one",
        "def late():\n    import opsleuth.high.one",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from opsleuth.high import one",
    ],
)
def test_hidden_cycles_are_found(project: Path, line: str) -> None:
    (project / "high" / "one.py").write_text("from opsleuth.low import two\ndef one(): ...\n")
    (project / "low" / "two.py").write_text(f"{line}\n")
    assert structure.measure(project)["import_cycles"] == [["opsleuth.high.one", "opsleuth.low.two"]]


def test_cycle_through_a_package_is_found(project: Path) -> None:
    (project / "low" / "__init__.py").write_text("from opsleuth.low.two import two\nlimit = 1\n")
    (project / "low" / "two.py").write_text("from opsleuth.low import limit\ndef two(): ...\n")
    assert structure.measure(project)["import_cycles"] == [["opsleuth.low", "opsleuth.low.two"]]


def test_sibling_import_in_a_package_is_no_cycle(project: Path) -> None:
    (project / "low" / "__init__.py").write_text("from opsleuth.low.two import two\n")
    (project / "low" / "two.py").write_text("from opsleuth.low import three\ndef two(): ...\n")
    (project / "low" / "three.py").touch()
    assert structure.measure(project)["import_cycles"] == []


def test_names_and_comments_are_counted(project: Path) -> None:
    (project / "high" / "one.py").write_text(
        "class Lost(ValueError): ...\n"
        "class Gone(Lost): ...\n"
        "class Answer: ...\n"
        "def _read(): ...  # noqa: ANN202\n"
        "def read_hash():\n    def inner(): ...\n"
    )
    (project / "low" / "two.py").write_text("class Answer: ...\nTEXT = '# noqa'\nHashOf = 1\n_hash = 2\n")
    figures = structure.select_kept_figures(structure.measure(project))
    assert figures == {
        "one_word_functions": {"high": 1, "low": 0},
        "repeated_classes": {"Answer": 2},
        "misnamed_exceptions": {"Gone": 1, "Lost": 1},
        "words_against_glossary": {"hash: HashOf": 1, "hash: read_hash": 1},
        "noqa": {"total": 1},
    }


def test_figure_that_is_not_kept_may_not_occur() -> None:
    kept = {"repeated_classes": {"Answer": 3, "Row": 2}}
    now = {"repeated_classes": {"Answer": 2, "Row": 3, "Place": 2}}
    assert structure.find_rises(kept, now) == [
        ("repeated_classes", "Row", 2, 3),
        ("repeated_classes", "Place", 0, 2),
    ]
