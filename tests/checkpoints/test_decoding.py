"""Rows become objects in one way: by name, with defaults for what is missing, and an error that says whose row it is."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from opsleuth.checkpoints.decoding import Decoders, decode_fields, decode_row
from opsleuth.checkpoints.errors import UnreadableStoreError
from opsleuth.checkpoints.store import Store
from opsleuth.state.run_status import Status, StopReason


@dataclass(frozen=True)
class Stored:
    id: str
    status: Status
    count: int = 0
    note: str | None = None


@pytest.mark.parametrize(
    "row",
    [
        {"id": "a", "status": "failed", "note": None},
        {"id": "a", "status": "failed", "count": 0, "note": None, "of_a_newer_version": 1},
    ],
)
def test_columns_become_the_fields_of_their_names(row: dict[str, Any]) -> None:
    decoders: Decoders = {"status": Status, "note": json.loads}
    assert decode_row(Stored, row, decoders) == Stored("a", Status.FAILED)
    document = {"fields": json.dumps({name: value for name, value in row.items() if name != "id"})}
    assert decode_fields(Stored, document, decoders, id="a") == Stored("a", Status.FAILED)  # type: ignore[arg-type]


@pytest.mark.parametrize("row", [{"id": "a"}, {"id": "a", "status": "melted"}])
def test_a_row_that_cannot_be_read_says_whose_it_is(row: dict[str, Any]) -> None:
    with pytest.raises(UnreadableStoreError, match="run 'a': its row cannot be read"):
        decode_row(Stored, row, {"status": Status}, name="run 'a': its row")


@pytest.mark.parametrize("text", ["{", "7", "null"])
def test_a_document_that_is_none_cannot_be_read(text: str) -> None:
    with pytest.raises(UnreadableStoreError, match="row of Stored cannot be read"):
        decode_fields(Stored, {"fields": text}, {"status": Status})  # type: ignore[arg-type]


def test_a_stop_reason_of_an_older_version_is_read(store: Store, run: str) -> None:
    store.database.change(
        "UPDATE runs SET status = 'failed', stop_reason = 'source_unavailable' WHERE id = ?", (run,)
    )
    listed = store.runs.list()
    assert (listed[0].stop_reason, listed.warnings) == (StopReason.MODEL_UNAVAILABLE, ())
    assert json.dumps(listed[0].stop_reason) == '"model_unavailable"'
