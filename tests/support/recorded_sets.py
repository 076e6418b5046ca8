"""The recorded incidents beside the repository: they are not part of it, so a test that needs them asks here."""

import os
from pathlib import Path

from servers import lacking

SHARED = Path(os.environ.get("OPSLEUTH_SHARED", Path(__file__).resolve().parents[3] / "shared"))


def recorded_set(name: str) -> Path:
    """The folder of one set of cases with its key. Skips the test where it is missing; with CI=true the test fails."""
    folder = SHARED / "incidents" / "dev" / name
    if not (folder / "answers.json").is_file():
        lacking(
            f"no recorded incidents at {folder}: set OPSLEUTH_SHARED to the folder that holds incidents/dev"
        )
    return folder
