"""The comparison behind `make not-worse`: what falls is named, and a disguise changes names or times and nothing else."""

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from made_up import case_folder

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Imports a program of `benchmarks/`."""
    import importlib  # noqa: PLC0415 - beside its one use

    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


def counted(*wrong: str) -> dict[str, dict[str, object]]:
    return {"right": {"asked": 3, "wrong": list(wrong)}}


@pytest.mark.parametrize(
    ("kept", "now", "said"),
    [
        (counted("a"), counted("a"), []),
        (counted("a", "b"), counted("c"), []),
        (counted("a"), counted("b", "c"), ["shop: right fell from 2 to 1 of 3: b, c"]),
    ],
)
def test_a_fallen_count_is_reported_with_its_cases(
    load: Callable[[str], ModuleType], kept: object, now: object, said: list[str]
) -> None:
    assert list(load("not_worse").losses({"shop": kept}, {"shop": now})) == said


def test_a_set_that_disappeared_is_reported(load: Callable[[str], ModuleType]) -> None:
    assert list(load("not_worse").losses({"shop": counted()}, {})) == ["shop: the set is not there any more"]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A set of one case with its key."""
    (tmp_path / "shop").mkdir()
    case_folder(
        tmp_path / "shop" / "shop-1",
        topology__csv="caller,callee\nservice,stock\nstock,stock-db\n",
        logs__jsonl='{"timestamp": "2024-05-01T14:10:00.5Z", "service": "service", "message": "service: stockpile of stock-db, restocked at 2024-05-01 23:59"}\n',
    )
    key = {"shop-1": {"root_cause_service": "stock-db", "must_not_blame": ["cart", "kind:cpu"]}}
    (tmp_path / "shop" / "answers.json").write_text(json.dumps(key))
    return tmp_path / "shop"


def test_renaming_reaches_names_in_texts_and_key_but_no_column(
    load: Callable[[str], ModuleType], shop: Path
) -> None:
    disguise = load("disguise")
    names = disguise.made_up_names(disguise.services_of(shop / "shop-1"))
    disguise.rename_set(shop, shop.parent / "other")
    case = shop.parent / "other" / "shop-1"
    assert set(names) == {"cart", "service", "stock", "stock-db"}
    assert len(set(names.values())) == 4
    assert (
        (case / "topology.csv").read_text()
        == f"caller,callee\n{names['service']},{names['stock']}\n{names['stock']},{names['stock-db']}\n"
    )
    line = json.loads((case / "logs.jsonl").read_text())
    assert line["service"] == names["service"]
    assert line["message"] == f"{names['service']}: stockpile of {names['stock-db']}, restocked at 2024-05-01 23:59"  # fmt: skip
    answer = json.loads((shop.parent / "other" / "answers.json").read_text())["shop-1"]
    assert answer == {"root_cause_service": names["stock-db"], "must_not_blame": [names["cart"], "kind:cpu"]}


def test_shifting_moves_every_time_by_the_same_span(load: Callable[[str], ModuleType], shop: Path) -> None:
    load("disguise").shift_set(shop, shop.parent / "later")
    case = shop.parent / "later" / "shop-1"
    line = json.loads((case / "logs.jsonl").read_text())
    assert line["timestamp"] == "2024-09-01T19:10:00.5Z"
    assert line["message"].endswith("restocked at 2024-09-02 04:59")
    incident = json.loads((case / "incident.json").read_text())
    assert incident["window"]["start"] == "2024-09-01T19:00:00Z"
    assert incident["alert"]["fired_at"] == "2024-09-02T03:11:00+08:00"
