"""Faults by the number of the request, over any model."""

import re
from collections.abc import Callable, Mapping, Sequence

from opsleuth.models.server.chat_replies import Entry, Request
from opsleuth.models.server.reply_faults import FAULT_NAMES
from opsleuth.state.errors import UsageError

_FORM = re.compile(r"([a-z_0-9]+?)(?:@(\d{1,6}))?")


class FaultyModel:
    """The model's entries with faults: `name` spoils every one, `name@3` the third. Raises UsageError for an unknown name."""

    def __init__(self, model: Callable[[Request], Entry], faults: Sequence[str]) -> None:
        self._model, self._asked = model, 0
        self._always, self._at = _parse_faults(faults)

    def __call__(self, request: Request) -> Entry:
        self._asked += 1
        fault = self._at.get(self._asked, self._always)
        entry = self._model(request)
        return entry if fault is None else {**entry, "fault": fault}


def _parse_faults(faults: Sequence[str]) -> tuple[str | None, Mapping[int, str]]:
    always, at = None, dict[int, str]()
    for text in faults:
        found = _FORM.fullmatch(text)
        if found is None or found[1] not in FAULT_NAMES:
            raise UsageError(
                f"there is no fault {text!r}: write NAME or NAME@N, the names are {', '.join(FAULT_NAMES)}"
            )
        if found[2]:
            at[int(found[2])] = found[1]
        else:
            always = found[1]
    return always, at
