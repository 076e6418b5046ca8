"""Which runs are questions on other runs: branches whose settings say so."""

from opsleuth.checkpoints.runs import RunRow, RunsTable

FOLLOW_UP = "follow_up"
"""In the settings of a run that answers a question on another one: what was used before it began."""


def is_follow_up(row: RunRow) -> bool:
    """Whether a run is a question on another one."""
    return FOLLOW_UP in row.settings


def find_asked_run(runs: RunsTable, row: RunRow) -> RunRow:
    """The run whose limits a question on this one spends: the first of its line that is not a question itself."""
    while is_follow_up(row) and row.parent and (parent := runs.get(row.parent)) is not None:
        row = parent
    return row


def list_follow_ups(runs: RunsTable, run: str) -> tuple[RunRow, ...]:
    """The questions on a run and the questions on those, oldest first."""
    found: list[RunRow] = []
    waiting = [run]
    for known in waiting:  # grows while it is walked
        rows = [row for child in runs.children(known) if (row := runs.get(child)) is not None]
        asked = [row for row in rows if is_follow_up(row)]
        found += asked
        waiting += [row.id for row in asked]
    return tuple(sorted(found, key=lambda row: row.created))
