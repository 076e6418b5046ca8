"""Whether a question is about something that is over: what ended before the data does is then still the answer."""

import re

from opsleuth.analysis.records import AlertFacts

_PAST = re.compile(
    r"\b(?:why|how|when|what)\s+(?:did|was|were|had)\b"
    r"|\bwhat\s+(?:happened|killed|crashed|broke|ended|stopped|restarted|caused|made|took|brought)\b"
    r"|\b(?:died|crashed|restarted|rebooted|went\s+(?:down|away|offline)|(?:was|were|got)\s+(?:\w+\s+)?killed)\b",
    re.IGNORECASE,
)


def asks_about_past(alert: AlertFacts, service: str) -> bool:
    """Whether the alert or question speaks of the past (or names a time) and may mean the service."""
    named = re.search(rf"(?<![\w-]){re.escape(service)}(?![\w-])", alert.text, re.IGNORECASE) is not None
    about = named or alert.service in (None, service)
    return about and (alert.stated is not None or _PAST.search(alert.text) is not None)
