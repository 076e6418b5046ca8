"""The meanings of many messages: those of one form say the same, so that only the first of each form are read."""

from collections.abc import Callable
from dataclasses import dataclass

from opsleuth.analysis.log_templates import Masker
from opsleuth.analysis.message_meaning import MessageMeaning

READ_OF_EACH_FORM = 50
"""Messages of one form that are read before the rest is taken to say the same."""
_MOST_FORMS = 50_000

ReadMeaning = Callable[[str], MessageMeaning | None]


@dataclass(slots=True)
class _FormMeaning:
    read: int = 0
    meaning: MessageMeaning | None = None
    steady: bool = True


class MeaningByForm:
    """Reads meanings with `read`; a form whose first messages mean different things is always read."""

    def __init__(self, read: ReadMeaning) -> None:
        self._read = read
        self._masker = Masker()
        self._forms: dict[str, _FormMeaning] = {}

    def __call__(self, text: str) -> MessageMeaning | None:
        form = self._masker.form(text)
        known = self._forms.get(form)
        if known is None:
            if len(self._forms) >= _MOST_FORMS:
                self._forms.clear()
            known = self._forms[form] = _FormMeaning()
        if known.steady and known.read >= READ_OF_EACH_FORM:
            return known.meaning
        meaning = self._read(text)
        if known.read and not _mean_the_same(meaning, known.meaning):
            known.steady = False
        known.read += 1
        known.meaning = meaning
        return meaning


def _mean_the_same(one: MessageMeaning | None, other: MessageMeaning | None) -> bool:
    if one is None or other is None:
        return one is other
    return (one.kind, one.target) == (other.kind, other.target)
